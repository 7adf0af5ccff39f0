//! What the SDK has to log, for Python's `logging`: kept until a thread of Python takes it, and bounded.

use std::collections::VecDeque;
use std::fmt::{self, Write};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use agent_reach_sdk::Error;
use pyo3::{PyResult, Python, pyfunction};
use tokio::sync::Notify;
use tracing::field::{Field, Visit};
use tracing::{Event, Level, Subscriber};
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Context, SubscriberExt};
use tracing_subscriber::util::SubscriberInitExt;
use tracing_subscriber::{Layer, registry};

use crate::runtime;

/// How many lines are kept; of more, the oldest are forgotten.
const LINES_MAX: usize = 1024;

/// A line: its level as Python counts, where it is from, and what it says.
type Line = (u8, String, String);

#[derive(Default)]
struct Lines {
    kept: Mutex<VecDeque<Line>>,
    more: Notify,
}

static LINES: OnceLock<Arc<Lines>> = OnceLock::new();

struct Keep(Arc<Lines>);

impl<S: Subscriber> Layer<S> for Keep {
    fn on_event(&self, event: &Event<'_>, _context: Context<'_, S>) {
        let mut text = Text::default();
        event.record(&mut text);
        let level = match *event.metadata().level() {
            Level::ERROR => 40,
            Level::WARN => 30,
            Level::INFO => 20,
            Level::DEBUG => 10,
            Level::TRACE => 5,
        };
        let mut kept = self.0.kept.lock().unwrap_or_else(PoisonError::into_inner);
        if kept.len() >= LINES_MAX {
            kept.pop_front();
        }
        kept.push_back((level, event.metadata().target().replace("::", "."), text.whole()));
        drop(kept);
        self.0.more.notify_one();
    }
}

/// An event as one line: its message, then its fields.
#[derive(Default)]
struct Text {
    message: String,
    fields: String,
}

impl Text {
    fn whole(self) -> String {
        self.message + &self.fields
    }
}

impl Visit for Text {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        // Writing to a text cannot fail.
        let _written = match field.name() {
            "message" => write!(self.message, "{value:?}"),
            name => write!(self.fields, " {name}={value:?}"),
        };
    }
}

/// Begins to keep what the SDK logs, from `debug` on if so wanted, else from `info` on. False: another subscriber of this
/// process has it.
#[pyfunction]
pub(crate) fn take_logs(is_verbose: bool) -> bool {
    let lines = LINES.get_or_init(Arc::default).clone();
    let level = if is_verbose { Level::DEBUG } else { Level::INFO };
    let ours = Targets::new().with_target("agent_reach_sdk", level);
    registry().with(Keep(lines).with_filter(ours)).try_init().is_ok()
}

/// Waits for lines and takes them.
#[pyfunction]
pub(crate) fn next_logs(py: Python<'_>) -> PyResult<Vec<Line>> {
    let lines = LINES.get_or_init(Arc::default).clone();
    runtime::wait(py, false, async move {
        loop {
            let kept = std::mem::take(&mut *lines.kept.lock().unwrap_or_else(PoisonError::into_inner));
            if !kept.is_empty() {
                return Ok::<_, Error>(kept.into());
            }
            lines.more.notified().await;
        }
    })?
    .map_err(|error: Error| pyo3::exceptions::PyRuntimeError::new_err(error.to_string()))
}
