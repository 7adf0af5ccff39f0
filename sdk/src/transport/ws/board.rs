//! What a link has on its hands: calls that wait for their answers, and what is to be written next. It outlives
//! connections; when one is lost, it decides what is written again and what has failed.

use std::collections::{HashMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use reach_schemas::{ErrorCode, RawJson};
use tokio::sync::{Notify, oneshot};
use tokio_tungstenite::tungstenite::Utf8Bytes;

use crate::error::{Error, Refusal, Result};
use crate::transport::{Call, rpc};

/// How many messages may wait to be written; a call beyond that is refused.
const QUEUE_MAX: usize = 4096;
/// A message larger than this may itself be what breaks connections ...
const LARGE: usize = 1 << 20;
/// ... so it is written no more than this many times.
const LARGE_SENDS_MAX: u32 = 3;
/// How many messages go out with one flush.
const BATCH_MAX: usize = 64;

/// A message on its way out.
pub(super) struct Outgoing {
    pub(super) text: Utf8Bytes,
    /// Told once the message has been handed to the network; dropped if it never is.
    pub(super) written: Option<oneshot::Sender<()>>,
}

#[derive(Default)]
pub(super) struct Board {
    inner: Mutex<Inner>,
    changed: Notify,
}

#[derive(Default)]
struct Inner {
    pending: HashMap<u64, Pending>,
    queue: VecDeque<Queued>,
    last_id: u64,
    /// Counts connections; what answers a message of an earlier one is dropped.
    connection: u64,
    ended: Option<Error>,
}

struct Pending {
    text: Utf8Bytes,
    is_safe: bool,
    is_sent: bool,
    /// On how many connections it was written.
    sends: u32,
    answer: oneshot::Sender<Result<RawJson>>,
}

impl Pending {
    fn may_go_again(&self) -> bool {
        self.is_safe && (self.text.len() <= LARGE || self.sends < LARGE_SENDS_MAX)
    }
}

enum Queued {
    Call(u64),
    Reply(Outgoing),
}

/// A call that waits for its answer. Dropping it gives up waiting.
pub(super) struct Waiting<'a> {
    board: &'a Board,
    pub(super) id: u64,
    pub(super) answer: oneshot::Receiver<Result<RawJson>>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.board.lock().pending.remove(&self.id);
    }
}

