"""From the type annotations of a function to a JSON schema, and arguments checked against it.

The types are read by pydantic in its strict mode: nothing is coerced, so "3" is no number. A
number, a text, a list and a mapping of JSON become an Enum, a date, a tuple, a dataclass or a model
where the annotation is one.
"""

from __future__ import annotations

import inspect
import json
import sys
import types
import typing
from collections.abc import Callable, Mapping
from typing import Annotated, Any

from evalwright.core.errors import ConfigurationError, closest

MAX_FAULTS_SHOWN = 5
"""Most faults of a call's arguments that the model is told."""
MAX_SHOWN_CHARS = 200
"""Most characters of one fault."""
MAX_INLINED_SCHEMAS = 500
"""Most places in a schema at which a type's definition is written out."""
_REFERENCE = "#/$defs/"


class ArgumentTypes:
    """The parameters of a function, as a model is told of them and as calls are checked.

    Args:
        function: the function.
        tool_name: its name as a tool, for messages.
        descriptions: what its docstring says of the parameters, by name.
        local_names: names that annotations may use beside those of the function's module.

    Raises:
        ConfigurationError: a parameter has no type, one that JSON cannot express, or a default that
            is not of its type; or a description belongs to no parameter.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        tool_name: str,
        descriptions: Mapping[str, str],
        local_names: Mapping[str, Any],
    ) -> None:
        self._tool_name = tool_name
        self._parameters = _parameters_of(function, tool_name)
        _check_descriptions(tool_name, descriptions, self._parameters)
        annotations = _annotations_of(function, tool_name, local_names)
        self._types: dict[str, Any] = {}
        for name in self._parameters:
            if name not in annotations:
                raise ConfigurationError(
                    f"The parameter '{name}' of the tool '{tool_name}' has no type: write"
                    f" `{name}: str`, for example, so that models are told what it takes."
                )
            self._types[name] = _described(
                annotations[name], descriptions.get(name, "")
            )
        self._adapter = self._make_adapter()
        self.schema = self._make_schema()

    def read(self, arguments: Mapping[str, Any]) -> dict[str, Any]:
        """Check the arguments of a call, and return them as the function takes them.

        Raises:
            ValueError: they do not fit; the message says each fault, for the model to read.
        """
        from pydantic import ValidationError

        try:
            checked: dict[str, Any] = self._adapter.validate_json(json.dumps(arguments))
        except ValidationError as error:
            faults = error.errors(include_url=False, include_context=False)
            shown = [self._fault(fault) for fault in faults[:MAX_FAULTS_SHOWN]]
            if len(faults) > MAX_FAULTS_SHOWN:
                shown.append(f"There are {len(faults) - MAX_FAULTS_SHOWN} more faults.")
            raise ValueError(" ".join(shown)) from None
        return checked

    def _make_adapter(self) -> Any:
        from typing import NotRequired

        from pydantic import ConfigDict, TypeAdapter
        from pydantic.errors import PydanticUserError

        fields: dict[str, Any] = {}
        try:
            for name, parameter in self._parameters.items():
                self._check_default(name, parameter)
                is_required = parameter.default is parameter.empty
                annotation = self._types[name]
                fields[name] = annotation if is_required else NotRequired[annotation]
            table = _typed_dict("Arguments", fields)
            table.__pydantic_config__ = ConfigDict(
                extra="forbid", strict=True, allow_inf_nan=False
            )
            return TypeAdapter(table)
        except (PydanticUserError, TypeError, RecursionError, NameError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            raise ConfigurationError(
                f"The parameters of the tool '{self._tool_name}' have a type that JSON"
                " cannot express. Types that work are int, float, str, bool, Literal, Enum,"
                " list, dict, Optional, dataclasses, TypedDict and pydantic's models."
                f" ({reason[:MAX_SHOWN_CHARS]})"
            ) from None

    def _check_default(self, name: str, parameter: inspect.Parameter) -> None:
        if parameter.default is parameter.empty:
            return
        from pydantic import TypeAdapter, ValidationError

        try:
            TypeAdapter(self._types[name]).validate_python(
                parameter.default, strict=True
            )
        except ValidationError:
            hint = (
                " Write `| None` behind its type, if it may be left out."
                if parameter.default is None
                else ""
            )
            raise ConfigurationError(
                f"The default of the parameter '{name}' of the tool '{self._tool_name}',"
                f" {parameter.default!r:.80}, is not of the parameter's type.{hint}"
            ) from None

    def _make_schema(self) -> dict[str, Any]:
        from pydantic.errors import PydanticUserError
        from pydantic_core import to_jsonable_python

        try:
            schema = self._adapter.json_schema()
        except PydanticUserError as error:
            reason = str(error).splitlines()[0]
            raise ConfigurationError(
                f"The parameters of the tool '{self._tool_name}' have a type that has no"
                f" JSON schema. ({reason[:MAX_SHOWN_CHARS]})"
            ) from None
        schema = _without_titles(_inlined(schema))
        properties = schema.setdefault("properties", {})
        for name, parameter in self._parameters.items():
            default = parameter.default
            if default is not parameter.empty and default is not None:
                properties[name]["default"] = to_jsonable_python(default)
        schema.setdefault("type", "object")
        return schema

    def _fault(self, fault: Mapping[str, Any]) -> str:
        """Put a fault that pydantic reports into a sentence for the model."""
        place = [str(step) for step in fault["loc"]]
        kind = fault["type"]
        if not place:
            return f"The arguments cannot be read: {fault['msg'][:MAX_SHOWN_CHARS]}."
        name = ".".join(place)[:MAX_SHOWN_CHARS]
        if kind == "extra_forbidden" and len(place) == 1:
            near = closest(place[0], self._parameters)
            hint = (
                f"Did you mean '{near[0]}'?"
                if near
                else f"It takes: {', '.join(self._parameters) or 'no arguments'}."
            )
            return f"There is no argument '{name}'. {hint}"
        if kind == "missing":
            return f"The argument '{name}' is missing."
        shown = json.dumps(fault.get("input"), ensure_ascii=False, default=str)
        if len(shown) > MAX_SHOWN_CHARS:
            shown = f"{shown[:MAX_SHOWN_CHARS]}…"
        return f"The argument '{name}' is {shown}: {fault['msg'].rstrip('.')}."


def _parameters_of(
    function: Callable[..., Any], tool_name: str
) -> dict[str, inspect.Parameter]:
    parameters = inspect.signature(function).parameters
    for name, parameter in parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise ConfigurationError(
                f"The tool '{tool_name}' takes '{parameter}', which models cannot be told"
                " of: name each parameter, with its type."
            )
        if parameter.kind is parameter.POSITIONAL_ONLY:
            raise ConfigurationError(
                f"The parameter '{name}' of the tool '{tool_name}' is positional only, and"
                " calls of tools name every argument: leave out the '/'."
            )
    return dict(parameters)


def _check_descriptions(
    tool_name: str,
    descriptions: Mapping[str, str],
    parameters: Mapping[str, inspect.Parameter],
) -> None:
    for name in descriptions:
        if name in parameters:
            continue
        near = closest(name, parameters)
        hint = (
            f" Did you mean '{near[0]}'?"
            if near
            else f" Its parameters are: {', '.join(parameters) or 'none'}."
        )
        raise ConfigurationError(
            f"The docstring of the tool '{tool_name}' describes '{name}', which is none of"
            f" its parameters.{hint}"
        )


def _annotations_of(
    function: Callable[..., Any], tool_name: str, local_names: Mapping[str, Any]
) -> dict[str, Any]:
    try:
        annotations = typing.get_type_hints(
            inspect.unwrap(function), localns=dict(local_names), include_extras=True
        )
        return {
            name: _portable(annotation, 0)
            for name, annotation in annotations.items()
            if name != "return"
        }
    except Exception as error:  # an annotation may be any expression
        raise ConfigurationError(
            f"The types of the tool '{tool_name}' cannot be read:"
            f" {type(error).__name__}: {error!s:.200}."
        ) from None


def _described(annotation: Any, description: str) -> Any:
    """Add a description to a type, unless the annotation has one of its own."""
    from pydantic import Field
    from pydantic.fields import FieldInfo

    written = [
        part
        for part in getattr(annotation, "__metadata__", ())
        if isinstance(part, str) or (isinstance(part, FieldInfo) and part.description)
    ]
    text = next((part for part in written if isinstance(part, str)), description)
    if not text or any(isinstance(part, FieldInfo) for part in written):
        return annotation
    return Annotated[annotation, Field(description=text)]


def _portable(annotation: Any, level: int) -> Any:
    """Replace `typing.TypedDict`, which pydantic reads only from Python 3.12 on."""
    if sys.version_info >= (3, 12):
        return annotation
    if level > MAX_SHOWN_CHARS:
        raise RecursionError("a TypedDict contains itself")
    if typing.is_typeddict(annotation) and type(annotation).__module__ == "typing":
        from typing import NotRequired

        fields = {}
        hints = typing.get_type_hints(annotation, include_extras=True)
        for name, hint in hints.items():
            field_type = _portable(hint, level + 1)
            is_required = name in annotation.__required_keys__
            fields[name] = field_type if is_required else NotRequired[field_type]
        return _typed_dict(annotation.__name__, fields)
    arguments = typing.get_args(annotation)
    origin = typing.get_origin(annotation)
    if origin is typing.Literal or not arguments:
        return annotation
    if origin is Annotated:
        inner = _portable(arguments[0], level + 1)
        return Annotated[(inner, *arguments[1:])]
    replaced = tuple(
        argument if isinstance(argument, list) else _portable(argument, level + 1)
        for argument in arguments
    )
    if replaced == arguments:
        return annotation
    if origin in (typing.Union, types.UnionType):
        return typing.Union[replaced]  # noqa: UP007
    return origin[replaced]


def _typed_dict(name: str, fields: dict[str, Any]) -> Any:
    """Make a TypedDict of fields that are known only now."""
    import typing_extensions

    make: Any = typing_extensions.TypedDict
    return make(name, fields)


def _inlined(schema: dict[str, Any]) -> dict[str, Any]:
    """Write definitions out where they are used, which not all providers look up.

    A definition that contains itself stays one.
    """
    definitions = schema.get("$defs", {})
    written = 0

    def expand(part: Any, within: tuple[str, ...]) -> Any:
        nonlocal written
        if isinstance(part, list):
            return [expand(member, within) for member in part]
        if not isinstance(part, dict):
            return part
        reference = str(part.get("$ref", ""))
        name = reference.removeprefix(_REFERENCE)
        if reference.startswith(_REFERENCE) and name in definitions:
            written += 1
            if name in within or written > MAX_INLINED_SCHEMAS:
                raise RecursionError
            siblings = {key: member for key, member in part.items() if key != "$ref"}
            return expand({**definitions[name], **siblings}, (*within, name))
        return {
            key: expand(member, within)
            for key, member in part.items()
            if key != "$defs"
        }

    try:
        expanded: dict[str, Any] = expand(schema, ())
    except RecursionError:
        return schema
    return expanded


def _without_titles(schema: dict[str, Any]) -> dict[str, Any]:
    """Leave out the titles that pydantic makes of names; a property may be called "title"."""

    def strip(part: Any, is_table: bool) -> Any:
        if isinstance(part, list):
            return [strip(member, False) for member in part]
        if not isinstance(part, dict):
            return part
        return {
            key: (
                member
                if key in ("default", "const", "enum", "examples") and not is_table
                else strip(member, not is_table and key in ("properties", "$defs"))
            )
            for key, member in part.items()
            if is_table or key != "title"
        }

    stripped: dict[str, Any] = strip(schema, False)
    return stripped
