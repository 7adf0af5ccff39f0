"""Life and death: restarts of the gateway, many waits, cancelled tasks, signals, forks, and interpreters that end."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
import time
from typing import Any, List

import pytest

import agent_reach
from agent_reach import AsyncClient, Client
from agent_reach.testing import Gateway
from conftest import WITHIN, Background, Desk, run
from faces import FACES, over_ws


def start(script: str, url: str) -> subprocess.Popen[str]:
    """A program of its own that uses the SDK."""
    environment = {**os.environ, "AGENT_REACH_URL": url, "PYTHONFAULTHANDLER": "1", "PYTHONUNBUFFERED": "1"}
    command = [sys.executable, "-X", "dev", "-c", textwrap.dedent(script)]
    pipes: Any = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    return subprocess.Popen(command, env=environment, **pipes)


def ended(process: subprocess.Popen[str]) -> tuple[int, str, str]:
    try:
        out, err = process.communicate(timeout=WITHIN)
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGABRT)
        out, err = process.communicate()
        raise AssertionError(f"it does not end:\n{out}\n{err}") from None
    return process.returncode, out, err


@pytest.mark.parametrize(("transport", "make"), FACES, ids=[name for name, _ in FACES])
def test_a_waiting_caller_gets_its_result_over_a_restart(
    own_gateway: Gateway, name: str, transport: str, make: Any
) -> None:
    desk = Desk(own_gateway.url, name)
    told: List[Any] = []
    with Background(desk.agent), Client(own_gateway.url) as client:
        task = client.submit(desk.wait, {}, timeout=300, attempt_timeout=200)
        assert desk.began.wait(WITHIN)
        waiting = threading.Thread(target=lambda: told.append(make(own_gateway.url).wait_for_result(task)), daemon=True)
        waiting.start()
        own_gateway.restart()
        assert client.get(task).phase in ("routed", "delivered", "accepted", "submitted")
        desk.let_go.set()
        waiting.join(WITHIN)
    assert [one.result for one in told] == ["let go"]


def test_progress_goes_on_over_a_restart(own_gateway: Gateway, name: str) -> None:
    agent = agent_reach.Agent(f"{name}@tests", url=own_gateway.url)
    half_way, go_on = threading.Event(), threading.Event()

    @agent.capability(f"{name}_work", effect="read", timeout=200)
    def work(context: agent_reach.Context) -> str:
        context.report(1)
        half_way.set()
        assert go_on.wait(WITHIN)
        for _ in range(200):  # The gateway may still be on its way back.
            try:
                context.report(2)
                break
            except agent_reach.TransportError:
                time.sleep(0.05)
        return "done"

    async def on_loop() -> List[Any]:
        told: List[Any] = []
        async with AsyncClient(own_gateway.url) as client:
            task = await client.submit(f"{name}_work", timeout=300)
            async for view in client.progress(task):
                told.append(view.result or view.progress)
                if view.progress == 1 and not go_on.is_set():
                    await asyncio.to_thread(own_gateway.restart)
                    go_on.set()
        return told

    with Background(agent):
        told = run(on_loop())
    assert told[-1] == "done" and 1 in told


@pytest.mark.parametrize("is_ws", [True, False], ids=["ws", "http"])
def test_a_thousand_waits_in_one_loop(own_gateway: Gateway, name: str, is_ws: bool) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if not is_ws and soft < 4096:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(4096, hard), hard))
    count = 1000
    agent = agent_reach.Agent(f"{name}@tests", url=own_gateway.url, max_concurrency=2 * count)
    gate: List[asyncio.Event] = []

    @agent.capability(f"{name}_wait", effect="read", timeout=200)
    async def wait(number: int) -> int:
        await gate[0].wait()
        return number

    async def on_loop() -> List[Any]:
        gate.append(asyncio.Event())
        url = over_ws(own_gateway.url) if is_ws else own_gateway.url
        async with agent, AsyncClient(url) as client:
            waits = [
                asyncio.ensure_future(client.reach(f"{name}_wait", {"number": n}, timeout=200)) for n in range(count)
            ]
            while agent.load < count:
                await asyncio.sleep(0.02)
            gate[0].set()
            return [task.result for task in await asyncio.gather(*waits)]

    assert run(on_loop()) == list(range(count))


def test_cancelling_frees_the_waiter_and_only_if_asked_the_task(gateway: Gateway, name: str) -> None:
    desk = Desk(gateway.url, name)

    async def given_up(client: AsyncClient, asks_to: bool) -> Any:
        desk.began.clear()
        key = f"{name}-{asks_to}"
        call = asyncio.ensure_future(
            client.reach(desk.hang, {}, cancel_on_abandon=asks_to, timeout=100, idempotency_key=key)
        )
        await asyncio.to_thread(desk.began.wait, WITHIN)
        call.cancel()
        begun = time.monotonic()
        with pytest.raises(asyncio.CancelledError):
            await call
        assert time.monotonic() - begun < 5
        # The same key, the same task.
        return await client.submit(desk.hang, {}, timeout=100, idempotency_key=key)

    async def on_loop() -> None:
        async with desk.agent, AsyncClient(gateway.url) as client:
            left_alone = await given_up(client, asks_to=False)
            assert not left_alone.is_final
            called_off = await given_up(client, asks_to=True)
            with pytest.raises(agent_reach.TaskCancelled):
                await client.wait_for_result(called_off, timeout=WITHIN)
            assert not (await client.get(left_alone)).is_final
            waiting = asyncio.ensure_future(client.wait_for_result(left_alone, cancel_on_abandon=True))
            await asyncio.sleep(0)
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(waiting, 0.2)
            with pytest.raises(agent_reach.TaskCancelled):
                await client.wait_for_result(left_alone, timeout=WITHIN)
            assert len(desk_waiting()) == 0

    def desk_waiting() -> Any:
        from agent_reach import _bridge

        return _bridge.desk()._waiting

    run(on_loop())


def test_other_threads_run_while_one_waits(desk: Desk, client: Client) -> None:
    task = client.submit(desk.wait, {})
    waiting = threading.Thread(target=client.wait_for_result, args=(task,))
    waiting.start()
    turns = sum(1 for _ in range(100_000))
    assert turns == 100_000 and waiting.is_alive()
    desk.let_go.set()
    waiting.join(WITHIN)
    assert not waiting.is_alive()


def test_ctrl_c_interrupts_a_wait(gateway: Gateway, desk: Desk) -> None:
    process = start(
        f"""
        import agent_reach, signal, traceback
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        client = agent_reach.Client()
        task = client.submit({desk.hang!r}, {{}}, timeout=300)
        print("ready", flush=True)
        where = ""
        while "run(" not in where:
            try:
                signal.signal(signal.SIGINT, signal.default_int_handler)
                client.wait_for_result(task, cancel_on_abandon=True)
            except KeyboardInterrupt:
                signal.signal(signal.SIGINT, signal.SIG_IGN)
                where = traceback.format_exc()
        try:
            client.wait_for_result(task, timeout=20)
        except agent_reach.TaskCancelled:
            print("interrupted, and called off")
        """,
        gateway.url,
    )
    assert process.stdout is not None and process.stdout.readline() == "ready\n"
    until = time.monotonic() + WITHIN
    while process.poll() is None and time.monotonic() < until:
        process.send_signal(signal.SIGINT)
        time.sleep(0.5)
    code, out, err = ended(process)
    assert (code, out) == (0, "interrupted, and called off\n"), err


AGENT = """
import agent_reach, asyncio, os, sys, time
agent = agent_reach.Agent("{name}@tests")

