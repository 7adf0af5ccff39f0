"""The PyPI package `mcp` 1.x: a client of the handshake era, over Streamable HTTP or standard input and output."""

import asyncio
import json
import sys

from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client


async def talk(reader, writer):
    progress = []

    async def heard(done, total, message):
        progress.append([done, total])

    async with ClientSession(reader, writer) as session:
        opened = await session.initialize()
        await session.send_ping()
        tools = await session.list_tools()
        said = await session.call_tool("echo", {"a": 1})
        told = await session.call_tool("test_tool_with_progress", {}, progress_callback=heard) if has(tools, "test_tool_with_progress") else None
        refused = await session.call_tool("strict", {"seats": "two"})
        print(json.dumps({
            "revision": opened.protocolVersion,
            "tools": sorted(tool.name for tool in tools.tools),
            "echo": said.structuredContent,
            "progress": len(progress) if told else None,
            "refused": refused.isError,
        }))


def has(tools, name):
    return any(tool.name == name for tool in tools.tools)


async def main():
    if sys.argv[1] == "http":
        async with streamablehttp_client(sys.argv[2]) as (reader, writer, _):
            await talk(reader, writer)
    else:
        async with stdio_client(StdioServerParameters(command=sys.argv[2], args=sys.argv[3:])) as (reader, writer):
            await talk(reader, writer)


asyncio.run(main())
