"""Capabilities as tools for LangChain and LangGraph; ``pip install 'agent-reach-sdk[langchain]'``."""

from __future__ import annotations

from typing import Any, List, Optional

from langchain_core.tools import BaseTool, StructuredTool, ToolException

from ._async_client import AsyncClient
from ._client import Client
from ._tools import LIMIT, TOLD, Tool, told, tools_of

__all__ = ["atools", "tools"]


async def atools(
    client: AsyncClient,
    *,
    agent: Optional[str] = None,
    intent: Optional[str] = None,
    namespace: Optional[str] = None,
) -> List[BaseTool]:
    """A tool for each capability that the client may call, for use with ``ainvoke``.

    Who does the work is chosen at each call, unless ``agent`` names one. ``intent``: only what fits these words. What a
    model can do something about (nobody fits, the work failed) becomes the tool's answer; all else is raised.
    """
    found = await client.discover(intent, namespace=namespace, limit=LIMIT)

    def made(tool: Tool) -> BaseTool:
        async def call(**arguments: Any) -> Any:
            try:
                task = await client.reach(tool.capability, tool.params(arguments), **tool.ask())
            except TOLD as error:
                raise ToolException(told(error)) from error
            return task.result

        return _structured(tool, coroutine=call)

    return [made(tool) for tool in tools_of(found, agent)]


def tools(
    client: Client,
    *,
    agent: Optional[str] = None,
    intent: Optional[str] = None,
    namespace: Optional[str] = None,
) -> List[BaseTool]:
    """The same for use with ``invoke``."""
    found = client.discover(intent, namespace=namespace, limit=LIMIT)

    def made(tool: Tool) -> BaseTool:
        def call(**arguments: Any) -> Any:
            try:
                return client.reach(tool.capability, tool.params(arguments), **tool.ask()).result
            except TOLD as error:
                raise ToolException(told(error)) from error

        return _structured(tool, func=call)

    return [made(tool) for tool in tools_of(found, agent)]


def _structured(tool: Tool, **how: Any) -> BaseTool:
    return StructuredTool(
        name=tool.name, description=tool.description, args_schema=tool.schema, handle_tool_error=True, **how
    )
