//! What a server has to offer: its tools, every page of them, and the names of its prompts and resources.

use std::borrow::Cow;
use std::collections::BTreeSet;

use reach_schemas::RawJson;
use serde::Deserialize;
use serde_json::value::RawValue;

use tokio::time::Instant;

use super::ask::{Ask, quoted};
use super::greeting::Greeting;
use super::reply::{Fault, Reply};
use super::server::Server;

/// How many tools of one server are taken.
pub const TOOLS_MAX: usize = 16_384;
/// How many prompts and resources of one server are named.
const NAMES_MAX: usize = 64;
/// How many pages of one list are asked for.
const PAGES_MAX: usize = 4096;

/// What a server has to offer.
#[derive(Debug, Clone, PartialEq)]
pub struct Catalogue {
    /// What it says of itself.
    pub greeting: Greeting,
    /// Its tools, as it describes them, in its order.
    pub tools: Vec<RawJson>,
    /// The names of its prompts.
    pub prompts: Vec<String>,
    /// The names of its resources.
    pub resources: Vec<String>,
    /// What is odd about it.
    pub warnings: Vec<String>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Page<'a> {
    #[serde(borrow, default)]
    tools: Vec<&'a RawValue>,
    #[serde(borrow, default)]
    prompts: Vec<Named<'a>>,
    #[serde(borrow, default)]
    resources: Vec<Named<'a>>,
    #[serde(default)]
    next_cursor: Option<String>,
}

#[derive(Deserialize)]
struct Named<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

impl Catalogue {
    /// Asks a server for everything.
    ///
    /// # Errors
    /// The tools cannot be had. That prompts or resources cannot is a warning.
    pub(super) async fn read(server: &Server, greeting: Greeting, until: Instant) -> Result<Self, Fault> {
        let (has_tools, has_prompts, has_resources) =
            (greeting.has_tools, greeting.has_prompts, greeting.has_resources);
        let mut catalogue =
            Self { greeting, tools: Vec::new(), prompts: Vec::new(), resources: Vec::new(), warnings: Vec::new() };
        if has_tools {
            catalogue.pages(server, "tools/list", until).await?;
        } else {
            catalogue.warnings.push("it says that it has no tools".to_owned());
        }
        for (has, method) in [(has_prompts, "prompts/list"), (has_resources, "resources/list")] {
            if has && let Err(fault) = catalogue.pages(server, method, until).await {
                catalogue.warnings.push(format!("{method} failed: {fault}"));
            }
        }
        Ok(catalogue)
    }

    async fn pages(&mut self, server: &Server, method: &'static str, until: Instant) -> Result<(), Fault> {
        let mut cursor: Option<String> = None;
        let mut seen = BTreeSet::new();
        for _ in 0..PAGES_MAX {
            let members = cursor.as_deref().map(|cursor| format!(r#""cursor":{}"#, quoted(cursor))).unwrap_or_default();
            let ask = Ask { method, members: &members, ..Ask::default() };
            let result = match server.ask(&ask, until, &mut |_| {}).await? {
                Reply::Result(result) => result,
                Reply::Refused(rejection) => {
                    let (message, code) = (rejection.message, rejection.code);
                    return Err(Fault::NeverSent(format!("{method} was refused: {message} (error {code})")));
                }
            };
            let page: Page<'_> = result
                .read()
                .map_err(|error| Fault::NeverSent(format!("the answer to {method} cannot be read: {error}")))?;
            if !self.take(&page) {
                return Ok(());
            }
            // An empty cursor is a cursor; one that came before leads in a circle.
            match page.next_cursor {
                Some(next) if seen.insert(next.clone()) => cursor = Some(next),
                Some(_) => {
                    self.warnings.push(format!("{method} leads in a circle; what came before that is taken"));
                    return Ok(());
                }
                None => return Ok(()),
            }
        }
        self.warnings.push(format!("{method} has more than {PAGES_MAX} pages; the rest is left out"));
        Ok(())
    }

    /// False: there is room for no more.
    fn take(&mut self, page: &Page<'_>) -> bool {
        let names = |named: &[Named<'_>]| named.iter().map(|named| named.name.clone().into_owned()).collect::<Vec<_>>();
        self.tools.extend(page.tools.iter().map(|tool| RawJson::from((*tool).to_owned())));
        self.prompts.extend(names(&page.prompts));
        self.resources.extend(names(&page.resources));
        self.prompts.truncate(NAMES_MAX);
        self.resources.truncate(NAMES_MAX);
        if self.tools.len() > TOOLS_MAX {
            self.tools.truncate(TOOLS_MAX);
            self.warnings.push(format!("it has more than {TOOLS_MAX} tools; the rest is left out"));
            return false;
        }
        true
    }
}
