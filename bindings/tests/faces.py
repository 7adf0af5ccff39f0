"""Both faces of the SDK under one: a test is written once and run over each."""

from __future__ import annotations

from typing import Any, List

from agent_reach import AsyncClient, Client, Task
from conftest import run


class Sync:
    """The plain client."""

    def __init__(self, url: str, **more: Any) -> None:
        self._url, self._more = url, more

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            with Client(self._url, **self._more) as client:
                return getattr(client, name)(*args, **named)

        return call

    def progress(self, task: Any) -> List[Task]:
        with Client(self._url, **self._more) as client:
            return list(client.progress(task))


class Async:
    """The client for asyncio, on a loop for each call."""

    def __init__(self, url: str, **more: Any) -> None:
        self._url, self._more = url, more

    def __getattr__(self, name: str) -> Any:
        def call(*args: Any, **named: Any) -> Any:
            async def on_loop() -> Any:
                async with AsyncClient(self._url, **self._more) as client:
                    return await getattr(client, name)(*args, **named)

            return run(on_loop())

        return call

    def progress(self, task: Any) -> List[Task]:
        async def on_loop() -> List[Task]:
            async with AsyncClient(self._url, **self._more) as client:
                return [view async for view in client.progress(task)]

        return run(on_loop())


def over_ws(url: str) -> str:
    return url.replace("http://", "ws://")


#: Each face over each transport.
FACES = [
    ("sync-http", lambda url, **more: Sync(url, **more)),
    ("sync-ws", lambda url, **more: Sync(over_ws(url), **more)),
    ("async-http", lambda url, **more: Async(url, **more)),
    ("async-ws", lambda url, **more: Async(over_ws(url), **more)),
]
