//! Summarizing a document as both example agents do it: at a pace, telling how far it is, and stopping when called off.

use std::path::PathBuf;
use std::time::Duration;

use agent_reach_sdk::{Context, HandlerError, Task};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer};

use crate::ledger::Ledger;
use crate::summary::{self, Summary};

/// After so many sentences each it is told how far the work is.
const TOLD_EVERY: usize = 10;

/// What the example agents are asked to work on.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Params {
    /// The document.
    pub path: PathBuf,
    /// How long to dwell on each sentence, so that there is time to kill the agent.
    #[serde(default, deserialize_with = "pace")]
    pub pace_ms: u64,
}

/// A pace within the bounds of the card.
fn pace<'de, D: Deserializer<'de>>(from: D) -> Result<u64, D::Error> {
    match u64::deserialize(from)? {
        pace @ 0..=1000 => Ok(pace),
        pace => Err(D::Error::custom(format!("pace_ms is {pace}, and may be 0 to 1000"))),
    }
}

/// Summarizes the document of a task, once it stands in the agent's ledger that it was begun.
///
/// # Errors
/// The document cannot be read, the ledger cannot be written, or the task is called off.
pub async fn summarize(ledger: &Ledger, name: &str, task: &Task, context: &Context) -> Result<Summary, HandlerError> {
    let params: Params = task.params()?;
    let text = tokio::fs::read_to_string(&params.path)
        .await
        .map_err(|error| HandlerError::failed(format!("{} cannot be read: {error}", params.path.display())))?;
    ledger.add(&format!("{name} {} {}", task.id(), params.path.display())).map_err(HandlerError::not_started)?;
    let sentences = summary::sentences(&text);
    for read in 1..=sentences.len() {
        tokio::time::sleep(Duration::from_millis(params.pace_ms)).await;
        if read % TOLD_EVERY == 0 {
            // A progress report that does not arrive costs nothing.
            let _ = context.progress(&serde_json::json!({ "read": read, "of": sentences.len() })).await;
        }
        if context.is_cancelled() {
            return Err(HandlerError::retryable("called off"));
        }
    }
    Ok(summary::summarize(&text, &sentences))
}
