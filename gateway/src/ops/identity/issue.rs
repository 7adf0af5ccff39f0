//! Agents that show their keys, and are given tokens for them.

use reach_core::access::{Grant, authorize};
use reach_core::fleet::Checked;
use reach_core::identity::{Joining, ProofFlaw, Refusal};
use reach_schemas::call::{AgentToken, Enrolment, Registered, TokenIssue};
use reach_schemas::{AgentId, ErrorCode, Failure, Method};

use super::settle::Change;
use crate::gateway::Gateway;
use crate::identity::{SignedProof, hash, read_proof};
use crate::ops::agents::bad_card;
use crate::sessions::SessionId;
use crate::store::IdentityRow;

fn refused(refusal: Refusal) -> Failure {
    Failure::new(refusal.code(), refusal.to_string())
}

impl Gateway {
    /// Gives an agent a token for the key that it shows, and a generation more than before: whoever had a token of it until
    /// now is the agent no more. `host`: by which name the gateway was called, if it was by one.
    ///
    /// # Errors
    /// The proof proves nothing, the join token lets it not in, or the key is not the one that is known.
    pub async fn issue(&self, request: TokenIssue, host: Option<&str>) -> Result<AgentToken, Failure> {
        self.let_in(request, host, || Ok(())).await
    }

    /// As [`Gateway::issue`], if it `may` be let in beyond that. Whether it may, and whether the name is one of the gateway's
    /// own, is asked and told only once it has proven something, and before anything is used up or known otherwise.
    async fn let_in(
        &self,
        request: TokenIssue,
        host: Option<&str>,
        may: impl FnOnce() -> Result<(), Failure> + Send,
    ) -> Result<AgentToken, Failure> {
        let TokenIssue { agent_id: agent, join, proof } = request;
        let Some(signed) = read_proof(proof.reveal()) else {
            return Err(refused(Refusal::Proof(ProofFlaw::Foreign)));
        };
        let SignedProof { proof, key, thumbprint } = signed;
        let text = join.as_ref().map(reach_schemas::Secret::reveal);
        let has_secret = text.is_some_and(|text| self.identity.is_secret_of(&agent.namespace(), text));
        let join = text.filter(|_| !has_secret).map(hash);
        let Some(host) = self.name(host) else {
            let message = "a proof names the gateway that it is for, and this one was called by no name of its own: set \
                           `auth.public_url`, and name that";
            return Err(Failure::new(ErrorCode::Unauthenticated, message));
        };
        let _turn = self.identity.changing.lock().await;
        let now = self.now();
        let (admitted, ticket) = {
            let book = self.identity.book();
            let joining = Joining {
                agent: &agent,
                key: (&key, &thumbprint),
                proof: &proof,
                hosts: &[host],
                join: join.as_deref(),
                has_secret,
            };
            let admitted = book.admit(&joining, now, self.identity.settings().lifetimes.skew).map_err(refused)?;
            (admitted, join.and_then(|hash| book.joins.get(&hash).cloned()))
        };
        // Only who has proven something uses up what the agent has.
        self.count_agent(&agent)?;
        self.refuse_own(&agent)?;
        may()?;
        // A join token is used up first: of two that come with it, on whichever gateway, one gets in.
        if let Some(ticket) = ticket
            && !self.keep_identity(Change::Take(IdentityRow::Join(ticket)), Vec::new()).await?
        {
            return Err(refused(Refusal::Join));
        }
        let told = self.admitted(&admitted);
        self.keep_identity(Change::Put(IdentityRow::Agent(admitted.clone())), vec![told]).await?;
        tracing::info!(%agent, generation = admitted.generation, "showed its key, and was given a token");
        let signed = self.identity.sign(&admitted, 0, now);
        let (token, _) =
            signed.ok_or_else(|| Failure::new(ErrorCode::Internal, "there is no key that signs tokens"))?;
        Ok(token)
    }

    /// Registers an agent that shows its key along with its card; the answer has its token.
    ///
    /// # Errors
    /// As [`Gateway::issue`] and [`Gateway::register`]. A card that is wrong costs no join token.
    pub async fn enrol(
        &self,
        enrolment: Enrolment,
        host: Option<&str>,
        connection: Option<SessionId>,
    ) -> Result<Registered, Failure> {
        let Enrolment { card, join, proof } = enrolment;
        Checked::new(card.clone()).map_err(|error| bad_card(&error))?;
        let agent_id = card.agent_id.clone();
        let request = TokenIssue { agent_id: agent_id.clone(), join, proof };
        let token = self
            .let_in(request, host, || self.may_register(&card).and_then(|()| self.may_go_where_it_says(&card)))
            .await?;
        let registered = self.register(self.grant_itself(&agent_id)?, card, connection).await?;
        Ok(Registered { token: Some(token), ..registered })
    }

    fn grant_itself(&self, agent: &AgentId) -> Result<Grant, Failure> {
        let grant = authorize(self.caller_named(agent), Method::AgentRegister.permission());
        grant.map_err(|denial| Failure::new(ErrorCode::Forbidden, denial.to_string()))
    }

    /// By which name the gateway is called. What a caller says it called it by counts only where no name is set: a proof is
    /// good for the one gateway that it names.
    fn name<'a>(&'a self, said: Option<&'a str>) -> Option<&'a str> {
        let set = self.identity.settings().public_url.as_deref();
        let set = set.and_then(|url| url.split_once("://")).map(|(_, rest)| rest.trim_end_matches('/'));
        set.map(|host| host.split('/').next().unwrap_or(host)).or(said)
    }
}
