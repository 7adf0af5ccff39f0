//! When nobody gets it: what was near, what each lacked, and whether waiting can help.

use reach_schemas::decision::{CANDIDATES_MAX, SUGGESTIONS_MAX};
use reach_schemas::{
    AgentId, Candidate, Decision, ErrorCode, Failure, Lack, Reason, Span, Suggestion, Timestamp, Verdict,
};

use super::filter::lack;
use super::route::Sifted;
use super::select::{Fit, Missing};
use super::weigh::Weighed;
use super::{Ask, Fleet};
use crate::task::Wanted;

/// How long to wait before looking again, if nothing says when.
const LOOK_AGAIN: Span = Span::from_secs(1);
/// The shortest and the longest such wait.
const LOOK_AGAIN_MIN: Span = Span::from_ms(50);
const LOOK_AGAIN_MAX: Span = Span::from_secs(5);

/// Nobody gets it.
#[derive(Debug, Clone, PartialEq)]
pub enum Unroutable {
    /// Somebody fits, but not just now.
    NotNow {
        /// When to look again.
        until: Timestamp,
        /// Who may come to fit: a change of theirs is worth an earlier look.
        waiting_for: Vec<AgentId>,
        /// For what, most likely, on what terms, and whether they are out or only busy.
        wanted: Box<Wanted>,
        /// How long that takes, as a rule.
        takes: Span,
        /// Before when certainly none of them takes it, if that is known.
        opens_at: Option<Timestamp>,
        /// Whether a free seat at one of them is all that it lacks.
        for_seat: bool,
        /// Why, for the caller.
        failure: Failure,
        /// Why, for the record.
        decision: Decision,
    },
    /// Nobody fits, and waiting does not help.
    Never {
        /// Why, for the caller.
        failure: Failure,
        /// Why, for the record.
        decision: Decision,
    },
}

impl Fleet {
    pub(super) fn unroutable(&self, ask: &Ask<'_>, sifted: Sifted, now: Timestamp) -> Unroutable {
        let mut decision = self.decision(ask, &sifted, &[], None, &[], now);
        decision.suggestions = self.suggestions(&sifted);
        let may_pass = |lacks: &[Lack]| lacks.iter().all(|lack| lack.reason.may_pass());
        let waiting: Vec<&(Fit, Vec<Lack>)> = sifted.fallen.iter().filter(|(_, lacks)| may_pass(lacks)).collect();
        let failure = Failure { suggestions: decision.suggestions.clone(), ..self.failure(ask, &sifted) };
        if waiting.is_empty() {
            return Unroutable::Never { failure, decision };
        }
        let latest = |lacks: &[Lack]| lacks.iter().filter_map(|lack| lack.until).max();
        let opens = || waiting.iter().map(|(_, lacks)| latest(lacks));
        let opens_at = if opens().all(|at| at.is_some()) { opens().flatten().min() } else { None };
        let open_at = opens().flatten().min();
        let open_at = open_at.unwrap_or(now + LOOK_AGAIN).max(now + LOOK_AGAIN_MIN);
        let until = open_at.min(now + LOOK_AGAIN_MAX);
        // By this the caller knows that waiting can help.
        let failure = Failure { retry_after: Some(open_at.since(now)), ..failure };
        let offers = || waiting.iter().filter_map(|(fit, _)| self.offer(fit.number));
        let Some((node, offer)) = offers().next() else {
            return Unroutable::Never { failure, decision };
        };
        let is_out = waiting.iter().all(|(_, lacks)| lacks.iter().any(|lack| lack.reason.is_out()));
        let (plan, takes) = (self.plan(ask, node, offer), offer.history.latency(now));
        let wanted = Box::new(Wanted { capability: offer.name.clone(), plan, is_out });
        let tier = wanted.plan.tier;
        let waiting_for = offers().map(|(node, _)| node.card.agent_id.clone()).collect();
        let only_seat = |lacks: &[Lack]| lacks.iter().all(|lack| matches!(lack.reason, Reason::Full | Reason::Tried));
        let for_seat = waiting.iter().any(|(_, lacks)| only_seat(lacks))
            && self.bulkhead.in_tier(tier) < self.settings.tier_limits.of(tier);
        Unroutable::NotNow { until, waiting_for, wanted, takes, opens_at, for_seat, failure, decision }
    }

    fn failure(&self, ask: &Ask<'_>, sifted: &Sifted) -> Failure {
        let target = ask.target;
        let agent = target.to_agent.as_ref().map(AgentId::as_str).unwrap_or_default();
        let capability = target.capability.as_ref().map(|name| name.as_str()).unwrap_or_default();
        match sifted.selection.missing {
            Some(Missing::Agent) => {
                let message =
                    format!("there is no agent {agent} that this caller may reach; agent/list shows those there are");
                Failure::new(ErrorCode::AgentNotFound, message)
            }
            Some(Missing::AtAgent) if capability.is_empty() => Failure::new(
                ErrorCode::NoCandidate,
                format!("{agent} offers several things; say which with `capability` or `intent`"),
            ),
            Some(Missing::AtAgent) => {
                Failure::new(ErrorCode::NoCandidate, format!("{agent} does not offer {capability}"))
            }
            Some(Missing::Capability) => Failure::new(
                ErrorCode::NoCandidate,
                format!("no agent that this caller may reach offers {capability}; capability/find shows what there is"),
            ),
            Some(Missing::Words) => Failure::new(ErrorCode::NoCandidate, self.unclear(sifted)),
            None => self.failure_of_fallen(sifted),
        }
    }

