"""An agent mounted in a server of the user's."""

from __future__ import annotations

import asyncio
import json
import socket
from typing import Any

import pytest

import agent_reach
from agent_reach import AsyncClient
from agent_reach.testing import Gateway
from conftest import Desk, run


def test_a_mounted_agent_that_was_not_started_says_so(gateway: Gateway, name: str) -> None:
    said: list[Any] = []

    async def send(message: Any) -> None:
        said.append(message)

    async def receive() -> Any:
        return {"type": "http.request", "body": b"{}"}

    app = Desk(gateway.url, name, via="http", public_url="http://127.0.0.1:9/").agent.asgi()
    run(app({"type": "http", "method": "POST", "path": "/"}, receive, send))
    assert said[0]["status"] == 503
    told = json.loads(said[1]["body"])
    assert told["started"] is False and "lifespan" in told["detail"]


def test_an_agent_serves_within_an_asgi_server(gateway: Gateway, name: str) -> None:
    uvicorn = pytest.importorskip("uvicorn")
    listener = socket.create_server(("127.0.0.1", 0))
    url = "http://127.0.0.1:%d" % listener.getsockname()[1]
    desk = Desk(gateway.url, name, via="http", public_url=f"{url}/work/", answer_within=0.1)
    agent_app = desk.agent.asgi()

    async def app(scope: Any, receive: Any, send: Any) -> None:
        """What frameworks do when they mount an app."""
        if scope["type"] == "http":
            if scope["path"] == "/healthz":
                scope = {**scope, "root_path": ""}
            else:
                assert scope["path"].startswith("/work")
                scope = {**scope, "root_path": "/work"}
        await agent_app(scope, receive, send)

    async def on_loop() -> None:
        server = uvicorn.Server(uvicorn.Config(app, lifespan="on", log_level="error"))
        serving = asyncio.ensure_future(server.serve(sockets=[listener]))
        async with AsyncClient(gateway.url) as client:
            while not server.started:
                await asyncio.sleep(0.01)
                assert not serving.done()
            assert (await client.reach(desk.count, {"text": "one two"})).result == 2
            task = await client.submit(desk.hang, {})
            await asyncio.to_thread(desk.began.wait, 30)
            await client.cancel(task)
            await asyncio.to_thread(desk.stopped.wait, 30)
            assert desk.stopped.is_set()
            server.should_exit = True
            await serving
            with pytest.raises(agent_reach.NotFound):
                await client.agent(desk.id)

    run(on_loop())
