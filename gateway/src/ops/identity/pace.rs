//! How fast callers may ask, whichever road they take, and how often those may try who have not shown who they are. A request
//! is counted where it comes in: by the door of the port, or call by call where calls are read from frames.

use std::net::IpAddr;

use reach_schemas::{AgentId, ErrorCode, Failure};

use crate::gateway::Gateway;
use crate::identity::{Pass, Speaker, Who};

impl Gateway {
    /// Counts one more request of whoever shows this. Who has not shown who it is, or is not asked, is not counted.
    ///
    /// # Errors
    /// It, or its namespace, asks too fast: `overloaded`, and when to ask again.
    pub fn count(&self, pass: &Pass) -> Result<(), Failure> {
        let counted = match pass {
            Pass::Open | Pass::Nobody => return Ok(()),
            Pass::Agent(agent) => self.count_agent(&agent.agent_id),
            Pass::Operator(pass) => self.rates.admit_operator(&pass.operator, &self.settings().rates, self.now()),
        };
        // Whoever is not let in any more is told that, and not to come again.
        counted.or_else(|too_fast| self.check(pass).and(Err(too_fast)))
    }

    /// Counts one more request of an agent that was found to be it.
    ///
    /// # Errors
    /// As [`Gateway::count`].
    pub(crate) fn count_agent(&self, agent: &AgentId) -> Result<(), Failure> {
        self.rates.admit_agent(agent, &self.settings().rates, self.now())
    }

    /// Counts one more request of the agent that somebody speaks for who is not it: where callers are not asked who they are,
    /// or an operator does.
    ///
    /// # Errors
    /// As [`Gateway::count`].
    pub(crate) fn count_named(&self, speaker: &Speaker) -> Result<(), Failure> {
        match speaker.who() {
            Who::Anybody(Some(named)) | Who::Operator(_, Some(named)) => self.count_agent(named),
            Who::Anybody(None) | Who::Operator(_, None) | Who::Agent(_) => Ok(()),
        }
    }

    /// Counts one more request of a speaker: of whoever it is, and of the agent that it speaks for.
    ///
    /// # Errors
    /// As [`Gateway::count`].
    pub fn count_speaker(&self, speaker: &Speaker) -> Result<(), Failure> {
        self.count(&speaker.pass())?;
        self.count_named(speaker)
    }

    /// Has somebody try to get in by a join token or a namespace's secret, unless too many tries of it have failed of late:
    /// such a secret is as hard to guess as whoever thought of it made it. What goes well costs nothing.
    ///
    /// # Errors
    /// As the try; or there were too many.
    pub(crate) async fn trying<T>(
        &self,
        (pass, from): (&Pass, Option<IpAddr>),
        attempt: impl Future<Output = Result<T, Failure>>,
    ) -> Result<T, Failure> {
        // No agent's id and no operator's name has a blank in it.
        let who = match (pass, from) {
            (Pass::Agent(_) | Pass::Operator(_), _) => format!("tries of {pass}"),
            (Pass::Open | Pass::Nobody, Some(from)) => format!("tries from {from}"),
            (Pass::Open | Pass::Nobody, None) => return attempt.await,
        };
        self.rates.may_try(&who, self.now())?;
        let tried = attempt.await;
        if tried.as_ref().is_err_and(|failure| failure.code == ErrorCode::Unauthenticated) {
            self.rates.has_failed(&who, self.now());
        }
        tried
    }
}
