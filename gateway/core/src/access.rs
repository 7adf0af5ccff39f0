//! Who may do what: the role that a method needs, and the two gates that every reach passes, the caller's `may_call`
//! and the target's `callable_by`, with the operator's policy on top. It never asks who the caller is; that is proven
//! before, at the edge.

pub mod policy;

use std::fmt;
use std::sync::Arc;

use reach_schemas::pattern::AgentPattern;
use reach_schemas::{Access, Action, AgentId, CapabilityName, OperatorName, Permission, Role};

use self::policy::{No, Rulings};

/// Who asks.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Caller {
    /// A person or tool that operates the gateway.
    Operator(Operator),
    /// An agent.
    Agent {
        /// Which.
        id: AgentId,
        /// What its card says of access.
        access: Access,
        /// What the operator's policy says of it.
        rulings: Arc<Rulings>,
    },
}

/// A person or tool that operates the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Operator {
    /// Who. None: whoever has the gateway's own machine, or anybody where callers are not asked who they are.
    pub name: Option<OperatorName>,
    /// What they may do.
    pub role: Role,
}

impl Caller {
    /// Whoever has the gateway's own machine, and may do everything.
    pub const OPERATOR: Self = Self::Operator(Operator { name: None, role: Role::Admin });

    /// The agent that asks. None: an operator.
    #[must_use]
    pub const fn agent_id(&self) -> Option<&AgentId> {
        match self {
            Self::Operator(_) => None,
            Self::Agent { id, .. } => Some(id),
        }
    }
}

impl fmt::Display for Caller {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            // No agent's id has a colon in it.
            Self::Operator(Operator { name: Some(name), .. }) => write!(f, "operator:{name}"),
            Self::Operator(Operator { name: None, .. }) => f.pad("operator"),
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
    /// The operator's policy.
    Policy,
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

/// Whether the caller may do something with the target, or with one of its capabilities. Both gates must let it pass, and
/// the policy too. A gate that is not set lets pass the agent's own namespace, so that across namespaces both sides have to
/// say yes by name; one that is set says all: a list that leaves the own namespace out closes it. Who may not
/// [list](Action::List) the target may do nothing with it. The operator passes.
///
/// # Errors
/// The first that says no: the caller's own gate, the target's, then the policy.
pub fn allows(
    caller: &Caller,
    action: Action,
    target: &AgentId,
    target_access: &Access,
    capability: Option<&CapabilityName>,
) -> Result<(), Denial> {
    match closed(caller, action, target, target_access, capability) {
        None => Ok(()),
        Some((gate, id, why)) => Err(Denial::new(gate, format!("{id} may not {} {target}: {why}", action.as_str()))),
    }
}

/// Whether the caller may know of the target at all, for those who ask about many and tell nobody why. What it may not
/// know of is never named to it.
#[must_use]
pub fn may_list(caller: &Caller, target: &AgentId, target_access: &Access) -> bool {
    closed(caller, Action::List, target, target_access, None).is_none()
}

/// Whether the caller may have this done by the target, and hence see it offered.
#[must_use]
pub fn may_call(caller: &Caller, target: &AgentId, target_access: &Access, capability: &CapabilityName) -> bool {
    closed(caller, Action::Call, target, target_access, Some(capability)).is_none()
}

/// Whether the caller may have anything done by the target, whatever it is named and whether or not it has a name yet: for
/// those who reach it past the router, where nobody sees what is asked.
#[must_use]
pub fn may_call_all(caller: &Caller, target: &AgentId, target_access: &Access) -> bool {
    let Caller::Agent { id, rulings, .. } = caller else { return true };
    closed(caller, Action::Call, target, target_access, None).is_none()
        && [Action::List, Action::Call].into_iter().all(|action| rulings.allows_all(action, id.namespace_str(), target))
}

/// The first that says no, of which agent, and why.
fn closed<'a>(
    caller: &'a Caller,
    action: Action,
    target: &AgentId,
    target_access: &Access,
    capability: Option<&CapabilityName>,
) -> Option<(Gate, &'a AgentId, Why)> {
    let Caller::Agent { id, access, rulings } = caller else { return None };
    if !lets_pass(access.may_call.as_deref(), target, id) {
        return Some((Gate::Caller, id, Why::Card("its own may_call does not name it")));
    }
    if !lets_pass(target_access.callable_by.as_deref(), id, target) {
        return Some((Gate::Target, id, Why::Card("the target's callable_by does not name the caller")));
    }
    let says_no = |action| rulings.refusal(action, id.namespace_str(), target, capability);
    let no = says_no(Action::List).or_else(|| if action == Action::List { None } else { says_no(action) });
    no.map(|no| (Gate::Policy, id, Why::Policy(no)))
}

