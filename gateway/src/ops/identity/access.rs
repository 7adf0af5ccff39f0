//! What a caller is granted, and whether what was found out of it still holds.

use std::sync::Arc;
use std::time::Duration;

use http::HeaderMap;
use reach_core::access::{Caller, Denial, Grant, authorize};
use reach_core::identity::Rejection;
use reach_schemas::call::AgentToken;
use reach_schemas::{AgentId, ErrorCode, Failure, Method};
use tokio_util::sync::CancellationToken;

use super::settle::Change;
use crate::gateway::Gateway;
use crate::identity::authenticate::{nobody, refused};
use crate::identity::{Identity, Pass, Speaker, Stranger, Who};
use crate::store::IdentityRow;

/// How long work may go on that is to end because its caller is not known any more.
const MOMENT: Duration = Duration::from_secs(5);

/// Why somebody who was let in is no more.
#[derive(Debug, Clone, PartialEq)]
pub struct Ended {
    /// The same as its next call would be told.
    pub failure: Failure,
    /// Whether another copy of it has come.
    pub is_superseded: bool,
}

fn denied(denial: &Denial) -> Failure {
    Failure::new(ErrorCode::Forbidden, denial.to_string())
}

impl Gateway {
    /// What is known of callers.
    #[must_use]
    pub const fn identity(&self) -> &Identity {
        &self.identity
    }

    /// By whom a request is, by its head.
    ///
    /// # Errors
    /// What it shows is not believed.
    pub fn authenticate(&self, headers: &HeaderMap) -> Result<Pass, Stranger> {
        let (pass, is_new) = self.identity.authenticate(headers, self.now())?;
        if let (true, Pass::Agent(agent), Some(me)) = (is_new, &pass, self.me.upgrade()) {
            let agent = agent.agent_id.clone();
            tokio::spawn(async move { me.keep_used(&agent).await });
        }
        Ok(pass)
    }

    /// Keeps that a token is in use, so that the one before it ends in time though the gateway is started anew.
    async fn keep_used(self: Arc<Self>, agent: &AgentId) {
        let _turn = self.identity.changing.lock().await;
        let principal = self.identity.book().principals.get(agent).cloned();
        if let Some(principal) = principal
            && let Err(failure) = self.keep_identity(Change::Put(IdentityRow::Agent(principal)), Vec::new()).await
        {
            tracing::warn!(%agent, reason = %failure.message, "that its token is in use was not stored");
        }
    }

    /// Whether what was found out of a caller still holds.
    ///
    /// # Errors
    /// It has not shown who it is, or its token was revoked, is over, or is another copy's now.
    pub fn check(&self, pass: &Pass) -> Result<(), Failure> {
        match pass {
            Pass::Nobody => Err(nobody()),
            Pass::Open | Pass::Agent(_) | Pass::Operator(_) => self.identity.check(pass, self.now()).map_err(refused),
        }
    }

    /// Refuses a call for who it is by, or for how fast that one asks: it is written down in the caller's name. `what`: what
    /// it asked for, in our own words.
    #[must_use]
    pub fn refuse(&self, pass: &Pass, what: &str, failure: Failure) -> Failure {
        self.refused(pass.to_string(), what, failure.code, &failure.message);
        failure
    }

    /// Waits until a call ends because what was found out of its caller holds no more, and refuses it: every call that
    /// waits comes by here, over whichever transport.
    pub async fn turned_away(&self, pass: &Pass, what: &str) -> Failure {
        let Ended { failure, .. } = self.ended(pass).await;
        self.refuse(pass, what, failure)
    }

    /// Waits until what was found out of a caller holds no more.
    pub async fn ended(&self, pass: &Pass) -> Ended {
        let mut changes = self.identity.changes();
        loop {
            changes.mark_unchanged();
            if let Err(rejection) = self.identity.check(pass, self.now()) {
                return Ended { failure: refused(rejection), is_superseded: rejection == Rejection::Superseded };
            }
            let over = async {
                match self.identity.ends_at(pass) {
                    // A connection may have gone on under another token meanwhile; then this looks once more.
                    Some(at) => self.clock.sleep_until(at.max(self.now() + reach_schemas::Span::from_ms(1))).await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                () = over => {}
                changed = changes.changed() => {
                    if changed.is_err() {
                        return std::future::pending().await;
                    }
                }
            }
        }
    }

    /// One who has shown who it is, and says in whose name it speaks.
    ///
    /// # Errors
    /// It has not shown who it is, or may not speak in that name.
    pub fn speaker(&self, pass: &Pass, named: Option<AgentId>) -> Result<Speaker, Failure> {
        Speaker::of(pass, named)
    }

    /// A speaker as a caller, with the access rules of today. Whether its token still stands is asked elsewhere.
    #[must_use]
    pub fn caller(&self, speaker: &Speaker) -> Caller {
        match speaker.who() {
            Who::Agent(agent) => self.caller_named(&agent.agent_id),
            Who::Anybody(Some(named)) | Who::Operator(_, Some(named)) => self.caller_named(named),
            Who::Operator(pass, None) => Caller::Operator(pass.operator.clone()),
            Who::Anybody(None) => Caller::OPERATOR,
        }
    }

    /// What a caller is granted for a method, if it still is who it has shown to be.
    ///
    /// # Errors
    /// It has not shown who it is or is not believed any more, may not speak in the name that it says, may not do what the
    /// method does, or asks too fast.
    pub fn grant(&self, pass: &Pass, named: Option<&AgentId>, method: Method) -> Result<Grant, Failure> {
        self.check(pass)?;
        let speaker = self.speaker(pass, named.cloned())?;
        self.count_named(&speaker)?;
        authorize(self.caller(&speaker), method.permission()).map_err(|denial| denied(&denial))
    }

    /// As [`Gateway::grant`], for what a request does beyond its first step, or a stream whenever it says something: how fast
    /// its caller asks was counted when it asked.
    ///
    /// # Errors
    /// As [`Gateway::grant`], but for the pace.
    pub fn grant_counted(&self, pass: &Pass, named: Option<&AgentId>, method: Method) -> Result<Grant, Failure> {
        self.check(pass)?;
        let caller = self.caller(&self.speaker(pass, named.cloned())?);
        authorize(caller, method.permission()).map_err(|denial| denied(&denial))
    }

    /// The agent's next token, if it is time for it: for the answer to a heartbeat.
    ///
    /// # Errors
    /// What was found out of the caller holds no more.
    pub fn next_token(&self, pass: &Pass) -> Result<Option<AgentToken>, Failure> {
        match pass {
            Pass::Agent(agent) => self.identity.next_token(agent, self.now()).map_err(refused),
            Pass::Open | Pass::Nobody | Pass::Operator(_) => self.check(pass).map(|()| None),
        }
    }

    /// Does what may wait long, for as long as its caller may have the answer. If that ends before, the answer is what
    /// the caller's next call would be told, at once, and it is written down: `gone` is cancelled, by which `work` is to end
    /// soon, and it has a moment for that, so that what it had begun to store has its effects and what it took goes back.
    ///
    /// # Errors
    /// What was found out of the caller holds no more.
    pub async fn while_known<T>(
        &self,
        (pass, what): (&Pass, &str),
        gone: &CancellationToken,
        work: impl Future<Output = T>,
    ) -> Result<T, Failure> {
        tokio::pin!(work);
        // Whether the caller is still known is looked at before each step of the work.
        tokio::select! {
            biased;
            failure = self.turned_away(pass, what) => {
                gone.cancel();
                let _ = tokio::time::timeout(MOMENT, work).await;
                Err(failure)
            }
            done = &mut work => Ok(done),
        }
    }
}
