//! One gateway and one pair of outputs: asks a method and shows what it answers.

use std::path::Path;
use std::time::Duration;

use agent_reach_sdk::client::DEFAULT_URL;
use agent_reach_sdk::{Client, Error, Method, RawJson, RetryPolicy};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::exit::{Exit, Stop};
use crate::output::Out;
use crate::render::Look;

/// A person waits in front of it: few tries, short pauses.
const RETRY: RetryPolicy = RetryPolicy {
    retries: 2,
    base: Duration::from_millis(100),
    cap: Duration::from_secs(1),
    within: Duration::from_secs(10),
};

/// One gateway and one pair of outputs.
pub(crate) struct Session {
    pub(crate) client: Client,
    pub(crate) url: String,
    /// What shows who asks, for what is asked beside the client.
    pub(crate) token: Option<String>,
    pub(crate) out: Out,
}

impl Session {
    pub(crate) async fn open(url: &str, token_file: Option<&Path>, out: Out) -> Result<Self, Stop> {
        // An environment variable that is set to nothing is not set.
        let url = if url.trim().is_empty() { DEFAULT_URL } else { url.trim() };
        if !url.contains("://") {
            let hint = format!("`--url http://{url}`, or the same in AGENT_REACH_URL");
            return Err(Stop::Usage(format!("the gateway's address {url:?} has no scheme; did you mean {hint}?")));
        }
        let mut builder = Client::builder().url(url).retry(RETRY);
        let mut token = std::env::var("AGENT_REACH_TOKEN").ok().map(|text| text.trim().to_owned());
        if let Some(path) = token_file {
            let text = std::fs::read_to_string(path);
            let text = text.map_err(|error| Stop::Input(format!("the token file {}: {error}", path.display())))?;
            builder = builder.token(text.trim());
            token = Some(text.trim().to_owned());
        }
        let connected = builder.connect().await;
        let client = connected.map_err(|error| Self::stop(url, error))?;
        Ok(Self { client, url: url.to_owned(), token: token.filter(|token| !token.is_empty()), out })
    }

    /// What an error of the SDK means here.
    pub(crate) fn stopped(&self, error: Error) -> Stop {
        Self::stop(&self.url, error)
    }

    fn stop(url: &str, error: Error) -> Stop {
        if let Error::Config(message) = error {
            return Stop::Usage(message);
        }
        if let Some(waited) = error.unanswered_for() {
            return Stop::NoAnswer { url: url.to_owned(), waited };
        }
        if let Error::Transport { message, .. } = error {
            return Stop::NoGateway { url: url.to_owned(), why: message };
        }
        Stop::Call(error)
    }

    /// Calls a method and gives its answer as it was written.
    pub(crate) async fn ask(&self, method: Method, params: &impl Serialize) -> Result<RawJson, Stop> {
        self.ask_by_name(method.name(), params).await
    }

    /// As [`Self::ask`], where the answer may take so long.
    pub(crate) async fn ask_within(
        &self,
        method: Method,
        params: &impl Serialize,
        timeout: Duration,
    ) -> Result<RawJson, Stop> {
        let asked = self.client.call_within(method.name(), params, timeout).await;
        asked.map_err(|error| self.stopped(error))
    }

    pub(crate) async fn ask_by_name(&self, method: &str, params: &impl Serialize) -> Result<RawJson, Stop> {
        self.client.call(method, params).await.map_err(|error| self.stopped(error))
    }

    /// Calls a method and prints its answer: the wire's object, or as `render` has it for people.
    pub(crate) async fn show<T: DeserializeOwned>(
        &self,
        method: Method,
        params: &impl Serialize,
        render: impl FnOnce(&T, &Look) -> String,
    ) -> Result<Exit, Stop> {
        let answer = self.ask(method, params).await?;
        self.print(method, &answer, render)
    }

    /// Prints an answer of a method, as [`Self::show`] does.
    pub(crate) fn print<T: DeserializeOwned>(
        &self,
        method: Method,
        answer: &RawJson,
        render: impl FnOnce(&T, &Look) -> String,
    ) -> Result<Exit, Stop> {
        if self.out.is_json {
            self.out.line(answer.get())?;
        } else {
            self.out.text(&render(&read(method, answer)?, &self.out.look()))?;
        }
        Ok(Exit::Done)
    }

    /// As [`Self::show`], where the answer itself tells how it went.
    pub(crate) async fn show_and_judge<T: DeserializeOwned>(
        &self,
        method: Method,
        params: &impl Serialize,
        render: impl FnOnce(&T, &Look) -> String,
        judge: impl FnOnce(&T) -> Exit,
    ) -> Result<Exit, Stop> {
        let answer = self.ask(method, params).await?;
        let told = read(method, &answer)?;
        if self.out.is_json {
            self.out.line(answer.get())?;
        } else {
            self.out.text(&render(&told, &self.out.look()))?;
        }
        Ok(judge(&told))
    }
}

/// Reads a method's answer.
pub(crate) fn read<T: DeserializeOwned>(method: Method, answer: &RawJson) -> Result<T, Stop> {
    answer.read().map_err(|error| {
        Stop::Unreadable(format!("the answer to {} does not have the expected form: {error}", method.name()))
    })
}
