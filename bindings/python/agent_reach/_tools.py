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
_PLACES = ("$defs", "definitions")
_BESIDE = {"$ref", "$schema", "$comment", "title", "description", "default", "examples", *_PLACES}


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
    is_wrapped = schema is None
    if schema is None:
        schema = _wrapped(found.input_schema or {})
    exclusions = found.to_dict()["capability"].get("exclusions") or []
    words = [found.description or found.name, *(f"Does not: {one}" for one in exclusions)]
    return Tool(name, "\n".join(words), schema, found.name, is_wrapped, agent)


def _object(schema: Dict[str, Any]) -> Optional[Dict[str, Any]]:
    """The schema as that of an object, with what it refers to at its root put in its place. ``None``: it is of none."""
    seen: List[str] = []
    while "$ref" in schema:
        ref = schema["$ref"]
        target = _defined(schema, ref)
        # What stands beside a reference is asked for as well, unless it is words only.
        if target is None or ref in seen or schema.keys() - _BESIDE:
            return None
        seen.append(ref)
        beside = {key: value for key, value in schema.items() if key != "$ref"}
        schema = {**target, **beside}
    return schema if schema.get("type") == "object" else None


def _defined(schema: Dict[str, Any], ref: Any) -> Optional[Dict[str, Any]]:
    parts = str(ref).split("/")
    if len(parts) != 3 or parts[0] != "#" or parts[1] not in _PLACES:
        return None
    target = schema.get(parts[1], {}).get(parts[2].replace("~1", "/").replace("~0", "~"))
    return target if isinstance(target, dict) else None


def _wrapped(schema: Dict[str, Any]) -> Dict[str, Any]:
    """Models fill in objects only; what is none is put into one, with all that it refers to still in its place."""
    # An id of its own would make references within it start there.
    inner = _moved({key: value for key, value in schema.items() if key not in (*_PLACES, "$id", "$schema")})
    around = {place: _moved(schema[place]) for place in _PLACES if place in schema}
    return {"type": "object", "properties": {"params": inner}, "required": ["params"], **around}


def _moved(part: Any) -> Any:
    """The same, with what refers to the root, and not to a definition, referring to where that is now."""
    if isinstance(part, list):
        return [_moved(one) for one in part]
    if not isinstance(part, dict):
        return part
    moved = {key: _moved(value) for key, value in part.items()}
    ref = part.get("$ref")
    if isinstance(ref, str) and (ref == "#" or (ref.startswith("#/") and ref.split("/")[1] not in _PLACES)):
        moved["$ref"] = f"#/properties/params{ref[1:]}"
    return moved


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
