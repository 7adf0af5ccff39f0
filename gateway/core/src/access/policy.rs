//! The operator's policy, checked and made ready: what it says of one subject is worked out once, and asked for each call.
//! It only ever says no, or joins the yes of both cards; that a card says no it cannot mend.

use std::sync::Arc;

use reach_schemas::pattern::{AgentPattern, CapabilityPattern};
use reach_schemas::policy::{NOTE_MAX, RULES_MAX};
use reach_schemas::{Across, Action, AgentCard, AgentId, CapabilityName, PolicyRule, Ruling};

use crate::fleet::MISTAKES_MAX;

/// One thing that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub at: String,
    /// What.
    pub says: String,
}

/// A policy whose patterns are read.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Policy {
    version: u64,
    across: Across,
    rules: Vec<Rule>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    /// Its place in the policy as it was written.
    at: usize,
    ruling: Ruling,
    subject: AgentPattern,
    actions: Vec<Action>,
    object: AgentPattern,
    capability: Option<CapabilityPattern>,
}

/// What a policy says of one subject.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Rulings {
    across: Across,
    denials: Vec<Rule>,
    allowances: Vec<Rule>,
}

/// Why the policy says no.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum No {
    /// A rule denies it: its place.
    Denied(usize),
    /// It crosses namespaces, and no rule allows that.
    NotAllowed,
}

impl std::fmt::Display for No {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Denied(at) => write!(f, "rules[{at}] of the policy denies it"),
            Self::NotAllowed => f.write_str("no rule of the policy allows it across namespaces"),
        }
    }
}

impl Rule {
    /// Whether it is about this. With no capability named it is the agent as a whole that is asked about: then a denial of
    /// some capabilities is not about it, and an allowance of some is.
    fn is_about(&self, action: Action, object: &AgentId, capability: Option<&CapabilityName>) -> bool {
        let fits = match (&self.capability, capability) {
            (None, _) => true,
            (Some(pattern), Some(name)) => pattern.matches(name),
            (Some(_), None) => self.ruling == Ruling::Allow,
        };
        fits && self.actions.contains(&action) && self.object.matches(object)
    }
}

impl Rulings {
    /// Whether the subject, which lives in `own`, may do this as far as the policy has a say.
    pub(super) fn refusal(
        &self,
        action: Action,
        own: &str,
        object: &AgentId,
        capability: Option<&CapabilityName>,
    ) -> Option<No> {
        if let Some(rule) = self.denials.iter().find(|rule| rule.is_about(action, object, capability)) {
            return Some(No::Denied(rule.at));
        }
        if own == object.namespace_str() || self.across == Across::Cards {
            return None;
        }
        let is_allowed = self.allowances.iter().any(|rule| rule.is_about(action, object, capability));
        (!is_allowed).then_some(No::NotAllowed)
    }

    /// Whether the subject may do this with all that the object offers, or may come to offer, whatever it is named: no rule
    /// denies it any of that, and across namespaces one allows it without naming capabilities.
    pub(super) fn allows_all(&self, action: Action, own: &str, object: &AgentId) -> bool {
        let is_about = |rule: &&Rule| rule.actions.contains(&action) && rule.object.matches(object);
        if self.denials.iter().any(|rule| is_about(&rule)) {
            return false;
        }
        let is_of_all = |rule: &Rule| rule.capability.as_ref().is_none_or(CapabilityPattern::is_of_all);
        own == object.namespace_str()
            || self.across == Across::Cards
            || self.allowances.iter().filter(is_about).any(is_of_all)
    }
}

impl Policy {
    /// Reads a policy as it is written. Beside it: which of its rules change nothing.
    ///
    /// # Errors
    /// All that is wrong with it, each with its place.
    pub fn check(version: u64, across: Across, rules: &[PolicyRule]) -> Result<(Self, Vec<String>), Vec<Mistake>> {
        let mut mistakes = Vec::new();
        if rules.len() > RULES_MAX {
            let says = format!("has {} entries, at most {RULES_MAX} are taken", rules.len());
            mistakes.push(Mistake { at: "rules".to_owned(), says });
        }
        let read: Vec<Option<Rule>> =
            rules.iter().take(RULES_MAX).enumerate().map(|(at, rule)| read(at, rule, &mut mistakes)).collect();
        let rules: Vec<Rule> = read.into_iter().flatten().collect();
        if !mistakes.is_empty() {
            mistakes.truncate(MISTAKES_MAX);
            return Err(mistakes);
        }
        let warnings = rules.iter().filter_map(|rule| idle(rule, across)).collect();
        Ok((Self { version, across, rules }, warnings))
    }

