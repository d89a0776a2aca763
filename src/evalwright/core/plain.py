"""Records as plain values for JSON, one way for all of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any


class Plain:
    """A dataclass with `as_dict`: its fields by name, in their order."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON-ready values: records become mappings, tuples and arrays lists, nan
        and infinities None.
        """
        return plain_fields(self)


def plain_fields(record: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """A dataclass's fields as JSON-ready values, some left out."""
    return {
        field.name: plain(getattr(record, field.name))
        for field in fields(record)
        if field.name not in without
    }


def plain(value: Any) -> Any:
    """A value as JSON has it (see `Plain.as_dict`); what JSON has anyway stays as it is."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if hasattr(value, "as_dict"):
        return value.as_dict()
    if is_dataclass(value):
        return plain_fields(value)
    if isinstance(value, Mapping):
        return {name: plain(member) for name, member in value.items()}
    if hasattr(value, "tolist"):
        value = value.tolist()
    return (
        [plain(element) for element in value]
        if isinstance(value, list | tuple)
        else value
    )
