"""An MCP server that is written by hand. It does everything right, but for one fault that is planted.

server.py FAULT stdio|http EFFECTS: over HTTP it prints its address first. Each effect is a line in the file EFFECTS.
"""

import json
import select
import socket
import sys
import threading
import time
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

FAULT, WAY, EFFECTS = sys.argv[1:4]
LEGACY = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"]
STATELESS = "2026-07-28"
VERSION = "io.modelcontextprotocol/protocolVersion"
LOCK = threading.Lock()
ONE = threading.Lock()
CALLED_OFF = {}
ENTERED = set()
STATE = {"limps": False, "text": "", "lists": 0, "ended": False}


class Refused(Exception):
    def __init__(self, code, message, data=None):
        super().__init__(message)
        self.error = {"code": code, "message": message, **({"data": data} if data else {})}


class Gone(Exception):
    """The call was called off: nothing is said."""


def has(fault):
    return FAULT == fault


def effect(line):
    with LOCK, open(EFFECTS, "a") as file:
        file.write(line + "\n")


def tools(stateless):
    text = {
        "type": "object", "required": ["text"],
        "properties": {"text": {"type": "string"}, "number": {"type": "number"}},
        "examples": [{"text": "one two", "number": 5}],
    }
    counted = {"type": "object", "required": ["words"], "properties": {"words": {"type": "integer"}}}
    nap = {"type": "object", "required": ["ms"], "properties": {"ms": {"type": "integer", "maximum": 5000}}, "examples": [{"ms": 5}]}
    found = [
        {"name": "count_words", "description": "Counts words.", "inputSchema": text, "outputSchema": counted, "annotations": {"readOnlyHint": True}},
        {"name": "nap", "description": "Sleeps for a while, and says so.", "inputSchema": nap, "annotations": {"readOnlyHint": False}},
        {"name": "enter", "description": "Enters a line once.", "inputSchema": text, "annotations": {"idempotentHint": True}},
        {"name": "stamp", "title": "Stamps", "inputSchema": text, "annotations": {"readOnlyHint": False}},
    ]
    if has("name_twice"):
        found.append({**found[3], "title": "Stamps again"})
    if has("odd_name"):
        found[3]["name"] = "stamp it!"
    if has("unusable_schema"):
        found[3]["outputSchema"] = {"type": "objekt"}
    if has("no_description"):
        del found[3]["title"]
    if has("no_hint"):
        del found[3]["annotations"]
    if has("contrary_hints"):
        found[0]["annotations"]["destructiveHint"] = True
    if has("eras_differ") and not stateless:
        found.pop()
    return found


def listed(params, stateless):
    if has("no_tools_member") and stateless:
        return {"items": []}
    found = tools(stateless)
    cursor = params.get("cursor")
    if cursor not in (None, "second") and not has("takes_any_cursor"):
        raise Refused(-32602, "no such cursor")
    if has("order_changes"):
        STATE["lists"] += 1
        if STATE["lists"] > 2:
            found.reverse()
    page = {"tools": found[:2], "nextCursor": "second"} if cursor is None else {"tools": found[2:]}
    return page


def called(params, request, notify, is_gone):
    name, arguments, meta = params.get("name"), params.get("arguments"), params.get("_meta", {})
    if has("never_answers_calls"):
        raise Gone
    if has("chokes_on_meta") and "idempotencyKey" in meta or has("chokes_on_unknown") and "x_from_a_newer_gateway" in params:
        raise Refused(-32603, "what is that?")
    if name not in [tool["name"] for tool in tools(True)]:
        if has("takes_unknown_tool"):
            return {"content": []}
        raise Refused(-32602, "no such tool")
    good = isinstance(arguments, dict) and (type(arguments.get("ms")) is int if name == "nap" else isinstance(arguments.get("text"), str))
    if not good:
        STATE["stumbles"] = has("limps_after_bad")
        if has("takes_bad"):
            return {"content": [], "structuredContent": {"words": 0}}
        return {"content": [{"type": "text", "text": "the arguments are wrong"}], "isError": True}
    if STATE.pop("stumbles", False):
        raise Refused(-32603, "it fell over")
    if has("drops_large") and len(arguments.get("text", "")) > 500_000:
        raise Gone
    if name == "nap":
        return napped(arguments["ms"], meta, request, notify, is_gone)
    if name == "count_words":
        return counted(arguments)
    if name != "enter" or arguments["text"] not in ENTERED or has("once_more"):
        ENTERED.add(arguments["text"])
        effect(name)
    return {"content": [{"type": "text", "text": "done"}]}


