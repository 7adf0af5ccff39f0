//! The table of keys: every one that the configuration may have, and when a change of it takes effect. Below a key that has
//! a row, everything is of that row.

use std::collections::BTreeMap;

use reach_schemas::call::ConfigApplies;
use serde_json::Value;

use ConfigApplies::{Live, Restart};

/// Every key, in the order of the page on settings.
pub const KEYS: &[(&str, ConfigApplies)] = &[
    ("listen", Restart),
    ("data", Restart),
    ("cluster", Live),
    ("open_max", Live),
    ("deadline", Live),
    ("deadline_long", Live),
    ("keep_finished", Live),
    ("keep_keys", Live),
    ("human_wait", Live),
    ("allow_process_registration", Live),
    ("tiers.fast", Live),
    ("tiers.normal", Live),
    ("tiers.long", Live),
    ("waiting.fast", Live),
    ("waiting.normal", Live),
    ("waiting.long", Live),
    ("waiting.namespace", Live),
    ("retries.agent.firsts_per_retry", Live),
    ("retries.agent.free", Live),
    ("retries.caller.firsts_per_retry", Live),
    ("retries.caller.free", Live),
    ("learning.enabled", Live),
    ("learning.most", Live),
    ("intent.accept", Live),
    ("intent.margin", Live),
    ("health.slow_above", Live),
    ("health.slow_factor", Live),
    ("health.never_slow_below", Live),
    ("health.slow_in_row", Live),
    ("health.failed_in_row", Live),
    ("health.passed_in_row", Live),
    ("health.full_in_row", Live),
    ("health.slow_start_step", Live),
    ("defaults.timeout.fast", Live),
    ("defaults.timeout.normal", Live),
    ("defaults.timeout.long", Live),
    ("defaults.breaker.read", Live),
    ("defaults.breaker.idempotent_write", Live),
    ("defaults.breaker.write", Live),
    ("webhooks.secret_env", Live),
    ("webhooks.secret_file", Live),
    ("webhooks.allow", Live),
    ("webhooks.retries", Live),
    ("webhooks.timeout", Live),
    ("webhooks.at_once_per_host", Live),
    ("webhooks.people", Live),
    ("endpoints.allow", Live),
    ("auth.mode", Restart),
    ("auth.public_url", Restart),
    ("auth.audience", Restart),
    ("auth.namespaces", Restart),
    ("tls.cert", Restart),
    ("tls.key", Restart),
    ("tls.client_ca", Restart),
    ("tls.plain_text_beyond_loopback", Restart),
    ("limits.connections_max", Restart),
    ("limits.connections_per_peer_max", Restart),
    ("limits.processes_max", Restart),
    ("limits.processes_per_namespace_max", Restart),
    ("limits.processes_per_caller_max", Restart),
    ("limits.body_max", Restart),
    ("limits.head_max", Restart),
    ("limits.headers_max", Restart),
    ("limits.first_request_timeout", Restart),
    ("limits.idle_timeout", Restart),
    ("limits.body_timeout", Restart),
    ("limits.caller_rate", Live),
    ("limits.namespace_rate", Live),
    ("limits.operator_rate", Live),
    ("limits.nesting_max", Live),
    ("limits.batch_max", Live),
    ("telemetry.log_format", Restart),
    ("telemetry.otlp", Restart),
    ("telemetry.service_name", Restart),
    ("telemetry.share", Live),
    ("mcp.tools", Restart),
    ("mcp.sessions_max", Restart),
    ("mcp.session_idle", Restart),
    ("agents", Live),
    ("mcp_servers", Live),
];

/// When a change of a key takes effect. None: there is no such key.
#[must_use]
pub fn applies(key: &str) -> Option<ConfigApplies> {
    KEYS.iter().find(|(known, _)| *known == key).map(|(_, applies)| *applies)
}

/// The values of a tree by their keys: a key that has a row is not looked into.
#[must_use]
pub fn flat(tree: Value) -> BTreeMap<String, Value> {
    let mut flat = BTreeMap::new();
    flatten(String::new(), tree, &mut flat);
    flat
}

fn flatten(key: String, value: Value, into: &mut BTreeMap<String, Value>) {
    match value {
        Value::Object(members) if applies(&key).is_none() => {
            for (name, member) in members {
                let dot = if key.is_empty() { "" } else { "." };
                flatten(format!("{key}{dot}{name}"), member, into);
            }
        }
        value @ (Value::Null
        | Value::Bool(_)
        | Value::Number(_)
        | Value::String(_)
        | Value::Array(_)
        | Value::Object(_)) => {
            into.insert(key, value);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::config::{Flags, in_force, read};

    /// The keys that may stand below a key, as the one who reads them tells.
    fn below(key: &str) -> Vec<String> {
        let text = if key.is_empty() { "no_such_key = 1\n".to_owned() } else { format!("[{key}]\nno_such_key = 1\n") };
        let told = read(&text, Flags::default()).unwrap_err().to_string();
        let Some((_, names)) = told.split_once("unknown field `no_such_key`, expected ") else {
            panic!("{key} takes no keys: {told}")
        };
        let quoted = names.lines().next().unwrap().split('`').skip(1).step_by(2);
        quoted.map(|name| if key.is_empty() { name.to_owned() } else { format!("{key}.{name}") }).collect()
    }

    fn all_below(key: &str, found: &mut BTreeSet<String>) {
        for key in below(key) {
            if applies(&key).is_some() {
                found.insert(key);
            } else {
                let is_section = KEYS.iter().any(|(known, _)| known.starts_with(&format!("{key}.")));
                assert!(is_section, "{key} has no row in gateway/src/config/keys.rs: is it live, or for a restart?");
                all_below(&key, found);
            }
        }
    }

    #[test]
    fn every_key_of_the_file_has_a_row_and_every_row_is_a_key_of_the_file() {
        let mut found = BTreeSet::new();
        all_below("", &mut found);
        let rows: BTreeSet<String> = KEYS.iter().map(|(key, _)| (*key).to_owned()).collect();
        assert_eq!((rows.len(), found), (KEYS.len(), rows));
    }

    #[test]
    fn every_key_is_shown_with_its_value() {
        let values = in_force::of(&read("", Flags::default()).unwrap());
        let shown: BTreeSet<&str> = values.keys().map(String::as_str).collect();
        let rows: BTreeSet<&str> = KEYS.iter().map(|(key, _)| *key).collect();
        assert_eq!(shown, rows);
        let unset: Vec<&str> =
            values.iter().filter(|(_, value)| value.is_null()).map(|(key, _)| key.as_str()).collect();
        assert_eq!(
            unset,
            [
                "auth.audience",
                "auth.namespaces",
                "auth.public_url",
                "telemetry.otlp",
                "telemetry.service_name",
                "tls.cert",
                "tls.client_ca",
                "tls.key",
                "webhooks.secret_env",
                "webhooks.secret_file"
            ]
        );
    }

    #[test]
    fn the_page_on_settings_tells_of_every_key_when_it_takes_effect() {
        let page = include_str!("../../../docs/settings.md");
        let rows: Vec<(String, String)> = page
            .lines()
            .filter_map(|line| line.strip_prefix("| `"))
            .filter_map(|line| {
                let mut cells = line.split('|').map(str::trim);
                Some((cells.next()?.trim_end_matches('`').to_owned(), cells.next()?.to_owned()))
            })
            .collect();
        let expected: Vec<(String, String)> =
            KEYS.iter().map(|(key, applies)| ((*key).to_owned(), applies.as_str().to_owned())).collect();
        assert_eq!(rows, expected);
    }
}
