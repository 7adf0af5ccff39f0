//! Stories as text. Each line is a time, a word that says what happens, and behind `=>` what came of it. The story is
//! played, written down anew, and must read the same.

use reach_schemas::Span;

/// One line of a story, without what came of it.
#[derive(Debug)]
pub(crate) struct Line<'a> {
    /// Since the story began.
    pub(crate) at: Span,
    /// What happens.
    pub(crate) verb: &'a str,
    words: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn read(text: &'a str, last: Span) -> Self {
        let mut words: Vec<&str> = text.split_whitespace().collect();
        let at = words.first().and_then(|word| word.parse().ok());
        if at.is_some() {
            words.remove(0);
        }
        Self { at: at.unwrap_or(last), verb: words.remove(0), words }
    }

    /// The nth word after the verb that is no setting.
    pub(crate) fn word(&self, at: usize) -> &'a str {
        self.words.iter().filter(|word| !word.contains('=')).nth(at).copied().unwrap_or_default()
    }

    /// Whether a word stands there.
    pub(crate) fn has(&self, word: &str) -> bool {
        self.words.contains(&word)
    }

    /// What is set by `name=`, with `_` read as a space.
    pub(crate) fn set(&self, name: &str) -> Option<&'a str> {
        self.words.iter().find_map(|word| word.strip_prefix(name)?.strip_prefix('='))
    }

    /// What is set by `name=`, as a number, a span, an id or the like.
    pub(crate) fn read_set<T: std::str::FromStr>(&self, name: &str) -> Option<T>
    where
        T::Err: std::fmt::Debug,
    {
        self.set(name).map(|text| text.parse().unwrap())
    }
}

/// Plays a story, and checks that it comes out as it is written.
#[track_caller]
pub(crate) fn check(story: &str, mut play: impl FnMut(&Line<'_>) -> String) {
    let (mut told, mut last) = (Vec::new(), Span::ZERO);
    let even = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    let wanted: Vec<String> = story.lines().map(even).filter(|line| !line.is_empty()).collect();
    for wish in &wanted {
        let said = wish.split("=>").next().unwrap_or_default().trim();
        let line = Line::read(said, last);
        last = line.at;
        let came = play(&line);
        told.push(if came.is_empty() { said.to_owned() } else { format!("{said} => {came}") });
    }
    let mark = |(told, wish): (&String, &String)| {
        if told == wish { format!("  {told}") } else { format!("> {told}\n     not as written: {wish}") }
    };
    let shown: Vec<String> = told.iter().zip(&wanted).map(mark).collect();
    assert!(told == wanted, "the story goes otherwise:\n{}", shown.join("\n"));
}
