"""The PyPI package `fastmcp` 4."""

import asyncio
import json
import sys

from fastmcp import Client
from fastmcp.client.transports import StdioTransport


async def main():
    server = sys.argv[2] if sys.argv[1] == "http" else StdioTransport(command=sys.argv[2], args=sys.argv[3:])
    async with Client(server) as client:
        tools = await client.list_tools()
        said = await client.call_tool("echo", {"a": 1})
        refused = await client.call_tool("strict", {"seats": "two"}, raise_on_error=False)
        print(json.dumps({
            "revision": None,
            "tools": sorted(tool.name for tool in tools),
            "echo": said.structured_content,
            "progress": None,
            "refused": refused.is_error,
        }))


asyncio.run(main())
