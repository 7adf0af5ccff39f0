//! Which methods a name may have been meant for.

use reach_schemas::Method;

/// How alike a name must be, 0 to 1: a slip or two in a word.
const ALIKE_MIN: f64 = 0.7;
/// How many are named.
const NEAR_MAX: usize = 3;
/// How much of a name is looked at and told: it is the caller's text.
const NAME_MAX: usize = 64;

/// What is said of a name that is no method's: the methods that are near to it, or all of them.
pub(super) fn no_method(given: &str) -> String {
    let shown: String = given.chars().take(NAME_MAX).collect();
    let near = near(&shown);
    if near.is_empty() {
        let all: Vec<&str> = Method::ALL.iter().map(|method| method.name()).collect();
        return format!("no method is named {shown:?}; all there are: {}", all.join(", "));
    }
    format!("no method is named {shown:?}; near: {}", near.join(", "))
}

/// Best first. A name may miss its first part, or have it joined otherwise.
fn near(given: &str) -> Vec<&'static str> {
    let given = given.to_lowercase().replace(['.', ':'], "/");
    let alike = |name: &str| {
        let last = name.rsplit('/').next().unwrap_or(name);
        strsim::normalized_damerau_levenshtein(&given, name).max(strsim::normalized_damerau_levenshtein(&given, last))
    };
    let mut near: Vec<(f64, &str)> = Method::ALL.iter().map(|method| (alike(method.name()), method.name())).collect();
    near.retain(|(alike, _)| *alike >= ALIKE_MIN);
    near.sort_by(|a, b| b.0.total_cmp(&a.0));
    near.into_iter().take(NEAR_MAX).map(|(_, name)| name).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(given: &str, expected: &str) {
        assert_eq!(near(given).first().copied().unwrap_or_default(), expected, "{given}");
    }

    #[test]
    fn a_slip_a_missing_part_and_another_way_of_writing_are_seen_through() {
        check("task/sumbit", "task/submit");
        check("tasks/submit", "task/submit");
        check("task.submit", "task/submit");
        check("Task/Submit", "task/submit");
        check("submit", "task/submit");
        check("heartbeat", "agent/heartbeat");
        check("dead_letters/list", "dead_letter/list");
        check("make/coffee", "");
    }

    #[test]
    fn a_name_that_is_near_to_none_gets_all_and_a_long_one_is_cut() {
        let told = no_method("make/coffee");
        assert!(Method::ALL.iter().all(|method| told.contains(method.name())), "{told}");
        assert!(no_method(&"x".repeat(100_000)).len() < 1000);
        assert!(near("list").len() <= NEAR_MAX);
    }
}
