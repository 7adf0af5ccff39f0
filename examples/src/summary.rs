//! An extractive summary: sentences are weighed by the words that the whole document uses most (Luhn, "The Automatic
//! Creation of Literature Abstracts", 1958), and the weightiest are given in their order.

use std::collections::BTreeMap;

use serde::Serialize;

/// How many sentences a summary has.
const SENTENCES: usize = 3;
/// Words shorter than this say little.
const WORD_MIN: usize = 4;
/// Words this common in any English text say little.
const COMMON: &[&str] = &[
    "that", "this", "with", "from", "have", "which", "what", "when", "they", "their", "there", "will", "would", "than",
    "then", "into", "does", "every", "each", "where", "only", "must", "been", "were", "your", "them", "such", "other",
];

/// What a document says.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Summary {
    /// Its first heading, or its first words.
    pub title: String,
    /// How many words it has.
    pub words: usize,
    /// How many sentences it has.
    pub sentences: usize,
    /// Its weightiest sentences, in their order.
    pub summary: Vec<String>,
}

/// The sentences of a text: prose only, without headings, code, tables and lists of links.
#[must_use]
pub fn sentences(text: &str) -> Vec<String> {
    let mut prose = String::new();
    let mut is_code = false;
    for line in text.lines() {
        let line = line.trim();
        if line.starts_with("```") {
            is_code = !is_code;
        }
        let is_prose = !is_code && !line.starts_with(['#', '|', '`', '<', '!', '>']);
        prose.push_str(if is_prose && !line.is_empty() { line.trim_start_matches(['-', '*', ' ']) } else { "\n" });
        prose.push(' ');
    }
    let breaks = prose.split_inclusive(['.', '!', '?', '\n', '。', '！', '？']);
    let sentences = breaks.map(|sentence| sentence.split_whitespace().collect::<Vec<_>>().join(" "));
    let sentences = sentences.map(|sentence| sentence.trim_matches(['*', '_', ' ']).to_owned());
    sentences.filter(|sentence| sentence.chars().count() > 20).collect()
}

/// The words of a text that say something, in lower case.
fn telling(text: &str) -> impl Iterator<Item = String> + '_ {
    text.split(|c: char| !c.is_alphanumeric())
        .filter(|word| word.chars().count() >= WORD_MIN)
        .map(str::to_lowercase)
        .filter(|word| !COMMON.contains(&word.as_str()))
}

/// Summarizes a document from its sentences.
#[must_use]
pub fn summarize(text: &str, sentences: &[String]) -> Summary {
    let mut counts: BTreeMap<String, f64> = BTreeMap::new();
    for word in telling(text) {
        *counts.entry(word).or_default() += 1.0;
    }
    let weight = |sentence: &String| {
        let words: Vec<String> = telling(sentence).collect();
        let sum: f64 = words.iter().filter_map(|word| counts.get(word)).sum();
        // A long sentence is not weightier for being long.
        sum / (words.len() as f64 + 3.0)
    };
    let mut ranked: Vec<(usize, f64)> = sentences.iter().map(weight).enumerate().collect();
    ranked.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
    let mut best: Vec<usize> = ranked.into_iter().take(SENTENCES).map(|(at, _)| at).collect();
    best.sort_unstable();
    let heading = text.lines().find_map(|line| line.trim().strip_prefix('#'));
    let title = heading.map_or_else(
        || text.split_whitespace().take(8).collect::<Vec<_>>().join(" "),
        |heading| heading.trim_start_matches('#').trim().to_owned(),
    );
    Summary {
        title,
        words: text.split_whitespace().count(),
        sentences: sentences.len(),
        summary: best.into_iter().map(|at| sentences[at].clone()).collect(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_summary_keeps_the_weightiest_sentences_in_their_order() {
        let text = "# Gateways\n\nA gateway routes every task to an agent.\n\n```\nlet code = ignored();\n```\nThe weather was fine on that day in spring. \
                    A gateway keeps each task durable until the agent answers. An agent answers the gateway with a result. \
                    Nobody remembers the colour of the wall paper.";
        let summary = summarize(text, &sentences(text));
        assert_eq!(summary.title, "Gateways");
        assert_eq!(summary.sentences, 5);
        assert!(summary.summary[0].starts_with("A gateway routes"), "{summary:?}");
        assert!(!summary.summary.iter().any(|sentence| sentence.contains("weather") || sentence.contains("code")));
    }
}
