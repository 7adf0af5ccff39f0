//! One thing that happened, as it is written down. What could carry a payload or a secret has no field here: of what was
//! sent there is a digest only, and a reason is in the gateway's own words.

use reach_schemas::{AuditKind, ErrorCode, TaskId, Timestamp};
use sha2::{Digest, Sha256};

use super::chain::{Cell, Cells};

/// The longest that a name or a reason is written down, in bytes.
pub const TEXT_MAX: usize = 512;
/// The outcome word of what went well.
pub const OK: &str = "OK";

/// One thing that happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: AuditKind,
    /// Who did it.
    pub actor: String,
    /// On whom or what.
    pub target: Option<String>,
    /// Why it did not go well. None: it did.
    pub code: Option<ErrorCode>,
    /// More, in words of the gateway.
    pub reason: Option<String>,
    /// The task that it is about.
    pub task_id: Option<TaskId>,
    /// SHA-256 of what was sent with it.
    pub digest: Option<[u8; 32]>,
    /// How often it happened.
    pub count: u64,
}

impl Event {
    /// It went well, once.
    #[must_use]
    pub fn new(at: Timestamp, kind: AuditKind, actor: impl Into<String>) -> Self {
        let actor = bounded(actor.into());
        Self { at, kind, actor, target: None, code: None, reason: None, task_id: None, digest: None, count: 1 }
    }

    /// On whom or what. A long name is cut off.
    #[must_use]
    pub fn on(self, target: impl Into<String>) -> Self {
        Self { target: Some(bounded(target.into())), ..self }
    }

    /// It did not go well, and this is why.
    #[must_use]
    pub fn failed(self, code: ErrorCode) -> Self {
        Self { code: Some(code), ..self }
    }

    /// More, in words of the gateway. Never what a caller or an agent sent: that may be a payload or hold a secret.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: Some(bounded(reason.into())), ..self }
    }

    /// The task that it is about.
    #[must_use]
    pub fn about(self, task_id: TaskId) -> Self {
        Self { task_id: Some(task_id), ..self }
    }

    /// What was sent with it, of which the digest alone is kept.
    #[must_use]
    pub fn with_payload(self, payload: &[u8]) -> Self {
        self.with_digest(Sha256::digest(payload).into())
    }

    /// The same, where the digest is known.
    #[must_use]
    pub fn with_digest(self, digest: [u8; 32]) -> Self {
        Self { digest: Some(digest), ..self }
    }

    /// How it went, in a word.
    #[must_use]
    pub fn outcome(&self) -> &'static str {
        self.code.map_or(OK, ErrorCode::outcome)
    }

    /// What is chained and stored, in the order of the columns.
    #[must_use]
    pub fn cells(&self) -> Cells<'_> {
        let text = |text: &'static str| Cell::Text(text.as_bytes());
        let number = |number: u64| Cell::Integer(i64::try_from(number).unwrap_or(i64::MAX));
        [
            number(self.at.as_ms()),
            text(self.kind.as_str()),
            Cell::Text(self.actor.as_bytes()),
            Cell::of_text(self.target.as_deref()),
            text(self.outcome()),
            Cell::of_text(self.code.map(ErrorCode::name)),
            Cell::of_text(self.reason.as_deref()),
            self.task_id.as_ref().map_or(Cell::Null, |id| Cell::Blob(id.as_bytes())),
            self.digest.as_ref().map_or(Cell::Null, |digest| Cell::Blob(digest)),
            number(self.count),
        ]
    }
}

/// The text with what would steer a terminal, or end a line, written out; cut off where it is too long, between characters.
fn bounded(text: String) -> String {
    let is_plain = |c: char| !c.is_control() && !matches!(c, '\u{2028}'..='\u{202E}' | '\u{2066}'..='\u{2069}');
    let mut text = if text.chars().all(is_plain) {
        text
    } else {
        text.chars().map(|c| if is_plain(c) { c.to_string() } else { c.escape_default().to_string() }).collect()
    };
    if text.len() > TEXT_MAX {
        let end = (0..=TEXT_MAX).rev().find(|end| text.is_char_boundary(*end)).unwrap_or_default();
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn long_texts_are_cut_off_between_characters() {
        let event =
            Event::new(Timestamp::from_ms(1), AuditKind::CallRefused, "é".repeat(TEXT_MAX)).on("x".repeat(9_000));
        assert_eq!((event.actor.len(), event.target.map(|target| target.len())), (TEXT_MAX, Some(TEXT_MAX)));
        assert_eq!(
            Event::new(Timestamp::from_ms(1), AuditKind::CallRefused, format!("a{}", "é".repeat(600))).actor.len(),
            TEXT_MAX - 1
        );
    }

    #[test]
    fn what_would_steer_a_terminal_or_begin_a_row_is_written_out() {
        let event = Event::new(Timestamp::from_ms(1), AuditKind::TokenRevoked, "a\nb").on("é\u{202E}c");
        let event = event.because("x\r\n 99 operator.created \u{1b}[31m\u{9b}red");
        assert_eq!((event.actor.as_str(), event.target.as_deref()), ("a\\nb", Some("é\\u{202e}c")));
        assert_eq!(event.reason.unwrap(), "x\\r\\n 99 operator.created \\u{1b}[31m\\u{9b}red");
    }

    #[test]
    fn of_a_payload_the_digest_alone_is_kept() {
        let event = Event::new(Timestamp::from_ms(1), AuditKind::AgentRegistered, "operator").with_payload(b"s3cret");
        assert!(!format!("{event:?}").contains("s3cret"));
        assert_eq!(event.digest, Some(Sha256::digest(b"s3cret").into()));
        assert_eq!(event.outcome(), OK);
        assert_eq!(event.failed(ErrorCode::Forbidden).outcome(), "REJECT_ACL");
    }
}
