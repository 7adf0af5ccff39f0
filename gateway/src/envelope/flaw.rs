//! What can be wrong with a frame itself, before anyone asks what its method is.

use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::ErrorCode;

use super::error::refusal;

/// Why a frame, or one message of a batch, was not accepted.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Flaw {
    /// The bytes are not UTF-8.
    #[error("not UTF-8 at byte {at}; send one JSON value in UTF-8")]
    NotUtf8 {
        /// The first byte that does not fit.
        at: usize,
    },
    /// The text is not JSON.
    #[error("{reason}; send one JSON value in UTF-8")]
    NotJson {
        /// What the parser says, with line and column.
        reason: String,
    },
    /// Arrays and objects nest too deep.
    #[error("nested deeper than {depth_max}; send it flatter, or as a text inside a string")]
    TooDeep {
        /// The depth that is still accepted.
        depth_max: usize,
    },
    /// A message is neither an object nor, as a whole frame, an array.
    #[error("a request is an object, a batch an array of them")]
    NotAnObject,
    /// A batch without messages.
    #[error("a batch holds at least one request")]
    EmptyBatch,
    /// A batch with too many messages.
    #[error("a batch holds at most {batch_max} requests; split it")]
    BatchTooLong {
        /// The number of messages that is still accepted.
        batch_max: usize,
    },
    /// A member that the specification names is given twice.
    #[error("`{name}` is given twice; give it once")]
    Twice {
        /// The member.
        name: &'static str,
    },
    /// A member that the specification does not name is given twice.
    #[error("a member is given twice; give each once")]
    StrangerTwice,
    /// `jsonrpc` is missing or not `"2.0"`.
    #[error("`jsonrpc` must be the string \"2.0\"")]
    Version,
    /// `method` is missing or not a string.
    #[error("`method` must be a string")]
    Method,
    /// `params` is neither an array nor an object.
    #[error("`params` must be an object, or be left out")]
    Params,
    /// `id` is an array, an object or a boolean, or a string that is not Unicode.
    #[error("`id` must be a string or a number; leave it out for a notification")]
    Id,
    /// A message with a method and a result or an error.
    #[error("`method` and `{name}` do not go together; a message asks or answers")]
    AsksAndAnswers {
        /// Which of `result` and `error` came with the method.
        name: &'static str,
    },
    /// A response that is not of the form of one.
    #[error("a response has `id`, and either `result` or an `error` that is an object")]
    BrokenResponse,
    /// A response where nothing was asked.
    #[error("nothing was asked that this response could answer; send a request")]
    StrayResponse,
}

impl Flaw {
    /// The error of the table: a parse error if the text could not be read, else an invalid request.
    #[must_use]
    pub fn code(&self) -> ErrorCode {
        match self {
            Self::NotUtf8 { .. } | Self::NotJson { .. } | Self::TooDeep { .. } => ErrorCode::ParseError,
            Self::NotAnObject
            | Self::EmptyBatch
            | Self::BatchTooLong { .. }
            | Self::Twice { .. }
            | Self::StrangerTwice
            | Self::Version
            | Self::Method
            | Self::Params
            | Self::Id
            | Self::AsksAndAnswers { .. }
            | Self::BrokenResponse
            | Self::StrayResponse => ErrorCode::InvalidRequest,
        }
    }

    /// The error object that tells the caller.
    #[must_use]
    pub fn to_error(&self) -> ErrorObjectOwned {
        refusal(self.code(), self.to_string())
    }
}
