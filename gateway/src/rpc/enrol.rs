//! Agents that show who they are: the only calls that whoever calls may make.

use std::sync::Arc;

use reach_schemas::call::{AgentToken, Enrolment, Registered, TokenIssue};
use reach_schemas::{AgentCard, Failure, Method};
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use super::card::decode_card;
use super::methods::{Context, answer};
use super::params::text_of;
use super::{Outcome, decode, error_of};

/// What was sent to register: the card, alone or with what shows that its agent may have it.
pub enum Registering {
    /// The card.
    Card(Box<AgentCard>),
    /// The card, with a key or a join token.
    Enrolment(Box<Enrolment>),
}

#[derive(Deserialize)]
struct Sniffed {
    card: Option<IgnoredAny>,
}

impl Registering {
    /// Reads a text that goes by the name of `whole`. A member `card` tells which of both it is: a card has none.
    ///
    /// # Errors
    /// It has neither form.
    pub fn read(text: &str, whole: &str) -> Result<Self, Failure> {
        let has_card = serde_json::from_str::<Sniffed>(text).is_ok_and(|sniffed| sniffed.card.is_some());
        if has_card {
            return decode(text, whole).map(|enrolment| Self::Enrolment(Box::new(enrolment)));
        }
        decode_card(text, whole).map(|card| Self::Card(Box::new(card)))
    }

    /// Registers the agent.
    ///
    /// # Errors
    /// The caller may not act for it, or what shows that it may is not accepted; or the card is wrong.
    pub async fn carry_out(self, context: &Context) -> Result<Registered, Failure> {
        let session = context.connection.as_ref().map(|connection| connection.session);
        match self {
            Self::Card(card) => {
                context.gateway.register(context.grant(Method::AgentRegister, None)?, *card, session).await
            }
            Self::Enrolment(enrolment) => {
                let has_join = enrolment.join.is_some();
                trying(context, has_join, context.gateway.enrol(*enrolment, host(context), session)).await
            }
        }
    }
}

/// What shows a join token or a secret may be a guess.
async fn trying<T>(
    context: &Context,
    has_join: bool,
    attempt: impl Future<Output = Result<T, Failure>>,
) -> Result<T, Failure> {
    if has_join { context.gateway.trying((&context.pass, context.from), attempt).await } else { attempt.await }
}

fn host(context: &Context) -> Option<&str> {
    context.host.as_ref().map(Arc::as_ref)
}

pub(super) async fn register(context: &Context, params: Option<&RawValue>) -> Outcome {
    let registering = Registering::read(text_of(params)?, "params").map_err(|failure| error_of(failure, None))?;
    answer(registering.carry_out(context).await)
}

pub(super) async fn issue(context: &Context, request: TokenIssue) -> Result<AgentToken, Failure> {
    let has_join = request.join.is_some();
    trying(context, has_join, context.gateway.issue(request, host(context))).await
}
