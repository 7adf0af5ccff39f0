//! A server that is a process, in the handshake era: each session has a process of its own, so that whatever the server
//! remembers is of one client. If it ends, the next request starts it again and opens the session as its client did.

use std::sync::Arc;
use std::time::Duration;

use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use http::request::Parts;
use http::{Method, StatusCode};
use reach_schemas::{AgentId, ErrorCode, Failure, Span};
use tokio::sync::{Mutex, mpsc};
use tokio_util::sync::CancellationToken;

use super::Servers;
use super::answer;
use super::events::{Saying, Telling, respond, standing};
use super::fronts::Front;
use super::places::{Full, Place};
use super::said::{Said, Word};
use super::talk::{Talk, WAITING_MAX};
use crate::envelope::{Call, Frame, Limits, Message};
use crate::identity::Speaker;
use crate::mcp::server::Waits;
use crate::mcp::wire::header;
use crate::transport::app::App;
use crate::upstream::reply::Fault;
use crate::upstream::server::Server;

/// How long a server that was started again may take to open the session.
const REOPEN: Duration = Duration::from_secs(30);
/// How many sessions make way for one newcomer at most.
const WAYS_MAX: usize = 8;

/// What is behind a session with a process.
pub(in crate::transport) struct Behind {
    /// Held while it is started again.
    talk: Mutex<Arc<Talk>>,
    initialize: Bytes,
    said: Said,
    _place: Place,
}

type ProcessFront = Front<Behind>;

/// Answers one request.
pub(super) async fn handle(app: &App, server: &Server, speaker: &Speaker, parts: &Parts, body: Bytes) -> Response {
    let fronts = &app.servers.stdio;
    let front = fronts.of(server.spec().name.as_str(), speaker, &parts.headers);
    match (parts.method.clone(), front) {
        (Method::DELETE, Some(front)) => {
            fronts.remove(&front);
            StatusCode::NO_CONTENT.into_response()
        }
        (Method::GET, Some(front)) => listen(app, server, &front).await,
        (_, Some(front)) => post(app, server, &front, parts, &body).await,
        (Method::POST, None) if !parts.headers.contains_key(header::SESSION_ID) => {
            open(app, server, speaker, &body).await
        }
        (_, None) => answer::no_session(&body),
    }
}

/// Opens a session: its first request starts a process.
async fn open(app: &App, server: &Server, speaker: &Speaker, body: &Bytes) -> Response {
    let refused = |code, message: &str| answer::error(StatusCode::BAD_REQUEST, body, Failure::new(code, message));
    let call = match Frame::parse(body, &Limits::default()) {
        Frame::Single(Message::Call(call)) if call.method == "initialize" && call.id.is_some() => call,
        // An older server's answer to what a newer client asks first.
        Frame::Single(Message::Call(call)) if call.method == "server/discover" => {
            return refused(ErrorCode::MethodNotFound, "this server is of the handshake era; begin with initialize");
        }
        Frame::Single(Message::Invalid(invalid)) => return refused(invalid.flaw.code(), &invalid.flaw.to_string()),
        Frame::Single(Message::Call(_) | Message::Response(_)) | Frame::Batch(_) => {
            return refused(
                ErrorCode::InvalidRequest,
                "a session begins with initialize, and is named in Mcp-Session-Id",
            );
        }
    };
    let place = match place(&app.servers, speaker.agent()) {
        Ok(place) => place,
        Err(full) => return no_place(&app.servers, full, speaker.agent(), body),
    };
    let name = server.spec().name.clone();
    let talk = match start(server) {
        Ok(talk) => Arc::new(talk),
        Err(fault) => return answer::fault(name.as_str(), body, &fault),
    };
    let (say, mut says) = mpsc::channel(WAITING_MAX);
    if let Err(in_flight) = talk.ask(&[&call], &say) {
        return refused(ErrorCode::InvalidRequest, &in_flight.to_string());
    }
    drop(say);
    talk.write(body).await;
    let answered = tokio::time::timeout(server.spec().start_timeout.into(), first_answer(&mut says)).await;
    let text = match answered {
        Ok(Some(text)) => text,
        Ok(None) => return answer::fault(name.as_str(), body, &Fault::NeverSent("its process has ended".to_owned())),
        Err(_) => return answer::fault(name.as_str(), body, &Fault::Late),
    };
    let is_opened = matches!(Frame::parse(&text, &Limits::default()), Frame::Single(Message::Response(response)) if response.outcome.is_ok());
    let mut response = answer::json(StatusCode::OK, text);
    if is_opened {
        let behind = Behind { talk: Mutex::new(talk), initialize: body.clone(), said: Said::default(), _place: place };
        let front = app.servers.stdio.put(name, speaker, behind);
        if let Ok(header) = header::SESSION_ID.parse::<http::HeaderName>() {
            response.headers_mut().insert(header, front.id.clone());
        }
    }
    response
}

/// A place for one more process; where there is none, idle sessions of whoever has most make way, first of all those of a
/// caller that is over its own share.
fn place(servers: &Servers, newcomer: Option<&AgentId>) -> Result<Place, Full> {
    // One that was ended may still be in somebody's hands for a moment.
    for _ in 0..WAYS_MAX {
        let full = match servers.places.take(newcomer) {
            Ok(place) => return Ok(place),
            Err(full) => full,
        };
        if !servers.stdio.end_idle(|owner| servers.places.weight(full, newcomer, owner)) {
            return Err(full);
        }
    }
    servers.places.take(newcomer)
}

