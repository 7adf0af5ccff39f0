//! The flags of those who look after what was given up on.

use agent_reach_sdk::schemas::call::{REDRIVE_RATE_MAX, Redrive};
use agent_reach_sdk::schemas::{ErrorCode, Namespace};
use agent_reach_sdk::{AgentId, CapabilityName, Span, TaskId, Timestamp};
use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Subcommand};

use super::{Watch, limit};
use crate::output;

#[derive(Debug, Subcommand)]
pub(crate) enum DeadLetters {
    /// List dead letters, newest first
    List {
        /// Only those that this agent had last
        #[arg(long)]
        agent: Option<AgentId>,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = limit())]
        limit: u32,
        #[command(flatten)]
        watch: Watch,
    },
    /// Show one dead letter with its history
    Show { task: TaskId },
    /// Send dead letters again, under their own ids: those that are named, or all that fit every flag
    Redrive {
        #[command(flatten)]
        which: Which,
        /// At most so many, the newest first [default: all that are named, or fit]
        #[arg(long, value_parser = clap::value_parser!(u32).range(1..))]
        limit: Option<u32>,
        #[command(flatten)]
        how: How,
    },
}

#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
pub(crate) struct Which {
    /// These
    #[arg(value_name = "TASK", conflicts_with_all = ["agent", "capability", "code", "from", "from_namespace", "ended_after", "ended_before"])]
    tasks: Vec<TaskId>,
    /// Those that this agent had last
    #[arg(long)]
    agent: Option<AgentId>,
    /// Those that were last tried as this capability
    #[arg(long)]
    capability: Option<CapabilityName>,
    /// Those that were given up on for this reason, for example timeout
    #[arg(long, value_parser = code())]
    code: Option<ErrorCode>,
    /// Those that this agent asked for
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentId>,
    /// Those that agents of this namespace asked for
    #[arg(long, value_name = "NAMESPACE")]
    from_namespace: Option<Namespace>,
    /// Those that were given up on at this time or later: a time, or how long ago, such as 2h
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    ended_after: Option<Timestamp>,
    /// Those that were given up on before: a time, or how long ago
    #[arg(long, value_name = "WHEN", value_parser = moment)]
    ended_before: Option<Timestamp>,
    /// All that there are
    #[arg(long, conflicts_with_all = ["tasks", "agent", "capability", "code", "from", "from_namespace", "ended_after", "ended_before"])]
    all: bool,
}

#[derive(Debug, Args)]
pub(crate) struct How {
    /// How many a second go, behind those that were spread before [default: all at once, or 10 if more than 100 fit]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=i64::from(REDRIVE_RATE_MAX)))]
    rate: Option<u32>,
    /// Say what would be sent, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// The new deadline, from when each goes [default: as long as the first was]
    #[arg(long, value_name = "SPAN")]
    deadline: Option<Span>,
}

impl Which {
    /// The call that sends these, in this way.
    pub(crate) fn into_call(self, how: How) -> Redrive {
        Redrive {
            task_ids: self.tasks,
            agent_id: self.agent,
            capability: self.capability,
            code: self.code,
            from_agent: self.from,
            from_namespace: self.from_namespace,
            ended_after: self.ended_after,
            ended_before: self.ended_before,
            all: self.all,
            limit: None,
            rate: how.rate,
            dry_run: how.dry_run,
            deadline: how.deadline,
        }
    }
}

/// Reasons by their words on the wire, which shells complete.
pub(super) fn code() -> impl TypedValueParser<Value = ErrorCode> {
    let words = PossibleValuesParser::new(ErrorCode::ALL.iter().map(|code| code.name()));
    words.try_map(|word| ErrorCode::by_name(&word).ok_or_else(|| format!("{word} is no reason")))
}

/// A time, or how long ago.
pub(super) fn moment(text: &str) -> Result<Timestamp, String> {
    let span = || text.parse::<Span>().map(|span| output::now() - span);
    text.parse()
        .or_else(|_| span())
        .map_err(|_| format!("{text:?} is neither a time, such as 2026-11-30T08:00:00Z, nor how long ago, such as 2h"))
}
