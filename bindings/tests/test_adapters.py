"""Capabilities as tools of frameworks, with the real packages."""

from __future__ import annotations

import dataclasses
import json
from typing import Any, Dict, Iterator, List, Optional

import pytest

import agent_reach
from agent_reach import Agent, AsyncClient, Client
from agent_reach.testing import Gateway
from conftest import Background, Desk, run


@dataclasses.dataclass
class Doc:
    """A document, perhaps with others in it."""

    text: str
    parts: Optional[List[Doc]] = None


@pytest.fixture
def reader(gateway: Gateway, name: str) -> Iterator[Agent]:
    """An agent whose schemas name the classes of its hints."""
    agent = Agent(f"{name}@tests", url=gateway.url)

    @agent.capability(f"{name}_one", effect="read")
    def one(doc: Doc) -> int:
        """Counts the words of a document."""
        return len(doc.text.split()) + sum(map(one, doc.parts or ()))

    @agent.capability(f"{name}_many", effect="read")
    def many(docs: List[Doc], /) -> int:
        """Counts the words of documents."""
        return sum(map(one, docs))

    with Background(agent):
        yield agent


DOC = {"text": "one two", "parts": [{"text": "three"}]}


def test_langchain_tools(gateway: Gateway, desk: Desk) -> None:
    pytest.importorskip("langchain_core")
    from agent_reach.langchain import atools, tools

    with Client(gateway.url) as client:
        mine = {tool.name: tool for tool in tools(client, agent=desk.id, namespace="tests")}
        assert set(mine) >= {desk.count, desk.echo, desk.fail}
        count = mine[desk.count]
        assert count.description == "Counts the words of a text, or its letters."
        assert count.args["text"] == {"type": "string"}
        assert count.invoke({"text": "one two"}) == 2
        call = {"type": "tool_call", "id": "c1", "name": desk.count, "args": {"text": "a b c"}}
        message = count.invoke(call)
        assert (message.content, message.tool_call_id, message.status) == ("3", "c1", "success")
        failed = mine[desk.fail].invoke({**call, "name": desk.fail, "args": {"message": "no ink"}})
        assert failed.status == "error" and "no ink" in failed.content
        assert mine[desk.echo].invoke({"params": [1, 2]}) == [1, 2]

    async def on_loop() -> None:
        async with AsyncClient(gateway.url) as client:
            mine = {tool.name: tool for tool in await atools(client, agent=desk.id, namespace="tests")}
            assert await mine[desk.count].ainvoke({"text": "one two three"}) == 3

    run(on_loop())


def test_pydantic_ai_toolset(gateway: Gateway, desk: Desk) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent as Model
    from pydantic_ai.messages import (
        ModelMessage,
        ModelResponse,
        RetryPromptPart,
        TextPart,
        ToolCallPart,
        ToolReturnPart,
    )
    from pydantic_ai.models.function import AgentInfo, FunctionModel

    from agent_reach.pydantic_ai import ReachToolset

    seen: List[Any] = []

    def model(messages: List[ModelMessage], info: AgentInfo) -> ModelResponse:
        tools = {tool.name: tool for tool in info.function_tools}
        assert tools[desk.count].parameters_json_schema["properties"]["text"] == {"type": "string"}
        last = messages[-1].parts[-1]
        # Which of the two a retry is, depends on the version.
        if isinstance(last, RetryPromptPart) or getattr(last, "outcome", "") == "retried":
            seen.append(last.content)  # type: ignore[union-attr]
            return ModelResponse(parts=[ToolCallPart(desk.count, {"text": "one two"})])
        if isinstance(last, ToolReturnPart):
            return ModelResponse(parts=[TextPart(f"there are {last.content}")])
        return ModelResponse(parts=[ToolCallPart(desk.fail, {"message": "no paper"})])

    async def on_loop() -> str:
        async with AsyncClient(gateway.url) as client:
            toolset = ReachToolset(client, agent=desk.id, namespace="tests")
            asked = await Model(FunctionModel(model), toolsets=[toolset]).run("How many words?")
            return asked.output

    assert run(on_loop()) == "there are 2"
    assert len(seen) == 1 and "no paper" in str(seen[0])


def test_openai_agents_tools(gateway: Gateway, desk: Desk) -> None:
    pytest.importorskip("agents")
    from agents import Agent as Model
    from agents import ItemHelpers, ModelResponse, RunConfig, Runner, Usage
    from agents.models.interface import Model as ModelFace
    from openai.types.responses import ResponseFunctionToolCall, ResponseOutputMessage, ResponseOutputText

    from agent_reach.openai_agents import tools

    class Script(ModelFace):
        """A model that calls the tools of its script, one a turn, and then repeats what the last one said."""

        def __init__(self, calls: List[ResponseFunctionToolCall]) -> None:
            self._calls = calls

        async def get_response(self, system_instructions: Any, input: Any, *rest: Any, **more: Any) -> ModelResponse:
            if self._calls:
                return ModelResponse(output=[self._calls.pop(0)], usage=Usage(), response_id=None)
            told = ResponseOutputText(annotations=[], text=str(input[-1]["output"]), type="output_text", logprobs=[])
            message = ResponseOutputMessage(
                id="m", content=[told], role="assistant", status="completed", type="message"
            )
            return ModelResponse(output=[message], usage=Usage(), response_id=None)

        def stream_response(self, *rest: Any, **more: Any) -> Any:
            raise NotImplementedError

    def call(name: str, arguments: Dict[str, Any]) -> ResponseFunctionToolCall:
        return ResponseFunctionToolCall(arguments=json.dumps(arguments), call_id=name, name=name, type="function_call")

    async def on_loop() -> List[Any]:
        async with AsyncClient(gateway.url) as client:
            mine = await tools(client, agent=desk.id, namespace="tests")
            script = Script([call(desk.fail, {"message": "no ink"}), call(desk.count, {"text": "a b c d"})])
            model = Model(name="m", model=script, tools=mine)
            ran = await Runner.run(model, "How many words?", run_config=RunConfig(tracing_disabled=True))
            outputs = [item.output for item in ran.new_items if item.type == "tool_call_output_item"]
            return [ran.final_output, *outputs]

    last, failed, counted = run(on_loop())
    assert (last, counted) == ("4", "4") and "no ink" in failed
    assert ItemHelpers is not None


