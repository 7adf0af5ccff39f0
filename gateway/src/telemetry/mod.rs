//! What the process tells of itself to the outside: log lines on standard error, and spans to an OpenTelemetry receiver.

mod fields;
pub mod log;
pub mod otlp;
mod otlp_span;
