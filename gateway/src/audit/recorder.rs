//! What is to be written down and changed nothing in the store: refusals above all. It is taken in at once, bounded, and
//! written a moment later by a worker, so that a flood of it costs neither its callers' time nor the disk.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reach_core::audit::{Event, Flood};
use reach_schemas::Timestamp;
use tokio::sync::Notify;

/// How many may wait to be written. Beyond, which takes a store that has not written for minutes, the oldest are lost.
const WAITING_MAX: usize = 4096;

/// What waits to be written.
#[derive(Debug, Default)]
pub struct Recorder {
    state: Mutex<State>,
    /// Held by whoever signs the log.
    pub(crate) signing: tokio::sync::Mutex<()>,
    /// Rung when something waits.
    pub(crate) bell: Notify,
}

#[derive(Debug, Default)]
struct State {
    flood: Flood,
    waiting: VecDeque<Event>,
}

impl Recorder {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes in something of which there may be a flood: those alike within a minute are one row more.
    pub fn note_often(&self, event: Event) {
        let mut state = self.state();
        if let Some(event) = state.flood.note(event) {
            state.put(event);
            self.bell.notify_one();
        }
    }

    /// Takes in something that happens seldom.
    pub fn note(&self, event: Event) {
        self.state().put(event);
        self.bell.notify_one();
    }

    /// Takes out what is to be written by now.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<Event> {
        let mut state = self.state();
        for event in state.flood.due(now) {
            state.put(event);
        }
        state.waiting.drain(..).collect()
    }

    /// Takes out everything, what is still counted included.
    pub(crate) fn finish(&self) -> Vec<Event> {
        let mut state = self.state();
        for event in state.flood.finish() {
            state.put(event);
        }
        state.waiting.drain(..).collect()
    }

    /// Puts back what could not be written.
    pub(crate) fn put_back(&self, events: Vec<Event>) {
        let mut state = self.state();
        for event in events.into_iter().rev() {
            state.waiting.push_front(event);
        }
        state.cut();
    }

    /// When something will be due that is not yet.
    pub(crate) fn next_at(&self) -> Option<Timestamp> {
        self.state().flood.next_at()
    }
}

impl State {
    fn put(&mut self, event: Event) {
        self.waiting.push_back(event);
        self.cut();
    }

    fn cut(&mut self) {
        while self.waiting.len() > WAITING_MAX {
            let lost = self.waiting.pop_front();
            tracing::error!(?lost, "a row of the audit log was lost: the store has not taken any for too long");
        }
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::AuditKind;

    use super::*;

    fn event(n: usize) -> Event {
        Event::new(Timestamp::from_ms(n as u64), AuditKind::GatewayStarted, format!("{n}"))
    }

    #[test]
    fn what_cannot_be_written_waits_in_its_order_and_the_oldest_go() {
        let recorder = Recorder::default();
        (0..3).for_each(|n| recorder.note(event(n)));
        let due = recorder.due(Timestamp::from_ms(9));
        recorder.note(event(3));
        recorder.put_back(due);
        let actors: Vec<String> = recorder.due(Timestamp::from_ms(9)).into_iter().map(|event| event.actor).collect();
        assert_eq!(actors, ["0", "1", "2", "3"]);
        (0..WAITING_MAX + 5).for_each(|n| recorder.note(event(n)));
        let due = recorder.finish();
        assert_eq!((due.len(), due[0].actor.as_str()), (WAITING_MAX, "5"));
    }
}
