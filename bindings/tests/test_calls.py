"""Every call, over both faces and both transports, against a real gateway."""

from __future__ import annotations

import inspect
import os
import subprocess
import sys
from datetime import timedelta
from typing import Any

import pytest

import agent_reach
from agent_reach import AsyncClient, Client, NotFound, Task, key_of
from agent_reach.testing import Gateway
from conftest import WITHIN, Background, Desk, run
from faces import FACES


@pytest.fixture(params=[make for _, make in FACES], ids=[name for name, _ in FACES])
def face(request: Any, gateway: Gateway) -> Any:
    return request.param(gateway.url)


def test_submit_then_wait(face: Any, desk: Desk) -> None:
    task = face.submit(desk.count, {"text": "one two three"}, timeout=timedelta(seconds=30))
    assert isinstance(task, Task) and not task.is_replayed
    done = face.wait_for_result(task)
    assert (done.result, done.phase, done.status_code) == (3, "completed", "REACH_OK")
    assert (done.id, done.agent, done.capability) == (task.id, desk.id, desk.count)
    assert done.is_final and not done.is_fallback and done.failure is None
    assert done.deadline_at - done.created_at == timedelta(seconds=30)
    assert done.finished_at >= done.created_at and done.latency_ms is not None
    assert face.wait_for_result(task.id, timeout=5).result == 3
    assert face.get(task).result == 3


def test_reach_carries_any_json_letter_by_letter(face: Any, desk: Desk) -> None:
    value = {"big": 123456789012345678901234567890, "f": 1.5, "text": "统计 \u00e9\n", "none": None, "list": [True, []]}
    assert face.reach(desk.echo, value).result == value
    assert face.reach(to_agent=desk.id, capability=desk.echo, params="plain", idempotency_key=False).result == "plain"


def test_a_key_gives_one_task(face: Any, desk: Desk) -> None:
    key = key_of("stamp", desk.id, type(face).__name__, id(face))
    first = face.submit(desk.stamp, {}, idempotency_key=key)
    again = face.reach(desk.stamp, {}, idempotency_key=key)
    assert (again.id, again.idempotency_key, again.is_replayed) == (first.id, key, True)
    assert desk.seen == ["stamp"]


def test_resolve_and_discover_and_explain(face: Any, desk: Desk) -> None:
    there = face.resolve(desk.count, {"text": "a"})
    assert (there.agent_id, there.capability) == (desk.id, desk.count)
    assert there.endpoints[0]["protocol"] == "websocket" and there.decision["chosen"]["agent_id"] == desk.id
    found = {one.name: one for one in face.discover(namespace="tests", limit=1000) if one.agent_id == desk.id}
    assert found[desk.count].description == "Counts the words of a text, or its letters."
    assert found[desk.count].effect == "read" and found[desk.count].is_available
    assert found[desk.count].input_schema["properties"]["letters"] == {"type": "boolean", "default": False}
    assert found[desk.count].output_schema == {"type": "integer"}
    assert found[desk.stamp].effect == "write"
    done = face.reach(desk.count, {"text": "a b", "letters": True})
    explained = face.explain(done)
    assert explained.task.result == 3 and explained.record["status_code"] == "REACH_OK"
    assert explained.decisions[0]["chosen"] == {"agent_id": desk.id, "capability": desk.count}


def test_agents_and_tasks(face: Any, desk: Desk) -> None:
    assert face.agent(desk.id).state == "alive"
    agents = {one.agent_id: one for one in face.agents(namespace="tests", limit=1000)}
    assert agents[desk.id].card["description"] == "Serves the tests"
    done = face.reach(desk.stamp, {})
    listed = face.tasks(agent_id=desk.id, phase="completed", limit=1)
    assert [task.id for task in listed] == [done.id]
    assert face.drain(desk.id) == 0
    assert face.agent(desk.id).state == "draining"
    with pytest.raises(NotFound):
        face.agent("nobody@tests")


def test_cancel_reaches_the_handler(face: Any, desk: Desk) -> None:
    task = face.submit(desk.hang, {})
    assert desk.began.wait(WITHIN)
    assert face.cancel(task).phase == "cancelled"
    assert desk.stopped.wait(WITHIN)
    assert face.cancel(task).phase == "cancelled"


