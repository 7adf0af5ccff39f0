"""The gateway for users' tests that runs within the process: one or many, killed and started again, forked, left behind."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path
from typing import Any, List

import pytest

import agent_reach
from agent_reach import Agent, AsyncClient, Client
from agent_reach.testing import Gateway
from conftest import WITHIN, Background, Desk
from test_life import ended, start


def threads_of_gateways() -> List[str]:
    names = [Path(f"/proc/self/task/{task}/comm").read_text() for task in os.listdir("/proc/self/task")]
    return [name for name in names if name.startswith("reach-gateway")]


def test_it_needs_nothing_beside_the_package(monkeypatch: pytest.MonkeyPatch, name: str) -> None:
    monkeypatch.delenv("AGENT_REACH_GATEWAY", raising=False)
    monkeypatch.setenv("PATH", "")
    with Gateway() as gateway:
        desk = Desk(gateway.url, name)
        with Background(desk.agent), Client(gateway.url) as client:
            assert client.reach(desk.echo, [1, "two"]).result == [1, "two"]
        assert any("listening" in line for line in gateway.log)


def test_two_in_one_process_know_nothing_of_each_other(name: str) -> None:
    with Gateway() as one, Gateway() as other:
        assert one.url != other.url
        desk = Desk(one.url, name)
        with Background(desk.agent), Client(one.url) as here, Client(other.url) as there:
            assert here.reach(desk.echo, 1).result == 1
            assert there.agents() == []
            with pytest.raises(agent_reach.NoCandidate):
                there.reach(desk.echo, 1)
        one.kill()
        with Client(other.url) as there:
            assert there.agents() == []


def test_a_restart_within_a_test_loses_nothing_that_was_durable(agent_reach_gateway: Gateway, name: str) -> None:
    gateway = agent_reach_gateway
    url = gateway.url
    desk = Desk(url, name)
    told: List[Any] = []
    with Background(desk.agent), Client(url) as client:
        task = client.submit(desk.wait, {}, timeout=300, attempt_timeout=200, idempotency_key="the same")
        assert desk.began.wait(WITHIN)
        waiting = threading.Thread(target=lambda: told.append(client.wait_for_result(task)), daemon=True)
        waiting.start()
        gateway.restart()
        assert gateway.url == url
        again = client.submit(desk.wait, {}, timeout=300, attempt_timeout=200, idempotency_key="the same")
        assert again.id == task.id
        desk.let_go.set()
        waiting.join(WITHIN)
        assert [one.result for one in told] == ["let go"]
        gateway.stop()
        with pytest.raises(agent_reach.TransportError), Client(url, retries=0) as late:
            late.get(task)
        gateway.start()
        assert client.get(task).result == "let go"


@pytest.mark.asyncio
async def test_it_goes_with_pytest_asyncio(agent_reach_gateway: Gateway) -> None:
    agent = Agent("counter@tests", url=agent_reach_gateway.url)

    @agent.capability(effect="read")
    async def count(text: str) -> int:
        return len(text.split())

    async with agent, AsyncClient(agent_reach_gateway.url) as reach:
        assert (await reach.reach("count", {"text": "one two"})).result == 2
        agent_reach_gateway.restart()
        assert (await reach.reach("count", {"text": "one two three"}, timeout=30)).result == 3


def test_what_is_wrong_is_told() -> None:
    with pytest.raises(RuntimeError, match="lissen"), Gateway(config="lissen = 1"):
        pass
    with pytest.raises(RuntimeError, match="runs already"), Gateway() as gateway:
        gateway.start()
    with pytest.raises(ValueError, match="process=True"):
        Gateway(command="reach-gateway")
    gateway = Gateway()
    with pytest.raises(RuntimeError, match="not started"):
        _ = gateway.url
    gateway.close()


@pytest.mark.skipif(not os.path.exists("/proc/self/task"), reason="needs /proc")
def test_it_leaves_nothing_behind() -> None:
    def once() -> None:
        with Gateway() as gateway, Client(gateway.url) as client:
            client.agents()
            assert threads_of_gateways()

    once()
    gc.collect()
    files, folders = len(os.listdir("/proc/self/fd")), len(list(Path("/tmp").glob("agent-reach-*")))
    for _ in range(10):
        once()
    gc.collect()
    assert threads_of_gateways() == []
    assert len(os.listdir("/proc/self/fd")) <= files + 3
    assert len(list(Path("/tmp").glob("agent-reach-*"))) <= folders + 1


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_it_takes_no_signal_and_no_log_of_the_process() -> None:
    code, out, err = ended(
        start(
            """
            import agent_reach, logging, re
            from agent_reach.testing import Gateway
            def caught():
                with open("/proc/self/status") as status:
                    mask = int(re.search(r"SigCgt:\\s*(\\w+)", status.read())[1], 16)
                return mask & ~(0b11 << 31)  # Those two are the C library's.
            agent_reach.Client("http://127.0.0.1:1")
            before = caught()
            with Gateway() as gateway, agent_reach.Client(gateway.url) as client:
                client.agents()
                during = caught()
            assert during & ~before == 0, hex(during & ~before)
            logging.basicConfig(level=logging.DEBUG)
            agent_reach.log_to_logging(verbose=True)
            print("its own")
            """,
            "http://127.0.0.1:1",
        )
    )
    assert (code, out) == (0, "its own\n"), err
    assert "within another process" not in err


def test_a_forked_child_leaves_it_to_the_parent(name: str) -> None:
    code, out, err = ended(
        start(
            """
            import agent_reach, os, sys
            from agent_reach.testing import Gateway
            gateway = Gateway().start()
            client = agent_reach.Client(gateway.url)
            assert client.agents() == []
            read, write = os.pipe()
            child = os.fork()
            if child == 0:
                os.close(write)  # With the parent's end, the child's wait ends too.
                assert agent_reach.Client(gateway.url).agents() == []
                gateway.kill(), gateway.stop(), gateway.close()
                try:
                    gateway.start()
                except RuntimeError as error:
                    assert "parent" in str(error), error
                with Gateway() as own, agent_reach.Client(own.url) as mine:
                    assert own.url != gateway.url and mine.agents() == []
                print("child", flush=True)
                os.read(read, 1)
                sys.exit(0)
            client.agents()
            import time; time.sleep(1)
            gateway.restart()
            assert client.agents() == []
            os.write(write, b"x")
            _, status = os.waitpid(child, 0)
            assert status == 0, status
            assert client.agents() == [], "the child's end has not taken it away"
            gateway.restart().close()
            print("parent")
            """,
            "http://127.0.0.1:1",
        )
    )
    assert (code, out) == (0, "child\nparent\n"), err


def test_an_interpreter_ends_cleanly_with_one_running(tmp_path: Path) -> None:
    script = """
        import agent_reach, asyncio, threading
        from agent_reach.testing import Gateway
        gateway, other = Gateway().start(), Gateway().start()
        agent = agent_reach.Agent("left@tests", url=gateway.url)
        started = threading.Event()
        @agent.capability("hang", effect="read")
        async def hang() -> None:
            await asyncio.Event().wait()
        async def main():
            await agent.start()
            started.set()
            await asyncio.Event().wait()
        threading.Thread(target=asyncio.run, args=(main(),), daemon=True).start()
        assert started.wait(30)
        client = agent_reach.Client(gateway.url)
        task = client.submit("hang")
        threading.Thread(target=client.wait_for_result, args=(task,), daemon=True).start()
        print("open")
    """
    begun = time.monotonic()
    environment = {**os.environ, "TMPDIR": str(tmp_path), "PYTHONFAULTHANDLER": "1"}
    command = [sys.executable, "-X", "dev", "-c", textwrap.dedent(script)]
    told = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=WITHIN)
    assert (told.returncode, told.stdout) == (0, "open\n"), told.stderr
    for word in ("Fatal", "panicked", "Segmentation"):
        assert word not in told.stderr, told.stderr
    assert time.monotonic() - begun < WITHIN / 2
    assert list(tmp_path.iterdir()) == []
