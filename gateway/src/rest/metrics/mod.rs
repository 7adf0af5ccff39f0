//! `GET /metrics`: everything that is measured, as Prometheus reads it. OpenMetrics for those who ask for it, the older
//! text form for all others.

mod families;

use std::fmt;

use http::{HeaderValue, StatusCode, header};
use prometheus_client::encoding::{prometheus_text, text};
use prometheus_client::registry::Registry;
use reach_schemas::{ErrorCode, Failure, Method};

use self::families::Families;
use super::{Answer, Request, with_body};
use crate::ops::snapshot::Snapshot;
use crate::rpc::methods::Context;

const OPEN_METRICS: &str = "application/openmetrics-text";
const OPEN_METRICS_TYPE: HeaderValue =
    HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
const TEXT_TYPE: HeaderValue = HeaderValue::from_static(prometheus_text::CONTENT_TYPE);

pub(super) async fn metrics(context: &Context, request: &Request) -> Answer {
    let grant = context.grant(Method::MetricsOverview, None)?;
    let accepts = request.headers.get_all(header::ACCEPT).iter().filter_map(|value| value.to_str().ok());
    let is_open = accepts.into_iter().any(|value| value.contains(OPEN_METRICS));
    let snapshot = context.gateway.snapshot(grant).await?;
    // A thousand agents make a text of megabytes: a worker has better things to do.
    let written = tokio::task::spawn_blocking(move || text_of(snapshot, is_open)).await;
    let body = written.ok().and_then(Result::ok);
    let body = body.ok_or_else(|| Failure::new(ErrorCode::Internal, "the metrics cannot be written"))?;
    Ok(with_body(StatusCode::OK, if is_open { OPEN_METRICS_TYPE } else { TEXT_TYPE }, body.into()))
}

fn text_of(snapshot: Snapshot, is_open: bool) -> Result<String, fmt::Error> {
    let mut registry = Registry::with_prefix("reach");
    registry.register_collector(Box::new(Families(snapshot)));
    let mut text = String::new();
    if is_open {
        text::encode(&mut text, &registry)?
    } else {
        prometheus_text::encode(&mut text, &registry)?
    }
    Ok(text)
}
