//! An agent that is an HTTP service: the gateway posts each task to it.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use agent_reach_sdk::{Agent, AgentCard, Context, Span, Task, card};
use clap::Parser;
use reach_examples::ledger::Ledger;
use reach_examples::{card as cards, work};

/// Summarizes documents, as an HTTP service.
#[derive(Debug, Parser)]
struct Options {
    /// Its name.
    #[arg(long, default_value = "summarizer@demo")]
    agent: String,
    /// Where to listen for work.
    #[arg(long, default_value = "127.0.0.1:0")]
    listen: SocketAddr,
    /// The file to which it adds a line for each task it begins.
    #[arg(long)]
    ledger: PathBuf,
    /// How strongly it offers itself, 0 to 100.
    #[arg(long, default_value_t = 90)]
    weight: u8,
}

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    let options = Options::parse();
    let ledger = Ledger::at(&options.ledger);
    let card = AgentCard {
        description: "A service that summarizes documents.".to_owned(),
        heartbeat_interval: Span::from_ms(500),
        max_concurrency: 4,
        ..card(&options.agent)?
    };
    let name = options.agent.clone();
    let summarize = move |task: Task, context: Context| {
        let (ledger, name) = (ledger.clone(), name.clone());
        async move { work::summarize(&ledger, &name, &task, &context).await }
    };
    Agent::builder(card)
        .capability(cards::summarize(options.weight)?, summarize)
        .http(options.listen)
        .answer_within(Duration::from_secs(30))
        .run()
        .await?;
    Ok(())
}
