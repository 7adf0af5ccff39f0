//! The command line of `reach-gateway`.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::Duration;

use anyhow::Context;
use clap::{Args, Parser, Subcommand};
use reach_schemas::{AgentId, Secret};
use tokio::net::TcpListener;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use crate::boot::{self, Running};
use crate::config::{Config, Flags, Mistakes};
use crate::identity::Mode;
use crate::reload::{self, Source};
use crate::telemetry::log;
use crate::transport;

/// The layer between AI agents: finds the live agent that can do what is wanted, gets the request there once, and
/// brings back a result or an explained failure.
#[derive(Debug, Parser)]
#[command(name = "reach-gateway", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
    /// How log lines look, on standard error [default: text]. Their level is set by the environment variable `RUST_LOG`.
    #[arg(long, global = true, value_enum)]
    log: Option<log::Format>,
}

#[derive(Debug, Subcommand)]
enum Command {
    /// Serves JSON-RPC (`/rpc`, `/rpc/ws`), MCP (`/mcp`, `/mcp/ws`) and REST on one port, until SIGTERM or Ctrl-C.
    Serve(Where),
    /// Serves one caller over standard input and output, one JSON-RPC message a line. It is a gateway of its own, with its
    /// own data folder: name another one with --data if a gateway is running already.
    Stdio(Where),
    /// Serves one MCP client (an LLM host) over standard input and output, one message a line; what agents offer are its
    /// tools. It is a gateway of its own, or with --connect a bridge to one that runs.
    Mcp(Mcp),
    /// Shows it at work: three agents of different kinds on real files, a kill, a fallback, and one key sent twice.
    Demo(crate::demo::Demo),
}

#[derive(Debug, Args)]
struct Mcp {
    /// The address of a gateway that runs, such as http://127.0.0.1:7340/mcp, to bridge to.
    #[arg(long, value_name = "URL", conflicts_with_all = ["config", "listen", "data", "mcp_tools"])]
    connect: Option<String>,
    /// A file with the token that shows who calls, read again for each connection [default: what the environment variable
    /// `AGENT_REACH_TOKEN` holds].
    #[arg(long, value_name = "FILE", requires = "connect")]
    token_file: Option<PathBuf>,
    /// The agent in whose name the client calls [default: the operator].
    #[arg(long, value_name = "NAME@NAMESPACE")]
    agent: Option<AgentId>,
    #[command(flatten)]
    place: Where,
}

#[derive(Debug, Args)]
struct Where {
    /// Configuration file (TOML).
    #[arg(long, value_name = "FILE")]
    config: Option<PathBuf>,
    /// Address and port to listen on [default: 127.0.0.1:7340].
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Folder of the database [default: agent-reach-data].
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Sends traces to an OpenTelemetry receiver: OTLP over HTTP, for example http://127.0.0.1:4318. An empty one: to nobody.
    #[arg(long, value_name = "URL", env = "OTEL_EXPORTER_OTLP_ENDPOINT", hide_env_values = true)]
    otlp: Option<String>,
    /// Which tools MCP hosts are shown: one for each capability, the five `reach_*` that find and use them, or both
    /// [default: capabilities].
    #[arg(long, value_name = "capabilities|reach|both")]
    mcp_tools: Option<String>,
}

impl Where {
    /// Reads the configuration, and has the log written as it says.
    fn load(self, log_format: Option<log::Format>, level: &str) -> anyhow::Result<(Config, Source)> {
        let Self { config: path, listen, data, otlp, mcp_tools } = self;
        let source = Source { path, flags: Flags { listen, data, log_format, otlp, mcp_tools } };
        let config = source.load()?;
        log::to_stderr(config.telemetry.log_format, level);
        Ok((config, source))
    }
}

/// Runs the program. 0: it did what it was asked. 1: it could not. 2: the command line or the configuration is wrong.
#[must_use]
pub fn run() -> ExitCode {
    let cli = Cli::parse();
    let runtime = match tokio::runtime::Builder::new_multi_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failed(&anyhow::Error::new(error).context("the runtime cannot be started")),
    };
    let done = match cli.command {
        Command::Serve(options) => {
            options.load(cli.log, "info").and_then(|(config, source)| runtime.block_on(serve(config, source)))
        }
        Command::Stdio(options) => {
            options.load(cli.log, "warn").and_then(|(config, source)| runtime.block_on(stdio(config, source)))
        }
        Command::Mcp(options) => runtime.block_on(mcp(options, cli.log)),
        Command::Demo(demo) => {
            log::to_stderr(cli.log.unwrap_or_default(), "error");
            runtime.block_on(demo.run())
        }
    };
    runtime.shutdown_timeout(Duration::from_secs(1));
    match done {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(&error),
    }
}

