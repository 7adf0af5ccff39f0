//! A span in the words of OpenTelemetry.

use std::borrow::Cow;
use std::time::{Duration, SystemTime};

use opentelemetry::trace::{Event, SpanContext, SpanId, SpanKind, Status, TraceFlags, TraceId, TraceState};
use opentelemetry::{InstrumentationScope, KeyValue, StringValue, Value as OtelValue};
use opentelemetry_sdk::trace::{SpanData, SpanEvents, SpanLinks};

use crate::spans::{Ended, Nanos, Side, Value};

/// What made the spans.
const MADE_BY: &str = "reach-gateway";

/// A span as it is sent.
pub(super) fn of(span: Ended) -> SpanData {
    let mut events = SpanEvents::default();
    events.events.extend(span.events.into_iter().map(|(moment, name)| Event::new(name, at(moment), Vec::new(), 0)));
    SpanData {
        span_context: SpanContext::new(
            TraceId::from_bytes(span.context.trace_id().get().to_be_bytes()),
            id(span.context.parent_id()),
            TraceFlags::new(span.context.flags()),
            false,
            TraceState::NONE,
        ),
        parent_span_id: span.parent.map_or(SpanId::INVALID, id),
        parent_span_is_remote: span.is_parent_remote,
        span_kind: match span.side {
            Side::Server => SpanKind::Server,
            Side::Client => SpanKind::Client,
            Side::Producer => SpanKind::Producer,
            Side::Internal => SpanKind::Internal,
        },
        name: span.name,
        start_time: at(span.began),
        end_time: at(span.ended),
        attributes: span.attributes.into_iter().map(|(key, value)| KeyValue::new(key, value_of(value))).collect(),
        dropped_attributes_count: 0,
        events,
        links: SpanLinks::default(),
        status: span.error.map_or(Status::Unset, Status::error),
        instrumentation_scope: InstrumentationScope::builder(MADE_BY).with_version(env!("CARGO_PKG_VERSION")).build(),
    }
}

fn id(id: reach_schemas::SpanId) -> SpanId {
    SpanId::from_bytes(id.get().to_be_bytes())
}

fn at(Nanos(nanos): Nanos) -> SystemTime {
    SystemTime::UNIX_EPOCH + Duration::from_nanos(nanos)
}

fn value_of(value: Value) -> OtelValue {
    match value {
        Value::Text(Cow::Borrowed(text)) => OtelValue::String(StringValue::from(text)),
        Value::Text(Cow::Owned(text)) => OtelValue::String(StringValue::from(text)),
        Value::Number(number) => OtelValue::I64(number),
        Value::Flag(flag) => OtelValue::Bool(flag),
    }
}
