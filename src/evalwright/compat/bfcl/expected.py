"""BFCL's possible answers as the calls that the scorer `tool-calls` expects."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice, product
from typing import Any

from evalwright.compat.bfcl.checker import offered_name

LEFT_OUT = ""
"""What stands among the possible values of a parameter that may be left out."""
MAX_VARIANTS = 512
"""Most values that are listed of one argument with alternatives within it."""


def expected_calls(
    possible: Sequence[Mapping[str, Mapping[str, Sequence[Any]]]],
    functions: Sequence[Mapping[str, Any]],
) -> list[dict[str, Any]]:
    """Return expected calls in the form that rows of task files have.

    Alternatives within objects are multiplied out. A text that may be left out may also be empty,
    as in BFCL.

    Args:
        possible: the possible answers of a row.
        functions: the functions' descriptions. A parameter that one requires cannot be left out,
            whatever the possible answers say.
    """
    by_name = {function["name"]: function["parameters"] for function in functions}
    calls = []
    for answer in possible:
        name, parameters = next(iter(answer.items()))
        schema = by_name.get(name, {})
        arguments: dict[str, Any] = {}
        alternatives: dict[str, list[Any]] = {}
        optional = []
        for parameter, values in parameters.items():
            parameter_schema = schema.get("properties", {}).get(parameter, {})
            variants = [
                variant
                for value in values
                if value != LEFT_OUT
                for variant in islice(_variants(value), MAX_VARIANTS)
            ]
            may_be_left_out = LEFT_OUT in values
            if (
                may_be_left_out
                and parameter_schema.get("type") == "string"
                and "enum" not in parameter_schema
            ):
                variants.append(LEFT_OUT)
            if not variants:
                continue
            arguments[parameter] = variants[0]
            if variants[1:]:
                alternatives[parameter] = variants[1:]
            if may_be_left_out and parameter not in schema.get("required", ()):
                optional.append(parameter)
        call = {"name": offered_name(name), "arguments": arguments}
        if alternatives:
            call["alternatives"] = alternatives
        if optional:
            call["optional"] = optional
        calls.append(call)
    return calls


def _variants(accepted: Any) -> Iterator[Any]:
    """Yield the values that a possible value with alternatives in its objects stands for."""
    if isinstance(accepted, Mapping):
        choices = [list(_choices(key, values)) for key, values in accepted.items()]
        for pairs in product(*choices):
            yield {key: inner for pair in pairs for key, inner in pair}
    elif isinstance(accepted, list) and any(
        isinstance(element, Mapping) for element in accepted
    ):
        for elements in product(*(list(_variants(element)) for element in accepted)):
            yield list(elements)
    else:
        yield accepted


def _choices(key: str, values: Any) -> Iterator[tuple[tuple[str, Any], ...]]:
    """Yield what can stand at a key of an object: a value, or nothing if it may be left out."""
    if not isinstance(values, list):
        yield ((key, values),)
        return
    for value in values:
        if value == LEFT_OUT:
            yield ()
            continue
        for variant in _variants(value):
            yield ((key, variant),)
