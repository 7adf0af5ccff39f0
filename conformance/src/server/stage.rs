//! A server on the stage: its conversations, its tools, which acts there are, and which profiles apply.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastrand::Rng;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use jsonschema::Validator;
use serde_json::{Map, Value};

use super::acts;
use super::session::Session;
use super::wire::Road;
use crate::engine::{self, Act, Findings, Outcome, Selection, Stage, Stop};
use crate::exchange::Exchange;
use crate::inputs::Inputs;

/// Every act, in the order in which they are done.
const ACTS: &[&str] = &[
    "mcp_begin",
    "mcp_list",
    "mcp_call",
    "mcp_versions",
    "mcp_frames",
    "mcp_meta",
    "mcp_bad",
    "mcp_texts",
    "mcp_large",
    "mcp_crowd",
    "mcp_slow",
    "mcp_cancel",
    "mcp_effects",
    "mcp_session",
    "mcp_end",
];

/// What a server is checked with.
#[derive(Debug, Clone)]
pub(crate) struct Options {
    /// An address, or a command.
    pub(crate) server: String,
    /// Arguments by tool: `params`, `slow`, `bad`.
    pub(crate) samples: Map<String, Value>,
    /// A file in which each effect leaves a line.
    pub(crate) effects: Option<PathBuf>,
    /// How long one step may take.
    pub(crate) timeout: Duration,
    pub(crate) seed: u64,
}

/// A tool.
pub(crate) struct Tool {
    pub(crate) name: String,
    pub(crate) inputs: Inputs,
    pub(crate) output: Option<Validator>,
    pub(crate) annotations: Value,
}

/// A tool that has answered, and what it answered.
pub(crate) struct Usable {
    pub(crate) tool: usize,
    pub(crate) took: Duration,
}

/// A call that takes a while.
#[derive(Clone)]
pub(crate) struct Slow {
    pub(crate) name: String,
    pub(crate) arguments: Value,
    pub(crate) takes: Duration,
    /// Whether it had an effect that is counted.
    pub(crate) has_effect: bool,
}

/// The server, and what is known of it.
pub(crate) struct Server {
    pub(crate) options: Options,
    pub(crate) exchange: Arc<Exchange>,
    pub(crate) road: Road,
    pub(crate) rng: Rng,
    /// The conversation in the stateless revision.
    pub(crate) modern: Option<Session>,
    /// The conversation that began with a handshake.
    pub(crate) legacy: Option<Session>,
    pub(crate) tools: Vec<Tool>,
    pub(crate) usable: Vec<Usable>,
    pub(crate) slow: Option<Slow>,
    /// Why profiles do not apply.
    pub(crate) reasons: BTreeMap<&'static str, String>,
}

/// Checks a server. `Err`: the check could not begin.
pub(crate) async fn check(options: Options, selection: &Selection, exchange: Arc<Exchange>) -> Result<Outcome, String> {
    let is_url = options.server.starts_with("http://") || options.server.starts_with("https://");
    let road = if is_url {
        Road::Http { client: crate::agent::client()?, url: options.server.clone() }
    } else {
        Road::Command(options.server.clone())
    };
    let bound = options.timeout * 4;
    let mut server = Server {
        rng: Rng::with_seed(options.seed),
        exchange: exchange.clone(),
        road,
        modern: None,
        legacy: None,
        tools: Vec::new(),
        usable: Vec::new(),
        slow: None,
        reasons: BTreeMap::new(),
        options,
    };
    Ok(engine::run(&mut server, selection, &exchange, bound).await)
}

impl Server {
    /// The conversation that a gateway would have: stateless, where the server speaks that.
    pub(crate) fn main(&self) -> Result<&Session, Stop> {
        self.modern.as_ref().or(self.legacy.as_ref()).ok_or_else(|| Stop("there is no way to the server".to_owned()))
    }

    /// The other one, in the other era.
    pub(crate) fn other(&self) -> Option<&Session> {
        self.modern.as_ref().and(self.legacy.as_ref())
    }