impl Board {
    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Puts a call in the queue.
    pub(super) fn call(&self, call: &Call) -> Result<Waiting<'_>> {
        let waiting = self.enter(call, false)?;
        self.changed.notify_one();
        Ok(waiting)
    }

    /// Puts a call past the queue: the caller writes its text itself, now.
    pub(super) fn call_now(&self, call: &Call) -> Result<(Waiting<'_>, Utf8Bytes)> {
        let waiting = self.enter(call, true)?;
        let text = self.lock().pending.get(&waiting.id).map(|pending| pending.text.clone()).unwrap_or_default();
        Ok((waiting, text))
    }

    fn enter(&self, call: &Call, is_sent: bool) -> Result<Waiting<'_>> {
        let mut inner = self.lock();
        if let Some(ended) = &inner.ended {
            return Err(ended.clone());
        }
        if !is_sent && inner.queue.len() >= QUEUE_MAX {
            let message = format!("{QUEUE_MAX} messages wait to be written already");
            return Err(Error::Transport { message, sent: false, source: None });
        }
        inner.last_id += 1;
        let id = inner.last_id;
        let (sender, answer) = oneshot::channel();
        let text = rpc::request(id, &call.method, call.params.as_ref()).into();
        inner.pending.insert(id, Pending { text, is_safe: call.is_safe, is_sent, sends: 0, answer: sender });
        if !is_sent {
            inner.queue.push_back(Queued::Call(id));
        }
        Ok(Waiting { board: self, id, answer })
    }

    /// Whether a call that is still waited for has been written.
    pub(super) fn is_sent(&self, id: u64) -> bool {
        self.lock().pending.get(&id).is_some_and(|pending| pending.is_sent)
    }

    /// Puts an answer to the other side in the queue, unless its connection is gone.
    pub(super) fn reply(&self, connection: u64, text: String) -> oneshot::Receiver<()> {
        let (sender, written) = oneshot::channel();
        let mut inner = self.lock();
        if inner.connection == connection {
            inner.queue.push_back(Queued::Reply(Outgoing { text: text.into(), written: Some(sender) }));
            drop(inner);
            self.changed.notify_one();
        }
        written
    }

    /// Gives an answer to the call that waits for it.
    pub(super) fn answered(&self, id: u64, answer: Result<RawJson>) {
        let pending = self.lock().pending.remove(&id);
        if let Some(pending) = pending {
            // The caller may have given up just now.
            let _given_up = pending.answer.send(answer);
        }
    }

    /// The next messages to write; waits until there are any.
    pub(super) async fn next_batch(&self) -> Vec<Outgoing> {
        loop {
            let batch = self.take_batch();
            if !batch.is_empty() {
                return batch;
            }
            self.changed.notified().await;
        }
    }

    fn take_batch(&self) -> Vec<Outgoing> {
        let mut inner = self.lock();
        let mut batch = Vec::new();
        while batch.len() < BATCH_MAX {
            match inner.queue.pop_front() {
                Some(Queued::Reply(reply)) => batch.push(reply),
                // A call that is no longer waited for is not written.
                Some(Queued::Call(id)) => batch.extend(inner.pending.get_mut(&id).map(|pending| {
                    pending.is_sent = true;
                    pending.sends += 1;
                    Outgoing { text: pending.text.clone(), written: None }
                })),
                None => break,
            }
        }
        batch
    }

    /// A new connection is open; answers its number.
    pub(super) fn connected(&self) -> u64 {
        let mut inner = self.lock();
        inner.connection += 1;
        inner.connection
    }

    /// The connection is gone. Calls that may be repeated are written again on the next one, oldest first; the others
    /// fail, because nobody knows whether they arrived.
    pub(super) fn lost(&self) {
        let mut inner = self.lock();
        inner.connection += 1;
        inner.queue.retain(|queued| matches!(queued, Queued::Call(_)));
        let mut sent: Vec<u64> =
            inner.pending.iter().filter(|(_, pending)| pending.is_sent).map(|(&id, _)| id).collect();
        sent.sort_unstable_by(|a, b| b.cmp(a));
        for id in sent {
            if let Some(pending) = inner.pending.get_mut(&id).filter(|pending| pending.may_go_again()) {
                pending.is_sent = false;
                inner.queue.push_front(Queued::Call(id));
            } else if let Some(pending) = inner.pending.remove(&id) {
                let lost = Error::maybe_sent("the connection was lost before the answer came");
                let _given_up = pending.answer.send(Err(lost));
            }
        }
    }

    /// The other side closed because a message was too large: the largest of those that it has not answered fails.
    pub(super) fn too_large(&self, reason: &str) {
        let mut inner = self.lock();
        let sent = inner.pending.iter().filter(|(_, pending)| pending.is_sent);
        let largest = sent.max_by_key(|(_, pending)| pending.text.len()).map(|(&id, _)| id);
        if let Some(pending) = largest.and_then(|id| inner.pending.remove(&id)) {
            let message = format!("the gateway does not take a message of {} bytes: {reason}", pending.text.len());
            let _given_up = pending.answer.send(Err(Refusal::new(ErrorCode::TooLarge, message).into()));
        }
    }

    /// There will be no more connections: every call fails, now and from now on.
    pub(super) fn end(&self, error: Error) {
        let mut inner = self.lock();
        inner.queue.clear();
        for (_, pending) in inner.pending.drain() {
            let _given_up = pending.answer.send(Err(error.clone()));
        }
        inner.ended = Some(error);
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn call(method: &'static str, is_safe: bool) -> Call {
        Call { method: method.into(), params: None, timeout: Duration::from_secs(1), is_safe }
    }

    fn written(board: &Board) -> Vec<String> {
        board.take_batch().into_iter().map(|out| out.text.to_string()).collect()
    }

    #[test]
    fn a_lost_connection_repeats_what_is_safe_in_order_and_fails_the_rest() {
        let board = Board::default();
        let first = board.call(&call("a", true)).unwrap();
        let mut unsafe_one = board.call(&call("b", false)).unwrap();
        let second = board.call(&call("c", true)).unwrap();
        assert_eq!(written(&board).len(), 3);
        let later = board.call(&call("d", false)).unwrap();
        board.lost();
        let again = written(&board);
        assert_eq!(again.len(), 3);
        for (text, method) in again.iter().zip(["\"a\"", "\"c\"", "\"d\""]) {
            assert!(text.contains(method), "{text} is not {method}");
        }
        let failed = unsafe_one.answer.try_recv().unwrap().unwrap_err();
        assert!(matches!(failed, Error::Transport { sent: true, .. }));
        drop((first, second, later));
    }

    #[test]
    fn a_large_message_does_not_break_connections_for_ever() {
        let board = Board::default();
        let params = RawJson::of(&"x".repeat(LARGE)).unwrap();
        let mut waiting = board.call(&Call { params: Some(params), ..call("a", true) }).unwrap();
        for _ in 0..LARGE_SENDS_MAX {
            assert!(waiting.answer.try_recv().is_err());
            assert_eq!(board.take_batch().len(), 1);
            board.lost();
        }
        assert!(waiting.answer.try_recv().unwrap().is_err());
    }

    #[test]
    fn a_call_that_nobody_waits_for_is_not_written() {
        let board = Board::default();
        drop(board.call(&call("a", true)).unwrap());
        assert!(written(&board).is_empty());
    }

    #[test]
    fn a_reply_never_goes_to_another_connection() {
        let board = Board::default();
        let connection = board.connected();
        let mut queued = board.reply(connection, "{}".to_owned());
        board.lost();
        let mut late = board.reply(connection, "{}".to_owned());
        board.connected();
        assert!(written(&board).is_empty());
        assert!(queued.try_recv().is_err() && late.try_recv().is_err());
    }

    #[test]
    fn after_the_end_every_call_is_told_why() {
        let board = Board::default();
        let mut waiting = board.call(&call("a", true)).unwrap();
        board.end(Error::Config("no".to_owned()));
        assert!(waiting.answer.try_recv().unwrap().is_err());
        assert!(board.call(&call("a", true)).is_err());
    }
}
