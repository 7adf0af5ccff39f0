"""The PyPI package `mcp` 2.x: it probes for the stateless era and falls back to the handshake; here both are asked for."""

import asyncio
import json
import sys

from mcp import Client, StdioServerParameters


async def main():
    if sys.argv[2] == "http":
        server = sys.argv[3]
    else:
        server = StdioServerParameters(command=sys.argv[3], args=sys.argv[4:])
    progress = []

    async def heard(done, total, message):
        progress.append(done)

    async with Client(server, mode=sys.argv[1]) as client:
        tools = await client.list_tools()
        said = await client.call_tool("echo", {"a": 1})
        has_progress = any(tool.name == "test_tool_with_progress" for tool in tools.tools)
        if has_progress:
            await client.call_tool("test_tool_with_progress", {}, progress_callback=heard)
        refused = await client.call_tool("strict", {"seats": "two"})
        print(json.dumps({
            "revision": client.protocol_version,
            "tools": sorted(tool.name for tool in tools.tools),
            "echo": said.structured_content,
            "progress": len(progress) if has_progress else None,
            "refused": refused.is_error,
        }))


asyncio.run(main())
