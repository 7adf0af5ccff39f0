"""Capabilities as function tools for the OpenAI Agents SDK; ``pip install 'agent-reach-sdk[openai-agents]'``."""

from __future__ import annotations

import json
from typing import Any, List, Optional

from agents import FunctionTool
from agents.tool import Tool as AnyTool
from agents.tool_context import ToolContext

from ._async_client import AsyncClient
from ._tools import LIMIT, TOLD, Tool, text_of, told, tools_of

__all__ = ["tools"]


async def tools(
    client: AsyncClient,
    *,
    agent: Optional[str] = None,
    intent: Optional[str] = None,
    namespace: Optional[str] = None,
) -> List[AnyTool]:
    """A tool for each capability that the client may call.

    Who does the work is chosen at each call, unless ``agent`` names one. ``intent``: only what fits these words. What a
    model can do something about (nobody fits, the work failed) becomes the tool's answer; all else is raised.
    """
    found = await client.discover(intent, namespace=namespace, limit=LIMIT)
    return [_function(client, tool) for tool in tools_of(found, agent)]


def _function(client: AsyncClient, tool: Tool) -> FunctionTool:
    async def call(context: ToolContext[Any], arguments: str) -> str:
        try:
            given = json.loads(arguments or "{}")
        except ValueError as error:
            return f"the arguments are not JSON: {error}"
        try:
            task = await client.reach(tool.capability, tool.params(given), **tool.ask())
        except TOLD as error:
            return told(error)
        return text_of(task.result)

    return FunctionTool(
        name=tool.name,
        description=tool.description,
        params_json_schema=tool.schema,
        on_invoke_tool=call,
        strict_json_schema=False,
    )
