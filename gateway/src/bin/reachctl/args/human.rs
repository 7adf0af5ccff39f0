//! The flags of those who take what no agent could do.

use agent_reach_sdk::schemas::{FencingToken, QueueName};
use agent_reach_sdk::{Span, TaskId};
use clap::{Args, Subcommand};

use super::{Watch, limit};

#[derive(Debug, Subcommand)]
pub(crate) enum Human {
    /// List what waits for a person, and what is with one
    List {
        /// Only what is in this queue
        #[arg(long)]
        queue: Option<QueueName>,
        /// At most so many
        #[arg(long, default_value_t = 50, value_parser = limit())]
        limit: u32,
        #[command(flatten)]
        watch: Watch,
    },
    /// Take a task, or the next one: nobody else has it until the lease is over. Take it again for more time
    Take {
        /// This one [default: the next that nobody has]
        task: Option<TaskId>,
        /// The next of this queue
        #[arg(long, conflicts_with = "task")]
        queue: Option<QueueName>,
        /// How long you have it [default: 30m]
        #[arg(long, value_name = "SPAN")]
        lease: Option<Span>,
        #[command(flatten)]
        person: Person,
    },
    /// Answer a task; takes it first if nobody has it
    Answer {
        task: TaskId,
        /// The result: JSON, @FILE, or - for standard input
        #[arg(long, value_name = "JSON")]
        result: String,
        #[command(flatten)]
        held: Held,
    },
    /// Refuse a task: it goes to the dead letters, with the reason
    Refuse {
        task: TaskId,
        /// Why, for whoever asked
        #[arg(long, value_name = "TEXT")]
        reason: String,
        /// You have looked: the writes that were unsure did not happen
        #[arg(long)]
        nothing_happened: bool,
        #[command(flatten)]
        held: Held,
    },
    /// Put a task back for somebody else
    Return {
        task: TaskId,
        #[command(flatten)]
        held: Held,
    },
}

#[derive(Debug, Args)]
pub(crate) struct Person {
    /// Your name: one name is one person [default: that of the user]
    #[arg(long = "as", value_name = "NAME", env = "AGENT_REACH_PERSON")]
    name: Option<String>,
}

impl Person {
    /// The name that is given to the gateway.
    pub(crate) fn into_name(self) -> String {
        let user = || std::env::var("USER").ok().filter(|user| !user.is_empty());
        self.name.or_else(user).unwrap_or_else(|| "operator".to_owned())
    }
}

/// By what it is known that the person has the task.
#[derive(Debug, Args)]
pub(crate) struct Held {
    #[command(flatten)]
    pub(crate) person: Person,
    /// The token of `human take` [default: the task is taken, or goes on being yours]
    #[arg(long, value_parser = |text: &str| text.parse().map(FencingToken).map_err(|_| "a token is a number"))]
    pub(crate) token: Option<FencingToken>,
}
