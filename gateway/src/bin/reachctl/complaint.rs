//! What went wrong, said twice: for people (what, where, what to do) and as the wire's error object.

use agent_reach_sdk::schemas::call::{ConfigRefused, ErrorData};
use agent_reach_sdk::{Error, ErrorCode, Refusal};
use serde_json::json;

use crate::exit::{Exit, Stop};
use crate::render::text::{clean, lasting};
use crate::render::{Look, Tone, config, suggestions};

/// What went wrong and what to do.
#[derive(Debug)]
pub(crate) struct Complaint {
    pub(crate) exit: Exit,
    /// What is wrong, and where.
    pub(crate) message: String,
    /// What to do, a line each.
    hints: Vec<String>,
    /// A name for machines where the gateway did not give one.
    name: &'static str,
    /// The gateway's own words.
    refusal: Option<Refusal>,
}

impl Complaint {
    pub(crate) fn of(stop: &Stop) -> Self {
        let say = |exit, name, message: String, hint: &str| Self {
            exit,
            message,
            hints: if hint.is_empty() { Vec::new() } else { vec![hint.to_owned()] },
            name,
            refusal: None,
        };
        match stop {
            Stop::PipeClosed => say(Exit::Done, "pipe_closed", String::new(), ""),
            Stop::Write(error) => say(Exit::Internal, "io", format!("the output cannot be written: {error}"), ""),
            Stop::Usage(message) => say(Exit::Usage, "usage", message.clone(), "`reachctl --help` shows what is meant"),
            Stop::Input(message) => say(Exit::Usage, "usage", message.clone(), ""),
            Stop::NoGateway { url, why } => {
                let hint = match url.strip_prefix("https://") {
                    // What TLS says of an answer that is none of its own.
                    Some(rest) if why.contains("corrupt message") => {
                        format!("is it http, and not https? then: --url http://{rest}")
                    }
                    _ => "start one with `reach-gateway serve`, or name another with --url".to_owned(),
                };
                say(Exit::NoGateway, "no_gateway", format!("no gateway answers at {url} ({why})"), &hint)
            }
            Stop::NoAnswer { url, waited } => say(
                Exit::StillRunning,
                "no_answer",
                format!("the gateway at {url} did not answer within {}", lasting((*waited).into())),
                "the work may go on there: look what came of it before you ask again",
            ),
            Stop::Noted(stop, note) => {
                let mut complaint = Self::of(stop);
                complaint.note(note.clone());
                complaint
            }
            Stop::Unreadable(message) => say(
                Exit::Internal,
                "unreadable",
                message.clone(),
                "is the URL that of an Agent-Reach gateway, of this version?",
            ),
            Stop::Interrupted(task) => say(
                Exit::Interrupted,
                "interrupted",
                format!("no longer waiting; task {task} goes on"),
                &format!("get back to it with `reachctl wait {task}`, or call it off with `reachctl cancel {task}`"),
            ),
            Stop::Call(error) => Self::of_error(error),
        }
    }

    fn of_error(error: &Error) -> Self {
        if let Some(refusal) = error.refusal() {
            return Self::of_refusal(refusal);
        }
        let message = error.to_string();
        let (exit, name, hint) = match error.task_id() {
            // Of what is not a refusal, only the end of a wait is about a task.
            Some(task) => {
                (Exit::StillRunning, "wait_timeout", format!("it goes on; wait again: `reachctl wait {task}`"))
            }
            None => {
                let hint = "is the URL that of an Agent-Reach gateway, of this version?";
                (Exit::Internal, "unreadable", hint.to_owned())
            }
        };
        Self { exit, message, hints: vec![hint], name, refusal: None }
    }

    /// The gateway said no, or a task did not end well.
    pub(crate) fn of_refusal(refusal: &Refusal) -> Self {
        let mut hints = Vec::new();
        if let Some(pause) = refusal.retry_after {
            hints.push(format!("try again in {}, with the same key if it had one", lasting(pause.into())));
        }
        if let Some(task) = refusal.task_id {
            hints.push(format!("how it got there: `reachctl explain {task}`"));
        }
        hints.extend(remedies(refusal));
        let name = refusal.code.name();
        hints.push(format!("more about it: `reachctl errors {name}`"));
        Self {
            exit: Exit::of(refusal),
            message: format!("{name}: {}", refusal.message),
            hints,
            name,
            refusal: Some(refusal.clone()),
        }
    }

    /// Adds something to know or to do.
    pub(crate) fn note(&mut self, hint: String) {
        self.hints.push(hint);
    }

    /// Whether there is nothing to say.
    pub(crate) fn is_silent(&self) -> bool {
        self.message.is_empty()
    }

    /// For people.
    pub(crate) fn text(&self, look: &Look) -> String {
        let data = self.refusal.as_ref().filter(|refusal| refusal.code == ErrorCode::InvalidConfig);
        let config = data.and_then(|refusal| refusal.data.as_ref()?.read::<ConfigRefused>().ok());
        // The list has all of them; the message would only have the first of them twice.
        let message = config.as_ref().and_then(|refused| config::counted(&self.message, refused));
        let message = message.as_deref().unwrap_or(&self.message);
        let mut text = format!("{} {}\n", look.paint(Tone::Bad, "error:"), clean(message));
        if let Some(refusal) = &self.refusal {
            text.push_str(&suggestions::near(&refusal.suggestions, look));
            if let Some(refused) = &config {
                text.push_str(&config::refused(refused));
            } else if let Some(data) = &refusal.data {
                text.push_str(&format!("  with it came: {}\n", clean(data.get())));
            }
        }
        for hint in &self.hints {
            text.push_str(&format!("  {hint}\n"));
        }
        text
    }

    /// For machines: the error object of the wire. What did not come from the gateway has no number.
    pub(crate) fn json(&self) -> String {
        let Some(refusal) = &self.refusal else {
            let hint = self.hints.join("; ");
            return json!({ "message": self.message, "data": { "code": self.name, "hint": hint } }).to_string();
        };
        let data = ErrorData {
            code: refusal.code.name().to_owned(),
            fault: refusal.code.fault(),
            retry: refusal.retry(),
            retry_after: refusal.retry_after.map(Into::into),
            task_id: refusal.task_id,
            suggestions: refusal.suggestions.clone(),
            details: refusal.data.clone(),
        };
        #[derive(serde::Serialize)]
        struct ErrorObject<'a> {
            code: i32,
            message: &'a str,
            data: ErrorData,
        }
        let object = ErrorObject { code: refusal.code.number(), message: &refusal.message, data };
        serde_json::to_string(&object).unwrap_or_else(|_| json!({ "message": self.message }).to_string())
    }
}

/// What to do about a refusal with this program, where the gateway's words are for all its callers.
fn remedies(refusal: &Refusal) -> Vec<String> {
    let mut remedies = Vec::new();
    if matches!(refusal.code, ErrorCode::Unauthenticated | ErrorCode::TokenExpired | ErrorCode::TokenRevoked) {
        remedies.push("show who you are: a token in AGENT_REACH_TOKEN, or in a file with --token-file FILE".to_owned());
    }
    for (method, command) in [("capability/find", "capabilities"), ("agent/list", "agents")] {
        if refusal.message.contains(&format!("{method} shows")) {
            remedies.push(format!("see `reachctl get {command}`"));
        }
    }
    remedies
}
