//! The ways to an agent, behind one face: deliver, cancel, probe. What becomes of a delivery is noted at the desk.

use std::sync::Arc;
use std::time::Duration;

use reach_schemas::method::push;
use serde_json::{Value, json};
use tokio::sync::oneshot;

use super::desk::{Desk, Out, Pending, Reply};
use super::http;
use super::process::Process;
use super::work::{Event, Key, Work};
use crate::exchange::Way;
use crate::json::spelled;

/// How long a connected agent has to say that it has the work: as long as a gateway gives it.
const ACCEPT_TIMEOUT: Duration = Duration::from_secs(5);
/// How long the answer to a cancellation is waited for over HTTP.
pub(crate) const CANCEL_TIMEOUT: Duration = Duration::from_secs(2);

/// A way to the agent.
#[derive(Clone)]
pub(crate) enum Link {
    Http { client: reqwest::Client, url: String },
    Socket,
    Queue,
    Process(Arc<Process>),
}

/// What came of a probe.
pub(crate) enum Probe {
    /// There is none to ask.
    None(String),
    Answered(Value),
    Failed(String),
}

/// Who brings work to the agent.
#[derive(Clone)]
pub(crate) struct Courier {
    pub(crate) desk: Arc<Desk>,
    pub(crate) link: Link,
    /// How long one step may take.
    pub(crate) timeout: Duration,
}

impl Courier {
    /// Sends an attempt on its way.
    pub(crate) fn deliver(&self, work: &Work) {
        let (courier, work) = (self.clone(), work.clone());
        match &self.link {
            Link::Http { client, url } => {
                let (client, url) = (client.clone(), url.clone());
                tokio::spawn(async move { courier.post(&client, &url, &work).await });
            }
            Link::Socket => {
                tokio::spawn(async move { courier.push(&work).await });
            }
            Link::Queue => {
                self.desk.exchange.add(Way::Out, &format!("(queue) {}", work.to_json()));
                self.desk.change(|state| {
                    // So that a report is known to belong to something from the moment that it is taken.
                    state.attempts.entry(work.key()).or_default();
                    state.queue.push_back(work.clone());
                });
            }
            Link::Process(process) => {
                tokio::spawn(process.clone().run(self.desk.clone(), work));
            }
        }
    }

    async fn post(&self, client: &reqwest::Client, url: &str, work: &Work) {
        let body = work.to_json();
        self.desk.exchange.add(Way::Out, &format!("POST {url} {body}"));
        self.desk.note(work.key(), Event::Sent);
        let request = http::delivery(client, url, work, body).timeout(work.attempt_timeout);
        let event = match request.send().await {
            Err(error) if error.is_timeout() => Event::Lost("no answer within the time of the attempt".to_owned()),
            Err(error) => Event::Lost(http::lost(&error)),
            Ok(response) => match http::read(response).await {
                Err(why) => Event::Lost(why),
                Ok((status, says_json, says_when, body)) => {
                    self.desk.exchange.add(Way::In, &format!("{status} {body}"));
                    http::event(status, says_json, says_when, &body)
                }
            },
        };
        if let Event::Lost(why) = &event {
            self.desk.exchange.add(Way::In, &format!("no answer: {why}"));
        }
        self.desk.note(work.key(), event);
    }

    async fn push(&self, work: &Work) {
        self.desk.note(work.key(), Event::Sent);
        let (id, key) = (self.next_id(), work.key());
        let asked = self.ask(&id, push::DELIVER, &work.to_json(), ACCEPT_TIMEOUT.min(self.timeout), Some(key)).await;
        if let Err(why) = asked {
            self.desk.note(key, Event::Lost(why));
        }
    }

    /// Asks a connected agent. `Err`: there was no answer, and why.
    pub(crate) async fn request(
        &self,
        method: &str,
        params: &str,
        within: Duration,
    ) -> Result<Result<String, String>, String> {
        self.request_as(&self.next_id(), method, params, within).await
    }

    fn next_id(&self) -> String {
        self.desk.change(|state| {
            state.next_id += 1;
            state.next_id.to_string()
        })
    }

    /// Asks a connected agent under an id that is given as JSON.
    pub(crate) async fn request_as(
        &self,
        id: &str,
        method: &str,
        params: &str,
        within: Duration,
    ) -> Result<Result<String, String>, String> {
        self.ask(id, method, params, within, None).await
    }

    async fn ask(
        &self,
        id: &str,
        method: &str,
        params: &str,
        within: Duration,
        delivers: Option<Key>,
    ) -> Result<Result<String, String>, String> {
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        let (sender, answer) = oneshot::channel();
        self.desk.change(|state| state.pending.insert(spelled(id), Pending { sender, delivers }));
        self.say(text)?;
        match tokio::time::timeout(within, answer).await {
            Ok(Ok(reply)) => Ok(reply),
            Ok(Err(_)) => Err("the connection was closed".to_owned()),
            Err(_) => {
                self.desk.change(|state| state.pending.remove(&spelled(id)));
                Err(format!("no answer to {method} within {} ms", within.as_millis()))
            }
        }
    }

