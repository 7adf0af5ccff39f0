//! Who may do what: the role that a method needs, and the two gates that every reach passes, the caller's `may_call`
//! and the target's `callable_by`. It never asks who the caller is; that is proven before, at the edge.

use std::fmt;

use reach_schemas::pattern::AgentPattern;
use reach_schemas::{Access, AgentId, Permission};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A person or tool that operates the gateway.
    Operator,
    /// An agent.
    Agent {
        /// Which.
        id: AgentId,
        /// What its card says of access.
        access: Access,
    },
}

impl Caller {
    /// The agent that asks. None: the operator.
    #[must_use]
    pub const fn agent_id(&self) -> Option<&AgentId> {
        match self {
            Self::Operator => None,
            Self::Agent { id, .. } => Some(id),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Operator => f.pad("operator"),
            Self::Agent { id, .. } => id.fmt(f),
        }
    }
}

/// Which gate said no.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Gate {
    /// The caller's own `may_call`.
    Caller,
    /// The target's `callable_by`.
    Target,
    /// The caller's role: it is not the operator, or not the agent that the call names.
    Role,
}

/// A refusal, and which gate it came from.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{detail}")]
pub struct Denial {
    /// Which gate said no.
    pub by: Gate,
    detail: String,
}

impl Denial {
    fn new(by: Gate, detail: String) -> Self {
        Self { by, detail }
    }
}

/// Whether the caller may reach the target. Both gates must let it pass. A gate that is not set lets pass the agent's
/// own namespace, so that across namespaces both sides have to say yes by name; one that is set says all: a list that
/// leaves the own namespace out closes it. The operator passes both.
///
/// # Errors
/// The first gate that says no, the caller's own before the target's.
pub fn allows(caller: &Caller, target: &AgentId, target_access: &Access) -> Result<(), Denial> {
    match closed(caller, target, target_access) {
        None => Ok(()),
        Some((gate, id, why)) => Err(Denial::new(gate, format!("{id} may not call {target}: {why}"))),
    }
}

/// Whether [`allows`] lets the caller pass, for those who ask about many and tell nobody why.
#[must_use]
pub fn may_reach(caller: &Caller, target: &AgentId, target_access: &Access) -> bool {
    closed(caller, target, target_access).is_none()
}

/// The first gate that says no, to which agent, and why.
fn closed<'a>(
    caller: &'a Caller,
    target: &AgentId,
    target_access: &Access,
) -> Option<(Gate, &'a AgentId, &'static str)> {
    let Caller::Agent { id, access } = caller else { return None };
    if !lets_pass(access.may_call.as_deref(), target, id) {
        return Some((Gate::Caller, id, "its own may_call does not name it"));
    }
    if !lets_pass(target_access.callable_by.as_deref(), id, target) {
        return Some((Gate::Target, id, "the target's callable_by does not name the caller"));
    }
    None
}

fn lets_pass(gate: Option<&[AgentPattern]>, other: &AgentId, own: &AgentId) -> bool {
    match gate {
        Some(patterns) => patterns.iter().any(|pattern| pattern.matches(other)),
        None => other.namespace_str() == own.namespace_str(),
    }
}

/// The proof that a caller may do a kind of thing. Use cases take it by value, and only [`authorize`] makes one, so
/// that a check that was forgotten does not compile.
#[derive(Debug, PartialEq, Eq)]
pub struct Grant {
    caller: Caller,
    permission: Permission,
}

/// Checks the caller's role.
///
/// # Errors
/// The caller is an agent and the permission is the operator's.
pub fn authorize(caller: Caller, permission: Permission) -> Result<Grant, Denial> {
    match (&caller, permission) {
        (Caller::Agent { id, .. }, Permission::Operate) => {
            Err(Denial::new(Gate::Role, format!("{id} is an agent, and this needs the operator")))
        }
        (Caller::Operator, _)
        | (Caller::Agent { .. }, Permission::Serve | Permission::Discover | Permission::Call | Permission::OwnTask) => {
            Ok(Grant { caller, permission })
        }
    }
}

impl Grant {
    /// Who may.
    #[must_use]
    pub const fn caller(&self) -> &Caller {
        &self.caller
    }

    /// What it may.
    #[must_use]
    pub const fn permission(&self) -> Permission {
        self.permission
    }

    /// Whether the caller may reach the target: see [`allows`].
    ///
    /// # Errors
    /// As [`allows`].
    pub fn reaches(&self, target: &AgentId, target_access: &Access) -> Result<(), Denial> {
        allows(&self.caller, target, target_access)
    }