fn no_place(servers: &Servers, full: Full, newcomer: Option<&AgentId>, body: &Bytes) -> Response {
    let bounds = servers.places.bounds();
    let who = |name: Option<&str>| name.unwrap_or("you").to_owned();
    let (status, message) = match full {
        Full::Caller => {
            let (who, most) = (who(newcomer.map(AgentId::as_str)), bounds.caller);
            let message = format!(
                "{who} has {most} sessions in use whose server is a process, as many as one caller may have; end one (DELETE, \
                 with its Mcp-Session-Id), or use one that is open"
            );
            (StatusCode::TOO_MANY_REQUESTS, message)
        }
        Full::Namespace => {
            let (who, most) = (who(newcomer.map(AgentId::namespace_str)), bounds.namespace);
            let message = format!(
                "the agents of {who} have {most} sessions in use whose server is a process, as many as one namespace may \
                 have; end one, or come again later"
            );
            (StatusCode::TOO_MANY_REQUESTS, message)
        }
        Full::All => {
            let message = format!(
                "{} sessions are in use whose server is a process, as many as may be; end one, or come again later",
                bounds.all
            );
            (StatusCode::SERVICE_UNAVAILABLE, message)
        }
    };
    let failure = Failure { retry_after: Some(Span::from_secs(5)), ..Failure::new(ErrorCode::Overloaded, message) };
    answer::refusal(status, body, failure)
}

async fn first_answer(says: &mut mpsc::Receiver<Saying>) -> Option<Bytes> {
    loop {
        let said = says.recv().await?;
        if said.answer.is_some() {
            return Some(said.text);
        }
    }
}

fn start(server: &Server) -> Result<Talk, Fault> {
    let stop = CancellationToken::new();
    let running = server.start_own(stop.clone())?;
    Ok(Talk::begin(running, stop.drop_guard()))
}

impl Behind {
    /// The talk, begun again if its process has ended.
    async fn talk(&self, server: &Server) -> Result<Arc<Talk>, Fault> {
        let mut talk = self.talk.lock().await;
        if !talk.is_gone() {
            return Ok(Arc::clone(&talk));
        }
        let new = start(server)?;
        let mut first = vec![self.initialize.clone()];
        first.extend(self.said.again().1);
        for body in first {
            let Frame::Single(Message::Call(call)) = Frame::parse(&body, &Limits::default()) else { continue };
            let (say, mut says) = mpsc::channel(WAITING_MAX);
            let is_asked = call.id.is_some();
            new.ask(&[&call], &say).map_err(|in_flight| Fault::NeverSent(in_flight.to_string()))?;
            drop(say);
            new.write(&body).await;
            if is_asked {
                let answered = tokio::time::timeout(REOPEN, first_answer(&mut says)).await;
                answered
                    .ok()
                    .flatten()
                    .ok_or_else(|| Fault::NeverSent("it does not open the session again".to_owned()))?;
            }
        }
        tracing::info!(server = %server.spec().name, "a client's process had ended; it was started again");
        *talk = Arc::new(new);
        Ok(Arc::clone(&talk))
    }
}

/// The stream of what belongs to no request.
async fn listen(app: &App, server: &Server, front: &Arc<ProcessFront>) -> Response {
    let talk = match front.behind.talk(server).await {
        Ok(talk) => talk,
        Err(fault) => return answer::fault(server.spec().name.as_str(), b"", &fault),
    };
    let (say, says) = mpsc::channel(WAITING_MAX);
    talk.stand(say);
    let ends = [app.drain.stop.clone(), front.over.clone()];
    let waits = Waits::default();
    standing(Telling { says, waits, answers: usize::MAX, ends, _kept: front.open() })
}

async fn post(app: &App, server: &Server, front: &Arc<ProcessFront>, parts: &Parts, body: &Bytes) -> Response {
    let messages = match Frame::parse(body, &Limits::default()) {
        Frame::Single(Message::Invalid(invalid)) => {
            let failure = Failure::new(invalid.flaw.code(), invalid.flaw.to_string());
            return answer::error(StatusCode::BAD_REQUEST, body, failure);
        }
        Frame::Single(message) => vec![message],
        Frame::Batch(messages) => messages,
    };
    let talk = match front.behind.talk(server).await {
        Ok(talk) => talk,
        Err(fault) => return answer::fault(server.spec().name.as_str(), body, &fault),
    };
    let calls: Vec<&Call<'_>> = messages
        .iter()
        .filter_map(|message| match message {
            Message::Call(call) if call.id.is_some() => Some(call),
            Message::Call(_) | Message::Response(_) | Message::Invalid(_) => None,
        })
        .collect();
    let (say, says) = mpsc::channel(WAITING_MAX);
    if let Err(in_flight) = talk.ask(&calls, &say) {
        let failure = Failure::new(ErrorCode::InvalidRequest, in_flight.to_string());
        return answer::error(StatusCode::BAD_REQUEST, body, failure);
    }
    drop(say);
    front.behind.said.note(&Word::of(body), &parts.headers, body);
    let is_written = if let [_] = messages.as_slice() { talk.write(body).await } else { write_each(&talk, body).await };
    if !is_written {
        let fault = Fault::Lost("its process has ended".to_owned());
        return answer::fault(server.spec().name.as_str(), body, &fault);
    }
    if calls.is_empty() {
        return StatusCode::ACCEPTED.into_response();
    }
    let ends = [app.drain.overdue.clone(), front.over.clone()];
    let waits = Waits::of_calls(calls.iter().copied());
    respond(Telling { says, waits, answers: calls.len(), ends, _kept: (front.open(), talk) }).await
}

/// A batch, message by message: servers over stdio need not take batches.
async fn write_each(talk: &Talk, body: &[u8]) -> bool {
    let Ok(messages) = serde_json::from_slice::<Vec<&serde_json::value::RawValue>>(body) else { return true };
    for message in messages {
        if !talk.write(message.get().as_bytes()).await {
            return false;
        }
    }
    true
}
