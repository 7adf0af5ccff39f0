//! The stream on which a server tells of changes: a GET of the session, or `subscriptions/listen`.

use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http::Method;
use http_body_util::BodyExt;
use tokio::time::Instant;

use super::HttpLink;
use super::exchange::refused;
use crate::mcp::wire::Era;
use crate::mcp::wire::sse::is_stream;
use crate::mcp::wire::sse::read::Reader;
use crate::upstream::ask::{self, Ask};
use crate::upstream::reply::{Fault, Hears, MESSAGE_MAX, read};

/// How long a server may take to open the stream.
const OPEN_TIMEOUT: Duration = Duration::from_secs(10);

/// How a stream of changes came to its end.
#[derive(Debug)]
pub(crate) enum Ended {
    /// The server has none to give.
    NotGiven,
    /// It broke, or was closed.
    Cut,
    /// The server does not know the session any more.
    SessionGone,
}

impl HttpLink {
    /// Listens for changes until the stream ends.
    pub(in crate::upstream) async fn listen(&self, hears: Hears<'_>) -> Ended {
        let until = Instant::now() + OPEN_TIMEOUT;
        let response = match self.0.era {
            Era::Handshake => {
                let request = self.request_to(Method::GET, Bytes::new(), &Ask::default());
                self.0.client.begin(request, until).await.map_err(Fault::from)
            }
            Era::Stateless => {
                let ask = ask::LISTEN;
                let id = self.0.ids.fetch_add(1, Ordering::Relaxed);
                self.post(ask::frame(&ask, id, self.0.era), &ask, until).await
            }
        };
        let Ok(response) = response else { return Ended::Cut };
        if !response.status().is_success() || !is_stream(response.headers()) {
            let is_cut = response.status().is_server_error();
            return match refused(self, response).await {
                Fault::SessionGone => Ended::SessionGone,
                Fault::NeverSent(_) | Fault::Lost(_) | Fault::Late | Fault::Status { .. } if is_cut => Ended::Cut,
                Fault::NeverSent(_) | Fault::Lost(_) | Fault::Late | Fault::Status { .. } => Ended::NotGiven,
            };
        }
        let (mut body, mut reader) = (response.into_body(), Reader::new(MESSAGE_MAX));
        while let Some(Ok(frame)) = body.frame().await {
            let Ok(bytes) = frame.into_data() else { continue };
            let Ok(events) = reader.push(&bytes) else { break };
            for event in events.iter().filter(|event| !event.data.is_empty()) {
                for text in read(event.data.as_bytes(), hears).owed {
                    // It may ask again.
                    let _ = self.say(text).await;
                }
            }
        }
        Ended::Cut
    }
}
