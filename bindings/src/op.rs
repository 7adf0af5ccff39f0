//! The calls by name, as Python makes them: parameters and answers are texts of JSON.

use std::time::Duration;

use agent_reach_sdk::schemas::call::{AgentList, AgentRef, CapabilityFind, Redrive, TaskList, TaskRef};
use agent_reach_sdk::{Client, Error, RawJson, Span, Submit, TaskId};
use serde::Deserialize;

use crate::answer::{Answer, parsed, written};

/// A submit and what is meant by it.
#[derive(Deserialize)]
struct Wanted {
    submit: Submit,
    #[serde(default)]
    keyless: bool,
    #[serde(default)]
    cancel_on_drop: bool,
}

impl Wanted {
    fn request(self, client: &Client) -> agent_reach_sdk::TaskRequest {
        let mut request = client.request(self.submit);
        if self.keyless {
            request = request.without_key();
        }
        if self.cancel_on_drop {
            request = request.cancel_on_drop();
        }
        request
    }
}

/// Which task to wait for, and how.
#[derive(Deserialize)]
struct Awaited {
    task_id: TaskId,
    #[serde(default)]
    wait: Option<Span>,
    #[serde(default)]
    cancel_on_drop: bool,
}

/// Any method.
#[derive(Deserialize)]
struct Called {
    method: String,
    #[serde(default)]
    params: Option<RawJson>,
}

/// Makes the call that is named.
pub(crate) async fn perform(client: &Client, op: &str, params: &str) -> Answer {
    match op {
        "submit" => written(parsed::<Wanted>(params)?.request(client).submit().await?.view()),
        "reach" => written(parsed::<Wanted>(params)?.request(client).reach().await?.view()),
        "resolve" => written(&parsed::<Wanted>(params)?.request(client).resolve().await?),
        "wait_for_result" => wait_for_result(client, parsed(params)?).await,
        "get" => written(&client.get(task(params)?).await?),
        "tasks" => written(&client.list(&parsed::<TaskList>(params)?).await?),
        "cancel" => written(&client.cancel(task(params)?).await?),
        "explain" => written(&client.explain(task(params)?).await?),
        "discover" => written(&client.find(parsed::<CapabilityFind>(params)?).await?),
        "agents" => written(&client.agents(&parsed::<AgentList>(params)?).await?),
        "agent" => written(&client.agent(&parsed::<AgentRef>(params)?.agent_id).await?),
        "drain" => written(&client.drain(&parsed::<AgentRef>(params)?.agent_id).await?),
        "dead_letters" => written(&client.dead_letters(&parsed::<TaskList>(params)?).await?),
        "dead_letter" => written(&client.dead_letter(task(params)?).await?),
        "redrive" => written(&client.redrive(&parsed::<Redrive>(params)?).await?),
        "call" => {
            let Called { method, params } = parsed(params)?;
            let answer: RawJson = client.call(&method, &params).await?;
            Ok(answer.get().to_owned())
        }
        other => Err(Error::Config(format!("there is no call {other:?}"))),
    }
}

fn task(params: &str) -> Result<TaskId, Error> {
    parsed::<TaskRef>(params).map(|task| task.task_id)
}

async fn wait_for_result(client: &Client, awaited: Awaited) -> Answer {
    let Awaited { task_id, wait, cancel_on_drop } = awaited;
    let guard = cancel_on_drop.then(|| client.cancel_on_drop(task_id));
    let ended = match wait {
        Some(wait) => client.wait_for_result(task_id, Duration::from(wait)).await,
        None => match client.handle(task_id).await {
            Ok(handle) => handle.wait().await,
            Err(error) => Err(error),
        },
    };
    if ended.as_ref().err().is_none_or(|error| error.refusal().is_some()) {
        guard.into_iter().for_each(agent_reach_sdk::CancelOnDrop::disarm);
    }
    written(ended?.view())
}
