//! `subscriptions/listen` (2026-07-28): a request whose answer is the end of a stream of notices; and the same notices for
//! those who listen in other ways.

use serde::Deserialize;
use serde_json::value::RawValue;

use super::asking::{Asking, meta};
use super::tasks::{missing, takes_tasks};
use super::{Line, Server, Session, notice, stateless};
use crate::envelope::Outcome;
use crate::identity::Speaker;
use crate::mcp::wire::meta::SUBSCRIPTION_ID;
use crate::mcp::wire::object::Object;
use crate::rpc::decode_params;

#[derive(Debug, Deserialize)]
struct Params {
    notifications: Filter,
}

/// Which notices are asked for. What is not known here is not acknowledged, and not sent.
#[derive(Debug, Default, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Filter {
    tools_list_changed: bool,
    task_ids: Vec<String>,
}

impl Asking<'_> {
    pub(super) async fn listen(&self, id: &str, params: Option<&RawValue>) -> Outcome {
        let Params { notifications } = decode_params(params)?;
        let Filter { tools_list_changed, task_ids } = notifications;
        if !task_ids.is_empty() && !takes_tasks(&meta(params)?) {
            return Err(missing());
        }
        let tasks = self.known_tasks(&task_ids).await;
        let accepted = Object::default()
            .maybe("toolsListChanged", tools_list_changed.then_some(true))
            .maybe("taskIds", (!task_ids.is_empty()).then_some(&tasks));
        let working = self.begin(id);
        let tell = async {
            // What changes from now on is told, after the acknowledgement.
            let changes = tools_list_changed.then(|| self.server.tools_changes(self.speaker, || true));
            self.line.say(notice::acknowledged(id, &accepted.into_text())).await;
            let tell_tools = async {
                match changes {
                    Some(changes) => match changes.tell(self.line, || notice::tools_changed(Some(id))).await {},
                    None => std::future::pending::<()>().await,
                }
            };
            tokio::join!(tell_tools, self.tell_tasks(id, tasks));
        };
        let cancelled = async {
            match &working {
                Some(working) => working.cancelled().await,
                None => std::future::pending().await,
            }
        };
        let closed = async {
            match self.session {
                Some(session) => session.closed().await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = tell => {}
            () = self.server.gateway.stopping() => {}
            () = self.line.gone() => self.line.silence(),
            () = cancelled => self.line.silence(),
            () = closed => {}
        }
        let meta = Object::default().raw(SUBSCRIPTION_ID, id);
        Ok(stateless::complete_with(Object::default(), meta).into_raw())
    }
}

/// The changes of what one caller sees, from some moment on.
pub(super) struct Changes<'a, F> {
    server: &'a Server,
    speaker: &'a Speaker,
    told: tokio::sync::watch::Receiver<u64>,
    seen: [u8; 32],
    may_tell: F,
}

impl Server {
    /// The changes from now on; of those that come while `may_tell` is false, none is told.
    fn tools_changes<'a, F: Fn() -> bool>(&'a self, speaker: &'a Speaker, may_tell: F) -> Changes<'a, F> {
        let told = self.catalog.told();
        Changes { server: self, speaker, told, seen: self.view(speaker).fingerprint, may_tell }
    }

    /// Does what [`Server::tell_session`] does, on a connection, once a handshake has been on it.
    pub async fn tell_connection(&self, session: &Session, line: &Line) {
        tokio::select! {
            () = session.agreed() => self.tell_session(session, line).await,
            () = session.closed() => {}
            () = line.gone() => {}
        }
    }

    /// Tells a client of a session, on a stream that it opened for that, of tools that come and go, until the session or
    /// the stream is over.
    pub async fn tell_session(&self, session: &Session, line: &Line) {
        let listening = session.streams.listen();
        let changes = self.tools_changes(&session.speaker, || listening.is_newest());
        tokio::select! {
            never = changes.tell(line, || notice::tools_changed(None)) => match never {},
            () = session.closed() => {}
            () = self.gateway.stopping() => {}
            () = line.gone() => {}
        }
    }
}

impl<F: Fn() -> bool> Changes<'_, F> {
    async fn tell(mut self, line: &Line, notice: impl Fn() -> bytes::Bytes) -> std::convert::Infallible {
        loop {
            if self.told.changed().await.is_err() {
                return std::future::pending().await;
            }
            let now = self.server.view(self.speaker).fingerprint;
            if now != self.seen && (self.may_tell)() {
                line.say(notice()).await;
            }
            self.seen = now;
        }
    }
}
