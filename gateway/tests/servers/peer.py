"""An MCP server for tests, over standard input and output or HTTP, of either era. Standard library only.

peer.py stdio|http STATE [--era handshake|stateless] [--port N] [--junk] [--mute] [--tools N] [--bare] [--do-it TOOL] [--then STATUS]
         [--slow SECONDS]

STATE is a folder: `requests` has every message that came, as it came; `count` how often the tool of that name was called, and under which keys; `keys` the header of that name;
`pids` the processes that ran over standard input and output. With --bare it has no tools.
With --slow it reads nothing for so long, as a program that is slow to start. With --then the tool `count` is answered over HTTP by this status alone, after it has counted, and by a way to elsewhere.
"""
import json, os, queue, sys, threading, time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

KIND, STATE, FLAGS = sys.argv[1], sys.argv[2], sys.argv[3:]
ERA = FLAGS[FLAGS.index("--era") + 1] if "--era" in FLAGS else "handshake"
TOOLS = int(FLAGS[FLAGS.index("--tools") + 1]) if "--tools" in FLAGS else 0
ECHO = ('{"content":[{"type":"text","text":"heard","vendor":1}],"structuredContent":{"n":1.10},"vendor":{"k":[1,2]}}')
grown, listeners, sessions, lock = [], [], {}, threading.Lock()


def note(name, text):
    with lock, open(os.path.join(STATE, name), "a") as file:
        file.write(text + "\n")


def tool(name, hints=None):
    return {"name": name, "description": "does " + name, "inputSchema": {"type": "object"}, "annotations": hints or {}}


def tools():
    if "--bare" in FLAGS:
        return []
    reads = ["echo", "progress", "hang", "ask", "env", "grow", "log"]
    listed = [tool(name, {"readOnlyHint": True}) for name in reads]
    listed += [tool("odd", {"readOnlyHint": True})] if "--odd" in FLAGS else []
    listed += [tool("count"), tool("fail"), tool("die"), {"name": "broken", "inputSchema": {"type": 7}}]
    return listed + [tool(name) for name in grown] + [tool("extra_%d" % at) for at in range(TOOLS)]


def call(params, say, ask):
    name, meta = params["name"], params.get("_meta", {})
    name = FLAGS[FLAGS.index("--do-it") + 1] if name == "do_it" else name
    text = lambda said: json.dumps({"content": [{"type": "text", "text": said}]})
    if name == "count":
        note("count", json.dumps(meta.get("idempotencyKey")))
        return text(str(sum(1 for _ in open(os.path.join(STATE, "count")))))
    if name == "fail":
        return '{"content":[{"type":"text","text":"no such thing"}],"isError":true,"vendor":7}'
    if name == "log":
        say("notifications/message", {"level": "info", "data": params["arguments"]["who"]})
    if name == "progress":
        for at in (1, 2):
            say("notifications/progress", {"progressToken": meta.get("progressToken"), "progress": at, "total": 2})
    if name in ("progress", "log"):
        while not os.path.exists(os.path.join(STATE, "go")):
            time.sleep(0.02)
    if name == "hang":
        time.sleep(3600)
    if name == "die":
        os._exit(3)
    if name == "env":
        return text(" ".join(sorted(os.environ)))
    if name == "grow":
        grown.append("new_tool")
        for listener in listeners:
            listener("notifications/tools/list_changed", {})
    if name == "ask":
        return text(json.dumps(ask("sampling/createMessage", {"messages": [], "maxTokens": 1})))
    return ECHO


def answer(message, say, ask):
    """The result of a request as text, or an error object."""
    method, params = message["method"], message.get("params", {})
    modern = "io.modelcontextprotocol/protocolVersion" in params.get("_meta", {})
    if method == "initialize" and ERA == "handshake":
        told = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {"listChanged": True}}}
        return json.dumps({**told, "serverInfo": {"name": "peer", "version": "1"}, "instructions": "A peer."}), None
    if method == "server/discover" and ERA == "stateless" and modern:
        return json.dumps({"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {"listChanged": True}}}), None
    if method == "initialize":
        return None, {"code": -32022, "message": "the stateless era is spoken here"}
    if ERA == "stateless" and not modern:
        return None, {"code": -32602, "message": "no revision"}
    if method == "ping":
        return "{}", None
    if method == "tools/list":
        listed, page = tools(), 5
        at = int(params.get("cursor", 0))
        told = {"tools": listed[at : at + page]}
        if at + page < len(listed):
            told["nextCursor"] = str(at + page)
        return json.dumps(told), None
    if method == "tools/call":
        return call(params, say, ask), None
    return None, {"code": -32601, "message": "no method " + method}


def reply(message, outcome):
    result, error = outcome
    head = '{"jsonrpc":"2.0","id":%s,' % json.dumps(message["id"])
    return head + ('"result":%s}' % result if error is None else '"error":%s}' % json.dumps(error))


def odd(message, how):
    """Bytes that answer a request and are no answer: what the tool `odd` says, which is there with --odd."""
    head = b'{"jsonrpc":"2.0","id":%s,' % json.dumps(message["id"]).encode()
    text = b'"result":{"content":[{"type":"text","text":"%s"}]}}'
    kinds = {
        "error_is_text": head + b'"error":"no"}',
        "both": head + b'"result":{},"error":{"code":1,"message":"no"}}',
        "latin": head + text % b"\xff\xfe",
        "deep": head + b'"result":' + b"[" * 1000 + b"]" * 1000 + b"}",
        "cut": head + b'"result":{"content":',
        "in_a_batch": b"[" + head + b'"error":"no"}]',
    }
    return (text % (b"y" * 40_000_000) if how == "huge" else kinds[how]) + b"\n"


def notice(method, params):
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params})


