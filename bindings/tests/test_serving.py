"""Serving: handlers of all kinds, by every way that work can come."""

from __future__ import annotations

import asyncio
import dataclasses
import datetime
import enum
import sys
import threading
import time
from typing import Any, Dict, List, Literal, Optional

import pytest

import agent_reach
from agent_reach import Agent, AsyncClient, Client, Context, current_context
from agent_reach.testing import Gateway
from conftest import WITHIN, Background, Desk, run


@dataclasses.dataclass
class Place:
    """Somewhere."""

    city: str
    zip: Optional[str] = None


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Parcel:
    to: List[Place]
    colour: Colour = Colour.RED


# An agent that pulls hears with its heartbeat that work is called off.
WAYS: List[Dict[str, Any]] = [
    {"via": "websocket"},
    {"via": "queue", "heartbeat": 0.3},
    {"via": "http", "listen": "127.0.0.1:0"},
]


@pytest.mark.parametrize("way", WAYS, ids=[way["via"] for way in WAYS])
def test_every_way_brings_work_and_results(gateway: Gateway, name: str, way: Dict[str, Any]) -> None:
    desk = Desk(gateway.url, name, **way)
    with Background(desk.agent) as background, Client(gateway.url) as client:
        tasks = [client.submit(desk.count, {"text": "one " * n}) for n in range(20)]
        assert [client.wait_for_result(task).result for task in tasks] == list(range(20))
        with pytest.raises(agent_reach.TaskFailed, match="ValueError: told"):
            client.reach(desk.fail, {"message": "told"})
        task = client.submit(desk.hang, {})
        assert desk.began.wait(WITHIN)
        client.cancel(task)
        assert desk.stopped.wait(WITHIN), "a handler hears that its work is called off"
    assert background.cut_short == 0


