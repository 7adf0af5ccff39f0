//! The command line, as its user writes it.

mod audit;
mod config;
mod dead_letters;
mod human;
mod policy;
mod server;
mod task;
mod token;

use std::path::PathBuf;

use agent_reach_sdk::client::DEFAULT_URL;
use agent_reach_sdk::schemas::call::LIST_MAX;
use agent_reach_sdk::schemas::{Namespace, WebhookId, WebhookState};
use agent_reach_sdk::{AgentId, PhaseName, Span, TaskId};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser, Subcommand};

pub(crate) use audit::{Audit, AuditFilter};
pub(crate) use config::Config;
pub(crate) use dead_letters::DeadLetters;
pub(crate) use human::{Held, Human};
pub(crate) use policy::Policy;
pub(crate) use server::{Add, AddMcp, Remove};
pub(crate) use task::{TaskFlags, new_key};
pub(crate) use token::{RevokeArgs, Token};

use crate::exit;

/// Look at an Agent-Reach gateway and ask it for work.
///
/// Tables for people; with --json the wire's own objects, for machines.
#[derive(Debug, Parser)]
#[command(name = "reachctl", version, after_help = exit::TABLE, max_term_width = 100)]
pub(crate) struct Cli {
    /// The gateway
    #[arg(long, global = true, value_name = "URL", env = "AGENT_REACH_URL", default_value = DEFAULT_URL)]
    pub(crate) url: String,
    /// A file with the bearer token that shows who calls, for example DATA/operator-key of the gateway
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) token_file: Option<PathBuf>,
    /// Print the wire's objects: one JSON document, or JSON lines with --watch
    #[arg(long, global = true)]
    pub(crate) json: bool,
    #[command(subcommand)]
    pub(crate) command: Command,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Show agents, tasks and capabilities
    #[command(subcommand)]
    Get(Get),
    /// Submit a task; print its id and phase, or its result with --wait
    Submit(SubmitArgs),
    /// Submit a task, wait for its end and print its result
    Reach(ReachArgs),
    /// Wait for a task's end and print its result
    Wait(WaitArgs),
    /// Call a task off
    Cancel { task: TaskId },
    /// Show who would get a task, where and why; submit nothing
    Resolve(TaskFlags),
    /// Show how a task found its agent: who was looked at, each term of the score, who lost and why
    Explain { task: TaskId },
    /// Look at tasks that wait for a person, take them and answer them
    #[command(subcommand)]
    Human(Human),
    /// Look at tasks that were given up on, and send them again
    #[command(subcommand)]
    DeadLetters(DeadLetters),
    /// Look at webhooks and how their sending goes, and send them again
    #[command(subcommand)]
    Webhooks(Webhooks),
    /// Look at the policy over who may do what with whom, change it, and ask it
    #[command(subcommand)]
    Policy(Policy),
    /// Look into the audit log, and check that nobody changed it
    #[command(subcommand)]
    Audit(Audit),
    /// Send an agent no new work; what it has may finish
    Drain { agent: AgentId },
    /// Register an agent by its card
    #[command(after_help = crate::commands::EXAMPLE_HELP)]
    Register {
        /// The card as JSON; - for standard input
        #[arg(required_unless_present = "example")]
        file: Option<String>,
        /// Print a card to begin with, and register nothing
        #[arg(long, conflicts_with = "file")]
        example: bool,
    },
    /// Forget an agent; what it has is taken back
    Deregister { agent: AgentId },
    /// Make an agent of an MCP server
    #[command(subcommand)]
    Add(Add),
    /// Forget what was added
    #[command(subcommand)]
    Remove(Remove),
    /// Look at what the gateway goes by, check a configuration file, and have it taken on
    #[command(subcommand)]
    Config(Config),
    /// Let agents and operators in, see who may call, and end tokens
    #[command(subcommand)]
    Token(Token),
    /// Call any JSON-RPC method and print what it answers
    Call {
        /// The method, for example task/get
        method: String,
        /// JSON, @FILE, or - for standard input [default: {}]
        params: Option<String>,
    },
    /// Show how the gateway is
    Status,
    /// Show live how well tasks reach their agents: rates and times of 15 minutes, agents, capabilities, refusals
    Top {
        /// Show it once
        #[arg(long)]
        once: bool,
        /// How often to look
        #[arg(long, value_name = "SPAN", default_value = "1s", conflicts_with = "once")]
        interval: Span,
    },
    /// Print what an error means and what to do, or list all errors
    Errors {
        /// The error's name or number
        name: Option<String>,
    },
    /// Print the completions for a shell
    Completions { shell: clap_complete::Shell },
}

