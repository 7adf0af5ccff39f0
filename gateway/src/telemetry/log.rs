//! Log lines on standard error, for people or for machines. Each tells what it belongs to: the task, the trace, the span.

use std::cell::RefCell;
use std::fmt;
use std::io::IsTerminal;

use clap::ValueEnum;
use tracing::dispatcher::DefaultGuard;
use tracing::{Dispatch, Event, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::field::RecordFields;
use tracing_subscriber::fmt::format::{DefaultFields, FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::time::{FormatTime, SystemTime};
use tracing_subscriber::fmt::{FmtContext, MakeWriter};
use tracing_subscriber::registry::LookupSpan;

use super::fields::{Named, Taken};
use crate::spans::Scope;

/// How log lines look.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, ValueEnum)]
pub enum Format {
    /// For people.
    #[default]
    #[value(alias = "human")]
    Text,
    /// One JSON object a line.
    Json,
}

/// Has log lines written to standard error from now on. Which ones is said by the environment variable `RUST_LOG`, or else
/// by `level`.
pub fn to_stderr(format: Format, level: &str) {
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let has_color = std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    // A second subscriber is refused; the first one stays.
    let _ = tracing::subscriber::set_global_default(lines(format, filter, has_color, std::io::stderr));
}

/// A subscriber that writes lines for people somewhere else; which ones is said as for [`to_stderr`].
pub fn to_writer<W>(level: &str, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    lines(Format::Text, filter, false, writer)
}

/// Has this thread's log lines, and those of no other thread, go to a subscriber until the thread ends.
pub fn on_this_thread(subscriber: &Dispatch) {
    thread_local!(static HELD: RefCell<Option<DefaultGuard>> = const { RefCell::new(None) });
    HELD.set(Some(tracing::dispatcher::set_default(subscriber)));
}

fn lines<W>(format: Format, filter: EnvFilter, has_color: bool, writer: W) -> Box<dyn Subscriber + Send + Sync>
where
    W: for<'w> MakeWriter<'w> + Send + Sync + 'static,
{
    let lines = tracing_subscriber::fmt().with_env_filter(filter).with_writer(writer).with_ansi(has_color);
    match format {
        Format::Text => Box::new(lines.fmt_fields(TextFields).finish()),
        Format::Json => Box::new(lines.event_format(JsonLine).finish()),
    }
}

/// What a line belongs to, as far as it does not say so itself: nothing, if it says that it is of another task.
fn belongs_to(own: Option<&str>) -> [(&'static str, Option<String>); 3] {
    let scope = Scope::current().unwrap_or_default();
    let reach_id = scope.reach_id.map(|id| id.to_string());
    let is_of_it = own.is_none() || own == reach_id.as_deref();
    let span = scope.span.filter(|_| is_of_it);
    [
        ("reach_id", reach_id.filter(|_| own.is_none())),
        ("trace_id", span.map(|span| span.trace_id().to_string())),
        ("span_id", span.map(|span| span.parent_id().to_string())),
    ]
}

/// The usual fields of a line, then what it belongs to.
struct TextFields;

impl<'w> FormatFields<'w> for TextFields {
    fn format_fields<R: RecordFields>(&self, mut writer: Writer<'w>, fields: R) -> fmt::Result {
        let mut named = Named::new("reach_id");
        fields.record(&mut named);
        DefaultFields::new().format_fields(writer.by_ref(), fields)?;
        let is_dimmed = writer.has_ansi_escapes();
        for (name, value) in belongs_to(named.value.as_deref()) {
            match value {
                Some(value) if is_dimmed => write!(writer, " \u{1b}[2m{name}={value}\u{1b}[0m")?,
                Some(value) => write!(writer, " {name}={value}")?,
                None => {}
            }
        }
        Ok(())
    }
}

/// A line as a JSON object without a level below: when, how grave, from where, what, and what it belongs to.
struct JsonLine;

impl<S, N> FormatEvent<S, N> for JsonLine
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, _: &FmtContext<'_, S, N>, mut writer: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let mut at = String::with_capacity(32);
        SystemTime.format_time(&mut Writer::new(&mut at))?;
        let meta = event.metadata();
        let mut line = Taken(Vec::with_capacity(16));
        line.put("timestamp", at);
        line.put("level", meta.level().as_str());
        line.put("target", meta.target());
        event.record(&mut line);
        let own = line.text("reach_id").map(str::to_owned);
        for (name, value) in belongs_to(own.as_deref()) {
            if let Some(value) = value {
                line.put(name, value);
            }
        }
        let text = serde_json::to_string(&line).map_err(|_| fmt::Error)?;
        writeln!(writer, "{text}")
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::{Arc, Mutex};

    use reach_core::task::{Birth, Task};
    use reach_schemas::{Span, Submit, TaskId, Timestamp};

    use serde_json::Value;

    use super::*;

    #[derive(Clone, Default)]
    struct Page(Arc<Mutex<Vec<u8>>>);

    impl io::Write for Page {
        fn write(&mut self, text: &[u8]) -> io::Result<usize> {
            self.0.lock().unwrap().extend_from_slice(text);
            Ok(text.len())
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    fn written(format: Format, filter: &str) -> String {
        let page = Page::default();
        let to = page.clone();
        let subscriber = lines(format, EnvFilter::new(filter), false, move || to.clone());
        tracing::subscriber::with_default(subscriber, || {
            tracing::warn!(number = 7, "outside");
            let birth = Birth {
                id: TaskId::from_parts(1_700_000_000_000, 7),
                scope: String::new(),
                has_scoped_key: true,
                submit: Submit {
                    traceparent: "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".parse().ok(),
                    ..Submit::default()
                },
                created_at: Timestamp::from_ms(0),
            };
            let task = Task::new(birth, Span::from_secs(1));
            Scope::of_task(&task).enter(|| {
                tracing::warn!(name = "x \"y\"", is_so = true, none = Option::<u64>::None, "within");
                tracing::warn!(reach_id = %TaskId::from_parts(1, 1), "of another");
                tracing::warn!(reach_id = %task.id(), "of its own");
            });
        });
        let text = page.0.lock().unwrap().clone();
        String::from_utf8(text).unwrap()
    }

    const OF_TASK: &str = "reach_id=018bcfe5-6800-7700-8000-000000000000 trace_id=0af7651916cd43dd8448eb211c80319c span_id=b2b45050f82e5127";

    #[test]
    fn a_line_for_people_tells_what_it_belongs_to_after_its_own_words() {
        let text = written(Format::Text, "info");
        let ends: Vec<&str> = text.lines().map(|line| line.split_once("log::tests: ").unwrap().1).collect();
        assert_eq!(ends[0], "outside number=7");
        assert_eq!(ends[1], format!("within name=\"x \\\"y\\\"\" is_so=true {OF_TASK}"));
        assert_eq!(ends[2], "of another reach_id=00000000-0001-7100-8000-000000000000");
        assert_eq!(ends[3], format!("of its own {OF_TASK}"));
    }

    #[test]
    fn a_line_for_machines_is_one_flat_object() {
        // What a line belongs to is there even where information is filtered out.
        let text = written(Format::Json, "warn");
        let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        let within = &lines[1];
        assert!(text.lines().nth(1).unwrap().starts_with("{\"timestamp\":"), "{text}");
        assert_eq!(within["message"], "within");
        assert_eq!(
            (&within["level"], &within["is_so"], &within["name"]),
            (&"WARN".into(), &true.into(), &"x \"y\"".into())
        );
        let told =
            format!("reach_id={} trace_id={} span_id={}", within["reach_id"], within["trace_id"], within["span_id"]);
        assert_eq!(told.replace('"', ""), OF_TASK);
        assert!(within["timestamp"].as_str().unwrap().ends_with('Z') && within.get("none").is_none());
        assert_eq!((&lines[0]["number"], lines[0].get("reach_id")), (&7.into(), None));
        assert!(lines[2].get("trace_id").is_none(), "not that of the task that it does not belong to");
    }
}
