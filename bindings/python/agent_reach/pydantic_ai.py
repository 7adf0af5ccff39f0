"""Capabilities as a toolset for PydanticAI; ``pip install 'agent-reach-sdk[pydantic-ai]'``."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Dict, Optional

from pydantic_ai import ModelRetry, RunContext
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
from pydantic_core import SchemaValidator, core_schema

from ._async_client import AsyncClient
from ._calls import key_of
from ._tools import LIMIT, TOLD, Tool, told, tools_of

__all__ = ["ReachToolset"]

# The gateway checks the arguments against the capability's schema, and says what is wrong.
_ANY = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))


class ReachToolset(AbstractToolset[Any]):
    """A tool for each capability that the client may call, looked up anew at each step.

    Who does the work is chosen at each call, unless ``agent`` names one. ``intent``: only what fits these words. What a
    model can do something about (nobody fits, the work failed) is given back to it as a retry; all else is raised. The
    idempotency key of a call is made of its run and its tool call, so that a call which is replayed runs once.
    """

    def __init__(
        self,
        client: AsyncClient,
        *,
        agent: Optional[str] = None,
        intent: Optional[str] = None,
        namespace: Optional[str] = None,
        max_retries: int = 1,
        id: Optional[str] = None,
    ) -> None:
        self._client = client
        self._agent = agent
        self._intent = intent
        self._namespace = namespace
        self._max_retries = max_retries
        self._id = id

    @property
    def id(self) -> Optional[str]:
        """Names the toolset among those of an agent."""
        return self._id

    async def get_tools(self, ctx: RunContext[Any]) -> Dict[str, ToolsetTool[Any]]:
        """The tools, as things are now."""
        found = await self._client.discover(self._intent, namespace=self._namespace, limit=LIMIT)
        return {tool.name: self._tool(tool) for tool in tools_of(found, self._agent)}

    def _tool(self, tool: Tool) -> ToolsetTool[Any]:
        told = ToolDefinition(name=tool.name, description=tool.description, parameters_json_schema=tool.schema)
        return _ReachTool(toolset=self, tool_def=told, max_retries=self._max_retries, args_validator=_ANY, tool=tool)

    async def call_tool(
        self, name: str, tool_args: Dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """Calls a tool."""
        assert isinstance(tool, _ReachTool)
        known = tool.tool
        # A second try of the same call, after a failure, is another intention.
        key = (
            key_of("pydantic-ai", ctx.run_id, ctx.tool_call_id, ctx.retry) if ctx.run_id and ctx.tool_call_id else None
        )
        try:
            task = await self._client.reach(known.capability, known.params(tool_args), **known.ask(key))
        except TOLD as error:
            raise ModelRetry(told(error)) from error
        return task.result


@dataclass(kw_only=True)
class _ReachTool(ToolsetTool[Any]):
    tool: Tool
