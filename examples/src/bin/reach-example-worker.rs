//! An agent behind a firewall: it opens a WebSocket to the gateway and is pushed its work over it.

use std::path::PathBuf;
use std::time::Duration;

use agent_reach_sdk::{Agent, AgentCard, Context, HandlerError, Span, Task, card};
use clap::Parser;
use reach_examples::card as cards;
use reach_examples::ledger::Ledger;
use reach_examples::work::{self, Params};
use serde::Serialize;

/// Summarizes documents and keeps the register, as a worker on a WebSocket.
#[derive(Debug, Parser)]
struct Options {
    /// Its name.
    #[arg(long, default_value = "night_shift@demo")]
    agent: String,
    /// The file to which it adds a line for each task it begins.
    #[arg(long)]
    ledger: PathBuf,
    /// The register that it enters documents into.
    #[arg(long)]
    register: PathBuf,
    /// How strongly it offers to summarize, 0 to 100.
    #[arg(long, default_value_t = 40)]
    weight: u8,
}

#[derive(Debug, Serialize)]
struct Stamped {
    number: usize,
    path: PathBuf,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let card = AgentCard {
        description: "A worker that takes what others leave.".to_owned(),
        heartbeat_interval: Span::from_ms(500),
        max_concurrency: 4,
        ..card(&options.agent)?
    };
    let (ledger, name) = (Ledger::at(&options.ledger), options.agent.clone());
    let summarize = move |task: Task, context: Context| {
        let (ledger, name) = (ledger.clone(), name.clone());
        async move { work::summarize(&ledger, &name, &task, &context).await }
    };
    let (ledger, name) = (Ledger::at(&options.ledger), options.agent.clone());
    let register = Ledger::at(&options.register);
    let stamp = move |task: Task, _: Context| {
        let (ledger, register, name) = (ledger.clone(), register.clone(), name.clone());
        async move { stamp(&ledger, &register, &name, &task).await }
    };
    Agent::builder(card)
        .capability(cards::summarize(options.weight)?, summarize)
        .capability(cards::stamp()?, stamp)
        .run()
        .await?;
    Ok(())
}

async fn stamp(ledger: &Ledger, register: &Ledger, name: &str, task: &Task) -> Result<Stamped, HandlerError> {
    let params: Params = task.params()?;
    tokio::time::sleep(Duration::from_millis(params.pace_ms)).await;
    let number = register.add(&params.path.display().to_string()).map_err(HandlerError::not_started)?;
    ledger.add(&format!("{name} {} {}", task.id(), params.path.display())).map_err(HandlerError::failed)?;
    Ok(Stamped { number, path: params.path })
}
