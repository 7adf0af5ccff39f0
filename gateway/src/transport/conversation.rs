//! What WebSocket and stdio have in common: a peer with whom both sides ask and answer, over one stream of texts in
//! and one out. Frames are begun in the order in which they come, and end in any; a slow one holds nobody up.

use std::net::IpAddr;
use std::pin::Pin;
use std::sync::{Arc, Weak};
use std::task::Poll;
use std::time::Duration;

use bytes::Bytes;
use reach_schemas::{ErrorCode, Failure, RawJson, Span};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, mpsc};
use tokio_util::sync::{CancellationToken, DropGuard};

use super::drain::{Drain, run, shutting_down};
use super::finish::WITHOUT_CALLER;
use super::mcp::Peer;
use crate::gateway::Gateway;
use crate::identity::{Pass, Speaker};
use crate::mcp::server::Server;
use crate::ops::identity::Ended;
use crate::rpc::methods::{Connection, Context};
use crate::rpc::{Call, Frame, Limits, answer_frame};
use crate::sessions::Handle;

/// How many frames of one peer may be worked on at once: each takes a seat, and a long one takes more.
const SEATS: u32 = 1024;
/// A frame takes one more seat for each of these bytes.
const SEAT_BYTES: usize = 16 * 1024;
/// How long a peer that may not speak any more has to wait for its last answers at most.
const LAST_ANSWERS: Duration = Duration::from_secs(6);
/// How many answers may wait to be sent while more frames are taken in.
const ANSWERS_MAX: usize = 64;

/// What one frame will be answered with.
type Answering = Pin<Box<dyn Future<Output = Option<Bytes>> + Send>>;

/// A text for the peer. The seat of its frame is free when it is dropped.
pub(super) struct Text {
    pub(super) text: Bytes,
    _seat: Option<OwnedSemaphorePermit>,
}

/// The side of a conversation that hears. Dropping it ends the session; what was begun has a moment to finish.
pub(super) struct Conversation {
    dialect: Dialect,
    gateway: Arc<Gateway>,
    /// By whom it is. That this still holds is asked with every frame.
    pass: Pass,
    drain: Drain,
    seats: Arc<Semaphore>,
    answers: mpsc::Sender<Text>,
    gone: CancellationToken,
    _gone_when_dropped: DropGuard,
}

/// What is spoken.
enum Dialect {
    /// JSON-RPC, by the table of methods.
    Rpc { context: Context, handle: Arc<Handle> },
    /// MCP.
    Mcp(Peer),
}

/// The side of a conversation that speaks.
pub(super) struct Outgoing {
    answers: mpsc::Receiver<Text>,
    pushes: mpsc::Receiver<String>,
}