    /// Sends a connected agent a text.
    pub(crate) fn say(&self, text: String) -> Result<(), String> {
        self.desk.exchange.add(Way::Out, &text);
        self.out(Out::Text(text))
    }

    /// Cuts the connection of a connected agent.
    pub(crate) fn cut(&self) -> Result<(), String> {
        self.desk.exchange.add(Way::Note, "the connection is cut by the runner");
        self.out(Out::Cut)
    }

    /// Closes the connection of a connected agent, with a code.
    pub(crate) fn close(&self, code: u16) -> Result<(), String> {
        self.desk.exchange.add(Way::Out, &format!("the connection is closed with code {code}"));
        self.out(Out::Close(code))
    }

    fn out(&self, out: Out) -> Result<(), String> {
        let sender = self.desk.look(|state| state.connection.as_ref().map(|open| open.sender.clone()));
        let sender = sender.ok_or("the agent is not connected")?;
        sender.try_send(out).map_err(|_| "the agent does not read what it is sent".to_owned())
    }

    /// Calls an attempt off, in the way of the link. `Err`: it was not taken, and why.
    pub(crate) async fn cancel(&self, key: Key) -> Result<(), String> {
        let (task_id, token) = key;
        let named = json!({ "task_id": task_id, "token": token });
        match &self.link {
            Link::Http { client, url } => {
                let url = format!("{}/{task_id}?token={token}", url.trim_end_matches('/'));
                self.desk.exchange.add(Way::Out, &format!("DELETE {url}"));
                let answer = client.delete(&url).timeout(CANCEL_TIMEOUT).send().await;
                let status = answer.map_err(|error| format!("no answer: {}", http::lost(&error)))?.status();
                self.desk.exchange.add(Way::In, &status.to_string());
                if status.is_success() { Ok(()) } else { Err(format!("it was answered {status}")) }
            }
            Link::Socket => self.say(format!(r#"{{"jsonrpc":"2.0","method":"{}","params":{named}}}"#, push::CANCEL)),
            Link::Queue => {
                self.desk.exchange.add(Way::Note, &format!("the next heartbeat is answered with stop {named}"));
                self.desk.change(|state| state.stops.push(key));
                Ok(())
            }
            Link::Process(process) => match process.cancel(&self.desk, key).await {
                Some(_) => Ok(()),
                None => Err("it had not ended 2 s after SIGTERM".to_owned()),
            },
        }
    }

    /// Asks how the agent is.
    pub(crate) async fn probe(&self, within: Duration) -> Probe {
        match &self.link {
            Link::Http { client, url } => self.ask_health(client, url, within).await,
            Link::Socket => match self.request(push::PROBE, "{}", within).await {
                Ok(Ok(report)) => Probe::Answered(serde_json::from_str(&report).unwrap_or_default()),
                Ok(Err(error)) => Probe::Failed(format!("it was answered with error {error}")),
                Err(why) => Probe::Failed(why),
            },
            Link::Queue => Probe::None("an agent that pulls is not probed".to_owned()),
            Link::Process(_) => Probe::None("a command is probed by a command of its own".to_owned()),
        }
    }

    async fn ask_health(&self, client: &reqwest::Client, url: &str, within: Duration) -> Probe {
        let Ok(mut url) = reqwest::Url::parse(url) else { return Probe::None(format!("{url} is no URL")) };
        url.set_path("/healthz");
        url.set_query(None);
        self.desk.exchange.add(Way::Out, &format!("GET {url}"));
        let answer = match client.get(url).header("accept", "application/json").timeout(within).send().await {
            Ok(response) => http::read(response).await,
            Err(error) if error.is_timeout() => Err(format!("no answer within {} ms", within.as_millis())),
            Err(error) => Err(http::lost(&error)),
        };
        match answer {
            Ok((status, _, _, body)) => {
                self.desk.exchange.add(Way::In, &format!("{status} {body}"));
                match status.as_u16() {
                    404 | 405 | 501 => Probe::None("it has no GET /healthz".to_owned()),
                    200..=299 => Probe::Answered(serde_json::from_str(&body).unwrap_or_default()),
                    _ => Probe::Failed(format!("it was answered {status}")),
                }
            }
            Err(why) => {
                self.desk.exchange.add(Way::In, &format!("no answer: {why}"));
                Probe::Failed(why)
            }
        }
    }
}

/// What an answer to `task/deliver` means.
pub(crate) fn taken(reply: &Reply) -> Event {
    let Err(error) = reply else { return Event::Accepted };
    let error: Value = serde_json::from_str(error).unwrap_or_default();
    let is_full = error["data"]["code"] == "overloaded" || error["code"] == 3001;
    let says_when = error["data"]["retry_after"].is_string();
    Event::Refused { is_full, says_when, why: error.to_string() }
}