    /// Whether the caller is the agent that a call names. The operator may act for every agent.
    ///
    /// # Errors
    /// It is another agent.
    pub fn acts_as(&self, named: &AgentId) -> Result<(), Denial> {
        match &self.caller {
            Caller::Agent { id, .. } if id != named => {
                Err(Denial::new(Gate::Role, format!("{id} may not act as {named}")))
            }
            Caller::Agent { .. } | Caller::Operator => Ok(()),
        }
    }

    /// Whether a task that `submitted_by` asked for (none: the operator) is the caller's own. The operator sees all.
    #[must_use]
    pub fn owns(&self, submitted_by: Option<&AgentId>) -> bool {
        match &self.caller {
            Caller::Operator => true,
            Caller::Agent { id, .. } => submitted_by == Some(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn patterns(text: &str) -> Option<Vec<AgentPattern>> {
        (text != "unset").then(|| text.split_whitespace().map(|pattern| pattern.parse().unwrap()).collect())
    }

    fn agent(id: &str, may_call: &str) -> Caller {
        let access = Access { may_call: patterns(may_call), callable_by: None };
        Caller::Agent { id: id.parse().unwrap(), access }
    }

    #[track_caller]
    fn check(caller: (&str, &str), target: (&str, &str), expected: Option<Gate>) {
        let target_access = Access { callable_by: patterns(target.1), may_call: None };
        let answer = allows(&agent(caller.0, caller.1), &target.0.parse().unwrap(), &target_access);
        assert_eq!(answer.err().map(|denial| denial.by), expected, "{caller:?} to {target:?}");
    }

    #[test]
    fn within_a_namespace_all_may_and_across_namespaces_nobody_may_unless_said() {
        check(("a@x", "unset"), ("b@x", "unset"), None);
        check(("a@x", "unset"), ("b@y", "unset"), Some(Gate::Caller));
        check(("a@x", "unset"), ("b@xx", "unset"), Some(Gate::Caller));
    }

    #[test]
    fn across_namespaces_both_sides_must_say_yes() {
        check(("a@x", "*@y"), ("b@y", "a@x"), None);
        check(("a@x", "*@y"), ("b@y", "unset"), Some(Gate::Target));
        check(("a@x", "unset"), ("b@y", "*@*"), Some(Gate::Caller));
        check(("a@x", "c@y b@y"), ("b@y", "*@z a*@x"), None);
    }

    #[test]
    fn a_list_says_all_even_within_the_namespace() {
        check(("a@x", "*@y"), ("b@x", "unset"), Some(Gate::Caller));
        check(("a@x", ""), ("b@x", "unset"), Some(Gate::Caller));
        check(("a@x", "unset"), ("b@x", ""), Some(Gate::Target));
        check(("a@x", "unset"), ("b@x", "c@x"), Some(Gate::Target));
    }

    #[test]
    fn a_denial_says_who_which_gate_and_whom() {
        let denial = allows(&agent("a@x", "unset"), &"b@y".parse().unwrap(), &Access::default()).unwrap_err();
        assert_eq!(denial.to_string(), "a@x may not call b@y: its own may_call does not name it");
    }

    #[test]
    fn only_the_operator_operates_and_passes_every_gate() {
        assert_eq!(authorize(agent("a@x", "unset"), Permission::Operate).map_err(|denial| denial.by), Err(Gate::Role));
        let grant = authorize(Caller::Operator, Permission::Operate).unwrap();
        let closed = Access { callable_by: Some(Vec::new()), may_call: None };
        assert_eq!(grant.reaches(&"b@y".parse().unwrap(), &closed), Ok(()));
        assert!(grant.owns(None) && grant.owns(Some(&"b@y".parse().unwrap())));
    }

    #[test]
    fn an_agent_acts_only_as_itself_and_sees_only_its_own_tasks() {
        let (own, other): (AgentId, AgentId) = ("a@x".parse().unwrap(), "b@x".parse().unwrap());
        let grant = authorize(agent("a@x", "unset"), Permission::Serve).unwrap();
        assert_eq!(grant.acts_as(&own), Ok(()));
        assert_eq!(grant.acts_as(&other).map_err(|denial| denial.by), Err(Gate::Role));
        assert!(grant.owns(Some(&own)) && !grant.owns(Some(&other)) && !grant.owns(None));
    }
}
