"""Peers that go wrong: whatever they answer, the client raises a typed error and stays usable."""

from __future__ import annotations

import base64
import hashlib
import json
import socket
import struct
import threading
from typing import Any, Callable, Dict, Optional

import pytest

import agent_reach
from agent_reach import AgentReachError, Client
from conftest import WITHIN, run
from faces import Async, Sync
from scripted import Peer, Scripted, http, result

VIEW = {
    "task_id": "01890a5d-ac96-774b-bcce-b302099a8057", "phase": "completed", "mode": "direct", "priority": 5, "token": 1,
    "created_at": "2026-11-30T08:00:00.000Z", "deadline_at": "2026-11-30T08:05:00.000Z", "result": 7,
}  # fmt: skip

Fault = Callable[[Dict[str, Any]], Optional[bytes]]

FAULTS: Dict[str, Fault] = {
    "nothing": lambda call: None,
    "no http at all": lambda call: b"\x00\xff\x00garbage\r\n\r\n",
    "half of the head": lambda call: b"HTTP/1.1 200 OK\r\nContent-Le",
    "html": lambda call: http(b"<html>Bad gateway</html>", "502 Bad Gateway"),
    "not json": lambda call: http(b"{"),
    "not utf-8": lambda call: http(b'{"jsonrpc":"2.0","id":1,"result":"\xff\xfe"}'),
    "empty": lambda call: http(b""),
    "null": lambda call: http(b"null"),
    "an array": lambda call: http(b"[]"),
    "neither result nor error": lambda call: http(b'{"jsonrpc":"2.0","id":1}'),
    "an error that is none": lambda call: http(b'{"jsonrpc":"2.0","id":1,"error":"no"}'),
    "an error nobody knows": lambda call: http(b'{"jsonrpc":"2.0","id":1,"error":{"code":77,"message":"?"}}'),
    "a result of the wrong type": lambda call: result(call, "text"),
    "a view that lacks fields": lambda call: result(call, {"task_id": VIEW["task_id"]}),
    "a phase nobody knows": lambda call: result(call, {**VIEW, "phase": "sleeping"}),
    "an id that is none": lambda call: result(call, {**VIEW, "task_id": "../../etc"}),
    "too deep": lambda call: http(b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 100_000 + b"]" * 100_000 + b"}"),
    "too short a body": lambda call: http(b"{}").replace(b"Content-Length: 2", b"Content-Length: 2000"),
    "a teapot": lambda call: http(b"{}", "418 I'm a teapot"),
    "a redirect": lambda call: http(b"", "302 Found", "Location: http://127.0.0.1:9/\r\n"),
    "a count that is no number": lambda call: http(b"{}").replace(b"Length: 2", b"Length: two"),
}


@pytest.mark.parametrize("make", [Sync, Async], ids=["sync", "async"])
def test_whatever_is_answered_is_a_typed_error_and_the_client_goes_on(make: Any) -> None:
    fault: Dict[str, Optional[Fault]] = {"now": None}

    def answer(call: Dict[str, Any]) -> Optional[bytes]:
        now = fault["now"]
        return result(call, VIEW) if now is None else now(call)

    with Scripted(answer) as script:
        face = make(script.url, retries=0, call_timeout=0.3)
        with Client(script.url, retries=0, call_timeout=0.3) as kept:
            for name, wrong in FAULTS.items():
                fault["now"] = wrong
                for call in (face.submit, kept.submit):
                    with pytest.raises(AgentReachError) as caught:
                        call("x", {"fault": name})
                    kinds = (agent_reach.ProtocolError, agent_reach.TransportError, agent_reach.Unavailable)
                    assert isinstance(caught.value, kinds), f"{name}: {caught.value!r}"
                    assert str(caught.value), name
                fault["now"] = None
                assert any(comes_back(kept) for _ in range(40)), name


def test_silence_is_a_transport_error_in_time() -> None:
    def silent(call: Dict[str, Any]) -> Optional[bytes]:
        threading.Event().wait(WITHIN)
        return None

    with Scripted(silent) as script:
        with pytest.raises(agent_reach.TransportError, match="no answer within 200ms"):
            Sync(script.url, retries=0, call_timeout=0.2).agents()


