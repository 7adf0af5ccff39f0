//! What passes between the gateway and a running command: parameters in, a result of bounded size out, and lines of
//! complaint into the log.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use reach_schemas::{AgentId, TaskId};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::time::timeout;

use super::group::{Group, Leader};

/// How large a result may be.
pub(super) const RESULT_MAX: usize = 8 * 1024 * 1024;
/// How long the output is waited for after the command has ended. Only a child that it left behind can make it late.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// How much of one line of standard error is logged, in bytes; the rest of the line is left out.
const LINE_MAX: usize = 2048;
/// How many lines of one attempt are logged.
const LINES_MAX: usize = 1000;
/// How much of the end of standard error is kept for a failure's message, in bytes.
const TAIL_MAX: usize = 2048;

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
        let complaints = Complaints { agent, task, line: Vec::new(), lines: 0, tail: Vec::new() };
        Self { printed: Vec::with_capacity(8192), complaints }
    }

    /// The last of what it said on standard error.
    pub(super) fn tail(&self) -> String {
        let tail = &self.complaints.tail;
        String::from_utf8_lossy(&tail[tail.len().saturating_sub(TAIL_MAX)..]).trim().to_owned()
    }
}

/// Feeds a command, listens to it, and waits until it ends.
pub(super) async fn talk(group: &mut Group, input: &[u8], said: &mut Said) -> io::Result<Ended> {
    let Leader { process, stdin, stdout, stderr } = group.leader();
    let Said { printed, complaints } = said;
    let streams =
        async { tokio::try_join!(feed(stdin, input), collect(stdout, printed), complaints.follow(stderr)).map(drop) };
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

/// Standard error, on its way into the log.
struct Complaints {
    agent: AgentId,
    /// None: it is a probe.
    task: Option<TaskId>,
    line: Vec<u8>,
    lines: usize,
    tail: Vec<u8>,
}

impl Complaints {
    async fn follow(&mut self, stderr: Option<impl AsyncRead + Unpin>) -> Result<(), Ended> {
        let Some(mut stderr) = stderr else { return Ok(()) };
        let mut buffer = [0; 4096];
        while let Ok(count @ 1..) = stderr.read(&mut buffer).await {
            self.take(&buffer[..count]);
        }
        self.end_line();
        Ok(())
    }

    fn take(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(bytes);
        // Cut now and then, not at every byte.
        if self.tail.len() > 4 * TAIL_MAX {
            self.tail.drain(..self.tail.len() - TAIL_MAX);
        }
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            let room = LINE_MAX - self.line.len();
            self.line.extend_from_slice(&piece[..piece.len().min(room)]);
            if piece.ends_with(b"\n") {
                self.end_line();
            }
        }
    }

    fn end_line(&mut self) {
        let line = String::from_utf8_lossy(&self.line);
        let line = line.trim_end();
        if !line.is_empty() && self.lines <= LINES_MAX {
            let line = if self.lines < LINES_MAX { line } else { "(the rest of its standard error is left out)" };
            tracing::info!(target: "agent", agent = %self.agent, reach_id = self.task.map(tracing::field::display), "{line}");
            self.lines += 1;
        }
        self.line.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn complaints_are_kept_by_line_and_bounded() {
        let mut said = Said::new("a@n".parse().unwrap(), Some(TaskId::from_parts(1, 1)));
        said.complaints.take(b"first\nsec");
        assert_eq!(said.complaints.line, b"sec");
        for _ in 0..10_000 {
            said.complaints.take(b"0123456789");
        }
        assert_eq!(said.complaints.line.len(), LINE_MAX);
        assert!(said.complaints.tail.len() <= 4 * TAIL_MAX);
        said.complaints.take(b"\nlast\n");
        assert_eq!(said.complaints.lines, 3);
        assert!(said.tail().ends_with("789\nlast") && said.tail().len() <= TAIL_MAX);
    }
}
