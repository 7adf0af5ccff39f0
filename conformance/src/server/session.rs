//! One conversation with a server, in one revision, over one of the two wires.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use super::inbox::{Inbox, Said};
use super::revision::{self, STATELESS};
use super::wire::{Outcome, Pipe, Posted, Road};
use crate::exchange::{Exchange, Way};

/// A conversation.
pub(crate) struct Session {
    pub(crate) inbox: Arc<Inbox>,
    wire: Wire,
    /// The revision that is spoken.
    pub(crate) revision: String,
    /// The session's id over HTTP, if the server gave one.
    pub(crate) id: Option<String>,
    /// What `initialize` or `server/discover` was answered with.
    pub(crate) greeting: Value,
    next: AtomicU64,
    timeout: Duration,
}

enum Wire {
    Http { client: reqwest::Client, url: String },
    Pipe(Arc<Pipe>),
}

/// A request that has been sent.
pub(crate) struct Asked {
    /// Its id, as JSON.
    pub(crate) id: String,
    answer: oneshot::Receiver<(Said, Instant)>,
    /// The request over HTTP; its end is the end of its stream.
    sending: Option<JoinHandle<Result<Outcome, String>>>,
}

impl Asked {
    /// Waits for the answer.
    pub(crate) async fn wait(&mut self, within: Duration) -> (Said, Instant) {
        match tokio::time::timeout(within, &mut self.answer).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(_)) => (Said::Nothing("the request was given up".to_owned()), Instant::now()),
            Err(_) => (Said::Nothing(format!("no answer within {} ms", within.as_millis())), Instant::now()),
        }
    }

    /// The HTTP status and headers, once all is said. None: it is not HTTP, or there were none.
    pub(crate) async fn outcome(&mut self, within: Duration) -> Option<Outcome> {
        let sending = self.sending.as_mut()?;
        tokio::time::timeout(within, sending).await.ok()?.ok()?.ok()
    }

    /// Closes its stream.
    pub(crate) fn hang_up(&self) {
        if let Some(sending) = &self.sending {
            sending.abort();
        }
    }
}

impl Drop for Asked {
    fn drop(&mut self) {
        self.hang_up();
    }
}

impl Session {
    fn over(road: &Road, revision: &str, exchange: Arc<Exchange>, timeout: Duration) -> Result<Self, String> {
        let inbox = Inbox::new(exchange);
        let wire = match road {
            Road::Http { client, url } => Wire::Http { client: client.clone(), url: url.clone() },
            Road::Command(line) => Wire::Pipe(Pipe::open(line, &inbox)?),
        };
        let revision = revision.to_owned();
        Ok(Self { inbox, wire, revision, id: None, greeting: Value::Null, next: AtomicU64::new(1), timeout })
    }

    /// Begins with a handshake that asks for this revision. `Err`: it was not answered with a result.
    pub(crate) async fn handshake(
        road: &Road,
        asked: &str,
        exchange: Arc<Exchange>,
        timeout: Duration,
    ) -> Result<Self, Said> {
        let mut session = Self::over(road, "", exchange, timeout).map_err(Said::Nothing)?;
        let params = json!({ "protocolVersion": asked, "capabilities": {}, "clientInfo": revision::client() });
        let mut request = session.ask("initialize", params);
        // A child has to be started first.
        let (said, _) = request.wait(if session.is_pipe() { timeout * 2 } else { timeout }).await;
        let Ok(greeting) = said.result() else { return Err(said) };
        session.id = request.outcome(timeout).await.and_then(|outcome| outcome.session);
        session.revision = greeting["protocolVersion"].as_str().unwrap_or_default().to_owned();
        session.greeting = greeting;
        session.notify("notifications/initialized", json!({})).await;
        Ok(session)
    }

    /// Begins without one. `Err`: what `server/discover` came to instead of a result within that time.
    pub(crate) async fn stateless(
        road: &Road,
        exchange: Arc<Exchange>,
        within: Duration,
        timeout: Duration,
    ) -> Result<Self, Said> {
        let mut session = Self::over(road, STATELESS, exchange, timeout).map_err(Said::Nothing)?;
        let (said, _) = session.ask("server/discover", json!({})).wait(within).await;
        let Ok(greeting) = said.result() else { return Err(said) };
        session.greeting = greeting;
        Ok(session)
    }

    pub(crate) fn is_stateless(&self) -> bool {
        self.revision == STATELESS
    }

    /// Whether closing a request's stream calls it off.
    pub(crate) const fn is_pipe(&self) -> bool {
        matches!(self.wire, Wire::Pipe(_))
    }

