//! What a server said in one session: answers go to whoever asked, everything else is kept, within bounds.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use crate::exchange::{Exchange, Way};
use crate::json::spelled;

/// How many notices, and how many messages that belong nowhere, are kept.
const KEPT_MAX: usize = 500;
/// How much of one that belongs nowhere is kept, in characters.
const STRAY_MAX: usize = 500;

/// What a request came to.
#[derive(Debug, Clone)]
pub(crate) enum Said {
    /// A result, as it was written.
    Result(String),
    Error(Value),
    /// No answer, and why.
    Nothing(String),
}

impl Said {
    /// In words, for reports.
    pub(crate) fn words(&self) -> String {
        match self {
            Self::Result(text) => format!("the result {}", crate::exchange::short(text)),
            Self::Error(error) => format!("error {error}"),
            Self::Nothing(why) => why.clone(),
        }
    }

    /// The result as JSON, or words for what there is instead.
    pub(crate) fn result(&self) -> Result<Value, String> {
        match self {
            Self::Result(text) => serde_json::from_str(text).map_err(|error| error.to_string()),
            Self::Error(_) | Self::Nothing(_) => Err(self.words()),
        }
    }

    /// The number of the error, if it is one.
    pub(crate) fn code(&self) -> Option<i64> {
        match self {
            Self::Error(error) => error["code"].as_i64(),
            Self::Result(_) | Self::Nothing(_) => None,
        }
    }
}

/// A notification.
#[derive(Debug, Clone)]
pub(crate) struct Notice {
    pub(crate) at: Instant,
    pub(crate) method: String,
    pub(crate) params: Value,
}

#[derive(Default)]
struct State {
    pending: BTreeMap<String, oneshot::Sender<(Said, Instant)>>,
    notices: VecDeque<Notice>,
    /// Answers that nobody waits for.
    strays: VecDeque<String>,
    /// What is no message at all.
    junk: VecDeque<String>,
}

/// The inbox of a session.
pub(crate) struct Inbox {
    pub(crate) exchange: Arc<Exchange>,
    state: Mutex<State>,
}

#[derive(Deserialize)]
struct Frame<'a> {
    #[serde(default)]
    jsonrpc: Option<String>,
    #[serde(borrow, default)]
    id: Option<&'a RawValue>,
    #[serde(default)]
    method: Option<String>,
    #[serde(default)]
    params: Value,
    #[serde(borrow, default)]
    result: Option<&'a RawValue>,
    #[serde(default)]
    error: Option<Value>,
}

fn keep<T>(list: &mut VecDeque<T>, item: T) {
    if list.len() < KEPT_MAX {
        list.push_back(item);
    }
}

impl Inbox {
    pub(crate) fn new(exchange: Arc<Exchange>) -> Arc<Self> {
        Arc::new(Self { exchange, state: Mutex::default() })
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits for the answer to the request with this id.
    pub(crate) fn expect(&self, id: &str) -> oneshot::Receiver<(Said, Instant)> {
        let (sender, answer) = oneshot::channel();
        self.lock().pending.insert(spelled(id), sender);
        answer
    }

    /// The request is answered so, unless it was already.
    pub(crate) fn settle(&self, id: &str, said: Said) {
        if let Some(sender) = self.lock().pending.remove(&spelled(id)) {
            // Whoever gave up waiting does not care.
            let _ = sender.send((said, Instant::now()));
        }
    }

    /// Whether a request is not answered yet.
    pub(crate) fn awaits(&self, id: &str) -> bool {
        self.lock().pending.contains_key(&spelled(id))
    }

    /// Nothing more will come.
    pub(crate) fn close(&self, why: &str) {
        for (_, sender) in std::mem::take(&mut self.lock().pending) {
            let _ = sender.send((Said::Nothing(why.to_owned()), Instant::now()));
        }
    }

    /// Takes a message. Answers what is to be said to it, if it is a request.
    pub(crate) fn take(&self, text: &str) -> Option<String> {
        self.exchange.add(Way::In, text);
        let mut state = self.lock();
        let frame = serde_json::from_str::<Frame<'_>>(text).ok();
        let Some(frame) = frame.filter(|frame| frame.jsonrpc.as_deref() == Some("2.0")) else {
            keep(&mut state.junk, text.chars().take(STRAY_MAX).collect());
            return None;
        };
        match (frame.method, frame.id) {
            (Some(method), Some(id)) => Some(answered(&method, id.get())),
            (Some(method), None) => {
                keep(&mut state.notices, Notice { at: Instant::now(), method, params: frame.params });
                None
            }
            (None, id) => {
                let said = match (frame.result, frame.error) {
                    (Some(result), None) => Some(Said::Result(result.get().to_owned())),
                    (None, Some(error)) => Some(Said::Error(error)),
                    (Some(_), Some(_)) | (None, None) => None,
                };
                let waiting = id.and_then(|id| state.pending.remove(&spelled(id.get())));
                match (said, waiting) {
                    (Some(said), Some(sender)) => drop(sender.send((said, Instant::now()))),
                    _ => keep(&mut state.strays, text.chars().take(STRAY_MAX).collect()),
                }
                None
            }
        }
    }

    /// Notices so far.
    pub(crate) fn notices(&self) -> Vec<Notice> {
        self.lock().notices.iter().cloned().collect()
    }

    /// Answers so far that nobody waits for.
    pub(crate) fn strays(&self) -> Vec<String> {
        self.lock().strays.iter().cloned().collect()
    }

    /// What was no message at all.
    pub(crate) fn junk(&self) -> Vec<String> {
        self.lock().junk.iter().cloned().collect()
    }
}

/// What is said to a request of the server's: the runner declares nothing that a server could ask it for.
fn answered(method: &str, id: &str) -> String {
    if method == "ping" {
        return format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{{}}}}"#);
    }
    let error = json!({ "code": -32601, "message": "the client declares no such capability" });
    format!(r#"{{"jsonrpc":"2.0","id":{id},"error":{error}}}"#)
}
