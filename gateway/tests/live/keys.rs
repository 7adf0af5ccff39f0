//! Every key of the table, by data: one that is live is taken on and shown, one that is for a restart is refused by name.

use std::process::{Child, Command, Stdio};

use agent_reach_sdk::Client;
use agent_reach_sdk::schemas::call::{ConfigApplies, ConfigReloaded, ConfigView};
use reach_gateway::config::keys::KEYS;
use serde_json::{Value, json};

use crate::victim::patient;
use crate::world::why;

/// For each key a line of the file that says something else than usual, and what is shown of it.
fn samples() -> Vec<(&'static str, &'static str, Value)> {
    of_routing().into_iter().chain(of_the_edge()).collect()
}

fn of_routing() -> Vec<(&'static str, &'static str, Value)> {
    let policy = |rows: u32| {
        json!({ "failures_in_row": rows, "in_row_within": "30s", "window": 11, "window_min": 5, "open_above": 0.6,
            "close_below": 0.2, "open_for": "5s", "open_for_max": "5m" })
    };
    vec![
        ("listen", "\"127.0.0.1:1\"", json!("127.0.0.1:1")),
        ("data", "\"elsewhere\"", json!("elsewhere")),
        ("cluster", "\"west\"", json!("west")),
        ("open_max", "17", json!(17)),
        ("deadline", "\"17s\"", json!("17s")),
        ("deadline_long", "\"17m\"", json!("17m")),
        ("keep_finished", "\"17h\"", json!("17h")),
        ("keep_keys", "\"17h\"", json!("17h")),
        ("human_wait", "\"17h\"", json!("17h")),
        ("allow_process_registration", "true", json!(true)),
        ("tiers.fast", "17", json!(17)),
        ("tiers.normal", "17", json!(17)),
        ("tiers.long", "17", json!(17)),
        ("waiting.fast", "17", json!(17)),
        ("waiting.normal", "17", json!(17)),
        ("waiting.long", "17", json!(17)),
        ("waiting.namespace", "17", json!(17)),
        ("retries.agent", "{ firsts_per_retry = 17, free = 18 }", json!({ "firsts_per_retry": 17, "free": 18 })),
        ("retries.caller", "{ firsts_per_retry = 17, free = 18 }", json!({ "firsts_per_retry": 17, "free": 18 })),
        ("learning.enabled", "false", json!(false)),
        ("learning.most", "0.17", json!(0.17)),
        ("intent.accept", "0.17", json!(0.17)),
        ("intent.margin", "0.17", json!(0.17)),
        ("health.slow_above", "\"17s\"", json!("17s")),
        ("health.slow_factor", "17", json!(17)),
        ("health.never_slow_below", "\"17ms\"", json!("17ms")),
        ("health.slow_in_row", "17", json!(17)),
        ("health.failed_in_row", "17", json!(17)),
        ("health.passed_in_row", "17", json!(17)),
        ("health.full_in_row", "17", json!(17)),
        ("health.slow_start_step", "\"17s\"", json!("17s")),
        ("defaults.timeout.fast", "\"17s\"", json!("17s")),
        ("defaults.timeout.normal", "\"17s\"", json!("17s")),
        ("defaults.timeout.long", "\"17s\"", json!("17s")),
        ("defaults.breaker.read", "{ window = 11 }", policy(3)),
        ("defaults.breaker.idempotent_write", "{ window = 11 }", policy(3)),
        ("defaults.breaker.write", "{ window = 11 }", policy(2)),
    ]
}

