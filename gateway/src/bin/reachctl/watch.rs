//! Looking again and again: redrawn in place on a terminal, else the changes line by line, or JSON lines.

use std::collections::BTreeMap;

use agent_reach_sdk::{Method, RawJson, Timestamp};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::args::Watch;
use crate::complaint::Complaint;
use crate::exit::{Exit, Stop};
use crate::output;
use crate::render::Look;
use crate::render::text::clean;
use crate::session::{Session, read};

/// Sets an answer as text.
type Render<T> = Box<dyn Fn(&T, &Look) -> String>;

/// How an answer is shown, and followed.
pub(crate) struct View<T> {
    /// The whole, for people.
    pub(crate) render: Render<T>,
    /// What is compared from look to look: a name and a line for each entry, without times that pass by themselves.
    pub(crate) lines: fn(&T) -> Vec<(String, String)>,
    /// Whether nothing more will change.
    pub(crate) is_over: fn(&T) -> bool,
}

/// Shows a method's answer once, or again and again if it is to be watched.
pub(crate) async fn present<T: DeserializeOwned>(
    session: &Session,
    method: Method,
    params: &impl Serialize,
    watch: &Watch,
    view: View<T>,
) -> Result<Exit, Stop> {
    if !watch.watch {
        return session.show(method, params, view.render).await;
    }
    // A first look that fails is an error; later ones may pass.
    let mut answer = Ok(session.ask(method, params).await?);
    let mut screen = Screen { last: None, known: BTreeMap::new() };
    loop {
        let is_over = match answer {
            Ok(answer) => screen.look(session, method, &answer, &view)?,
            Err(stop) => trouble(session, stop)?,
        };
        if is_over {
            return Ok(Exit::Done);
        }
        tokio::time::sleep(watch.interval.into()).await;
        answer = session.ask(method, params).await;
    }
}

struct Screen {
    /// The last answer, as JSON lines have it.
    last: Option<String>,
    /// The last lines, by name.
    known: BTreeMap<String, String>,
}

impl Screen {
    fn look<T: DeserializeOwned>(
        &mut self,
        session: &Session,
        method: Method,
        answer: &RawJson,
        view: &View<T>,
    ) -> Result<bool, Stop> {
        let value: T = read(method, answer)?;
        let out = &session.out;
        if out.is_json {
            let line = one_line(answer.get());
            if self.last.as_ref() != Some(&line) {
                out.line(&line)?;
                self.last = Some(line);
            }
        } else if out.is_terminal {
            out.text(&drawn(&(view.render)(&value, &out.look()), output::height()))?;
        } else {
            out.text(&changes(&mut self.known, (view.lines)(&value), output::now()))?;
        }
        Ok((view.is_over)(&value))
    }
}

/// Says what is wrong and goes on where looking again may help; else that is the end.
fn trouble(session: &Session, stop: Stop) -> Result<bool, Stop> {
    let complaint = Complaint::of(&stop);
    if !matches!(complaint.exit, Exit::NoGateway | Exit::Later) && !matches!(stop, Stop::NoAnswer { .. }) {
        return Err(stop);
    }
    session.out.note(&format!("{}; looking again", clean(&complaint.message)))?;
    Ok(false)
}

/// JSON text on one line: line ends stand only between its tokens, never within a string.
fn one_line(json: &str) -> String {
    json.replace(['\n', '\r'], " ")
}

/// The text over what is on the terminal, cut to what it shows. Each line's rest is wiped, not the whole screen
/// before, so that nothing flickers.
fn drawn(text: &str, height: usize) -> String {
    let lines: Vec<&str> = text.lines().collect();
    let room = height.saturating_sub(1).max(1);
    let mut drawn = String::from("\x1b[H");
    let shown = if lines.len() > room { room - 1 } else { lines.len() };
    for line in &lines[..shown] {
        drawn.push_str(line);
        drawn.push_str("\x1b[K\n");
    }
    if shown < lines.len() {
        drawn.push_str(&format!("... {} more lines\x1b[K\n", lines.len() - shown));
    }
    drawn.push_str("\x1b[J");
    drawn
}

/// What has come (`+`), gone (`-`) and changed (`~`) since the last look.
fn changes(known: &mut BTreeMap<String, String>, lines: Vec<(String, String)>, now: Timestamp) -> String {
    let new: BTreeMap<String, String> = lines.iter().cloned().collect();
    let mut text = String::new();
    for (name, line) in &lines {
        let mark = match known.get(name) {
            None => '+',
            Some(old) if old != line => '~',
            Some(_) => continue,
        };
        text.push_str(&format!("{now} {mark} {name} {}\n", clean(line)));
    }
    for name in known.keys().filter(|name| !new.contains_key(*name)) {
        text.push_str(&format!("{now} - {name}\n"));
    }
    *known = new;
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_changed_is_printed() {
        let now = Timestamp::from_ms(0);
        let lines = |all: &[(&str, &str)]| all.iter().map(|(a, b)| ((*a).to_owned(), (*b).to_owned())).collect();
        let mut known = BTreeMap::new();
        let first = changes(&mut known, lines(&[("a", "alive"), ("b", "alive")]), now);
        assert_eq!(first, "1970-01-01T00:00:00.000Z + a alive\n1970-01-01T00:00:00.000Z + b alive\n");
        assert_eq!(changes(&mut known, lines(&[("a", "alive"), ("b", "alive")]), now), "");
        let then = changes(&mut known, lines(&[("b", "dead")]), now);
        assert_eq!(then, "1970-01-01T00:00:00.000Z ~ b dead\n1970-01-01T00:00:00.000Z - a\n");
    }

    #[test]
    fn a_screen_is_never_drawn_past_its_last_line() {
        assert_eq!(drawn("1\n2\n", 5), "\x1b[H1\x1b[K\n2\x1b[K\n\x1b[J");
        assert_eq!(drawn("1\n2\n3\n4\n", 4), "\x1b[H1\x1b[K\n2\x1b[K\n... 2 more lines\x1b[K\n\x1b[J");
    }

    #[test]
    fn json_lines_stay_json_on_one_line() {
        assert_eq!(one_line("{\"a\":\n 1}"), "{\"a\":  1}");
    }
}