    /// Which version of it this is; 0 if none was ever made.
    #[must_use]
    pub const fn version(&self) -> u64 {
        self.version
    }

    /// What it says of one subject.
    #[must_use]
    pub fn of(&self, subject: &AgentId) -> Arc<Rulings> {
        let own = |ruling: Ruling| -> Vec<Rule> {
            let is_own = |rule: &&Rule| rule.ruling == ruling && rule.subject.matches(subject);
            self.rules.iter().filter(is_own).cloned().collect()
        };
        Arc::new(Rulings { across: self.across, denials: own(Ruling::Deny), allowances: own(Ruling::Allow) })
    }

    /// What of a card its agent may not declare: all of it, each with the rule that says so.
    #[must_use]
    pub fn undeclarable(&self, card: &AgentCard) -> Vec<Mistake> {
        let (agent, own) = (&card.agent_id, self.of(&card.agent_id));
        let refusal =
            |capability: &CapabilityName| own.refusal(Action::Register, agent.namespace_str(), agent, Some(capability));
        let capabilities = card.capabilities.iter().enumerate();
        let refused = capabilities.filter_map(|(at, capability)| {
            let no = refusal(&capability.name)?;
            let says = format!("{agent} may not declare {}: {no}", capability.name);
            Some(Mistake { at: format!("capabilities[{at}].name"), says })
        });
        refused.collect()
    }
}

fn read(at: usize, rule: &PolicyRule, mistakes: &mut Vec<Mistake>) -> Option<Rule> {
    let before = mistakes.len();
    let mut wrong = |field: &str, says: String| mistakes.push(Mistake { at: format!("rules[{at}]{field}"), says });
    let mut agents = |field: &str, text: &str| match text.parse::<AgentPattern>() {
        Ok(pattern) => Some(pattern),
        Err(error) => {
            wrong(field, error.to_string());
            None
        }
    };
    let (subject, object) = (agents(".subject", &rule.subject), agents(".object", &rule.object));
    let capability = match rule.capability.as_ref().map(|text| text.parse::<CapabilityPattern>()) {
        None => None,
        Some(Ok(pattern)) => Some(pattern),
        Some(Err(error)) => {
            wrong(".capability", error.to_string());
            None
        }
    };
    if rule.actions.is_empty() {
        wrong(".actions", "is empty: name at least one of list, call, subscribe, register".to_owned());
    }
    let mut actions = Vec::new();
    for (place, name) in rule.actions.iter().enumerate() {
        match Action::by_name(name) {
            Some(action) if !actions.contains(&action) => actions.push(action),
            Some(_) => wrong(&format!(".actions[{place}]"), format!("{name:?} is there twice")),
            None => {
                wrong(&format!(".actions[{place}]"), format!("{name:?} is none of list, call, subscribe, register"));
            }
        }
    }
    if let Some(note) = rule.note.as_ref().filter(|note| note.len() > NOTE_MAX) {
        wrong(".note", format!("has {} bytes, at most {NOTE_MAX} are taken", note.len()));
    }
    let rule = Rule { at, ruling: rule.ruling, subject: subject?, actions, object: object?, capability };
    (mistakes.len() == before).then_some(rule)
}

