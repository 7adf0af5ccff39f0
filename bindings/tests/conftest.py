"""What the tests share: gateways in processes of their own, an agent that serves, and an end to every wait."""

from __future__ import annotations

import asyncio
import faulthandler
import itertools
import os
import threading
from typing import Any, Awaitable, Callable, Iterator, TypeVar

import pytest

from agent_reach import Agent, Client
from agent_reach.testing import Gateway

T = TypeVar("T")

#: Nothing here takes as long unless it hangs; then all stacks are shown.
WITHIN = float(os.environ.get("TEST_WITHIN", "60"))

_numbers = itertools.count(1)


@pytest.fixture(autouse=True)
def an_end() -> Iterator[None]:
    faulthandler.dump_traceback_later(3 * WITHIN, exit=True)
    yield
    faulthandler.cancel_dump_traceback_later()


@pytest.fixture(scope="session")
def gateway() -> Iterator[Gateway]:
    """One gateway for all tests that leave it as it is."""
    with Gateway(process=True) as gateway:
        yield gateway


@pytest.fixture
def own_gateway() -> Iterator[Gateway]:
    """A gateway that the test may kill."""
    with Gateway(process=True) as gateway:
        yield gateway


@pytest.fixture
def name() -> str:
    """A name that no other test has."""
    return f"t{next(_numbers)}"


def run(work: Awaitable[T]) -> T:
    """Runs a coroutine on a loop of its own, and not for ever."""

    async def bounded() -> T:
        return await asyncio.wait_for(work, WITHIN)

    return asyncio.run(bounded())


class Background:
    """An agent that serves on a loop in a thread of its own."""

    def __init__(self, agent: Agent, grace: float = 5) -> None:
        self.agent = agent
        self._grace = grace
        self._ready = threading.Event()
        self._trouble: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except BaseException as error:  # noqa: BLE001
            self._trouble = error
        finally:
            self._ready.set()

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        self._stop = asyncio.Event()
        await self.agent.start()
        self._ready.set()
        await self._stop.wait()
        self.cut_short = await self.agent.drain(self._grace)

    def __enter__(self) -> Background:
        self._thread.start()
        assert self._ready.wait(WITHIN), "the agent does not start"
        if self._trouble is not None:
            raise self._trouble
        return self

    def __exit__(self, *_: Any) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(WITHIN)
        assert not self._thread.is_alive(), "the agent does not stop"


class Desk:
    """An agent with one of each kind of handler, and what its handlers saw."""

    def __init__(self, url: str, name: str, **more: Any) -> None:
        self.id = f"{name}@tests"
        self.agent = agent = Agent(self.id, url=url, description="Serves the tests", **more)
        self.seen: list[Any] = []
        self.began = threading.Event()
        self.let_go = threading.Event()
        self.stopped = threading.Event()

        def offer(**how: Any) -> Callable[[Any], Any]:
            return lambda function: agent.capability(f"{name}_{function.__name__}", **how)(function)

        @offer(effect="read")
        async def echo(value: Any, /) -> Any:
            return value

        @offer(effect="read")
        def count(text: str, letters: bool = False) -> int:
            """Counts the words of a text, or its letters.

            This is not part of the description.
            """
            return len(text) if letters else len(text.split())

        @offer(effect="write")
        async def stamp() -> int:
            self.seen.append("stamp")
            return len(self.seen)

        @offer(effect="read")
        def wait() -> str:
            self.began.set()
            assert self.let_go.wait(WITHIN)
            return "let go"

        @offer(effect="read")
        async def hang() -> None:
            self.began.set()
            try:
                await asyncio.Event().wait()
            finally:
                self.stopped.set()

        @offer(effect="read")
        async def fail(message: str) -> None:
            raise ValueError(message)

    def __getattr__(self, kind: str) -> str:
        return f"{self.id.partition('@')[0]}_{kind}"


@pytest.fixture
def desk(gateway: Gateway, name: str) -> Iterator[Desk]:
    desk = Desk(gateway.url, name)
    with Background(desk.agent, grace=0.2):
        yield desk
        desk.let_go.set()


@pytest.fixture
def client(gateway: Gateway) -> Iterator[Client]:
    with Client(gateway.url) as client:
        yield client