enum Why {
    Card(&'static str),
    Policy(No),
}

impl fmt::Display for Why {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Card(why) => f.write_str(why),
            Self::Policy(no) => no.fmt(f),
        }
    }
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

/// The least role of an operator that may do a thing. Agents have none: see [`is_for_agents`].
#[must_use]
pub const fn least_role(permission: Permission) -> Role {
    match permission {
        Permission::Enrol | Permission::Discover | Permission::OwnTask | Permission::View => Role::Viewer,
        Permission::Serve | Permission::Call | Permission::EndTask | Permission::Operate => Role::Operator,
        Permission::Administer => Role::Admin,
    }
}

/// Whether agents may do a thing.
#[must_use]
pub const fn is_for_agents(permission: Permission) -> bool {
    match permission {
        Permission::Enrol
        | Permission::Serve
        | Permission::Discover
        | Permission::Call
        | Permission::OwnTask
        | Permission::EndTask => true,
        Permission::View | Permission::Operate | Permission::Administer => false,
    }
}

/// Checks the caller's role.
///
/// # Errors
/// The caller is an agent and the permission is an operator's, or the operator's role is too small for it.
pub fn authorize(caller: Caller, permission: Permission) -> Result<Grant, Denial> {
    let role = least_role(permission);
    let why = match &caller {
        Caller::Agent { id, .. } if !is_for_agents(permission) => {
            format!("{id} is an agent, and this needs an operator's token with the role {role}")
        }
        Caller::Operator(operator) if operator.role < role => {
            format!("this needs the role {role}, and {caller} is {}", operator.role)
        }
        Caller::Agent { .. } | Caller::Operator(_) => return Ok(Grant { caller, permission }),
    };
    Err(Denial::new(Gate::Role, why))
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

    /// Whether the caller may do something with the target: see [`allows`].
    ///
    /// # Errors
    /// As [`allows`].
    pub fn may(
        &self,
        action: Action,
        target: &AgentId,
        target_access: &Access,
        capability: Option<&CapabilityName>,
    ) -> Result<(), Denial> {
        allows(&self.caller, action, target, target_access, capability)
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
            Caller::Agent { .. } | Caller::Operator(_) => Ok(()),
        }
    }

    /// Whether a task that `submitted_by` asked for (none: the operator) is the caller's own. The operator sees all.
    #[must_use]
    pub fn owns(&self, submitted_by: Option<&AgentId>) -> bool {
        match &self.caller {
            Caller::Operator(_) => true,
            Caller::Agent { id, .. } => submitted_by == Some(id),
        }
    }
}

#[cfg(test)]
mod tests {
    use reach_schemas::{Across, PolicyRule, Ruling};

    use super::policy::Policy;
    use super::*;

    fn patterns(text: &str) -> Option<Vec<AgentPattern>> {
        (text != "unset").then(|| text.split_whitespace().map(|pattern| pattern.parse().unwrap()).collect())
    }

    fn agent(id: &str, may_call: &str) -> Caller {
        let access = Access { may_call: patterns(may_call), callable_by: None };
        Caller::Agent { id: id.parse().unwrap(), access, rulings: Arc::default() }
    }

