"""Wording of counts, times and lists, consistent in all messages and reports."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Sequence

_FEW_CLUSTERS = 8


def count(n: int) -> str:
    """Format a whole number with commas between thousands."""
    return f"{n:,}"


def plural(n: int, word: str, many: str = "") -> str:
    """Return the singular or plural of a word for n things."""
    return word if n == 1 else many or f"{word}s"


def counted(n: int, word: str, many: str = "") -> str:
    """Format a number with its word: "1 item", "1,200 items"."""
    return f"{count(n)} {plural(n, word, many)}"


def listed(phrases: Sequence[str], most: int = 0) -> str:
    """Join phrases as in a sentence: "a, b and c".

    Args:
        phrases: the phrases.
        most: with more phrases than this, "a, b and 5 more"; 0 for no limit.
    """
    if most and len(phrases) > most:
        phrases = [*phrases[:most], f"{len(phrases) - most} more"]
    return (
        "".join(phrases)
        if len(phrases) < 2
        else f"{', '.join(phrases[:-1])} and {phrases[-1]}"
    )


def normalise_label(label: str) -> str:
    """Normalise a label: "Answer-Rate" and "answer rate" become equal."""
    return re.sub(r"[\s_-]+", " ", label).strip().lower()


def points(score: float, bounded: bool) -> str:
    """Format a score or difference: in percentage points if bounded, else with 4 digits."""
    text = f"{100 * score:.1f}" if bounded else f"{score:.4g}"
    return "0.0" if text == "-0.0" else text


def merge_remarks(remarks: Iterable[tuple[str, str]]) -> Iterator[tuple[str, str]]:
    """Group equal remarks, each with all the names it applies to.

    Args:
        remarks: pairs of name and text.
    """
    names: dict[str, list[str]] = {}
    for name, text in remarks:
        names.setdefault(text, []).append(name)
    return ((listed(sharing), text) for text, sharing in names.items())


def duration(seconds: float) -> str:
    """Format a time in its two leading units: "0.42 s", "3 min 05 s", "2 h 03 min", "4 d 01 h".

    "n/a" if it is unknown.
    """
    if not math.isfinite(seconds) or seconds < 0:
        return "n/a"
    if seconds < 9.95:
        return f"{seconds:.2f} s" if seconds < 0.995 else f"{seconds:.1f} s"
    total = round(seconds)
    if total < 60:
        return f"{total} s"
    if total < 3600:
        return f"{total // 60} min {total % 60:02d} s"
    if total < 86400:
        return f"{total // 3600} h {total % 3600 // 60:02d} min"
    return f"{total // 86400} d {total % 86400 // 3600:02d} h"


def warn_few_clusters(effective: float | None) -> str:
    """Write a caveat for intervals over few clusters, by their effective number; else ""."""
    if effective is None or not effective < _FEW_CLUSTERS:
        return ""
    return (
        f"the clusters count as only {effective:.2g} of equal size; with fewer than"
        f" {_FEW_CLUSTERS}, intervals are wide and assume that these few are typical."
    )
