//! The lease by which an agent is present: renewed by each heartbeat, and worth less with each one missed.
//! It never asks whether the agent does its work well; that is what health and breakers are for.

use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// So many heartbeats missed make an agent suspect.
pub const SUSPECT_AFTER: u64 = 3;
/// So many heartbeats missed make an agent dead.
pub const DEAD_AFTER: u64 = 4;

/// How present an agent is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Presence {
    /// It takes work.
    Alive,
    /// Missed 3 heartbeats: no new work, what it has may finish.
    Suspect,
    /// Missed 4 heartbeats: gone from routing, what it has is taken back.
    Dead,
}

/// A time-bound holding of presence. A heartbeat counts as missed at the instant at which it was due.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lease {
    interval: Span,
    renewed_at: Timestamp,
}

impl Lease {
    /// Begins a lease whose holder promised a heartbeat every `interval` (at least a millisecond).
    ///
    /// A gateway that starts again grants anew to every agent it remembers: nobody is declared dead for the time in
    /// which no gateway was there to listen.
    #[must_use]
    pub fn grant(interval: Span, now: Timestamp) -> Self {
        Self { interval: interval.max(Span::from_ms(1)), renewed_at: now }
    }

    /// Takes a heartbeat, and says how present the holder was just before it: one that was dead is just back.
    pub fn renew(&mut self, now: Timestamp) -> Presence {
        let before = self.presence(now);
        // A heartbeat that was overtaken by a younger one takes nothing back.
        self.renewed_at = self.renewed_at.max(now);
        before
    }

    /// How present the holder is.
    #[must_use]
    pub fn presence(&self, now: Timestamp) -> Presence {
        if now >= self.missed_at(DEAD_AFTER) {
            Presence::Dead
        } else if now >= self.missed_at(SUSPECT_AFTER) {
            Presence::Suspect
        } else {
            Presence::Alive
        }
    }

    /// When the presence changes next unless the lease is renewed. None: it is over.
    #[must_use]
    pub fn next_change_at(&self, now: Timestamp) -> Option<Timestamp> {
        match self.presence(now) {
            Presence::Alive => Some(self.missed_at(SUSPECT_AFTER)),
            Presence::Suspect => Some(self.missed_at(DEAD_AFTER)),
            Presence::Dead => None,
        }
    }

    /// When the next heartbeat is due.
    #[must_use]
    pub fn due_at(&self) -> Timestamp {
        self.missed_at(1)
    }

    /// When the holder was last heard of, or the lease granted.
    #[must_use]
    pub const fn renewed_at(&self) -> Timestamp {
        self.renewed_at
    }

    fn missed_at(&self, beats: u64) -> Timestamp {
        self.renewed_at + self.interval.times(beats)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn at(secs: u64) -> Timestamp {
        Timestamp::from_ms(1_000_000) + Span::from_secs(secs)
    }

    #[test]
    fn three_missed_beats_are_suspect_and_four_are_dead() {
        let lease = Lease::grant(Span::from_secs(10), at(0));
        assert_eq!(lease.due_at(), at(10));
        assert_eq!((lease.presence(at(29)), lease.next_change_at(at(29))), (Presence::Alive, Some(at(30))));
        assert_eq!((lease.presence(at(30)), lease.next_change_at(at(30))), (Presence::Suspect, Some(at(40))));
        assert_eq!((lease.presence(at(40)), lease.next_change_at(at(40))), (Presence::Dead, None));
    }

    #[test]
    fn a_heartbeat_brings_a_suspect_back_and_tells_that_it_was_one() {
        let mut lease = Lease::grant(Span::from_secs(10), at(0));
        assert_eq!(lease.renew(at(35)), Presence::Suspect);
        assert_eq!((lease.presence(at(64)), lease.presence(at(65))), (Presence::Alive, Presence::Suspect));
        assert_eq!(lease.renew(at(500)), Presence::Dead);
        assert_eq!(lease.presence(at(500)), Presence::Alive);
    }

    #[test]
    fn a_heartbeat_that_was_overtaken_shortens_nothing() {
        let mut lease = Lease::grant(Span::from_secs(10), at(0));
        lease.renew(at(20));
        lease.renew(at(15));
        assert_eq!(lease.due_at(), at(30));
    }

    proptest! {
        #[test]
        fn presence_only_falls_between_heartbeats_and_changes_when_it_said(
            interval in 0_u64..100_000, early in 0_u64..1_000_000, later in 0_u64..1_000_000,
        ) {
            let lease = Lease::grant(Span::from_ms(interval), at(0));
            let (early, late) = (at(0) + Span::from_ms(early), at(0) + Span::from_ms(early + later));
            prop_assert!(lease.presence(early) <= lease.presence(late));
            if let Some(change) = lease.next_change_at(early) {
                prop_assert!(change > early && lease.presence(change) > lease.presence(early));
                prop_assert_eq!(lease.presence(change - Span::from_ms(1)), lease.presence(early));
            }
        }
    }
}
