"""What boards call the keys of metadata and their values: "th" is Thai, "nlu" Understanding."""

from __future__ import annotations

import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any


def key_title(key: str) -> str:
    """Return the heading of a metadata key, such as "Language"."""
    known: Mapping[str, str] = _table()["keys"]
    if key in known:
        return known[key]
    words = key.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def value_title(key: str, value: str) -> str:
    """Return what to call a value of a metadata key; without a title, the value itself.

    Args:
        key: as in metadata, such as "language".
        value: such as "th". Script and country of a language are left aside where only the
            language is known, so "pt-BR" is Portuguese.
    """
    titles = _titles(key)
    if value in titles:
        return titles[value]
    if key != "language":
        return value
    code = value.lower().replace("_", "-")
    return titles.get(code) or titles.get(code.split("-")[0], value)


def in_order(key: str, values: Iterable[str]) -> list[str]:
    """Sort the values of a key as boards show them: known ones first, the others as they come."""
    ranks = {value: rank for rank, value in enumerate(_titles(key))}
    return sorted(dict.fromkeys(values), key=lambda value: ranks.get(value, len(ranks)))


def _titles(key: str) -> Mapping[str, str]:
    titles: Mapping[str, str] = _table()["values"].get(key, {})
    return titles


@cache
def _table() -> dict[str, Any]:
    source = files("evalwright.metrics") / "dimension_titles.toml"
    return tomllib.loads(source.read_text(encoding="utf-8"))
