"""An agent behind a server of yours: its ASGI app. Which requests there are, and what they are answered, the core knows."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Any, Awaitable, Callable, Dict, List, Tuple

from ._json import write

if TYPE_CHECKING:
    from .agent import Agent

_Message = Dict[str, Any]
_Receive = Callable[[], Awaitable[_Message]]
_Send = Callable[[_Message], Awaitable[None]]

BODY_MAX = 16 << 20

_log = logging.getLogger("agent_reach.agent")


class App:
    """The ASGI app of an agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self._has_warned = False

    async def __call__(self, scope: Dict[str, Any], receive: _Receive, send: _Send) -> None:
        if scope["type"] == "lifespan":
            await self._lifespan(receive, send)
        elif scope["type"] == "http":
            await self._http(scope, receive, send)
        else:
            raise RuntimeError(f"an agent does not speak {scope['type']}")

    async def _lifespan(self, receive: _Receive, send: _Send) -> None:
        while True:
            kind = (await receive())["type"]
            try:
                if kind == "lifespan.startup":
                    await self._agent.start()
                else:
                    await self._agent.drain()
            except Exception as error:  # noqa: BLE001
                await send({"type": f"{kind}.failed", "message": str(error)})
                return
            await send({"type": f"{kind}.complete"})
            if kind == "lifespan.shutdown":
                return

    async def _http(self, scope: Dict[str, Any], receive: _Receive, send: _Send) -> None:
        body, is_whole = await _body(receive)
        if is_whole:
            answer = await self._agent._answer_http(scope["method"], _target(scope), body) or self._not_started()
        else:
            answer = {"status": 413, "body": '{"code":"too_large"}'}
        headers: List[Tuple[bytes, bytes]] = [(b"content-type", b"application/json")]
        for name, value in (
            (b"retry-after", answer.get("retry_after")),
            (b"agent-reach-token-count", answer.get("token_count")),
        ):
            if value is not None:
                headers.append((name, str(value).encode()))
        await send({"type": "http.response.start", "status": answer["status"], "headers": headers})
        await send({"type": "http.response.body", "body": answer["body"].encode()})

    def _not_started(self) -> Dict[str, Any]:
        """The answer while the agent does not serve, which its log is told of once."""
        words = "was not started, or has drained; start it in your app's lifespan: async with agent"
        if not self._has_warned:
            self._has_warned = True
            _log.warning("%s %s", self._agent.agent_id, words)
        refused = {
            "type": "about:blank",
            "title": "Service Unavailable",
            "status": 503,
            "code": "agent_refused",
            "detail": f"the agent {words}",
            "started": False,
        }
        return {"status": 503, "body": write(refused)}


async def _body(receive: _Receive) -> Tuple[bytes, bool]:
    """The body, and whether that is all of it."""
    parts: List[bytes] = []
    size = 0
    while True:
        message = await receive()
        if message["type"] != "http.request":
            return b"", False
        parts.append(message.get("body", b""))
        size += len(parts[-1])
        if size > BODY_MAX:
            return b"", False
        if not message.get("more_body"):
            return b"".join(parts), True


def _target(scope: Dict[str, Any]) -> str:
    """The path with its query, below where the app is mounted."""
    path: str = scope["path"]
    root: str = scope.get("root_path", "").rstrip("/")
    if root and path.startswith(root):
        path = path[len(root) :]
    query = scope.get("query_string", b"").decode("latin-1")
    return (path or "/") + (f"?{query}" if query else "")
