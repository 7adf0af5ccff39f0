//! The report as JUnit XML, which most CI systems show.

use std::time::Duration;

use quick_junit::{NonSuccessKind, Report as Document, TestCase, TestCaseStatus, TestSuite};

use super::{Report, Row, Status};

/// The document.
pub(crate) fn junit(report: &Report) -> Result<String, String> {
    let mut document = Document::new("reach-conformance");
    document.set_time(Duration::from_millis(report.took_ms));
    let mut suite = TestSuite::new(report.what.clone());
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
    document.add_test_suite(suite);
    document.to_string().map_err(|error| format!("the report cannot be written as XML: {error}"))
}

fn status(row: &Row) -> TestCaseStatus {
    match row.status {
        Status::Passed => TestCaseStatus::success(),
        Status::Skipped => skipped(row.why.as_deref().unwrap_or_default()),
        Status::ExpectedFailure => skipped("it failed, as expected"),
        Status::UnexpectedPass => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            status.set_message("it is in the file of expected failures, and did not fail");
            status
        }
        Status::Failed => {
            let mut status = TestCaseStatus::non_success(NonSuccessKind::Failure);
            let (expected, found) = (row.expected.as_deref(), row.found.as_deref());
            status.set_type(row.level.as_str());
            status.set_message(format!(
                "expected {}, found {}",
                expected.unwrap_or_default(),
                found.unwrap_or_default()
            ));
            let fix = row.fix.unwrap_or_default();
            status.set_description(format!(
                "{}\n{}\nto do: {fix}\nsource: {}",
                row.says,
                row.exchange.join("\n"),
                row.source
            ));
            status
        }
    }
}

fn skipped(why: &str) -> TestCaseStatus {
    let mut status = TestCaseStatus::skipped();
    status.set_message(why);
    status
}
