//! What tools are called. Hosts take `a-z A-Z 0-9 _ -`, at most 64 characters, and nothing else; names of capabilities and
//! agents may hold dots, and two of them together are longer. The same tools have the same names, in whatever order
//! their agents came.

use std::collections::BTreeMap;

use sha2::{Digest, Sha256};

/// The longest name that every host takes.
pub(super) const NAME_MAX: usize = 64;
/// How many hexadecimal digits of the digest tell apart what would be called the same.
const DIGEST_LEN: usize = 8;
/// What stands between an agent and its capability.
const BETWEEN: &str = "__";

/// Who a tool is, before it has a name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Identity<'a> {
    /// Its capability.
    pub(super) capability: &'a str,
    /// The agent, as `name@namespace`, if the capability is another thing at each agent.
    pub(super) agent: Option<&'a str>,
}

impl Identity<'_> {
    fn whole(&self) -> String {
        match self.agent {
            Some(agent) => format!("{agent}/{}", self.capability),
            None => self.capability.to_owned(),
        }
    }

    /// The name without its dots, as long as it comes out.
    fn plain(&self) -> String {
        let agent = self.agent.map(|agent| agent.split_once('@').map_or(agent, |(name, _)| name));
        let name = match agent {
            Some(agent) => format!("{agent}{BETWEEN}{}", self.capability),
            None => self.capability.to_owned(),
        };
        name.replace('.', "_")
    }

    /// Whether nothing was changed to come to the plain name.
    fn is_plain(&self) -> bool {
        self.agent.is_none() && !self.capability.contains('.')
    }

    fn with_digest(&self) -> String {
        let digest: String = Sha256::digest(self.whole()).iter().map(|byte| format!("{byte:02x}")).collect();
        let mut name = self.plain();
        // The alphabet of names is ASCII.
        name.truncate(NAME_MAX - DIGEST_LEN - 1);
        format!("{name}-{}", &digest[..DIGEST_LEN])
    }
}

/// The names of these tools, in the same order. A name that is free and short enough is kept plain. Of several that would
/// be called the same, the one whose own name it is keeps it, unless it is `reserved`; the others get a digest of who they
/// are at their end.
pub(super) fn names(identities: &[Identity<'_>], reserved: &[&str]) -> Vec<String> {
    let mut wanted: BTreeMap<String, usize> = reserved.iter().map(|name| ((*name).to_owned(), 2)).collect();
    for identity in identities {
        *wanted.entry(identity.plain()).or_default() += 1;
    }
    let name = |identity: &Identity<'_>| {
        let plain = identity.plain();
        let is_alone = wanted.get(&plain).is_some_and(|count| *count == 1);
        let owns_it = identity.is_plain() && !reserved.contains(&plain.as_str());
        if plain.len() <= NAME_MAX && (is_alone || owns_it) { plain } else { identity.with_digest() }
    };
    identities.iter().map(name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(identities: &[(&str, Option<&str>)], expected: &[&str]) {
        let identities: Vec<_> =
            identities.iter().map(|(capability, agent)| Identity { capability, agent: *agent }).collect();
        let given = names(&identities, &["reach_find"]);
        assert_eq!(given, expected);
        let is_taken_by_hosts = |name: &String| {
            (1..=NAME_MAX).contains(&name.len())
                && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
        };
        assert!(given.iter().all(is_taken_by_hosts), "{given:?}");
    }

    #[test]
    fn a_free_name_is_kept_and_dots_become_underscores() {
        check(&[("web.search", None), ("sum-up", None)], &["web_search", "sum-up"]);
        check(&[("search", Some("a.b@x")), ("search", Some("c@x"))], &["a_b__search", "c__search"]);
    }

    #[test]
    fn the_one_whose_own_name_it_is_keeps_it_and_the_others_get_a_digest() {
        check(&[("a.b", None), ("a_b", None)], &["a_b-2e7336dc", "a_b"]);
        check(&[("s", Some("a@x")), ("s", Some("a@y"))], &["a__s-07fa5ede", "a__s-946bf1c8"]);
        check(&[("reach_find", None), ("reach.find", None)], &["reach_find-74c6df00", "reach_find-c08fb861"]);
    }

    #[test]
    fn a_long_name_is_cut_and_told_apart_by_its_digest() {
        let long = "x".repeat(64);
        check(&[(&long, None)], &[&long]);
        let (one, other) = (format!("{}@n", "a".repeat(64)), format!("{}@n", "a".repeat(63)));
        let identities =
            [Identity { capability: "c", agent: Some(&one) }, Identity { capability: "c", agent: Some(&other) }];
        let given = names(&identities, &[]);
        assert!(given[0].len() == NAME_MAX && given[0].starts_with("aaaa") && given[0] != given[1], "{given:?}");
    }

    #[test]
    fn names_do_not_depend_on_the_order_of_the_tools() {
        let identities = [Identity { capability: "a.b", agent: None }, Identity { capability: "a_b", agent: None }];
        let (mut forth, mut back) =
            (names(&identities, &[]), names(&[identities[1].clone(), identities[0].clone()], &[]));
        forth.sort();
        back.sort();
        assert_eq!(forth, back);
    }
}
