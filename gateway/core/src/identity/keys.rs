//! The life of signing keys: next, active, retiring, gone. A key is published long before it signs, so that whoever reads the
//! published keys has it by then, and stays published until nothing that it signed is good any more.

use reach_schemas::call::KeyStage;
use reach_schemas::{Span, Timestamp};
use serde::{Deserialize, Serialize};

/// When keys change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Schedule {
    /// How long a key signs.
    pub rotate_every: Span,
    /// For how long a key is published before it signs, at least: twice as long as readers may keep what they have read.
    pub publish_ahead: Span,
    /// For how long a key is published once it signs no more: as long as what it signed may be good, for clocks that
    /// differ, and for readers that keep what they have read.
    pub retire_for: Span,
}

/// For how long readers may keep the published keys.
pub const MAX_AGE: Span = Span::from_secs(300);

impl Default for Schedule {
    fn default() -> Self {
        Self {
            rotate_every: Span::from_hours(24),
            publish_ahead: Span::from_secs(600),
            retire_for: Span::from_hours(12) + Span::from_secs(60) + MAX_AGE,
        }
    }
}

/// A key and where it is in its life.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct KeyState {
    /// Its id.
    pub kid: String,
    /// Where it is in its life.
    pub stage: KeyStage,
    /// Since when.
    pub since: Timestamp,
}

/// What came of a look at the keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Turn {
    /// Whether anything is otherwise than before.
    pub is_changed: bool,
    /// Whether another key is to be made, to be the next one. Then this is to be asked again.
    pub wants_key: bool,
}

/// Moves keys on in their lives as far as it is time for it. There is one that signs, and one that is next, as soon as as
/// many were made as are wanted.
pub fn turn(keys: &mut Vec<KeyState>, schedule: &Schedule, now: Timestamp) -> Turn {
    let before = keys.len();
    keys.retain(|key| key.stage != KeyStage::Retiring || now.since(key.since) <= schedule.retire_for);
    let mut is_changed = keys.len() != before;
    let find = |keys: &[KeyState], stage| keys.iter().position(|key| key.stage == stage);
    let (active, next) = (find(keys, KeyStage::Active), find(keys, KeyStage::Next));
    let is_due = match (active, next) {
        // Nothing else can sign.
        (None, Some(_)) => true,
        (Some(active), Some(next)) => {
            now.since(keys[active].since) >= schedule.rotate_every
                && now.since(keys[next].since) >= schedule.publish_ahead
        }
        (_, None) => false,
    };
    if is_due {
        for (index, stage) in [(active, KeyStage::Retiring), (next, KeyStage::Active)] {
            if let Some(key) = index.and_then(|index| keys.get_mut(index)) {
                (key.stage, key.since) = (stage, now);
            }
        }
        is_changed = true;
    }
    Turn { is_changed, wants_key: find(keys, KeyStage::Next).is_none() }
}
