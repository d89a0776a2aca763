"""Conversion of records to plain JSON values, the same way for all of them."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import fields, is_dataclass
from typing import Any


class Plain:
    """Base of dataclasses with `as_dict`, which lists the fields by name in their order."""

    __slots__ = ()

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as JSON-ready values.

        Records become mappings, tuples and arrays become lists; nan and infinities become None.
        """
        return plain_fields(self)


def plain_fields(record: Any, without: Collection[str] = ()) -> dict[str, Any]:
    """Convert a dataclass's fields to JSON-ready values, leaving out those in `without`."""
    return {
        field.name: plain(getattr(record, field.name))
        for field in fields(record)
        if field.name not in without
    }


def plain(value: Any) -> Any:
    """Convert a value to its JSON form (see `Plain.as_dict`); JSON's own types stay as they are."""
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
