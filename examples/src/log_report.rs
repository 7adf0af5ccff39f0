//! Where the subprocess example stands: `agents/log_report.py`. It is a script in another language on purpose.

/// The script's text, so that a program can put it where it needs it.
pub const SCRIPT: &str = include_str!("../agents/log_report.py");
