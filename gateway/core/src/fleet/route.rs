//! From what is wanted to who gets it: select, filter, score, draw two at random by load, then take the breaker's
//! permit and the bulkhead's seat.

use fastrand::Rng;
use reach_schemas::{Chosen, Decision, Lack, Mode, Reason, Timestamp};

use super::filter::{Params, pulls};
use super::node::{Node, Offer};
use super::refusal::Unroutable;
use super::select::{Fit, Selection};
use super::weigh::Weighed;
use super::{Ask, Fleet};
use crate::bulkhead::Place;
use crate::task::{Assignment, Offered, Plan};

/// Who gets it.
#[derive(Debug, Clone, PartialEq)]
pub struct Route {
    /// Whom, and under what terms.
    pub assignment: Assignment,
    /// How the choice was made.
    pub decision: Decision,
}

/// Who may claim it.
#[derive(Debug, Clone, PartialEq)]
pub struct Offering {
    /// Whom, best first.
    pub to: Vec<Offered>,
    /// Under what terms.
    pub plan: Plan,
    /// How they were found.
    pub decision: Decision,
}

/// Candidates after the hard filters.
pub(super) struct Sifted {
    pub(super) selection: Selection,
    /// What can take the work now.
    pub(super) free: Vec<Fit>,
    /// What cannot, and all that it lacks.
    pub(super) fallen: Vec<(Fit, Vec<Lack>)>,
}

impl Fleet {
    /// Chooses one agent and takes a permit and a seat for it.
    ///
    /// # Errors
    /// Nobody fits now, or nobody ever will; with what was near and what each lacked.
    pub fn route(&mut self, ask: &Ask<'_>, now: Timestamp, rng: &mut Rng) -> Result<Route, Unroutable> {
        let (fit, route) = self.choose(ask, now, rng)?;
        self.take(fit, ask, now, rng);
        Ok(route)
    }

    /// Chooses as [`Fleet::route`] does, and takes nothing.
    ///
    /// # Errors
    /// As [`Fleet::route`].
    pub fn resolve(&self, ask: &Ask<'_>, now: Timestamp, rng: &mut Rng) -> Result<Route, Unroutable> {
        self.choose(ask, now, rng).map(|(_, route)| route)
    }

    /// Finds all who may claim the work.
    ///
    /// # Errors
    /// As [`Fleet::route`].
    pub fn offer_to_all(
        &self,
        ask: &Ask<'_>,
        mode: Mode,
        now: Timestamp,
        rng: &mut Rng,
    ) -> Result<Offering, Unroutable> {
        let sifted = self.sift(ask, mode, now, rng);
        let weighed = self.weigh(&sifted.free, now);
        let best = weighed.first().map(|weighed| weighed.fit.number);
        let Some((node, offer)) = best.and_then(|number| self.offer(number)) else {
            return Err(self.unroutable(ask, sifted, now));
        };
        let offers = || weighed.iter().filter_map(|weighed| self.offer(weighed.fit.number));
        let mut plan = self.plan(ask, node, offer);
        // Whoever claims it, the claim must not make a write out of what the plan says may be repeated.
        let effects = offers().map(|(node, offer)| node.capability(offer).effect);
        plan.effect = effects.fold(plan.effect, Ord::max);
        let to = offers()
            .map(|(node, offer)| Offered { agent_id: node.card.agent_id.clone(), capability: offer.name.clone() })
            .collect();
        let decision = self.decision(ask, &sifted, &weighed, best, &[], now);
        Ok(Offering { to, plan, decision })
    }

    fn choose(&self, ask: &Ask<'_>, now: Timestamp, rng: &mut Rng) -> Result<(Fit, Route), Unroutable> {
        let sifted = self.sift(ask, Mode::Direct, now, rng);
        let weighed = self.weigh(&sifted.free, now);
        let Some((at, drawn)) = super::weigh::draw(&weighed, rng) else {
            return Err(self.unroutable(ask, sifted, now));
        };
        let fit = weighed[at].fit;
        let (node, offer) = self.offer(fit.number).expect("a candidate was found in the fleet under the same borrow");
        let endpoint = node.endpoint().expect("a candidate without a usable endpoint lacks a connection");
        let assignment = Assignment {
            agent_id: node.card.agent_id.clone(),
            capability: offer.name.clone(),
            protocol: endpoint.protocol,
            plan: self.plan(ask, node, offer),
        };
        let decision = self.decision(ask, &sifted, &weighed, Some(fit.number), &drawn, now);
        Ok((fit, Route { assignment, decision }))
    }

