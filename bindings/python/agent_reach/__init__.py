"""Agent-Reach: say what you want, and the gateway finds the live agent that can do it.

>>> from agent_reach import Client
>>> with Client() as reach:                                                   # doctest: +SKIP
...     print(reach.reach("count_words", {"text": "one two three"}).result)
3
"""

from __future__ import annotations

import atexit as _atexit

from . import _core
from ._async_client import AsyncClient
from ._calls import Ask, key_of
from ._client import Client
from ._context import Context, current_context
from ._logging import log_to_logging
from ._types import (
    AgentStatus,
    Attempt,
    Explanation,
    Failure,
    Found,
    Lack,
    Redriven,
    Registered,
    Resolved,
    Suggestion,
    Task,
)
from .agent import Agent, Poison, TryAgain, WorkFailed
from .errors import (
    AgentReachError,
    ClaimLost,
    ConfigError,
    Forbidden,
    IdempotencyConflict,
    IdempotencyInFlight,
    InvalidRequest,
    NoCandidate,
    NotFound,
    OutcomeUnknown,
    Overloaded,
    ProtocolError,
    StaleToken,
    TaskCancelled,
    TaskExpired,
    TaskFailed,
    Timeout,
    TransportError,
    Unauthenticated,
    Unavailable,
    WaitTimeout,
    WrongPhase,
)

__version__: str = _core.VERSION

__all__ = [
    "Agent",
    "AgentReachError",
    "AgentStatus",
    "Ask",
    "AsyncClient",
    "Attempt",
    "ClaimLost",
    "Client",
    "ConfigError",
    "Context",
    "Explanation",
    "Failure",
    "Forbidden",
    "Found",
    "IdempotencyConflict",
    "IdempotencyInFlight",
    "InvalidRequest",
    "Lack",
    "NoCandidate",
    "NotFound",
    "OutcomeUnknown",
    "Overloaded",
    "Poison",
    "ProtocolError",
    "Redriven",
    "Registered",
    "Resolved",
    "StaleToken",
    "Suggestion",
    "Task",
    "TaskCancelled",
    "TaskExpired",
    "TaskFailed",
    "Timeout",
    "TransportError",
    "TryAgain",
    "Unauthenticated",
    "Unavailable",
    "WaitTimeout",
    "WorkFailed",
    "WrongPhase",
    "current_context",
    "key_of",
    "log_to_logging",
]

# Threads that wait in the core must be back before the interpreter is gone.
_atexit.register(_core.shutdown)
