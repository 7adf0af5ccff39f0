//! What was found wrong with a card so far.

use std::fmt::{self, Display};

use reach_schemas::Span;

/// How many mistakes of one card are told.
pub const MISTAKES_MAX: usize = 20;

/// One thing that is wrong with a card.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where, as a path into the card.
    pub at: String,
    /// What is wrong, and what would be right.
    pub says: String,
    /// Whether it is in a JSON Schema that the card brings.
    pub is_in_schema: bool,
}

impl Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.at, self.says)
    }
}

/// What is wrong with a card.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub struct CardError {
    /// Each mistake, in the order of the check; at least one, at most [`MISTAKES_MAX`].
    pub mistakes: Vec<Mistake>,
    /// How many more there are.
    pub untold: usize,
}

impl CardError {
    /// Whether the card is right but for the schemas that it brings.
    #[must_use]
    pub fn is_of_schemas(&self) -> bool {
        self.mistakes.iter().all(|mistake| mistake.is_in_schema)
    }
}

impl Display for CardError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, mistake) in self.mistakes.iter().enumerate() {
            write!(f, "{}{mistake}", if at == 0 { "" } else { "; " })?;
        }
        if self.untold > 0 {
            write!(f, "; and {} more", self.untold)?;
        }
        Ok(())
    }
}

/// Collects what is wrong, within bounds.
#[derive(Debug, Default)]
pub(super) struct Inspection {
    mistakes: Vec<Mistake>,
    untold: usize,
}

impl Inspection {
    pub(super) fn into_result(self) -> Result<(), CardError> {
        let Self { mistakes, untold } = self;
        if mistakes.is_empty() { Ok(()) } else { Err(CardError { mistakes, untold }) }
    }

    /// A field is wrong.
    pub(super) fn wrong(&mut self, at: impl Display, says: impl Into<String>) {
        self.add(at, says, false);
    }

    /// A schema is none, or costs too much.
    pub(super) fn schema(&mut self, at: impl Display, says: impl Into<String>) {
        self.add(at, says, true);
    }

    fn add(&mut self, at: impl Display, says: impl Into<String>, is_in_schema: bool) {
        if self.mistakes.len() < MISTAKES_MAX {
            self.mistakes.push(Mistake { at: at.to_string(), says: says.into(), is_in_schema });
        } else {
            self.untold += 1;
        }
    }

    /// A list may have so many entries.
    pub(super) fn count(&mut self, at: impl Display, count: usize, max: usize) {
        if count > max {
            self.wrong(at, format!("has {count} entries, at most {max} are taken"));
        }
    }

    /// A text may have so many bytes.
    pub(super) fn length(&mut self, at: impl Display, text: &str, max: usize) {
        if text.len() > max {
            self.wrong(at, format!("has {} bytes, at most {max} are taken", text.len()));
        }
    }

    /// A list may have so many texts, and each so many bytes.
    pub(super) fn texts(&mut self, path: &str, texts: &[String], count_max: usize, bytes_max: usize) {
        self.count(path, texts.len(), count_max);
        for (at, text) in texts.iter().take(count_max).enumerate() {
            self.length(format_args!("{path}[{at}]"), text, bytes_max);
        }
    }

    /// A span may be so short, and so long.
    pub(super) fn span(&mut self, at: impl Display, span: Span, min: Span, max: Span) {
        if span < min || span > max {
            self.wrong(at, format!("is {span}: it is {min} to {max}"));
        }
    }
}
