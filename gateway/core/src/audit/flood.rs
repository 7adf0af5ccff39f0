//! Refusals in a flood. The first of a kind is written down at once; those like it that follow within a window are
//! counted, and are one row when the window ends. So what a caller can have written is bounded, however often it asks.

use std::collections::BTreeMap;

use reach_schemas::{AuditKind, ErrorCode, Span, Timestamp};

use super::event::Event;

/// How long those alike are counted before they are written down.
pub const WINDOW: Span = Span::from_mins(1);
/// How many kinds are told apart at once. What is of further ones is counted together, by reason alone.
pub const KINDS_MAX: usize = 256;
/// Who did what is counted together.
pub const OTHERS: &str = "(others)";

type Kind = (String, AuditKind, Option<ErrorCode>);

#[derive(Debug)]
struct Held {
    until: Timestamp,
    /// The last one that was counted, and not written yet.
    last: Option<Event>,
    count: u64,
}

/// What is counted just now.
#[derive(Debug, Default)]
pub struct Flood {
    held: BTreeMap<Kind, Held>,
}

impl Flood {
    /// One more. It comes back if it is to be written down now.
    pub fn note(&mut self, event: Event) -> Option<Event> {
        let mut kind = (event.actor.clone(), event.kind, event.code);
        let mut event = event;
        if !self.held.contains_key(&kind) && self.held.len() >= KINDS_MAX {
            kind.0 = OTHERS.to_owned();
            event = Event { actor: OTHERS.to_owned(), target: None, reason: None, digest: None, ..event };
        }
        match self.held.get_mut(&kind) {
            Some(held) => {
                held.count += event.count;
                held.last = Some(event);
                None
            }
            None => {
                self.held.insert(kind, Held { until: event.at + WINDOW, last: None, count: 0 });
                Some(event)
            }
        }
    }

    /// What is to be written down because its window has ended. While those alike go on, the next window begins.
    pub fn due(&mut self, now: Timestamp) -> Vec<Event> {
        let mut due = Vec::new();
        self.held.retain(|_, held| {
            if held.until > now {
                return true;
            }
            let Some(last) = held.last.take() else { return false };
            due.push(summed(last, std::mem::take(&mut held.count)));
            held.until = now + WINDOW;
            true
        });
        due
    }

    /// Everything that is counted and not written, at the end.
    pub fn finish(&mut self) -> Vec<Event> {
        let held = std::mem::take(&mut self.held);
        held.into_values().filter_map(|held| Some(summed(held.last?, held.count))).collect()
    }

    /// When the next window ends.
    #[must_use]
    pub fn next_at(&self) -> Option<Timestamp> {
        self.held.values().map(|held| held.until).min()
    }
}

/// One row for many. They had reasons and targets of their own, which one of them would not tell.
fn summed(last: Event, count: u64) -> Event {
    if count == 1 {
        return last;
    }
    Event { target: None, reason: None, task_id: None, digest: None, count, ..last }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000) + Span::from_secs(secs)
    }

    fn refusal(actor: &str, code: ErrorCode, secs: u64) -> Event {
        Event::new(at(secs), AuditKind::CallRefused, actor).on("task/get").failed(code)
    }

    fn told(events: &[Event]) -> Vec<(&str, u64)> {
        events.iter().map(|event| (event.actor.as_str(), event.count)).collect()
    }

    #[test]
    fn the_first_is_written_at_once_and_the_rest_of_its_window_is_one_row() {
        let mut flood = Flood::default();
        assert!(flood.note(refusal("a@ns", ErrorCode::Forbidden, 0)).is_some());
        for n in 0..1000 {
            assert_eq!(flood.note(refusal("a@ns", ErrorCode::Forbidden, n % 60)), None);
        }
        assert!(flood.note(refusal("a@ns", ErrorCode::TaskNotFound, 1)).is_some());
        assert!(flood.note(refusal("b@ns", ErrorCode::Forbidden, 1)).is_some());
        assert_eq!(flood.due(at(59)), []);
        assert_eq!(told(&flood.due(at(60))), [("a@ns", 1000)]);
        // It goes on, so the next is counted too; and then it is over.
        assert_eq!(flood.note(refusal("a@ns", ErrorCode::Forbidden, 70)), None);
        assert_eq!(told(&flood.due(at(121))), [("a@ns", 1)]);
        assert_eq!(flood.due(at(500)), []);
        assert_eq!(flood.next_at(), None);
        assert!(flood.note(refusal("a@ns", ErrorCode::Forbidden, 501)).is_some());
    }

    #[test]
    fn callers_without_number_are_bounded_and_none_is_lost_from_the_count() {
        let mut flood = Flood::default();
        let mut written = Vec::new();
        for n in 0..10_000 {
            written.extend(flood.note(refusal(&format!("a{n}@ns"), ErrorCode::Forbidden, 0)));
        }
        assert_eq!(written.len(), KINDS_MAX + 1);
        written.extend(flood.finish());
        assert_eq!(written.iter().map(|event| event.count).sum::<u64>(), 10_000);
        assert!(written.len() <= KINDS_MAX + 2, "{}", written.len());
    }
}
