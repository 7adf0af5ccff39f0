//! The two ways to a server: Streamable HTTP, and the standard input and output of a child.

use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use reqwest::header::CONTENT_TYPE;
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::sync::mpsc;

use super::inbox::{Inbox, Said};
use crate::child::{self, Group};
use crate::exchange::Way;

/// The largest message that is read.
const MESSAGE_MAX: usize = 16 << 20;
/// How many messages wait to be written to a child.
const OUTBOX_MAX: usize = 256;

/// Where a server is.
#[derive(Debug, Clone)]
pub(crate) enum Road {
    Http { client: reqwest::Client, url: String },
    Command(String),
}

/// A child's standard input and output.
pub(crate) struct Pipe {
    outbox: Mutex<Option<mpsc::Sender<String>>>,
    group: tokio::sync::Mutex<Group>,
}

impl Pipe {
    /// Starts the command.
    pub(crate) fn open(line: &str, inbox: &Arc<Inbox>) -> Result<Arc<Self>, String> {
        let mut command = child::command(line)?;
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut group = Group::start(&mut command)?;
        let streams = group.leader.stdin.take().zip(group.leader.stdout.take());
        let (mut stdin, stdout) = streams.ok_or("the command has no standard input or output")?;
        let (sender, mut outbox) = mpsc::channel::<String>(OUTBOX_MAX);
        tokio::spawn(async move {
            while let Some(text) = outbox.recv().await {
                if stdin.write_all(format!("{text}\n").as_bytes()).await.is_err() || stdin.flush().await.is_err() {
                    return;
                }
            }
        });
        // It ends with the child, and holds nothing that would keep the child alive.
        let (inbox, replies) = (inbox.clone(), sender.downgrade());
        tokio::spawn(async move {
            let mut lines = BufReader::new(stdout).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let reply = inbox.take(&line);
                if let Some((reply, replies)) = reply.zip(replies.upgrade()) {
                    // A server that does not read its answers misses them.
                    let _ = replies.try_send(reply);
                }
            }
            inbox.close("the server closed its standard output");
        });
        Ok(Arc::new(Self { outbox: Mutex::new(Some(sender)), group: tokio::sync::Mutex::new(group) }))
    }

    /// Writes a line.
    pub(crate) fn say(&self, text: String) -> Result<(), String> {
        let outbox = self.outbox.lock().unwrap_or_else(PoisonError::into_inner);
        let outbox = outbox.as_ref().ok_or("its standard input is closed")?;
        outbox.try_send(text).map_err(|_| "the server does not read its standard input".to_owned())
    }

    /// Closes its standard input. Answers whether it ended within this time.
    pub(crate) async fn close(&self, within: Duration) -> bool {
        drop(self.outbox.lock().unwrap_or_else(PoisonError::into_inner).take());
        self.group.lock().await.ended(within).await.is_some()
    }
}

/// One request over HTTP: where to, and the headers beside those that all have.
#[derive(Debug, Clone)]
pub(crate) struct Posted {
    pub(crate) client: reqwest::Client,
    pub(crate) url: String,
    pub(crate) headers: Vec<(&'static str, String)>,
}

/// What came of one.
#[derive(Debug, Clone, Default)]
pub(crate) struct Outcome {
    pub(crate) status: u16,
    pub(crate) session: Option<String>,
    pub(crate) has_body: bool,
}

impl Posted {
    /// Posts a message. What comes back goes to the inbox; an answer to `id` that there is not is told there too.
    pub(crate) async fn send(self, inbox: Arc<Inbox>, id: Option<String>, text: String) -> Result<Outcome, String> {
        let shown: Vec<String> = self.headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        inbox.exchange.add(Way::Out, &format!("POST {} [{}] {text}", self.url, shown.join(", ")));
        let done = self.exchange(&inbox, id.as_deref(), text).await;
        if let Some(id) = id {
            let why = match &done {
                Ok(outcome) => format!("status {}, and no answer in its body", outcome.status),
                Err(why) => why.clone(),
            };
            inbox.settle(&id, Said::Nothing(why));
        }
        done
    }

