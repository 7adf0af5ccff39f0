//! The table of error codes: every error that leaves a process has one of these, with its number, name,
//! outcome word, HTTP status, fault and retry hint. One page for each stands in `schemas/errors/`.

use serde::{Deserialize, Serialize};

/// Who has to change something so that it works.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Fault {
    /// The request itself.
    Caller,
    /// The agent that was asked.
    Agent,
    /// The gateway, or what it stands on.
    Gateway,
}

/// Whether sending the same request again can help.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
pub enum Retry {
    /// No: it will fail again.
    Never,
    /// Yes, after a while, with the same idempotency key.
    Later,
    /// Only a person or a caller who knows the task can tell whether it ran.
    Judge,
}

macro_rules! codes {
    ($( $(#[$doc:meta])* $variant:ident = $number:literal, $name:literal, $outcome:literal, $http:literal, $fault:ident, $retry:ident; )*) => {
        /// What went wrong, by name.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[cfg_attr(feature = "json-schema", derive(schemars::JsonSchema))]
        pub enum ErrorCode {
            $( $(#[$doc])* #[serde(rename = $name)] $variant, )*
        }

        impl ErrorCode {
            /// Every code, in the order of the table.
            pub const ALL: &'static [Self] = &[$( Self::$variant, )*];

            /// The JSON-RPC error number. Below -32000: as JSON-RPC 2.0 section 5.1 has it. 1000 to 1999: the caller's
            /// fault, 2000 to 2999: the agent's, 3000 to 3999: the gateway's.
            #[must_use]
            pub const fn number(self) -> i32 {
                match self { $( Self::$variant => $number, )* }
            }

            /// The name in `data.code`, in problem bodies and in logs.
            #[must_use]
            pub const fn name(self) -> &'static str {
                match self { $( Self::$variant => $name, )* }
            }

            /// The outcome word of a task that ends so.
            #[must_use]
            pub const fn outcome(self) -> &'static str {
                match self { $( Self::$variant => $outcome, )* }
            }

            /// The HTTP status on REST routes.
            #[must_use]
            pub const fn http_status(self) -> u16 {
                match self { $( Self::$variant => $http, )* }
            }

            /// The page of the documentation, in Markdown.
            #[must_use]
            pub const fn page(self) -> &'static str {
                match self { $( Self::$variant => include_str!(concat!("../errors/", $name, ".md")), )* }
            }

            /// Who has to change something.
            #[must_use]
            pub const fn fault(self) -> Fault {
                match self { $( Self::$variant => Fault::$fault, )* }
            }

            /// Whether to send it again.
            #[must_use]
            pub const fn retry(self) -> Retry {
                match self { $( Self::$variant => Retry::$retry, )* }
            }
        }
    };
}

codes! {
    /// The text is not JSON, not UTF-8, or nested too deeply.
    ParseError = -32700, "parse_error", "REJECT_MALFORMED", 400, Caller, Never;
    /// The JSON is not a JSON-RPC 2.0 request.
    InvalidRequest = -32600, "invalid_request", "REJECT_MALFORMED", 400, Caller, Never;
    /// No such method or route.
    MethodNotFound = -32601, "method_not_found", "REJECT_MALFORMED", 404, Caller, Never;
    /// The method's own parameters are wrong: a field is missing, unknown, or of the wrong form.
    InvalidParams = -32602, "invalid_params", "REJECT_MALFORMED", 422, Caller, Never;
    /// A fault of the gateway that it did not foresee.
    Internal = -32603, "internal", "REACH_INTERNAL", 500, Gateway, Later;

    /// The agent card cannot be accepted; the message says which field and why.
    InvalidCard = 1001, "invalid_card", "REJECT_MALFORMED", 422, Caller, Never;
    /// A schema in the card is not a JSON Schema that can be used.
    InvalidSchema = 1002, "invalid_schema", "REJECT_MALFORMED", 422, Caller, Never;
    /// The task's parameters do not fit the capability's input schema.
    ParamsMismatch = 1003, "params_mismatch", "REJECT_PARAMS", 422, Caller, Never;
    /// No such agent, or none that the caller may know of.
    AgentNotFound = 1004, "agent_not_found", "NOT_FOUND", 404, Caller, Never;
    /// No such task, or none that the caller may see.
    TaskNotFound = 1005, "task_not_found", "NOT_FOUND", 404, Caller, Never;
    /// The caller may not do this.
    Forbidden = 1006, "forbidden", "REJECT_ACL", 403, Caller, Never;
    /// The idempotency key was used for another request.
    IdempotencyKeyReused = 1007, "idempotency_key_reused", "REJECT_KEY_REUSED", 422, Caller, Never;
    /// The first request with this key is not finished, and the caller asked not to join it.
    IdempotencyInFlight = 1008, "idempotency_in_flight", "REJECT_IN_FLIGHT", 409, Caller, Later;
    /// The fencing token is older than the task's: another attempt has taken over.
    StaleToken = 1009, "stale_token", "REJECT_STALE", 409, Caller, Never;
    /// The task is in a phase in which this cannot be done.
    WrongPhase = 1010, "wrong_phase", "REJECT_PHASE", 409, Caller, Never;
    /// Another agent has claimed the task.
    ClaimLost = 1011, "claim_lost", "REJECT_CLAIMED", 409, Caller, Never;
    /// The body, message or value is larger than the limit that the message names.
    TooLarge = 1012, "too_large", "REJECT_TOO_LARGE", 413, Caller, Never;
    /// The task was cancelled.
    Cancelled = 1013, "cancelled", "REACH_CANCELLED", 409, Caller, Never;
    /// No such webhook.
    WebhookNotFound = 1014, "webhook_not_found", "NOT_FOUND", 404, Caller, Never;
    /// The configuration file is wrong, or says what only a restart can change; nothing was changed.
    InvalidConfig = 1030, "invalid_config", "REJECT_MALFORMED", 422, Caller, Never;
    /// Another change was first: what was to be replaced is not what stands.
    VersionConflict = 1040, "version_conflict", "REJECT_VERSION", 409, Caller, Never;
    /// The caller does not show who it is, or not in a way that can be believed.
    Unauthenticated = 1020, "unauthenticated", "REJECT_AUTH", 401, Caller, Never;
    /// The token was good once; its time is over.
    TokenExpired = 1021, "token_expired", "REJECT_AUTH", 401, Caller, Never;
    /// The token was revoked.
    TokenRevoked = 1022, "token_revoked", "REJECT_AUTH", 401, Caller, Never;
    /// Another copy of the agent has registered since, and this one is the agent no more.
    Superseded = 1023, "superseded", "REJECT_AUTH", 401, Caller, Never;

    /// No agent fits; `data.suggestions` names what is near and what each lacks.
    NoCandidate = 2001, "no_candidate", "ROUTING_NO_CANDIDATE", 503, Agent, Later;
    /// The agent answered that it failed.
    AgentFailed = 2002, "agent_failed", "REACH_FAILED", 502, Agent, Never;
    /// The agent's result does not fit its own output schema, or is not JSON.
    InvalidResult = 2003, "invalid_result", "REACH_FAILED", 502, Agent, Never;
    /// The agent did not answer in time.
    Timeout = 2004, "timeout", "REACH_TIMEOUT", 504, Agent, Later;
    /// A `write` may or may not have happened; it was not sent again.
    OutcomeUnknown = 2005, "outcome_unknown", "REACH_UNKNOWN", 502, Agent, Judge;
    /// The agent could not be reached; nothing was started.
    Unreachable = 2006, "unreachable", "REACH_UNREACHABLE", 502, Agent, Later;
    /// The deadline passed before any agent finished.
    Expired = 2007, "expired", "REACH_TIMEOUT", 504, Agent, Later;
    /// The agent refused the work before it began.
    AgentRefused = 2008, "agent_refused", "REACH_REFUSED", 502, Agent, Later;
    /// The agent went away while it worked.
    AgentLost = 2009, "agent_lost", "REACH_LOST", 502, Agent, Later;
    /// No agent could do it, and the person who was asked in the end refused it.
    HumanRefused = 2010, "human_refused", "REACH_REFUSED", 502, Agent, Never;

    /// Full: come back after `retry_after`. Nothing was taken on.
    Overloaded = 3001, "overloaded", "REJECT_OVERLOADED", 429, Gateway, Later;
    /// The store cannot be read or written just now. Nothing was taken on.
    StoreUnavailable = 3002, "store_unavailable", "REJECT_STORE", 503, Gateway, Later;
    /// The disk is full. Nothing was taken on.
    StoreFull = 3003, "store_full", "REJECT_STORE", 507, Gateway, Later;
    /// The gateway is about to stop.
    ShuttingDown = 3004, "shutting_down", "REJECT_DRAINING", 503, Gateway, Later;
}

impl ErrorCode {
    /// Whether to send it again, by whether the failure says when: a `no_candidate` that does not is one that no agent
    /// that is known could come to fit, however long its caller waits.
    #[must_use]
    pub const fn retry_of(self, names_a_time: bool) -> Retry {
        if matches!(self, Self::NoCandidate) && !names_a_time { Retry::Never } else { self.retry() }
    }

    /// The code with this number.
    #[must_use]
    pub fn by_number(number: i32) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.number() == number)
    }

    /// The code with this name.
    #[must_use]
    pub fn by_name(name: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|code| code.name() == name)
    }
}

