//! The command line of `reach-conformance`.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use clap::{ArgGroup, Args, Parser, Subcommand};
use futures_util::future::select_all;
use reach_schemas::Span;
use serde_json::{Map, Value};
use tokio::signal::unix::{SignalKind, signal};

use crate::agent::{self, Asked, Options};
use crate::catalog::{self, Level, Subject};
use crate::engine::{Outcome, Selection};
use crate::exchange::Exchange;
use crate::gateway;
use crate::report::{About, Expected, Report, explained, junit, listed, written};
use crate::server;

/// All is as it should be.
const OK: u8 = 0;
/// A requirement is not met, or is met against what the file of expected failures says.
const BROKEN: u8 = 1;
/// The command line, or a file that it names, is wrong.
const MISUSED: u8 = 2;
/// Nothing could be looked at in a profile that applies.
const IDLE: u8 = 3;
/// The program was told to stop: this, and the number of the signal, as shells have it.
const STOPPED: u8 = 128;

/// Why there is no report.
struct Halt {
    code: u8,
    why: String,
}

impl From<String> for Halt {
    fn from(why: String) -> Self {
        Self { code: MISUSED, why }
    }
}

/// Validates an agent, or a gateway, against the Agent-Reach wire.
///
/// Exit codes: 0 all is well; 1 a requirement is not met, or an expected failure did not fail; 2 the command line is
/// wrong; 3 nothing could be looked at in a profile that applies; 128 and more: stopped by a signal.
#[derive(Debug, Parser)]
#[command(name = "reach-conformance", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Checks an agent, as its gateway.
    Agent(Box<AgentArgs>),
    /// Checks a gateway, as a caller and as an agent of it. What it registers and submits lies in namespaces of the run's own.
    Gateway(Box<GatewayArgs>),
    /// Lists the requirements: subject, profile, level, id, and what it says.
    List {
        /// Those of this level and above.
        #[arg(long, value_enum, default_value = "may")]
        level: Level,
    },
    /// Says all about one requirement: where it comes from, and what to do to meet it.
    Explain {
        /// Its id.
        id: String,
    },
}

