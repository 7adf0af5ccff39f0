//! How fast each agent, and each namespace, may ask. Operators are not held to it.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

use reach_core::access::Caller;
use reach_core::rate::{Pace, Rate};
use reach_schemas::{ErrorCode, Failure, Timestamp};

/// How many agents and namespaces are counted at once.
const COUNTED_MAX: usize = 65_536;

/// What may be set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimits {
    /// How fast one agent may ask.
    pub caller: Rate,
    /// How fast all agents of one namespace may ask together.
    pub namespace: Rate,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self { caller: Rate { per_second: 2000, burst: 4000 }, namespace: Rate { per_second: 10_000, burst: 20_000 } }
    }
}

/// What each has used.
#[derive(Debug, Default)]
pub struct Rates {
    paces: Mutex<HashMap<String, Pace>>,
}

impl Rates {
    /// Lets one more request of a caller through.
    ///
    /// # Errors
    /// It, or its namespace, asks too fast: `overloaded`, and when to ask again.
    pub fn admit(&self, caller: &Caller, limits: &RateLimits, now: Timestamp) -> Result<(), Failure> {
        let Some(agent) = caller.agent_id() else { return Ok(()) };
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if paces.len() + 2 > COUNTED_MAX {
            paces.retain(|_, pace| !pace.is_idle(now));
        }
        if paces.len() + 2 > COUNTED_MAX {
            // So many are never busy at once unless their names are made up; what they used is forgiven.
            paces.clear();
        }
        // The agent's own first: who asks too fast must not use up what its namespace has.
        for (who, rate) in [(agent.as_str(), limits.caller), (agent.namespace_str(), limits.namespace)] {
            let pace = match paces.get_mut(who) {
                Some(pace) => pace,
                None => paces.entry(who.to_owned()).or_default(),
            };
            if let Err(wait) = pace.take(rate, now) {
                let message = format!("{who} asks more than {} times a second; nothing was done", rate.per_second);
                return Err(Failure { retry_after: Some(wait), ..Failure::new(ErrorCode::Overloaded, message) });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use reach_schemas::{Access, Span};

    use super::*;

    fn agent(id: &str) -> Caller {
        Caller::Agent { id: id.parse().unwrap(), access: Access::default(), rulings: Arc::default() }
    }

    #[test]
    fn one_caller_too_fast_is_told_when_to_come_again_and_the_others_are_not_held_up() {
        let rates = Rates::default();
        let rate = |burst| Rate { per_second: 10, burst };
        let limits = RateLimits { caller: rate(2), namespace: rate(3) };
        let ask = |id: &str| rates.admit(&agent(id), &limits, Timestamp::from_ms(5000));
        assert!(ask("a@x").is_ok() && ask("a@x").is_ok());
        let refused = ask("a@x").unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (ErrorCode::Overloaded, Some(Span::from_ms(100))));
        assert!(ask("b@x").is_ok(), "what was refused uses nothing up");
        assert!(ask("b@x").unwrap_err().message.starts_with("x asks"), "the namespace is at its limit");
        assert!(ask("a@y").is_ok());
    }

    #[test]
    fn made_up_names_do_not_fill_the_memory() {
        let rates = Rates::default();
        for number in 0..COUNTED_MAX + 10 {
            let caller = agent(&format!("a{number}@n{number}"));
            rates.admit(&caller, &RateLimits::default(), Timestamp::from_ms(5000)).unwrap();
        }
        assert!(rates.paces.lock().unwrap().len() <= COUNTED_MAX);
    }
}
