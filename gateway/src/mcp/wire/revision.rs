//! The revisions of MCP, oldest first, and the two ways in which they open an exchange.

use std::fmt;

/// A dated revision of the protocol.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Revision {
    /// 2024-11-05: the first; HTTP with two endpoints.
    V2024_11_05,
    /// 2025-03-26: Streamable HTTP, and the only one with batches.
    V2025_03_26,
    /// 2025-06-18: structured results, elicitation; no batches any more.
    V2025_06_18,
    /// 2025-11-25: the last with a handshake.
    V2025_11_25,
    /// 2026-07-28: stateless; each request says what it needs.
    V2026_07_28,
}

/// How an exchange is opened, and hence who remembers what.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Era {
    /// `initialize` opens a session; both sides may ask.
    Handshake,
    /// Each request stands alone and carries its revision and the client's capabilities in `_meta`.
    Stateless,
}

impl Revision {
    /// Every revision that is spoken here, oldest first.
    pub const ALL: [Self; 5] =
        [Self::V2024_11_05, Self::V2025_03_26, Self::V2025_06_18, Self::V2025_11_25, Self::V2026_07_28];
    /// The newest that a handshake can agree on.
    pub const NEWEST_BY_HANDSHAKE: Self = Self::V2025_11_25;
    /// The newest of all.
    pub const NEWEST: Self = Self::V2026_07_28;
    /// What a request over HTTP without a version header is held to be (2025-03-26, Transports).
    pub const ASSUMED: Self = Self::V2025_03_26;

    /// The date on the wire.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::V2024_11_05 => "2024-11-05",
            Self::V2025_03_26 => "2025-03-26",
            Self::V2025_06_18 => "2025-06-18",
            Self::V2025_11_25 => "2025-11-25",
            Self::V2026_07_28 => "2026-07-28",
        }
    }

    /// The revision of this date, if it is spoken here.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|revision| revision.as_str() == name)
    }

    /// How its exchanges are opened.
    #[must_use]
    pub const fn era(self) -> Era {
        match self {
            Self::V2024_11_05 | Self::V2025_03_26 | Self::V2025_06_18 | Self::V2025_11_25 => Era::Handshake,
            Self::V2026_07_28 => Era::Stateless,
        }
    }

    /// Whether one frame may hold several messages.
    #[must_use]
    pub const fn takes_batches(self) -> bool {
        match self {
            Self::V2025_03_26 => true,
            Self::V2024_11_05 | Self::V2025_06_18 | Self::V2025_11_25 | Self::V2026_07_28 => false,
        }
    }

    /// What a handshake agrees on when a client asks for this: the same if it is a revision with a handshake that is
    /// spoken here, else the newest with one (2025-11-25, Lifecycle, Version Negotiation).
    #[must_use]
    pub fn agreed(asked: &str) -> Self {
        match Self::by_name(asked) {
            Some(revision) if revision.era() == Era::Handshake => revision,
            Some(_) | None => Self::NEWEST_BY_HANDSHAKE,
        }
    }
}

impl fmt::Display for Revision {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_date_finds_its_revision_and_an_unknown_one_finds_none() {
        for revision in Revision::ALL {
            assert_eq!(Revision::by_name(revision.as_str()), Some(revision));
        }
        assert_eq!(Revision::by_name("2025-01-01"), None);
    }

    #[test]
    fn a_handshake_agrees_on_what_was_asked_for_or_on_the_newest_that_has_one() {
        assert_eq!(Revision::agreed("2024-11-05"), Revision::V2024_11_05);
        assert_eq!(Revision::agreed("2025-11-25"), Revision::V2025_11_25);
        assert_eq!(Revision::agreed("2026-07-28"), Revision::V2025_11_25);
        assert_eq!(Revision::agreed("1999-01-01"), Revision::V2025_11_25);
    }
}