#[derive(Debug, Subcommand)]
pub(crate) enum Get {
    /// List agents and how they are
    Agents {
        /// Only those of this namespace
        #[arg(long)]
        namespace: Option<Namespace>,
        /// At most so many
        #[arg(long, default_value_t = LIST_MAX, value_parser = limit())]
        limit: u32,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show one agent
    Agent {
        agent: AgentId,
        #[command(flatten)]
        watch: Watch,
    },
    /// List tasks, newest first
    Tasks {
        /// Only those in this phase
        #[arg(long, value_parser = phase())]
        phase: Option<PhaseName>,
        /// Only those that this agent has or had
        #[arg(long)]
        agent: Option<AgentId>,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = limit())]
        limit: u32,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show one task; --watch follows it to its end
    Task {
        task: TaskId,
        #[command(flatten)]
        watch: Watch,
    },
    /// List MCP servers and how they are
    Servers {
        #[command(flatten)]
        watch: Watch,
    },
    /// List capabilities, or find those that fit words
    Capabilities {
        /// What is wanted, in words
        #[arg(long, value_name = "TEXT")]
        intent: Option<String>,
        /// Only those of this namespace
        #[arg(long)]
        namespace: Option<Namespace>,
        /// Only those that this agent may call
        #[arg(long, value_name = "AGENT")]
        from: Option<AgentId>,
        /// At most so many [default: 5 with --intent, else 1000]
        #[arg(long, value_parser = limit())]
        limit: Option<u32>,
        #[command(flatten)]
        watch: Watch,
    },
}

#[derive(Debug, Clone, Copy, Args)]
pub(crate) struct Watch {
    /// Look again and again: redrawn on a terminal, else changes line by line
    #[arg(long)]
    pub(crate) watch: bool,
    /// How often
    #[arg(long, value_name = "SPAN", default_value = "2s", requires = "watch")]
    pub(crate) interval: Span,
}

#[derive(Debug, Args)]
pub(crate) struct SubmitArgs {
    #[command(flatten)]
    pub(crate) task: TaskFlags,
    /// Wait for the end and print the result, at most for SPAN [default: as long as the task's deadline]
    #[arg(long, value_name = "SPAN")]
    pub(crate) wait: Option<Option<Span>>,
}

#[derive(Debug, Args)]
pub(crate) struct ReachArgs {
    #[command(flatten)]
    pub(crate) task: TaskFlags,
    /// Wait at most for SPAN [default: as long as the task's deadline]
    #[arg(long, value_name = "SPAN")]
    pub(crate) wait: Option<Span>,
    /// The same as --wait
    #[arg(long, value_name = "SPAN", conflicts_with = "wait")]
    pub(crate) timeout: Option<Span>,
}

#[derive(Debug, Args)]
pub(crate) struct WaitArgs {
    pub(crate) task: TaskId,
    /// Wait at most for SPAN [default: as long as the task's deadline]
    #[arg(long, value_name = "SPAN")]
    pub(crate) timeout: Option<Span>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Webhooks {
    /// List webhooks, newest first
    List {
        /// Only those in this state
        #[arg(long, value_parser = webhook_state())]
        state: Option<WebhookState>,
        /// Only those of this task
        #[arg(long)]
        task: Option<TaskId>,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = limit())]
        limit: u32,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show one webhook with its body
    Show { webhook: WebhookId },
    /// Send webhooks again now, under their own ids
    Retry {
        #[command(flatten)]
        which: WhichWebhooks,
        /// At most so many [default: all that are named, or 100]
        #[arg(long, value_parser = limit())]
        limit: Option<u32>,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = false)]
pub(crate) struct WhichWebhooks {
    /// These, whatever their state
    #[arg(value_name = "WEBHOOK")]
    pub(crate) webhooks: Vec<WebhookId>,
    /// All that failed, up to the limit
    #[arg(long)]
    pub(crate) failed: bool,
}

/// What one list may be asked for.
fn limit() -> clap::builder::RangedI64ValueParser<u32> {
    clap::value_parser!(u32).range(1..=i64::from(LIST_MAX))
}

