//! Turns text into tokens: words of alphabetic scripts, runs of scripts written without spaces,
//! and codes. Function words are kept, as their place matters to phrases, but left unstemmed.

use rust_stemmers::{Algorithm, Stemmer};
use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfkc_quick};

use super::stop::is_stop_word;

/// Text beyond this many characters is not read: an intent is a request, not a book.
pub(super) const CHARACTERS_MAX: usize = 4_000;
/// A word longer than this is no word that anyone searches for.
const WORD_MAX: usize = 40;

/// One token, in the order of the text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Token {
    /// A lowercase word with its stem, and whether it is a function word.
    Word { text: String, stem: String, is_stop: bool },
    /// A run of Han, kana or Hangul characters.
    Run(Vec<char>),
    /// Something with digits: a number, an article code, a version.
    Code(String),
    /// A mark that ends a clause, and whether it was a question mark.
    Break { asks: bool },
}

/// NFKC, so that full-width letters and digits are the plain ones.
pub(super) fn normalize(text: &str) -> String {
    let read = || text.chars().take(CHARACTERS_MAX);
    if text.is_ascii() || is_nfkc_quick(read()) == IsNormalized::Yes {
        return read().collect();
    }
    read().nfkc().collect()
}

/// Splits normalized text into tokens.
pub(super) fn tokens(normalized: &str) -> Vec<Token> {
    let stemmer = Stemmer::create(Algorithm::English);
    let mut out = Vec::new();
    let mut word = String::new();
    let mut run = Vec::new();
    let mut characters = normalized.chars().peekable();
    while let Some(c) = characters.next() {
        if is_unspaced(c) {
            flush_word(&mut word, &stemmer, &mut out);
            run.push(c);
            continue;
        }
        if !run.is_empty() {
            out.push(Token::Run(std::mem::take(&mut run)));
        }
        let goes_on = |next: &char| next.is_alphanumeric() && !is_unspaced(*next);
        let inside = !word.is_empty() && characters.peek().is_some_and(goes_on);
        if c.is_alphanumeric() {
            word.push(c);
        } else if is_apostrophe(c) && inside {
            word.push('\'');
        } else {
            flush_word(&mut word, &stemmer, &mut out);
            // A point or comma inside a number or a name ends nothing.
            if is_break(c) && !(inside && matches!(c, '.' | ':' | ',')) {
                out.push(Token::Break { asks: c == '?' });
            }
        }
    }
    flush_word(&mut word, &stemmer, &mut out);
    if !run.is_empty() {
        out.push(Token::Run(run));
    }
    out
}

/// The English stem of a lowercase word.
pub(super) fn stem(word: &str) -> String {
    stem_with(&Stemmer::create(Algorithm::English), word).0
}

/// The stem, and whether the word or its stem is a function word.
fn stem_with(stemmer: &Stemmer, word: &str) -> (String, bool) {
    let bare = word.trim_end_matches("'s");
    if is_stop_word(bare) {
        return (bare.to_owned(), true);
    }
    let stem = stemmer.stem(bare);
    let is_stop = (stem != bare && is_stop_word(&stem)) || (word != bare && is_stop_word(word));
    (stem.into_owned(), is_stop)
}

fn flush_word(word: &mut String, stemmer: &Stemmer, out: &mut Vec<Token>) {
    if word.is_empty() {
        return;
    }
    let text = std::mem::take(word);
    // Most words are plain, and need no splitting.
    if text.len() <= WORD_MAX && text.bytes().all(|letter| letter.is_ascii_lowercase()) {
        let (stem, is_stop) = stem_with(stemmer, &text);
        out.push(Token::Word { text, stem, is_stop });
        return;
    }
    let has_digits = text.chars().any(char::is_numeric);
    if has_digits {
        out.push(Token::Code(text.to_lowercase()));
    }
    for part in parts(&text) {
        let lower = part.to_lowercase();
        let length = lower.chars().count();
        // Letters cut out of a code ("mp" of "mp4") say nothing alone unless they make a word.
        if length > WORD_MAX || (has_digits && length < 3) || lower.chars().any(char::is_numeric) {
            continue;
        }
        let (stem, is_stop) = stem_with(stemmer, &lower);
        out.push(Token::Word { text: lower, stem, is_stop });
    }
}

/// Splits `camelCase`, `HTTPServer` and letters from digits.
fn parts(word: &str) -> Vec<&str> {
    let characters: Vec<(usize, char)> = word.char_indices().collect();
    let mut out = Vec::new();
    let mut start = 0;
    for i in 1..characters.len() {
        let (at, c) = characters[i];
        let before = characters[i - 1].1;
        let next_is_lower = characters.get(i + 1).is_some_and(|(_, next)| next.is_lowercase());
        let hump = c.is_uppercase() && (before.is_lowercase() || (before.is_uppercase() && next_is_lower));
        if hump || c.is_numeric() != before.is_numeric() {
            out.push(&word[start..at]);
            start = at;
        }
    }
    out.push(&word[start..]);
    out
}

/// Scripts whose words are not set apart by spaces, Hangul included: its endings cling to words.
fn is_unspaced(c: char) -> bool {
    matches!(c,
        '\u{3005}' | '\u{3040}'..='\u{30ff}' | '\u{3400}'..='\u{4dbf}' | '\u{4e00}'..='\u{9fff}'
        | '\u{ac00}'..='\u{d7af}' | '\u{f900}'..='\u{faff}' | '\u{20000}'..='\u{3134f}')
}

fn is_apostrophe(c: char) -> bool {
    matches!(c, '\'' | '\u{2019}')
}

fn is_break(c: char) -> bool {
    matches!(
        c,
        ',' | '.' | ';' | ':' | '!' | '?' | '\n' | '(' | ')' | '…' | '、' | '。' | '|' | '–' | '—' | '「' | '」'
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(text: &str) -> String {
        let shown = tokens(&normalize(text)).into_iter().map(|token| match token {
            Token::Word { stem, .. } => stem,
            Token::Run(run) => run.into_iter().collect(),
            Token::Code(code) => format!("#{code}"),
            Token::Break { .. } => "/".into(),
        });
        shown.collect::<Vec<_>>().join(" ")
    }

    #[test]
    fn names_fall_apart_into_their_words() {
        assert_eq!(shown("search_flights"), "search flight");
        assert_eq!(shown("lookUpOrder"), "look up order");
        assert_eq!(shown("HTTPServer"), "http server");
    }

    #[test]
    fn codes_stay_whole_and_lend_their_words() {
        assert_eq!(shown("sha256 of K778, v1.5"), "#sha256 sha of #k778 / #v1 #5");
    }

    #[test]
    fn mixed_text_changes_script_without_spaces() {
        assert_eq!(shown("帮我debug这个ＡＰＩ，谢谢"), "帮我 debug 这个 api / 谢谢");
    }

    #[test]
    fn apostrophes_belong_to_their_word() {
        assert_eq!(shown("the student's essays"), "the student essay");
        assert_eq!(shown("I don’t"), "i don't");
    }
}
