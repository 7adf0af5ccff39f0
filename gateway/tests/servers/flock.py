"""One of many MCP servers: `flock.py NUMBER`. It is small, so that a hundred of them fit on one machine, and has fifty tools that
no other has: it can do each of fifty things with the one thing that it is about.
"""
import json, os, sys

verbs, nouns = [line.split() for line in open(os.path.join(os.path.dirname(__file__), "flock.txt"))]
noun = nouns[int(sys.argv[1])]


def tool(verb):
    what = {"type": "string", "description": "Which %s, by its number or its name." % noun}
    when = {"type": "string", "format": "date-time", "description": "When to do it. At once if left out."}
    schema = {"type": "object", "properties": {"which": what, "when": when}, "required": ["which"]}
    text = "%s one %s, and tells what came of it." % (verb.capitalize(), noun)
    return {"name": verb + "_" + noun, "description": text, "inputSchema": schema, "annotations": {"readOnlyHint": True}}


def answer(method, params):
    if method == "initialize":
        return {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": {"name": noun, "version": "1"}}
    if method == "tools/list":
        return {"tools": [tool(verb) for verb in verbs]}
    if method == "tools/call":
        return {"content": [{"type": "text", "text": params["name"] + " " + params["arguments"]["which"]}]}
    return {} if method == "ping" else None


for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    result = answer(asked["method"], asked.get("params"))
    said = {"error": {"code": -32601, "message": "no such method"}} if result is None else {"result": result}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **said}), flush=True)
