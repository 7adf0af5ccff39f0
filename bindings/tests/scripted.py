"""A peer that answers what it is told to, over plain sockets: garbage, halves, wrong types, silence."""

from __future__ import annotations

import json
import socket
import threading
from typing import Any, Callable, List, Optional

Answer = Callable[[dict[str, Any]], Optional[bytes]]


def http(body: bytes, status: str = "200 OK", more: str = "") -> bytes:
    head = f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n{more}\r\n"
    return head.encode() + body


def result(call: dict[str, Any], value: Any) -> bytes:
    return http(json.dumps({"jsonrpc": "2.0", "id": call.get("id"), "result": value}).encode())


def refusal(call: dict[str, Any], number: int, code: str, **more: Any) -> bytes:
    data = {"code": code, "fault": "gateway", "retry": "later", **more}
    error = {"code": number, "message": f"{code}, as the script says", "data": data}
    return http(json.dumps({"jsonrpc": "2.0", "id": call.get("id"), "error": error}).encode())


class Peer:
    """A server on a port that was free, with a thread for each connection."""

    scheme = "http"

    def __init__(self) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = "%s://127.0.0.1:%d" % (self.scheme, self._listener.getsockname()[1])

    def __enter__(self) -> Any:
        threading.Thread(target=self._accept, daemon=True).start()
        return self

    def __exit__(self, *_: Any) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        raise NotImplementedError


class Scripted(Peer):
    """An HTTP server that gives each request to ``answer``. ``None`` breaks the connection."""

    def __init__(self, answer: Answer) -> None:
        super().__init__()
        self._answer = answer
        self.calls: List[dict[str, Any]] = []

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            while True:
                length = 0
                for line in incoming:
                    if line.lower().startswith(b"content-length:"):
                        length = int(line.split(b":")[1])
                    if line == b"\r\n":
                        break
                else:
                    return
                body = incoming.read(length)
                call = json.loads(body) if body else {}
                self.calls.append(call)
                answer = self._answer(call)
                if answer is None:
                    return
                try:
                    connection.sendall(answer)
                except OSError:
                    return
