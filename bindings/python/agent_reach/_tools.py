"""Capabilities as tools for a language model, whatever the framework: names, schemas, calls, and failures in words."""

from __future__ import annotations

import re
from typing import Any, Dict, Iterable, List, NamedTuple, Optional

from ._calls import Ask
from ._json import write
from ._types import Found
from .errors import (
    AgentReachError,
    Forbidden,
    InvalidRequest,
    NoCandidate,
    OutcomeUnknown,
    TaskExpired,
    TaskFailed,
    Timeout,
)

LIMIT = 200
#: What a model can do something about; all else is raised.
TOLD = (NoCandidate, TaskFailed, InvalidRequest, Timeout, TaskExpired, OutcomeUnknown, Forbidden)

_BAD = re.compile(r"[^a-zA-Z0-9_-]")


class Tool(NamedTuple):
    """One capability as a tool."""

    name: str
    description: str
    schema: Dict[str, Any]
    capability: str
    is_wrapped: bool
    agent: Optional[str]

    def params(self, arguments: Dict[str, Any]) -> Any:
        """The capability's parameters, from the model's arguments."""
        return arguments.get("params") if self.is_wrapped else arguments

    def ask(self, key: Optional[str] = None) -> Ask:
        """What is said of the task."""
        ask = Ask()
        if self.agent is not None:
            ask["to_agent"] = self.agent
        if key is not None:
            ask["idempotency_key"] = key
        return ask


def tools_of(found: Iterable[Found], agent: Optional[str]) -> List[Tool]:
    """A tool for each capability; who does the work is chosen at each call, unless one agent is named."""
    made: Dict[str, Tool] = {}
    for one in found:
        if agent is not None and one.agent_id != agent:
            continue
        name = _BAD.sub("_", one.name)[:64]
        if name not in made:
            made[name] = _tool(name, one, agent)
    return list(made.values())


def _tool(name: str, found: Found, agent: Optional[str]) -> Tool:
    schema = _object(found.input_schema or {})
    # Models fill in objects only; what is none is put into one.
    is_wrapped = schema is None
    if schema is None:
        schema = _wrapped(found.input_schema or {})
    exclusions = found.to_dict()["capability"].get("exclusions") or []
    words = [found.description or found.name, *(f"Does not: {one}" for one in exclusions)]
    return Tool(name, "\n".join(words), schema, found.name, is_wrapped, agent)


#: Where schemas keep what they refer to.
_SHELVES = ("$defs", "definitions")


def _object(schema: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """The schema of an object that this is, also where it only refers to one of its own, as pydantic writes a model. None: it
    is of something else."""
    if schema.get("type") == "object":
        return schema
    target: Any = schema
    ref = schema.get("$ref")
    if not isinstance(ref, str) or not ref.startswith("#/"):
        return None
    for part in ref[2:].split("/"):
        target = target.get(part.replace("~1", "/").replace("~0", "~")) if isinstance(target, dict) else None
    if not isinstance(target, dict) or target.get("type") != "object":
        return None
    return {**target, **{name: value for name, value in schema.items() if name != "$ref"}}


def _wrapped(schema: Dict[str, Any]) -> Dict[str, Any]:
    """The schema of an object whose ``params`` are of this one. What it refers to is found as before."""

    def moved(value: Any) -> Any:
        if isinstance(value, list):
            return [moved(one) for one in value]
        if not isinstance(value, dict):
            return value
        return {name: ref_of(one) if name == "$ref" else moved(one) for name, one in value.items()}

    def ref_of(ref: Any) -> Any:
        is_own = isinstance(ref, str) and ref.startswith("#")
        if not is_own or ref.split("/")[1:2] in [[shelf] for shelf in _SHELVES]:
            return ref
        return f"#/properties/params{ref[1:]}"

    inner = {name: moved(value) for name, value in schema.items() if name not in _SHELVES}
    shelves = {name: moved(schema[name]) for name in _SHELVES if name in schema}
    return {"type": "object", "properties": {"params": inner}, "required": ["params"], **shelves}


def told(error: AgentReachError) -> str:
    """A failure in words that a model can replan on."""
    lines = [str(error)]
    for near in error.suggestions:
        lacks = "; ".join(lack.detail or lack.reason for lack in near.lacks)
        lines.append(f"Near: {near.capability} of {near.agent_id} ({lacks})")
    return "\n".join(lines)


def text_of(result: Any) -> str:
    """A result as text for a model."""
    return result if isinstance(result, str) else write(result)
