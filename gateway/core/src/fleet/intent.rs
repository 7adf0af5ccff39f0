//! The intent stage: the words against names, tags, descriptions and exclusions. It would rather abstain than guess.
//! Embeddings and an adjudicating model have their place after the lexical match, over the same few candidates.

use std::cell::Cell;
use std::collections::BTreeSet;

use reach_schemas::{AgentId, IntentTrace, Reason, Stage};

use super::filter::Params;
use super::node::{Node, Offer};
use super::select::{Fit, Missing, Selection};
use super::{Ask, Fleet};
use crate::lexical::{Doubt, Intent, Match, Reading, Scratch, Verdict, decide};

/// How many matches the words are asked for: enough to see what is near.
const MATCHES: usize = 8;
/// How many agents that offer the accepted capability are looked at.
const TWINS_MAX: usize = 64;
/// How many near ones a refusal may name.
const NEAR_MAX: usize = 5;

impl Fleet {
    /// Ranks what the caller may know of, and accepts the best if the words alone are enough.
    pub(super) fn select_by_words(
        &self,
        ask: &Ask<'_>,
        params: &Params<'_>,
        words: &str,
        only: Option<&AgentId>,
    ) -> Selection {
        let reading = self.index.read(&Intent { text: words, parameters: &params.names() });
        let in_view = |node: &Node, offer: &Offer| {
            only.is_none_or(|agent| agent == &node.card.agent_id) && self.is_offered(ask, node, offer)
        };
        let has_refused = Cell::new(false);
        let fits = |offer: &Offer| {
            let fits = ask.params.is_none() || params.fit(offer);
            has_refused.set(has_refused.get() || !fits);
            fits
        };
        let selection = self.select_among(&reading, |node, offer| in_view(node, offer) && fits(offer));
        if selection.missing.is_none() || !has_refused.get() {
            return selection;
        }
        // Where the words alone are clear, it is the parameters that are wrong, and that is what must be told.
        let by_words_alone = self.select_among(&reading, in_view);
        if by_words_alone.missing.is_none() { by_words_alone } else { selection }
    }

    fn select_among(&self, reading: &Reading<'_>, fits: impl Fn(&Node, &Offer) -> bool) -> Selection {
        let keep = |number: u32| self.offer(number).is_some_and(|(node, offer)| fits(node, offer));
        let scratch = &mut *self.scratch.borrow_mut();
        let all = reading.search(keep, MATCHES, scratch);
        // Agents that offer the same thing must not make each other look doubtful, nor hide what else is near: of the
        // best capability only the best agent is compared with the rest.
        let first = all.first().map(|found| found.doc);
        let twins = first.and_then(|doc| self.twins(doc));
        let again = twins.filter(|twins| all.iter().skip(1).any(|found| twins.contains(&found.doc))).map(|twins| {
            let is_apart = |number: u32| Some(number) == first || !twins.contains(&number);
            reading.search(|number| is_apart(number) && keep(number), MATCHES, scratch)
        });
        let distinct = again.as_ref().unwrap_or(&all);
        let verdict = decide(distinct, &self.settings.thresholds);
        let trace = self.trace(reading, distinct);
        match verdict {
            Verdict::Accept { doc, similarity } => {
                let all = self.with_twins(doc, all, reading, keep, scratch);
                self.accepted(doc, similarity, &all, trace)
            }
            Verdict::Unsure(doubt) => unsure(doubt, distinct, trace),
        }
    }

    /// All offers of the same capability, whoever may see them.
    fn twins(&self, doc: u32) -> Option<&BTreeSet<u32>> {
        self.offer(doc).and_then(|(_, offer)| self.by_capability.get(&offer.name))
    }

    /// The matches, and every further agent that offers the accepted capability if they may not all be among them.
    fn with_twins(
        &self,
        doc: u32,
        all: Vec<Match>,
        reading: &Reading<'_>,
        keep: impl Fn(u32) -> bool,
        scratch: &mut Scratch,
    ) -> Vec<Match> {
        let Some(twins) = self.twins(doc) else { return all };
        let seen = all.iter().filter(|found| twins.contains(&found.doc)).count();
        if seen == twins.len() || all.len() < MATCHES {
            return all;
        }
        reading.search(|number| twins.contains(&number) && keep(number), TWINS_MAX, scratch)
    }

    /// All offers of the accepted capability that the words met.
    fn accepted(&self, doc: u32, similarity: f64, all: &[Match], trace: IntentTrace) -> Selection {
        let name = self.offer(doc).map(|(_, offer)| &offer.name);
        let same = |found: &&Match| self.offer(found.doc).map(|(_, offer)| &offer.name) == name;
        let best = all.iter().filter(same).map(|found| found.score).fold(f64::EPSILON, f64::max);
        let fits = all.iter().filter(same).map(|found| Fit {
            number: found.doc,
            // What another agent says of the same capability may fit the words less well.
            similarity: similarity * (found.score / best).clamp(0.0, 1.0),
        });
        Selection { stage: Stage::Intent, fits: fits.collect(), near: Vec::new(), intent: Some(trace), missing: None }
    }

    fn trace(&self, reading: &Reading<'_>, distinct: &[Match]) -> IntentTrace {
        let best = distinct.first();
        let terms = best.map(|found| reading.explain(found.doc)).unwrap_or_default();
        let runner_up = distinct.get(1).map_or(0.0, |found| found.similarity);
        IntentTrace {
            method: "lexical".to_owned(),
            accept_at: self.settings.thresholds.accept,
            margin_min: self.settings.thresholds.margin,
            best: best.map(|found| found.similarity),
            margin: best.map(|found| found.similarity - runner_up),
            matched: terms.iter().map(|term| term.text.to_string()).collect(),
            adjudicator: None,
        }
    }

    /// What is near a text, for suggestions only.
    pub(super) fn near_by_words(&self, ask: &Ask<'_>, words: &str) -> Vec<(Fit, Reason)> {
        let keep = |number: u32| self.offer(number).is_some_and(|(node, offer)| self.is_offered(ask, node, offer));
        let found = self.index.search(&Intent::from(words), keep, NEAR_MAX, &mut self.scratch.borrow_mut());
        found
            .into_iter()
            .map(|found| (Fit { number: found.doc, similarity: found.similarity }, Reason::NotOffered))
            .collect()
    }
}

fn unsure(doubt: Doubt, distinct: &[Match], trace: IntentTrace) -> Selection {
    let reason = |at: usize| match doubt {
        Doubt::Close => Reason::Ambiguous,
        Doubt::Excluded if at == 0 => Reason::Excluded,
        Doubt::Nothing | Doubt::Weak | Doubt::Excluded => Reason::Dissimilar,
    };
    let near = distinct.iter().take(NEAR_MAX).enumerate();
    Selection {
        stage: Stage::Intent,
        fits: Vec::new(),
        near: near.map(|(at, found)| (Fit { number: found.doc, similarity: found.similarity }, reason(at))).collect(),
        intent: Some(trace),
        missing: Some(Missing::Words),
    }
}