    #[track_caller]
    fn check(caller: (&str, &str), target: (&str, &str), expected: Option<Gate>) {
        let target_access = Access { callable_by: patterns(target.1), may_call: None };
        let (caller_, target_) = (agent(caller.0, caller.1), target.0.parse().unwrap());
        let answer = allows(&caller_, Action::Call, &target_, &target_access, None);
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
        let (caller, target) = (agent("a@x", "unset"), "b@y".parse().unwrap());
        let denial = allows(&caller, Action::Call, &target, &Access::default(), None).unwrap_err();
        assert_eq!(denial.to_string(), "a@x may not call b@y: its own may_call does not name it");
    }

    #[test]
    fn each_role_may_do_what_is_its_own_and_what_those_before_it_may() {
        let may = |role, permission| {
            authorize(Caller::Operator(Operator { name: "o".parse().ok(), role }), permission).is_ok()
        };
        for (permission, roles) in [
            (Permission::Discover, 3),
            (Permission::OwnTask, 3),
            (Permission::View, 3),
            (Permission::Serve, 2),
            (Permission::Call, 2),
            (Permission::EndTask, 2),
            (Permission::Operate, 2),
            (Permission::Administer, 1),
        ] {
            let count = Role::ALL.into_iter().filter(|role| may(*role, permission)).count();
            assert_eq!(count, roles, "{permission:?}");
            assert_eq!(may(Role::Admin, permission), roles > 0);
        }
    }

    #[test]
    fn a_named_operator_has_keys_of_its_own() {
        let named = Caller::Operator(Operator { name: "alice".parse().ok(), role: Role::Viewer });
        assert_eq!((named.to_string().as_str(), Caller::OPERATOR.to_string().as_str()), ("operator:alice", "operator"));
    }

    #[test]
    fn only_the_operator_operates_and_passes_every_gate() {
        assert_eq!(authorize(agent("a@x", "unset"), Permission::Operate).map_err(|denial| denial.by), Err(Gate::Role));
        let grant = authorize(Caller::OPERATOR, Permission::Operate).unwrap();
        let closed = Access { callable_by: Some(Vec::new()), may_call: None };
        assert_eq!(grant.may(Action::Call, &"b@y".parse().unwrap(), &closed, None), Ok(()));
        assert!(grant.owns(None) && grant.owns(Some(&"b@y".parse().unwrap())));
    }

    #[test]
    fn the_policy_narrows_what_the_cards_let_pass_and_opens_nothing_that_they_close() {
        let rule = |ruling, actions: &[&str], object: &str| PolicyRule {
            ruling,
            subject: "*@x".to_owned(),
            actions: actions.iter().map(|action| (*action).to_owned()).collect(),
            object: object.to_owned(),
            capability: None,
            note: None,
        };
        let rules = [rule(Ruling::Deny, &["list"], "hidden@x"), rule(Ruling::Allow, &["list", "call"], "*@y")];
        let policy = Policy::check(1, Across::Rules, &rules).unwrap().0;
        let caller = |may_call: &str| match agent("a@x", may_call) {
            Caller::Agent { id, access, .. } => Caller::Agent { rulings: policy.of(&id), id, access },
            Caller::Operator(who) => Caller::Operator(who),
        };
        let ask = |may_call: &str, target: &str, callable_by: &str| {
            let access = Access { callable_by: patterns(callable_by), may_call: None };
            allows(&caller(may_call), Action::Call, &target.parse().unwrap(), &access, None).map_err(|denial| denial.by)
        };
        assert_eq!(ask("unset", "b@x", "unset"), Ok(()));
        assert_eq!(ask("unset", "hidden@x", "unset"), Err(Gate::Policy), "who may not list may not call");
        assert_eq!(ask("*@y", "b@y", "*@x"), Ok(()));
        assert_eq!(ask("unset", "b@y", "*@x"), Err(Gate::Caller), "an allowance is no card's yes");
        assert_eq!(ask("*@y", "b@y", "unset"), Err(Gate::Target));
        assert_eq!(ask("*@*", "b@z", "*@x"), Err(Gate::Policy), "both cards say yes, and the policy does not");
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
