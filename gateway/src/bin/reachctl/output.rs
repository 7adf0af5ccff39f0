//! Where output goes, and what its readers can take: width, color, JSON. Nothing here panics when a reader leaves.

use std::io::{self, IsTerminal as _, Write as _};
use std::time::SystemTime;

use agent_reach_sdk::{Span, Timestamp};

use crate::exit::Stop;
use crate::render::Look;

/// The narrowest and the widest that tables are set.
const WIDTH_MIN: u16 = 60;
const WIDTH_MAX: u16 = 160;
/// The width where there is no terminal and `COLUMNS` does not say.
const WIDTH: u16 = 100;
/// The height where the terminal does not tell.
const HEIGHT: u16 = 24;

/// The two outputs and what their readers can take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Out {
    pub(crate) is_json: bool,
    /// Whether a person looks at standard output, so that it can be redrawn in place.
    pub(crate) is_terminal: bool,
    is_colored: bool,
    is_error_colored: bool,
}

impl Out {
    pub(crate) fn detect(is_json: bool) -> Self {
        let set = |name: &str| std::env::var_os(name).is_some_and(|value| !value.is_empty());
        let wants_color = !set("NO_COLOR") && std::env::var_os("TERM").is_none_or(|term| term != "dumb");
        let is_terminal = io::stdout().is_terminal();
        Self {
            is_json,
            is_terminal,
            is_colored: is_terminal && wants_color,
            is_error_colored: io::stderr().is_terminal() && wants_color,
        }
    }

    /// What standard output can take, now.
    pub(crate) fn look(&self) -> Look {
        Look { width: width(), is_colored: self.is_colored, now: now() }
    }

    /// What standard error can take, now.
    pub(crate) fn error_look(&self) -> Look {
        Look { is_colored: self.is_error_colored, ..self.look() }
    }

    /// Writes a text that ends its own lines.
    pub(crate) fn text(&self, text: &str) -> Result<(), Stop> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(text.as_bytes())?;
        Ok(stdout.flush()?)
    }

    /// Writes one line.
    pub(crate) fn line(&self, line: &str) -> Result<(), Stop> {
        self.text(&format!("{line}\n"))
    }

    /// Writes a line for people beside the output proper.
    pub(crate) fn note(&self, note: &str) -> Result<(), Stop> {
        Ok(writeln!(io::stderr().lock(), "{note}")?)
    }
}

pub(crate) fn now() -> Timestamp {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    Timestamp::from_ms(Span::from(since).as_ms())
}

fn width() -> u16 {
    let told = std::env::var("COLUMNS").ok().and_then(|columns| columns.parse().ok());
    let terminal = || terminal_size::terminal_size_of(io::stdout()).map(|(width, _)| width.0);
    terminal().or(told).unwrap_or(WIDTH).clamp(WIDTH_MIN, WIDTH_MAX)
}

/// How many lines the terminal shows.
pub(crate) fn height() -> usize {
    terminal_size::terminal_size_of(io::stdout()).map_or(HEIGHT, |(_, height)| height.0).into()
}
