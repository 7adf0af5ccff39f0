"""Type hints to JSON Schema 2020-12, and JSON to what the hints promise."""

from __future__ import annotations

import dataclasses
import enum
import sys
import types
import uuid
from datetime import date, datetime, time
from decimal import Decimal
from pathlib import PurePath
from typing import Annotated, Any, Dict, Literal, Tuple, Union, get_args, get_origin, get_type_hints

Schema = Dict[str, Any]

_PLAIN: dict[Any, Schema] = {
    Any: {},
    object: {},
    None: {"type": "null"},
    type(None): {"type": "null"},
    bool: {"type": "boolean"},
    int: {"type": "integer"},
    float: {"type": "number"},
    str: {"type": "string"},
    list: {"type": "array"},
    dict: {"type": "object"},
}
_TEXTS: dict[Any, Schema] = {
    datetime: {"type": "string", "format": "date-time"},
    date: {"type": "string", "format": "date"},
    time: {"type": "string", "format": "time"},
    uuid.UUID: {"type": "string", "format": "uuid"},
    Decimal: {"type": "string"},
}


def _is_class(hint: Any) -> bool:
    # To Python 3.10, list[int] is a class as well.
    return isinstance(hint, type) and get_origin(hint) is None


def is_model(hint: Any) -> bool:
    """Whether it is a class of pydantic's."""
    return _is_class(hint) and hasattr(hint, "model_validate") and hasattr(hint, "model_json_schema")


def is_record(hint: Any) -> bool:
    """Whether it is an object with named fields."""
    return _is_class(hint) and (is_model(hint) or dataclasses.is_dataclass(hint) or _is_typed_dict(hint))


def _is_typed_dict(hint: Any) -> bool:
    return _is_class(hint) and issubclass(hint, dict) and hasattr(hint, "__total__")


def schema(hint: Any, defs: dict[str, Schema], *, is_result: bool = False) -> Schema:
    """The schema of a hint; classes with fields go into ``defs``. Raises ``TypeError`` for what has none."""
    if _is_hashable(hint) and hint in _PLAIN:
        return dict(_PLAIN[hint])
    if _is_class(hint) and hint in _TEXTS:
        return dict(_TEXTS[hint])
    if is_record(hint):
        return _named(hint, defs, is_result)
    if _is_class(hint) and issubclass(hint, enum.Enum):
        return {"enum": [member.value for member in hint]}
    if _is_class(hint) and issubclass(hint, PurePath):
        return {"type": "string"}
    return _generic(hint, defs, is_result)


def _is_hashable(hint: Any) -> bool:
    try:
        hash(hint)
    except TypeError:
        return False
    return True


def _generic(hint: Any, defs: dict[str, Schema], is_result: bool) -> Schema:
    origin, inner = get_origin(hint), get_args(hint)

    def of(part: Any) -> Schema:
        return schema(part, defs, is_result=is_result)

    if origin is Annotated:
        words = [word for word in inner[1:] if isinstance(word, str)]
        return {**of(inner[0]), **({"description": words[0]} if words else {})}
    if origin is Literal:
        return {"enum": list(inner)}
    if origin is Union or origin is getattr(types, "UnionType", None):
        return {"anyOf": [of(part) for part in inner]}
    if origin in (list, set, frozenset) or _is_sequence(origin):
        unique = {"uniqueItems": True} if origin in (set, frozenset) else {}
        return {"type": "array", "items": of(inner[0]), **unique}
    if origin is tuple:
        if len(inner) == 2 and inner[1] is Ellipsis:
            return {"type": "array", "items": of(inner[0])}
        parts = [of(part) for part in inner]
        return {"type": "array", "prefixItems": parts, "items": False, "minItems": len(parts)}
    if origin is dict or getattr(origin, "__name__", "") in ("Mapping", "MutableMapping"):
        if inner[0] is not str:
            raise TypeError(f"the keys of {hint} must be str")
        return {"type": "object", "additionalProperties": of(inner[1])}
    raise TypeError(f"there is no JSON Schema for {hint!r}")


def _is_sequence(origin: Any) -> bool:
    return getattr(origin, "__name__", "") in ("Sequence", "MutableSequence", "Iterable", "Collection")


def _named(hint: Any, defs: dict[str, Schema], is_result: bool) -> Schema:
    name = hint.__name__
    if name not in defs:
        defs[name] = {}  # So that a class that names itself comes to an end.
        if is_model(hint):
            mode = "serialization" if is_result else "validation"
            made = hint.model_json_schema(ref_template="#/$defs/{model}", mode=mode)
            defs.update(made.pop("$defs", {}))
            defs[name] = made
        else:
            defs[name] = _fields(hint, defs, is_result)
    return {"$ref": f"#/$defs/{name}"}


