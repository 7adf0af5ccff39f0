//! `[webhooks]` of the configuration.

use std::collections::BTreeMap;
use std::path::PathBuf;

use reach_schemas::Span;
use serde::Deserialize;

use super::endpoints::networks;
use crate::outbound::Guard;
use crate::webhook::{People, Secrets, Settings};

/// How many waits between tries may be set.
const RETRIES_MAX: usize = 50;

/// The section as it is written. Every field may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// The environment variable that holds what signs webhooks.
    pub secret_env: Option<String>,
    /// The file that does.
    pub secret_file: Option<PathBuf>,
    /// Networks that webhooks may go to though they are not public, such as "10.1.0.0/16".
    pub allow: Vec<String>,
    /// The waits between tries.
    pub retries: Option<Vec<String>>,
    /// How long a receiver may take to answer.
    pub timeout: Option<String>,
    /// How many may be on their way to one host at once.
    pub at_once_per_host: Option<u32>,
    /// Who is told when a task comes before people, by queue; `*` is every queue.
    pub people: BTreeMap<String, Vec<String>>,
}

/// Checks the section, and says where the secrets are from if it names no place: None.
pub(super) fn check(section: Section, mistakes: &mut Vec<String>) -> (Settings, Option<Secrets>) {
    let usual = Settings::default();
    let mut wrong = |field: &str, what: String| mistakes.push(format!("webhooks.{field}: {what}"));
    let mut span = |field: &str, text: &str| match text.parse::<Span>() {
        Ok(span) if span > Span::ZERO => Some(span),
        Ok(_) => {
            wrong(field, "is zero".to_owned());
            None
        }
        Err(error) => {
            wrong(field, error.to_string());
            None
        }
    };
    let timeout = section.timeout.and_then(|text| span("timeout", &text)).unwrap_or(usual.timeout);
    let read = |retries: Vec<String>| retries.iter().filter_map(|text| span("retries", text)).collect();
    let retries: Vec<Span> = section.retries.map_or(usual.retries, read);
    if retries.len() > RETRIES_MAX {
        wrong("retries", format!("has more than {RETRIES_MAX} entries"));
    }
    let at_once_per_host = section.at_once_per_host.unwrap_or(usual.at_once_per_host);
    if !(1..=256).contains(&at_once_per_host) {
        wrong("at_once_per_host", "is 1 to 256".to_owned());
    }
    let guard = Guard::allowing(networks("webhooks.allow", &section.allow, mistakes));
    let mut wrong = |field: &str, what: String| mistakes.push(format!("webhooks.{field}: {what}"));
    let people = people(section.people, &guard, &mut wrong);
    let secrets = match secrets(section.secret_env, section.secret_file) {
        Ok(secrets) => secrets,
        Err((field, what)) => {
            wrong(field, what);
            None
        }
    };
    (Settings { secrets: usual.secrets, guard, retries, timeout, at_once_per_host, people }, secrets)
}

/// Who looks after which queue.
fn people(section: BTreeMap<String, Vec<String>>, guard: &Guard, wrong: &mut impl FnMut(&str, String)) -> People {
    let mut people = People::default();
    for (queue, urls) in section {
        for url in &urls {
            if let Err(refused) = guard.check(url) {
                wrong("people", format!("the address {url:?} {refused}"));
            }
        }
        if queue == "*" {
            people.of_all = urls;
            continue;
        }
        match queue.parse() {
            Ok(queue) => {
                people.of_queue.insert(queue, urls);
            }
            Err(error) => wrong("people", format!("{queue:?} is neither a queue nor \"*\": {error}")),
        }
    }
    people
}