    async fn exchange(self, inbox: &Arc<Inbox>, id: Option<&str>, text: String) -> Result<Outcome, String> {
        let mut request = self.client.post(&self.url).header(CONTENT_TYPE, "application/json");
        request = request.header("accept", "application/json, text/event-stream");
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        let lost = |error: &reqwest::Error| format!("no answer: {}", crate::agent::lost(error));
        let mut response = request.body(text).send().await.map_err(|error| lost(&error))?;
        let header = |name: &str| response.headers().get(name).and_then(|value| value.to_str().ok()).map(str::to_owned);
        let kind = header("content-type").unwrap_or_default();
        let mut outcome =
            Outcome { status: response.status().as_u16(), session: header("mcp-session-id"), has_body: false };
        inbox.exchange.add(Way::In, &format!("{} {kind}", response.status()));
        let is_stream = kind.starts_with("text/event-stream");
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await.map_err(|error| lost(&error))? {
            body.extend_from_slice(&chunk);
            if body.len() > MESSAGE_MAX {
                return Err(format!("a message is larger than {MESSAGE_MAX} bytes"));
            }
            // An event can only have ended in what has just come.
            let has_end = is_stream && ends_event(&body[body.len().saturating_sub(chunk.len() + 3)..]);
            while let Some((event, rest)) = has_end.then(|| next_event(&body)).flatten() {
                body.drain(..rest);
                self.take(inbox, &event);
            }
        }
        outcome.has_body = !body.is_empty();
        let text = String::from_utf8(body).map_err(|_| "the body is not UTF-8".to_owned())?;
        if !is_stream && !text.trim().is_empty() {
            self.take(inbox, &text);
        }
        // A refusal of the whole request has no id of its own, or null.
        let refused: serde_json::Value = serde_json::from_str(&text).unwrap_or_default();
        if let Some(id) = id.filter(|id| refused["id"].is_null() && refused["error"].is_object() && inbox.awaits(id)) {
            inbox.settle(id, Said::Error(refused["error"].clone()));
        }
        Ok(outcome)
    }

    fn take(&self, inbox: &Arc<Inbox>, text: &str) {
        if let Some(reply) = inbox.take(text) {
            tokio::spawn(Box::pin(self.clone().send(inbox.clone(), None, reply)));
        }
    }
}

/// The data of the first whole event, and where the next begins. Events without data are passed over.
fn next_event(body: &[u8]) -> Option<(String, usize)> {
    let text = String::from_utf8_lossy(body);
    let mut from = 0;
    while let Some((length, gap)) = end_of_event(&text[from..]) {
        let event = &text[from..from + length];
        let data: Vec<&str> = event
            .lines()
            .filter_map(|line| line.strip_prefix("data:"))
            .map(|line| line.strip_prefix(' ').unwrap_or(line))
            .collect();
        from += length + gap;
        if data.iter().any(|line| !line.is_empty()) {
            return Some((data.join("\n"), from));
        }
    }
    None
}

fn ends_event(bytes: &[u8]) -> bool {
    bytes.windows(2).any(|pair| pair == b"\n\n") || bytes.windows(4).any(|four| four == b"\r\n\r\n")
}

fn end_of_event(text: &str) -> Option<(usize, usize)> {
    let ends = ["\r\n\r\n", "\n\n"].into_iter().filter_map(|end| text.find(end).map(|at| (at, end.len())));
    ends.min_by_key(|(at, _)| *at)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn events_are_read_one_by_one_and_those_without_data_are_passed_over() {
        let body = b"id: 1\ndata:\n\n: keep alive\r\n\r\nevent: message\r\ndata: {\"a\":\r\ndata: 1}\r\n\r\ndata: next";
        let (data, rest) = next_event(body).unwrap();
        assert_eq!(data, "{\"a\":\n1}");
        assert_eq!(next_event(&body[rest..]), None);
    }
}
