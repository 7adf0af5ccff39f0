//! `[auth]` of the configuration: whether callers are asked who they are, and by what they may join.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;

use reach_schemas::{Namespace, Secret};
use serde::Deserialize;

use crate::identity::{Mode, Settings};

/// The least length of a namespace's secret, in bytes: it is tried from outside.
const SECRET_MIN: usize = 24;

/// The section as it is written. Every field may be left out.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Section {
    /// `open` or `required`.
    pub mode: Option<String>,
    /// The address by which others call, such as `https://reach.example.com`.
    pub public_url: Option<String>,
    /// For whom agents' tokens are.
    pub audience: Option<String>,
    /// Where the secret of each namespace is, by which all its agents may join.
    pub namespaces: BTreeMap<String, Place>,
}

/// Where a secret is: in one of both.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Place {
    /// The environment variable that holds it.
    pub secret_env: Option<String>,
    /// The file that does.
    pub secret_file: Option<PathBuf>,
}

/// Checks the section. `shows_who`: callers show certificates, which is enough to be let in from elsewhere.
pub(super) fn check(
    section: Section,
    listen: Option<SocketAddr>,
    shows_who: bool,
    mistakes: &mut Vec<String>,
) -> Settings {
    let Section { mode, public_url, audience, namespaces } = section;
    let mut wrong = |field: &str, what: String| mistakes.push(format!("auth.{field}: {what}"));
    let mode = match mode.as_deref() {
        None | Some("open") => Mode::Open,
        Some("required") => Mode::Required,
        Some(other) => {
            wrong("mode", format!("{other:?} is not \"open\" or \"required\""));
            Mode::Required
        }
    };
    let is_address = |url: &String| {
        url::Url::parse(url)
            .is_ok_and(|url| matches!(url.scheme(), "http" | "https") && url.has_host() && url.path() == "/")
    };
    if let Some(url) = public_url.as_ref().filter(|url| !is_address(url)) {
        wrong("public_url", format!("{url:?} is no address such as \"https://reach.example.com\""));
    }
    let is_local = listen.is_none_or(|listen| listen.ip().is_loopback());
    match (mode, is_local, &public_url) {
        (Mode::Open, false, _) if !shows_who => mistakes.push(
            "listen: it can be reached from other machines, and callers are not asked who they are; use 127.0.0.1, or set \
             auth.mode = \"required\", or tls.client_ca"
                .to_owned(),
        ),
        (Mode::Required, false, None) => wrong(
            "public_url",
            "is missing: agents that show their keys say for which gateway they do, and it must know its own name".to_owned(),
        ),
        (Mode::Open | Mode::Required, _, _) => {}
    }
    let mut wrong = |field: &str, what: String| mistakes.push(format!("auth.{field}: {what}"));
    let namespace_secrets = secrets(namespaces, &mut wrong);
    Settings { mode, public_url, audience, namespace_secrets, ..Settings::default() }
}

fn secrets(namespaces: BTreeMap<String, Place>, wrong: &mut impl FnMut(&str, String)) -> BTreeMap<Namespace, Secret> {
    let mut secrets = BTreeMap::new();
    for (name, place) in namespaces {
        let read = match (place.secret_env, place.secret_file) {
            (Some(variable), None) => {
                std::env::var(&variable).map_err(|_| format!("the environment variable {variable} is not set"))
            }
            (None, Some(path)) => {
                std::fs::read_to_string(&path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
            }
            (None, None) | (Some(_), Some(_)) => Err("name one of secret_env and secret_file".to_owned()),
        };
        let long = read.map(|text| Secret::from(text.trim().to_owned())).and_then(|secret| {
            let is_long = secret.reveal().len() >= SECRET_MIN;
            is_long.then_some(secret).ok_or_else(|| format!("the secret is shorter than {SECRET_MIN} bytes"))
        });
        match (name.parse::<Namespace>(), long) {
            (Ok(namespace), Ok(secret)) => drop(secrets.insert(namespace, secret)),
            (Err(error), _) => wrong("namespaces", error.to_string()),
            (Ok(_), Err(what)) => wrong("namespaces", format!("{name}: {what}")),
        }
    }
    secrets
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str, listen: &str) -> Result<Settings, String> {
        let mut mistakes = Vec::new();
        let section = toml::from_str(text).map_err(|error| error.to_string())?;
        let settings = check(section, listen.parse().ok(), false, &mut mistakes);
        if mistakes.is_empty() { Ok(settings) } else { Err(mistakes.join("\n")) }
    }

    #[test]
    fn callers_are_not_asked_on_this_machine_only() {
        assert_eq!(read("", "127.0.0.1:1").unwrap().mode, Mode::Open);
        assert!(read("", "0.0.0.0:1").unwrap_err().contains("listen:"));
        assert!(read("mode = \"open\"", "10.0.0.1:1").unwrap_err().contains("auth.mode = \"required\""));
        assert_eq!(read("mode = \"required\"", "127.0.0.1:1").unwrap().mode, Mode::Required);
        assert!(read("mode = \"required\"", "10.0.0.1:1").unwrap_err().contains("auth.public_url"));
        let settings = read("mode = \"required\"\npublic_url = \"https://reach.example\"", "10.0.0.1:1").unwrap();
        assert_eq!(settings.public_url.as_deref(), Some("https://reach.example"));
    }

    #[test]
    fn every_mistake_is_told_and_no_secret_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("secret");
        std::fs::write(&path, "short-s3cret\n").unwrap();
        let text = format!(
            "mode = \"none\"\npublic_url = \"reach.example\"\n[namespaces.media]\nsecret_file = {path:?}\n\
             [namespaces.Desk]\nsecret_env = \"HOME\"\n[namespaces.none]\n"
        );
        let said = read(&text, "127.0.0.1:1").unwrap_err();
        for part in [
            "auth.mode: \"none\"",
            "auth.public_url",
            "media: the secret is shorter",
            "the namespace",
            "none: name one",
        ] {
            assert!(said.contains(part), "{part}: {said}");
        }
        assert!(!said.contains("s3cret"));
        std::fs::write(&path, "a-secret-of-more-than-24-bytes\n").unwrap();
        let settings = read(&format!("[namespaces.media]\nsecret_file = {path:?}"), "127.0.0.1:1").unwrap();
        assert_eq!(settings.namespace_secrets.len(), 1);
        assert!(!format!("{settings:?}").contains("a-secret"));
    }
}
