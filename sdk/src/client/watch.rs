//! A task's changes as they happen. Each watch has a WebSocket of its own, on which subscribing is the greeting: after a
//! lost connection it is said again, and the view that answers it tells what was missed.

use reach_schemas::call::Subscribe;
use reach_schemas::method::push;
use reach_schemas::{Method, RawJson, TaskId, TaskView};
use tokio::sync::mpsc;

use super::{Client, read};
use crate::error::{Error, Result};
use crate::transport::Call;
use crate::transport::ws::{Ears, Event, Link};

/// How many changes may wait until they are looked at; the gateway's connection waits with them.
const CHANGES_MAX: usize = 64;

/// A task's changes, one view after another; from [`Client::watch`]. Dropping it ends it.
pub struct Watch {
    events: mpsc::Receiver<Event>,
    last: Option<TaskView>,
    /// Whether a change was told on this connection already.
    is_told: bool,
    /// Its end closes the connection.
    _link: Link,
}

impl std::fmt::Debug for Watch {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Watch").field("last", &self.last).finish_non_exhaustive()
    }
}

impl Client {
    /// Watches a task: how it is now, then each change of its phase or progress, until its end, which comes last. Of
    /// changes that are not looked at, 64 wait here and more at the gateway, which drops the oldest of them and never the
    /// last. What happened while the connection was lost is told as one. A gateway that is away is waited for.
    ///
    /// # Errors
    /// [`Error::Config`] if the gateway is reached by TLS, over which there are no WebSockets yet. What the gateway has
    /// to say comes from [`Watch::next`].
    pub fn watch(&self, task_id: TaskId) -> Result<Watch> {
        let params = RawJson::of(&Subscribe { task_id }).map_err(|error| Error::unreadable("the parameters", error))?;
        let timeout = self.inner.call_timeout;
        let greeting = move || Call {
            method: Method::TaskSubscribe.name().into(),
            params: Some(params.clone()),
            timeout,
            is_safe: true,
        };
        let (sender, events) = mpsc::channel(CHANGES_MAX);
        let ears = Ears { greeting: Some(Box::new(greeting)), events: Some(sender) };
        let link = Link::open(self.inner.target.clone().over_websocket()?, ears);
        Ok(Watch { events, last: None, is_told: false, _link: link })
    }
}

impl Watch {
    /// The next view. None: the task has ended, and its end was told. May be dropped and called again.
    ///
    /// # Errors
    /// [`Error::NotFound`] if there is no such task, or none that may be seen; [`Error::Protocol`].
    pub async fn next(&mut self) -> Result<Option<TaskView>> {
        if self.last.as_ref().is_some_and(|view| view.phase.is_final()) {
            return Ok(None);
        }
        loop {
            let view: TaskView = match self.events.recv().await {
                Some(Event::Open(Some(answer))) => {
                    let view: TaskView = read(Method::TaskSubscribe.name(), &answer)?;
                    // A change may overtake the answer, which is older then.
                    if self.is_told && !view.phase.is_final() {
                        continue;
                    }
                    view
                }
                Some(Event::Notification { method, params: Some(params) }) if method == push::CHANGED => {
                    self.is_told = true;
                    read(push::CHANGED, &params)?
                }
                Some(Event::Lost) => {
                    self.is_told = false;
                    continue;
                }
                Some(Event::Ended(error)) => return Err(error),
                None => return Err(Error::maybe_sent("the connection was closed")),
                Some(Event::Open(None) | Event::Notification { .. } | Event::Request { .. }) => continue,
            };
            if self.last.as_ref() != Some(&view) {
                self.last = Some(view.clone());
                return Ok(Some(view));
            }
        }
    }
}
