//! Runs the acts that the chosen requirements ask for, each under a deadline, and gathers what they found. It knows
//! neither agents nor gateways.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use futures_util::FutureExt;
use futures_util::future::BoxFuture;

use crate::catalog::{Level, Requirement, Subject};
use crate::exchange::{Exchange, Mark};

/// What came of a requirement.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// It is met.
    Passed,
    /// It is not.
    Failed(Broken),
    /// It was not looked at, and why.
    Skipped(String),
}

/// How a requirement is not met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Broken {
    /// What was expected.
    pub(crate) expected: String,
    /// What came instead.
    pub(crate) found: String,
    /// The messages that show it.
    pub(crate) exchange: Vec<String>,
}

/// Which requirements are looked at.
#[derive(Debug, Clone)]
pub(crate) struct Selection {
    pub(crate) subject: Subject,
    /// Those with one of these ids or profiles. Empty: all.
    pub(crate) only: Vec<String>,
    /// Those of this level and above.
    pub(crate) level: Level,
}

impl Selection {
    /// Whether this one is looked at.
    pub(crate) fn takes(&self, requirement: &Requirement) -> bool {
        let is_named = || self.only.iter().any(|name| *name == requirement.id || *name == requirement.profile);
        requirement.subject == self.subject && requirement.level <= self.level && (self.only.is_empty() || is_named())
    }
}

/// Ends an act early, with the reason. What it has not found out by then is skipped.
#[derive(Debug)]
pub(crate) struct Stop(pub(crate) String);

/// What an act comes to: its findings are noted on the way.
pub(crate) type Act = Result<(), Stop>;

/// What was found so far.
pub(crate) struct Findings<'a> {
    pub(crate) exchange: &'a Exchange,
    verdicts: BTreeMap<String, Verdict>,
    mark: Mark,
    with_beats: bool,
    notes: Vec<String>,
}

impl<'a> Findings<'a> {
    /// Nothing yet.
    pub(crate) fn new(exchange: &'a Exchange) -> Self {
        Self { mark: exchange.mark(), exchange, verdicts: BTreeMap::new(), with_beats: false, notes: Vec::new() }
    }

    /// From here on, failures show the exchange from here, with heartbeats or without.
    pub(crate) fn begin(&mut self, with_beats: bool) {
        self.mark = self.exchange.mark();
        self.with_beats = with_beats;
    }

    /// It is met, unless it was found not to be.
    pub(crate) fn pass(&mut self, id: &str) {
        let verdict = self.verdicts.entry(id.to_owned()).or_insert(Verdict::Passed);
        if matches!(verdict, Verdict::Skipped(_)) {
            *verdict = Verdict::Passed;
        }
    }

    /// It is not met. The first time that this is found counts.
    pub(crate) fn fail(&mut self, id: &str, expected: impl Into<String>, found: impl Into<String>) {
        let broken = Broken {
            expected: expected.into(),
            found: found.into(),
            exchange: self.exchange.since(self.mark, self.with_beats),
        };
        let verdict = self.verdicts.entry(id.to_owned()).or_insert(Verdict::Passed);
        if !matches!(verdict, Verdict::Failed(_)) {
            *verdict = Verdict::Failed(broken);
        }
    }

    /// It is not met for this reason too. What it was found by first is what is shown.
    pub(crate) fn fail_too(&mut self, id: &str, expected: impl Into<String>, found: impl Into<String>) {
        match self.verdicts.get_mut(id) {
            Some(Verdict::Failed(broken)) => broken.found = format!("{}; {}", broken.found, found.into()),
            Some(Verdict::Passed | Verdict::Skipped(_)) | None => self.fail(id, expected, found),
        }
    }

    /// Says something in the report that belongs to no requirement alone.
    pub(crate) fn note(&mut self, text: String) {
        self.notes.push(text);
    }

    /// It is met if nothing is found.
    pub(crate) fn judge(&mut self, id: &str, expected: &str, found: Result<(), String>) -> bool {
        match found {
            Ok(()) => self.pass(id),
            Err(ref found) => self.fail(id, expected, found.clone()),
        }
        found.is_ok()
    }

    /// It cannot be looked at, unless it was.
    pub(crate) fn skip(&mut self, id: &str, why: impl Into<String>) {
        self.verdicts.entry(id.to_owned()).or_insert_with(|| Verdict::Skipped(why.into()));
    }

    /// Whether this was found not to be met.
    pub(crate) fn is_failed(&self, id: &str) -> bool {
        matches!(self.verdicts.get(id), Some(Verdict::Failed(_)))
    }
}

/// Acts on whatever is checked.
pub(crate) trait Stage: Send {
    /// Every act, in the order in which they are done.
    fn acts(&self) -> &'static [&'static str];

    /// Does one.
    fn perform<'a>(&'a mut self, act: &'static str, findings: &'a mut Findings<'_>) -> BoxFuture<'a, Act>;

    /// Whether the last that was asked for was not answered at all.
    fn is_in_doubt(&self) -> bool {
        false
    }

    /// Asks for something easy once more. `Err`: that is not answered either, and why.
    fn ask_again(&mut self) -> BoxFuture<'_, Result<(), String>> {
        futures_util::future::ready(Ok(())).boxed()
    }

    /// Why a profile does not apply to what is checked. None: it does. Asked once all acts are done.
    fn why_not(&self, profile: &str) -> Option<String>;
}

