"""Where the runtime's threads and an event loop meet. Each loop has a mailbox whose file descriptor it watches, so no
thread but the loop's own ever touches its futures."""

from __future__ import annotations

import asyncio
import itertools
import threading
import weakref
from typing import Callable, Dict, Optional

from . import _core
from .errors import AgentReachError, _of_parts, _Parts

_tickets = itertools.count(1)
_desks: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, Desk] = weakref.WeakKeyDictionary()

ANSWER = 0

Letter = Callable[[int, int, Optional[str]], None]


class Desk:
    """Hands letters to those who wait for them, on one event loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop, others: Optional[Letter] = None) -> None:
        self.mailbox = _core.Mailbox()
        # Not the loop itself: it holds this through its reader, and would never be forgotten.
        self._loop = weakref.ref(loop)
        self._waiting: Dict[int, asyncio.Future[str]] = {}
        self._others = others
        loop.add_reader(self.mailbox.fileno(), self._drain)

    def _drain(self) -> None:
        for kind, number, text, parts in self.mailbox.drain():
            if kind == ANSWER:
                self._answer(number, text, parts)
            elif self._others is not None:
                self._others(kind, number, text)

    def _answer(self, ticket: int, text: Optional[str], parts: Optional[_Parts]) -> None:
        future = self._waiting.pop(ticket, None)
        if future is None or future.done():
            return
        if parts is None:
            future.set_result(text or "null")
        else:
            future.set_exception(_of_parts(parts))

    def close(self) -> None:
        """Listens no more."""
        loop = self._loop()
        if loop is not None and not loop.is_closed():
            loop.remove_reader(self.mailbox.fileno())

    async def ask(self, start: Callable[[_core.Mailbox, int], _core.Ticket]) -> str:
        """Starts a call and waits for its answer. Whoever is cancelled meanwhile gives the call up."""
        ticket = next(_tickets)
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._waiting[ticket] = future
        try:
            call = start(self.mailbox, ticket)
        except BaseException:
            self._waiting.pop(ticket, None)
            raise
        try:
            return await future
        except asyncio.CancelledError:
            call.abort()
            raise
        finally:
            self._waiting.pop(ticket, None)


def desk() -> Desk:
    """The desk of the running loop."""
    loop = asyncio.get_running_loop()
    found = _desks.get(loop)
    if found is None:
        found = _desks[loop] = Desk(loop)
    return found


def is_main() -> bool:
    """Whether signals come to this thread."""
    return threading.current_thread() is threading.main_thread()


def unpack(answer: tuple[Optional[str], Optional[_Parts]]) -> str:
    """The text of an answer, or its error."""
    text, parts = answer
    if parts is not None:
        error: AgentReachError = _of_parts(parts)
        raise error
    return text or "null"
