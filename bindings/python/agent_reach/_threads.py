"""Threads for handlers that block. They are daemons: one that never returns does not keep the program from ending."""

from __future__ import annotations

import asyncio
import queue
import threading
from typing import Any, Callable, Tuple

_IDLE_FOR = 10.0

_Job = Tuple[asyncio.AbstractEventLoop, "asyncio.Future[Any]", Callable[[], Any]]


class Threads:
    """As many threads as there is blocking work. How much there is, the agent's concurrency bounds."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._jobs: queue.SimpleQueue[_Job] = queue.SimpleQueue()
        self._idle = threading.Semaphore(0)

    def run(self, function: Callable[[], Any]) -> asyncio.Future[Any]:
        """Runs a function off the loop; the answer is a future of the running loop."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[Any] = loop.create_future()
        self._jobs.put((loop, future, function))
        if not self._idle.acquire(blocking=False):
            threading.Thread(target=self._work, name=self._name, daemon=True).start()
        return future

    def _work(self) -> None:
        while True:
            try:
                job = self._jobs.get(timeout=_IDLE_FOR)
            except queue.Empty:
                # If the seat was given away meanwhile, a job is on its way.
                if self._idle.acquire(blocking=False):
                    return
                continue
            _do(job)
            del job
            self._idle.release()


def _do(job: _Job) -> None:
    loop, future, function = job
    try:
        result, error = function(), None
    except BaseException as raised:  # noqa: BLE001
        # A future takes no StopIteration, and the thread is not the place for SystemExit.
        is_odd = isinstance(raised, StopIteration) or not isinstance(raised, Exception)
        error = RuntimeError(f"the handler raised {raised!r}") if is_odd else raised
        result = None
    try:
        loop.call_soon_threadsafe(_settle, future, result, error)
    except RuntimeError:
        pass  # The loop is closed: nobody waits any more.


def _settle(future: asyncio.Future[Any], result: Any, error: Any) -> None:
    if future.done():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)
