//! Reads to its end what nobody wants to read. A request that is refused before its body has come whole (too large, of the
//! wrong type, to no such path) is answered at once; but a connection that is closed over bytes unread is reset, and the
//! answer is lost to whoever is still writing. So the rest is read and thrown away, up to a bound and in the background.

use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt;
use hyper::body::{Body, Frame, Incoming, SizeHint};
use tokio::runtime::Handle;

/// How much of a body is thrown away; whoever sends more is cut off.
pub(super) const LINGER_MAX: usize = 64 * 1024 * 1024;
/// How long that may take in all, and how long nothing may come.
const LINGER_FOR: Duration = Duration::from_secs(5);
const SILENT_FOR: Duration = Duration::from_secs(1);

/// The body of a request. Dropped before its end, the rest of it is read and thrown away.
pub(super) struct Lingering {
    /// None: it has come to its end.
    body: Option<Incoming>,
}

impl Lingering {
    pub(super) fn new(body: Incoming) -> Self {
        Self { body: Some(body) }
    }
}

impl Body for Lingering {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        let Some(body) = &mut self.body else { return Poll::Ready(None) };
        let polled = Pin::new(body).poll_frame(cx);
        if let Poll::Ready(None | Some(Err(_))) = polled {
            self.body = None;
        }
        polled
    }

    fn is_end_stream(&self) -> bool {
        self.body.as_ref().is_none_or(Incoming::is_end_stream)
    }

    fn size_hint(&self) -> SizeHint {
        self.body.as_ref().map_or_else(|| SizeHint::with_exact(0), Incoming::size_hint)
    }
}

impl Drop for Lingering {
    fn drop(&mut self) {
        let rest = self.body.take().filter(|body| !body.is_end_stream());
        if let (Some(body), Ok(runtime)) = (rest, Handle::try_current()) {
            // Over its time, the connection is closed as it is.
            runtime.spawn(tokio::time::timeout(LINGER_FOR, throw_away(body)));
        }
    }
}

async fn throw_away(mut body: Incoming) {
    let mut left = LINGER_MAX;
    while let Ok(Some(Ok(frame))) = tokio::time::timeout(SILENT_FOR, body.frame()).await {
        match left.checked_sub(frame.data_ref().map_or(0, Bytes::len)) {
            Some(less) => left = less,
            None => return,
        }
    }
}