def test_parameters_become_what_the_hints_promise(gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_send", effect="read")
    def send(parcel: Parcel, context: Context) -> Parcel:
        assert isinstance(parcel.to[0], Place) and parcel.colour is Colour.RED
        assert context.params["to"][0]["city"] == parcel.to[0].city
        return dataclasses.replace(parcel, to=parcel.to[::-1])

    @agent.capability(f"{name}_fields", effect="read")
    async def fields(place: Place, kind: Literal["a", "b"] = "a", *, many: int = 1) -> List[Place]:
        return [place] * many

    with Background(agent), Client(gateway.url) as client:
        sent = client.reach(f"{name}_send", Parcel([Place("Oslo"), Place("Rome", "00100")]))
        assert sent.result == {"to": [{"city": "Rome", "zip": "00100"}, {"city": "Oslo", "zip": None}], "colour": "red"}
        assert (
            client.reach(f"{name}_fields", {"place": {"city": "Bern"}, "many": 2}).result
            == [{"city": "Bern", "zip": None}] * 2
        )
        with pytest.raises(agent_reach.InvalidRequest, match="kind"):
            client.reach(f"{name}_fields", {"place": {"city": "Bern"}, "kind": "c"})
        with pytest.raises(agent_reach.InvalidRequest):
            client.reach(f"{name}_send", {"to": [{"town": "Oslo"}]})


def test_a_handler_that_blocks_holds_nobody_up(desk: Desk, client: Client) -> None:
    blocked = client.submit(desk.wait, {})
    assert desk.began.wait(WITHIN)
    assert client.reach(desk.echo, 1).result == 1
    assert client.reach(desk.count, {"text": "another thread"}).result == 2
    desk.let_go.set()
    done = client.wait_for_result(blocked)
    assert done.result == "let go" and len(done.attempts) == 1


def test_no_more_run_at_once_than_were_declared(gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url, max_concurrency=3)
    now, most, lock = 0, 0, threading.Lock()

    @agent.capability(f"{name}_busy", effect="read")
    def busy() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        time.sleep(0.02)
        with lock:
            now -= 1

    with Background(agent), Client(gateway.url) as client:
        tasks = [client.submit(f"{name}_busy") for _ in range(20)]
        for task in tasks:
            client.wait_for_result(task)
    assert 1 < most <= 3


def test_a_handler_that_never_returns_is_left_behind(gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url, max_concurrency=1)
    called_off = threading.Event()
    for_ever = threading.Event()
    calls: List[int] = []

    @agent.capability(f"{name}_stuck", effect="read")
    def stuck(context: Context) -> str:
        calls.append(1)
        if len(calls) > 1:
            return "the next one runs"
        assert context.wait_cancelled(WITHIN) and context.is_cancelled
        called_off.set()
        for_ever.wait()
        return "never"

    with Background(agent), Client(gateway.url) as client:
        task = client.submit(f"{name}_stuck", timeout=300, attempt_timeout=300)
        while not calls:
            time.sleep(0.01)
        client.cancel(task)
        assert called_off.wait(WITHIN)
        # Its seat is free once the grace is over, though its thread is not.
        assert client.reach(f"{name}_stuck", timeout=WITHIN).result == "the next one runs"
    for_ever.set()


def test_what_handlers_raise_is_told_and_the_agent_goes_on(gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url)
    raised: Dict[str, BaseException] = {
        "value": ValueError("bad \udc80 text"),
        "stop": StopIteration("early"),
        "exit": SystemExit(3),
        "recursion": RecursionError("deep"),
        "data": agent_reach.WorkFailed("told", data=object()),
        "group": asyncio.TimeoutError(),
    }

    @agent.capability(f"{name}_raise", effect="read")
    def raiser(kind: str) -> None:
        raise raised[kind]

    @agent.capability(f"{name}_odd", effect="read")
    async def odd(kind: str) -> Any:
        loop: List[Any] = []
        loop.append(loop)
        return {"object": object(), "nan": float("nan"), "loop": loop, "half": "\ud800"}[kind]

    @agent.capability(f"{name}_when", effect="read")
    def when(day: datetime.date) -> str:
        return day.isoformat()

    with Background(agent), Client(gateway.url) as client:
        # A format is no part of what the gateway holds parameters to.
        with pytest.raises(agent_reach.TaskFailed, match="^agent_failed: params: .*tomorrow"):
            client.reach(f"{name}_when", {"day": "tomorrow"})
        assert client.reach(f"{name}_when", {"day": "2026-11-30"}).result == "2026-11-30"
        for kind in raised:
            with pytest.raises(agent_reach.TaskFailed):
                client.reach(f"{name}_raise", {"kind": kind})
        for kind in ("object", "nan", "loop", "half"):
            with pytest.raises(agent_reach.TaskFailed, match="result is not JSON"):
                client.reach(f"{name}_odd", {"kind": kind})


def test_what_a_context_knows(gateway: Gateway, name: str) -> None:
    agent = Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_look", effect="read")
    def look(context: Context) -> Dict[str, Any]:
        assert current_context() is context
        context.report({"half": True})
        inner = context.sync_client.reach(f"{name}_inner")
        return {
            "task": context.task_id, "attempt": context.attempt, "token": context.token, "key": context.idempotency_key,
            "from": context.from_agent, "left": context.time_left, "inner": inner.result, "words": context.intent,
        }  # fmt: skip

    @agent.capability(f"{name}_inner", effect="read")
    async def inner(context: Context) -> Any:
        asked = await context.client.agents(namespace="tests")
        return [context.from_agent, len(asked) > 0, context.traceparent]

    with Background(agent), Client(gateway.url, from_agent="asker@tests") as client:
        task = client.reach(f"{name}_look", timeout=30, idempotency_key=f"{name}-key", intent="look around")
        told = task.result
    assert told["task"] == task.id and told["attempt"] == 1 and told["token"] == 1
    assert told["key"] == f"asker@tests/{name}-key" and told["from"] == "asker@tests" and 0 < told["left"] <= 31
    assert told["words"] == "look around"
    sender, has_agents, trace = told["inner"]
    # The agent asks in its own name, and what it asks hangs under the same trace.
    assert sender == agent.agent_id and has_agents and trace.split("-")[1]


def test_calls_within_a_handler_hang_under_its_attempt(
    gateway: Gateway, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # As in a program that does not use OpenTelemetry.
    monkeypatch.delitem(sys.modules, "opentelemetry.trace", raising=False)
    agent = Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_outer", effect="read")
    async def outer(context: Context) -> List[Any]:
        async with AsyncClient(gateway.url) as other:
            return [context.traceparent, (await other.reach(f"{name}_inner")).result]

    @agent.capability(f"{name}_inner", effect="read")
    def inner(context: Context) -> Any:
        return context.traceparent

    trace = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
    with Background(agent), Client(gateway.url) as client:
        mine, below = client.reach(f"{name}_outer", traceparent=trace).result
    assert mine.split("-")[1] == below.split("-")[1] == trace.split("-")[1]
    assert len({trace.split("-")[2], mine.split("-")[2], below.split("-")[2]}) == 3


def test_draining_finishes_what_runs_and_takes_no_more(gateway: Gateway, name: str) -> None:
    desk = Desk(gateway.url, name)

    async def on_loop() -> int:
        await desk.agent.start()
        async with AsyncClient(gateway.url) as client:
            task = await client.submit(desk.wait, {})
            await asyncio.to_thread(desk.began.wait, WITHIN)
            draining = asyncio.ensure_future(desk.agent.drain(grace=WITHIN))
            while (await client.agent(desk.id)).state != "draining":
                await asyncio.sleep(0.01)
            with pytest.raises(agent_reach.AgentReachError):
                await client.reach(desk.echo, 1, timeout=0.3)
            assert not draining.done()
            desk.let_go.set()
            assert (await client.wait_for_result(task)).result == "let go"
            return await draining

    assert run(on_loop()) == 0


def test_draining_cuts_short_what_does_not_end(gateway: Gateway, name: str) -> None:
    desk = Desk(gateway.url, name)

    async def on_loop() -> None:
        await desk.agent.start()
        async with AsyncClient(gateway.url) as client:
            task = await client.submit(desk.hang, {}, tries=1)
            await asyncio.to_thread(desk.began.wait, WITHIN)
            assert desk.agent.load == 1
            assert await desk.agent.drain(grace=0.05) == 1
            assert desk.stopped.is_set()
            with pytest.raises(agent_reach.AgentReachError):
                await client.wait_for_result(task, timeout=10)

    run(on_loop())


def test_a_card_that_is_refused_is_told(gateway: Gateway, name: str) -> None:
    empty = Agent(f"{name}@tests", url=gateway.url)
    wrong = Agent(f"{name}@tests", url=gateway.url, card={"no_such_field": 1})
    bad = Agent(f"{name}@tests", url=gateway.url)
    bad.capability("bad", effect="read", input_schema={"type": 7}, output_schema={})(lambda: None)
    for agent, kind in ((empty, agent_reach.InvalidRequest), (bad, agent_reach.InvalidRequest), (wrong, ValueError)):
        with pytest.raises(kind):
            run(agent.start())


def test_an_agent_can_start_again_after_it_has_drained(gateway: Gateway, name: str) -> None:
    desk = Desk(gateway.url, name)
    with Client(gateway.url) as client:
        for _ in range(2):
            with Background(desk.agent):
                assert client.reach(desk.echo, "here").result == "here"


def test_serving_ends_when_it_is_cancelled(gateway: Gateway, name: str) -> None:
    desk = Desk(gateway.url, name)

    async def on_loop() -> None:
        serving = asyncio.ensure_future(desk.agent.serve(grace=1))
        async with AsyncClient(gateway.url) as client:
            while not desk.agent.is_serving:
                await asyncio.sleep(0.01)
            assert (await client.reach(desk.echo, 5)).result == 5
            serving.cancel()
            with pytest.raises(asyncio.CancelledError):
                await serving
            with pytest.raises(agent_reach.NotFound):
                await client.agent(desk.id)

    run(on_loop())
