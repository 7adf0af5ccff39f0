//! What a server says of itself when it is met: which revision, and what it has.

use reach_schemas::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

use super::reply::{Fault, Reply};
use crate::mcp::wire::{Era, Revision};

/// What a server says of itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Greeting {
    /// The revision that is spoken with it.
    pub revision: Revision,
    /// Its name for people, if it has one.
    pub title: Option<String>,
    /// Its own version.
    pub version: Option<String>,
    /// How it says that it is to be used.
    pub instructions: Option<String>,
    /// Whether it has tools.
    pub has_tools: bool,
    /// Whether it has prompts.
    pub has_prompts: bool,
    /// Whether it has resources.
    pub has_resources: bool,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase", default)]
struct Told<'a> {
    protocol_version: Option<String>,
    supported_versions: Vec<String>,
    #[serde(borrow)]
    capabilities: Capabilities<'a>,
    server_info: Server,
    instructions: Option<String>,
    #[serde(rename = "_meta")]
    meta: Meta,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Meta {
    #[serde(rename = "io.modelcontextprotocol/serverInfo")]
    server_info: Server,
}

#[derive(Deserialize, Default, Clone)]
#[serde(default)]
struct Server {
    name: Option<String>,
    title: Option<String>,
    version: Option<String>,
}

#[derive(Deserialize, Default)]
#[serde(default)]
struct Capabilities<'a> {
    #[serde(borrow)]
    tools: Option<&'a RawValue>,
    #[serde(borrow)]
    prompts: Option<&'a RawValue>,
    #[serde(borrow)]
    resources: Option<&'a RawValue>,
}

impl Greeting {
    /// The answer to `server/discover`. None: it is none, or the server does not speak our revision.
    pub(super) fn discovered(result: &RawJson) -> Option<Self> {
        let told: Told<'_> = result.read().ok()?;
        let spoken = told.supported_versions.iter().filter_map(|version| Revision::by_name(version));
        let revision = spoken.filter(|revision| revision.era() == Era::Stateless).max()?;
        let server = told.meta.server_info.clone();
        Some(Self::of(told, revision, server))
    }

    /// The answer to `initialize`.
    pub(super) fn initialized(reply: Reply) -> Result<Self, Fault> {
        let result = match reply {
            Reply::Result(result) => result,
            Reply::Refused(rejection) => {
                return Err(Fault::NeverSent(format!(
                    "it refuses to begin: {} (error {})",
                    rejection.message, rejection.code
                )));
            }
        };
        let told: Told<'_> = result
            .read()
            .map_err(|error| Fault::NeverSent(format!("it greets in a form that is not known: {error}")))?;
        let named = told.protocol_version.as_deref().unwrap_or_default();
        let revision = Revision::by_name(named).filter(|revision| revision.era() == Era::Handshake);
        let revision =
            revision.ok_or_else(|| Fault::NeverSent(format!("it speaks {named:?}, which is not spoken here")))?;
        let server = told.server_info.clone();
        Ok(Self::of(told, revision, server))
    }

    fn of(told: Told<'_>, revision: Revision, server: Server) -> Self {
        let has = |capability: Option<&RawValue>| capability.is_some_and(|told| told.get() != "null");
        Self {
            revision,
            title: server.title.or(server.name),
            version: server.version,
            instructions: told.instructions,
            has_tools: has(told.capabilities.tools),
            has_prompts: has(told.capabilities.prompts),
            has_resources: has(told.capabilities.resources),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn raw(text: &str) -> RawJson {
        RawJson::parse(text).unwrap()
    }

    #[test]
    fn both_ways_to_greet_say_the_same() {
        let discovered = Greeting::discovered(&raw(
            r#"{"supportedVersions":["2027-01-01","2026-07-28"],"capabilities":{"tools":{}},
                "_meta":{"io.modelcontextprotocol/serverInfo":{"name":"x","version":"2"}}}"#,
        ));
        let discovered = discovered.unwrap();
        let told = raw(
            r#"{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"serverInfo":{"name":"x","version":"2"}}"#,
        );
        let initialized = Greeting::initialized(Reply::Result(told)).unwrap();
        assert_eq!(Greeting { revision: Revision::V2024_11_05, ..discovered }, initialized);
    }

    #[test]
    fn a_revision_that_is_not_spoken_is_refused() {
        assert_eq!(Greeting::discovered(&raw(r#"{"supportedVersions":["2027-01-01"],"capabilities":{}}"#)), None);
        assert_eq!(Greeting::discovered(&raw(r#"{"supportedVersions":["2025-11-25"]}"#)), None);
        let told = Reply::Result(raw(r#"{"protocolVersion":"1999-01-01"}"#));
        assert!(matches!(Greeting::initialized(told), Err(Fault::NeverSent(why)) if why.contains("1999-01-01")));
    }
}
