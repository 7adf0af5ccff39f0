//! What was found, made ready to be told: for people, as JSON, as JUnit XML, and as one line.

mod expected;
mod human;
mod junit;

use serde::Serialize;

pub(crate) use expected::Expected;
pub(crate) use human::{explained, listed, written};
pub(crate) use junit::junit;

use crate::catalog::{Level, Subject};
use crate::engine::{Outcome, Verdict};

/// What came of one requirement, in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Status {
    Passed,
    Failed,
    Skipped,
    /// It failed, and is in the file of expected failures.
    ExpectedFailure,
    /// It is in the file of expected failures, and passed.
    UnexpectedPass,
    /// It is in the file of expected failures, and was not looked at.
    UnexpectedSkip,
}

/// What came of one requirement.
#[derive(Debug, Serialize)]
pub(crate) struct Row {
    pub(crate) id: &'static str,
    pub(crate) profile: &'static str,
    pub(crate) level: Level,
    pub(crate) status: Status,
    pub(crate) says: &'static str,
    pub(crate) source: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) why: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) expected: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) found: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) fix: Option<&'static str>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) exchange: Vec<String>,
}

/// How many there were of what.
#[derive(Debug, Default, Serialize)]
pub(crate) struct Summary {
    pub(crate) passed: usize,
    pub(crate) checked: usize,
    pub(crate) must_passed: usize,
    pub(crate) must_checked: usize,
    pub(crate) skipped: usize,
}

/// Everything.
#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub(crate) subject: Subject,
    pub(crate) what: String,
    pub(crate) seed: u64,
    pub(crate) took_ms: u64,
    pub(crate) badge: String,
    pub(crate) summary: Summary,
    /// Profiles that were declared, and of which nothing could be looked at.
    pub(crate) idle_profiles: Vec<String>,
    /// What is to be said beside the requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub(crate) notes: Vec<String>,
    pub(crate) results: Vec<Row>,
}

/// What was checked, and with what chance.
pub(crate) struct About {
    pub(crate) subject: Subject,
    pub(crate) what: String,
    pub(crate) seed: u64,
    /// The level whose failures count.
    pub(crate) fail_on: Level,
}

impl Report {
    /// Tells an outcome, with what was expected to fail.
    pub(crate) fn new(about: About, outcome: Outcome, expected: &Expected) -> Self {
        let Outcome { checked, idle, notes, took } = outcome;
        let mut summary = Summary::default();
        let results: Vec<Row> = checked
            .into_iter()
            .map(|(requirement, verdict)| {
                let is_expected = expected.has(&requirement.id);
                let row = row(requirement, verdict, is_expected);
                summary.count(row.level, row.status);
                row
            })
            .collect();
        let About { subject, what, seed, fail_on } = about;
        let mut report = Self {
            subject,
            what,
            seed,
            took_ms: u64::try_from(took.as_millis()).unwrap_or(u64::MAX),
            badge: summary.badge(),
            summary,
            idle_profiles: idle,
            notes,
            results,
        };
        // Where something failed that counts, what could not be looked at for it needs no telling.
        if report.has_failed(fail_on) {
            report.idle_profiles.clear();
        }
        report
    }

    /// Whether anything of this level or above is not as it should be.
    pub(crate) fn has_failed(&self, level: Level) -> bool {
        self.results.iter().any(|row| match row.status {
            Status::Failed => row.level <= level,
            Status::UnexpectedPass | Status::UnexpectedSkip => true,
            Status::Passed | Status::Skipped | Status::ExpectedFailure => false,
        })
    }
}

fn row(requirement: &'static crate::catalog::Requirement, verdict: Verdict, is_expected: bool) -> Row {
    let status = match (&verdict, is_expected) {
        (Verdict::Passed, false) => Status::Passed,
        (Verdict::Failed(_), false) => Status::Failed,
        (Verdict::Skipped(_), false) => Status::Skipped,
        (Verdict::Failed(_), true) => Status::ExpectedFailure,
        (Verdict::Passed, true) => Status::UnexpectedPass,
        (Verdict::Skipped(_), true) => Status::UnexpectedSkip,
    };
    let mut row = Row {
        id: &requirement.id,
        profile: &requirement.profile,
        level: requirement.level,
        status,
        says: &requirement.says,
        source: &requirement.source,
        why: None,
        expected: None,
        found: None,
        fix: None,
        exchange: Vec::new(),
    };
    match verdict {
        Verdict::Passed => {}
        Verdict::Skipped(why) => row.why = Some(why),
        Verdict::Failed(broken) => {
            row.expected = Some(broken.expected);
            row.found = Some(broken.found);
            row.exchange = broken.exchange;
            row.fix = Some(&requirement.fix);
        }
    }
    row
}

impl Summary {
    fn count(&mut self, level: Level, status: Status) {
        let (is_checked, is_passed) = match status {
            Status::Passed | Status::UnexpectedPass => (true, true),
            Status::Failed | Status::ExpectedFailure => (true, false),
            Status::Skipped | Status::UnexpectedSkip => (false, false),
        };
        let is_must = level == Level::Must;
        self.checked += usize::from(is_checked);
        self.passed += usize::from(is_passed);
        self.must_checked += usize::from(is_checked && is_must);
        self.must_passed += usize::from(is_passed && is_must);
        self.skipped += usize::from(!is_checked);
    }

    fn badge(&self) -> String {
        let Self { passed, checked, must_passed, must_checked, .. } = self;
        format!("passed {passed} of {checked} (must {must_passed} of {must_checked})")
    }
}
