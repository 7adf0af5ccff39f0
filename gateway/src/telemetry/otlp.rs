//! Sends spans to an OpenTelemetry receiver: OTLP over HTTP, in protobuf (<https://opentelemetry.io/docs/specs/otlp/>). One
//! batch is under way at a time; while the receiver is slow or gone, spans wait in their bounded queue, and what it does
//! not take is counted and not sent again for ever.

use std::sync::Arc;
use std::time::Duration;

use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SpanExporter as _;
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{Instant, timeout, timeout_at};
use tokio_util::sync::CancellationToken;
use url::Url;

use super::otlp_span::of;
use crate::spans::{Ended, Spans};

/// How many spans are sent at once at most.
const BATCH_MAX: usize = 512;
/// How long the first span of a batch waits for others.
const GATHER_FOR: Duration = Duration::from_secs(1);
/// How long the receiver has to take a batch, tries included.
const TIMEOUT: Duration = Duration::from_secs(10);
/// How often it is logged that the receiver does not take spans.
const COMPLAIN_EVERY: Duration = Duration::from_secs(60);
/// Where a receiver takes traces, under its address.
const PATH: &str = "/v1/traces";
/// The name under which the receiver knows this gateway, unless it is given another.
const SERVICE: &str = "agent-reach";
/// The name by OpenTelemetry's own environment variable; it goes before the configuration's.
const SERVICE_VARIABLE: &str = "OTEL_SERVICE_NAME";

/// Who takes spans.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Receiver {
    /// Where traces are posted.
    pub address: Url,
    /// The name under which it knows this gateway. None: the usual one.
    pub service_name: Option<String>,
}

impl Receiver {
    /// A receiver by its address; the path for traces may be left out.
    ///
    /// # Errors
    /// It is no address of HTTP.
    pub fn new(address: &str, service_name: Option<String>) -> Result<Self, String> {
        let wrong = || format!("{address:?} is not an address such as \"http://127.0.0.1:4318\"");
        let mut url = Url::parse(address).map_err(|_| wrong())?;
        if !matches!(url.scheme(), "http" | "https") || !url.has_host() {
            return Err(wrong());
        }
        if !url.path().ends_with(PATH) {
            let path = format!("{}{PATH}", url.path().trim_end_matches('/'));
            url.set_path(&path);
        }
        Ok(Self { address: url, service_name })
    }
}

/// Spans on their way out.
#[derive(Debug)]
pub struct Export {
    stop: CancellationToken,
    sending: JoinHandle<()>,
    spans: Arc<Spans>,
}

/// Sends spans to a receiver from now on.
///
/// # Errors
/// The exporter cannot be set up: an environment variable of OpenTelemetry's is wrong, or spans are exported already.
pub fn start(spans: &Arc<Spans>, receiver: &Receiver) -> anyhow::Result<Export> {
    let mut exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(client()?)
        .with_endpoint(receiver.address.as_str())
        .with_timeout(TIMEOUT)
        .build()?;
    exporter.set_resource(&resource(receiver));
    let queue = spans.queue().ok_or_else(|| anyhow::anyhow!("spans are exported already"))?;
    let stop = CancellationToken::new();
    let sender = Sender { exporter, spans: Arc::clone(spans), complained_at: None };
    let sending = tokio::spawn(sender.run(queue, stop.clone()));
    Ok(Export { stop, sending, spans: Arc::clone(spans) })
}

fn client() -> anyhow::Result<reqwest::Client> {
    // Another part of the process may have chosen a provider before: then that one serves.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder().redirect(reqwest::redirect::Policy::none()).timeout(TIMEOUT);
    Ok(client.build()?)
}

fn resource(receiver: &Receiver) -> Resource {
    let is_named = std::env::var_os(SERVICE_VARIABLE).is_some_and(|name| !name.is_empty());
    let builder =
        Resource::builder().with_attribute(opentelemetry::KeyValue::new("service.version", env!("CARGO_PKG_VERSION")));
    if is_named {
        return builder.build();
    }
    builder.with_service_name(receiver.service_name.clone().unwrap_or_else(|| SERVICE.to_owned())).build()
}

impl Export {
    /// Sends what is left, and stops. What is not sent by then is lost.
    pub async fn finish(self, within: Duration) {
        self.stop.cancel();
        let abort = self.sending.abort_handle();
        if timeout(within, self.sending).await.is_err() {
            abort.abort();
            tracing::warn!(counts = ?self.spans.counts(), "some spans could not be sent in time");
        }
    }
}

struct Sender {
    exporter: SpanExporter,
    spans: Arc<Spans>,
    complained_at: Option<Instant>,
}

impl Sender {
    async fn run(mut self, mut queue: mpsc::Receiver<Ended>, stop: CancellationToken) {
        let mut batch = Vec::with_capacity(BATCH_MAX);
        loop {
            let is_last = gather(&mut queue, &mut batch, &stop).await;
            if !batch.is_empty() {
                self.send(batch.drain(..).map(of).collect()).await;
            } else if is_last {
                return;
            }
        }
    }

    async fn send(&mut self, batch: Vec<opentelemetry_sdk::trace::SpanData>) {
        let count = batch.len();
        let sent = self.exporter.export(batch).await;
        self.spans.sent(count, sent.is_ok());
        match sent {
            Ok(()) if self.complained_at.take().is_some() => tracing::info!("spans are taken again"),
            Ok(()) => {}
            Err(error) if self.complained_at.is_none_or(|at| at.elapsed() >= COMPLAIN_EVERY) => {
                self.complained_at = Some(Instant::now());
                tracing::warn!(%error, counts = ?self.spans.counts(), "spans are not taken; is it a receiver of OTLP over HTTP, which is usually at port 4318?");
            }
            Err(_) => {}
        }
    }
}

/// Fills a batch: with what comes within a moment of the first span, or with what is left once told to stop. Whether that
/// is so.
async fn gather(queue: &mut mpsc::Receiver<Ended>, batch: &mut Vec<Ended>, stop: &CancellationToken) -> bool {
    let mut until = None;
    while batch.len() < BATCH_MAX && !stop.is_cancelled() {
        let room = BATCH_MAX - batch.len();
        let until = *until.get_or_insert_with(|| Instant::now() + GATHER_FOR);
        let come = async {
            match batch.is_empty() {
                true => Ok(queue.recv_many(batch, room).await),
                false => timeout_at(until, queue.recv_many(batch, room)).await,
            }
        };
        tokio::select! {
            () = stop.cancelled() => {}
            come = come => if matches!(come, Ok(0) | Err(_)) { return false },
        }
    }
    if !stop.is_cancelled() {
        return false;
    }
    queue.close();
    while batch.len() < BATCH_MAX
        && let Ok(span) = queue.try_recv()
    {
        batch.push(span);
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_is_completed_by_the_path_for_traces() {
        let check = |given: &str, expected: &str| {
            let read = Receiver::new(given, None).map(|receiver| receiver.address.to_string());
            assert_eq!(read.unwrap_or_else(|why| why), expected);
        };
        check("http://127.0.0.1:4318", "http://127.0.0.1:4318/v1/traces");
        check("http://collector:4318/", "http://collector:4318/v1/traces");
        check("https://host/otlp", "https://host/otlp/v1/traces");
        check("https://host/otlp/v1/traces", "https://host/otlp/v1/traces");
        check("collector:4317", "\"collector:4317\" is not an address such as \"http://127.0.0.1:4318\"");
        check("", "\"\" is not an address such as \"http://127.0.0.1:4318\"");
    }
}
