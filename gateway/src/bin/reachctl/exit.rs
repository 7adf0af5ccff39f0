//! How a command ends: the exit codes, and what stops a command before it is done.

use std::io;
use std::time::Duration;

use agent_reach_sdk::{Error, ErrorCode, Refusal, TaskId};

/// The table of exit codes as `--help` shows it.
pub(crate) const TABLE: &str = "\
Exit codes:
    0  done
    1  the task did not end well: failed, expired, cancelled, or a dead letter; or the audit log
       is not what was written
    2  the command line cannot be used
    3  no such agent or task
    4  the gateway refused: nobody fits, forbidden, key used for something else, not valid
    5  it cannot be done now: the gateway is full or ending, or a server does not answer; try again later
    6  no gateway answers
    7  the wait is over, and the work may go on: a task has not ended, or a call was not answered in time
   70  a fault inside, or an answer that cannot be read
  130  interrupted by Ctrl-C while waiting: the task goes on

Environment:
  AGENT_REACH_URL    the gateway, unless --url names it
  AGENT_REACH_TOKEN  the bearer token that shows who calls, unless --token-file names a file with it
  NO_COLOR           no colors, even on a terminal
  COLUMNS            the width of what is printed, unless the terminal tells";

/// How a command ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exit {
    Done,
    TaskFailed,
    AuditBroken,
    Usage,
    NotFound,
    Refused,
    Later,
    NoGateway,
    StillRunning,
    Internal,
    Interrupted,
}

impl Exit {
    pub(crate) const fn code(self) -> u8 {
        match self {
            Self::Done => 0,
            Self::TaskFailed | Self::AuditBroken => 1,
            Self::Usage => 2,
            Self::NotFound => 3,
            Self::Refused => 4,
            Self::Later => 5,
            Self::NoGateway => 6,
            Self::StillRunning => 7,
            Self::Internal => 70,
            Self::Interrupted => 130,
        }
    }

    /// How a command ends that the gateway refused, or a task that did not end well.
    pub(crate) fn of(refusal: &Refusal) -> Self {
        match (Self::of_code(refusal.code), refusal.task_id) {
            // It is about a server or an agent, and there is no task that failed.
            (Self::TaskFailed, None) => {
                let may_pass =
                    [ErrorCode::Unreachable, ErrorCode::Timeout, ErrorCode::AgentLost].contains(&refusal.code);
                if may_pass { Self::Later } else { Self::Refused }
            }
            (exit, _) => exit,
        }
    }

    /// How a command ends that is about a task and was answered with this error.
    pub(crate) const fn of_code(code: ErrorCode) -> Self {
        use ErrorCode as Code;
        match code {
            Code::AgentNotFound | Code::TaskNotFound | Code::WebhookNotFound => Self::NotFound,
            Code::Overloaded | Code::StoreUnavailable | Code::StoreFull | Code::ShuttingDown => Self::Later,
            Code::Internal => Self::Internal,
            Code::AgentFailed
            | Code::InvalidResult
            | Code::Timeout
            | Code::OutcomeUnknown
            | Code::Unreachable
            | Code::Expired
            | Code::AgentRefused
            | Code::AgentLost
            | Code::HumanRefused
            | Code::Cancelled => Self::TaskFailed,
            Code::ParseError
            | Code::InvalidRequest
            | Code::MethodNotFound
            | Code::InvalidParams
            | Code::InvalidCard
            | Code::InvalidConfig
            | Code::InvalidSchema
            | Code::ParamsMismatch
            | Code::Forbidden
            | Code::Unauthenticated
            | Code::TokenExpired
            | Code::TokenRevoked
            | Code::Superseded
            | Code::IdempotencyKeyReused
            | Code::IdempotencyInFlight
            | Code::StaleToken
            | Code::WrongPhase
            | Code::VersionConflict
            | Code::ClaimLost
            | Code::TooLarge
            | Code::NoCandidate => Self::Refused,
        }
    }
}

/// What stops a command before it is done.
#[derive(Debug)]
pub(crate) enum Stop {
    /// Nobody reads our output any more; that is their good right.
    PipeClosed,
    /// The output cannot be written, or the runtime not be started.
    Write(io::Error),
    /// Something on the command line cannot be used.
    Usage(String),
    /// Something that the command line names cannot be read, or is not what it should be.
    Input(String),
    /// No gateway answers at this URL.
    NoGateway { url: String, why: String },
    /// The gateway at this URL took the call, and did not answer it for so long.
    NoAnswer { url: String, waited: Duration },
    /// The call did not succeed.
    Call(Error),
    /// As the other, and there is more to do about it.
    Noted(Box<Stop>, String),
    /// The answer is not what the wire promises.
    Unreadable(String),
    /// Ctrl-C, while this task was waited for.
    Interrupted(TaskId),
}

impl From<io::Error> for Stop {
    fn from(error: io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe { Self::PipeClosed } else { Self::Write(error) }
    }
}
