//! `reachctl`: looks at a gateway and asks it for work, from a shell. It reads flags, calls the wire's methods through
//! the SDK, and prints: tables for people, the wire's own objects with `--json`. It decides nothing.
//!
//! | exit code | meaning |
//! | --- | --- |
//! | 0 | done |
//! | 1 | the task did not end well: failed, expired, cancelled, or a dead letter; or the audit log is not what was written |
//! | 2 | the command line cannot be used |
//! | 3 | no such agent or task |
//! | 4 | the gateway refused: nobody fits, forbidden, key used for something else, request or card not valid |
//! | 5 | it cannot be done now: the gateway is full or ending, or a server does not answer; try again later |
//! | 6 | no gateway answers |
//! | 7 | the wait is over, and the work may go on: a task has not ended, or a call was not answered in time |
//! | 70 | a fault inside, or an answer that cannot be read |
//! | 130 | interrupted by Ctrl-C while waiting: the task goes on |

mod args;
mod commands;
mod complaint;
mod exit;
mod input;
mod near;
mod output;
mod render;
mod session;
mod watch;

use std::process::ExitCode;

use clap::{CommandFactory as _, Parser as _};

use crate::args::Cli;
use crate::complaint::Complaint;
use crate::exit::{Exit, Stop};
use crate::output::Out;

fn main() -> ExitCode {
    let command = Cli::command();
    let cli = Cli::try_parse().unwrap_or_else(|error| near::with_near(&command, error).exit());
    let out = Out::detect(cli.json);
    let exit = match run(cli, out) {
        Ok(exit) => exit,
        Err(stop) => report(&stop, &out),
    };
    ExitCode::from(exit.code())
}

fn run(cli: Cli, out: Out) -> Result<Exit, Stop> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Stop::Write)?;
    runtime.block_on(commands::run(cli, out))
}

/// Says what went wrong on standard error. That nobody reads it any more changes nothing.
fn report(stop: &Stop, out: &Out) -> Exit {
    let complaint = Complaint::of(stop);
    if !complaint.is_silent() {
        let text = if out.is_json { complaint.json() } else { complaint.text(&out.error_look()) };
        // Where standard error is gone, there is nowhere left to say it.
        let _unheard = out.note(text.trim_end());
    }
    complaint.exit
}