/// What came of each requirement that was chosen, and how long the acts took.
pub(crate) struct Outcome {
    pub(crate) checked: Vec<(&'static Requirement, Verdict)>,
    /// Profiles that apply, and in which nothing was looked at.
    pub(crate) idle: Vec<String>,
    /// What is to be said beside the requirements.
    pub(crate) notes: Vec<String>,
    pub(crate) took: Duration,
}

/// How long a run may take at least.
const RUN_MIN: Duration = Duration::from_secs(60);
/// What says that nothing is answered any more.
const ANSWERS: &str = "answers-work";
/// The act that only counts what came: it is done even where nothing is answered.
const COUNTS: &str = "calm";

/// Why acts were not seen through. None: it hung.
type Reasons = BTreeMap<&'static str, Option<String>>;

/// Does every act that is needed. An act that takes longer than `bound` is given up, and fails what it has not judged; a
/// run that takes much longer is given up as a whole. Once nothing is answered, nothing more is asked.
pub(crate) async fn run(stage: &mut dyn Stage, selection: &Selection, exchange: &Exchange, bound: Duration) -> Outcome {
    let began = Instant::now();
    let chosen: Vec<&'static Requirement> =
        crate::catalog::all().iter().filter(|requirement| selection.takes(requirement)).collect();
    let mut findings = Findings::new(exchange);
    let reasons = perform_all(stage, &chosen, &mut findings, bound).await;
    let mut checked = Vec::new();
    for requirement in chosen {
        let verdict = match (stage.why_not(&requirement.profile), findings.verdicts.remove(&requirement.id)) {
            (_, Some(verdict @ (Verdict::Failed(_) | Verdict::Passed))) => verdict,
            (Some(why), _) => Verdict::Skipped(why),
            (None, Some(verdict @ Verdict::Skipped(_))) => verdict,
            (None, None) => {
                let is_told = checked.iter().any(|(other, verdict): &(&'static Requirement, Verdict)| {
                    other.check == requirement.check && matches!(verdict, Verdict::Failed(_))
                });
                unjudged(reasons.get(requirement.check.as_str()), is_told, bound, exchange)
            }
        };
        checked.push((requirement, verdict));
    }
    Outcome { idle: idle(stage, &checked), checked, notes: findings.notes, took: began.elapsed() }
}

async fn perform_all(
    stage: &mut dyn Stage,
    chosen: &[&'static Requirement],
    findings: &mut Findings<'_>,
    bound: Duration,
) -> Reasons {
    let began = Instant::now();
    let (most, mut given_up) = (bound.saturating_mul(2).max(RUN_MIN), None);
    let wanted: BTreeSet<&str> = chosen.iter().map(|requirement| requirement.check.as_str()).collect();
    let mut reasons = Reasons::new();
    for act in stage.acts() {
        if !wanted.contains(act) && !is_needed_by_all(act) {
            continue;
        }
        let left = most.saturating_sub(began.elapsed());
        if left.is_zero() && given_up.is_none() {
            let why = format!("the run was given up after {} s", most.as_secs());
            findings.note(format!("{why}: what had not been looked at by then is skipped"));
            given_up = Some(why);
        }
        if let Some(why) = given_up.as_ref().filter(|_| *act != COUNTS) {
            reasons.insert(act, Some(why.clone()));
            continue;
        }
        findings.begin(false);
        let before = findings.verdicts.clone();
        let ended =
            tokio::time::timeout(left.min(bound).max(Duration::from_secs(1)), stage.perform(act, findings)).await;
        let has_hung = ended.is_err();
        match ended {
            Ok(Ok(())) => {}
            Ok(Err(Stop(why))) => drop(reasons.insert(act, Some(why))),
            Err(_) => drop(reasons.insert(act, None)),
        }
        if given_up.is_none()
            && (has_hung || stage.is_in_doubt())
            && let Err(why) = stage.ask_again().await
        {
            // What this act found is all of the same cause.
            findings.verdicts = before;
            findings.fail(ANSWERS, "an answer of any kind", why.clone());
            if !chosen.iter().any(|requirement| requirement.id == ANSWERS) {
                findings.note(why.clone());
            }
            reasons.insert(act, Some(why.clone()));
            given_up = Some(why);
        }
    }
    reasons
}

/// Acts that all others stand on.
fn is_needed_by_all(act: &str) -> bool {
    matches!(
        act,
        "register" | "card" | "work" | "slow" | "mcp_begin" | "mcp_list" | "mcp_call" | "mcp_slow" | "connect"
    )
}

/// What is not judged once its act is over: the act says why, or hung, which is told once.
fn unjudged(reason: Option<&Option<String>>, is_told: bool, bound: Duration, exchange: &Exchange) -> Verdict {
    match reason {
        Some(None) if is_told => Verdict::Skipped(format!("the check was given up after {} s", bound.as_secs())),
        Some(Some(why)) => Verdict::Skipped(why.clone()),
        Some(None) => Verdict::Failed(Broken {
            expected: format!("the check ends within {} s", bound.as_secs()),
            found: "it was given up".to_owned(),
            exchange: exchange.since(exchange.mark(), false),
        }),
        None => Verdict::Skipped("an earlier step that this one stands on was not reached".to_owned()),
    }
}

/// Profiles that what is checked declares, and of which every requirement was skipped.
fn idle(stage: &dyn Stage, checked: &[(&'static Requirement, Verdict)]) -> Vec<String> {
    let mut ran: BTreeMap<&str, bool> = BTreeMap::new();
    for (requirement, verdict) in checked {
        *ran.entry(&requirement.profile).or_default() |= !matches!(verdict, Verdict::Skipped(_));
    }
    let is_idle = |(profile, ran): &(&str, bool)| !ran && stage.why_not(profile).is_none();
    ran.into_iter().filter(is_idle).map(|(profile, _)| profile.to_owned()).collect()
}
