"""Values to JSON and back: dataclasses, pydantic models and the like are written as what they hold."""

from __future__ import annotations

import dataclasses
import enum
import json
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from pathlib import PurePath
from typing import Any, Union

from .errors import ProtocolError

Seconds = Union[float, int, timedelta]


def _plain(value: Any) -> Any:
    """What stands for a value that JSON does not know."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    dump = getattr(value, "model_dump", None)
    if callable(dump):
        return dump(mode="json")
    if isinstance(value, enum.Enum):
        return value.value
    if isinstance(value, (datetime, date, time)):
        return value.isoformat()
    if isinstance(value, (uuid.UUID, PurePath, Decimal)):
        return str(value)
    if isinstance(value, (set, frozenset, tuple)):
        return list(value)
    raise TypeError(f"{type(value).__name__} cannot be written as JSON")


_encode = json.JSONEncoder(ensure_ascii=False, allow_nan=False, separators=(",", ":"), default=_plain).encode


def write(value: Any) -> str:
    """A value as JSON. Raises ``TypeError`` or ``ValueError`` for what JSON cannot say."""
    text = _encode(value)
    text.encode()  # Half of a surrogate pair is no text, and is better refused here than on the way.
    return text


def read(text: str) -> Any:
    """A value from JSON that came from outside."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the answer cannot be read: {error}") from error


def span(seconds: Seconds) -> str:
    """A length of time as the wire has it, in whole milliseconds."""
    if isinstance(seconds, timedelta):
        seconds = seconds.total_seconds()
    if not 0 <= seconds < 1e9:
        raise ValueError(f"{seconds!r} is no length of time in seconds")
    return f"{round(seconds * 1000)}ms"


def in_seconds(seconds: Seconds) -> float:
    """A length of time in seconds."""
    return seconds.total_seconds() if isinstance(seconds, timedelta) else float(seconds)