fn of_the_edge() -> Vec<(&'static str, &'static str, Value)> {
    vec![
        ("webhooks.secret_env", "\"LIVE_SECRET\"", json!("LIVE_SECRET")),
        ("webhooks.secret_file", "\"secret\"", json!("secret")),
        ("webhooks.allow", "[\"10.0.0.0/8\"]", json!(["10.0.0.0/8"])),
        ("webhooks.retries", "[\"17s\"]", json!(["17s"])),
        ("webhooks.timeout", "\"17s\"", json!("17s")),
        ("webhooks.at_once_per_host", "17", json!(17)),
        ("webhooks.people", "{ desk = [\"https://a.example/b\"] }", json!({ "desk": ["https://a.example/"] })),
        ("endpoints.allow", "[\"10.0.0.0/8\"]", json!(["10.0.0.0/8"])),
        ("auth.mode", "\"required\"", json!("required")),
        ("auth.public_url", "\"https://reach.example\"", json!("https://reach.example")),
        ("auth.audience", "\"reach\"", json!("reach")),
        ("auth.namespaces", "{ media = { secret_env = \"PATH\" } }", json!({ "media": { "secret_env": "PATH" } })),
        ("tls.cert", "\"port.pem\"\ntls.key = \"port.key\"", json!("port.pem")),
        ("tls.key", "\"port.key\"\ntls.cert = \"port.pem\"", json!("port.key")),
        ("tls.client_ca", "\"port.pem\"\ntls.cert = \"port.pem\"\ntls.key = \"port.key\"", json!("port.pem")),
        ("tls.plain_text_beyond_loopback", "true", json!(true)),
        ("limits.connections_max", "17", json!(17)),
        ("limits.connections_per_peer_max", "17", json!(17)),
        ("limits.body_max", "17", json!(17)),
        ("limits.head_max", "8193", json!(8193)),
        ("limits.headers_max", "17", json!(17)),
        ("limits.first_request_timeout", "\"17s\"", json!("17s")),
        ("limits.idle_timeout", "\"17s\"", json!("17s")),
        ("limits.body_timeout", "\"17s\"", json!("17s")),
        ("limits.caller_rate", "{ per_second = 17, burst = 18 }", json!({ "per_second": 17, "burst": 18 })),
        ("limits.operator_rate", "{ per_second = 17, burst = 18 }", json!({ "per_second": 17, "burst": 18 })),
        ("limits.nesting_max", "17", json!(17)),
        ("limits.batch_max", "17", json!(17)),
        ("limits.processes_max", "17", json!(17)),
        ("limits.processes_per_namespace_max", "9", json!(9)),
        ("limits.processes_per_caller_max", "5", json!(5)),
        ("limits.namespace_rate", "{ per_second = 17, burst = 18 }", json!({ "per_second": 17, "burst": 18 })),
        ("telemetry.log_format", "\"json\"", json!("json")),
        ("telemetry.otlp", "\"http://127.0.0.1:9\"", json!("http://127.0.0.1:9/")),
        ("telemetry.service_name", "\"west\"\ntelemetry.otlp = \"http://127.0.0.1:8\"", json!("west")),
        ("telemetry.share", "0.17", json!(0.17)),
        ("mcp.tools", "\"both\"", json!("both")),
        ("mcp.sessions_max", "17", json!(17)),
        ("mcp.session_idle", "\"17m\"", json!("17m")),
        ("agents", "[{ agent_id = \"a@b\", capabilities = [{ name = \"c\" }] }]", json!(["a@b"])),
        ("mcp_servers", "[{ name = \"m\", command = \"no-such-command\" }]", json!(["m"])),
    ]
}

/// A gateway that has no flags but its file: where it listens and where its data is stand there as well.
struct Bare {
    child: Child,
    folder: tempfile::TempDir,
    usual: String,
    client: Client,
}

