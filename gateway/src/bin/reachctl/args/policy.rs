//! The flags of the policy.

use agent_reach_sdk::AgentId;
use agent_reach_sdk::schemas::{Action, CapabilityName};
use clap::Subcommand;
use clap::builder::{PossibleValuesParser, TypedValueParser};

#[derive(Debug, Subcommand)]
pub(crate) enum Policy {
    /// Show the policy that stands; with --json, to be changed and put
    Get,
    /// Put a policy in the place of the one that stands
    Put {
        /// `version`, `across` and `rules` as JSON, as `reachctl policy get --json` prints them; - for standard input
        file: String,
    },
    /// Tell whether an agent may do something, and who says no
    Test {
        /// Who asks
        subject: AgentId,
        /// What for
        #[arg(value_parser = action())]
        action: Action,
        /// Whom
        object: AgentId,
        /// Which of its capabilities
        #[arg(long)]
        capability: Option<CapabilityName>,
    },
}

fn action() -> impl TypedValueParser<Value = Action> {
    let names = PossibleValuesParser::new(Action::ALL.map(Action::as_str));
    names.map(|name| Action::by_name(&name).expect("the parser takes only these names"))
}