def test_nobody_fits_is_told_with_what_was_near() -> None:
    from agent_reach import Suggestion
    from agent_reach._tools import told

    near = Suggestion({"agent_id": "a@b", "capability": "c", "lacks": [{"reason": "full", "detail": "4 of 4"}]})
    error = agent_reach.NoCandidate("nobody fits", code="no_candidate", suggestions=(near,))
    assert told(error) == "no_candidate: nobody fits\nNear: c of a@b (4 of 4)"


def test_a_model_as_the_only_argument_is_the_arguments_of_a_langchain_tool(
    gateway: Gateway, reader: Agent, name: str
) -> None:
    pytest.importorskip("langchain_core")
    from agent_reach.langchain import tools

    with Client(gateway.url) as client:
        mine = {tool.name: tool for tool in tools(client, agent=reader.agent_id, namespace="tests")}
        assert mine[f"{name}_one"].args["text"] == {"type": "string"}
        assert mine[f"{name}_one"].invoke(DOC) == 3
        assert mine[f"{name}_many"].invoke({"params": [DOC, DOC]}) == 6


def test_a_model_as_the_only_argument_is_the_arguments_of_a_pydantic_ai_tool(
    gateway: Gateway, reader: Agent, name: str
) -> None:
    pytest.importorskip("pydantic_ai")
    from pydantic_ai import Agent as Model
    from pydantic_ai.messages import ModelMessage, ModelResponse, TextPart, ToolCallPart
    from pydantic_ai.models.function import AgentInfo, FunctionModel
    from pydantic_ai.models.test import TestModel

    from agent_reach.pydantic_ai import ReachToolset

    def model(messages: List[ModelMessage], info: AgentInfo) -> ModelResponse:
        if len(messages) == 1:
            calls = ((f"{name}_one", DOC), (f"{name}_many", {"params": [DOC]}))
            return ModelResponse(parts=[ToolCallPart(tool, given) for tool, given in calls])
        return ModelResponse(parts=[TextPart(json.dumps([part.content for part in messages[-1].parts]))])

    async def on_loop() -> None:
        async with AsyncClient(gateway.url) as client:
            toolset = ReachToolset(client, agent=reader.agent_id, namespace="tests")
            asked = await Model(FunctionModel(model), toolsets=[toolset]).run("How many words?")
            assert json.loads(asked.output) == [3, 3]
            # It makes its arguments out of the schemas, and so must find what they refer to.
            made = await Model(TestModel(), toolsets=[toolset]).run("How many words?")
            assert set(json.loads(made.output)) == {f"{name}_one", f"{name}_many"}

    run(on_loop())


def test_a_model_as_the_only_argument_is_the_arguments_of_an_openai_tool(
    gateway: Gateway, reader: Agent, name: str
) -> None:
    pytest.importorskip("agents")
    from agents import FunctionTool

    from agent_reach.openai_agents import tools

    async def on_loop() -> None:
        async with AsyncClient(gateway.url) as client:
            found = await tools(client, agent=reader.agent_id, namespace="tests")
            mine = {tool.name: tool.params_json_schema for tool in found if isinstance(tool, FunctionTool)}
            one, many = mine[f"{name}_one"], mine[f"{name}_many"]
            assert one["type"] == "object" and one["properties"]["text"] == {"type": "string"}
            assert many["properties"]["params"]["items"] == {"$ref": "#/$defs/Doc"}
            assert many["$defs"]["Doc"]["required"] == ["text"] and "Doc" in one["$defs"]

    run(on_loop())


@pytest.mark.parametrize(
    ("schema", "as_tool"),
    [
        # What refers to its root, goes on to refer to it.
        (
            {"type": "array", "items": {"$ref": "#"}},
            {"params": {"type": "array", "items": {"$ref": "#/properties/params"}}},
        ),
        # More is asked of it than of the class that it refers to, so it stays as it is.
        (
            {"$ref": "#/definitions/A", "minProperties": 1, "definitions": {"A": {"type": "object"}}},
            {"params": {"$ref": "#/definitions/A", "minProperties": 1}},
        ),
        # Names nothing, or goes round.
        ({"$ref": "#/$defs/B"}, {"params": {"$ref": "#/$defs/B"}}),
        (
            {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/A"}}},
            {"params": {"$ref": "#/$defs/A"}},
        ),
    ],
)
def test_what_is_no_object_is_put_into_one(schema: Dict[str, Any], as_tool: Dict[str, Any]) -> None:
    from agent_reach import Found
    from agent_reach._tools import tools_of

    found = Found({"agent_id": "a@b", "capability": {"name": "c", "input_schema": schema}})
    (tool,) = tools_of([found], None)
    assert tool.is_wrapped and tool.schema["properties"] == as_tool
    for place in ("$defs", "definitions"):
        assert tool.schema.get(place) == schema.get(place)
