"""What boards call the keys of metadata and their values: "th" is Thai, "nlu" Understanding."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from typing import Any

from evalwright.core.languages import LANGUAGE_NAMES


def key_title(key: str) -> str:
    """Return the heading of a metadata key, such as "Language"."""
    title_by_key: Mapping[str, str] = _table()["keys"]
    if key in title_by_key:
        return title_by_key[key]
    words = key.replace("_", " ").replace("-", " ").strip()
    return words[:1].upper() + words[1:]


def value_title(key: str, value: str) -> str:
    """Return what to call a value of a metadata key; without a title, the value itself.

    Args:
        key: as in metadata, such as "language".
        value: such as "th". Script and country of a language are left aside where only the
            language is known, so "pt-BR" is Portuguese.
    """
    titles: Mapping[str, str] = _table()["values"].get(key, {})
    if value in titles or key != "language":
        return titles.get(value, value)
    code = value.lower().replace("_", "-")
    short_code = code.split("-")[0]
    names = {**LANGUAGE_NAMES, **titles}
    return names.get(code) or names.get(short_code, value)


@cache
def _table() -> dict[str, Any]:
    source = files("evalwright.metrics") / "dimension_titles.toml"
    return tomllib.loads(source.read_text(encoding="utf-8"))
