//! What is in force, by key, in the form in which it is written: for those who look, and to tell what changed.

use std::collections::BTreeMap;

use reach_schemas::Span;
use serde_json::{Value, json};
use url::Url;

use super::keys::flat;
use super::{Config, Said};
use crate::envelope::TextLimits;
use crate::gateway::Settings;
use crate::identity;
use crate::mcp::server;
use crate::outbound::Guard;
use crate::rates::RateLimits;
use crate::telemetry::log::Format;
use crate::transport::HttpSettings;
use crate::webhook;

/// Every value by its key.
#[must_use]
pub fn of(config: &Config) -> BTreeMap<String, Value> {
    let Config { listen, data, settings, http, mcp, webhook_secrets: _, telemetry, agents, servers, said } = config;
    let mut tree = of_settings(settings);
    let agents: Vec<_> = agents.iter().map(|card| card.agent_id.as_str()).collect();
    let servers: Vec<_> = servers.iter().map(|server| server.name.as_str()).collect();
    let rest = json!({
        "listen": listen, "data": data, "agents": agents, "mcp_servers": servers,
        "webhooks": of_webhooks(&settings.webhooks, said),
        "telemetry": {
            "log_format": match telemetry.log_format { Format::Text => "text", Format::Json => "json" },
            "otlp": telemetry.otlp.as_ref().map(|receiver| receiver.address.as_str()),
            "service_name": telemetry.otlp.as_ref().and_then(|receiver| receiver.service_name.as_deref()),
            "share": settings.trace_share,
        },
        "mcp": of_mcp(mcp), "auth": of_auth(&settings.identity, said),
        "tls": of_tls(http, said), "limits": of_limits(http, settings),
    });
    if let (Value::Object(tree), Value::Object(rest)) = (&mut tree, rest) {
        tree.extend(rest);
    }
    flat(tree)
}

fn of_settings(settings: &Settings) -> Value {
    let Settings {
        cluster,
        open_max,
        waiting,
        rates: _,
        texts: _,
        deadline,
        deadline_long,
        kept_for,
        keys_kept_for,
        allow_process,
        proof: _,
        fleet,
        webhooks: _,
        endpoints,
        trace_share: _,
        audit: _,
        identity: _,
    } = settings;
    let reach_core::fleet::Settings { tier_limits, thresholds, health, retries, human_wait, learning, defaults } =
        fleet;
    json!({
        "cluster": cluster, "open_max": open_max, "deadline": deadline, "deadline_long": deadline_long,
        "keep_finished": kept_for, "keep_keys": keys_kept_for, "human_wait": human_wait,
        "allow_process_registration": allow_process, "tiers": tier_limits, "waiting": waiting, "retries": retries,
        "learning": learning, "intent": thresholds, "health": health, "defaults": defaults,
        "endpoints": { "allow": networks(endpoints) },
    })
}

fn of_webhooks(settings: &webhook::Settings, said: &Said) -> Value {
    let webhook::Settings { secrets: _, guard, retries, timeout, at_once_per_host, people } = settings;
    let mut queues: BTreeMap<&str, &Vec<String>> =
        people.of_queue.iter().map(|(queue, urls)| (queue.as_str(), urls)).collect();
    if !people.of_all.is_empty() {
        queues.insert("*", &people.of_all);
    }
    json!({
        // Where the secrets are is no secret.
        "secret_env": said.of("webhooks.secret_env"), "secret_file": said.of("webhooks.secret_file"),
        "allow": networks(guard), "retries": retries, "timeout": timeout, "at_once_per_host": at_once_per_host,
        "people": queues,
    })
}

fn of_mcp(settings: &server::Settings) -> Value {
    let server::Settings { tools, sessions } = settings;
    json!({
        "tools": tools.as_str(), "sessions_max": sessions.sessions_max, "session_idle": Span::from(sessions.idle_max),
    })
}

fn of_auth(settings: &identity::Settings, said: &Said) -> Value {
    json!({
        "mode": match settings.mode { identity::Mode::Open => "open", identity::Mode::Required => "required" },
        "public_url": settings.public_url, "audience": settings.audience,
        // Where the secrets are is no secret.
        "namespaces": said.of("auth.namespaces"),
    })
}

fn of_tls(http: &HttpSettings, said: &Said) -> Value {
    let files = http.tls.as_ref().map(|tls| tls.files());
    json!({
        "cert": files.map(|files| &files.cert), "key": files.map(|files| &files.key),
        "client_ca": files.and_then(|files| files.client_ca.as_ref()),
        "plain_text_beyond_loopback": said.of("tls.plain_text_beyond_loopback").unwrap_or(&Value::Bool(false)),
    })
}

fn of_limits(http: &HttpSettings, settings: &Settings) -> Value {
    let RateLimits { caller, namespace, operator } = settings.rates;
    let TextLimits { nesting_max, batch_max } = settings.texts;
    json!({
        "connections_max": http.connections_max, "connections_per_peer_max": http.per_peer_max(),
        "processes_max": http.processes_max, "processes_per_namespace_max": http.processes_per_namespace_max,
        "processes_per_caller_max": http.processes_per_caller_max,
        "body_max": http.body_max, "head_max": http.head_max, "headers_max": http.headers_max,
        "first_request_timeout": Span::from(http.first_request_timeout),
        "idle_timeout": Span::from(http.idle_timeout), "body_timeout": Span::from(http.body_timeout),
        "caller_rate": caller, "namespace_rate": namespace, "operator_rate": operator,
        "nesting_max": nesting_max, "batch_max": batch_max,
    })
}

fn networks(guard: &Guard) -> Vec<String> {
    guard.allowed().iter().map(ToString::to_string).collect()
}

/// A value as it may be shown: of an address, no more than the host, for the path of a receiver is often a secret.
#[must_use]
pub fn shown(key: &str, value: &Value) -> Value {
    if matches!(key, "telemetry.otlp" | "webhooks.people") { without_paths(value) } else { value.clone() }
}

fn without_paths(value: &Value) -> Value {
    match value {
        Value::String(text) => match Url::parse(text).map(|url| url.origin()) {
            Ok(origin) if origin.is_tuple() => Value::String(format!("{}/", origin.ascii_serialization())),
            Ok(_) | Err(_) => Value::String("an address".to_owned()),
        },
        Value::Array(items) => items.iter().map(without_paths).collect(),
        Value::Object(members) => {
            Value::Object(members.iter().map(|(name, member)| (name.clone(), without_paths(member))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Flags, read};

    #[test]
    fn what_is_written_is_what_is_in_force_and_no_secret_of_it_is_shown() {
        let text = "waiting.fast = 7\n[webhooks]\npeople.desk = [\"https://hooks.example/s3cret\"]\n[telemetry]\notlp = \"http://u:s3cret@o.example:4318/s3cret\"\n";
        let values = of(&read(text, Flags::default()).unwrap());
        assert_eq!(values["waiting.fast"], json!(7));
        assert_eq!(values["waiting.long"], json!(10_000));
        assert!(values["webhooks.people"].to_string().contains("s3cret"), "it is compared as a whole");
        let shown: BTreeMap<_, _> = values.iter().map(|(key, value)| (key, shown(key, value))).collect();
        assert!(!format!("{shown:?}").contains("s3cret"), "{shown:?}");
        assert_eq!(shown[&"webhooks.people".to_owned()], json!({ "desk": ["https://hooks.example/"] }));
    }
}
