//! The file of expected failures: one id a line, what follows a `#` is a remark. It is strict both ways: what fails and is
//! not in it is a failure, and so is what is in it and does not fail.

use std::collections::BTreeSet;

use crate::catalog;

/// The ids that are expected to fail.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Expected(BTreeSet<String>);

impl Expected {
    /// Reads the text of a file. `Err`: a line names no requirement.
    pub(crate) fn read(text: &str) -> Result<Self, String> {
        let mut ids = BTreeSet::new();
        for (number, line) in text.lines().enumerate() {
            let id = line.split('#').next().unwrap_or_default().trim();
            if id.is_empty() {
                continue;
            }
            if catalog::find(id).is_none() {
                return Err(format!("line {}: there is no requirement {id:?}; see reach-conformance list", number + 1));
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
        let expected = Expected::read("# known\n\nbeats-in-time  # until the timer is mended\n").unwrap();
        assert!(expected.has("beats-in-time") && !expected.has("registers"));
        assert!(Expected::read("x\nbeats-in-tme\n").unwrap_err().starts_with("line 1: there is no requirement \"x\""));
    }
}