@agent.capability("{name}_slow", effect="read")
async def slow(seconds: float) -> str:
    print("began", flush=True)
    await asyncio.sleep(seconds)
    return "finished"
"""


def test_sigterm_drains(gateway: Gateway, client: Client, name: str) -> None:
    process = start(AGENT.format(name=name) + "\nagent.run(grace=20)\nprint('left')", gateway.url)
    task = client.submit(f"{name}_slow", {"seconds": 1.5}, timeout=20) if wait_for(client, name) else None
    assert task is not None and process.stdout is not None and process.stdout.readline() == "began\n"
    process.terminate()
    assert client.wait_for_result(task).result == "finished"
    code, out, err = ended(process)
    assert (code, out) == (0, "left\n"), err
    with pytest.raises(agent_reach.NotFound):
        client.agent(f"{name}@tests")


def wait_for(client: Client, name: str) -> bool:
    until = time.monotonic() + WITHIN
    while time.monotonic() < until:
        try:
            return client.agent(f"{name}@tests").state == "alive"
        except agent_reach.NotFound:
            time.sleep(0.02)
    return False


ENDS = {
    "a wait in a daemon thread": """
        import agent_reach, threading, time
        client = agent_reach.Client()
        task = client.submit({hang!r}, {{}})
        for _ in range(3):
            threading.Thread(target=client.wait_for_result, args=(task,), daemon=True).start()
        while client.get(task).phase != "accepted": time.sleep(0.01)
    """,
    "threads that call all the time": """
        import agent_reach, threading, time
        client = agent_reach.Client()
        threading.excepthook = lambda what: None
        def for_ever():
            while True:
                client.reach({echo!r}, 1, idempotency_key=False)
        for _ in range(8):
            threading.Thread(target=for_ever, daemon=True).start()
        time.sleep(0.2)
    """,
    "calls in a loop that is left": """
        import agent_reach, asyncio
        async def main():
            client = agent_reach.AsyncClient()
            task = await client.submit({hang!r}, {{}})
            for _ in range(3):
                asyncio.ensure_future(client.wait_for_result(task))
            asyncio.get_running_loop().call_later(0.1, asyncio.get_running_loop().stop)
        loop = asyncio.new_event_loop()
        loop.create_task(main())
        loop.run_forever()
    """,
    "an agent that serves in a daemon thread": """
        import agent_reach, asyncio, threading, time
        agent = agent_reach.Agent("left{name}@tests")
        started, working = threading.Event(), threading.Event()
        @agent.capability("left{name}_block", effect="read")
        def block() -> None:
            working.set()
            time.sleep(1000)
        async def main():
            await agent.start()
            started.set()
            await asyncio.Event().wait()
        threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
        assert started.wait(30)
        agent_reach.Client().submit("left{name}_block")
        assert working.wait(30)
    """,
    "a watch and a socket that are open": """
        import agent_reach, os
        client = agent_reach.Client(os.environ["AGENT_REACH_URL"].replace("http:", "ws:"))
        task = client.submit({hang!r}, {{}})
        views = client.progress(task)
        next(views)
    """,
    "an exit from a handler's thread": """
        import agent_reach, os, threading
        agent_reach.log_to_logging(verbose=True)
        client = agent_reach.Client()
        client.agents()
        raise SystemExit(0)
    """,
}


@pytest.mark.parametrize("kind", ENDS)
def test_an_interpreter_ends_cleanly_with_work_open(gateway: Gateway, desk: Desk, kind: str) -> None:
    script = ENDS[kind].format(hang=desk.hang, echo=desk.echo, name=desk.id.partition("@")[0])
    begun = time.monotonic()
    code, out, err = ended(start(script, gateway.url))
    assert code == 0, f"{code}\n{out}\n{err}"
    for word in ("Fatal", "panicked", "Segmentation", 'Traceback (most recent call last):\n  File "<frozen'):
        assert word not in err, err
    assert time.monotonic() - begun < WITHIN / 2


def test_a_forked_child_can_call_and_the_parent_too(gateway: Gateway, desk: Desk) -> None:
    for url in (gateway.url, over_ws(gateway.url)):
        code, out, err = ended(
            start(
                f"""
                import agent_reach, asyncio, os, sys
                client, shared = agent_reach.Client({url!r}), agent_reach.AsyncClient({url!r})
                ask = lambda word: client.reach({desk.echo!r}, word).result
                assert ask("before") == "before"
                child = os.fork()
                if child == 0:
                    assert ask("in the child") == "in the child"
                    async def main():
                        return (await shared.reach({desk.echo!r}, "loop")).result
                    assert asyncio.run(main()) == "loop"
                    print("child", flush=True)
                    sys.exit(0)
                _, status = os.waitpid(child, 0)
                assert status == 0, status
                assert ask("after") == "after"
                print("parent")
                """,
                url,
            )
        )
        assert (code, out) == (0, "child\nparent\n"), err


def test_multiprocessing_by_fork_works(gateway: Gateway, desk: Desk) -> None:
    code, out, err = ended(
        start(
            f"""
            import agent_reach, multiprocessing
            client = agent_reach.Client()
            def ask(word):
                return client.reach({desk.echo!r}, word).result
            ask("before")
            with multiprocessing.get_context("fork").Pool(2) as pool:
                print(pool.map(ask, range(6)))
            """,
            gateway.url,
        )
    )
    assert (code, out) == (0, "[0, 1, 2, 3, 4, 5]\n"), err
