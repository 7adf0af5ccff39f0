//! What passed between the runner and whatever it checks: kept in memory, bounded, so that a failed check can show it.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Instant;

/// How many lines are kept.
const LINES_MAX: usize = 4000;
/// How much of one message is kept, in characters.
const TEXT_MAX: usize = 1200;
/// How many lines a failure shows.
const SHOWN_MAX: usize = 24;

/// Which way a message went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Way {
    /// From the runner.
    Out,
    /// To the runner.
    In,
    /// Something that the runner did or saw, and no message.
    Note,
}

/// All that passed.
pub(crate) struct Exchange {
    began: Instant,
    inner: Mutex<Inner>,
}

#[derive(Default)]
struct Inner {
    /// How many lines there have been before those that are kept.
    dropped: usize,
    lines: VecDeque<Line>,
}

struct Line {
    text: String,
    is_beat: bool,
}

/// A place in the exchange, to show what came after it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Mark(usize);

impl Exchange {
    /// Nothing yet.
    pub(crate) fn new() -> Self {
        Self { began: Instant::now(), inner: Mutex::default() }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a message.
    pub(crate) fn add(&self, way: Way, text: &str) {
        self.push(way, text, false);
    }

    /// Notes a message of the heartbeat, which is shown only where heartbeats are looked at.
    pub(crate) fn add_beat(&self, way: Way, text: &str) {
        self.push(way, text, true);
    }

    fn push(&self, way: Way, text: &str, is_beat: bool) {
        let sign = match way {
            Way::Out => "->",
            Way::In => "<-",
            Way::Note => "--",
        };
        let at = self.began.elapsed().as_secs_f64();
        let text = format!("{at:8.3} {sign} {}", short(text));
        let mut inner = self.lock();
        inner.lines.push_back(Line { text, is_beat });
        if inner.lines.len() > LINES_MAX {
            inner.lines.pop_front();
            inner.dropped += 1;
        }
    }

    /// Here.
    pub(crate) fn mark(&self) -> Mark {
        let inner = self.lock();
        Mark(inner.dropped + inner.lines.len())
    }

    /// The last of what passed since the mark, heartbeats left out unless they are asked for.
    pub(crate) fn since(&self, mark: Mark, with_beats: bool) -> Vec<String> {
        let inner = self.lock();
        let fits = |line: &&Line| with_beats || !line.is_beat;
        let skipped = mark.0.saturating_sub(inner.dropped);
        let lines: Vec<_> = inner.lines.iter().skip(skipped).filter(fits).map(|line| line.text.clone()).collect();
        let left_out = lines.len().saturating_sub(SHOWN_MAX);
        let mut shown = lines;
        if left_out > 0 {
            shown.drain(..left_out);
            shown.insert(0, format!("         .. {left_out} earlier lines are left out"));
        }
        shown
    }
}

/// At most so much of a text that the reader sees what it is.
pub(crate) fn short(text: &str) -> String {
    let one_line = text.trim_end().replace(['\n', '\r'], " ");
    match one_line.char_indices().nth(TEXT_MAX) {
        Some((at, _)) => format!("{}... ({} bytes)", &one_line[..at], text.len()),
        None => one_line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_came_after_the_mark_is_shown_and_no_more_than_fits() {
        let exchange = Exchange::new();
        exchange.add(Way::Out, "before");
        let mark = exchange.mark();
        exchange.add_beat(Way::In, "beat");
        exchange.add(Way::In, "after");
        let shown = exchange.since(mark, false);
        assert_eq!(shown.len(), 1);
        assert!(shown[0].ends_with("<- after"), "{shown:?}");
        assert_eq!(exchange.since(mark, true).len(), 2);
        for number in 0..10_000 {
            exchange.add(Way::In, &number.to_string());
        }
        let shown = exchange.since(mark, false);
        assert_eq!(shown.len(), SHOWN_MAX + 1);
        assert!(shown[SHOWN_MAX].ends_with("9999"), "{shown:?}");
    }

    #[test]
    fn a_long_message_is_cut_between_characters() {
        assert!(short(&"é".repeat(5000)).ends_with("... (10000 bytes)"));
        assert_eq!(short("a\nb\n"), "a b");
    }
}
