//! What a caller may ask for: how many, and how long. What is beyond is refused with the range, not cut in silence: who
//! asked for ten thousand and got one thousand would take them for all.

use reach_schemas::call::{LIST_MAX, WAIT_MAX};
use reach_schemas::{ErrorCode, Failure, Span};

/// The longest intent that is read, in bytes.
pub const INTENT_MAX: usize = 8 * 1024;
/// The longest deadline.
pub const DEADLINE_MAX: Span = Span::from_hours(24 * 7);

fn beyond(name: &str, given: impl std::fmt::Display, range: &str) -> Failure {
    Failure::new(ErrorCode::InvalidParams, format!("`{name}` is {given}: it is {range}"))
}

/// How many, up to a bound.
pub(super) fn count(name: &str, given: u32, max: u32) -> Result<u32, Failure> {
    if (1..=max).contains(&given) { Ok(given) } else { Err(beyond(name, given, &format!("1 to {max}"))) }
}

/// How many entries a list has at most.
pub(super) fn limit(given: Option<u32>, usual: u32) -> Result<u32, Failure> {
    given.map_or(Ok(usual), |given| count("limit", given, LIST_MAX))
}

/// How many of those that are named, or if none is named, of those that are found.
pub(super) fn named(name: &str, named: usize, given: Option<u32>, usual: u32) -> Result<u32, Failure> {
    if named > LIST_MAX as usize {
        let message = format!("`{name}` has {named} entries: send at most {LIST_MAX}");
        return Err(Failure::new(ErrorCode::InvalidParams, message));
    }
    limit(given, if named == 0 { usual } else { LIST_MAX })
}

/// How long, within bounds.
pub(super) fn span(name: &str, given: Span, min: Span, max: Span) -> Result<Span, Failure> {
    if (min..=max).contains(&given) { Ok(given) } else { Err(beyond(name, given, &format!("{min} to {max}"))) }
}

/// How long to wait for something on a connection.
pub(super) fn wait(given: Option<Span>, usual: Span) -> Result<Span, Failure> {
    given.map_or(Ok(usual), |given| span("wait", given, Span::ZERO, WAIT_MAX))
}

/// How long work may take.
pub(super) fn work(name: &str, given: Option<Span>) -> Result<(), Failure> {
    given.map_or(Ok(()), |given| span(name, given, Span::from_ms(1), DEADLINE_MAX).map(|_| ()))
}

/// A text that is not empty, up to so many bytes.
pub(super) fn text(name: &str, given: &str, max: usize) -> Result<(), Failure> {
    if given.trim().is_empty() || given.len() > max {
        return Err(Failure::new(ErrorCode::InvalidParams, format!("`{name}` is empty or longer than {max} bytes")));
    }
    Ok(())
}

/// The words of an intent.
pub(super) fn intent(given: Option<&str>) -> Result<(), Failure> {
    given.map_or(Ok(()), |intent| text("intent", intent, INTENT_MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check<T: std::fmt::Debug>(bounded: Result<T, Failure>, expected: &str) {
        let told = bounded.map_or_else(|refusal| refusal.message, |value| format!("{value:?}"));
        assert_eq!(told, expected);
    }

    #[test]
    fn what_is_within_the_range_is_taken_and_what_is_beyond_is_refused_with_it() {
        check(limit(None, 50), "50");
        check(limit(Some(1), 50), "1");
        check(limit(Some(1000), 50), "1000");
        check(limit(Some(0), 50), "`limit` is 0: it is 1 to 1000");
        check(limit(Some(1001), 50), "`limit` is 1001: it is 1 to 1000");
        check(wait(None, Span::from_secs(30)), "30s");
        check(wait(Some(Span::ZERO), Span::from_secs(30)), "0s");
        check(wait(Some(WAIT_MAX), Span::ZERO), "5m");
        check(wait(Some(WAIT_MAX + Span::from_ms(1)), Span::ZERO), "`wait` is 5m 1ms: it is 0s to 5m");
        check(work("deadline", Some(Span::ZERO)), "`deadline` is 0s: it is 1ms to 7days");
        check(work("deadline", Some(DEADLINE_MAX)), "()");
    }
}
