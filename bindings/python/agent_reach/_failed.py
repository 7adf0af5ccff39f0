"""How a handler says that its work failed."""

from __future__ import annotations

from datetime import timedelta
from typing import Any, Optional

from ._checked import Seconds, in_seconds


class WorkFailed(Exception):
    """Raise it in a handler: the work failed, and would again. So does any other exception, with its own words.

    ``data`` is anything more that the caller should see.
    """

    _kind = "final"

    def __init__(self, message: str, *, data: Any = None) -> None:
        super().__init__(message)
        self.message = message
        self.data = data
        self._after: Optional[float] = None


class TryAgain(WorkFailed):
    """Raise it in a handler: it failed, and another try, here or elsewhere, can help; not before ``after`` seconds.

    Say ``started=False`` only if nothing at all has happened: then even a ``write`` is tried again.
    """

    def __init__(
        self, message: str, *, after: Optional[Seconds] = None, started: bool = True, data: Any = None
    ) -> None:
        super().__init__(message, data=data)
        self._after = None if after is None else _wait(after)
        self._kind = "retryable" if started else "not_started"


def _wait(after: Seconds) -> float:
    seconds = after.total_seconds() if isinstance(after, timedelta) else after
    # A time that has passed meanwhile is no mistake.
    return 0.0 if isinstance(seconds, (int, float)) and seconds < 0 else in_seconds("after", after)


class Poison(WorkFailed):
    """Raise it in a handler: the task breaks whoever takes it. It goes to the dead letters at once."""

    _kind = "poison"