impl Conversation {
    /// Opens a session with a peer, over a transport, by the name by which the peer called the gateway, if it did by one, and
    /// from where it did.
    /// None: it was closed at once.
    pub(super) fn open(
        gateway: &Arc<Gateway>,
        pass: Pass,
        drain: &Drain,
        (transport, host, from): (&'static str, Option<Arc<str>>, Option<IpAddr>),
    ) -> Option<(Self, Outgoing)> {
        let at_close = Arc::clone(gateway);
        let (handle, pushes) = gateway.sessions().open(move |agents| at_close.disconnected(&agents));
        let connection = Connection { session: handle.id(), sender: handle.sender()? };
        Some(Self::over(gateway, pass.clone(), drain, pushes, |_, gone| {
            let (gateway, connection, gone) = (Arc::clone(gateway), Some(connection), gone.clone());
            let context = Context { gateway, pass, host, connection, traceparent: None, gone, transport, from };
            Dialect::Rpc { context, handle: Arc::new(handle) }
        }))
    }

    /// Opens a conversation with a client of the gateway's own MCP server.
    pub(super) fn with_mcp(
        gateway: &Arc<Gateway>,
        server: &Arc<Server>,
        speaker: Speaker,
        drain: &Drain,
    ) -> (Self, Outgoing) {
        // Whatever is said goes the way of the answers, so that it comes before the answer that ends it.
        let (_, pushes) = mpsc::channel(1);
        Self::over(gateway, speaker.pass(), drain, pushes, |answers, gone| {
            let answers = answers.clone();
            let notice = move |text| answers.try_send(Text { text, _seat: None }).is_ok();
            Dialect::Mcp(Peer::new(server, speaker, notice, gone.clone()))
        })
    }

    fn over(
        gateway: &Arc<Gateway>,
        pass: Pass,
        drain: &Drain,
        pushes: mpsc::Receiver<String>,
        dialect: impl FnOnce(&mpsc::Sender<Text>, &CancellationToken) -> Dialect,
    ) -> (Self, Outgoing) {
        let (answers, receiver) = mpsc::channel(ANSWERS_MAX);
        let gone = CancellationToken::new();
        let conversation = Self {
            dialect: dialect(&answers, &gone),
            gateway: Arc::clone(gateway),
            pass,
            drain: drain.clone(),
            seats: Arc::new(Semaphore::new(SEATS as usize)),
            answers,
            _gone_when_dropped: gone.clone().drop_guard(),
            gone,
        };
        (conversation, Outgoing { answers: receiver, pushes })
    }

    /// Begins what a frame asks for. It waits only while the peer does not take its answers.
    pub(super) async fn hear(&self, frame: Bytes) {
        let (seat, refusal) = match self.gateway.check(&self.pass).and_then(|()| self.seat(frame.len())) {
            Ok(seat) => (Some(seat), None),
            Err(failure) => (None, Some(failure)),
        };
        let mut answer: Answering = match &self.dialect {
            Dialect::Rpc { context, handle } => {
                let (context, handle) = (context.clone(), Arc::downgrade(handle));
                let asked = Asked { context, handle, overdue: self.drain.overdue.clone(), refusal };
                Box::pin(asked.answer(frame.clone()))
            }
            Dialect::Mcp(peer) => Box::pin(peer.answer(frame.clone(), refusal)),
        };
        // The first step is taken here: it keeps frames in order, and most are done by it.
        match std::future::poll_fn(|cx| Poll::Ready(answer.as_mut().poll(cx))).await {
            Poll::Ready(text) => send(&self.answers, text, seat).await,
            Poll::Pending => self.go_on(answer, self.turned_away(frame), seat),
        }
    }

    /// What a frame that is worked on is answered with once the peer is not known any more. None: each of its calls sees to
    /// that itself, or it does not come to that.
    fn turned_away(&self, frame: Bytes) -> Option<Answering> {
        match &self.dialect {
            Dialect::Mcp(peer) if self.pass.can_end() => {
                Some(Box::pin(peer.turned_away(Arc::clone(&self.gateway), self.pass.clone(), frame)))
            }
            Dialect::Rpc { .. } | Dialect::Mcp(_) => None,
        }
    }

    /// Waits until the peer may not speak any more.
    pub(super) async fn ended(&self) -> Ended {
        self.gateway.ended(&self.pass).await
    }

    /// Ends it because the peer may not speak any more: nothing new is said to it, and what was begun has its answers.
    pub(super) async fn end(self) {
        let Self { dialect, seats, _gone_when_dropped: gone, .. } = self;
        drop(dialect);
        // The semaphore is never closed; what takes longer is not answered.
        let _ = tokio::time::timeout(LAST_ANSWERS, seats.acquire_many(SEATS)).await;
        drop(gone);
    }

    /// Says something that answers no frame.
    pub(super) async fn say(&self, text: Bytes) {
        send(&self.answers, Some(text), None).await;
    }

    fn seat(&self, frame_len: usize) -> Result<OwnedSemaphorePermit, Failure> {
        if self.drain.stop.is_cancelled() {
            return Err(shutting_down());
        }
        let wanted = u32::try_from(1 + frame_len / SEAT_BYTES).unwrap_or(SEATS).min(SEATS);
        Arc::clone(&self.seats).try_acquire_many_owned(wanted).map_err(|_| {
            let message = "too much is in flight on this connection; wait for answers before you send more";
            Failure { retry_after: Some(Span::from_secs(1)), ..Failure::new(ErrorCode::Overloaded, message) }
        })
    }

    fn go_on(&self, mut answer: Answering, turned_away: Option<Answering>, seat: Option<OwnedSemaphorePermit>) {
        let (answers, gone) = (self.answers.clone(), self.gone.clone());
        tokio::spawn(async move {
            let is_over = async {
                gone.cancelled().await;
                tokio::time::sleep(WITHOUT_CALLER).await;
            };
            tokio::pin!(is_over);
            let turned_away = async {
                match turned_away {
                    Some(told) => told.await,
                    None => std::future::pending().await,
                }
            };
            tokio::select! {
                biased;
                told = turned_away => {
                    send(&answers, told, seat).await;
                    // What was begun goes on as if the peer had gone away, which it is about to.
                    tokio::select! {
                        _ = answer => {}
                        () = is_over => {}
                    }
                }
                text = &mut answer => send(&answers, text, seat).await,
                () = &mut is_over => {}
            }
        });
    }

    /// Ends what would never end by itself, once nothing more can be heard.
    pub(super) fn is_heard_out(&self) {
        match &self.dialect {
            Dialect::Rpc { .. } => {}
            Dialect::Mcp(peer) => peer.close(),
        }
    }

    /// Waits until everything that was begun is done, and its answers are sent.
    pub(super) async fn is_idle(&self) {
        // The semaphore is never closed.
        let _ = self.seats.acquire_many(SEATS).await;
    }

    /// Waits until the gateway stops, everything that was begun is done, and the peer has answered what it was asked:
    /// whether it has the work that was pushed to it must not stay unknown for want of a moment.
    pub(super) async fn is_drained(&self) {
        self.drain.stop.cancelled().await;
        self.is_heard_out();
        self.is_idle().await;
        match &self.dialect {
            Dialect::Rpc { handle, .. } => handle.all_answered().await,
            Dialect::Mcp(_) => {}
        }
    }
}

async fn send(answers: &mpsc::Sender<Text>, text: Option<Bytes>, seat: Option<OwnedSemaphorePermit>) {
    if let Some(text) = text {
        // The peer is gone if nobody takes it.
        let _ = answers.send(Text { text, _seat: seat }).await;
    }
}

/// What one frame is answered with.
struct Asked {
    context: Context,
    handle: Weak<Handle>,
    overdue: CancellationToken,
    refusal: Option<Failure>,
}

impl Asked {
    async fn answer(self, text: Bytes) -> Option<Bytes> {
        let limits = Limits::of_peer(self.context.gateway.texts());
        let mut frame = Frame::parse(&text, &limits);
        for response in frame.take_responses() {
            let reply = match response.outcome {
                Ok(result) => Ok(RawJson::from(result.to_owned())),
                Err(error) => Err(RawJson::from(error.to_owned())),
            };
            if !self.handle.upgrade().is_some_and(|handle| handle.answered(response.id.get(), reply)) {
                tracing::debug!(id = response.id.get(), "an answer came that nobody waits for");
            }
        }
        let handler = async |call: Call<'_>| match &self.refusal {
            Some(failure) => Err(self.context.refuse(&call.method, failure.clone())),
            None => run(&self.context, &self.overdue, call).await,
        };
        answer_frame(frame, &limits, handler).await
    }
}

impl Outgoing {
    /// The next text to send. It waits for ever when nobody can send any more.
    pub(super) async fn next(&mut self) -> Text {
        tokio::select! {
            Some(answer) = self.answers.recv() => answer,
            Some(push) = self.pushes.recv() => of_push(push),
            else => std::future::pending().await,
        }
    }

    /// The next text to send, if there is one already.
    pub(super) fn try_next(&mut self) -> Option<Text> {
        self.answers.try_recv().ok().or_else(|| self.pushes.try_recv().ok().map(of_push))
    }
}

/// Caller's JSON in a push may hold line breaks; a blank means the same there, and does not end a line of stdio.
fn of_push(push: String) -> Text {
    let mut text = push.into_bytes();
    for byte in &mut text {
        if matches!(byte, b'\n' | b'\r') {
            *byte = b' ';
        }
    }
    Text { text: text.into(), _seat: None }
}
