//! The way back to a client while a request of it is worked on.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::mpsc;
use tokio_util::sync::CancellationToken;

use super::Session;

/// How many notices may wait to be sent.
const NOTICES_MAX: usize = 64;
/// How long to wait before something is offered to a client again that takes nothing just now.
const CHOKED: Duration = Duration::from_millis(100);

/// The way back to a client. Cloning gives the same.
#[derive(Clone)]
pub struct Line {
    notice: Arc<dyn Fn(Bytes) -> bool + Send + Sync>,
    gone: CancellationToken,
    is_silenced: Arc<AtomicBool>,
    session: Arc<OnceLock<Arc<Session>>>,
}

impl Line {
    /// A way back that takes notices by this function, which says whether there was room; `gone` is cancelled when the
    /// client, or its wish for the answer, is gone.
    #[must_use]
    pub fn new(notice: impl Fn(Bytes) -> bool + Send + Sync + 'static, gone: CancellationToken) -> Self {
        Self { notice: Arc::new(notice), gone, is_silenced: Arc::default(), session: Arc::default() }
    }

    /// The same way back, for another message.
    #[must_use]
    pub fn for_another(&self) -> Self {
        Self {
            notice: Arc::clone(&self.notice),
            gone: self.gone.clone(),
            is_silenced: Arc::default(),
            session: Arc::default(),
        }
    }

    /// A way back over a channel.
    #[must_use]
    pub fn channel(gone: CancellationToken) -> (Self, mpsc::Receiver<Bytes>) {
        let (sender, receiver) = mpsc::channel(NOTICES_MAX);
        (Self::new(move |notice| sender.try_send(notice).is_ok(), gone), receiver)
    }

    /// Says something that must be heard; it waits while the client takes nothing, and gives up when it is gone.
    pub(super) async fn say(&self, notice: Bytes) {
        while !(self.notice)(notice.clone()) {
            tokio::select! {
                () = tokio::time::sleep(CHOKED) => {}
                () = self.gone.cancelled() => return,
            }
        }
    }

    /// Is done once the client is gone.
    pub(super) async fn gone(&self) {
        self.gone.cancelled().await;
    }

    /// Has the request answered by nothing: it was called off.
    pub(super) fn silence(&self) {
        self.is_silenced.store(true, Ordering::Relaxed);
    }

    pub(super) fn belongs_to(&self, session: &Arc<Session>) {
        // A frame belongs to one session.
        let _ = self.session.set(Arc::clone(session));
    }

    /// The session that the request turned out to belong to.
    #[must_use]
    pub fn session(&self) -> Option<&Arc<Session>> {
        self.session.get()
    }

    /// Whether the request is answered by nothing.
    pub(super) fn is_silenced(&self) -> bool {
        self.is_silenced.load(Ordering::Relaxed)
    }
}
