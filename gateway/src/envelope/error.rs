//! A failure as the error object that leaves: every one carries its name, whose fault it is and whether to
//! try again, in the one form that `schemas/errors/README.md` promises.

use jsonrpsee_types::ErrorObjectOwned;
use reach_schemas::call::ErrorData;
use reach_schemas::{ErrorCode, Failure, TaskId};

/// The error object of a failure; `task_id` names the task that it is about, if there is one.
#[must_use]
pub fn error_of(failure: Failure, task_id: Option<TaskId>) -> ErrorObjectOwned {
    let retry = failure.retry();
    let Failure { code, message, data, retry_after, suggestions } = failure;
    let data = ErrorData {
        code: code.name().to_owned(),
        fault: code.fault(),
        retry,
        retry_after,
        task_id,
        suggestions,
        details: data,
    };
    ErrorObjectOwned::owned(code.number(), message, Some(data))
}

/// The error object of a failure of which there is no more to say than its message.
#[must_use]
pub fn refusal(code: ErrorCode, message: impl Into<String>) -> ErrorObjectOwned {
    error_of(Failure::new(code, message), None)
}
