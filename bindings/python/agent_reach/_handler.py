"""A function as a handler: what schemas its hints make, and how parameters become its arguments."""

from __future__ import annotations

import inspect
from typing import Any, Callable, Dict, List, NamedTuple, Optional, Tuple

from ._context import Context
from ._schema import Schema, decode, hints_of, is_record, schema

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


class _Whole(NamedTuple):
    """The argument that takes all of the parameters."""

    name: str
    hint: Any


class Handler:
    """A function that does the work of one capability.

    Its arguments are the fields of the parameters, by name. One argument that is positional-only, or the only one and a
    dataclass, a TypedDict or a pydantic model, takes the parameters as a whole. One that is hinted as :class:`Context`
    gets the context, wherever it stands.
    """

    def __init__(self, function: Callable[..., Any], input_schema: Any, output_schema: Any) -> None:
        self.function = function
        self.is_async = inspect.iscoroutinefunction(function)
        self._is_hinted = input_schema is None or output_schema is None
        self._hints = self._read_hints()
        self._context: List[inspect.Parameter] = []
        self._fields: List[inspect.Parameter] = []
        self._has_rest = False
        for parameter in inspect.signature(function).parameters.values():
            self._sort(parameter)
        self._whole = self._find_whole()
        self.input_schema: Any = self._input() if input_schema is None else input_schema
        self.output_schema: Any = self._output() if output_schema is None else output_schema

    def _read_hints(self) -> Dict[str, Any]:
        if self._is_hinted:
            return hints_of(self.function)
        try:
            return hints_of(self.function)
        except TypeError:
            # Both schemas are given: the hints are only needed to find the context.
            words = getattr(self.function, "__annotations__", {})
            return {name: Context for name, hint in words.items() if str(hint).endswith("Context")}

    def _sort(self, parameter: inspect.Parameter) -> None:
        if self._hints.get(parameter.name) is Context:
            self._context.append(parameter)
        elif parameter.kind is inspect.Parameter.VAR_KEYWORD:
            self._has_rest = True
        elif parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            raise TypeError(f"{self.function.__qualname__}: *{parameter.name} has no name in the parameters")
        else:
            self._fields.append(parameter)

    def _find_whole(self) -> Optional[_Whole]:
        alone = self._fields[0] if len(self._fields) == 1 and not self._has_rest else None
        if alone is not None:
            hint = self._hints.get(alone.name, Any)
            if alone.kind is inspect.Parameter.POSITIONAL_ONLY or is_record(hint):
                return _Whole(alone.name, hint)
        if any(field.kind is inspect.Parameter.POSITIONAL_ONLY for field in self._fields):
            raise TypeError(
                f"{self.function.__qualname__}: a positional-only argument takes the parameters as a whole, "
                "so it must be the only one"
            )
        return None

    def _input(self) -> Schema:
        defs: Dict[str, Schema] = {}
        if self._whole is not None:
            return _with(defs, schema(self._whole.hint, defs))
        properties: Dict[str, Schema] = {}
        for field in self._fields:
            made = schema(self._hints.get(field.name, Any), defs)
            if field.default is not inspect.Parameter.empty and _is_plain(field.default):
                made = {**made, "default": field.default}
            properties[field.name] = made
        needed = [field.name for field in self._fields if field.default is inspect.Parameter.empty]
        made = {"type": "object", "properties": properties}
        if needed:
            made["required"] = needed
        if not self._has_rest:
            made["additionalProperties"] = False
        return _with(defs, made)

    def _output(self) -> Optional[Schema]:
        if "return" not in self._hints:
            return None
        defs: Dict[str, Schema] = {}
        return _with(defs, schema(self._hints["return"], defs, is_result=True)) or None

    def bind(self, params: Any, context: Context) -> Tuple[List[Any], Dict[str, Any]]:
        """The arguments for these parameters. Raises ``ValueError`` or ``TypeError`` for what does not fit."""
        if self._whole is not None:
            given = {self._whole.name: decode(self._whole.hint, params)}
        else:
            given = self._by_name({} if params is None else params)
        for parameter in self._context:
            given[parameter.name] = context
        args: List[Any] = []
        for parameter in inspect.signature(self.function).parameters.values():
            if parameter.kind is inspect.Parameter.POSITIONAL_ONLY and parameter.name in given:
                args.append(given.pop(parameter.name))
        return args, given

    def _by_name(self, params: Any) -> Dict[str, Any]:
        if not isinstance(params, dict):
            raise ValueError(f"the parameters must be an object, not {params!r}")
        names = {field.name for field in self._fields}
        missing = [
            field.name
            for field in self._fields
            if field.default is inspect.Parameter.empty and field.name not in params
        ]
        unknown = [] if self._has_rest else [name for name in params if name not in names]
        if missing or unknown:
            words = [f"{name} is missing" for name in missing] + [f"{name} is not known" for name in unknown]
            raise ValueError("; ".join(words))
        return {name: decode(self._hints.get(name, Any), value) for name, value in params.items()}


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, (bool, int, float, str))


def _with(defs: Dict[str, Schema], made: Schema) -> Schema:
    return {**made, "$defs": defs} if defs else made
