//! A stream of messages that a client may lose hold of and take up again by the id of the last one it saw (2025-11-25,
//! Transports, Resumability and Redelivery). What it may still ask for is kept, within bounds.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Notify;
use tokio::time::Instant;

use crate::mcp::server::Waits;

/// How many messages of one stream are kept. Beyond, the oldest go, but never the last.
const MESSAGES_MAX: usize = 256;
/// How many bytes of one stream are kept; the last message is kept whatever its size.
const BYTES_MAX: usize = 256 * 1024;
/// How many streams of one session are kept.
const STREAMS_MAX: usize = 16;
/// For how long a stream is kept once it has ended.
const KEPT_FOR: Duration = Duration::from_secs(5 * 60);

/// One stream.
#[derive(Debug)]
pub struct Stream {
    number: u64,
    /// The calls that are answered by its end.
    waits: Waits,
    written: Mutex<Written>,
    more: Notify,
}

#[derive(Debug, Default)]
struct Written {
    messages: VecDeque<(u64, Bytes)>,
    bytes: usize,
    last: u64,
    ended_at: Option<Instant>,
}

/// What comes next on a stream.
#[derive(Debug, PartialEq, Eq)]
pub enum Next {
    /// A message, and its number.
    Message(u64, Bytes),
    /// Nothing more ever.
    End,
}

impl Stream {
    fn lock(&self) -> MutexGuard<'_, Written> {
        self.written.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The calls that wait on it.
    #[must_use]
    pub const fn waits(&self) -> &Waits {
        &self.waits
    }

    /// Writes a message.
    pub fn write(&self, message: Bytes) {
        self.lock().write(message);
        self.more.notify_waiters();
    }

    /// Writes the last message, if there is one: nothing more comes.
    pub fn end(&self, message: Option<Bytes>) {
        let mut written = self.lock();
        if let Some(message) = message {
            written.write(message);
        }
        written.ended_at = Some(Instant::now());
        drop(written);
        self.more.notify_waiters();
    }

    /// Whether nothing comes after the message of this number.
    #[must_use]
    pub fn ends_with(&self, number: u64) -> bool {
        let written = self.lock();
        written.ended_at.is_some() && written.last <= number
    }

    /// What comes after the message of this number; it waits for it.
    pub async fn next(&self, after: u64) -> Next {
        loop {
            let more = self.more.notified();
            tokio::pin!(more);
            more.as_mut().enable();
            {
                let written = self.lock();
                if let Some((number, message)) = written.messages.iter().find(|(number, _)| *number > after) {
                    return Next::Message(*number, message.clone());
                }
                if written.ended_at.is_some() {
                    return Next::End;
                }
            }
            more.await;
        }
    }

    /// The id of one of its messages; 0 stands for its beginning.
    #[must_use]
    pub fn event_id(&self, number: u64) -> String {
        format!("{}-{number}", self.number)
    }
}

impl Written {
    fn write(&mut self, message: Bytes) {
        self.last += 1;
        self.bytes += message.len();
        self.messages.push_back((self.last, message));
        while self.messages.len() > 1 && (self.messages.len() > MESSAGES_MAX || self.bytes > BYTES_MAX) {
            let gone = self.messages.pop_front().map_or(0, |(_, message)| message.len());
            self.bytes -= gone;
        }
    }
}

/// The streams of one session.
#[derive(Debug, Default)]
pub(in crate::mcp::server) struct Streams {
    next: AtomicU64,
    open: Mutex<Vec<Arc<Stream>>>,
    /// The numbers of the streams on which the client listens, oldest first: of several only the newest is told.
    listening: Mutex<Vec<u64>>,
}

/// One that listens. Dropping it ends that.
pub(in crate::mcp::server) struct Listening<'a> {
    streams: &'a Streams,
    number: u64,
}

impl Streams {
    pub(in crate::mcp::server) fn begin(&self, waits: Waits) -> Arc<Stream> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        let stream = Arc::new(Stream { number, waits, written: Mutex::default(), more: Notify::new() });
        self.forget_ended();
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if open.len() >= STREAMS_MAX {
            open.remove(0);
        }
        open.push(Arc::clone(&stream));
        stream
    }

    /// Forgets the streams that ended a while ago.
    pub(in crate::mcp::server) fn forget_ended(&self) {
        let is_kept = |stream: &Arc<Stream>| stream.lock().ended_at.is_none_or(|at| at.elapsed() < KEPT_FOR);
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.retain(is_kept);
        if open.is_empty() {
            open.shrink_to_fit();
        }
    }

    /// The stream that an event belongs to, and the event's number in it.
    pub(in crate::mcp::server) fn find(&self, event_id: &str) -> Option<(Arc<Stream>, u64)> {
        let (stream, number) = event_id.split_once('-')?;
        let (stream, number) = (stream.parse::<u64>().ok()?, number.parse::<u64>().ok()?);
        let open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.iter().find(|open| open.number == stream).map(|open| (Arc::clone(open), number))
    }

    pub(in crate::mcp::server) fn listen(&self) -> Listening<'_> {
        let number = self.next.fetch_add(1, Ordering::Relaxed) + 1;
        self.listening.lock().unwrap_or_else(PoisonError::into_inner).push(number);
        Listening { streams: self, number }
    }
}

impl Listening<'_> {
    /// Whether this is the one that is told.
    pub(in crate::mcp::server) fn is_newest(&self) -> bool {
        self.streams.listening.lock().unwrap_or_else(PoisonError::into_inner).last() == Some(&self.number)
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        let mut listening = self.streams.listening.lock().unwrap_or_else(PoisonError::into_inner);
        listening.retain(|number| *number != self.number);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(text: &'static str) -> Bytes {
        Bytes::from_static(text.as_bytes())
    }

    #[tokio::test]
    async fn a_stream_is_taken_up_after_the_last_message_that_was_seen() {
        let streams = Streams::default();
        let stream = streams.begin(Waits::default());
        for text in ["a", "b", "c"] {
            stream.write(message(text));
        }
        stream.end(None);
        let (found, after) = streams.find(&stream.event_id(1)).unwrap();
        assert_eq!(found.next(after).await, Next::Message(2, message("b")));
        assert_eq!(found.next(2).await, Next::Message(3, message("c")));
        assert_eq!(found.next(3).await, Next::End);
        assert!(streams.find("9-1").is_none() && streams.find("x").is_none());
    }

    #[tokio::test]
    async fn of_a_long_stream_the_end_is_kept() {
        let stream = Streams::default().begin(Waits::default());
        for _ in 0..2 * MESSAGES_MAX {
            stream.write(message("x"));
        }
        stream.write(vec![b'y'; 2 * BYTES_MAX].into());
        assert_eq!(stream.lock().messages.len(), 1);
        assert!(matches!(stream.next(0).await, Next::Message(513, _)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_session_keeps_few_streams_and_not_for_long() {
        let streams = Streams::default();
        let first = streams.begin(Waits::default());
        for _ in 0..STREAMS_MAX {
            streams.begin(Waits::default());
        }
        assert!(streams.find(&first.event_id(0)).is_none());
        let last = streams.begin(Waits::default());
        last.end(None);
        tokio::time::advance(KEPT_FOR).await;
        streams.begin(Waits::default());
        assert!(streams.find(&last.event_id(0)).is_none());
    }

    #[test]
    fn of_several_that_listen_the_newest_is_told() {
        let streams = Streams::default();
        let (older, newer) = (streams.listen(), streams.listen());
        assert!(!older.is_newest() && newer.is_newest());
        drop(newer);
        assert!(older.is_newest());
    }
}
