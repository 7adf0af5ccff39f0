//! Following a task on an open connection, from being taken on to its end. Register first, then read: no change is
//! missed. Of one who takes no change for long, as many wait as [`CHANGES_MAX`](crate::waiters::CHANGES_MAX) says.

use std::sync::Arc;

use reach_core::access::Grant;
use reach_core::task::Event;
use reach_schemas::call::TaskRef;
use reach_schemas::{Failure, Submit, TaskId, TaskView};

use super::interest::Say;
use crate::gateway::{Gateway, NotApplied, task_not_found};
use crate::waiters::Follower;

/// A task that somebody follows. Dropping it ends the following, not the task.
pub struct Following {
    gateway: Arc<Gateway>,
    follower: Follower,
    view: TaskView,
    is_replayed: bool,
    say: Say,
}

impl Gateway {
    /// Takes on a task whose caller waits for it on the connection, however long it takes. One that may be in memory
    /// only must not be named to anybody before it is final: see [`Following::promised`].
    ///
    /// # Errors
    /// As [`Gateway::submit`].
    pub async fn follow_new(self: &Arc<Self>, grant: Grant, submit: Submit) -> Result<Following, Failure> {
        let id = self.new_task_id();
        let follower = self.waiters.follow(id);
        let say = if submit.idempotency_key.is_some() { Say::Among(self.interest.begin(id)) } else { Say::Alone };
        let view = self.submit_as(id, &grant, submit, true).await?;
        let is_replayed = view.replayed;
        if view.task_id == id {
            return Ok(Following { gateway: Arc::clone(self), follower, view, is_replayed, say });
        }
        let say = self.interest.join(view.task_id);
        let follower = self.waiters.follow(view.task_id);
        let task = self.load(view.task_id).await?.ok_or_else(task_not_found)?;
        let (follower, view) = (follower.after(&task), task.view());
        Ok(Following { gateway: Arc::clone(self), follower, view, is_replayed, say })
    }

    /// Follows a task that there is.
    ///
    /// # Errors
    /// There is none that the caller may see, or the policy does not let it be told of its changes.
    pub async fn follow(self: &Arc<Self>, grant: Grant, request: TaskRef) -> Result<Following, Failure> {
        let follower = self.waiters.follow(request.task_id);
        let task = self.visible(&grant, request.task_id).await?;
        self.may_follow(grant.caller(), &task)?;
        let (follower, view) = (follower.after(&task), self.seen_by(&grant, task.view()));
        Ok(Following { gateway: Arc::clone(self), follower, view, is_replayed: false, say: Say::None })
    }
}

impl Following {
    /// The task as it was last seen.
    #[must_use]
    pub fn view(&self) -> TaskView {
        TaskView { replayed: self.is_replayed, ..self.view.clone() }
    }

    /// Its id.
    #[must_use]
    pub const fn id(&self) -> TaskId {
        self.view.task_id
    }

    /// Whether nothing more happens to it by itself.
    #[must_use]
    pub const fn is_final(&self) -> bool {
        self.view.phase.is_final()
    }

    /// Waits for its next change. False: there is none to wait for, for it is final or the gateway is about to stop.
    pub async fn changed(&mut self) -> bool {
        if self.is_final() {
            return false;
        }
        tokio::select! {
            task = self.follower.changed() => self.view = task.view(),
            () = self.gateway.stopping() => return false,
        }
        true
    }

    /// Is done once the gateway is about to stop.
    pub(crate) async fn stopping(&self) {
        self.gateway.stopping().await;
    }

    /// Gives the task up. It is called off unless somebody else wants it, or may come back for it. Nobody is told
    /// whether there was anything to call off.
    pub(crate) async fn give_up(&mut self) {
        if !self.say.give_up() {
            return;
        }
        let id = self.id();
        if let Err(error) = self.gateway.apply(id, Event::Cancel).await
            && !matches!(error, NotApplied::Refused(_))
        {
            let failure = Failure::from(error);
            tracing::info!(task = %id, reason = %failure.message, "a task that was given up could not be cancelled");
        }
    }

    /// The task, durable or final, so that its id may be given out.
    ///
    /// # Errors
    /// It cannot be stored.
    pub async fn promised(&mut self) -> Result<TaskView, Failure> {
        let task = self.gateway.load(self.id()).await?.ok_or_else(task_not_found)?;
        self.view = self.gateway.promised(task).await?.view();
        Ok(self.view())
    }
}
