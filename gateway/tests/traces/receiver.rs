//! An OpenTelemetry receiver: takes export requests of OTLP over HTTP and reads them by OpenTelemetry's own message types.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Bytes;
use axum::routing::post;
use opentelemetry_proto::tonic::collector::trace::v1::{ExportTraceServiceRequest, ExportTraceServiceResponse};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value};
use opentelemetry_proto::tonic::trace::v1::Span;
use prost::Message;
use tokio::net::TcpListener;
use tokio::sync::Notify;

/// The longest that a span is waited for.
const PATIENCE: Duration = Duration::from_secs(20);

/// What a receiver does with a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Habit {
    Takes,
    /// It never answers.
    Hangs,
}

/// A span as it was received.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    pub(crate) name: String,
    pub(crate) trace: String,
    pub(crate) id: String,
    pub(crate) parent: String,
    pub(crate) kind: i32,
    pub(crate) began: u64,
    pub(crate) ended: u64,
    pub(crate) error: Option<String>,
    pub(crate) events: Vec<String>,
    pub(crate) service: String,
    attributes: Vec<(String, String)>,
}

impl Seen {
    #[track_caller]
    pub(crate) fn attribute(&self, name: &str) -> &str {
        let found = self.attributes.iter().find(|(key, _)| key == name);
        found.map_or_else(|| panic!("{name} is not told of {self:?}"), |(_, value)| value.as_str())
    }
}

#[derive(Debug, Default)]
struct Inside {
    spans: Mutex<Vec<Seen>>,
    more: Notify,
}

/// A receiver on a port of its own.
#[derive(Debug, Clone)]
pub(crate) struct Receiver {
    pub(crate) url: String,
    inside: Arc<Inside>,
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn text(of: &[KeyValue]) -> Vec<(String, String)> {
    let value = |pair: &KeyValue| match pair.value.clone().and_then(|value| value.value) {
        Some(any_value::Value::StringValue(text)) => text,
        Some(any_value::Value::IntValue(number)) => number.to_string(),
        Some(any_value::Value::BoolValue(flag)) => flag.to_string(),
        other => format!("{other:?}"),
    };
    of.iter().map(|pair| (pair.key.clone(), value(pair))).collect()
}

fn seen(span: Span, service: &str) -> Seen {
    Seen {
        trace: hex(&span.trace_id),
        id: hex(&span.span_id),
        parent: hex(&span.parent_span_id),
        kind: span.kind,
        began: span.start_time_unix_nano,
        ended: span.end_time_unix_nano,
        // 2 is an error, by the message type.
        error: span.status.filter(|status| status.code == 2).map(|status| status.message),
        events: span.events.into_iter().map(|event| event.name).collect(),
        service: service.to_owned(),
        attributes: text(&span.attributes),
        name: span.name,
    }
}

impl Receiver {
    pub(crate) async fn start(habit: Habit) -> Self {
        let inside = Arc::new(Inside::default());
        let own = Arc::clone(&inside);
        let take = async move |body: Bytes| {
            if habit == Habit::Hangs {
                std::future::pending::<()>().await;
            }
            for of in ExportTraceServiceRequest::decode(body).unwrap().resource_spans {
                let told = text(&of.resource.unwrap().attributes);
                let service = told.into_iter().find(|(key, _)| key == "service.name").unwrap().1;
                let spans = of.scope_spans.into_iter().flat_map(|scope| scope.spans);
                own.spans.lock().unwrap().extend(spans.map(|span| seen(span, &service)));
            }
            own.more.notify_waiters();
            ExportTraceServiceResponse::default().encode_to_vec()
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let router = Router::new().route("/v1/traces", post(take));
        tokio::spawn(async move { axum::serve(listener, router).await });
        Self { url, inside }
    }

    pub(crate) fn spans(&self) -> Vec<Seen> {
        self.inside.spans.lock().unwrap().clone()
    }

    /// Waits until a span of a trace has come whose name begins so; the newest of them.
    pub(crate) async fn span(&self, trace: &str, name: &str) -> Seen {
        let find = || self.spans().into_iter().rfind(|span| span.trace == trace && span.name.starts_with(name));
        let waiting = async {
            loop {
                let more = self.inside.more.notified();
                if let Some(span) = find() {
                    return span;
                }
                more.await;
            }
        };
        let waited = tokio::time::timeout(PATIENCE, waiting).await;
        waited.unwrap_or_else(|_| panic!("no {name} of {trace} came: {:#?}", self.spans()))
    }
}