    /// Applies the hard filters. Those that have been tried come back in if nobody else is left.
    fn sift(&self, ask: &Ask<'_>, mode: Mode, now: Timestamp, rng: &mut Rng) -> Sifted {
        let params = Params::new(ask.params);
        let selection = self.select(ask, &params, rng);
        let turn_lack = if mode == Mode::Direct { self.turn_lack(ask, now) } else { None };
        let (mut free, mut fallen) = (Vec::new(), Vec::new());
        for fit in &selection.fits {
            let Some((node, offer)) = self.offer(fit.number) else { continue };
            let mut lacks = self.lacks(ask, mode, &params, node, offer, now);
            lacks.extend(turn_lack.clone());
            if lacks.is_empty() { free.push(*fit) } else { fallen.push((*fit, lacks)) }
        }
        if free.is_empty() {
            let only_tried = |lacks: &[Lack]| lacks.iter().all(|lack| lack.reason == Reason::Tried);
            fallen.retain(|(fit, lacks)| {
                let is_back = only_tried(lacks);
                if is_back {
                    free.push(*fit);
                }
                !is_back
            });
        }
        Sifted { selection, free, fallen }
    }

    pub(super) fn plan(&self, ask: &Ask<'_>, node: &Node, offer: &Offer) -> Plan {
        let capability = node.capability(offer);
        Plan {
            effect: capability.effect,
            tier: capability.tier,
            attempt_timeout: offer.attempt_timeout(ask.attempt_timeout),
            lateral: capability.lateral,
            cancellable: capability.cancellable,
            fallback: capability.fallback.clone(),
            human_wait: self.settings.human_wait,
        }
    }

    /// Takes the breaker's permit and the bulkhead's seat for the chosen one.
    fn take(&mut self, fit: Fit, ask: &Ask<'_>, now: Timestamp, rng: &mut Rng) {
        let Some((node, offer)) = self.offer(fit.number) else { return };
        let (id, tier) = (node.card.agent_id.clone(), node.capability(offer).tier);
        let room = node.room(tier);
        let trial_until = now + offer.attempt_timeout(ask.attempt_timeout);
        let is_pulled = pulls(node);
        let (policy, name) = (offer.policy, offer.name.clone());
        if !is_pulled {
            let place = Place { agent_id: id.clone(), tier };
            let _ = self.bulkhead.try_take(ask.seat, place, room, &self.settings.tier_limits, now);
        }
        self.count_turn(ask, &id, now);
        let Some(offer) = self.node_mut(&id).and_then(|node| node.offer_mut(&name)) else { return };
        if let Ok(permit) = offer.breaker.take_permit(trial_until, &policy, now, rng) {
            offer.begin(ask.seat, permit, now);
        }
    }

    pub(super) fn decision(
        &self,
        ask: &Ask<'_>,
        sifted: &Sifted,
        weighed: &[Weighed],
        chosen: Option<u32>,
        drawn: &[u32],
        now: Timestamp,
    ) -> Decision {
        let mut rejected = std::collections::BTreeMap::new();
        for lack in sifted.fallen.iter().filter_map(|(_, lacks)| lacks.first()) {
            *rejected.entry(lack.reason.as_str().to_owned()).or_insert(0) += 1;
        }
        let considered = sifted.selection.fits.len() + sifted.selection.near.len();
        Decision {
            at: now,
            attempt: ask.attempt,
            stage: sifted.selection.stage,
            chosen: chosen
                .and_then(|number| self.offer(number))
                .map(|(node, offer)| Chosen { agent_id: node.card.agent_id.clone(), capability: offer.name.clone() }),
            considered: u32::try_from(considered).unwrap_or(u32::MAX),
            candidates: self.candidates(sifted, weighed, chosen, drawn),
            rejected,
            intent: sifted.selection.intent.clone(),
            rule: None,
            suggestions: Vec::new(),
            queue: None,
            took_us: None,
        }
    }
}
