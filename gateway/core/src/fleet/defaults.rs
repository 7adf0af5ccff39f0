//! What a capability goes by where its card does not say: breakers by effect, and times by tier.

use reach_schemas::{BreakerPolicy, Capability, Effect, Span, Tier};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::Map;

/// What a capability goes by that does not say.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Defaults {
    /// How long one attempt may take, by tier.
    pub timeout: Timeouts,
    /// When a breaker opens and closes, by effect.
    pub breaker: Breakers,
}

/// How long one attempt may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Timeouts {
    /// Of the tier `fast`.
    pub fast: Span,
    /// Of the tier `normal`.
    pub normal: Span,
    /// Of the tier `long`.
    pub long: Span,
}

impl Default for Timeouts {
    fn default() -> Self {
        let [fast, normal, long] = Tier::ALL.map(Tier::attempt_timeout);
        Self { fast, normal, long }
    }
}

/// When a breaker opens and closes.
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Breakers {
    /// Of what changes nothing.
    pub read: BreakerPolicy,
    /// Of what may be repeated.
    pub idempotent_write: BreakerPolicy,
    /// Of what may not.
    #[serde(deserialize_with = "of_write")]
    pub write: BreakerPolicy,
}

/// What is not said of a `write` is as usual for a `write`.
fn of_write<'de, D: Deserializer<'de>>(from: D) -> Result<BreakerPolicy, D::Error> {
    let mut said = Map::deserialize(from)?;
    let usual = BreakerPolicy::for_effect(Effect::Write).failures_in_row;
    said.entry("failures_in_row").or_insert_with(|| usual.into());
    serde_json::from_value(said.into()).map_err(D::Error::custom)
}

impl Default for Breakers {
    fn default() -> Self {
        Self {
            read: BreakerPolicy::for_effect(Effect::Read),
            idempotent_write: BreakerPolicy::for_effect(Effect::IdempotentWrite),
            write: BreakerPolicy::for_effect(Effect::Write),
        }
    }
}

impl Defaults {
    /// When the breaker of a capability opens and closes.
    #[must_use]
    pub fn breaker_of(&self, capability: &Capability) -> BreakerPolicy {
        capability.breaker.unwrap_or(match capability.effect {
            Effect::Read => self.breaker.read,
            Effect::IdempotentWrite => self.breaker.idempotent_write,
            Effect::Write => self.breaker.write,
        })
    }

    /// How long one attempt at a capability may take.
    #[must_use]
    pub fn timeout_of(&self, capability: &Capability) -> Span {
        capability.timeout.unwrap_or(match capability.tier {
            Tier::Fast => self.timeout.fast,
            Tier::Normal => self.timeout.normal,
            Tier::Long => self.timeout.long,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_left_out_is_as_usual_for_the_effect() {
        let read: Defaults = serde_json::from_str(
            r#"{"timeout":{"fast":"1s"},"breaker":{"write":{"window":20},"read":{"failures_in_row":9}}}"#,
        )
        .unwrap();
        let usual = Defaults::default();
        assert_eq!(read.timeout, Timeouts { fast: Span::from_secs(1), ..usual.timeout });
        assert_eq!(read.breaker.write, BreakerPolicy { window: 20, ..usual.breaker.write });
        assert_eq!((read.breaker.write.failures_in_row, read.breaker.read.failures_in_row), (2, 9));
        assert_eq!(read.breaker.idempotent_write, usual.breaker.idempotent_write);
        assert!(serde_json::from_str::<Defaults>(r#"{"breaker":{"write":{"windw":20}}}"#).is_err());
    }

    #[test]
    fn a_default_is_held_to_what_a_card_may_say() {
        let mut defaults = Defaults::default();
        assert_eq!(defaults.check(), Ok(()));
        defaults.breaker.write.window = 0;
        defaults.timeout.long = Span::ZERO;
        let told = defaults.check().unwrap_err().to_string();
        assert!(told.contains("defaults.breaker.write.window: is 0"), "{told}");
        assert!(told.contains("defaults.timeout.long"), "{told}");
    }
}
