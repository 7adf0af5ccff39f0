//! What passes between the gateway and a running command: parameters in, a result of bounded size out, and lines of
//! complaint into the log.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use reach_schemas::{AgentId, TaskId};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use crate::child::{Complaints, Group, Leader};

/// How large a result may be.
pub(super) const RESULT_MAX: usize = 8 * 1024 * 1024;
/// How long the output is waited for after the command has ended. Only a child that it left behind can make it late.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// How many lines of one attempt are logged.
const LINES_MAX: usize = 1000;

/// How a command ended by itself.
pub(super) enum Ended {
    /// It exited, or was killed.
    Exited(ExitStatus),
    /// It printed more than [`RESULT_MAX`].
    Flooded,
}

/// Everything that a command said.
pub(super) struct Said {
    /// On standard output.
    pub(super) printed: Vec<u8>,
    complaints: Complaints,
}

impl Said {
    /// Nothing yet. The names are for the log.
    pub(super) fn new(agent: AgentId, task: Option<TaskId>) -> Self {
        let log = move |line: &str| {
            tracing::info!(target: "agent", agent = %agent, reach_id = task.map(tracing::field::display), "{line}");
        };
        let complaints = Complaints::new(LINES_MAX, log);
        Self { printed: Vec::with_capacity(8192), complaints }
    }

    /// The last of what it said on standard error.
    pub(super) fn tail(&self) -> String {
        self.complaints.tail()
    }
}

/// Feeds a command, listens to it, and waits until it ends.
pub(super) async fn talk(group: &mut Group, input: &[u8], said: &mut Said) -> io::Result<Ended> {
    let Leader { process, stdin, stdout, stderr } = group.leader();
    let Said { printed, complaints } = said;
    let heard = async {
        complaints.follow(stderr).await;
        Ok(())
    };
    let streams = async { tokio::try_join!(feed(stdin, input), collect(stdout, printed), heard).map(drop) };
    tokio::pin!(streams);
    let (status, streamed) = tokio::select! {
        status = process.wait() => (status?, timeout(OUTPUT_TIMEOUT, streams).await.unwrap_or(Ok(()))),
        streamed = &mut streams => match streamed {
            Ok(()) => (process.wait().await?, Ok(())),
            Err(flood) => return Ok(flood),
        },
    };
    Ok(streamed.err().unwrap_or(Ended::Exited(status)))
}

/// A command that does not read its input is free not to.
async fn feed(stdin: Option<impl AsyncWrite + Unpin>, input: &[u8]) -> Result<(), Ended> {
    if let Some(mut stdin) = stdin {
        let _ = stdin.write_all(input).await;
        let _ = stdin.shutdown().await;
    }
    Ok(())
}

async fn collect(stdout: Option<impl AsyncRead + Unpin>, printed: &mut Vec<u8>) -> Result<(), Ended> {
    let Some(mut stdout) = stdout else { return Ok(()) };
    while let Ok(1..) = stdout.read_buf(printed).await {
        if printed.len() > RESULT_MAX {
            return Err(Ended::Flooded);
        }
    }
    Ok(())
}
