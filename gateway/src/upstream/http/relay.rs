//! Requests of others, passed on to a server as they came: only their address and the headers of the configuration are put
//! in. What comes back is given back as it streams.

use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Request, Response, Uri};
use http_body_util::BodyExt;
use tokio::time::{Instant, timeout_at};

use crate::mcp::wire::header;
use crate::mcp::wire::sse::is_stream;
use crate::mcp::wire::sse::read::Reader;
use crate::outbound::{Body, Client, Stream, read as read_whole, told};
use crate::upstream::reply::{Fault, MESSAGE_MAX, read};

/// Where requests are passed on to.
pub(in crate::upstream) struct Relay<'a> {
    pub(in crate::upstream) client: &'a Arc<Client>,
    pub(in crate::upstream) uri: &'a Uri,
    pub(in crate::upstream) headers: &'a HeaderMap,
}

impl Relay<'_> {
    /// Passes a request on. The head of the answer has come by `until`.
    pub(in crate::upstream) async fn pass(
        &self,
        method: Method,
        mut headers: HeaderMap,
        body: Bytes,
        until: Instant,
    ) -> Result<Response<Stream>, Fault> {
        for (name, value) in self.headers {
            headers.insert(name.clone(), value.clone());
        }
        let mut request = Request::new(body);
        *request.method_mut() = method;
        *request.uri_mut() = self.uri.clone();
        *request.headers_mut() = headers;
        Ok(self.client.begin(request, until).await?)
    }

    /// Opens a session again that the server has lost, as its client opened it. Gives the new session's id.
    pub(in crate::upstream) async fn reopen(
        &self,
        headers: &HeaderMap,
        initialize: &Bytes,
        until: Instant,
    ) -> Result<HeaderValue, Fault> {
        let response = self.pass(Method::POST, headers.clone(), initialize.clone(), until).await?;
        let status = response.status();
        let session = response.headers().get(header::SESSION_ID).cloned();
        if !status.is_success() {
            return Err(Fault::NeverSent(format!("it answered initialize with HTTP status {status}")));
        }
        wait_for_answer(response, until).await?;
        session.ok_or_else(|| Fault::NeverSent("it gives no sessions any more".to_owned()))
    }

    /// Says something within a session, and does not look at what is answered.
    pub(in crate::upstream) async fn say(
        &self,
        headers: &HeaderMap,
        body: &Bytes,
        until: Instant,
    ) -> Result<(), Fault> {
        let response = self.pass(Method::POST, headers.clone(), body.clone(), until).await?;
        let has_answer = response.status().is_success() && response.headers().contains_key(http::header::CONTENT_TYPE);
        if has_answer { wait_for_answer(response, until).await } else { Ok(()) }
    }
}

/// Reads until the first answer.
async fn wait_for_answer(response: Response<Stream>, until: Instant) -> Result<(), Fault> {
    if !is_stream(response.headers()) {
        let whole = timeout_at(until, read_whole(response)).await.map_err(|_| Fault::Late)?;
        return match whole.body {
            Body::Whole(_) => Ok(()),
            Body::TooLarge => Err(Fault::Lost("its answer is larger than is taken".to_owned())),
            Body::Cut(why) => Err(Fault::Lost(why)),
        };
    }
    let (mut body, mut reader) = (response.into_body(), Reader::new(MESSAGE_MAX));
    while let Some(frame) = timeout_at(until, body.frame()).await.map_err(|_| Fault::Late)? {
        let frame = frame.map_err(|error| Fault::Lost(told(error.as_ref())))?;
        let Ok(bytes) = frame.into_data() else { continue };
        let events = reader.push(&bytes).map_err(|error| Fault::Lost(error.to_string()))?;
        let mut said = events.iter().filter(|event| !event.data.is_empty());
        if said.any(|event| !read(event.data.as_bytes(), &mut |_| {}).answers.is_empty()) {
            return Ok(());
        }
    }
    Err(Fault::Lost("its stream ended before the answer".to_owned()))
}