/// The page that lists all errors, in Markdown.
pub const INDEX: &str = include_str!("../errors/README.md");

/// The outcome word of a task that an agent answered.
pub const REACH_OK: &str = "REACH_OK";
/// The outcome word of a task that a fallback answered; `fallback_from` names what was asked first.
pub const REACH_FALLBACK: &str = "REACH_FALLBACK";

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn numbers_and_names_are_single_and_tell_the_fault() {
        let numbers: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.number()).collect();
        let names: BTreeSet<_> = ErrorCode::ALL.iter().map(|code| code.name()).collect();
        assert_eq!((numbers.len(), names.len()), (ErrorCode::ALL.len(), ErrorCode::ALL.len()));
        for code in ErrorCode::ALL {
            let expected = match code.number() {
                1000..2000 => Fault::Caller,
                2000..3000 => Fault::Agent,
                3000..4000 => Fault::Gateway,
                _ => continue,
            };
            assert_eq!(code.fault(), expected, "{code:?}");
            assert_eq!(ErrorCode::by_name(code.name()), Some(*code));
        }
    }

    #[test]
    fn every_code_has_its_page() {
        for code in ErrorCode::ALL {
            let path = format!("{}/errors/{}.md", env!("CARGO_MANIFEST_DIR"), code.name());
            let page = std::fs::read_to_string(&path).unwrap_or_default();
            assert!(page.contains(&code.number().to_string()), "{path} is missing or does not name {}", code.number());
        }
    }
}
