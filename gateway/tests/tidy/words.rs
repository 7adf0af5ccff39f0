//! Words that must not stand somewhere: clocks and chance in the core, places on one machine anywhere; and the words
//! that every Rust file opens with.

use crate::source::{File, Tree, code, without_tests};

/// What the core must not name, and what it does instead.
const CORE: &[(&str, &str)] = &[
    ("Instant", "time is an argument"),
    ("SystemTime", "time is an argument"),
    ("HashMap", "use BTreeMap: its order is the same in every run"),
    ("HashSet", "use BTreeSet: its order is the same in every run"),
    ("RandomState", "chance is an argument"),
    ("tracing", "the core does not log; it answers with what happened"),
    ("println", "the core does not print"),
    ("eprintln", "the core does not print"),
    ("async", "the core never waits"),
    ("await", "the core never waits"),
    ("tokio", "the core never waits"),
    ("thread", "the core starts nothing"),
    ("Mutex", "the core is called by one at a time"),
];

/// What the core must not call: the generators of chance that seed themselves.
const CORE_CALLS: &[(&str, &str)] = &[("Rng::new()", "chance is an argument")];

/// Everything impure in the core, tests aside.
pub(crate) fn core_complaints(tree: &Tree) -> Vec<String> {
    let of_file = |file: &File| {
        let code = without_tests(&code(&file.text));
        let mut complaints = Vec::new();
        for (number, line) in code.lines().enumerate() {
            let words: Vec<_> = line.split(|c: char| !c.is_alphanumeric() && c != '_').collect();
            let banned = CORE.iter().filter(|(word, _)| words.contains(word));
            let called = CORE_CALLS.iter().filter(|(call, _)| line.contains(call));
            let say = |(word, why): &(&str, &str)| format!("{}:{}: {word}: {why}", file.path, number + 1);
            complaints.extend(banned.chain(called).map(say));
        }
        complaints
    };
    tree.rust().filter(|file| !file.is_test()).flat_map(of_file).collect()
}

/// Rust files that do not begin with `//!`.
pub(crate) fn opening_complaints(tree: &Tree) -> Vec<String> {
    let silent = tree.rust().filter(|file| !file.text.starts_with("//! "));
    silent.map(|file| format!("{}: open it with `//!` and what it is for", file.path)).collect()
}

/// Files that name a folder of the machine that they were written on.
pub(crate) fn machine_complaints(tree: &Tree) -> Vec<String> {
    // Put together here, so that this file does not name them itself.
    let places = [["/wo", "rk/"].concat(), ["/ro", "ot/"].concat()];
    let mut complaints = Vec::new();
    for file in &tree.0 {
        for (number, line) in file.text.lines().enumerate() {
            let named = places.iter().filter(|place| names_place(line, place));
            complaints.extend(named.map(|place| format!("{}:{}: names {place}", file.path, number + 1)));
        }
    }
    complaints
}

/// Lines that a merge left behind.
pub(crate) fn merge_complaints(tree: &Tree) -> Vec<String> {
    // Put together here, so that this file does not hold them itself.
    let marks = ["<", "|", ">"].map(|mark| mark.repeat(7));
    let of_file = |file: &File| {
        let left = file.text.lines().enumerate().filter(|(_, line)| {
            marks.iter().any(|mark| line.strip_prefix(mark.as_str()).is_some_and(|rest| rest.starts_with(' ')))
        });
        left.map(|(number, _)| format!("{}:{}: left by a merge", file.path, number + 1)).collect::<Vec<_>>()
    };
    tree.0.iter().flat_map(of_file).collect()
}

/// Whether the place stands at the beginning of a path, not within a longer one.
fn names_place(line: &str, place: &str) -> bool {
    let is_inner = |c: char| c.is_alphanumeric() || matches!(c, '_' | '-' | '.' | '}');
    line.match_indices(place).any(|(at, _)| !line[..at].ends_with(is_inner))
}

#[test]
fn what_the_core_must_not_touch_is_noticed_outside_tests_and_comments() {
    let text = "//! Never async.\nuse std::time::Instant;\nfn f() { fastrand::Rng::new(); }\n\
                fn instantly() {}\n#[cfg(test)]\nmod tests { use std::collections::HashMap; }\n";
    let tree = Tree(vec![File::new("gateway/core/src/a.rs", text)]);
    let expected = [
        "gateway/core/src/a.rs:2: Instant: time is an argument",
        "gateway/core/src/a.rs:3: Rng::new(): chance is an argument",
    ];
    assert_eq!(core_complaints(&tree), expected);
}

#[test]
fn a_file_without_an_opening_is_noticed() {
    let tree =
        Tree(vec![File::new("a.rs", "//! Says it.\n"), File::new("b.rs", "use std::fmt;\n"), File::new("c.md", "")]);
    assert_eq!(opening_complaints(&tree), ["b.rs: open it with `//!` and what it is for"]);
}

#[test]
fn a_place_on_one_machine_is_noticed_but_not_the_like_of_it_in_a_longer_path() {
    let place = ["/ro", "ot/"].concat();
    let tree = Tree(vec![
        File::new("a.md", &format!("ok\nsee {place}x\n")),
        File::new("b.md", &format!("http://host{place}x")),
    ]);
    assert_eq!(machine_complaints(&tree), [format!("a.md:2: names {place}")]);
}

#[test]
fn what_a_merge_left_behind_is_noticed_but_not_the_like_of_it_in_a_line() {
    let [ours, theirs] = ["<", ">"].map(|mark| mark.repeat(7));
    let text = format!("a\n{ours} HEAD\nb\n=======\nc\n{theirs} other\nsee {ours} HEAD\n");
    assert_eq!(
        merge_complaints(&Tree(vec![File::new("dev", &text)])),
        [2, 6].map(|n| format!("dev:{n}: left by a merge"))
    );
}