/// Why a rule changes nothing, if that can be seen from the policy alone.
fn idle(rule: &Rule, across: Across) -> Option<String> {
    let why = match rule.ruling {
        Ruling::Deny => return None,
        Ruling::Allow if across == Across::Cards => "between namespaces both cards are enough: `across` is \"cards\"",
        Ruling::Allow if rule.actions == [Action::Register] => "nothing has to be allowed to be declared",
        Ruling::Allow => return None,
    };
    Some(format!("rules[{}] changes nothing: {why}", rule.at))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rule(ruling: &str, text: &str) -> PolicyRule {
        let mut words = text.split_whitespace();
        let mut next = || words.next().map(str::to_owned);
        let (subject, actions, object) = (next().unwrap(), next().unwrap(), next().unwrap());
        let ruling = if ruling == "allow" { Ruling::Allow } else { Ruling::Deny };
        let actions = actions.split(',').map(str::to_owned).collect();
        PolicyRule { ruling, subject, actions, object, capability: next(), note: None }
    }

    fn policy(across: Across, rules: &[(&str, &str)]) -> Policy {
        let rules: Vec<PolicyRule> = rules.iter().map(|(ruling, text)| rule(ruling, text)).collect();
        Policy::check(1, across, &rules).unwrap().0
    }

    #[track_caller]
    fn check(policy: &Policy, question: &str, expected: Option<No>) {
        let words: Vec<&str> = question.split_whitespace().collect();
        let subject: AgentId = words[0].parse().unwrap();
        let capability = words.get(3).map(|name| name.parse().unwrap());
        let action = Action::by_name(words[1]).unwrap();
        let object = words[2].parse().unwrap();
        let said = policy.of(&subject).refusal(action, subject.namespace_str(), &object, capability.as_ref());
        assert_eq!(said, expected, "{question}");
    }

    #[test]
    fn a_policy_without_rules_leaves_it_to_the_cards() {
        check(&Policy::default(), "a@x call b@x pay", None);
        check(&Policy::default(), "a@x call b@y pay", None);
    }

    #[test]
    fn a_denial_wins_over_an_allowance_wherever_it_stands_and_within_a_namespace_too() {
        for rules in [
            [("deny", "*@x call *@y"), ("allow", "a@x call b@y")],
            [("allow", "a@x call b@y"), ("deny", "*@x call *@y")],
        ] {
            let policy = policy(Across::Rules, &rules);
            let at = rules.iter().position(|(ruling, _)| *ruling == "deny").unwrap();
            check(&policy, "a@x call b@y", Some(No::Denied(at)));
        }
        check(&policy(Across::Cards, &[("deny", "a@x call b@x")]), "a@x call b@x", Some(No::Denied(0)));
    }

    #[test]
    fn across_namespaces_the_rules_must_say_yes_where_the_policy_says_so() {
        let rules = [("allow", "a@x call b@y pay_*")];
        check(&policy(Across::Rules, &rules), "a@x call b@y pay_out", None);
        check(&policy(Across::Rules, &rules), "a@x call b@y read", Some(No::NotAllowed));
        check(&policy(Across::Rules, &rules), "a@x list b@y pay_out", Some(No::NotAllowed));
        check(&policy(Across::Rules, &rules), "c@x call b@y pay_out", Some(No::NotAllowed));
        check(&policy(Across::Rules, &rules), "a@x call c@x anything", None);
        check(&policy(Across::Cards, &rules), "c@x call b@y pay_out", None);
    }

    #[test]
    fn what_is_denied_of_some_capabilities_is_not_denied_of_the_agent() {
        let policy = policy(Across::Cards, &[("deny", "a@x list,call b@x pay_*")]);
        check(&policy, "a@x list b@x", None);
        check(&policy, "a@x list b@x pay_out", Some(No::Denied(0)));
        check(&policy, "a@x list b@x read", None);
    }

    #[test]
    fn all_of_an_agent_is_allowed_only_where_nothing_of_it_is_denied() {
        let all = |policy: &Policy, object: &str| {
            let subject: AgentId = "a@x".parse().unwrap();
            policy.of(&subject).allows_all(Action::Call, "x", &object.parse().unwrap())
        };
        let some = policy(Across::Cards, &[("deny", "a@x call b@* pay_*"), ("deny", "a@x list c@x")]);
        assert!(!all(&some, "b@x") && !all(&some, "b@y") && all(&some, "c@x") && all(&some, "c@y"));
        let named = [("allow", "a@x call b@y pay_*"), ("allow", "a@x call c@y *"), ("allow", "a@x call d@y")];
        let named = policy(Across::Rules, &named);
        assert!(!all(&named, "b@y") && all(&named, "c@y") && all(&named, "d@y") && !all(&named, "e@y"));
        assert!(all(&named, "b@x"));
    }

    #[test]
    fn every_mistake_is_told_at_once_with_its_place() {
        let mut wrong = vec![rule("deny", "media lst,call,call b@y Pay*"), rule("allow", "a@x call b@y")];
        wrong[1].actions.clear();
        wrong[1].note = Some("n".repeat(NOTE_MAX + 1));
        let told = Policy::check(1, Across::Cards, &wrong).unwrap_err();
        let places: Vec<&str> = told.iter().map(|mistake| mistake.at.as_str()).collect();
        let expected = [
            "rules[0].subject",
            "rules[0].capability",
            "rules[0].actions[0]",
            "rules[0].actions[2]",
            "rules[1].actions",
            "rules[1].note",
        ];
        assert_eq!(places, expected);
        let many = vec![rule("deny", "a@x call b@x"); RULES_MAX + 1];
        assert_eq!(Policy::check(1, Across::Cards, &many).unwrap_err()[0].at, "rules");
    }

    #[test]
    fn a_rule_that_changes_nothing_is_told() {
        let rules = [rule("allow", "a@x call b@y"), rule("deny", "a@x call b@y")];
        assert_eq!(Policy::check(1, Across::Cards, &rules).unwrap().1.len(), 1);
        assert!(Policy::check(1, Across::Rules, &rules).unwrap().1.is_empty());
    }
}
