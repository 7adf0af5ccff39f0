//! What a clause of a request does: it asks, it tells, or it puts something aside ("the slides
//! are done already", "不用翻译"). Only closed classes of cue words decide.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::text::Token;

/// What a clause does for the request; of several cues the greatest counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Stance {
    /// It tells something, or asks without a cue.
    Tells,
    /// It asks for something.
    Asks,
    /// It says what is not wanted, or is done already.
    Aside,
}

/// A clause and its stance.
pub(super) struct Clause<'a> {
    pub(super) tokens: &'a [Token],
    pub(super) stance: Stance,
}

const ASIDE_ENGLISH: &str = "already;aside;no need;needn't;don't;do not;won't;will not;not;no;never mind;skip;\
    instead of;rather than;without;except;later;i know;i've;i have;we have;we've;has been;have been;is clear;\
    is fine;is done;are done;is ready;are ready;myself;ourselves;nobody;isn't;wasn't;doesn't;now that";
/// With a form of "be" before them they say that something is done.
const DONE: &[&str] =
    &["settled", "sorted", "finished", "decided", "arranged", "agreed", "complete", "completed", "chosen"];
const BE: &[&str] = &["is", "are", "was", "were", "been"];
/// They open a clause that only says when.
const BEFORE: &[&str] = &["before", "after", "once", "although", "though"];
const ASK_ENGLISH: &str = "please;plz;pls;can you;could you;would you;tell me;show me;give me;help;i want;we want;i need;we need;\
    i'd like;let me know;want to;need to;needs to;now";
const ASK_FIRST: &[&str] = &[
    "what", "which", "how", "when", "where", "who", "why", "is", "are", "do", "does", "did", "will", "should", "can",
    "could", "has", "have",
];
const ASIDE_CHINESE: &str = "不用;不必;不要;不想;不需要;无需;无须;先不;先别;别再;别给;已经;早就;早已;再说;自己来;我自己;不急;不是;\
    没问题;不关;好了;有了;完了;过了;明白了;清楚了;知道了;放一边;暂时不;暂不;而不是;就不;也不;定了;齐了;完成了;\
    搞定了;之前;以前";
const ASK_CHINESE: &str = "请;帮;麻烦;给我;替我;想知道;想问;想要;需要;吗;多少;怎么;什么;能不能;是否;有没有;会不会;可不可以;看看;查;\
    哪;几;直接;只要;现在;眼下;目前";

/// Cues by their first word or character, with what must follow.
struct Cues {
    english: BTreeMap<&'static str, Vec<(Vec<&'static str>, Stance)>>,
    chinese: BTreeMap<char, Vec<(&'static str, Stance)>>,
}

static CUES: LazyLock<Cues> = LazyLock::new(|| {
    let mut cues = Cues { english: BTreeMap::new(), chinese: BTreeMap::new() };
    for (list, stance) in [(ASIDE_ENGLISH, Stance::Aside), (ASK_ENGLISH, Stance::Asks)] {
        for cue in list.split(';') {
            let words: Vec<&str> = cue.split(' ').collect();
            cues.english.entry(words[0]).or_default().push((words, stance));
        }
    }
    for (list, stance) in [(ASIDE_CHINESE, Stance::Aside), (ASK_CHINESE, Stance::Asks)] {
        for cue in list.split(';') {
            let first = cue.chars().next().unwrap_or(' ');
            cues.chinese.entry(first).or_default().push((cue, stance));
        }
    }
    cues
});

