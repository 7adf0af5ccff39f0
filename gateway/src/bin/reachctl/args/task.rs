//! The flags that say what is wanted, the same for submit, reach and resolve.

use agent_reach_sdk::schemas::call::{OnFailed, OnInFlight};
use agent_reach_sdk::schemas::{Callback, Namespace};
use agent_reach_sdk::{AgentId, CapabilityName, IdempotencyKey, Mode, Span, Submit};
use clap::{Args, ValueEnum};

use crate::exit::Stop;
use crate::input;

#[derive(Debug, Args)]
pub(crate) struct TaskFlags {
    #[command(flatten)]
    target: Target,
    /// Look in this namespace only
    #[arg(long)]
    namespace: Option<Namespace>,
    /// The parameters: JSON, @FILE, or - for standard input
    #[arg(long, value_name = "JSON")]
    params: Option<String>,
    /// How the task finds its agent
    #[arg(long, value_enum, default_value_t = ModeWord::Direct)]
    mode: ModeWord,
    /// 0 to 9, 9 first [default: 5]
    #[arg(long, value_parser = clap::value_parser!(u8).range(0..=9))]
    priority: Option<u8>,
    /// The idempotency key: the same key and request give the same task [default: a new one]
    #[arg(long)]
    key: Option<IdempotencyKey>,
    /// If the key's task did not end well
    #[arg(long, value_enum, default_value_t = FailedWord::Replay, requires = "key")]
    on_failed: FailedWord,
    /// If the key's task is not finished
    #[arg(long, value_enum, default_value_t = InFlightWord::Join, requires = "key")]
    on_in_flight: InFlightWord,
    /// How long all of it may take [default: 5m, or an hour for long work]
    #[arg(long, value_name = "SPAN")]
    deadline: Option<Span>,
    /// How long one attempt may take [default: as the capability has it]
    #[arg(long, value_name = "SPAN")]
    attempt_timeout: Option<Span>,
    /// How many tries at most, 1 to 10; an agent that is full has not tried [default: 3]
    #[arg(long, value_parser = clap::value_parser!(u32).range(1..=10))]
    tries: Option<u32>,
    /// The agent that asks
    #[arg(long, value_name = "AGENT")]
    from: Option<AgentId>,
    /// Who is told of the end by a signed webhook; may be given several times
    #[arg(long = "callback", value_name = "URL")]
    callbacks: Vec<String>,
}

/// What is wanted: at least one of these.
#[derive(Debug, Args)]
#[group(required = true, multiple = true)]
struct Target {
    /// Ask this agent and no other
    #[arg(long, value_name = "AGENT")]
    to: Option<AgentId>,
    /// Ask for this capability
    #[arg(long)]
    capability: Option<CapabilityName>,
    /// What is wanted, in words
    #[arg(long, value_name = "TEXT")]
    intent: Option<String>,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum ModeWord {
    /// The gateway chooses one agent and calls it
    Direct,
    /// It waits until one of the agents that fit pulls it
    Queue,
    /// It is offered to all agents that fit; one claim wins
    Broadcast,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum FailedWord {
    /// The same failure is answered
    Replay,
    /// The task is sent again, under the same id
    Retry,
}

#[derive(Debug, Clone, Copy, ValueEnum)]
enum InFlightWord {
    /// This request joins it
    Join,
    /// This request is refused
    Reject,
}

impl TaskFlags {
    /// The request as it goes out, without a key of our own. Reads the parameters.
    pub(crate) fn into_submit(self) -> Result<Submit, Stop> {
        let params = self.params.as_deref().map(|given| input::json_argument("--params", given)).transpose()?;
        Ok(Submit {
            to_agent: self.target.to,
            capability: self.target.capability,
            intent: self.target.intent,
            namespace: self.namespace,
            params,
            mode: match self.mode {
                ModeWord::Direct => Mode::Direct,
                ModeWord::Queue => Mode::Queue,
                ModeWord::Broadcast => Mode::Broadcast,
            },
            priority: self.priority,
            idempotency_key: self.key,
            on_failed: match self.on_failed {
                FailedWord::Replay => OnFailed::Replay,
                FailedWord::Retry => OnFailed::Retry,
            },
            on_in_flight: match self.on_in_flight {
                InFlightWord::Join => OnInFlight::Join,
                InFlightWord::Reject => OnInFlight::Reject,
            },
            attempt_timeout: self.attempt_timeout,
            deadline: self.deadline,
            tries: self.tries,
            from_agent: self.from,
            traceparent: None,
            callbacks: self.callbacks.into_iter().map(|url| Callback { url }).collect(),
            wait: None,
        })
    }
}

/// A key that nobody else has, so that a submit whose answer was lost can be sent again safely.
pub(crate) fn new_key() -> Result<IdempotencyKey, Stop> {
    let key = uuid::Uuid::now_v7().to_string();
    key.parse().map_err(|error| Stop::Unreadable(format!("no idempotency key could be made: {error}")))
}
