//! The hard filters: what a candidate must have before any score counts. No score ever climbs over a wall.

use std::cell::OnceCell;

use reach_schemas::{Lack, Mode, Namespace, Protocol, RawJson, Reason, Timestamp};
use serde_json::{Map, Value};

use super::node::{Node, Offer};
use super::{Ask, Fleet};
use crate::access::{self, Caller};
use crate::breaker::Admission;
use crate::bulkhead::Place;
use crate::hours;
use crate::lease::Presence;
use crate::schema::read_strictly;

/// The parameters, read once and only if they are asked about.
pub(super) struct Params<'a> {
    raw: Option<&'a RawJson>,
    value: OnceCell<Result<Value, String>>,
}

impl<'a> Params<'a> {
    pub(super) fn new(raw: Option<&'a RawJson>) -> Self {
        Self { raw, value: OnceCell::new() }
    }

    /// Absent parameters are an empty object to a schema.
    fn value(&self) -> &Result<Value, String> {
        self.value.get_or_init(|| match self.raw {
            Some(raw) => read_strictly(raw),
            None => Ok(Value::Object(Map::new())),
        })
    }

    /// The names of the parameters that are passed: they speak for capabilities that name the same.
    pub(super) fn names(&self) -> Vec<&str> {
        let Some(_) = self.raw else { return Vec::new() };
        let members = self.value().as_ref().ok().and_then(Value::as_object);
        members.into_iter().flat_map(Map::keys).map(String::as_str).collect()
    }

    fn bytes(&self) -> usize {
        self.raw.map_or(2, |raw| raw.get().len())
    }

    pub(super) fn fit(&self, offer: &Offer) -> bool {
        let Some(schema) = &offer.input else { return true };
        schema.can_check(self.bytes()) && self.value().as_ref().is_ok_and(|value| schema.fits(value))
    }

    fn lack(&self, offer: &Offer) -> Option<Lack> {
        let schema = offer.input.as_ref()?;
        if !schema.can_check(self.bytes()) {
            let detail = format!("{} bytes are too many to be checked against this schema", self.bytes());
            return Some(lack(Reason::Params, detail, None));
        }
        match self.value() {
            Err(unreadable) => Some(lack(Reason::Params, unreadable.clone(), None)),
            Ok(value) if schema.fits(value) => None,
            Ok(value) => Some(lack(Reason::Params, schema.violations(value).join("; "), None)),
        }
    }
}

pub(super) fn lack(reason: Reason, detail: impl Into<String>, until: Option<Timestamp>) -> Lack {
    Lack { reason, detail: detail.into(), until }
}

impl Fleet {
    /// Whether the asker may have this done by the agent, and wants it to be looked at.
    pub(super) fn is_offered(&self, ask: &Ask<'_>, node: &Node, offer: &Offer) -> bool {
        is_offered(ask.caller, ask.target.namespace.as_ref(), node, offer)
    }

    /// All that a candidate lacks; nothing if the work can go there now.
    pub(super) fn lacks(
        &self,
        ask: &Ask<'_>,
        mode: Mode,
        params: &Params<'_>,
        node: &Node,
        offer: &Offer,
        now: Timestamp,
    ) -> Vec<Lack> {
        let mut lacks = Vec::new();
        lacks.extend(params.lack(offer));
        lacks.extend(presence(node, now));
        lacks.extend(connection(node, mode));
        if node.is_draining {
            lacks.push(lack(Reason::Draining, "it is about to stop", None));
        }
        if node.health.ejected_at().is_some() {
            lacks.push(lack(Reason::Ejected, "it failed its probes and is out until they pass again", None));
        }
        if !hours::takes_work_at(&node.card.availability, now) {
            let until = hours::next_open_at(&node.card.availability, now);
            lacks.push(lack(Reason::Hours, "outside the hours in which it takes work", until));
        }
        if let Admission::Refused { until } = offer.breaker.admission(now) {
            lacks.push(lack(Reason::BreakerOpen, format!("its circuit breaker is open until {until}"), Some(until)));
        }
        if mode == Mode::Direct {
            lacks.extend(held_off(offer, now));
            lacks.extend(self.seat_lack(ask, node, offer));
            lacks.extend(self.budget_lack(ask, node, now));
        }
        if ask.tried.contains(&&node.card.agent_id) {
            lacks.push(lack(
                Reason::Tried,
                "it was tried for this task, and comes again only if nobody else is left",
                None,
            ));
        }
        lacks
    }

    fn seat_lack(&self, ask: &Ask<'_>, node: &Node, offer: &Offer) -> Option<Lack> {
        if pulls(node) {
            // It takes work when it has room; what waits for it takes no seat until then.
            return None;
        }
        let tier = node.capability(offer).tier;
        let place = Place { agent_id: node.card.agent_id.clone(), tier };
        match self.bulkhead.has_seat(&place, node.room(tier), &self.settings.tier_limits) {
            Err(full) => {
                let taken = self.bulkhead.in_flight(&place.agent_id);
                Some(lack(Reason::Full, format!("{full} ({taken} of {})", node.card.max_concurrency), None))
            }
            Ok(()) => {
                let is_queued = ask.yields.is_some_and(|yields| yields.0(&place));
                is_queued.then(|| lack(Reason::Full, "others have waited longer for its seats", None))
            }
        }
    }
}

/// Whether the caller may have this done by the agent, and the agent is in the namespace that is asked for, if one is.
/// What a caller may not call is never named to it.
pub(super) fn is_offered(caller: &Caller, namespace: Option<&Namespace>, node: &Node, offer: &Offer) -> bool {
    let id = &node.card.agent_id;
    namespace.is_none_or(|wanted| wanted.as_str() == id.namespace_str())
        && access::may_call(caller, id, &node.card.access, &offer.name)
}

/// Whether the agent is reached by leaving work for it to pull.
pub(super) fn pulls(node: &Node) -> bool {
    node.endpoint().is_some_and(|endpoint| endpoint.protocol == Protocol::Queue)
}

fn held_off(offer: &Offer, now: Timestamp) -> Option<Lack> {
    let until = offer.held_off_until;
    (now < until).then(|| lack(Reason::Full, format!("it asked to be sent nothing more until {until}"), Some(until)))
}

fn presence(node: &Node, now: Timestamp) -> Option<Lack> {
    let silent = now.since(node.lease.renewed_at());
    match node.lease.presence(now) {
        Presence::Alive => None,
        Presence::Suspect => Some(lack(Reason::Suspect, format!("no heartbeat for {silent}"), None)),
        Presence::Dead => Some(lack(Reason::Dead, format!("no heartbeat for {silent}"), None)),
    }
}

fn connection(node: &Node, mode: Mode) -> Option<Lack> {
    match mode {
        Mode::Direct if node.endpoint().is_none() => {
            Some(lack(Reason::NotConnected, "it has no open connection to the gateway", None))
        }
        Mode::Queue | Mode::Broadcast if !node.can_claim() => {
            Some(lack(Reason::Protocol, "it does not pull work, and the task waits to be pulled", None))
        }
        Mode::Direct | Mode::Queue | Mode::Broadcast => None,
    }
}
