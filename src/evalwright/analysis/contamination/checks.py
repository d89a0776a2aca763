"""What is wrong with a rewrite, as far as a program can see; a person looks at the rest."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from evalwright.core.samples import Sample

_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")
_LONGER = 3
"""A rewrite with more than this many times the characters (and 200 more) is no rewrite."""


def problem(original: Sample, rewritten: Sample, kind: str) -> str:
    """Why a rewrite is refused, in a few words that are equal for equal reasons; "" for one that may stay."""
    before, after = _folded(original.input), _folded(rewritten.input)
    if not after:
        return "it is empty"
    if kind == "shuffle":
        same = sorted(original.choices) == sorted(rewritten.choices)
        kept = {original.choices[i] for i in original.gold} == {rewritten.choices[i] for i in rewritten.gold}
        return "" if same and kept else "the options are not the same"
    if before == after and original.passages == rewritten.passages:
        return "it is the original wording"
    if len(after) > _LONGER * len(before) + 200:
        return "it is much longer than the original"
    if not rewritten.choices and any(
        _says(after, target) and not _says(before, old)
        for old, target in zip(original.targets, rewritten.targets, strict=False)
    ):
        return "it gives the answer away" if kind != "negate" else ""
    if Counter(_NUMBER.findall(before)) != Counter(_NUMBER.findall(after)):
        return "its numbers are not the original's"
    return ""


def _folded(text: str) -> str:
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def _says(text: str, target: str) -> bool:
    wanted = _folded(target).strip(" .,;:!?\"'")
    return bool(wanted) and re.search(rf"(?<!\w){re.escape(wanted)}(?!\w)", text) is not None
