//! Agents coming and going: register, drain, deregister.

use agent_reach_sdk::schemas::call::{AgentRef, Drained, Registered};
use agent_reach_sdk::{AgentId, Method};

use crate::exit::{Exit, Stop};
use crate::input;
use crate::render::agents;
use crate::session::Session;

/// A card to begin with.
pub(crate) const EXAMPLE: &str = include_str!("../example_card.json");

/// The same, as the help shows it.
pub(crate) const EXAMPLE_HELP: &str = concat!(
    "A card, as --example prints it; schemas/json/AgentCard.json has all fields:\n\n",
    include_str!("../example_card.json")
);

/// Registers the card of a file, as it is written there: what is wrong with it, the gateway says by name.
pub(crate) async fn register(file: &str, session: &Session) -> Result<Exit, Stop> {
    let card = input::json_file("the card", file)?;
    session.show::<Registered>(Method::AgentRegister, &card, agents::registered).await
}

/// Drains or forgets an agent.
pub(crate) async fn leave(method: Method, agent_id: AgentId, session: &Session) -> Result<Exit, Stop> {
    let done = if method == Method::AgentDrain { "gets no new work" } else { "is forgotten" };
    let params = AgentRef { agent_id };
    let render = |answer: &Drained, _: &_| match answer.in_flight {
        0 => format!("{} {done}; it has no tasks\n", params.agent_id),
        1 => format!("{} {done}; it has 1 task\n", params.agent_id),
        more => format!("{} {done}; it has {more} tasks\n", params.agent_id),
    };
    session.show(method, &params, render).await
}
