//! The report for people: what failed with all that is needed to mend it, what was skipped and why, and the sums.

use std::collections::BTreeMap;
use std::fmt::Write;

use super::{Report, Row, Status};
use crate::catalog::{Requirement, Subject};

/// The whole report.
pub(crate) fn written(report: &Report) -> String {
    let mut text = String::new();
    // Writing to a text cannot fail.
    let _ = write_report(&mut text, report);
    text
}

fn write_report(out: &mut String, report: &Report) -> std::fmt::Result {
    for row in &report.results {
        match row.status {
            Status::Failed => write_failure(out, row, "FAILED")?,
            Status::ExpectedFailure => write_failure(out, row, "failed, as expected")?,
            Status::UnexpectedPass | Status::UnexpectedSkip => {
                let why =
                    row.why.as_ref().map_or_else(|| "it passed".to_owned(), |why| format!("it was skipped: {why}"));
                writeln!(out, "UNEXPECTED {} {}", row.level.as_str(), row.id)?;
                writeln!(out, "  it is in the file of expected failures, and {why}; strike it out\n")?;
            }
            Status::Passed | Status::Skipped => {}
        }
    }
    write_skipped(out, report)?;
    let passed = report.results.iter().filter(|row| row.status == Status::Passed).map(|row| row.id);
    let passed: Vec<&str> = passed.collect();
    if !passed.is_empty() {
        writeln!(out, "passed: {}\n", passed.join(", "))?;
    }
    for note in &report.notes {
        writeln!(out, "NOTE {note}\n")?;
    }
    for profile in &report.idle_profiles {
        writeln!(out, "NOTHING RAN in the profile {profile}, though it is declared: see what was skipped\n")?;
    }
    let seconds = std::time::Duration::from_millis(report.took_ms).as_secs_f64();
    writeln!(out, "{}, {} skipped, {seconds:.1} s, seed {}", report.badge, report.summary.skipped, report.seed)
}

fn write_failure(out: &mut String, row: &Row, word: &str) -> std::fmt::Result {
    writeln!(out, "{word} {} {}", row.level.as_str(), row.id)?;
    writeln!(out, "  {}", row.says)?;
    writeln!(out, "  expected  {}", row.expected.as_deref().unwrap_or_default())?;
    writeln!(out, "  found     {}", row.found.as_deref().unwrap_or_default())?;
    for line in &row.exchange {
        writeln!(out, "    {line}")?;
    }
    writeln!(out, "  to do     {}", row.fix.unwrap_or_default())?;
    writeln!(out, "  source    {}\n", row.source)
}

fn write_skipped(out: &mut String, report: &Report) -> std::fmt::Result {
    let mut reasons: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for row in report.results.iter().filter(|row| row.status == Status::Skipped) {
        reasons.entry(row.why.as_deref().unwrap_or_default()).or_default().push(row.id);
    }
    for (why, ids) in &reasons {
        writeln!(out, "skipped: {}\n  {why}", ids.join(", "))?;
    }
    if reasons.is_empty() { Ok(()) } else { writeln!(out) }
}

/// The list of requirements, one a line.
pub(crate) fn listed<'a>(requirements: impl Iterator<Item = &'a Requirement>) -> String {
    requirements.fold(String::new(), |mut text, requirement| {
        let Requirement { id, subject, profile, level, says, .. } = requirement;
        let subject = subject_word(*subject);
        let _ = writeln!(text, "{subject:<8} {profile:<17} {:<7} {id:<30} {says}", level.as_str());
        text
    })
}

const fn subject_word(subject: Subject) -> &'static str {
    match subject {
        Subject::Agent => "agent",
        Subject::Gateway => "gateway",
        Subject::Server => "server",
    }
}

/// All that there is to say of one.
pub(crate) fn explained(requirement: &Requirement) -> String {
    let Requirement { id, subject, profile, level, check, says, source, fix } = requirement;
    format!(
        "{id}\n\n  {says}\n\n  level     {}\n  of        {}, profile {profile}\n  checked   by the act \"{check}\"\n  \
         source    {source}\n  to do     {fix}\n",
        level.as_str(),
        subject_word(*subject),
    )
}