#[derive(Debug, Args)]
#[command(group = ArgGroup::new("way").required(true))]
struct AgentArgs {
    /// The agent is an HTTP service at this address. Without one: at the address that its card names.
    #[arg(long, group = "way", value_name = "URL", num_args = 0..=1, default_missing_value = "")]
    http: Option<String>,
    /// The agent opens a WebSocket to this address, or pulls from it: as its card says.
    #[arg(long, group = "way", value_name = "ADDRESS")]
    ws_listen: Option<SocketAddr>,
    /// The agent is a command, for each task anew. Needs --card.
    #[arg(long, group = "way", value_name = "COMMAND", requires = "card")]
    process: Option<String>,
    /// The agent is an MCP server, at this address or started with this command: `reach-conformance list` names what it
    /// is held to as `server`.
    #[arg(long, group = "way", value_name = "URL|COMMAND", conflicts_with_all = ["card", "start"])]
    mcp: Option<String>,
    /// Where the runner listens as the gateway of an HTTP agent. Port 0: one that is free.
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1:7340")]
    listen: SocketAddr,
    /// The card (JSON), for an agent that does not register itself.
    #[arg(long, value_name = "FILE")]
    card: Option<PathBuf>,
    /// Starts the agent with this command, once the runner listens; AGENT_REACH_URL tells it where. It is ended afterwards.
    #[arg(long, value_name = "COMMAND")]
    start: Option<String>,
    /// Parameters to use (JSON): {"CAPABILITY": {"params": ..., "slow": ..., "bad": ...}}; `slow` is work of about a second.
    #[arg(long, value_name = "FILE")]
    samples: Option<PathBuf>,
    /// The runner is a gateway that asks for tokens: the agent joins, and is given its next token, and loses one. Told to
    /// an agent of --start by AGENT_REACH_JOIN; otherwise its join token is reach_join_conformance-0123456789abcdef.
    #[arg(long, conflicts_with_all = ["card", "process", "mcp"])]
    tokens: bool,
    /// A file in which each effect of the agent leaves a line, so that effects can be counted.
    #[arg(long, value_name = "FILE")]
    effects: Option<PathBuf>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct GatewayArgs {
    /// The gateway's address, such as http://127.0.0.1:7340.
    #[arg(long, value_name = "URL")]
    url: String,
    /// A command that serves the same over standard input and output, such as 'reach-gateway stdio --data DIR'.
    #[arg(long, value_name = "COMMAND")]
    stdio: Option<String>,
    #[command(flatten)]
    run: RunArgs,
}

#[derive(Debug, Args)]
struct RunArgs {
    /// Checks only these requirements or profiles.
    #[arg(long, value_name = "ID", value_delimiter = ',')]
    only: Vec<String>,
    /// Checks those of this level and above.
    #[arg(long, value_enum, default_value = "may")]
    level: Level,
    /// A failure of this level or above makes the exit code 1.
    #[arg(long, value_enum, default_value = "must")]
    fail_on: Level,
    /// How long one step may take.
    #[arg(long, value_name = "SPAN", default_value = "10s")]
    timeout: Span,
    /// The chance that parameters are made with: the same seed, the same parameters.
    #[arg(long, default_value_t = 7)]
    seed: u64,
    /// Prints the report as JSON.
    #[arg(long)]
    json: bool,
    /// Writes the report as JUnit XML too.
    #[arg(long, value_name = "FILE")]
    junit: Option<PathBuf>,
    /// A file of ids that are expected to fail. What fails and is not in it is a failure; so is what is in it and does not fail.
    #[arg(long, value_name = "FILE")]
    expected_failures: Option<PathBuf>,
    /// Whether signals end the run in order: a program's affair, and no library's.
    #[arg(skip)]
    heeds_signals: bool,
}

/// Runs the program.
#[must_use]
pub fn run() -> ExitCode {
    match perform(Cli::parse().command) {
        Ok(code) => ExitCode::from(code),
        Err(Halt { code, why }) => {
            eprintln!("reach-conformance: {why}");
            ExitCode::from(code)
        }
    }
}

/// Checks what these arguments name, as the command line does, without the name of the program. Answers the exit code and
/// the report as JSON. Blocks until it is done: it has a runtime of its own.
///
/// # Errors
/// The arguments are no check, a file that they name cannot be read, or the check could not begin.
pub fn check<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Result<(u8, String), String> {
    let words = std::iter::once("reach-conformance").chain(arguments);
    let command = Cli::try_parse_from(words).map_err(|error| error.to_string())?.command;
    let (run, report) = match command {
        Command::Agent(args) => check_agent(*args).map_err(|halt| halt.why)?,
        Command::Gateway(args) => check_gateway(*args).map_err(|halt| halt.why)?,
        Command::List { .. } | Command::Explain { .. } => return Err("this checks nothing".to_owned()),
    };
    Ok((code(&run, &report), as_json(&report)?))
}

fn perform(command: Command) -> Result<u8, Halt> {
    match command {
        Command::List { level } => {
            print!("{}", listed(catalog::all().iter().filter(|requirement| requirement.level <= level)));
            Ok(OK)
        }
        Command::Explain { id } => {
            let found = catalog::find(&id);
            let requirement =
                found.ok_or_else(|| format!("there is no requirement {id:?}; see reach-conformance list"))?;
            print!("{}", explained(requirement));
            Ok(OK)
        }
        Command::Agent(mut args) => {
            args.run.heeds_signals = true;
            check_agent(*args).and_then(|(run, report)| conclude(&run, &report))
        }
        Command::Gateway(mut args) => {
            args.run.heeds_signals = true;
            check_gateway(*args).and_then(|(run, report)| conclude(&run, &report))
        }
    }
}

fn read(path: &Path) -> Result<String, String> {
    std::fs::read_to_string(path).map_err(|error| format!("{} cannot be read: {error}", path.display()))
}

fn read_json(path: &Path) -> Result<Value, String> {
    serde_json::from_str(&read(path)?).map_err(|error| format!("{} is no JSON: {error}", path.display()))
}

fn check_agent(args: AgentArgs) -> Result<(RunArgs, Report), Halt> {
    let AgentArgs { http, ws_listen, process, mcp, listen, card, start, samples, tokens, effects, run } = args;
    let samples = match samples.as_deref().map(read_json).transpose()? {
        Some(Value::Object(samples)) => samples,
        Some(_) => return Err("the samples are an object, with the names of capabilities".to_owned().into()),
        None => Map::new(),
    };
    let exchange = Arc::new(Exchange::new());
    if let Some(server) = mcp {
        let what = format!("MCP server {server}");
        let options = server::Options { server, samples, effects, timeout: run.timeout.into(), seed: run.seed };
        let ready = Ready::make(&run, Subject::Server)?;
        let outcome = block_on(&run, server::check(options, &ready.selection, exchange))?;
        let report = ready.report(&run, what, outcome);
        return Ok((run, report));
    }
    let (asked, listen, what) = match (http, ws_listen, process) {
        (_, Some(address), _) => (Asked::Listen, Some(address), format!("agent at {address}")),
        (_, _, Some(line)) => (Asked::Process(line.clone()), None, format!("agent {line}")),
        (Some(url), None, None) => {
            let url = Some(url).filter(|url| !url.is_empty());
            let what = format!("agent {}", url.as_deref().unwrap_or("over HTTP"));
            // Who brings a card along is not waited for.
            (Asked::Http(url), Some(listen).filter(|_| card.is_none()), what)
        }
        (None, None, None) => return Err("name the way to the agent".to_owned().into()),
    };
    let card = card.as_deref().map(read_json).transpose()?;
    let options = Options {
        asked,
        listen,
        card,
        samples,
        start,
        effects,
        demands_tokens: tokens,
        timeout: run.timeout.into(),
        seed: run.seed,
    };
    let ready = Ready::make(&run, Subject::Agent)?;
    let tell = |text: &str| eprintln!("reach-conformance: {text}");
    let outcome = block_on(&run, agent::check(options, &ready.selection, exchange, tell))?;
    let report = ready.report(&run, what, outcome);
    Ok((run, report))
}

fn check_gateway(args: GatewayArgs) -> Result<(RunArgs, Report), Halt> {
    let GatewayArgs { url, stdio, run } = args;
    let url = url.trim_end_matches('/').to_owned();
    let what = format!("gateway {url}");
    let options = gateway::Options { url, stdio, timeout: run.timeout.into(), seed: run.seed };
    let ready = Ready::make(&run, Subject::Gateway)?;
    let outcome = block_on(&run, gateway::check(options, &ready.selection, Arc::new(Exchange::new())))?;
    let report = ready.report(&run, what, outcome);
    Ok((run, report))
}

/// What is made ready before the run, so that no run is lost to a slip of the pen.
struct Ready {
    selection: Selection,
    expected: Expected,
}

impl Ready {
    fn make(run: &RunArgs, subject: Subject) -> Result<Self, Halt> {
        let selection = selection(run, subject)?;
        let expected = match &run.expected_failures {
            Some(path) => Expected::read(&read(path)?, subject).map_err(|why| format!("{}: {why}", path.display()))?,
            None => Expected::default(),
        };
        if let Some(path) = &run.junit {
            // What is in it stays until there is something new.
            let opened = std::fs::OpenOptions::new().create(true).append(true).open(path);
            opened.map_err(|error| unwritable(path, &error))?;
        }
        Ok(Self { selection, expected })
    }