    fn headers(&self, method: &str, params: &Value) -> Vec<(&'static str, String)> {
        let mut headers = Vec::new();
        if revision::has_header(&self.revision) {
            headers.push(("mcp-protocol-version", self.revision.clone()));
        }
        headers.extend(self.id.clone().map(|id| ("mcp-session-id", id)));
        if self.is_stateless() {
            headers.push(("mcp-method", method.to_owned()));
            headers.extend(params["name"].as_str().map(|name| ("mcp-name", name.to_owned())));
        }
        headers
    }

    /// An id that no request of this session had.
    pub(crate) fn next_id(&self) -> String {
        self.next.fetch_add(1, Ordering::Relaxed).to_string()
    }

    /// Sends a request.
    pub(crate) fn ask(&self, method: &str, params: Value) -> Asked {
        self.ask_as(&self.next_id(), method, params)
    }

    /// Sends a request under an id that is given as JSON.
    pub(crate) fn ask_as(&self, id: &str, method: &str, mut params: Value) -> Asked {
        if self.is_stateless() {
            revision::say_stateless(&mut params, &self.revision);
        }
        let headers = self.headers(method, &params);
        let text = format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"{method}","params":{params}}}"#);
        self.send_request(id, headers, text)
    }

    /// Sends a request whose text is given.
    pub(crate) fn send_request(&self, id: &str, headers: Vec<(&'static str, String)>, text: String) -> Asked {
        let answer = self.inbox.expect(id);
        let sending = match &self.wire {
            Wire::Http { client, url } => {
                let posted = Posted { client: client.clone(), url: url.clone(), headers };
                Some(tokio::spawn(posted.send(self.inbox.clone(), Some(id.to_owned()), text)))
            }
            Wire::Pipe(pipe) => {
                self.inbox.exchange.add(Way::Out, &text);
                if let Err(why) = pipe.say(text) {
                    self.inbox.settle(id, Said::Nothing(why));
                }
                None
            }
        };
        Asked { id: id.to_owned(), answer, sending }
    }

    /// Sends a request, and waits for what it comes to.
    pub(crate) async fn call(&self, method: &str, params: Value) -> Said {
        self.ask(method, params).wait(self.timeout).await.0
    }

    /// Calls a tool.
    pub(crate) async fn tool(&self, name: &str, arguments: &Value) -> Said {
        self.call("tools/call", json!({ "name": name, "arguments": arguments })).await
    }

    /// Sends a notification. Over HTTP it is answered with a status.
    pub(crate) async fn notify(&self, method: &str, mut params: Value) -> Option<Result<Outcome, String>> {
        if self.is_stateless() {
            revision::say_stateless(&mut params, &self.revision);
        }
        let headers = self.headers(method, &params);
        self.send(headers, format!(r#"{{"jsonrpc":"2.0","method":"{method}","params":{params}}}"#)).await
    }

    /// Sends a text that expects no answer by its id.
    pub(crate) async fn send(
        &self,
        headers: Vec<(&'static str, String)>,
        text: String,
    ) -> Option<Result<Outcome, String>> {
        match &self.wire {
            Wire::Http { client, url } => {
                let posted = Posted { client: client.clone(), url: url.clone(), headers };
                let sending = posted.send(self.inbox.clone(), None, text);
                let sent = tokio::time::timeout(self.timeout, sending).await;
                Some(sent.unwrap_or_else(|_| Err("no answer in time".to_owned())))
            }
            Wire::Pipe(pipe) => {
                self.inbox.exchange.add(Way::Out, &text);
                // A child that does not read is told of by the next request.
                let _ = pipe.say(text);
                None
            }
        }
    }

    /// Ends it: over HTTP with DELETE, and the answer's status; else by closing the standard input, and 200 if the child
    /// ended in time.
    pub(crate) async fn end(&self, within: Duration) -> Result<u16, String> {
        match &self.wire {
            Wire::Http { client, url } => {
                let headers = self.headers("", &Value::Null);
                let shown: Vec<String> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
                self.inbox.exchange.add(Way::Out, &format!("DELETE {url} [{}]", shown.join(", ")));
                let mut request = client.delete(url);
                for (name, value) in headers {
                    request = request.header(name, value);
                }
                let response = request.timeout(within).send().await;
                let status = response.map_err(|error| crate::agent::lost(&error))?.status();
                self.inbox.exchange.add(Way::In, &status.to_string());
                Ok(status.as_u16())
            }
            Wire::Pipe(pipe) if pipe.close(within).await => Ok(200),
            Wire::Pipe(_) => Err(format!("it had not ended {} s later", within.as_secs())),
        }
    }
}
