//! The report as JUnit XML, which most CI systems show.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::{Report, Row, Status};

/// The document.
pub(crate) fn junit(report: &Report) -> Result<String, String> {
    let mut document = Document::new("reach-conformance");
    document.set_time(Duration::from_millis(report.took_ms));
    let mut suite = TestSuite::new(plain(&report.what));
    suite.set_time(Duration::from_millis(report.took_ms));
    for row in &report.results {
        let mut case = TestCase::new(row.id, status(row));
        case.set_classname(format!("{}.{}", row.profile, row.level.as_str()));
        suite.add_test_case(case);
    }
    for profile in &report.idle_profiles {
        let mut status = TestCaseStatus::non_success(NonSuccessKind::Error);
        status.set_message("nothing ran in this profile, though it is declared");
        suite.add_test_case(TestCase::new(format!("profile {profile}"), status));
    }
    for (number, note) in report.notes.iter().enumerate() {
        suite.add_test_case(TestCase::new(format!("note {}", number + 1), skipped(note)));
    }
    document.add_test_suite(suite);
    document.to_string().map_err(|error| format!("the report cannot be written as XML: {error}"))
}

fn status(row: &Row) -> TestCaseStatus {
    match row.status {
        Status::Passed => TestCaseStatus::success(),
        Status::Skipped => skipped(row.why.as_deref().unwrap_or_default()),
        Status::ExpectedFailure => skipped("it failed, as expected"),
        Status::UnexpectedPass | Status::UnexpectedSkip => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message("it is in the file of expected failures, and did not fail");
            status
        }
        Status::Failed => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let (expected, found) = (row.expected.as_deref(), row.found.as_deref());
            status.set_type(row.level.as_str());
            let (expected, found) = (expected.unwrap_or_default(), found.unwrap_or_default());
            status.set_message(plain(&format!("expected {expected}, found {found}")));
            let (exchange, fix) = (row.exchange.join("\n"), row.fix.unwrap_or_default());
            let told = format!("{}\n{exchange}\nto do: {fix}\nsource: {}", row.says, row.source);
            status.set_description(plain(&told));
            status
        }
    }
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(plain(why));
    status
}

/// A text without the characters that XML 1.0 has no place for, however they are written.
fn plain(text: &str) -> String {
    let is_allowed =
        |c: char| matches!(c, '\t' | '\n' | '\r' | ' '..='\u{d7ff}' | '\u{e000}'..='\u{fffd}' | '\u{10000}'..);
    text.chars().map(|c| if is_allowed(c) { c } else { '\u{fffd}' }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_xml_has_no_place_for_is_replaced_and_nothing_else() {
        assert_eq!(plain("a\0b\u{1}\u{1b}[31m\u{fffe}\u{ffff}c"), "a\u{fffd}b\u{fffd}\u{fffd}[31m\u{fffd}\u{fffd}c");
        let kept = "]]>&<\t\n\r\u{85}\u{fffd}\u{d7ff}\u{e000}\u{1f600}\u{10ffff}";
        assert_eq!(plain(kept), kept);
    }
}