def _fields(hint: Any, defs: dict[str, Schema], is_result: bool) -> Schema:
    hints = get_type_hints(hint, include_extras=True)
    properties = {name: schema(_bare(part), defs, is_result=is_result) for name, part in hints.items()}
    described = {"type": "object", "properties": properties, "required": sorted(_required(hint))}
    if hint.__doc__ and not hint.__doc__.startswith(f"{hint.__name__}("):
        described["description"] = hint.__doc__.strip().split("\n\n")[0]
    return described


def _bare(hint: Any) -> Any:
    """The hint without ``Required`` and ``NotRequired``."""
    return get_args(hint)[0] if getattr(get_origin(hint), "_name", "") in ("Required", "NotRequired") else hint


def _required(hint: Any) -> set[str]:
    if _is_typed_dict(hint):
        return set(hint.__required_keys__)
    missing = dataclasses.MISSING
    return {
        field.name
        for field in dataclasses.fields(hint)
        if field.init and field.default is missing and field.default_factory is missing
    }


def decode(hint: Any, value: Any) -> Any:
    """The value as the hint promises it. Raises ``ValueError`` or ``TypeError`` for what does not fit."""
    if is_model(hint):
        return hint.model_validate(value)
    if _is_class(hint):
        return _decode_class(hint, value)
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return decode(inner[0], value)
    if origin is Union or origin is getattr(types, "UnionType", None):
        return _decode_union(inner, value)
    if origin is tuple:
        parts = [inner[0]] * len(value) if len(inner) == 2 and inner[1] is Ellipsis else list(inner)
        if len(parts) != len(_a(list, value)):
            raise ValueError(f"{len(parts)} values are needed, not {len(value)}")
        return tuple(map(decode, parts, value))
    if origin in (list, set, frozenset) or _is_sequence(origin):
        made = [decode(inner[0], item) for item in _a(list, value)]
        return made if origin not in (set, frozenset) else origin(made)
    if origin is dict or getattr(origin, "__name__", "") in ("Mapping", "MutableMapping"):
        return {key: decode(inner[1], item) for key, item in _a(dict, value).items()}
    if origin is Literal and value not in inner:
        raise ValueError(f"{value!r} is none of {', '.join(map(repr, inner))}")
    return value


def _decode_class(hint: type, value: Any) -> Any:
    if dataclasses.is_dataclass(hint) or _is_typed_dict(hint):
        hints = get_type_hints(hint, include_extras=True)
        unknown = _a(dict, value).keys() - hints.keys()
        missing = _required(hint) - value.keys()
        if missing or unknown:
            words = [f"{name} is missing" for name in sorted(missing)]
            words += [f"{name} is not known" for name in sorted(unknown)]
            raise ValueError("; ".join(words))
        return hint(**{name: decode(_bare(hints[name]), part) for name, part in value.items()})
    if hint in (datetime, date, time):
        return hint.fromisoformat(_a(str, value).replace("Z", "+00:00"))
    if hint in (uuid.UUID, Decimal) or issubclass(hint, (enum.Enum, PurePath)):
        return hint(value)
    if hint is float and isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    if hint is int and isinstance(value, float) and value.is_integer():
        return int(value)  # JSON Schema counts 3.0 as an integer.
    return _a(hint, value) if hint in (bool, int, float, str, list, dict, type(None)) else value


def _a(kind: type, value: Any) -> Any:
    if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
        raise ValueError(f"{value!r} is no {kind.__name__}")
    return value


def _decode_union(parts: Tuple[Any, ...], value: Any) -> Any:
    if value is None and type(None) in parts:
        return None
    troubles = []
    for part in parts:
        try:
            return decode(part, value)
        except (ValueError, TypeError) as trouble:
            troubles.append(str(trouble))
    raise ValueError("; ".join(troubles))


def hints_of(function: Any) -> dict[str, Any]:
    """The hints of a function, names in quotes resolved."""
    try:
        return get_type_hints(function, include_extras=True)
    except NameError as error:
        where = sys.modules.get(function.__module__)
        raise TypeError(
            f"a type hint of {function.__qualname__} cannot be resolved in {getattr(where, '__name__', '?')}: {error}; "
            "define the type at the top of the module, or give input_schema and output_schema"
        ) from error