def counted(arguments):
    text, number = arguments["text"], arguments.get("number")
    if has("read_writes"):
        effect("count_words")
    if has("mixes_answers"):
        STATE["text"] = text
        time.sleep(0.05)
        text = STATE["text"]
    if has("mangles_unicode"):
        text = text.encode("ascii", "replace").decode()
    if has("rounds_numbers") and number is not None:
        number = int(float(number))
    words = len(text.split())
    structured = {"words": str(words) if has("breaks_output") else words, "text": text, "number": number}
    if has("content_is_text"):
        return {"content": "done", "structuredContent": structured}
    return {"content": [{"type": "text", "text": json.dumps(structured, ensure_ascii=False)}], "structuredContent": structured}


def napped(ms, meta, request, notify, is_gone):
    token = meta.get("progressToken")
    if has("progress_unasked") and token is None:
        token = "unasked"
    steps = max(1, ms // 50)

    def tell(step):
        if token is not None and ms > 100:
            told = {"progressToken": "another" if has("wrong_progress_token") else token, "progress": step, "total": steps}
            notify("notifications/progress", told)

    for step in range(steps):
        time.sleep(ms / steps / 1000)
        off = CALLED_OFF.get(request) or is_gone()
        if off and not has("ignores_cancel"):
            raise Gone
        tell(steps - step if has("progress_back") else step + 1)
    effect("nap")
    if has("progress_late"):
        threading.Timer(0.1, tell, [steps + 1]).start()
    return {"content": [{"type": "text", "text": f"napped {ms} ms"}]}


def greeted(params):
    asked = params["protocolVersion"]
    spoken = asked if asked in LEGACY else LEGACY[-1]
    if has("wrong_version_offered") and asked in LEGACY[:2]:
        spoken = LEGACY[LEGACY.index(asked) + 1] if asked == LEGACY[0] else LEGACY[2]
    if has("echoes_version"):
        spoken = asked
    greeting = {"protocolVersion": spoken, "capabilities": {"tools": {}}, "serverInfo": {"name": "hand", "version": "1"}}
    if has("no_server_info"):
        del greeting["serverInfo"]
    return greeting


def result_of(message, session, notify, is_gone):
    """What a request is answered with. `session` keeps what a conversation with a handshake agreed to."""
    method, params = message["method"], message.get("params") or {}
    version = (params.get("_meta") or {}).get(VERSION)
    stateless = version is not None
    if stateless and version != STATELESS and not has("serves_unknown_stateless"):
        raise Refused(-32022, "no such revision", {"supported": [STATELESS]})
    if STATE["limps"]:
        STATE["limps"] = False
        raise Refused(-32603, "it fell over")
    if method == "server/discover" and stateless:
        found = {"supportedVersions": [] if has("discover_without_versions") else [STATELESS], "capabilities": {"tools": {}}}
    elif method == "initialize" and not stateless:
        found = greeted(params)
        session["version"] = found["protocolVersion"]
    elif method == "ping" and not stateless and not has("no_pong"):
        found = {}
    elif method == "tools/list":
        if has("fails_old_revision") and session.get("version") == LEGACY[0]:
            raise Refused(-32603, "not in this revision")
        found = listed(params, stateless)
    elif method == "tools/call":
        found = called(params, json.dumps(message["id"]), notify, is_gone)
    elif has("answers_unknown_method"):
        found = {}
    else:
        raise Refused(-32601, "no such method")
    if stateless:
        found = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", **found}
        if has("no_result_type"):
            del found["resultType"]
        if has("no_ttl"):
            del found["ttlMs"]
    return found


def answer(message, session, notify, is_gone=lambda: False):
    """The answer to a request. None: there is none."""
    ident = message["id"]
    if has("mute"):
        return None
    if has("rounds_ids") and isinstance(ident, int):
        ident &= 0xFFFF
    try:
        return {"jsonrpc": "2.0", "id": ident, "result": result_of(message, session, notify, is_gone)}
    except Refused as refused:
        return {"jsonrpc": "2.0", "id": ident, "error": refused.error}
    except Gone:
        return None


def noticed(message):
    if message["method"] == "notifications/cancelled":
        asked = json.dumps(message["params"]["requestId"])
        CALLED_OFF[asked] = True
        STATE["limps"] = has("limps_after_cancel") and asked == "987654"


def stdio():
    session = {}

    def say(message):
        with LOCK:
            print(json.dumps(message, ensure_ascii=False), flush=True)

    def notify(method, params):
        say({"jsonrpc": "2.0", "method": method, "params": params})

    def respond(message):
        said = answer(message, session, notify)
        if said is not None:
            say(said)

    if has("prints"):
        print("Server is ready!", flush=True)
    for line in sys.stdin:
        try:
            message = json.loads(line)
        except ValueError:
            STATE["limps"] = has("limps_after_garbage")
            continue
        if "id" not in message:
            noticed(message)
            if has("answers_notices"):
                say({"jsonrpc": "2.0", "id": None, "error": {"code": -32601, "message": "no such notice"}})
        elif has("one_at_a_time") and "progressToken" in message["params"].get("_meta", {}):
            respond(message)
        else:
            threading.Thread(target=respond, args=[message], daemon=True).start()
    if has("never_ends"):
        time.sleep(60)


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    sessions = {}
    ended = set()

    def log_message(self, *_):
        pass

    def reply(self, status, body=None, **headers):
        text = b"" if body is None else json.dumps(body, ensure_ascii=False).encode()
        self.send_response(status)
        if text:
            self.send_header("Content-Type", "application/json")
        for name, value in headers.items():
            self.send_header(name.replace("_", "-"), value)
        self.send_header("Content-Length", str(len(text)))
        self.end_headers()
        self.wfile.write(text)

    def is_gone(self):
        readable, _, _ = select.select([self.connection], [], [], 0)
        return bool(readable) and self.connection.recv(1, socket.MSG_PEEK) == b""

    def do_DELETE(self):
        session = self.headers.get("Mcp-Session-Id")
        if has("no_delete"):
            return self.reply(500)
        if not has("ended_goes_on") and not has("same_session"):
            self.sessions.pop(session, None)
            self.ended.add(session)
        STATE["ended"] = True
        self.reply(204)

    def do_POST(self):
        text = self.rfile.read(int(self.headers["Content-Length"]))
        try:
            message = json.loads(text)
        except ValueError:
            return self.reply(200 if has("garbage_200") else 400, {"jsonrpc": "2.0", "id": None, "error": {"code": -32700, "message": "no JSON"}})
        params = message.get("params") or {}
        stateless = VERSION in (params.get("_meta") or {})
        session, headers = {}, {}
        if message.get("method") == "initialize":
            if has("one_session_only") and STATE["ended"]:
                return self.reply(500)
            ident = "a b" + uuid.uuid4().hex if has("odd_session_id") else "always" if has("same_session") else uuid.uuid4().hex
            headers["Mcp_Session_Id"] = ident
            session = self.sessions.setdefault(ident, {})
        elif not stateless:
            session_id = self.headers.get("Mcp-Session-Id")
            session = self.sessions.get(session_id)
            if session is None:
                return self.reply(400 if has("unknown_session_400") and session_id not in self.ended else 404)
            version = self.headers.get("MCP-Protocol-Version", LEGACY[1])
            if version not in LEGACY and not has("any_version_header"):
                return self.reply(400)
        if "id" not in message:
            noticed(message)
            return self.reply(200 if has("notice_200") else 202)
        if message["method"] == "tools/call":
            return self.stream(message, session)
        said = answer(message, session, lambda *_: None)
        status = 200
        if stateless and said and "error" in said:
            status = {-32601: 404, -32022: 400}.get(said["error"]["code"], 200)
        self.reply(status, said, **headers)

    def stream(self, message, session):
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()

        def send(message):
            data = f"event: message\ndata: {json.dumps(message, ensure_ascii=False)}\n\n".encode()
            try:
                self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))
                self.wfile.flush()
            except OSError:
                pass

        said = answer(message, session, lambda method, params: send({"jsonrpc": "2.0", "method": method, "params": params}), self.is_gone)
        if said is not None:
            send(said)
        try:
            self.wfile.write(b"0\r\n\r\n")
        except OSError:
            self.close_connection = True


if WAY == "stdio":
    stdio()
else:
    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:{server.server_port}/mcp", flush=True)
    # It ends with whoever started it.
    sys.stdin.read()
