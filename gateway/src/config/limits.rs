//! `[limits]` of the configuration: what the port takes from each connection, what one text may hold, and how fast callers may ask.

use reach_core::rate::Rate;
use reach_schemas::Span;
use serde::Deserialize;

use crate::envelope::TextLimits;
use crate::rates::RateLimits;
use crate::transport::HttpSettings;

/// The section as it is written. Every field may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// How many connections may be open at once.
    pub connections_max: Option<usize>,
    /// How many of them one peer may have.
    pub connections_per_peer_max: Option<usize>,
    /// How many processes of MCP servers there may be at once for sessions of clients.
    pub processes_max: Option<usize>,
    /// How many of them the agents of one namespace may have together.
    pub processes_per_namespace_max: Option<usize>,
    /// How many of them one agent may have.
    pub processes_per_caller_max: Option<usize>,
    /// How large a body or a WebSocket message may be, in bytes.
    pub body_max: Option<usize>,
    /// How large the head of a request may be, in bytes.
    pub head_max: Option<u32>,
    /// How many headers it may have.
    pub headers_max: Option<usize>,
    /// How long a new connection may take until its first request is read up to its body.
    pub first_request_timeout: Option<String>,
    /// How long a connection may be idle.
    pub idle_timeout: Option<String>,
    /// How long a body may take.
    pub body_timeout: Option<String>,
    /// How fast one agent may ask.
    pub caller_rate: Option<Rate>,
    /// How fast all agents of one namespace may ask together.
    pub namespace_rate: Option<Rate>,
    /// How fast one operator may ask, by its token.
    pub operator_rate: Option<Rate>,
    /// How deep the JSON of a request may nest.
    pub nesting_max: Option<usize>,
    /// How many calls a batch may hold.
    pub batch_max: Option<usize>,
}

/// The smallest head that may be set: what a usual client sends fits.
const HEAD_MIN: u32 = 8192;

/// How deep JSON must be allowed to nest at least, so that cards and tasks can be sent.
const NESTING_MIN: usize = 16;
/// How many calls a batch may hold at most.
const BATCH_MAX: usize = 10_000;

/// What the section means.
pub(super) fn check(section: Section, mistakes: &mut Vec<String>) -> (HttpSettings, RateLimits, TextLimits) {
    let usual = HttpSettings::default();
    let mut wrong = |name: &str, says: &str| mistakes.push(format!("limits.{name}: {says}"));
    for (name, set) in [
        ("connections_max", section.connections_max),
        ("connections_per_peer_max", section.connections_per_peer_max),
        ("processes_max", section.processes_max),
        ("processes_per_namespace_max", section.processes_per_namespace_max),
        ("processes_per_caller_max", section.processes_per_caller_max),
        ("body_max", section.body_max),
        ("headers_max", section.headers_max),
    ] {
        if set == Some(0) {
            wrong(name, "is 0: nothing could be asked");
        }
    }
    if section.head_max.is_some_and(|head_max| head_max < HEAD_MIN) {
        wrong("head_max", &format!("is less than {HEAD_MIN}: usual requests would not fit"));
    }
    let texts = texts(&section, &mut wrong);
    for (name, rate) in [
        ("caller_rate", section.caller_rate),
        ("namespace_rate", section.namespace_rate),
        ("operator_rate", section.operator_rate),
    ] {
        if rate.is_some_and(|rate| rate.per_second == 0 || rate.burst == 0 || rate.per_second > 1_000_000) {
            wrong(name, "`per_second` is 1 to 1000000 and `burst` at least 1");
        }
    }
    let mut time = |name: &str, text: Option<String>, usual: std::time::Duration| match text {
        None => usual,
        Some(text) => match text.parse::<Span>() {
            Ok(span) if span > Span::ZERO => span.into(),
            Ok(_) => {
                wrong(name, "is zero");
                usual
            }
            Err(error) => {
                wrong(name, &error.to_string());
                usual
            }
        },
    };
    let rates = RateLimits::default();
    let rates = RateLimits {
        caller: section.caller_rate.unwrap_or(rates.caller),
        namespace: section.namespace_rate.unwrap_or(rates.namespace),
        operator: section.operator_rate.unwrap_or(rates.operator),
    };
    let http = HttpSettings {
        first_request_timeout: time(
            "first_request_timeout",
            section.first_request_timeout,
            usual.first_request_timeout,
        ),
        idle_timeout: time("idle_timeout", section.idle_timeout, usual.idle_timeout),
        body_timeout: time("body_timeout", section.body_timeout, usual.body_timeout),
        connections_max: section.connections_max.unwrap_or(usual.connections_max),
        connections_per_peer_max: section.connections_per_peer_max,
        processes_max: section.processes_max.unwrap_or(usual.processes_max),
        processes_per_namespace_max: section.processes_per_namespace_max.unwrap_or(usual.processes_per_namespace_max),
        processes_per_caller_max: section.processes_per_caller_max.unwrap_or(usual.processes_per_caller_max),
        body_max: section.body_max.unwrap_or(usual.body_max),
        head_max: section.head_max.unwrap_or(usual.head_max),
        headers_max: section.headers_max.unwrap_or(usual.headers_max),
        ..usual
    };
    (http, rates, texts)
}

