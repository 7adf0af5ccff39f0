//! Words and figures for people: times, shares, and text of others made safe to print.

use agent_reach_sdk::{Span, Timestamp};

/// How long, in the two units that matter: `12ms`, `1.2s`, `3m 4s`, `2h 5m`, `3d`.
pub(crate) fn lasting(span: Span) -> String {
    let ms = span.as_ms();
    let secs = ms / 1000;
    let two = |big: u64, unit: &str, small: u64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit} {small}{small_unit}"),
    };
    match (ms, secs) {
        (0..1000, _) => format!("{ms}ms"),
        (1000..10_000, _) if ms % 1000 >= 100 => format!("{secs}.{}s", ms % 1000 / 100),
        (_, 0..60) => format!("{secs}s"),
        (_, 60..3600) => two(secs / 60, "m", secs % 60, "s"),
        (_, 3600..172_800) => two(secs / 3600, "h", secs % 3600 / 60, "m"),
        (_, _) => format!("{}d", secs / 86_400),
    }
}

/// When, seen from `now`: `3s ago`, `in 5m`, `now`.
pub(crate) fn when(at: Timestamp, now: Timestamp) -> String {
    let coarse = |span: Span| match span.as_ms() / 1000 {
        secs @ 0..60 => format!("{secs}s"),
        secs @ 60..3600 => format!("{}m", secs / 60),
        secs @ 3600..172_800 => format!("{}h", secs / 3600),
        secs => format!("{}d", secs / 86_400),
    };
    let (past, ahead) = (now.since(at), at.since(now));
    if past.as_ms().max(ahead.as_ms()) < 1000 {
        "now".to_owned()
    } else if past > Span::ZERO {
        format!("{} ago", coarse(past))
    } else {
        format!("in {}", coarse(ahead))
    }
}

/// A part of one, with two digits: `0.81`.
pub(crate) fn share(part: f64) -> String {
    format!("{part:.2}")
}

/// How many, with their noun.
pub(crate) fn count(number: usize, one: &str, more: &str) -> String {
    if number == 1 { format!("1 {one}") } else { format!("{number} {more}") }
}

/// At most so many characters, with `...` where more were.
pub(crate) fn shorten(text: &str, max: usize) -> String {
    match text.char_indices().nth(max) {
        Some(_) => {
            let kept: String = text.chars().take(max.saturating_sub(3)).collect();
            format!("{}...", kept.trim_end())
        }
        None => text.to_owned(),
    }
}

/// The text in one line: what would end it is written out, so that nobody's words look like a row of their own.
pub(crate) fn one_line(text: &str) -> String {
    clean(&text.replace('\r', "\\r").replace('\n', "\\n"))
}

/// The text without what would steer a terminal or turn the reading direction: agents and callers write what they
/// like. Line ends stay.
pub(crate) fn clean(text: &str) -> String {
    let is_steering = |c: char| {
        (c.is_control() && c != '\n')
            || matches!(c, '\u{202A}'..='\u{202E}' | '\u{2066}'..='\u{2069}' | '\u{E000}'..='\u{E0FF}')
    };
    text.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if is_steering(c) {
                '\u{FFFD}'
            } else {
                c
            }
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn spans_are_told_in_the_units_that_matter() {
        let told =
            [0, 12, 5000, 1250, 12_999, 60_000, 184_000, 7_500_000, 300_000_000].map(|ms| lasting(Span::from_ms(ms)));
        assert_eq!(told, ["0ms", "12ms", "5s", "1.2s", "12s", "1m", "3m 4s", "2h 5m", "3d"]);
    }

    #[test]
    fn times_are_told_as_seen_from_now() {
        let now = Timestamp::from_ms(1_000_000_000);
        let told = |at| when(Timestamp::from_ms(at), now);
        assert_eq!(told(999_997_000), "3s ago");
        assert_eq!(told(1_000_300_000), "in 5m");
        assert_eq!((told(1_000_000_400), told(0).as_str()), ("now".to_owned(), "11d ago"));
    }

    #[test]
    fn what_would_steer_a_terminal_is_not_printed() {
        assert_eq!(clean("a\x1b[31mb\tc\nd\u{202E}e\u{9b}"), "a\u{FFFD}[31mb c\nd\u{FFFD}e\u{FFFD}");
        assert_eq!(one_line("a\n 99 operator.created\x1b[31m"), "a\\n 99 operator.created\u{FFFD}[31m");
        assert_eq!(shorten("今天的新闻头条", 5), "今天...");
    }
}
