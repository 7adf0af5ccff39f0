"""An agent mounted in a server of the user's."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socket
from typing import Any, AsyncIterator, Awaitable, Callable, Dict, List, Tuple

import pytest

import agent_reach
from agent_reach import AsyncClient
from agent_reach.testing import Gateway
from conftest import Desk, run


@contextlib.asynccontextmanager
async def served(
    app: Any, listener: socket.socket, gateway: Gateway
) -> AsyncIterator[Tuple[AsyncClient, Callable[[], Awaitable[None]]]]:
    """The app behind a server that has started, until this is left or the second is called; and a client of the gateway."""
    uvicorn = pytest.importorskip("uvicorn")
    server = uvicorn.Server(uvicorn.Config(app, lifespan="on", log_level="error"))
    serving = asyncio.ensure_future(server.serve(sockets=[listener]))

    async def stop() -> None:
        server.should_exit = True
        await serving

    async with AsyncClient(gateway.url) as client:
        while not server.started:
            await asyncio.sleep(0.01)
            assert not serving.done()
        yield client, stop
        await stop()


def test_an_agent_serves_within_an_asgi_server(gateway: Gateway, name: str) -> None:
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
        async with served(app, listener, gateway) as (client, stop):
            assert (await client.reach(desk.count, {"text": "one two"})).result == 2
            task = await client.submit(desk.hang, {})
            await asyncio.to_thread(desk.began.wait, 30)
            await client.cancel(task)
            await asyncio.to_thread(desk.stopped.wait, 30)
            assert desk.stopped.is_set()
            await stop()
            with pytest.raises(agent_reach.NotFound):
                await client.agent(desk.id)

    run(on_loop())


def test_an_agent_serves_in_the_lifespan_of_the_app_that_mounts_it(gateway: Gateway, name: str) -> None:
    pytest.importorskip("starlette")
    from starlette.applications import Starlette
    from starlette.responses import JSONResponse
    from starlette.routing import Mount, Route

    listener = socket.create_server(("127.0.0.1", 0))
    desk = Desk(
        gateway.url, name, via="http", public_url="http://127.0.0.1:%d/agent/" % listener.getsockname()[1]
    )

    @contextlib.asynccontextmanager
    async def lifespan(_: Any) -> AsyncIterator[None]:
        async with desk.agent:
            yield

    async def healthz(_: Any) -> JSONResponse:
        return JSONResponse({"queue_depth": desk.agent.load})

    app = Starlette(routes=[Route("/healthz", healthz), Mount("/agent", desk.agent.asgi())], lifespan=lifespan)

    async def on_loop() -> None:
        async with served(app, listener, gateway) as (client, _):
            assert (await client.reach(desk.count, {"text": "one two"})).result == 2

    run(on_loop())


def test_requests_to_an_agent_that_was_not_started_are_told_so(caplog: pytest.LogCaptureFixture) -> None:
    app = agent_reach.Agent("a@tests", via="http", public_url="http://127.0.0.1:9/").asgi()
    sent: List[Dict[str, Any]] = []

    async def receive() -> Dict[str, Any]:
        return {"type": "http.request", "body": b"{}"}

    async def send(message: Dict[str, Any]) -> None:
        sent.append(message)

    async def on_loop() -> None:
        for path in ("/", "/healthz"):
            await app({"type": "http", "method": "POST", "path": path}, receive, send)

    with caplog.at_level(logging.WARNING, "agent_reach"):
        run(on_loop())
    assert [message["status"] for message in sent[::2]] == [503, 503]
    body = json.loads(sent[1]["body"])
    assert (body["status"], body["code"], body["started"]) == (503, "agent_refused", False)
    assert "start it in your app's lifespan" in body["detail"]
    (warned,) = caplog.records
    assert "a@tests was not started" in warned.getMessage()
