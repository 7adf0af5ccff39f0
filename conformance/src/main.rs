//! `reach-conformance`: see [`reach_conformance`].

use std::process::ExitCode;

fn main() -> ExitCode {
    reach_conformance::run()
}