    /// Another conversation with a handshake.
    pub(crate) async fn anew(&self, revision: &str) -> Result<Session, super::inbox::Said> {
        Session::handshake(&self.road, revision, self.exchange.clone(), self.options.timeout).await
    }

    pub(crate) const fn is_http(&self) -> bool {
        matches!(self.road, Road::Http { .. })
    }

    /// The quickest tool that works, with its arguments.
    pub(crate) fn easy(&self) -> Result<(String, Value), Stop> {
        let usable = self.usable.first().ok_or_else(no_tool)?;
        let tool = &self.tools[usable.tool];
        Ok((tool.name.clone(), tool.inputs.params.clone().unwrap_or_default()))
    }

    /// Whether an easy call is still answered; says so under this requirement.
    pub(crate) async fn judge_still_works(&self, findings: &mut Findings<'_>, id: &str) -> Act {
        let (name, arguments) = self.easy()?;
        let found = good(&self.main()?.tool(&name, &arguments).await).map(drop);
        findings.judge(id, "an easy call is answered with a result, as before", found);
        Ok(())
    }

    /// How many effects there were, if there is a file in which they are counted.
    pub(crate) fn effects(&self) -> Option<usize> {
        let path = self.options.effects.as_ref()?;
        Some(std::fs::read_to_string(path).unwrap_or_default().lines().count())
    }
}

/// No tool works.
pub(crate) fn no_tool() -> Stop {
    Stop("no tool gave a result: name a file with arguments that make sense with --samples".to_owned())
}

/// The result of a call that went well, or words for what there is instead.
pub(crate) fn good(said: &super::inbox::Said) -> Result<Value, String> {
    let result = said.result()?;
    if result["isError"] == Value::Bool(true) { Err(said.words()) } else { Ok(result) }
}

impl Stage for Server {
    fn acts(&self) -> &'static [&'static str] {
        ACTS
    }

    fn perform<'a>(&'a mut self, act: &'static str, findings: &'a mut Findings<'_>) -> BoxFuture<'a, Act> {
        match act {
            "mcp_begin" => acts::begin::begin(self, findings).boxed(),
            "mcp_list" => acts::tools::list(self, findings).boxed(),
            "mcp_call" => acts::tools::call(self, findings).boxed(),
            "mcp_versions" => acts::begin::versions(self, findings).boxed(),
            "mcp_frames" => acts::frames::frames(self, findings).boxed(),
            "mcp_meta" => acts::frames::meta(self, findings).boxed(),
            "mcp_bad" => acts::input::bad(self, findings).boxed(),
            "mcp_texts" => acts::input::texts(self, findings).boxed(),
            "mcp_large" => acts::input::large(self, findings).boxed(),
            "mcp_crowd" => acts::slow::crowd(self, findings).boxed(),
            "mcp_slow" => acts::slow::slow(self, findings).boxed(),
            "mcp_cancel" => acts::slow::cancel(self, findings).boxed(),
            "mcp_effects" => acts::tools::effects(self, findings).boxed(),
            "mcp_session" => acts::session::session(self, findings).boxed(),
            "mcp_end" => acts::session::end(self, findings).boxed(),
            other => futures_util::future::ready(Err(Stop(format!("there is no act {other}")))).boxed(),
        }
    }

    fn why_not(&self, profile: &str) -> Option<String> {
        let no = |applies: bool, why: &str| if applies { None } else { Some(why.to_owned()) };
        match profile {
            "mcp-handshake" => no(self.legacy.is_some(), "the server speaks the stateless revision only"),
            "mcp-stateless" => no(self.modern.is_some(), "the server does not speak the stateless revision"),
            "mcp-eras" => no(self.other().is_some(), "the server speaks one era only"),
            "mcp-http" => no(self.is_http(), "the server is a child process"),
            "mcp-stdio" => no(!self.is_http(), "the server is reached over HTTP"),
            other => self.reasons.get(other).cloned(),
        }
    }
}
