//! Finds the paths that Rust code names within its own crate, with `use` trees spread out and `super` resolved.

/// Every path that the code of a module names, as segments from the crate's root. `module` is where the code stands;
/// `has_child` tells whether that module has a child of this name, which a path may start with as well.
pub(crate) fn named(code: &str, module: &[String], has_child: impl Fn(&str) -> bool) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    let mut previous = ' ';
    for (at, c) in code.char_indices() {
        let starts = is_word(c) && !is_word(previous) && previous != ':';
        previous = c;
        if !starts {
            continue;
        }
        let first: String = code[at..].chars().take_while(|c| is_word(*c)).collect();
        if code[at + first.len()..].starts_with("::") && (is_anchor(&first) || has_child(&first)) {
            let mut spread = Vec::new();
            tree(&code[at..], &[], &mut spread);
            found.extend(spread.into_iter().map(|path| resolved(&path, module)));
        }
    }
    found.extend(bare_uses(code, module));
    found
}

fn is_word(c: char) -> bool {
    c.is_alphanumeric() || c == '_'
}

fn is_anchor(word: &str) -> bool {
    matches!(word, "crate" | "super" | "self")
}

/// `use {crate::a, crate::b}` and `use ::...` need no care: their inner paths start with `crate` again. What is left
/// is `use super::{self}`-like trees, which [`tree`] reads, and `use crate as x`, which nobody needs.
fn bare_uses(code: &str, module: &[String]) -> Vec<Vec<String>> {
    let renames = code.match_indices("use super as ").map(|_| resolved(&["super".to_owned()], module));
    renames.collect()
}

/// Spreads `a::{b, c::{self, d}}` out into `a::b`, `a::c`, `a::c::d`. Gives back what follows the path.
fn tree<'a>(code: &'a str, before: &[String], out: &mut Vec<Vec<String>>) -> &'a str {
    let mut path = before.to_vec();
    let mut rest = code.trim_start();
    loop {
        if let Some(inner) = rest.strip_prefix('{') {
            return branches(inner, &path, out);
        }
        let word: String = rest.chars().take_while(|c| is_word(*c)).collect();
        rest = &rest[word.len()..];
        if !word.is_empty() && (word != "self" || path.is_empty()) {
            path.push(word);
        }
        match rest.trim_start().strip_prefix("::") {
            Some(next) if !next.trim_start().starts_with('<') => rest = next.trim_start(),
            Some(_) | None => break,
        }
    }
    out.push(path);
    rest
}

fn branches<'a>(code: &'a str, before: &[String], out: &mut Vec<Vec<String>>) -> &'a str {
    let mut rest = code;
    loop {
        rest = rest.trim_start_matches(|c: char| c.is_whitespace() || c == ',');
        if rest.is_empty() {
            return rest;
        }
        if let Some(after) = rest.strip_prefix('}') {
            return after;
        }
        let after = tree(rest, before, out);
        // Skips `as name`, `*` and anything that is not understood, up to the next branch.
        rest = after.trim_start_matches(|c| c != ',' && c != '}');
    }
}

fn resolved(path: &[String], module: &[String]) -> Vec<String> {
    let mut base = module.to_vec();
    let mut parts = path.iter().map(String::as_str).peekable();
    match parts.peek() {
        Some(&"crate") => {
            parts.next();
            base.clear();
        }
        Some(&"self") => {
            parts.next();
        }
        Some(_) | None => {}
    }
    while parts.next_if_eq(&"super").is_some() {
        base.pop();
    }
    base.extend(parts.map(str::to_owned));
    base
}

#[cfg(test)]
#[track_caller]
fn check(code: &str, module: &str, expected: &[&str]) {
    let module: Vec<String> = module.split("::").map(str::to_owned).collect();
    let paths: Vec<String> = named(code, &module, |name| name == "child").iter().map(|path| path.join("::")).collect();
    assert_eq!(paths, expected, "{code}");
}

#[test]
fn trees_are_spread_out_and_super_is_resolved() {
    check("use crate::{a::{self, B}, c::D as E};", "ops::submit", &["a", "a::B", "c::D"]);
    check("use super::super::store::Store;", "ops::submit", &["store::Store"]);
    check("let x = crate::store::sqlite::open(y);", "ops", &["store::sqlite::open"]);
    check("pub use child::*; use other::X;", "store", &["store::child"]);
    check("use std::{fmt, io}; pub(crate) fn f() {}", "ops", &[]);
    check("let s = self::inner::go::<u8>();", "ops", &["ops::inner::go"]);
    check("use a::crate_b::C;", "ops", &[]);
}