    /// Why the words were not enough, with the figures.
    fn unclear(&self, sifted: &Sifted) -> String {
        let nearest = sifted.selection.near.first().and_then(|(fit, reason)| {
            let (_, offer) = self.offer(fit.number)?;
            Some((offer.name.as_str(), fit.similarity, *reason))
        });
        let needed = self.settings.thresholds.accept;
        match nearest {
            None => "nothing that this caller may reach is near to these words; capability/find shows what there is"
                .to_owned(),
            Some((name, _, Reason::Ambiguous)) => format!(
                "the words fit {name} and another capability about as well; choose one by `capability`, or say it more fully"
            ),
            Some((name, _, Reason::Excluded)) => {
                format!("the words are nearest to {name}, which says that it does not do this")
            }
            Some((name, similarity, _)) => format!(
                "the words are nearest to {name}, at {similarity:.2} where {needed:.2} is needed; choose it by \
                 `capability` if it is meant, or say it more fully"
            ),
        }
    }

    fn failure_of_fallen(&self, sifted: &Sifted) -> Failure {
        let wrong_params = |lacks: &[Lack]| lacks.iter().find(|lack| lack.reason == Reason::Params).cloned();
        let all: Vec<Option<Lack>> = sifted.fallen.iter().map(|(_, lacks)| wrong_params(lacks)).collect();
        if let Some(Some(first)) = all.first().filter(|_| all.iter().all(Option::is_some)) {
            let message = format!("the parameters do not fit the capability's input schema: {}", first.detail);
            return Failure::new(ErrorCode::ParamsMismatch, message);
        }
        let why: Vec<String> = sifted.fallen.iter().take(3).filter_map(|(fit, lacks)| self.tell(*fit, lacks)).collect();
        Failure::new(ErrorCode::NoCandidate, format!("no agent can take it now: {}", why.join("; ")))
    }

    fn tell(&self, fit: Fit, lacks: &[Lack]) -> Option<String> {
        let (node, _) = self.offer(fit.number)?;
        let lack = lacks.first()?;
        Some(format!("{} is {} ({})", node.card.agent_id, lack.reason.as_str(), lack.detail))
    }

    fn suggestions(&self, sifted: &Sifted) -> Vec<Suggestion> {
        let by_words = sifted.selection.intent.is_some();
        let fallen = sifted.fallen.iter().map(|(fit, lacks)| (*fit, lacks.clone()));
        let near = sifted.selection.near.iter().map(|(fit, reason)| (*fit, vec![near_lack(*reason)]));
        let all = fallen.chain(near).take(SUGGESTIONS_MAX);
        all.filter_map(|(fit, lacks)| {
            let (node, offer) = self.offer(fit.number)?;
            Some(Suggestion {
                agent_id: node.card.agent_id.clone(),
                capability: offer.name.clone(),
                description: node.capability(offer).description.clone(),
                similarity: by_words.then_some(fit.similarity),
                lacks,
            })
        })
        .collect()
    }

    pub(super) fn candidates(
        &self,
        sifted: &Sifted,
        weighed: &[Weighed],
        chosen: Option<u32>,
        drawn: &[u32],
    ) -> Vec<Candidate> {
        let verdict = |number: u32| match chosen {
            Some(chosen) if chosen == number => Verdict::Chosen,
            Some(_) | None if drawn.contains(&number) => Verdict::Drawn,
            Some(_) | None => Verdict::Outscored,
        };
        let mut scored: Vec<&Weighed> = weighed.iter().collect();
        scored.sort_by_key(|weighed| verdict(weighed.fit.number));
        let scored = scored
            .into_iter()
            .map(|weighed| (weighed.fit, verdict(weighed.fit.number), Vec::new(), Some(weighed.score)));
        let fallen = sifted.fallen.iter().map(|(fit, lacks)| (*fit, Verdict::Rejected, lacks.clone(), None));
        let near = sifted.selection.near.iter();
        let near = near.map(|(fit, reason)| (*fit, Verdict::Rejected, vec![near_lack(*reason)], None));
        let all = scored.chain(fallen).chain(near).take(CANDIDATES_MAX);
        all.filter_map(|(fit, verdict, lacks, score)| {
            let (node, offer) = self.offer(fit.number)?;
            Some(Candidate {
                agent_id: node.card.agent_id.clone(),
                capability: offer.name.clone(),
                verdict,
                lacks,
                score,
            })
        })
        .collect()
    }
}

fn near_lack(reason: Reason) -> Lack {
    let detail = match reason {
        Reason::Ambiguous => "another capability is as near",
        Reason::Excluded => "it says that it does not do this",
        Reason::NotOffered => "it is something else",
        Reason::Dissimilar
        | Reason::Acl
        | Reason::Params
        | Reason::Protocol
        | Reason::Dead
        | Reason::Suspect
        | Reason::Ejected
        | Reason::Draining
        | Reason::BreakerOpen
        | Reason::Full
        | Reason::Hours
        | Reason::NotConnected
        | Reason::Tried
        | Reason::RetryBudget => "its words are too far from the intent's",
    };
    lack(reason, detail, None)
}
