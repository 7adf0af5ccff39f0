//! How fast each agent, each namespace and each operator with a token may ask. Whoever has the gateway's own machine is not
//! held to it, and neither is an operator where callers are not asked who they are.

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
    /// How fast one operator may ask, by its token.
    pub operator: Rate,
}

impl Default for RateLimits {
    fn default() -> Self {
        Self {
            caller: Rate { per_second: 2000, burst: 4000 },
            namespace: Rate { per_second: 10_000, burst: 20_000 },
            operator: Rate { per_second: 5000, burst: 10_000 },
        }
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
        let operator;
        let counted: &[(&str, Rate)] = match caller {
            // The agent's own first: who asks too fast must not use up what its namespace has.
            Caller::Agent { id, .. } => &[(id.as_str(), limits.caller), (id.namespace_str(), limits.namespace)],
            Caller::Operator(named) if named.name.is_some() => {
                // No agent's id and no namespace has a colon in it.
                operator = caller.to_string();
                &[(operator.as_str(), limits.operator)]
            }
            Caller::Operator(_) => return Ok(()),
        };
        let mut paces = self.paces.lock().unwrap_or_else(PoisonError::into_inner);
        if paces.len() + 2 > COUNTED_MAX {
            paces.retain(|_, pace| !pace.is_idle(now));
        }
        if paces.len() + 2 > COUNTED_MAX {
            // So many are never busy at once unless their names are made up; what they used is forgiven.
            paces.clear();
        }
        for &(who, rate) in counted {
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

    use reach_core::access::Operator;
    use reach_schemas::{Access, Role, Span};

    use super::*;

    fn agent(id: &str) -> Caller {
        Caller::Agent { id: id.parse().unwrap(), access: Access::default(), rulings: Arc::default() }
    }

    #[test]
    fn one_caller_too_fast_is_told_when_to_come_again_and_the_others_are_not_held_up() {
        let rates = Rates::default();
        let rate = |burst| Rate { per_second: 10, burst };
        let limits = RateLimits { caller: rate(2), namespace: rate(3), operator: rate(9) };
        let ask = |id: &str| rates.admit(&agent(id), &limits, Timestamp::from_ms(5000));
        assert!(ask("a@x").is_ok() && ask("a@x").is_ok());
        let refused = ask("a@x").unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (ErrorCode::Overloaded, Some(Span::from_ms(100))));
        assert!(ask("b@x").is_ok(), "what was refused uses nothing up");
        assert!(ask("b@x").unwrap_err().message.starts_with("x asks"), "the namespace is at its limit");
        assert!(ask("a@y").is_ok());
    }

    #[test]
    fn an_operator_with_a_token_has_a_pace_of_its_own_and_whoever_has_the_machine_has_none() {
        let rates = Rates::default();
        let rate = |burst| Rate { per_second: 10, burst };
        let limits = RateLimits { caller: rate(9), namespace: rate(9), operator: rate(2) };
        let operator = |name: &str| Caller::Operator(Operator { name: name.parse().ok(), role: Role::Admin });
        let ask = |caller: &Caller| rates.admit(caller, &limits, Timestamp::from_ms(5000));
        assert!(ask(&operator("alice")).is_ok() && ask(&operator("alice")).is_ok());
        let refused = ask(&operator("alice")).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (ErrorCode::Overloaded, Some(Span::from_ms(100))));
        assert!(refused.message.starts_with("operator:alice asks"), "{}", refused.message);
        assert!(ask(&operator("bob")).is_ok());
        for _ in 0..100 {
            assert!(ask(&Caller::OPERATOR).is_ok());
        }
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
