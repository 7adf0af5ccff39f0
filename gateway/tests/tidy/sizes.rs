//! How long files and functions may be. Lines of tests do not count.

use crate::source::{File, Tree, code, without_tests};

/// A file past this is two ideas.
const FILE_MAX: usize = 400;
/// A function past this does not fit the screen.
const FUNCTION_MAX: usize = 70;

/// Files that may be longer, with the length that they may have and the reason.
const EXCEPTIONS: &[(&str, usize, &str)] = &[];

fn production(tree: &Tree) -> impl Iterator<Item = &File> {
    tree.rust().filter(|file| !file.is_test())
}

/// How many lines a file has that are not blanked out as tests.
fn lines(file: &File) -> usize {
    let with_tests = code(&file.text);
    let kept = without_tests(&with_tests);
    let is_test = |(before, after): (&str, &str)| !before.trim().is_empty() && after.trim().is_empty();
    file.text.lines().count() - with_tests.lines().zip(kept.lines()).filter(|pair| is_test(*pair)).count()
}

/// Files that are too long, and exceptions that nobody needs any more.
pub(crate) fn file_complaints(tree: &Tree) -> Vec<String> {
    let mut complaints = Vec::new();
    for file in production(tree) {
        let exception = EXCEPTIONS.iter().find(|(path, ..)| *path == file.path);
        let (max, lines) = (exception.map_or(FILE_MAX, |(_, max, _)| *max), lines(file));
        if lines > max {
            complaints.push(format!("{}: {lines} lines, at most {max}: it is two ideas", file.path));
        } else if exception.is_some() && lines <= FILE_MAX {
            complaints.push(format!("{}: {lines} lines need no exception any more", file.path));
        }
    }
    complaints
}

/// Functions that are too long.
pub(crate) fn function_complaints(tree: &Tree) -> Vec<String> {
    let of_file = |file: &File| {
        let long = functions(&without_tests(&code(&file.text))).into_iter().filter(|(.., lines)| *lines > FUNCTION_MAX);
        let say =
            |(name, line, lines)| format!("{}:{line}: fn {name} has {lines} lines, at most {FUNCTION_MAX}", file.path);
        long.map(say).collect::<Vec<_>>()
    };
    production(tree).flat_map(of_file).collect()
}

/// Name, first line and number of lines of every function that has a body.
fn functions(code: &str) -> Vec<(String, usize, usize)> {
    let mut found = Vec::new();
    for (at, _) in code.match_indices("fn ") {
        let is_word = |c: char| c.is_alphanumeric() || c == '_';
        let name: String = code[at + 3..].chars().take_while(|c| is_word(*c)).collect();
        if name.is_empty() || code[..at].ends_with(is_word) {
            continue;
        }
        if let Some(length) = body_end(&code[at..]) {
            let first = code[..at].matches('\n').count() + 1;
            found.push((name, first, code[at..at + length].matches('\n').count() + 1));
        }
    }
    found
}

/// Where the function's body ends, if it has one.
fn body_end(code: &str) -> Option<usize> {
    let (mut round, mut curly) = (0_usize, 0_usize);
    for (at, c) in code.char_indices() {
        match c {
            '(' | '[' => round += 1,
            ')' | ']' => round = round.saturating_sub(1),
            ';' if round == 0 && curly == 0 => return None,
            '{' => curly += 1,
            '}' if curly <= 1 => return Some(at + 1),
            '}' => curly -= 1,
            _ => {}
        }
    }
    None
}

#[test]
fn a_long_file_is_noticed_and_its_tests_do_not_count() {
    let long = format!("//! Long.\n{}", "const A: u8 = 1;\n".repeat(FILE_MAX));
    let tested =
        format!("//! Short.\nfn a() {{}}\n#[cfg(test)]\nmod tests {{\n{}}}\n", "const A: u8 = 1;\n".repeat(FILE_MAX));
    let tree = Tree(vec![
        File::new("a/src/long.rs", &long),
        File::new("a/src/b.rs", &tested),
        File::new("a/tests/c.rs", &long),
    ]);
    assert_eq!(file_complaints(&tree), ["a/src/long.rs: 401 lines, at most 400: it is two ideas"]);
}

#[test]
fn a_long_function_is_noticed_with_its_line() {
    let body = "    work();\n".repeat(FUNCTION_MAX - 1);
    let text = format!(
        "trait T {{ fn none(&self); }}\nfn fits() {{\n{}}}\nfn long(a: [u8; 3]) {{\n{body}}}\n",
        "    work();\n".repeat(FUNCTION_MAX - 2)
    );
    let tree = Tree(vec![File::new("a/src/b.rs", &text)]);
    assert_eq!(function_complaints(&tree), ["a/src/b.rs:72: fn long has 71 lines, at most 70"]);
}