def test_a_lost_answer_is_asked_for_again_under_the_same_key() -> None:
    tries = iter([None, None])

    def answer(call: Dict[str, Any]) -> Optional[bytes]:
        return next(tries, result(call, VIEW))

    with Scripted(answer) as script:
        assert Sync(script.url).submit("x").result == 7
        keys = {call["params"]["idempotency_key"] for call in script.calls}
        assert len(script.calls) == 3 and len(keys) == 1
        tries = iter([None])
        with pytest.raises(agent_reach.TransportError):
            Sync(script.url).submit("x", idempotency_key=False)


def frame(opcode: int, payload: bytes, *, length: Optional[int] = None) -> bytes:
    size = len(payload) if length is None else length
    return struct.pack("!BBH", 0x80 | opcode, 126, size) + payload


WS_FAULTS = {
    "not json": frame(1, b"}{"),
    "not utf-8": frame(1, b"\xff\xff"),
    "half of a frame": frame(1, b"{", length=500),
    "a reserved opcode": frame(11, b""),
    "an answer to nobody": frame(1, b'{"jsonrpc":"2.0","id":987654,"result":1}'),
    "an id that is none": frame(1, b'{"jsonrpc":"2.0","id":{"a":1},"result":1}'),
    "the wrong type": frame(1, b'{"jsonrpc":"2.0","id":ID,"result":7}'),
    "a binary one": frame(2, b"\x00\x01"),
}


class WsPeer(Peer):
    """A WebSocket server that answers every message with bytes of its own, while it is told to."""

    scheme = "ws"
    fault: Optional[bytes] = None

    def _serve(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as incoming:
            key = b""
            for line in incoming:
                if line.lower().startswith(b"sec-websocket-key:"):
                    key = line.split(b":")[1].strip()
                if line == b"\r\n":
                    break
            accept = base64.b64encode(hashlib.sha1(key + b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11").digest())
            connection.sendall(
                b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
                b"Sec-WebSocket-Accept: " + accept + b"\r\n\r\n"
            )
            while True:
                call = self._read(incoming)
                if call is None:
                    return
                number = str(call["id"]).encode()
                if self.fault is not None:
                    told = self.fault.replace(b"ID", number)
                    connection.sendall(
                        told[:2] + struct.pack("!H", len(told) - 4) + told[4:] if b"ID" in self.fault else told
                    )
                    continue
                answer = {"jsonrpc": "2.0", "id": call["id"], "result": VIEW}
                connection.sendall(frame(1, json.dumps(answer).encode()))

    @staticmethod
    def _read(incoming: Any) -> Optional[Dict[str, Any]]:
        while True:
            head = incoming.read(2)
            if len(head) < 2:
                return None
            size = head[1] & 0x7F
            if size == 126:
                size = struct.unpack("!H", incoming.read(2))[0]
            mask = incoming.read(4)
            payload = bytes(byte ^ mask[n % 4] for n, byte in enumerate(incoming.read(size)))
            if head[0] & 0x0F == 1:
                told: Dict[str, Any] = json.loads(payload)
                return told
            if head[0] & 0x0F == 8:
                return None


def test_frames_that_are_none_are_typed_errors_and_the_connection_comes_back() -> None:
    with WsPeer() as peer:
        for name, wrong in WS_FAULTS.items():
            with Client(peer.url, retries=0, call_timeout=0.3) as client:
                peer.fault = wrong
                with pytest.raises(AgentReachError) as caught:
                    client.submit("x")
                assert isinstance(caught.value, (agent_reach.TransportError, agent_reach.ProtocolError)), name
                peer.fault = None
                assert any(comes_back(client) for _ in range(40)), name


def comes_back(client: Client) -> bool:
    try:
        return bool(client.submit("x").result == 7)
    except agent_reach.TransportError:
        return False


def test_a_loop_is_not_held_up_by_a_peer_that_goes_wrong() -> None:
    import asyncio

    with Scripted(lambda call: None) as script:

        async def on_loop() -> int:
            async with agent_reach.AsyncClient(script.url, retries=3) as client:
                calls = [asyncio.ensure_future(client.submit("x")) for _ in range(20)]
                turns = 0
                while not all(call.done() for call in calls):
                    await asyncio.sleep(0)
                    turns += 1
                assert all(isinstance(call.exception(), AgentReachError) for call in calls)
                return turns

        assert run(on_loop()) > 100
