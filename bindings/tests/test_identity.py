"""A gateway that asks who calls: agents and callers join by a token, come back by their keys, and are refused by name."""

from __future__ import annotations

import asyncio
import os
import stat
from pathlib import Path
from typing import Any, Dict, Iterator

import pytest

import agent_reach
from agent_reach import Agent, AsyncClient, Client
from agent_reach.testing import Gateway
from conftest import Background, run
from faces import FACES
from test_life import ended, start

REQUIRED = '[auth]\nmode = "required"\n'
WAYS: Dict[str, Dict[str, Any]] = {
    "websocket": {"via": "websocket"},
    "queue": {"via": "queue"},
    "http": {"via": "http", "listen": "127.0.0.1:0"},
}


@pytest.fixture(scope="module", params=["in a process", "within this one"])
def asking(request: pytest.FixtureRequest) -> Iterator[Gateway]:
    with Gateway(config=REQUIRED, process=request.param == "in a process") as gateway:
        yield gateway


def operate(gateway: Gateway, method: str, **params: Any) -> Any:
    with Client(gateway.url, token=gateway.operator_token) as operator:
        return operator.call(method, params)


def join_token(gateway: Gateway, agent: str) -> str:
    joined: str = operate(gateway, "token/create_join", agents=agent)["join"]
    return joined


def echoing(gateway: Gateway, agent_id: str, **more: Any) -> Agent:
    agent = Agent(agent_id, url=gateway.url, **more)

    @agent.capability(f"{agent_id.partition('@')[0]}_echo", effect="read")
    async def echo(value: Any, /) -> Any:
        return value

    return agent


@pytest.mark.parametrize("way", WAYS)
def test_an_agent_joins_once_and_comes_back_by_its_key(asking: Gateway, name: str, way: str, tmp_path: Path) -> None:
    agent_id, key = f"{name}@media", tmp_path / "deep" / "agent.key"
    caller = {"from_agent": f"desk{name}@media", "key_file": tmp_path / "desk.key"}
    with Client(asking.url, join=join_token(asking, caller["from_agent"]), **caller) as desk:
        join = join_token(asking, agent_id)
        with Background(echoing(asking, agent_id, join=join, key_file=key, **WAYS[way])):
            assert desk.reach(f"{name}_echo", "joined").result == "joined"
            assert stat.S_IMODE(key.stat().st_mode) == 0o600
            # Its tokens are taken from it while it serves: it shows its key, and nobody sees anything of it.
            kept = key.read_bytes()
            for whose in (agent_id, caller["from_agent"]):
                operate(asking, "token/revoke", agent_id=whose)
            assert desk.reach(f"{name}_echo", "again", timeout=30).result == "again"
            assert key.read_bytes() == kept
        # A new process would have nothing but the key.
        with Background(echoing(asking, agent_id, key_file=str(key), **WAYS[way])):
            assert desk.reach(f"{name}_echo", "back").result == "back"


@pytest.mark.parametrize(("transport", "make"), FACES, ids=[name for name, _ in FACES])
def test_a_caller_joins_and_comes_back(asking: Gateway, name: str, transport: str, make: Any, tmp_path: Path) -> None:
    who = {"from_agent": f"{name}@media", "key_file": tmp_path / "caller.key"}
    # Each call of a face is a client of its own: the first joins, all later ones have the key alone.
    assert make(asking.url, join=join_token(asking, who["from_agent"]), **who).discover() == []
    for _ in range(2):
        assert make(asking.url, **who).discover() == []
    with pytest.raises(agent_reach.Unauthenticated):
        make(asking.url).discover()


def test_papers_come_from_the_environment(asking: Gateway, name: str, tmp_path: Path) -> None:
    script = f"""
        import agent_reach
        with agent_reach.Client(from_agent="{name}@media") as client:
            print(client.discover())
        """
    key = tmp_path / "env.key"
    os.environ["AGENT_REACH_JOIN"] = join_token(asking, f"{name}@media")
    os.environ["AGENT_REACH_KEY_FILE"] = str(key)
    try:
        for _ in range(2):
            code, out, err = ended(start(script, asking.url))
            assert (code, out) == (0, "[]\n"), err
            os.environ.pop("AGENT_REACH_JOIN", None)
    finally:
        os.environ.pop("AGENT_REACH_JOIN", None)
        os.environ.pop("AGENT_REACH_KEY_FILE", None)
    assert key.exists()


def test_who_is_refused_is_told_why(asking: Gateway, name: str, tmp_path: Path) -> None:
    agent_id = f"{name}@media"

    def starting(**papers: Any) -> None:
        with Background(echoing(asking, agent_id, **papers)):
            raise AssertionError("it was let in")

    nothing = {"key_file": tmp_path / "none.key"}
    with pytest.raises(agent_reach.Unauthenticated) as refused:
        starting(**nothing)
    assert refused.value.code == "unauthenticated" and not (tmp_path / "none.key").exists()
    with pytest.raises(agent_reach.Unauthenticated):
        starting(join="reach_join_nonsense", key_file=tmp_path / "nonsense.key")
    with pytest.raises(agent_reach.Unauthenticated):
        starting(token="nonsense", **nothing)
    # A token that lets another one in.
    with pytest.raises((agent_reach.Unauthenticated, agent_reach.Forbidden)):
        starting(join=join_token(asking, "somebody@else"), key_file=tmp_path / "other.key")
    exposed = tmp_path / "exposed.key"
    exposed.write_text("x")
    exposed.chmod(0o644)
    with pytest.raises(agent_reach.ConfigError, match="644"):
        starting(key_file=exposed)
    with pytest.raises(agent_reach.ConfigError, match="from_agent"), Client(asking.url, join="x") as client:
        client.agents()


def test_of_two_with_one_key_the_older_one_is_told(asking: Gateway, name: str, tmp_path: Path) -> None:
    agent_id, key = f"{name}@media", tmp_path / "one.key"

    async def on_loop() -> agent_reach.AgentReachError:
        older = echoing(asking, agent_id, join=join_token(asking, agent_id), key_file=key)
        await older.start()
        serving = asyncio.ensure_future(older.serve())
        async with echoing(asking, agent_id, key_file=key):
            with pytest.raises(agent_reach.Unauthenticated) as ended:
                await serving
        return ended.value

    assert run(on_loop()).code == "superseded"


def test_agents_come_back_over_a_restart_of_the_gateway(name: str, tmp_path: Path) -> None:
    for process in (False, True):
        agent_id, folder = f"{name}@media", tmp_path / str(process)
        with Gateway(config=REQUIRED, process=process) as gateway:

            async def on_loop(gateway: Gateway = gateway, agent_id: str = agent_id, folder: Path = folder) -> Any:
                agent = echoing(gateway, agent_id, join=join_token(gateway, agent_id), key_file=folder / "a.key")
                asked = {"from_agent": "desk@media", "join": join_token(gateway, "desk@media")}
                async with agent, AsyncClient(gateway.url, key_file=folder / "desk.key", **asked) as desk:
                    assert (await desk.reach(f"{name}_echo", 1)).result == 1
                    await asyncio.to_thread(gateway.restart)
                    return (await desk.reach(f"{name}_echo", 2, timeout=30)).result

            assert run(on_loop()) == 2