    /// The report of an outcome, with what was expected to fail.
    fn report(&self, run: &RunArgs, what: String, outcome: Outcome) -> Report {
        let about = About { subject: self.selection.subject, what, seed: run.seed, fail_on: run.fail_on };
        Report::new(about, outcome, &self.expected)
    }
}

fn unwritable(path: &Path, error: &std::io::Error) -> String {
    format!("{} cannot be written: {error}", path.display())
}

fn selection(run: &RunArgs, subject: Subject) -> Result<Selection, String> {
    let selection = Selection { subject, only: run.only.clone(), level: run.level };
    for name in &selection.only {
        let is_known = |requirement: &&catalog::Requirement| {
            requirement.subject == subject && (requirement.id == *name || requirement.profile == *name)
        };
        if !catalog::all().iter().any(|requirement| is_known(&requirement)) {
            return Err(format!("--only {name}: there is no such requirement or profile; see reach-conformance list"));
        }
    }
    Ok(selection)
}

/// Does this to its end, or until the program is told to stop: then whatever it has started is ended with it.
fn block_on<T>(run: &RunArgs, work: impl Future<Output = Result<T, String>>) -> Result<T, Halt> {
    let runtime = tokio::runtime::Builder::new_multi_thread().enable_all().build();
    let runtime = runtime.map_err(|error| format!("the runtime cannot be started: {error}"))?;
    let done = runtime.block_on(async {
        tokio::select! {
            done = work => done.map_err(Halt::from),
            halt = told_to_stop(), if run.heeds_signals => Err(halt),
        }
    });
    // Whatever still waits for the agent is left behind.
    runtime.shutdown_timeout(Duration::from_millis(200));
    done
}

/// Waits for a signal that means to stop.
async fn told_to_stop() -> Halt {
    let signals = [(SignalKind::interrupt(), 2), (SignalKind::terminate(), 15), (SignalKind::hangup(), 1)];
    let waiting = signals.into_iter().filter_map(|(kind, number)| Some((signal(kind).ok()?, number)));
    let mut waiting: Vec<_> = waiting
        .map(|(mut signal, number)| {
            Box::pin(async move {
                signal.recv().await;
                Halt { code: STOPPED + number, why: "stopped before the report, with what it had started".to_owned() }
            })
        })
        .collect();
    if waiting.is_empty() { std::future::pending().await } else { select_all(waiting.drain(..)).await.0 }
}

/// Writes the report where it was asked for. Answers the exit code.
fn conclude(run: &RunArgs, report: &Report) -> Result<u8, Halt> {
    if run.json {
        println!("{}", as_json(report)?);
    } else {
        print!("{}", written(report));
    }
    if let Some(path) = &run.junit {
        std::fs::write(path, junit(report)?).map_err(|error| unwritable(path, &error))?;
    }
    Ok(code(run, report))
}

fn as_json(report: &Report) -> Result<String, String> {
    serde_json::to_string_pretty(report).map_err(|error| error.to_string())
}

fn code(run: &RunArgs, report: &Report) -> u8 {
    match (report.has_failed(run.fail_on), report.idle_profiles.is_empty()) {
        (true, _) => BROKEN,
        (false, false) => IDLE,
        (false, true) => OK,
    }
}
