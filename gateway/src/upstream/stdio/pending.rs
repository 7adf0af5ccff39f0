//! Requests of ours that a process has not answered yet, by their ids.

use std::collections::HashMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use reach_schemas::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};

use super::share::Shared;
use crate::mcp::wire::meta;
use crate::mcp::wire::object::Members;
use crate::upstream::broken::NO_ANSWER;
use crate::upstream::reply::{Fault, Reply, Word, read};

/// How many notices of progress of one request may wait to be heard; more are dropped, for the next one says more.
const NOTICES_MAX: usize = 16;
/// A line of a server's log.
const LOG: &str = "notifications/message";
/// A notice of progress.
pub(super) const PROGRESS: &str = "notifications/progress";

/// Who waits for an answer.
pub(super) struct Waiter {
    pub(super) answer: oneshot::Receiver<Result<Reply, Fault>>,
    pub(super) notices: mpsc::Receiver<RawJson>,
}

enum Asked {
    /// By the gateway.
    Own { answer: oneshot::Sender<Result<Reply, Fault>>, notices: mpsc::Sender<RawJson>, is_written: Arc<AtomicBool> },
    /// By a client of the gateway.
    Passed(Shared),
}

/// All of them. Once the process has ended, nobody can be added any more.
#[derive(Default)]
pub(super) struct Pending(Mutex<State>);

#[derive(Default)]
struct State {
    asked: HashMap<u64, Asked>,
    end: Option<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Progress {
    progress_token: Option<u64>,
}

impl Pending {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Registers a request that is about to be written.
    pub(super) fn enter(&self, id: u64, is_written: &Arc<AtomicBool>) -> Result<Waiter, Fault> {
        let (answer, answered) = oneshot::channel();
        let (notices, noticed) = mpsc::channel(NOTICES_MAX);
        let mut state = self.lock();
        if let Some(why) = &state.end {
            return Err(Fault::NeverSent(why.clone()));
        }
        state.asked.insert(id, Asked::Own { answer, notices, is_written: Arc::clone(is_written) });
        Ok(Waiter { answer: answered, notices: noticed })
    }

    /// Registers a request of a client.
    pub(super) fn enter_shared(&self, id: u64, shared: Shared) -> Result<(), Fault> {
        let mut state = self.lock();
        match &state.end {
            Some(why) => Err(Fault::NeverSent(why.clone())),
            None => {
                state.asked.insert(id, Asked::Passed(shared));
                Ok(())
            }
        }
    }

    /// Forgets a request. False: it was answered.
    pub(super) fn leave(&self, id: u64) -> bool {
        self.lock().asked.remove(&id).is_some()
    }

    /// Takes a line in. What it asks is answered by what is given back.
    pub(super) fn take(&self, line: &[u8], changed: &Notify) -> Vec<String> {
        let heard = read(line, &mut |word| match word.method {
            PROGRESS => self.progress(word.params),
            "notifications/tools/list_changed"
            | "notifications/prompts/list_changed"
            | "notifications/resources/list_changed" => {
                changed.notify_one();
                self.pass(&word);
            }
            _ => self.pass(&word),
        });
        for (id, reply) in heard.answers {
            match self.answered(&id) {
                Some(Asked::Own { answer, .. }) => {
                    // Whoever does not wait any more has called it off.
                    let _ = answer.send(Ok(reply));
                }
                Some(Asked::Passed(shared)) => shared.answer(&reply),
                None => {}
            }
        }
        for id in heard.broken {
            match self.answered(&id) {
                Some(Asked::Own { answer, .. }) => {
                    let _ = answer.send(Err(Fault::Lost(NO_ANSWER.to_owned())));
                }
                Some(Asked::Passed(shared)) => shared.lost(NO_ANSWER),
                None => {}
            }
        }
        heard.owed
    }

    /// Takes out the request that this id answers.
    fn answered(&self, id: &str) -> Option<Asked> {
        let id: u64 = id.parse().ok()?;
        self.lock().asked.remove(&id)
    }

    fn progress(&self, params: Option<&RawValue>) {
        let Some(params) = params else { return };
        let token = serde_json::from_str::<Progress>(params.get()).ok().and_then(|progress| progress.progress_token);
        let state = self.lock();
        match token.and_then(|token| state.asked.get(&token)) {
            Some(Asked::Own { notices, .. }) => {
                // The one that finds no room is followed by another.
                let _ = notices.try_send(RawJson::from(params.to_owned()));
            }
            Some(Asked::Passed(shared)) => shared.progress(params),
            None => {}
        }
    }

    /// A notice that a client may wait for: it names the client's stream, or there is but one whose it can be. A line of
    /// the log is for those who asked for the log.
    fn pass(&self, word: &Word<'_>) {
        let state = self.lock();
        let is_log = word.method == LOG;
        let shared = |asked: &'_ Asked| match asked {
            Asked::Passed(shared) => !is_log || shared.wants_log,
            Asked::Own { .. } => false,
        };
        let of_stream = word.params.and_then(subscription_of);
        let mut whose = match of_stream {
            Some(id) => state.asked.get(&id).into_iter().collect::<Vec<_>>(),
            None => state.asked.values().filter(|asked| shared(asked)).collect(),
        };
        if let (Some(Asked::Passed(shared)), true) = (whose.pop(), whose.is_empty()) {
            shared.notice(word, of_stream.is_some());
        }
    }

    /// The process has ended.
    pub(super) fn end(&self, why: &str) {
        let asked = {
            let mut state = self.lock();
            state.end = Some(why.to_owned());
            std::mem::take(&mut state.asked)
        };
        for asked in asked.into_values() {
            match asked {
                Asked::Own { answer, is_written, .. } => {
                    let _ = answer.send(Err(fault_of(&is_written, why)));
                }
                Asked::Passed(shared) => shared.lost(why),
            }
        }
    }
}

fn fault_of(is_written: &AtomicBool, why: &str) -> Fault {
    let was_written = is_written.load(Ordering::Acquire);
    if was_written { Fault::Lost(why.to_owned()) } else { Fault::NeverSent(why.to_owned()) }
}

/// Which of our requests opened the stream that a notice belongs to.
fn subscription_of(params: &RawValue) -> Option<u64> {
    let meta = Members::of(params.get()).ok()?.get("_meta")?;
    Members::of(meta.get()).ok()?.get(meta::SUBSCRIPTION_ID)?.get().trim_matches('"').parse().ok()
}
