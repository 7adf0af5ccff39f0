//! Weights that outcomes have moved: within their bound, and of those only who passed every filter.

use reach_core::score::Learning;
use reach_core::task::Event;
use reach_schemas::Verdict;

use crate::coverage::Covered;
use crate::world::World;

impl World {
    /// Looks at the scores by which an agent was chosen.
    pub(crate) fn look_at_weights(&mut self, event: &Event) {
        let Event::Assign { decision, .. } = event else { return };
        let most = Learning::default().most;
        let (mut is_moved, mut is_wrong) = (false, false);
        for candidate in &decision.candidates {
            let Some(score) = &candidate.score else { continue };
            let moved = (score.learned - 1.0).abs();
            is_moved |= moved > 0.001;
            is_wrong |= moved > most + 1e-9 || candidate.verdict == Verdict::Rejected;
        }
        if is_moved {
            self.cover(Covered::WeightLearned);
        }
        if is_wrong {
            self.fail(format!("a weight was moved too far, or of one that fell out: {decision:?}"));
        }
    }
}