class Asking:
    """Questions to the client, and its answers."""

    def __init__(self):
        self.answers = queue.Queue()

    def __call__(self, write):
        def ask(method, params):
            write(json.dumps({"jsonrpc": "2.0", "id": "q1", "method": method, "params": params}))
            return self.answers.get(timeout=20)
        return ask


def stdio():
    note("pids", str(os.getpid()))
    asking, out = Asking(), threading.Lock()

    def write(text):
        with out:
            sys.stdout.write(text + "\n")
            sys.stdout.flush()

    say = lambda method, params: write(notice(method, params))
    if ERA == "handshake":
        listeners.append(say)
    if "--junk" in FLAGS:
        print("starting up, this is no message\n{not json\n", flush=True)
        print("a complaint about nothing", file=sys.stderr, flush=True)
    time.sleep(float(FLAGS[FLAGS.index("--slow") + 1]) if "--slow" in FLAGS else 0)
    for line in sys.stdin:
        note("requests", line.strip())
        message = json.loads(line)
        if "method" not in message:
            asking.answers.put(message)
        elif message["method"] == "subscriptions/listen":
            listeners.append(say)
        elif message["method"] == "tools/call" and message["params"]["name"] == "odd":
            with out:
                sys.stdout.buffer.write(odd(message, message["params"]["arguments"]["how"]))
                sys.stdout.flush()
        elif "id" in message and "--mute" not in FLAGS:
            work = lambda message=message: write(reply(message, answer(message, say, asking(write))))
            threading.Thread(target=work, daemon=True).start()


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    log_message = lambda *_: None

    def head(self, status, kind=None, length=None, session=None):
        self.send_response(status)
        if kind:
            self.send_header("content-type", kind)
        if session:
            self.send_header("mcp-session-id", session)
        if length is None:
            self.send_header("connection", "close")
            self.close_connection = True
        else:
            self.send_header("content-length", str(length))
        self.end_headers()

    def whole(self, status, text="", session=None):
        self.head(status, "application/json" if text else None, len(text.encode()), session)
        self.wfile.write(text.encode())

    def event(self, text):
        self.wfile.write(("event: message\ndata: %s\n\n" % text).encode())
        self.wfile.flush()

    def do_POST(self):
        text = self.rfile.read(int(self.headers["content-length"])).decode()
        credentials = self.headers.get("authorization")
        note("requests", text if credentials is None else text + " " + credentials)
        if "idempotency-key" in self.headers:
            note("keys", self.headers["idempotency-key"])
        message, session = json.loads(text), self.headers.get("mcp-session-id")
        if ERA == "handshake" and message.get("method") != "initialize":
            if session is None:
                return self.whole(400, json.dumps({"jsonrpc": "2.0", "id": None, "error": {"code": -32000, "message": "no session"}}))
            if session not in sessions:
                return self.whole(404)
        if "method" not in message:
            sessions[session].answers.put(message)
            return self.whole(202)
        if "id" not in message:
            return self.whole(202)
        opened = None
        if message["method"] == "initialize" and ERA == "handshake":
            opened = "s%d-%d" % (os.getpid(), len(sessions))
            sessions[opened] = Asking()
        if message["method"] == "subscriptions/listen" and ERA == "stateless":
            return self.listen(message["id"])
        name = message.get("params", {}).get("name")
        if name == "count" and "--then" in FLAGS:
            answer(message, None, None)
            self.send_response(int(FLAGS[FLAGS.index("--then") + 1]))
            for away in ("location", "refresh", "x-accel-redirect", "access-control-allow-origin", "x-kept-by-nobody"):
                self.send_header(away, "/rpc")
            self.send_header("content-length", "0")
            return self.end_headers()
        if name in ("progress", "ask", "log") or name == "do_it" and "hang" in FLAGS:
            self.head(200, "text/event-stream")
            say = lambda method, params: self.event(notice(method, params))
            asking = sessions.get(session) or Asking()
            return self.event(reply(message, answer(message, say, asking(self.event))))
        return self.whole(200, reply(message, answer(message, lambda *_: None, None)), opened)

    def listen(self, subscription=None):
        told = queue.Queue()
        tag = {} if subscription is None else {"_meta": {"io.modelcontextprotocol/subscriptionId": subscription}}
        listeners.append(lambda method, params: told.put(notice(method, {**params, **tag})))
        self.head(200, "text/event-stream")
        if subscription is not None:
            self.event(notice("notifications/subscriptions/acknowledged", tag))
        note("requests", "listening")
        while True:
            self.event(told.get())

    def do_GET(self):
        session = self.headers.get("mcp-session-id")
        if ERA == "stateless":
            return self.whole(405)
        if session not in sessions:
            return self.whole(404)
        self.listen()

    def do_DELETE(self):
        note("requests", "deleted " + str(self.headers.get("mcp-session-id")))
        sessions.pop(self.headers.get("mcp-session-id"), None)
        self.whole(200)


class Server(ThreadingHTTPServer):
    daemon_threads = True
    handle_error = lambda *_: None


if KIND == "stdio":
    stdio()
else:
    server = Server(("127.0.0.1", int(FLAGS[FLAGS.index("--port") + 1]) if "--port" in FLAGS else 0), Handler)
    print(server.server_port, flush=True)
    server.serve_forever()
