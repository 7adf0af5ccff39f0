//! One client's talk with a process of its own: which of its streams each message of the server belongs on.

use std::collections::{HashMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use bytes::Bytes;
use http::StatusCode;
use serde_json::value::RawValue;
use tokio::sync::mpsc;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::events::Saying;
use crate::envelope::{Call, Frame, Id, Limits, Message};
use crate::mcp::wire::meta::Meta;
use crate::mcp::wire::object::{Members, quoted};
use crate::upstream::{Outgoing, Running, broken};

/// How many messages one stream may wait for its client to read. Beyond, notices are dropped and then the stream.
pub(super) const WAITING_MAX: usize = 256;
/// How many notices are held for a client that listens on no stream just now. The oldest go first.
const HELD_MAX: usize = 64;

/// A talk. The process ends when it is dropped.
pub(super) struct Talk {
    outgoing: mpsc::Sender<Outgoing>,
    streams: Arc<Mutex<Streams>>,
    /// Cancelled once the process has ended.
    gone: CancellationToken,
    _ended_when_dropped: DropGuard,
}

#[derive(Default)]
struct Streams {
    /// Where what is said about a request goes, by the text of its id without escapes.
    asked: HashMap<String, Asked>,
    /// How many requests there were.
    count: u64,
    standing: Option<mpsc::Sender<Saying>>,
    held: VecDeque<Bytes>,
}

struct Asked {
    /// Its id, as its client wrote it.
    id: String,
    number: u64,
    token: Option<String>,
    say: mpsc::Sender<Saying>,
}

impl Talk {
    /// Begins to hear what a process says.
    pub(super) fn begin(running: Running, ended_when_dropped: DropGuard) -> Self {
        let Running { outgoing, mut incoming, end } = running;
        let (streams, gone) = (Arc::new(Mutex::new(Streams::default())), CancellationToken::new());
        let (hearing, ended) = (Arc::clone(&streams), gone.clone());
        tokio::spawn(async move {
            while let Some(line) = incoming.recv().await {
                lock(&hearing).hear(&line);
            }
            ended.cancel();
            lock(&hearing).end(&end.told());
        });
        Self { outgoing, streams, gone, _ended_when_dropped: ended_when_dropped }
    }

    /// Whether the process has ended.
    pub(super) fn is_gone(&self) -> bool {
        self.gone.is_cancelled()
    }

    /// Has what is said about requests go to a stream: about all of them, or where one has the id of another that has no
    /// answer yet, about none.
    ///
    /// # Errors
    /// The id that is in flight already.
    pub(super) fn ask(&self, calls: &[&Call<'_>], say: &mpsc::Sender<Saying>) -> Result<(), InFlight> {
        let mut streams = lock(&self.streams);
        let mut entered = Vec::new();
        for call in calls {
            let Some(id) = call.id.map(Id::get) else { continue };
            let key = key_of(id);
            if streams.asked.contains_key(&key) {
                entered.iter().for_each(|key| drop(streams.asked.remove(key)));
                return Err(InFlight(id.to_owned()));
            }
            let meta = Meta::of(call.params).ok();
            let token = meta.and_then(|meta| meta.progress_token.map(|token| token.get().to_owned()));
            streams.count += 1;
            let asked = Asked { id: id.to_owned(), number: streams.count, token, say: say.clone() };
            streams.asked.insert(key.clone(), asked);
            entered.push(key);
        }
        Ok(())
    }

    /// Writes a message. False: the process has ended.
    pub(super) async fn write(&self, text: &[u8]) -> bool {
        let mut text = String::from_utf8_lossy(text).into_owned();
        if text.contains(['\n', '\r']) {
            text = text.replace(['\n', '\r'], " ");
        }
        self.outgoing.send(Outgoing::new(text)).await.is_ok()
    }

    /// Has what belongs to no request go to this stream from now on, and what was held first.
    pub(super) fn stand(&self, say: mpsc::Sender<Saying>) {
        let mut streams = lock(&self.streams);
        for text in std::mem::take(&mut streams.held) {
            // There is room for all that is held.
            let _ = say.try_send(Saying { text, answer: None });
        }
        streams.standing = Some(say);
    }
}

/// An id that a request has which is not answered yet.
#[derive(Debug, thiserror::Error)]
#[error("a request with the id {0} is in flight in this session; each needs an id of its own until it is answered")]
pub(super) struct InFlight(String);

/// An id as the server may write it otherwise than its client: with other escapes.
fn key_of(id: &str) -> String {
    serde_json::from_str::<String>(id).map_or_else(|_| id.to_owned(), |text| quoted(&text))
}

fn lock(streams: &Mutex<Streams>) -> MutexGuard<'_, Streams> {
    streams.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Streams {
    fn hear(&mut self, line: &Bytes) {
        match Frame::parse(line, &Limits::default()) {
            Frame::Single(message) => self.place(&message, line),
            // Each message of a batch belongs on a stream of its own.
            Frame::Batch(messages) => {
                let entries = serde_json::from_slice::<Vec<&RawValue>>(line).unwrap_or_default();
                for (message, entry) in messages.iter().zip(entries) {
                    self.place(message, &line.slice_ref(entry.get().as_bytes()));
                }
            }
        }
    }

    fn place(&mut self, message: &Message<'_>, line: &Bytes) {
        let notice = || Saying { text: line.clone(), answer: None };
        match message {
            Message::Response(response) => {
                if let Some(asked) = self.asked.remove(&key_of(response.id.get())) {
                    // A client that went away does not get its answer.
                    let _ = asked.say.try_send(Saying { text: line.clone(), answer: Some(StatusCode::OK) });
                }
            }
            Message::Call(call) => {
                let say = self.stream_for(call);
                let is_lost = say.is_none_or(|say| say.try_send(notice()).is_err());
                if is_lost && call.is_notification() && !call.method.contains("progress") {
                    if self.held.len() == HELD_MAX {
                        self.held.pop_front();
                    }
                    self.held.push_back(line.clone());
                }
            }
            Message::Invalid(_) => {
                tracing::debug!("a line of a server is no message");
                if let Some(asked) = broken::whose(line).and_then(|id| self.asked.remove(&key_of(&id))) {
                    asked.fail(broken::NO_ANSWER);
                }
            }
        }
    }

    /// Progress goes where it was asked for. What names no request goes with the only one that is open, else on the stream
    /// that belongs to none, else with the youngest.
    fn stream_for(&self, call: &Call<'_>) -> Option<&mpsc::Sender<Saying>> {
        if call.method == "notifications/progress" {
            let token = call.params.and_then(token_of)?;
            return self
                .asked
                .values()
                .find(|asked| asked.token.as_deref() == Some(token.get()))
                .map(|asked| &asked.say);
        }
        let is_of_none = call.method.ends_with("/list_changed") || call.method == "notifications/resources/updated";
        let standing = self.standing.as_ref().filter(|say| !say.is_closed());
        let youngest = self.asked.values().max_by_key(|asked| asked.number).map(|asked| &asked.say);
        if is_of_none || self.asked.len() != 1 { standing.or(youngest) } else { youngest }
    }

    fn end(&mut self, why: &str) {
        for (_, asked) in self.asked.drain() {
            asked.fail(why);
        }
    }
}

impl Asked {
    /// Answers in the server's place.
    fn fail(self, why: &str) {
        let (id, message) = (self.id, quoted(&format!("{why}; what it was asked may have been done")));
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{{"code":-32603,"message":{message}}}}}"#);
        // A client that went away does not get its answer.
        let _ = self.say.try_send(Saying { text: text.into(), answer: Some(StatusCode::OK) });
    }
}

fn token_of(params: &RawValue) -> Option<&RawValue> {
    Members::of(params.get()).ok()?.get("progressToken")
}
