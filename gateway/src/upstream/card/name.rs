//! The names of capabilities that tools are offered under: the tool's own where it fits the alphabet, else one that is
//! made of it and is the same each time.

use std::collections::BTreeMap;

use reach_schemas::CapabilityName;
use sha2::{Digest, Sha256};

/// How long the name of a capability may be.
const NAME_MAX: usize = 64;
/// How many bytes of the tool's name's hash tell names apart that would be alike.
const HASH_BYTES: usize = 4;

/// The names, in the order of the tools.
///
/// A tool whose name fits keeps it. Others are written in small letters, with `_` for what does not fit; where that is too
/// long, or is another tool's name, too, a hash of the tool's own name stands at its end.
pub(super) fn of(tools: &[&str]) -> Vec<CapabilityName> {
    let plain: Vec<String> = tools.iter().map(|tool| plain(tool)).collect();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    for name in &plain {
        *counts.entry(name).or_default() += 1;
    }
    let named = |(tool, plain): (&&str, &String)| {
        let is_own = plain.as_str() == *tool;
        let is_clear = is_own || (counts[plain.as_str()] == 1 && plain.len() <= NAME_MAX);
        let name = if is_clear && plain.len() <= NAME_MAX { plain.clone() } else { hashed(tool, plain) };
        name.parse().expect("the name is made of the alphabet's characters and is short enough")
    };
    tools.iter().zip(&plain).map(named).collect()
}

fn plain(tool: &str) -> String {
    let fits = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.');
    let text: String = tool.chars().map(|c| if fits(c) { c.to_ascii_lowercase() } else { '_' }).collect();
    let text = text.trim_start_matches(['_', '-', '.']);
    if text.is_empty() { "tool".to_owned() } else { text.to_owned() }
}

fn hashed(tool: &str, plain: &str) -> String {
    let hash = Sha256::digest(tool.as_bytes());
    let hash: String = hash.iter().take(HASH_BYTES).map(|byte| format!("{byte:02x}")).collect();
    let room = NAME_MAX - hash.len() - 1;
    format!("{}-{hash}", &plain[..plain.len().min(room)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(tools: &[&str], expected: &[&str]) {
        let names: Vec<String> = of(tools).iter().map(ToString::to_string).collect();
        assert_eq!(names, expected);
    }

    #[test]
    fn a_name_that_fits_is_kept_and_others_are_made_of_it() {
        check(&["read_file", "getWeather", "a/b c", "_x", "新闻"], &["read_file", "getweather", "a_b_c", "x", "tool"]);
    }

    #[test]
    fn names_that_would_be_alike_are_told_apart_and_the_one_that_fits_keeps_its_own() {
        let names = of(&["Get", "get", "GET"]);
        assert_eq!(names[1].as_str(), "get");
        assert!(names[0].as_str().starts_with("get-") && names[2].as_str().starts_with("get-") && names[0] != names[2]);
        assert_eq!(of(&["GET", "get"])[0], names[2], "the same each time");
        let long = "x".repeat(100);
        assert_eq!(of(&[&long])[0].as_str().len(), NAME_MAX);
    }
}