fn failed(error: &anyhow::Error) -> ExitCode {
    if let Some(mistakes) = error.downcast_ref::<Mistakes>() {
        eprintln!("reach-gateway: the configuration is wrong:\n{mistakes}");
        return ExitCode::from(2);
    }
    eprintln!("reach-gateway: {error:#}");
    ExitCode::FAILURE
}

async fn begin(config: &Config) -> anyhow::Result<Running> {
    let store = boot::open_store(&config.data)?;
    boot::start(config, store).await
}

async fn serve(config: Config, source: Source) -> anyhow::Result<()> {
    // A hangup before anybody minds it would end the process.
    let hangups = hangups()?;
    let listener = TcpListener::bind(config.listen).await.with_context(|| {
        format!("cannot listen on {}: is another gateway running there? name another with --listen", config.listen)
    })?;
    let running = begin(&config).await?;
    let address = listener.local_addr().unwrap_or(config.listen);
    let scheme = if config.http.tls.is_some() { "https" } else { "http" };
    let shows_who = config.http.tls.as_ref().is_some_and(|tls| tls.knows_callers());
    tracing::info!(
        version = env!("CARGO_PKG_VERSION"),
        data = %config.data.display(),
        agents = running.recovered.agents + config.agents.len(),
        open_tasks = running.recovered.tasks,
        "listening on {scheme}://{address} (MCP at /mcp, JSON-RPC at /rpc and /rpc/ws, REST beside); {}",
        who_calls(config.settings.identity.mode, shows_who)
    );
    stop_on_signal(running.stop.clone());
    let http = config.http.clone();
    reload::start(&running, source, config, Some(hangups));
    transport::serve(running.gateway.clone(), listener, http, running.stop.clone()).await?;
    boot::end(running).await;
    Ok(())
}

/// What the start says of those who call.
const fn who_calls(mode: Mode, shows_who: bool) -> &'static str {
    match (mode, shows_who) {
        (Mode::Open, false) => {
            "callers are NOT asked who they are: whoever is on this machine may do everything (auth.mode = \"open\")"
        }
        (Mode::Open, true) => "whoever shows a certificate may do everything (auth.mode = \"open\")",
        (Mode::Required, _) => "every call needs a token (auth.mode = \"required\")",
    }
}

async fn stdio(config: Config, source: Source) -> anyhow::Result<()> {
    let running = begin(&config).await?;
    reload::start(&running, source, config, None);
    stop_on_signal(running.stop.clone());
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    transport::serve_stdio(running.gateway.clone(), input, output, running.stop.clone()).await?;
    running.stop.cancel();
    boot::end(running).await;
    Ok(())
}

/// The token that shows who calls, as it is now.
fn token(file: Option<&Path>) -> std::io::Result<Option<Secret>> {
    let text = match file {
        Some(path) => Some(std::fs::read_to_string(path)?),
        None => std::env::var("AGENT_REACH_TOKEN").ok(),
    };
    Ok(text.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty()).map(Secret::from))
}

async fn mcp(options: Mcp, log_format: Option<log::Format>) -> anyhow::Result<()> {
    let (input, output) = (tokio::io::stdin(), tokio::io::stdout());
    if let Some(address) = &options.connect {
        log::to_stderr(log_format.unwrap_or_default(), "warn");
        let token = || token(options.token_file.as_deref());
        return Ok(transport::bridge(address, options.agent.as_ref(), &token, input, output).await?);
    }
    let (config, source) = options.place.load(log_format, "warn")?;
    let running = begin(&config).await?;
    let settings = config.mcp.clone();
    reload::start(&running, source, config, None);
    stop_on_signal(running.stop.clone());
    let (gateway, stop) = (running.gateway.clone(), running.stop.clone());
    transport::serve_mcp_stdio(gateway, &settings, options.agent, (input, output), stop).await?;
    running.stop.cancel();
    boot::end(running).await;
    Ok(())
}

/// SIGHUP, by which the configuration is read again.
fn hangups() -> anyhow::Result<Signal> {
    signal(SignalKind::hangup()).context("SIGHUP cannot be listened for")
}

fn stop_on_signal(stop: CancellationToken) {
    tokio::spawn(async move {
        signalled().await;
        tracing::info!("told to stop: finishing what is under way");
        stop.cancel();
    });
}

async fn signalled() {
    let terminate = signal(SignalKind::terminate());
    match terminate {
        Ok(mut terminate) => {
            tokio::select! {
                _ = terminate.recv() => {}
                _ = tokio::signal::ctrl_c() => {}
            }
        }
        Err(_) => {
            let _ = tokio::signal::ctrl_c().await;
        }
    }
}
