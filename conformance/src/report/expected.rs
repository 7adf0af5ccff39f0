//! The file of expected failures: one id a line, what follows a `#` is a remark. It is strict both ways: what fails and is
//! not in it is a failure, and so is what is in it and does not fail.

use std::collections::BTreeSet;

use crate::catalog::{self, Subject};

/// The ids that are expected to fail.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected(BTreeSet<String>);

impl Expected {
    /// Reads the text of a file. `Err`: a line names no requirement of what is checked.
    pub(crate) fn read(text: &str, subject: Subject) -> Result<Self, String> {
        let mut ids = BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let id = line.split('#').next().unwrap_or_default().trim();
            if id.is_empty() {
                continue;
            }
            let wrong = match catalog::find(id) {
                None => "there is no requirement",
                Some(found) if found.subject != subject => {
                    "nothing of the kind that is checked here has the requirement"
                }
                Some(_) => "",
            };
            if !wrong.is_empty() {
                return Err(format!("line {}: {wrong} {id:?}; see reach-conformance list", number + 1));
            }
            ids.insert(id.to_owned());
        }
        Ok(Self(ids))
    }

    /// Whether this one is expected to fail.
    pub(crate) fn has(&self, id: &str) -> bool {
        self.0.contains(id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remarks_and_empty_lines_are_passed_over_and_a_slip_of_the_pen_is_not() {
        let expected =
            Expected::read("# known\n\nbeats-in-time  # until the timer is mended\n", Subject::Agent).unwrap();
        assert!(expected.has("beats-in-time") && !expected.has("registers"));
        let wrong = Expected::read("x\nbeats-in-tme\n", Subject::Agent).unwrap_err();
        assert!(wrong.starts_with("line 1: there is no requirement \"x\""));
        let of_another = Expected::read("gw-batches\n", Subject::Agent).unwrap_err();
        assert!(of_another.starts_with("line 1: nothing of the kind"), "{of_another}");
    }
}
