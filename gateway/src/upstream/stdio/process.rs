//! A server's process: lines in, lines out, complaints into the log. It is asked to end by closing its input, then by
//! SIGTERM, then by SIGKILL (2026-07-28, Lifecycle, Shutdown; the last two as for every child of the gateway).

use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use reach_schemas::ServerSpec;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::mpsc;
use tokio::time::timeout;
use tokio_util::sync::CancellationToken;

use crate::child::{self, Complaints, Group, Leader};
use crate::envelope::lines::{Line, Lines};
use crate::upstream::reply::MESSAGE_MAX;

/// How many lines may wait, each way.
const LINES_MAX: usize = 1024;
/// How long a process has to end once its input is closed, and once it has closed its output.
const CLOSING: Duration = Duration::from_millis(500);
/// How long its last output is waited for after it has ended. Only a child that it left behind can make it late.
const OUTPUT_TIMEOUT: Duration = Duration::from_millis(500);
/// How much of a line that is no message is logged, in bytes.
const EXCERPT_MAX: usize = 200;

/// A line on its way to the process.
pub(crate) struct Outgoing {
    /// The line, without its end.
    pub(crate) text: String,
    /// Set just before it is written: until then the process certainly has nothing of it.
    pub(crate) is_written: Arc<AtomicBool>,
}

/// A running process.
pub(crate) struct Running {
    /// The way in.
    pub(crate) outgoing: mpsc::Sender<Outgoing>,
    /// What it prints; ends with the process.
    pub(crate) incoming: mpsc::Receiver<Bytes>,
    /// How it ended.
    pub(crate) end: End,
}

/// How a process ended, once it has.
#[derive(Debug, Clone, Default)]
pub(crate) struct End(Arc<Mutex<String>>);

impl End {
    /// How, in words.
    pub(crate) fn told(&self) -> String {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

impl Outgoing {
    pub(crate) fn new(text: String) -> Self {
        Self { text, is_written: Arc::default() }
    }
}

/// Starts the command of a server. It ends when `stop` is cancelled.
///
/// # Errors
/// It cannot be started: why.
pub(crate) fn start(spec: &ServerSpec, stop: CancellationToken) -> Result<Running, String> {
    let program = spec.command.as_deref().unwrap_or_default();
    let mut command = child::command(program, &spec.args, spec.cwd.as_deref().map(Path::new));
    command.envs(spec.pass_env.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
    command.envs(&spec.env);
    let group = Group::start(&mut command).map_err(|error| {
        let hint = "see that it is installed, and on the PATH of the gateway";
        format!("the command {program:?} cannot be started: {error}; {hint}")
    })?;
    let (outgoing, to_write) = mpsc::channel(LINES_MAX);
    let (read, incoming) = mpsc::channel(LINES_MAX);
    let end = End::default();
    let (name, noted) = (spec.name.clone(), end.clone());
    let log = move |line: &str| tracing::info!(target: "server", server = %name, "{line}");
    let complaints = Complaints::new(usize::MAX, log);
    tokio::spawn(async move {
        // The sender goes last: whoever reads the end finds out why.
        let ended = see_through(group, to_write, &read, &stop, complaints).await;
        *noted.0.lock().unwrap_or_else(PoisonError::into_inner) = ended;
        drop(read);
    });
    Ok(Running { outgoing, incoming, end })
}

async fn see_through(
    mut group: Group,
    to_write: mpsc::Receiver<Outgoing>,
    read: &mpsc::Sender<Bytes>,
    stop: &CancellationToken,
    mut complaints: Complaints,
) -> String {
    let Leader { process, stdin, stdout, stderr } = group.leader();
    let status = {
        let speaking = async {
            tokio::select! {
                () = speak(stdin, to_write) => {}
                () = stop.cancelled() => {}
            }
            std::future::pending::<()>().await;
        };
        let overdue = async {
            stop.cancelled().await;
            tokio::time::sleep(CLOSING).await;
        };
        let (hearing, complaining) = (hear(stdout, read), complaints.follow(stderr));
        tokio::pin!(speaking, hearing, complaining);
        let (mut is_silent, mut is_flooded) = (false, false);
        let mut has_complained = false;
        let mut waiting = std::pin::pin!(process.wait());
        let mut overdue = std::pin::pin!(overdue);
        let status = loop {
            tokio::select! {
                status = &mut waiting => break status.ok(),
                () = &mut overdue => break None,
                () = &mut speaking => {}
                heard = &mut hearing, if !is_silent => {
                    (is_silent, is_flooded) = (true, heard == Heard::Flood);
                    // It waits for a reader, and there is none any more.
                    let closing = if is_flooded { Duration::ZERO } else { CLOSING };
                    break timeout(closing, &mut waiting).await.ok().and_then(Result::ok);
                }
                () = &mut complaining, if !has_complained => has_complained = true,
            }
        };
        let last = async {
            if !is_silent {
                let _ = hearing.await;
            }
            if !has_complained {
                complaining.await;
            }
        };
        // What was said last may say why.
        let waits_for = if is_flooded { Duration::ZERO } else { OUTPUT_TIMEOUT };
        let _ = timeout(waits_for, last).await;
        if is_flooded {
            tracing::warn!(target: "server", "printed a line of more than {MESSAGE_MAX} bytes; it is ended");
            return format!("the server's process was ended: it printed a line of more than {MESSAGE_MAX} bytes");
        }
        status
    };
    let tail = complaints.tail();
    let tail = tail.lines().last().unwrap_or_default();
    match status {
        Some(status) if tail.is_empty() => format!("the server's process ended ({status})"),
        Some(status) => format!("the server's process ended ({status}): {tail}"),
        None => "the server's process was ended".to_owned(),
    }
}

async fn speak(stdin: Option<impl AsyncWrite + Unpin>, mut to_write: mpsc::Receiver<Outgoing>) {
    let Some(mut stdin) = stdin else { return };
    let mut text = Vec::new();
    while let Some(first) = to_write.recv().await {
        let mut next = Some(first);
        while let Some(line) = next {
            line.is_written.store(true, Ordering::Release);
            text.extend_from_slice(line.text.as_bytes());
            text.push(b'\n');
            next = if text.len() < MESSAGE_MAX { to_write.try_recv().ok() } else { None };
        }
        if stdin.write_all(&text).await.is_err() || stdin.flush().await.is_err() {
            return;
        }
        text.clear();
    }
}

/// Why no more is heard.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    /// There is no more, or nobody to hear it.
    All,
    /// A line was too long to be a message. Whose answer it is nobody can tell, so whoever waits waits in vain.
    Flood,
}

async fn hear(stdout: Option<impl AsyncRead + Unpin>, read: &mpsc::Sender<Bytes>) -> Heard {
    let Some(stdout) = stdout else { return Heard::All };
    let mut lines = Lines::new(stdout, MESSAGE_MAX).strict();
    loop {
        match lines.next().await {
            Ok(Line::Text(text)) if text.trim_ascii().is_empty() => {}
            Ok(Line::Text(text)) if matches!(text.trim_ascii_start().first(), Some(b'{' | b'[')) => {
                if read.send(text).await.is_err() {
                    return Heard::All;
                }
            }
            Ok(Line::Text(text)) => {
                let excerpt = String::from_utf8_lossy(&text[..text.len().min(EXCERPT_MAX)]);
                tracing::debug!(target: "server", "printed something that is no message: {excerpt}");
            }
            Ok(Line::TooLong) => return Heard::Flood,
            Ok(Line::End) | Err(_) => return Heard::All,
        }
    }
}
