"""What a handler knows of the attempt that it works on, and what it can say about it."""

from __future__ import annotations

import asyncio
import threading
from contextvars import ContextVar
from datetime import datetime, timezone
from typing import TYPE_CHECKING, Any, Optional, cast

from . import _core
from ._async_client import AsyncClient
from ._client import Client
from ._json import write

if TYPE_CHECKING:
    from ._bridge import Desk

__all__ = ["Context", "current_context"]

_current: ContextVar[Optional[Context]] = ContextVar("agent_reach_context", default=None)


def current_context() -> Optional[Context]:
    """The context of the attempt that the calling code works on. ``None``: of none."""
    return _current.get()


class Context:
    """What a handler knows of the attempt that it works on. Hint an argument of a handler with it to get one."""

    def __init__(
        self, core: _core.Agent, desk: Desk, work: int, delivery: dict[str, Any], loop: asyncio.AbstractEventLoop
    ) -> None:
        self._core = core
        self._desk = desk
        self._work = work
        self._delivery = delivery
        self._loop = loop
        self._stopped = threading.Event()

    @property
    def task_id(self) -> str:
        """The task."""
        return cast(str, self._delivery["task_id"])

    @property
    def capability(self) -> str:
        """What is asked for."""
        return cast(str, self._delivery["capability"])

    @property
    def params(self) -> Any:
        """The parameters, as they came."""
        return self._delivery.get("params")

    @property
    def intent(self) -> Optional[str]:
        """What the caller wants, in words, if it said so."""
        return self._delivery.get("intent")

    @property
    def from_agent(self) -> Optional[str]:
        """Who asks."""
        return self._delivery.get("from_agent")

    @property
    def attempt(self) -> int:
        """Which attempt this is, counted from 1."""
        return cast(int, self._delivery["attempt"])

    @property
    def token(self) -> int:
        """The attempt's fencing token: it grows with each attempt of the task."""
        return cast(int, self._delivery["token"])

    @property
    def idempotency_key(self) -> str:
        """The same over all attempts of the task, and never that of another caller: who asked, and the key that it sent
        (``desk@sales/order-17``), or the task's id. Hand it on to whatever the work changes, so that a second attempt
        changes nothing twice."""
        return cast(str, self._delivery["idempotency_key"])

    @property
    def deadline_at(self) -> datetime:
        """When the whole task is over, by the gateway's clock."""
        return datetime.fromisoformat(self._delivery["deadline_at"].replace("Z", "+00:00"))

    @property
    def time_left(self) -> float:
        """How many seconds that is from now, as far as this machine's clock and the gateway's agree."""
        return max(0.0, (self.deadline_at - datetime.now(timezone.utc)).total_seconds())

    @property
    def traceparent(self) -> Optional[str]:
        """W3C ``traceparent`` of this attempt. Calls made while the handler runs hang under it by themselves."""
        return self._delivery.get("traceparent")

    @property
    def is_cancelled(self) -> bool:
        """Whether the work has been called off. An ``async`` handler is cancelled by itself; one that blocks should look
        here now and then."""
        return self._stopped.is_set()

    def wait_cancelled(self, timeout: float) -> bool:
        """For handlers that block: sleeps, but no longer than until the work is called off. Answers whether it was."""
        return self._stopped.wait(timeout)

    async def progress(self, progress: Any) -> None:
        """Tells how far the work is, as any value that JSON can say. It also gives the attempt its full time anew.

        Raises :class:`StaleToken` and the like if the attempt is no longer ours; it is then stopped too.
        """
        text = write(progress)
        await self._desk.ask(lambda _, ticket: self._core.progress(ticket, self._work, text))

    def report(self, progress: Any) -> None:
        """The same for handlers that block."""
        asyncio.run_coroutine_threadsafe(self.progress(progress), self._loop).result()

    def count_tokens(self, tokens: int) -> None:
        """Counts tokens of a language model that the work took; their sum goes into the task's record."""
        self._core.count_tokens(self._work, tokens)

    @property
    def client(self) -> AsyncClient:
        """A client over the agent's own connection, for asking other agents."""
        return AsyncClient._over(self._shared())

    @property
    def sync_client(self) -> Client:
        """The same for handlers that block."""
        return Client._over(self._shared())

    def _shared(self) -> _core.Client:
        core = self._core.client()
        if core is None:
            raise RuntimeError("the agent does not serve")
        return core
