"""HRET's markers of an answer."""

from __future__ import annotations

from functools import cache

from evalwright.compat.hret.tables import tables


@cache
def markers() -> tuple[str, ...]:
    """The patterns of what stands before an answer."""
    marker_table = tables()["markers"]
    colons = dict.fromkeys(marker_table["wide"], "[:：]")
    return tuple(
        word.replace(" ", r"\s*") + r"\s*" + colons.get(word, ":")
        for word in marker_table["words"]
    )
