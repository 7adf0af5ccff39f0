//! Servers that say nothing, and those that are met all the same.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use crate::world::{Gateway, Peer, state, until};

/// More than are met at once.
const MUTE: usize = 80;

#[test]
fn many_mute_servers_hold_up_no_other() {
    let folder = tempfile::tempdir().unwrap();
    // It takes connections and never answers.
    let mute = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = mute.local_addr().unwrap().port();
    std::thread::spawn(move || mute.incoming().collect::<Vec<_>>());
    let peer = Peer::start(state(folder.path(), "z"), &[]);
    let mut config: String = (0..MUTE)
        .map(|n| {
            format!("[[mcp_servers]]\nname = \"mute{n:02}\"\nurl = \"http://127.0.0.1:{port}/{n}\"\nstart_timeout = \"120s\"\n")
        })
        .collect();
    // The last in the order of names, so that it is met last.
    config.push_str(&format!("[[mcp_servers]]\nname = \"z\"\nurl = {:?}\n", peer.url()));
    let begun = Instant::now();
    let gateway = Gateway::start(folder.path(), &config);
    until("the server that speaks", || (gateway.server("z")["agents"] == serde_json::json!(["z@mcp"])).then_some(()));
    assert!(begun.elapsed() < Duration::from_secs(60), "it was waited for as long as for the mute ones");
    assert!(gateway.reach("z@mcp", "echo", "{}").contains("heard"));
    for n in [0, MUTE - 1] {
        assert_eq!(gateway.server(&format!("mute{n:02}"))["state"], "starting");
    }
}
