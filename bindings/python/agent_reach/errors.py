"""What can go wrong: one base, and a child for each outcome.

Catch :class:`AgentReachError` where the kind does not matter, and ask it whether the same call can succeed later
(``retryable``), which of the gateway's errors it is (``code``), and which task it is about (``task_id``).
"""

from __future__ import annotations

import json
from typing import Any, Optional, Tuple

from ._types import Suggestion

__all__ = [
    "AgentReachError",
    "ClaimLost",
    "ConfigError",
    "Forbidden",
    "IdempotencyConflict",
    "IdempotencyInFlight",
    "InvalidRequest",
    "NoCandidate",
    "NotFound",
    "OutcomeUnknown",
    "Overloaded",
    "ProtocolError",
    "StaleToken",
    "TaskCancelled",
    "TaskExpired",
    "TaskFailed",
    "Timeout",
    "TransportError",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
    "WrongPhase",
]


class AgentReachError(Exception):
    """Whatever Agent-Reach could not do.

    ``code`` is the gateway's error code, such as ``"no_candidate"``; ``None`` if it did not come from the gateway.
    ``message`` says in words what is wrong. ``data`` is what the agent or the gateway sent with it. ``retryable`` tells
    whether the same call, with the same idempotency key, can succeed later; not before ``retry_after`` seconds, if that
    is given. ``task_id`` is the task that it is about.
    """

    def __init__(
        self,
        message: str,
        *,
        code: Optional[str] = None,
        data: Any = None,
        retryable: bool = False,
        retry_after: Optional[float] = None,
        task_id: Optional[str] = None,
        suggestions: Tuple[Suggestion, ...] = (),
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.data = data
        self.retryable = retryable
        self.retry_after = retry_after
        self.task_id = task_id
        self.suggestions = suggestions

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else self.message

    def __reduce__(self) -> Tuple[Any, ...]:
        return _rebuild, (type(self), self.message, self.__dict__.copy())


def _rebuild(kind: type, message: str, state: dict[str, Any]) -> AgentReachError:
    error: AgentReachError = kind(message)
    error.__dict__.update(state)
    return error


class NoCandidate(AgentReachError):
    """No agent fits. ``suggestions`` names what was near, and what each lacked."""


class Overloaded(AgentReachError):
    """The gateway is full and took nothing on; come back after ``retry_after`` seconds."""


class Unavailable(AgentReachError):
    """The gateway cannot do it now: its store is away, its disk full, or it is about to stop."""


class Timeout(AgentReachError, TimeoutError):
    """The agent did not answer in time."""


class TaskFailed(AgentReachError):
    """The agent failed, refused, answered what does not fit, could not be reached, or was lost."""


class OutcomeUnknown(AgentReachError):
    """A ``write`` may or may not have happened, and was not sent again. Only you can tell."""


class IdempotencyConflict(AgentReachError):
    """The idempotency key was used before, for another request."""


class IdempotencyInFlight(AgentReachError):
    """The first request with this key is not finished, and joining it was not wanted."""


class Forbidden(AgentReachError):
    """The caller may not do this."""


class Unauthenticated(AgentReachError):
    """The gateway does not know who calls: no token, or one that it does not take (any more)."""


class NotFound(AgentReachError, LookupError):
    """No such agent or task, or none that the caller may know of."""


class TaskCancelled(AgentReachError):
    """The task was called off. It has nothing to do with ``asyncio.CancelledError``."""


class TaskExpired(AgentReachError, TimeoutError):
    """The task's deadline passed before any agent finished."""


class StaleToken(AgentReachError):
    """Another attempt has taken over the task."""


class WrongPhase(AgentReachError):
    """The task is in a phase in which this cannot be done."""


class ClaimLost(AgentReachError):
    """Another agent has claimed the task."""


class InvalidRequest(AgentReachError, ValueError):
    """The request itself is wrong; sending it again will not help."""


class WaitTimeout(AgentReachError, TimeoutError):
    """The wait is over and the task is not: it goes on, and ``task_id`` can be waited for again."""


class TransportError(AgentReachError, ConnectionError):
    """The gateway was not reached, or its answer did not come back."""


class ProtocolError(AgentReachError):
    """What came back is not what the gateway promises."""


class ConfigError(AgentReachError, ValueError):
    """An argument or a setting that cannot be used."""


_KINDS: dict[str, type[AgentReachError]] = {
    "no_candidate": NoCandidate,
    "overloaded": Overloaded,
    "unavailable": Unavailable,
    "timeout": Timeout,
    "task_failed": TaskFailed,
    "outcome_unknown": OutcomeUnknown,
    "idempotency_conflict": IdempotencyConflict,
    "idempotency_in_flight": IdempotencyInFlight,
    "forbidden": Forbidden,
    "unauthenticated": Unauthenticated,
    "not_found": NotFound,
    "cancelled": TaskCancelled,
    "expired": TaskExpired,
    "stale_token": StaleToken,
    "wrong_phase": WrongPhase,
    "claim_lost": ClaimLost,
    "invalid": InvalidRequest,
    "wait_timeout": WaitTimeout,
    "transport": TransportError,
    "protocol": ProtocolError,
    "config": ConfigError,
}

_Parts = Tuple[str, Optional[str], str, Optional[str], bool, Optional[float], Optional[str], Optional[str]]


def _of_parts(parts: _Parts) -> AgentReachError:
    kind, code, message, data, retryable, retry_after, task_id, suggestions = parts
    return _KINDS.get(kind, AgentReachError)(
        message,
        code=code,
        data=None if data is None else json.loads(data),
        retryable=retryable,
        retry_after=retry_after,
        task_id=task_id,
        suggestions=tuple(map(Suggestion, json.loads(suggestions))) if suggestions else (),
    )
