//! Signs of life: whether an agent still answers, and what is said once it does not.

use std::sync::atomic::Ordering;
use std::time::Duration;

use super::plan::raw;
use super::stage::Agent;
use super::work::Event;
use crate::engine::{Act, Findings};

/// How much longer than before easy work may take that is asked for as a sign of life.
const SIGN: Duration = Duration::from_secs(2);
/// How long is looked whether the agent's process has ended.
const FALL: Duration = Duration::from_millis(100);

impl Agent {
    /// Whether easy work still passes; says so under this requirement.
    pub(crate) async fn judge_still_works(&mut self, findings: &mut Findings<'_>, id: &str) -> Act {
        let mut work = self.easy_task()?;
        let mut ended = self.do_work(&work).await;
        if matches!(&ended, Ok((Event::Refused { is_full: true, .. }, _))) {
            // What was called off a moment ago may still hold its seat.
            self.pause(Duration::from_millis(300)).await;
            work = self.easy_task()?;
            ended = self.do_work(&work).await;
        }
        let found = match ended {
            Ok((Event::Result { .. }, _)) => Ok(()),
            Ok((event, _)) => Err(event.words()),
            Err(why) => Err(why),
        };
        findings.judge(id, "easy work is answered with a result, as before", found);
        Ok(())
    }

    /// Whether nothing came of the last work.
    pub(crate) fn is_silent(&self) -> bool {
        self.in_doubt.load(Ordering::Relaxed)
    }

    /// Something came of work, or it is known why nothing did.
    pub(crate) fn heard(&self) {
        self.in_doubt.store(false, Ordering::Relaxed);
    }

    /// Nothing came of work.
    pub(crate) fn missed(&self) {
        self.in_doubt.store(true, Ordering::Relaxed);
    }

    /// Asks for the easiest work once more. `Err`: nothing came of that either, and why.
    pub(super) async fn ask_for_sign(&mut self) -> Result<(), String> {
        let first =
            self.plan.as_ref().and_then(|plan| plan.offers.iter().position(|offer| offer.inputs.params.is_some()));
        let Some(offer) = self.usable.first().map(|usable| usable.offer).or(first) else { return Ok(()) };
        let params = self.plan.as_ref().and_then(|plan| plan.offers[offer].inputs.params.as_ref().map(raw));
        let Ok(mut work) = self.task(offer, params) else { return Ok(()) };
        if let Some(usable) = self.usable.first() {
            work.attempt_timeout = work.attempt_timeout.min(usable.took.saturating_mul(4) + SIGN);
        }
        let why = match self.do_work(&work).await {
            Ok((Event::Lost(why), _)) | Err(why) => why,
            Ok(_) => return Ok(()),
        };
        let fell = match self.started.as_mut() {
            Some(started) => tokio::time::timeout(FALL, started.fell()).await.ok(),
            None => None,
        };
        let found = fell.unwrap_or_else(|| "two in a row came to nothing".to_owned());
        let any_more = if self.usable.is_empty() { "" } else { " any more" };
        Err(format!("your agent does not answer work{any_more}: {found}; the last: {why}"))
    }
}
