"""Values to JSON and back: dataclasses, pydantic models and the like are written as what they hold."""

from __future__ import annotations

import dataclasses
import enum
import json
import uuid
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Any

from .errors import ConfigError, ProtocolError


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
    """A value as JSON. Raises ``TypeError`` or :class:`ConfigError` for what JSON cannot say."""
    try:
        text = _encode(value)
        text.encode()  # Half of a surrogate pair is no text, and is better refused here than on the way.
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"it cannot be written as JSON: {error}") from error
    return text


def read(text: str) -> Any:
    """A value from JSON that came from outside."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ProtocolError(f"the answer cannot be read: {error}") from error
