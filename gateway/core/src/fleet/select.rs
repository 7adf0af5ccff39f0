//! Who comes into question at all: by name, by capability, or by the words of the intent.

use reach_schemas::{IntentTrace, Reason, Stage};

use super::filter::Params;
use super::node::{Node, Offer};
use super::{Ask, Fleet};

/// How many candidates are looked at closely; of more, so many are drawn at random.
pub(super) const LOOKED_AT_MAX: usize = 256;

/// Who comes into question.
#[derive(Debug)]
pub(super) struct Selection {
    pub(super) stage: Stage,
    /// Offers that are what was asked for.
    pub(super) fits: Vec<Fit>,
    /// Offers that are near, and why they are not it.
    pub(super) near: Vec<(Fit, Reason)>,
    /// How the words were seen.
    pub(super) intent: Option<IntentTrace>,
    /// What was asked for that is not there at all.
    pub(super) missing: Option<Missing>,
}

/// One offer that comes into question.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fit {
    pub(super) number: u32,
    /// 1 if it was named.
    pub(super) similarity: f64,
}

/// What was asked for that is not there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Missing {
    /// No such agent, or none that the caller may know of.
    Agent,
    /// The agent does not offer it, or it was not said what is wanted of it.
    AtAgent,
    /// Nobody that the caller may know of offers the capability.
    Capability,
    /// The words are not near enough to anything.
    Words,
}

impl Selection {
    fn exact(fits: Vec<Fit>) -> Self {
        Self { stage: Stage::Exact, fits, near: Vec::new(), intent: None, missing: None }
    }
}

impl Fleet {
    pub(super) fn select(&self, ask: &Ask<'_>, params: &Params<'_>, rng: &mut fastrand::Rng) -> Selection {
        match (&ask.target.to_agent, &ask.target.capability, &ask.target.intent) {
            (Some(agent), capability, words) => {
                self.select_agent(ask, params, agent, capability.as_ref(), words.as_deref())
            }
            (None, Some(capability), _) => self.select_capability(ask, capability, rng),
            (None, None, Some(words)) => self.select_by_words(ask, params, words, None),
            (None, None, None) => Selection { missing: Some(Missing::Words), ..Selection::exact(Vec::new()) },
        }
    }

    fn select_agent(
        &self,
        ask: &Ask<'_>,
        params: &Params<'_>,
        agent: &reach_schemas::AgentId,
        capability: Option<&reach_schemas::CapabilityName>,
        words: Option<&str>,
    ) -> Selection {
        // An agent of which the caller may call nothing is as good as none.
        let offers: Vec<&Offer> = self.node(agent).map(|node| self.offered(ask, node)).unwrap_or_default();
        if offers.is_empty() {
            return Selection { missing: Some(Missing::Agent), ..Selection::exact(Vec::new()) };
        }
        let fit = |offer: &&Offer| Fit { number: offer.number, similarity: 1.0 };
        let all = || offers.iter().map(fit);
        let fits: Vec<Fit> = match (capability, words) {
            (Some(name), _) => offers.iter().filter(|offer| &offer.name == name).map(fit).collect(),
            (None, None) if offers.len() == 1 => all().collect(),
            (None, Some(words)) if offers.len() > 1 => {
                return self.select_by_words(ask, params, words, Some(agent));
            }
            (None, Some(_)) => all().collect(),
            (None, None) => Vec::new(),
        };
        let missing = fits.is_empty().then_some(Missing::AtAgent);
        let near = if fits.is_empty() { all().map(|fit| (fit, Reason::NotOffered)).collect() } else { Vec::new() };
        Selection { near, missing, ..Selection::exact(fits) }
    }

    /// What of an agent's offers the asker may call.
    fn offered<'a>(&self, ask: &Ask<'_>, node: &'a Node) -> Vec<&'a Offer> {
        node.offers.iter().filter(|offer| self.is_offered(ask, node, offer)).collect()
    }

    fn select_capability(
        &self,
        ask: &Ask<'_>,
        capability: &reach_schemas::CapabilityName,
        rng: &mut fastrand::Rng,
    ) -> Selection {
        let numbers = self.by_capability.get(capability);
        let visible = |number: &u32| self.offer(*number).is_some_and(|(node, offer)| self.is_offered(ask, node, offer));
        let mut fits: Vec<Fit> = numbers
            .into_iter()
            .flatten()
            .copied()
            .filter(visible)
            .map(|number| Fit { number, similarity: 1.0 })
            .collect();
        if fits.len() > LOOKED_AT_MAX {
            rng.shuffle(&mut fits);
            fits.truncate(LOOKED_AT_MAX);
        }
        let missing = fits.is_empty().then_some(Missing::Capability);
        let near = if fits.is_empty() { self.near_by_words(ask, capability.as_str()) } else { Vec::new() };
        Selection { near, missing, ..Selection::exact(fits) }
    }
}
