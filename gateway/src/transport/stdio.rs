//! JSON-RPC over standard input and output: one message a line, and nothing else on the output.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use reach_schemas::{ErrorCode, Failure};
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::sync::oneshot;
use tokio_util::sync::CancellationToken;

use super::TEXT_MAX;
use super::conversation::{Conversation, Outgoing};
use super::drain::Drain;
use crate::envelope::lines::{Line, Lines};
use crate::gateway::Gateway;
use crate::identity::Pass;
use crate::rpc::{self, error_of};

/// How long calls in flight may go on once the gateway stops; then they are answered `shutting_down`.
const DRAIN: Duration = Duration::from_secs(10);

/// Speaks with the peer at the other end of two streams, who has started this process and so is not asked who it is, until the input ends and everything it asked for is
/// answered, or until `stop` is cancelled.
///
/// # Errors
/// A stream fails: the peer is gone.
pub async fn serve_stdio<R, W>(gateway: Arc<Gateway>, reader: R, writer: W, stop: CancellationToken) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let drain = Drain::new(stop);
    let Some(opened) = Conversation::open(&gateway, Pass::Open, &drain, ("stdio", None, None)) else { return Ok(()) };
    converse(&gateway, &drain, opened, reader, writer).await
}

/// Has a conversation over two streams, one message a line.
pub(super) async fn converse<R, W>(
    gateway: &Gateway,
    drain: &Drain,
    (conversation, outgoing): (Conversation, Outgoing),
    reader: R,
    writer: W,
) -> io::Result<()>
where
    R: AsyncRead + Unpin + Send,
    W: AsyncWrite + Unpin + Send,
{
    let (close, closing) = oneshot::channel();
    let mut lines = Lines::new(reader, TEXT_MAX);
    let hearing = async {
        let heard = hear(&mut lines, &conversation).await;
        drop(conversation);
        // The writer may have ended first.
        let _ = close.send(());
        heard
    };
    let speaking = speak(writer, outgoing, closing);
    tokio::pin!(hearing, speaking);
    tokio::select! {
        heard = &mut hearing => {
            heard?;
            speaking.await
        }
        spoken = &mut speaking => spoken,
        never = hurry(gateway, drain) => match never {},
    }
}

/// Ends waits once the gateway stops, and has what still runs answered when it cannot wait any longer.
async fn hurry(gateway: &Gateway, drain: &Drain) -> std::convert::Infallible {
    drain.stop.cancelled().await;
    gateway.end_waits();
    tokio::time::sleep(DRAIN).await;
    drain.overdue.cancel();
    std::future::pending().await
}

async fn hear<R: AsyncRead + Unpin>(lines: &mut Lines<R>, conversation: &Conversation) -> io::Result<()> {
    loop {
        let line = tokio::select! {
            line = lines.next() => line?,
            () = conversation.is_drained() => return Ok(()),
        };
        match line {
            Line::Text(text) if text.trim_ascii().is_empty() => {}
            Line::Text(text) => conversation.hear(text).await,
            Line::TooLong => {
                let message = format!("the line has more than the {TEXT_MAX} bytes that are allowed; send less");
                conversation.say(rpc::refused(error_of(Failure::new(ErrorCode::TooLarge, message), None))).await;
            }
            Line::End => {
                conversation.is_heard_out();
                conversation.is_idle().await;
                return Ok(());
            }
        }
    }
}

async fn speak<W: AsyncWrite + Unpin>(
    mut writer: W,
    mut outgoing: Outgoing,
    mut closing: oneshot::Receiver<()>,
) -> io::Result<()> {
    loop {
        let (mut next, is_last) = tokio::select! {
            text = outgoing.next() => (Some(text), false),
            _ = &mut closing => (outgoing.try_next(), true),
        };
        // The seats are kept until their answers are out.
        let mut sent = Vec::new();
        while let Some(text) = next {
            writer.write_all(&text.text).await?;
            writer.write_all(b"\n").await?;
            sent.push(text);
            next = outgoing.try_next();
        }
        writer.flush().await?;
        if is_last {
            return Ok(());
        }
    }
}
