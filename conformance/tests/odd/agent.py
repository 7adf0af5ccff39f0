"""An HTTP agent from the documentation, right or wrong in the unusual way that its first argument names."""

import json
import os
import re
import signal
import sys
import threading
import time
import urllib.error
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

GATEWAY = os.environ["AGENT_REACH_URL"]
ME = {"agent_id": "odd@made"}
how = sys.argv[1]
stopped = threading.Event()
seat = threading.Lock()
answered = 0


def whole(value):
    return isinstance(value, int) and not isinstance(value, bool)


def offer(name, schema, **more):
    return {"name": name, "description": "An odd one.", "effect": "read", "input_schema": schema, **more}


# Names, schemas, and what fits them.
BOUNDS = {
    "past": ({"type": "integer", "exclusiveMinimum": 2**63 - 1}, lambda p: whole(p) and p > 2**63 - 1),
    "below": ({"type": "integer", "exclusiveMaximum": -(2**63)}, lambda p: whole(p) and p < -(2**63)),
    "coarse": ({"type": "integer", "minimum": 2**63 - 8, "multipleOf": 1000}, lambda p: whole(p) and p >= 2**63 - 8 and p % 1000 == 0),
    "narrow": ({"type": "number", "minimum": 0.1, "maximum": 0.9}, lambda p: isinstance(p, (int, float)) and 0.1 <= p <= 0.9),
    "code": ({"type": "string", "pattern": "^[A-Z]{3}$"}, lambda p: isinstance(p, str) and re.fullmatch("[A-Z]{3}", p)),
    "plain": ({"type": "string"}, lambda p: isinstance(p, str)),
}


def waits(unit):
    """One at a time, for as long as it is told, and full meanwhile."""
    schema = {"type": "object", "required": ["time"], "properties": {"time": {"type": "integer", "minimum": 0}}}

    def work(agent, delivery):
        span = (delivery.get("params") or {}).get("time") if isinstance(delivery.get("params"), dict) else None
        if not whole(span) or span < 0:
            return agent.answer(422, {})
        if not seat.acquire(blocking=False):
            return agent.answer(429, {}, {"Retry-After": "1"})
        try:
            time.sleep(span * unit)
        finally:
            seat.release()
        return agent.answer(200, {"waited": span})

    return [offer("wait", {**schema, "examples": [{"time": 0}]})], work


def bounds():
    def work(agent, delivery):
        fits = BOUNDS[delivery["capability"]][1](delivery.get("params"))
        return agent.answer(200, {"ok": True}) if fits else agent.answer(422, {})

    return [offer(name, schema) for name, (schema, _) in BOUNDS.items()], work


def idle():
    """It can be called off, and is too quick for that. It says nothing of what it does."""

    def work(agent, delivery):
        return agent.answer(200, 5) if isinstance(delivery.get("params"), str) else agent.answer(422, {})

    return [{**offer("quick", {"type": "string"}), "cancellable": True, "description": ""}], work


def breaks_after_one(then):
    def work(agent, delivery):
        global answered
        answered += 1
        if answered > 1:
            return then(agent)
        return agent.answer(200, 5)

    return [offer("once", {"type": "string"})], work


WAYS = {
    "waits_ms": lambda: waits(0.001),
    "waits_s": lambda: waits(1),
    "bounds": bounds,
    "idle": idle,
    "hangs": lambda: breaks_after_one(lambda _: stopped.wait(600)),
    "ends": lambda: breaks_after_one(lambda _: os._exit(3)),
    "odd_letters": lambda: breaks_after_one(lambda agent: agent.answer(422, "\0\1\x1b[31m]]>&<\ufffe\uffff\x85")),
}
CAPABILITIES, WORK = WAYS[how]()


class Desk(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do_GET(self):
        self.answer(404, {})

    def do_DELETE(self):
        self.answer(200, {})

    def do_POST(self):
        try:
            delivery = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            delivery["task_id"], delivery["token"], delivery["capability"]
        except (ValueError, KeyError, TypeError) as error:
            return self.answer(400, {"detail": repr(error)})
        return WORK(self, delivery)

    def answer(self, status, body, headers=None):
        text = json.dumps(body, ensure_ascii=False).encode() if not isinstance(body, str) else body.encode()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": len(text), **(headers or {})}.items():
            self.send_header(name, str(value))
        self.end_headers()
        self.wfile.write(text)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 128


def tell(path, body):
    request = urllib.request.Request(GATEWAY + path, json.dumps(body).encode(), {"Content-Type": "application/json"})
    return json.load(urllib.request.urlopen(request, timeout=10))


if len(sys.argv) > 2:
    with open(sys.argv[2], "w", encoding="utf-8") as file:
        file.write(str(os.getpid()))
signal.signal(signal.SIGTERM, lambda *_: stopped.set())
server = Server(("127.0.0.1", 0), Desk)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_address[1]}/work"
CARD = {
    **ME, "endpoints": [{"protocol": "http", "address": address}], "heartbeat_interval": "1s", "max_concurrency": 1,
    "capabilities": CAPABILITIES,
}
known = False
while not stopped.wait(0.7 if known else 0.1):
    try:
        tell("/agent/heartbeat", ME) if known else tell("/agent/register", CARD)
        known = True
    except urllib.error.HTTPError:
        known = False
    except OSError:
        pass
for method in ["agent/drain", "agent/deregister"]:
    tell("/rpc", {"jsonrpc": "2.0", "id": 1, "method": method, "params": ME})
