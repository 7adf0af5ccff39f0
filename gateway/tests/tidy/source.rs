//! The tracked files as text, and Rust code with its comments, literals and tests blanked out.

use std::path::{Path, PathBuf};
use std::process::Command;

/// A text file of the repository; its path is relative to the root, with `/`.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) path: String,
    pub(crate) text: String,
}

impl File {
    pub(crate) fn new(path: &str, text: &str) -> Self {
        Self { path: path.to_owned(), text: text.to_owned() }
    }

    pub(crate) fn is_rust(&self) -> bool {
        self.path.ends_with(".rs")
    }

    /// Whether all of it is test code: it lies in a `tests` folder or is a `tests.rs`.
    pub(crate) fn is_test(&self) -> bool {
        self.path.split('/').any(|part| part == "tests" || part == "tests.rs")
    }
}

/// Some files of the repository.
#[derive(Debug, Default)]
pub(crate) struct Tree(pub(crate) Vec<File>);

impl Tree {
    /// Every text file that git tracks, or every one there is where git does not know the folder.
    pub(crate) fn read() -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).parent().expect("the gateway lies in the repository");
        let paths = tracked(root).unwrap_or_else(|| walked(root));
        let read = |path: String| {
            let text = String::from_utf8(std::fs::read(root.join(&path)).ok()?).ok()?;
            Some(File { path, text })
        };
        Self(paths.into_iter().filter_map(read).collect())
    }

    /// Only the files below a folder, whose paths keep their whole length.
    pub(crate) fn under(self, folder: &str) -> Self {
        Self(self.0.into_iter().filter(|file| file.path.starts_with(folder)).collect())
    }

    pub(crate) fn rust(&self) -> impl Iterator<Item = &File> {
        self.0.iter().filter(|file| file.is_rust())
    }
}

/// What git tracks, and what it would track if it were added.
fn tracked(root: &Path) -> Option<Vec<String>> {
    let arguments = ["ls-files", "-z", "--cached", "--others", "--exclude-standard"];
    let output = Command::new("git").arg("-C").arg(root).args(arguments).output().ok()?;
    let text = String::from_utf8(output.stdout).ok().filter(|_| output.status.success())?;
    Some(text.split('\0').filter(|path| !path.is_empty()).map(str::to_owned).collect())
}

fn walked(root: &Path) -> Vec<String> {
    let (mut folders, mut found): (Vec<PathBuf>, Vec<String>) = (vec![root.to_owned()], Vec::new());
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            let (path, name) = (entry.path(), entry.file_name());
            if path.is_dir() {
                let is_ours = name != "target" && !name.to_string_lossy().starts_with('.');
                folders.extend(is_ours.then_some(path));
            } else if let Some(path) = path.strip_prefix(root).ok().and_then(Path::to_str) {
                found.push(path.replace('\\', "/"));
            }
        }
    }
    found
}

/// The code alone: comments and the insides of literals become blanks, line breaks stay where they are.
pub(crate) fn code(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let after_word = out.chars().next_back().is_some_and(|c| c.is_alphanumeric() || c == '_');
        let length = literal_length(rest, after_word);
        if length == 0 {
            out.push(first);
            rest = &rest[first.len_utf8()..];
        } else {
            out.extend(rest[..length].chars().map(|c| if c == '\n' { c } else { ' ' }));
            rest = &rest[length..];
        }
    }
    out
}

/// How many bytes of comment or literal the text begins with. `after_word`: a letter or digit stands before it.
fn literal_length(text: &str, after_word: bool) -> usize {
    if text.starts_with("//") {
        return text.find('\n').unwrap_or(text.len());
    }
    if text.starts_with("/*") {
        return block_comment_length(text);
    }
    if text.starts_with('"') {
        return quoted_length(text, '"');
    }
    if text.starts_with('\'') {
        return character_length(text);
    }
    let prefixed = text.strip_prefix("br").or_else(|| text.strip_prefix('r')).filter(|_| !after_word);
    prefixed.map_or(0, |raw| raw_length(raw).map_or(0, |length| text.len() - raw.len() + length))
}

fn block_comment_length(text: &str) -> usize {
    let (mut depth, mut at) = (0_usize, 0);
    while at < text.len() {
        if text[at..].starts_with("/*") {
            (depth, at) = (depth + 1, at + 2);
        } else if text[at..].starts_with("*/") {
            (depth, at) = (depth - 1, at + 2);
            if depth == 0 {
                return at;
            }
        } else {
            at += text[at..].chars().next().map_or(1, char::len_utf8);
        }
    }
    text.len()
}

fn quoted_length(text: &str, quote: char) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            _ if c == quote => return at + 1,
            _ => {}
        }
    }
    text.len()
}

/// A character literal, or nothing if it is a lifetime.
fn character_length(text: &str) -> usize {
    let mut chars = text.char_indices().skip(1);
    match (chars.next(), chars.next()) {
        (Some((_, '\\')), _) => quoted_length(text, '\''),
        (Some(_), Some((at, '\''))) => at + 1,
        _ => 0,
    }
}

/// A raw string from its first `#` or quote on, if it is one.
fn raw_length(text: &str) -> Option<usize> {
    let hashes = text.len() - text.trim_start_matches('#').len();
    let inside = text[hashes..].strip_prefix('"')?;
    let end = format!("\"{}", "#".repeat(hashes));
    Some(inside.find(&end).map_or(text.len(), |at| hashes + 1 + at + end.len()))
}

/// Code without the items that only tests are built with; line breaks stay where they are.
pub(crate) fn without_tests(code: &str) -> String {
    let mut out = code.to_owned();
    let mut from = 0;
    while let Some(found) = out[from..].find("#[cfg(test)]") {
        let start = from + found;
        let end = start + item_length(&out[start..]);
        let blank: String = out[start..end].chars().map(|c| if c == '\n' { c } else { ' ' }).collect();
        out.replace_range(start..end, &blank);
        from = start + blank.len();
    }
    out
}

/// Up to the end of an item: a `;` outside brackets, or the brace that closes its body.
fn item_length(code: &str) -> usize {
    let mut depth = 0_usize;
    for (at, c) in code.char_indices() {
        match c {
            '{' | '(' | '[' => depth += 1,
            '}' if depth == 1 => return at + 1,
            '}' | ')' | ']' => depth = depth.saturating_sub(1),
            ';' if depth == 0 => return at + 1,
            _ => {}
        }
    }
    code.len()
}

#[test]
fn comments_and_literals_are_blanked_and_lines_stay() {
    let cases = [
        ("a // b {\nc", "a       \nc"),
        ("a /* x /* y */ z */ b", "a                   b"),
        (r#"f("{ \" }")"#, "f(        )"),
        (r##"f(r#"{"}"#)"##, "f(        )"),
        ("'{' + '\\n' + 'a", "    +      + 'a"),
        ("for r in bar", "for r in bar"),
        ("<'a>(x: &'a str)", "<'a>(x: &'a str)"),
    ];
    for (given, expected) in cases {
        assert_eq!(code(given), expected, "{given}");
    }
}

#[test]
fn test_items_are_blanked_and_the_rest_stays() {
    let given = "fn a() {}\n#[cfg(test)]\nmod tests { fn b() {} }\n#[cfg(test)]\nmod more;\nfn c() {}";
    let left = without_tests(given);
    assert_eq!(left.lines().count(), given.lines().count());
    assert_eq!(left.split_whitespace().collect::<Vec<_>>(), ["fn", "a()", "{}", "fn", "c()", "{}"]);
}
