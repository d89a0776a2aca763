"""Reads the confidence that a reply states, as a probability.

Examples: "Confidence: 80%", "confidence = 0.8", "I am 80% confident". Replies are not trusted: what
is ambiguous ("Confidence: 1") or impossible ("Confidence: 150%") is not a confidence.
"""

from __future__ import annotations

import re

READ_CHARS = 2000
"""A confidence is looked for in this many characters at the end of a reply."""

_VALUE = (
    r"(?<![\d.,\-−])(\d{1,3}(?:[.,]\d{1,6})?)(?![\d])\s{0,2}(%|percent\b|per"
    r" cent\b|/\s?100?(?!\d)|out of 100?\b)?"
)
_AFTER = re.compile(
    rf"\bconfiden(?:ce|t)\b(?:\s+(?:level|score|is|of|about|around|that|in|this|my"
    rf"|answer)\b){{0,5}}[\s:=*_~`\"'(\[≈]{{0,8}}{_VALUE}",
    re.IGNORECASE,
)
_BEFORE = re.compile(
    rf"{_VALUE}\s{{1,3}}(?:sure|certain|confident|confidence)\b", re.IGNORECASE
)


def stated_confidence(text: str) -> float | None:
    """Read the last confidence that a text states, from 0 to 1; None if none can be read."""
    tail = text[-READ_CHARS:]
    matches = [
        match for pattern in (_AFTER, _BEFORE) for match in pattern.finditer(tail)
    ]
    if not matches:
        return None
    last = max(matches, key=lambda match: match.start(1))
    return _parse_probability(
        last.group(1).replace(",", "."), (last.group(2) or "").lower()
    )


def _parse_probability(number: str, unit: str) -> float | None:
    confidence = float(number)
    if unit:
        scale = 10.0 if re.fullmatch(r"(?:/\s?|out of )10", unit) else 100.0
        confidence /= scale
    elif "." in number:
        confidence = confidence if confidence <= 1 else confidence / 100
    elif confidence == 1:
        return None
    else:
        confidence /= 100
    return confidence if 0.0 <= confidence <= 1.0 else None