/// The phases by their words on the wire, which shells complete.
fn phase() -> impl TypedValueParser<Value = PhaseName> {
    let words = PossibleValuesParser::new(PhaseName::ALL.map(PhaseName::as_str));
    words.try_map(|word| {
        PhaseName::ALL.into_iter().find(|phase| phase.as_str() == word).ok_or_else(|| format!("{word} is no phase"))
    })
}

/// The states of webhooks by their words on the wire, which shells complete.
fn webhook_state() -> impl TypedValueParser<Value = WebhookState> {
    let words = PossibleValuesParser::new(WebhookState::ALL.map(WebhookState::as_str));
    words.try_map(|word| {
        let state = WebhookState::ALL.into_iter().find(|state| state.as_str() == word);
        state.ok_or_else(|| format!("{word} is no state"))
    })
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    fn parse(line: &str) -> Result<Command, clap::Error> {
        Cli::try_parse_from(format!("reachctl {line}").split(' ')).map(|cli| cli.command)
    }

    #[test]
    fn the_command_line_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_wait_may_say_how_long_and_need_not() {
        let wait = |line| match parse(line) {
            Ok(Command::Submit(args)) => args.wait,
            other => panic!("{other:?}"),
        };
        assert_eq!(wait("submit --intent x"), None);
        assert_eq!(wait("submit --intent x --wait"), Some(None));
        assert_eq!(wait("submit --wait 5s --intent x"), Some(Some(Span::from_secs(5))));
    }

    #[test]
    fn what_cannot_be_meant_is_refused() {
        for line in [
            "submit",
            "submit --params {}",
            "submit --intent x --priority 10",
            "submit --intent x --tries 0",
            "submit --intent x --deadline 30",
            "get tasks --phase done",
            "get agent nobody",
            "get tasks --interval 1s",
            "dead-letters redrive",
            "dead-letters redrive --all --agent a@b",
            "dead-letters redrive --code timeout 0198a000-0000-7000-8000-000000000001",
            "dead-letters redrive --rate 5",
            "dead-letters redrive --all --rate 0",
            "dead-letters redrive --all --rate 1001",
            "dead-letters redrive --code late",
            "dead-letters redrive --ended-after yesterday",
            "explain 17",
            "get tasks --limit 0",
            "get agents --limit 1001",
            "register",
            "register card.json --example",
            "webhooks list --state sent",
            "webhooks show 17",
            "webhooks retry",
            "webhooks retry --failed msg_01980c5e7a007c3a9b1e5f2d4c6a8e01",
            "human answer",
            "audit",
            "audit tail -n 0",
            "audit search --kind refused",
            "human refuse 0198a000-0000-7000-8000-000000000001",
            "human take 0198a000-0000-7000-8000-000000000001 --queue desk",
            "token create-join",
            "token create-join news",
            "token create-operator alice",
            "token create-operator alice --role root",
            "token revoke",
            "token revoke --agent a@b --operator alice",
            "token revoke --operator alice --forget-key",
            "add mcp files",
            "add mcp files http://h/mcp -- npx x",
            "add mcp files http://h/mcp --header Authorization=s3cret",
            "add mcp files http://h/mcp --env A=b",
        ] {
            assert!(parse(line).is_err(), "{line}");
        }
        for line in [
            "dead-letters redrive --all",
            "dead-letters redrive --agent a@b --code timeout --ended-after 2h --rate 5 --dry-run",
            "dead-letters redrive --ended-before 2026-11-30T08:00:00Z --limit 5000",
            "get tasks --phase dead_lettered --watch --interval 1s",
            "errors",
            "token create-join *@media --expires-in 1h",
            "token create-operator alice --role viewer",
            "token trust-key host@desk 11qYAYKxCrfVS_7TyWQHOg7hcvPapiMlrwIaaPcHURo",
            "token revoke --agent a@b --forget-key",
            "token revoke --agent a@b --jti x",
            "token list --token-file data/operator-key",
            "webhooks retry --failed",
            "add mcp files -- npx -y x --flag",
            "add mcp files http://h/mcp --header Authorization=env:TOKEN",
            "remove mcp files",
            "audit tail -n 5",
            "audit search --kind call.refused --actor a@ns --code forbidden --since 2h",
            "audit verify --data data --since checkpoint.json",
        ] {
            assert!(parse(line).is_ok(), "{line}");
        }
    }
}