impl Bare {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let usual = format!("listen = \"127.0.0.1:{port}\"\ndata = {:?}\n", folder.path().join("data"));
        std::fs::write(folder.path().join("gateway.toml"), &usual).unwrap();
        std::fs::write(folder.path().join("secret"), "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        let port_key = rcgen::KeyPair::generate().unwrap();
        let port_cert = rcgen::CertificateParams::new(vec!["localhost".to_owned()]).unwrap().self_signed(&port_key);
        std::fs::write(folder.path().join("port.pem"), port_cert.unwrap().pem()).unwrap();
        std::fs::write(folder.path().join("port.key"), port_key.serialize_pem()).unwrap();
        let log = std::fs::File::create(folder.path().join("gateway.log")).unwrap();
        let child = Command::new(env!("CARGO_BIN_EXE_reach-gateway"))
            .args(["serve", "--config", "gateway.toml"])
            .current_dir(folder.path())
            .env("LIVE_SECRET", "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
            .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
            .stdin(Stdio::null())
            .stderr(Stdio::from(log))
            .spawn()
            .unwrap();
        let url = format!("http://127.0.0.1:{port}");
        let client = Client::builder().url(url).retry(patient()).connect().await.unwrap();
        Self { child, folder, usual, client }
    }

    async fn reload(&self, text: &str) -> Result<ConfigReloaded, agent_reach_sdk::Error> {
        std::fs::write(self.folder.path().join("gateway.toml"), text).unwrap();
        self.client.call("config/reload", &json!({})).await
    }

    async fn show(&self) -> ConfigView {
        self.client.call("config/show", &json!({})).await.unwrap()
    }
}

impl Drop for Bare {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What is shown under a key, or under those below it; and where it came from.
fn shown(view: &ConfigView, key: &str) -> (Value, Vec<&'static str>) {
    let below = format!("{key}.");
    let mut found = serde_json::Map::new();
    let mut from = Vec::new();
    for it in &view.keys {
        if it.key == key {
            return (it.value.read().unwrap(), vec![it.from.as_str()]);
        }
        if let Some(name) = it.key.strip_prefix(&below) {
            found.insert(name.to_owned(), it.value.read().unwrap());
            from.push(it.from.as_str());
        }
    }
    (found.into(), from)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_key_does_what_its_row_says() {
    let samples = samples();
    for (key, _) in KEYS {
        let has_one = samples.iter().any(|(sample, ..)| key == sample || key.starts_with(&format!("{sample}.")));
        assert!(has_one, "{key} has no sample here");
    }
    let gateway = Bare::start().await;
    let usual = gateway.show().await;
    for (key, text, value) in samples {
        // What stands in the usual file is said otherwise, not twice.
        let usual_lines: String = gateway
            .usual
            .lines()
            .filter(|line| !line.starts_with(&format!("{key} =")))
            .fold(String::new(), |lines, line| format!("{lines}{line}\n"));
        let taken = gateway.reload(&format!("{usual_lines}{key} = {text}\n")).await;
        let view = gateway.show().await;
        match KEYS.iter().find(|(row, _)| *row == key || row.starts_with(&format!("{key}."))).unwrap().1 {
            ConfigApplies::Live => {
                taken.unwrap_or_else(|error| panic!("{key}: {error}"));
                let (is, from) = shown(&view, key);
                assert_eq!(is, value, "{key}");
                assert!(from.iter().all(|from| *from == "file"), "{key}: {from:?}");
                gateway.reload(&gateway.usual).await.unwrap_or_else(|error| panic!("back from {key}: {error}"));
            }
            ConfigApplies::Restart => {
                let refused = why(&taken.unwrap_err());
                assert!(refused.mistakes.is_empty(), "{key}: {refused:?}");
                let named = refused.needs_restart.iter().find(|change| change.key == key);
                let named = named.unwrap_or_else(|| panic!("{key}: {refused:?}"));
                assert_eq!(named.is.read::<Value>().unwrap(), value, "{key}");
                assert_eq!(view.keys, usual.keys, "{key}: nothing is changed");
            }
        }
    }
    let both = format!("{}open_max = 5\n[telemetry]\nlog_format = \"json\"\n", gateway.usual);
    let refused = why(&gateway.reload(&both).await.unwrap_err());
    assert_eq!(refused.needs_restart.len(), 1, "{refused:?}");
    let view = gateway.show().await;
    assert_eq!(shown(&view, "open_max").0, 100_000, "a live key beside it is not taken on, either");
}
