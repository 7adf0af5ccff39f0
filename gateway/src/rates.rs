//! How fast each agent, each namespace and each operator with a token may ask. Whoever has the gateway's own machine is not
//! held to it, and neither is an operator where callers are not asked who they are.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use reach_core::access::{Caller, Operator};
use reach_core::rate::{Pace, Rate};
use reach_schemas::{AgentId, ErrorCode, Failure, Span, Timestamp};

/// How many agents and namespaces are counted at once.
const COUNTED_MAX: usize = 65_536;
/// How many tries to get in may fail.
const TRIES: Rate = Rate { per_second: 5, burst: 100 };
/// How long somebody is told at most to wait whose tries have failed: others may be at the same address.
const TRIES_WAIT_MAX: Span = Span::from_mins(1);

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
    /// Lets one more request of an agent through.
    ///
    /// # Errors
    /// It, or its namespace, asks too fast: `overloaded`, and when to ask again.
    pub fn admit_agent(&self, id: &AgentId, limits: &RateLimits, now: Timestamp) -> Result<(), Failure> {
        // The agent's own first: who asks too fast must not use up what its namespace has.
        self.admit(&[(id.as_str(), limits.caller), (id.namespace_str(), limits.namespace)], now)
    }

    /// Lets one more request of an operator through.
    ///
    /// # Errors
    /// It asks too fast: `overloaded`, and when to ask again.
    pub fn admit_operator(&self, operator: &Operator, limits: &RateLimits, now: Timestamp) -> Result<(), Failure> {
        if operator.name.is_none() {
            return Ok(());
        }
        // No agent's id and no namespace has a colon in it.
        self.admit(&[(&Caller::Operator(operator.clone()).to_string(), limits.operator)], now)
    }

    /// Whether somebody may try to get in.
    ///
    /// # Errors
    /// Too many of its tries have failed: `overloaded`, and when to try again.
    pub fn may_try(&self, who: &str, now: Timestamp) -> Result<(), Failure> {
        let wait = self.paces().get(who).map_or(Ok(()), |pace| pace.look(TRIES, now));
        wait.map_err(|wait| {
            let message = "too many tries to get in have failed from there; nothing was looked at";
            Failure { retry_after: Some(wait.min(TRIES_WAIT_MAX)), ..Failure::new(ErrorCode::Overloaded, message) }
        })
    }

    /// Notes that a try to get in has failed. Those that were under way at once all count.
    pub fn has_failed(&self, who: &str, now: Timestamp) {
        let mut paces = self.paces();
        make_room(&mut paces, now);
        paces.entry(who.to_owned()).or_default().owe(TRIES, TRIES_WAIT_MAX, now);
    }

    fn paces(&self) -> MutexGuard<'_, HashMap<String, Pace>> {
        self.paces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn admit(&self, counted: &[(&str, Rate)], now: Timestamp) -> Result<(), Failure> {
        let mut paces = self.paces();
        make_room(&mut paces, now);
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

/// Keeps those who are counted few enough for one call more.
fn make_room(paces: &mut HashMap<String, Pace>, now: Timestamp) {
    if paces.len() + 2 > COUNTED_MAX {
        paces.retain(|_, pace| !pace.is_idle(now));
    }
    if paces.len() + 2 > COUNTED_MAX {
        // So many are never busy at once unless their names are made up; what they used is forgiven.
        paces.clear();
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::Role;

    use super::*;

    fn agent(id: &str) -> AgentId {
        id.parse().unwrap()
    }

    #[test]
    fn one_caller_too_fast_is_told_when_to_come_again_and_the_others_are_not_held_up() {
        let rates = Rates::default();
        let rate = |burst| Rate { per_second: 10, burst };
        let limits = RateLimits { caller: rate(2), namespace: rate(3), operator: rate(9) };
        let ask = |id: &str| rates.admit_agent(&agent(id), &limits, Timestamp::from_ms(5000));
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
        let operator = |name: &str| Operator { name: name.parse().ok(), role: Role::Admin };
        let ask = |operator: &Operator| rates.admit_operator(operator, &limits, Timestamp::from_ms(5000));
        assert!(ask(&operator("alice")).is_ok() && ask(&operator("alice")).is_ok());
        let refused = ask(&operator("alice")).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (ErrorCode::Overloaded, Some(Span::from_ms(100))));
        assert!(refused.message.starts_with("operator:alice asks"), "{}", refused.message);
        assert!(ask(&operator("bob")).is_ok());
        for _ in 0..100 {
            assert!(ask(&Operator { name: None, role: Role::Admin }).is_ok());
        }
    }

    #[test]
    fn made_up_names_do_not_fill_the_memory() {
        let rates = Rates::default();
        for number in 0..COUNTED_MAX + 10 {
            let caller = agent(&format!("a{number}@n{number}"));
            rates.admit_agent(&caller, &RateLimits::default(), Timestamp::from_ms(5000)).unwrap();
        }
        assert!(rates.paces.lock().unwrap().len() <= COUNTED_MAX);
    }

    #[test]
    fn tries_that_fail_are_bounded_however_many_are_under_way_and_are_forgiven_in_time() {
        let (rates, at) = (Rates::default(), |secs: u64| Timestamp::from_ms(5000 + 1000 * secs));
        for _ in 0..TRIES.burst {
            assert!(rates.may_try("a", at(0)).is_ok());
            rates.has_failed("a", at(0));
        }
        let refused = rates.may_try("a", at(0)).unwrap_err();
        assert_eq!((refused.code, refused.retry_after), (ErrorCode::Overloaded, Some(Span::from_ms(200))));
        assert!(rates.may_try("b", at(0)).is_ok());
        // A thousand more had begun before.
        (0..1000).for_each(|_| rates.has_failed("a", at(0)));
        assert_eq!(rates.may_try("a", at(0)).unwrap_err().retry_after, Some(TRIES_WAIT_MAX));
        assert!(rates.may_try("a", at(59)).is_err() && rates.may_try("a", at(61)).is_ok());
    }
}