/// What one text may hold.
fn texts(section: &Section, wrong: &mut impl FnMut(&str, &str)) -> TextLimits {
    let texts = TextLimits::default();
    if section.nesting_max.is_some_and(|depth| !(NESTING_MIN..=texts.nesting_max).contains(&depth)) {
        wrong("nesting_max", &format!("is {NESTING_MIN} to {}", texts.nesting_max));
    }
    if section.batch_max.is_some_and(|calls| !(1..=BATCH_MAX).contains(&calls)) {
        wrong("batch_max", &format!("is 1 to {BATCH_MAX}"));
    }
    TextLimits {
        nesting_max: section.nesting_max.unwrap_or(texts.nesting_max),
        batch_max: section.batch_max.unwrap_or(texts.batch_max),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_limit_has_a_name_and_every_mistake_is_told() {
        let text = "connections_max = 10\nconnections_per_peer_max = 3\nbody_max = 1000\nhead_max = 9000\n\
                    processes_max = 9\nprocesses_per_namespace_max = 4\nprocesses_per_caller_max = 2\n\
                    headers_max = 20\nfirst_request_timeout = \"1s\"\nidle_timeout = \"2s\"\nbody_timeout = \"3s\"\n\
                    caller_rate = { per_second = 5, burst = 6 }\nnamespace_rate = { per_second = 7, burst = 8 }\n\
                    operator_rate = { per_second = 9, burst = 10 }\nnesting_max = 17\nbatch_max = 18\n";
        let mut mistakes = Vec::new();
        let (http, rates, texts) = check(toml::from_str(text).unwrap(), &mut mistakes);
        assert_eq!(mistakes, [""; 0]);
        assert_eq!((http.connections_max, http.connections_per_peer_max), (10, Some(3)));
        let processes = [http.processes_max, http.processes_per_namespace_max, http.processes_per_caller_max];
        assert_eq!(processes, [9, 4, 2]);
        assert_eq!((http.body_max, http.head_max, http.headers_max), (1000, 9000, 20));
        let times = [http.first_request_timeout, http.idle_timeout, http.body_timeout];
        assert_eq!(times.map(|time| time.as_secs()), [1, 2, 3]);
        assert_eq!((rates.caller.per_second, rates.namespace.burst, rates.operator.burst), (5, 8, 10));
        assert_eq!((texts.nesting_max, texts.batch_max), (17, 18));
        let text = "connections_max = 0\nhead_max = 10\nbody_timeout = \"soon\"\nidle_timeout = \"0s\"\n\
                    caller_rate = { per_second = 0, burst = 1 }\nnesting_max = 129\nbatch_max = 0\n";
        check(toml::from_str(text).unwrap(), &mut mistakes);
        assert_eq!(mistakes.len(), 7, "{mistakes:?}");
    }
}
