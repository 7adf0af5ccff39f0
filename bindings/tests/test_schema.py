"""Type hints to schemas and back."""

from __future__ import annotations

import dataclasses
import datetime
import enum
import uuid
from typing import Annotated, Any, Dict, List, Literal, Optional, Set, Tuple, TypedDict, Union

import pytest

from agent_reach._schema import decode, schema


@dataclasses.dataclass
class Node:
    """A node of a tree.

    With more words.
    """

    value: int
    below: List[Node] = dataclasses.field(default_factory=list)


class Kind(enum.Enum):
    A = "a"
    B = "b"


class Words(TypedDict, total=False):
    said: str


CASES: List[Tuple[Any, Dict[str, Any], List[Any], List[Any]]] = [
    (Any, {}, [1, None, {"a": []}], []),
    (None, {"type": "null"}, [], []),
    (bool, {"type": "boolean"}, [True], [1, "true"]),
    (int, {"type": "integer"}, [3], [True, "3", 3.5]),
    (float, {"type": "number"}, [3.5], ["3", True]),
    (str, {"type": "string"}, ["x"], [1, None]),
    (List[int], {"type": "array", "items": {"type": "integer"}}, [[1, 2]], [["1"], {}, "12"]),
    (list, {"type": "array"}, [[1, "a"]], [{}]),
    (Dict[str, bool], {"type": "object", "additionalProperties": {"type": "boolean"}}, [{"a": True}], [{"a": 1}, []]),
    (Optional[str], {"anyOf": [{"type": "string"}, {"type": "null"}]}, ["x", None], [1]),
    (Union[int, str], {"anyOf": [{"type": "integer"}, {"type": "string"}]}, [1, "x"], [None, 1.5]),
    (Literal["x", 2], {"enum": ["x", 2]}, ["x", 2], ["y"]),
    (Annotated[str, "what it is"], {"type": "string", "description": "what it is"}, ["x"], [1]),
]


@pytest.mark.parametrize(("hint", "expected", "good", "bad"), CASES, ids=[str(case[0]) for case in CASES])
def test_a_hint_has_its_schema_and_takes_what_fits(hint: Any, expected: Any, good: List[Any], bad: List[Any]) -> None:
    assert schema(hint, {}) == expected
    for value in good:
        assert decode(hint, value) == value
    for value in bad:
        with pytest.raises(ValueError):
            decode(hint, value)


def test_classes_are_named_once_and_may_name_themselves() -> None:
    defs: Dict[str, Any] = {}
    assert schema(List[Node], defs) == {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    assert defs["Node"] == {
        "type": "object",
        "description": "A node of a tree.",
        "properties": {"value": {"type": "integer"}, "below": {"type": "array", "items": {"$ref": "#/$defs/Node"}}},
        "required": ["value"],
    }
    assert decode(Node, {"value": 1, "below": [{"value": 2}]}) == Node(1, [Node(2)])
    for wrong in ({}, {"value": 1, "more": 2}, {"value": "1"}, 7, {"value": 1, "below": [{}]}):
        with pytest.raises(ValueError):
            decode(Node, wrong)


def test_values_that_json_has_no_word_for() -> None:
    day, moment = datetime.date(2026, 11, 30), datetime.datetime(2026, 11, 30, 8, tzinfo=datetime.timezone.utc)
    assert schema(datetime.datetime, {}) == {"type": "string", "format": "date-time"}
    assert decode(datetime.datetime, "2026-11-30T08:00:00Z") == moment and decode(datetime.date, "2026-11-30") == day
    number = uuid.uuid4()
    assert decode(uuid.UUID, str(number)) == number
    assert decode(Kind, "b") is Kind.B and schema(Kind, {}) == {"enum": ["a", "b"]}
    assert decode(Tuple[int, str], [1, "a"]) == (1, "a") and decode(Tuple[int, ...], [1, 2]) == (1, 2)
    assert decode(Set[int], [1, 1]) == {1}
    assert decode(Words, {"said": "x"}) == {"said": "x"} and decode(Words, {}) == {}
    for hint, wrong in ((Kind, "c"), (Tuple[int, str], [1]), (datetime.date, 3), (uuid.UUID, "x")):
        with pytest.raises(ValueError):
            decode(hint, wrong)
    with pytest.raises(TypeError, match="no JSON Schema"):
        schema(complex, {})
    with pytest.raises(TypeError, match="must be str"):
        schema(Dict[int, str], {})


def test_models_of_pydantic_keep_their_own_schema() -> None:
    pydantic = pytest.importorskip("pydantic")

    class Inner(pydantic.BaseModel):
        n: int = pydantic.Field(gt=0)

    class Outer(pydantic.BaseModel):
        inner: List[Inner]

    defs: Dict[str, Any] = {}
    assert schema(Dict[str, Outer], defs)["additionalProperties"] == {"$ref": "#/$defs/Outer"}
    assert defs["Inner"]["properties"]["n"]["exclusiveMinimum"] == 0
    assert decode(Outer, {"inner": [{"n": 1}]}).inner[0].n == 1
    with pytest.raises(ValueError):
        decode(Outer, {"inner": [{"n": 0}]})
