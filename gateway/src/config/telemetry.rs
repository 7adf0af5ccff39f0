//! How the log looks, and where traces go, as the operator writes it.

use serde::Deserialize;

use crate::telemetry::log::Format;
use crate::telemetry::otlp::Receiver;

/// `[telemetry]` as it is written. Every field may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// `text` or `json`.
    pub log_format: Option<String>,
    /// The address of an OpenTelemetry receiver that takes OTLP over HTTP.
    pub otlp: Option<String>,
    /// The name under which the receiver knows this gateway.
    pub service_name: Option<String>,
    /// The share of traces that are recorded, of those that begin here.
    pub share: Option<f64>,
}

/// The same as it is used.
#[derive(Debug, Clone, Default)]
pub struct Telemetry {
    /// How log lines look.
    pub log_format: Format,
    /// Where traces go. None: nowhere.
    pub otlp: Option<Receiver>,
}

pub(super) fn check(section: Section, mistakes: &mut Vec<String>) -> (Telemetry, f64) {
    let log_format = match section.log_format.as_deref() {
        None | Some("text") => Format::Text,
        Some("json") => Format::Json,
        Some(other) => {
            mistakes.push(format!("telemetry.log_format: {other:?} is neither \"text\" nor \"json\""));
            Format::Text
        }
    };
    let share = section.share.unwrap_or(1.0);
    if !(0.0..=1.0).contains(&share) {
        mistakes.push(format!("telemetry.share: {share} is not a share; write a number from 0 to 1"));
    }
    // An empty address is none, as with the environment variable of the same meaning.
    let otlp = section.otlp.filter(|address| !address.is_empty()).and_then(|address| {
        let receiver = Receiver::new(&address, section.service_name);
        receiver.map_err(|why| mistakes.push(format!("telemetry.otlp: {why}"))).ok()
    });
    (Telemetry { log_format, otlp }, share)
}
