//! The SDK over real sockets, against gateways that play a script.
#![allow(clippy::unwrap_used, reason = "in a test, a failed unwrap is a failed test")]

mod agent_http;
mod agent_over;
mod agent_pull;
mod agent_ws;
mod agent_ws_faults;
mod client_http;
mod client_watch;
mod client_ws;
mod http_gateway;
mod view;
mod ws_gateway;

/// What comes within 20 s; nothing here takes as long unless it hangs.
pub(crate) async fn soon<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(std::time::Duration::from_secs(20), future).await.expect("it comes soon")
}