/// Splits tokens at marks and at "but", and judges each clause. Where every clause is put aside,
/// none is: a request that only denies is read as it stands.
pub(super) fn clauses(tokens: &[Token]) -> Vec<Clause<'_>> {
    let mut out = Vec::new();
    let mut start = 0;
    for (i, token) in tokens.iter().enumerate() {
        let asks = match token {
            Token::Break { asks } => *asks,
            Token::Word { text, .. } if text == "but" => false,
            Token::Word { .. } | Token::Run(_) | Token::Code(_) => continue,
        };
        push(&tokens[start..i], asks, &mut out);
        start = i + 1;
    }
    push(tokens.get(start..).unwrap_or(&[]), false, &mut out);
    if out.iter().all(|clause| clause.stance == Stance::Aside) {
        out.iter_mut().for_each(|clause| clause.stance = Stance::Tells);
    }
    out
}

fn push<'a>(tokens: &'a [Token], question: bool, out: &mut Vec<Clause<'a>>) {
    if !tokens.is_empty() {
        out.push(Clause { tokens, stance: if question { Stance::Asks } else { judge(tokens) } });
    }
}

/// An aside outweighs a request: "please leave the summary aside".
fn judge(tokens: &[Token]) -> Stance {
    let words: Vec<&str> = tokens
        .iter()
        .filter_map(|token| match token {
            Token::Word { text, .. } => Some(text.as_str()),
            Token::Run(_) | Token::Code(_) | Token::Break { .. } => None,
        })
        .collect();
    let mut found = judge_words(&words);
    for token in tokens {
        if let Token::Run(run) = token {
            found.extend(judge_run(run));
        }
    }
    found.into_iter().max().unwrap_or(Stance::Tells)
}

fn judge_words(words: &[&str]) -> Vec<Stance> {
    let mut found = Vec::new();
    for (i, word) in words.iter().enumerate() {
        let cues = CUES.english.get(word).into_iter().flatten();
        found.extend(cues.filter(|(cue, _)| words[i..].starts_with(cue)).map(|(_, stance)| *stance));
    }
    let is_done = |pair: &[&str]| BE.contains(&pair[0]) && DONE.contains(&pair[1]);
    if words.windows(2).any(is_done) {
        found.push(Stance::Aside);
    }
    // "Before you print it": what comes after is not asked for.
    if words.first().is_some_and(|first| BEFORE.contains(first)) {
        found.push(Stance::Aside);
    }
    if words.first().is_some_and(|first| ASK_FIRST.contains(first)) {
        found.push(Stance::Asks);
    }
    found
}

fn judge_run(run: &[char]) -> Vec<Stance> {
    let text: String = run.iter().collect();
    let mut found = Vec::new();
    for (at, c) in text.char_indices() {
        let cues = CUES.chinese.get(&c).into_iter().flatten();
        found.extend(cues.filter(|(cue, _)| text[at..].starts_with(cue)).map(|(_, stance)| *stance));
    }
    if text.find('都').is_some_and(|at| text[at..].contains('了')) {
        found.push(Stance::Aside);
    }
    if text.starts_with('别') && !text.starts_with("别的") && !text.starts_with("别人") {
        found.push(Stance::Aside);
    }
    // A question asks, whatever it denies.
    if text.contains('吗') { vec![Stance::Asks] } else { found }
}

#[cfg(test)]
mod tests {
    use super::super::text;
    use super::*;

    fn stances(text: &str) -> Vec<Stance> {
        clauses(&text::tokens(&text::normalize(text))).into_iter().map(|clause| clause.stance).collect()
    }

    #[test]
    fn what_is_done_or_not_wanted_is_put_aside() {
        assert_eq!(stances("The slides are done already; print the handout"), [Stance::Aside, Stance::Tells]);
        assert_eq!(stances("不用翻译，请校对一遍"), [Stance::Aside, Stance::Asks]);
    }

    #[test]
    fn a_question_asks_even_with_a_negation() {
        assert_eq!(stances("Isn't the parcel here yet?"), [Stance::Asks]);
        assert_eq!(stances("包裹还不到吗"), [Stance::Asks]);
    }

    #[test]
    fn a_request_that_only_denies_is_read_as_it_stands() {
        assert_eq!(stances("Don't let the plants die"), [Stance::Tells]);
    }
}
