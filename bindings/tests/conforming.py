"""Serves an agent to the conformance runner, which says where it listens: ``conforming.py WAY`` one of the agents below,
``conforming.py MODULE NAME`` one of the examples.

Over HTTP the gateway's own is another way than a server of the user's: ``http`` and ``asgi``.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import socket
import sys
import threading
from pathlib import Path
from typing import Any, Dict, List, TypedDict

from agent_reach import Agent, Context


class Echo(TypedDict):
    text: str
    number: int


def agent(**way: Any) -> Agent:
    """An agent with work of each kind: quick and slow, on the loop and off it, with an effect and without."""
    agent = Agent("conforming@sdk", description="Is looked at from all sides", max_concurrency=3, heartbeat=0.4, **way)
    stamped: Dict[str, int] = {}
    effects = os.environ.get("EFFECTS")

    @agent.capability(effect="read")
    async def echo(text: str, number: int = 0, seconds: float = 0) -> Echo:
        """Gives back what it is given, after a while."""
        await asyncio.sleep(seconds)
        return {"text": text, "number": number}

    @agent.capability(effect="read")
    def dwell(context: Context, seconds: float) -> str:
        """Blocks a thread for a while, unless it is called off."""
        return "called off" if context.wait_cancelled(seconds) else "slept"

    lock = threading.Lock()

    @agent.capability(effect="idempotent_write")
    def stamp(context: Context, note: str) -> int:
        """Stamps a note, once for each key."""
        with lock:
            known = stamped.get(context.idempotency_key)
            if known is None:
                known = stamped[context.idempotency_key] = len(stamped) + 1
                if effects is not None:
                    with open(effects, "a", encoding="utf-8") as file:
                        file.write(f"{context.task_id} {note!r}\n")
        return known

    return agent


async def mounted() -> None:
    """Serves the agent from a server of the user's."""
    import uvicorn

    listener = socket.create_server(("127.0.0.1", 0))
    app = agent(via="http", public_url="http://127.0.0.1:%d/" % listener.getsockname()[1]).asgi()
    await uvicorn.Server(uvicorn.Config(app, lifespan="on", log_level="warning")).serve(sockets=[listener])


def main(arguments: List[str]) -> None:
    if len(arguments) == 2:
        sys.path.insert(0, str(Path(__file__).parents[2] / "examples" / "python"))
        example: Agent = getattr(importlib.import_module(arguments[0]), arguments[1])
        example.run()
    elif arguments == ["asgi"]:
        asyncio.run(mounted())
    elif arguments == ["http"]:
        agent(via="http", listen="127.0.0.1:0").run()
    else:
        agent(via=arguments[0]).run()


if __name__ == "__main__":
    main(sys.argv[1:])