/// The secrets of the place that is named. None: no place is named.
fn secrets(env: Option<String>, file: Option<PathBuf>) -> Result<Option<Secrets>, (&'static str, String)> {
    match (env, file) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(("secret_file", "secret_env is set as well; name one place".to_owned())),
        (Some(name), None) => {
            let wrong = |what: String| ("secret_env", format!("the environment variable {name} {what}"));
            let text = std::env::var(&name).map_err(|_| wrong("is not set, or is not text".to_owned()))?;
            let from = format!("the environment variable {name}");
            Secrets::read(&text, from).map(Some).map_err(|flaw| wrong(flaw.to_string()))
        }
        (None, Some(path)) => {
            let wrong = |what: String| ("secret_file", format!("{} {what}", path.display()));
            let text = std::fs::read_to_string(&path).map_err(|error| wrong(format!("cannot be read: {error}")))?;
            let from = format!("the file {}", path.display());
            Secrets::read(&text, from).map(Some).map_err(|flaw| wrong(flaw.to_string()))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<(Settings, Option<Secrets>), String> {
        let mut mistakes = Vec::new();
        let checked = check(toml::from_str(text).map_err(|error| error.to_string())?, &mut mistakes);
        if mistakes.is_empty() { Ok(checked) } else { Err(mistakes.join("\n")) }
    }

    #[test]
    fn what_is_written_is_what_is_used() {
        let text = "allow = [\"127.0.0.0/8\"]\nretries = [\"1s\", \"2s\"]\ntimeout = \"3s\"\nat_once_per_host = 2\n";
        let (settings, secrets) = read(text).unwrap();
        assert!(secrets.is_none() && settings.guard.check("http://127.0.0.1/").is_ok());
        assert_eq!(settings.retries, [Span::from_secs(1), Span::from_secs(2)]);
        assert_eq!((settings.timeout, settings.at_once_per_host), (Span::from_secs(3), 2));
        let usual = read("").unwrap().0;
        assert_eq!((usual.retries.len(), usual.timeout), (9, Span::from_secs(15)));
        assert_eq!(read("retries = []").unwrap().0.retries, []);
        let people = "[people]\n\"*\" = [\"https://a.example/\"]\ndesk = [\"https://b.example/\"]\n";
        let people = read(people).unwrap().0.people;
        assert_eq!(people.of(&"desk".parse().unwrap()), ["https://a.example/", "https://b.example/"]);
        assert_eq!(people.of(&"bench".parse().unwrap()), ["https://a.example/"]);
    }

    #[test]
    fn secrets_come_from_one_place_and_are_not_shown_when_they_are_wrong() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        let text = format!("secret_file = {:?}", path.display().to_string());
        assert!(read(&text).unwrap_err().contains("cannot be read"));
        std::fs::write(&path, "whsec_c2hvcnQ=").unwrap();
        let said = read(&text).unwrap_err();
        assert!(said.contains("secret 1 is not whsec_") && !said.contains("c2hvcnQ"), "{said}");
        std::fs::write(&path, "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw\n").unwrap();
        assert_eq!(read(&text).unwrap().1.unwrap().from(), format!("the file {}", path.display()));
        let both = format!("{text}\nsecret_env = \"X\"");
        assert!(read(&both).unwrap_err().contains("name one place"));
        let unset = read("secret_env = \"AGENT_REACH_NO_SUCH_SECRET\"").unwrap_err();
        assert!(unset.contains("AGENT_REACH_NO_SUCH_SECRET is not set"), "{unset}");
    }

    #[test]
    fn every_mistake_is_told() {
        let text = "allow = [\"10.0.0.1/99\"]\nretries = [\"soon\", \"0s\"]\ntimeout = \"0s\"\nat_once_per_host = 0\n";
        let said = read(text).unwrap_err();
        for part in [
            "webhooks.allow: \"10.0.0.1/99\"",
            "webhooks.retries: \"soon\"",
            "webhooks.retries: is zero",
            "webhooks.timeout: is zero",
            "webhooks.at_once_per_host: is 1 to 256",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        let people = "[people]\n\"no queue\" = []\ndesk = [\"http://10.0.0.1/\"]\n";
        let said = read(people).unwrap_err();
        assert!(said.contains("\"no queue\" is neither") && said.contains("is 10.0.0.1, which is not"), "{said}");
        assert!(read("secret = \"whsec_x\"").unwrap_err().contains("unknown field `secret`"));
    }
}