def test_dead_letters_and_redrive(face: Any, desk: Desk, name: str) -> None:
    broken = agent_reach.Agent(f"{name}poison@tests", url=face._url.replace("ws:", "http:"))
    state = {"is_broken": True}

    @broken.capability(f"{name}_break", effect="read")
    async def work() -> str:
        if state["is_broken"]:
            raise agent_reach.Poison("it breaks me")
        return "mended"

    with Background(broken):
        task = face.submit(f"{name}_break", {})
        with pytest.raises(agent_reach.AgentReachError, match="it breaks me"):
            face.wait_for_result(task)
        letters = face.dead_letters(agent_id=broken.agent_id)
        assert [letter.id for letter in letters] == [task.id]
        assert face.dead_letter(task).task.phase == "dead_lettered"
        dry = face.redrive(capability=f"{name}_break", dry_run=True)
        assert (dry.task_ids, dry.matched) == ([], 1)
        state["is_broken"] = False
        assert face.redrive(task).task_ids == [task.id]
        assert face.wait_for_result(task).result == "mended"


def test_progress_is_told_until_the_end(face: Any, gateway: Gateway, name: str) -> None:
    agent = agent_reach.Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_steps", effect="read")
    async def steps(context: agent_reach.Context) -> str:
        for step in range(3):
            await context.progress({"step": step})
        context.count_tokens(40)
        context.count_tokens(2)
        return "arrived"

    with Background(agent):
        task = face.submit(f"{name}_steps")
        views = face.progress(task)
    assert views[-1].phase == "completed" and views[-1].result == "arrived" and views[-1].token_count == 42
    told = [view.progress["step"] for view in views if view.progress is not None]
    assert told == sorted(told) and told[-1] == 2


def test_any_method_can_be_called(face: Any) -> None:
    assert "agents" in face.call("agent/list", {"limit": 1})
    assert face.call("metrics/overview")


def test_both_faces_are_the_same_table() -> None:
    def table(face: type) -> dict[str, str]:
        names = {"aclose": "close", "__aenter__": "__enter__", "__aexit__": "__exit__"}
        functions = inspect.getmembers(face, inspect.isfunction)
        told = {names.get(name, name): function for name, function in functions if name not in ("_ask",)}
        sign = {name: str(inspect.signature(function)) for name, function in told.items()}
        docs = {name: (function.__doc__ or "") for name, function in told.items() if name != "reach"}
        return {**sign, **{f"{name}.doc": text for name, text in docs.items()}}

    plain, asynchronous = table(Client), table(AsyncClient)
    asynchronous["progress"] = asynchronous["progress"].replace("AsyncIterator", "Iterator")
    assert plain == asynchronous


def test_an_unknown_option_is_told_at_once(face: Any) -> None:
    with pytest.raises(TypeError, match="deadline_ms"):
        face.submit("x", deadline_ms=3)


def test_settings_come_from_the_environment(gateway: Gateway) -> None:
    script = "import agent_reach; print(agent_reach.Client().call('agent/list', {'limit': 1}))"
    environment = {**os.environ, "AGENT_REACH_URL": gateway.url}
    told = subprocess.run(
        [sys.executable, "-c", script], env=environment, capture_output=True, text=True, timeout=WITHIN
    )
    assert told.returncode == 0 and "agents" in told.stdout, told.stderr


def test_one_client_is_shared_by_loops_threads_and_tasks(gateway: Gateway, desk: Desk) -> None:
    import concurrent.futures

    shared, plain = AsyncClient(gateway.url), Client(gateway.url)

    async def on_loop(start: int) -> list[Any]:
        import asyncio

        calls = (shared.reach(desk.echo, start + n) for n in range(10))
        mixed = asyncio.to_thread(plain.reach, desk.echo, "from a thread")
        told = await asyncio.gather(mixed, *calls)
        return [task.result for task in told]

    with concurrent.futures.ThreadPoolExecutor(8) as threads:
        loops = [threads.submit(lambda n=n: run(on_loop(100 * n))) for n in range(4)]
        calls = [threads.submit(plain.reach, desk.echo, n) for n in range(20)]
        assert [call.result(WITHIN).result for call in calls] == list(range(20))
        for n, loop in enumerate(loops):
            assert loop.result(WITHIN) == ["from a thread", *range(100 * n, 100 * n + 10)]
    plain.close()
    with pytest.raises(agent_reach.ConfigError, match="closed"):
        plain.get("01890a5d-ac96-774b-bcce-b302099a8057")
