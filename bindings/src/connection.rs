//! Where the gateway is and who calls, as Python writes it; what is not given is as the environment has it.

use std::path::PathBuf;
use std::time::Duration;

use agent_reach_sdk::{ClientBuilder, RetryPolicy};
use serde::Deserialize;

/// The settings of a client, as JSON.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Connection {
    url: Option<String>,
    token: Option<String>,
    join: Option<String>,
    key_file: Option<PathBuf>,
    ca_file: Option<PathBuf>,
    client_cert: Option<(PathBuf, PathBuf)>,
    from_agent: Option<String>,
    call_timeout: Option<f64>,
    connect_timeout: Option<f64>,
    retries: Option<u32>,
}

impl Connection {
    /// The client that is meant.
    pub(crate) fn builder(self) -> ClientBuilder {
        fn with<T>(
            builder: ClientBuilder,
            given: Option<T>,
            set: impl Fn(ClientBuilder, T) -> ClientBuilder,
        ) -> ClientBuilder {
            match given {
                Some(value) => set(builder, value),
                None => builder,
            }
        }
        let mut builder = ClientBuilder::default();
        builder = with(builder, self.url, ClientBuilder::url);
        builder = with(builder, self.token, ClientBuilder::token);
        builder = with(builder, self.join, ClientBuilder::join);
        builder = with(builder, self.key_file, ClientBuilder::key_file);
        builder = with(builder, self.ca_file, ClientBuilder::ca_file);
        builder = with(builder, self.client_cert, |builder, (cert, key)| builder.client_cert(cert, key));
        builder = with(builder, self.from_agent, ClientBuilder::from_agent);
        builder = with(builder, self.call_timeout.map(seconds), ClientBuilder::call_timeout);
        builder = with(builder, self.connect_timeout.map(seconds), ClientBuilder::connect_timeout);
        with(builder, self.retries, |builder, retries| builder.retry(RetryPolicy { retries, ..RetryPolicy::default() }))
    }
}

/// So many seconds, none if they are fewer.
pub(crate) fn seconds(seconds: f64) -> Duration {
    Duration::try_from_secs_f64(seconds.max(0.0)).unwrap_or(Duration::MAX)
}
