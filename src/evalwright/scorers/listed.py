"""Scores whether an answer lists all that was asked for, in any order.

Examples are numbers hidden in a text, or the most common words of a list. For other scorers several
targets are forms of one answer; here the target is a list, and all its entries are required.
"""

from __future__ import annotations

import re
import string
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import checked

KINDS = ("numbers", "words")
NO_TEXT = (
    string.whitespace
    + string.punctuation
    + "｡。，、､…：；？！।“”‘’『』「」｢｣《》（）［］｛｝«»"
)
"""Characters that are not part of a word or sentence itself."""
_SEPARATORS = re.compile(r"[,，、;；\n]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBERING = re.compile(r"^\d+[.)]\s")


def _check(options: Mapping[str, Any]) -> None:
    check_known("kind of list", [options["kind"]], KINDS)


@checked(_check)
def listed(
    sample: Sample, answer: Answer, *, kind: str = "words", tag: str = "answer"
) -> Score:
    """Score 1.0 if an answer lists exactly what the target lists, in any order, else 0.0.

    The part "share" says how much of the target it lists, from 0 to 1. Lists are split at the
    commas, semicolons and line breaks of all scripts.

    Args:
        kind: "words" (ignoring numbering, quotation marks and case) or "numbers" (runs of digits,
            or the word "none").
        tag: the text after the last `<tag>` is read, closed or not; an answer without the tag is
            read as a whole.

    Raises:
        ScoringError: the target lists nothing.
    """
    expected = named(sample.target, kind)
    if not expected:
        raise ScoringError(f"The target of the sample '{sample.id}' lists no {kind}.")
    *_, last = re.split(f"<{re.escape(tag)}>", answer.text, flags=re.IGNORECASE)
    answer_text = last.partition("</")[0].strip()
    share = agreement(expected, named(answer_text, kind))
    strict = float(share == 1)
    return Score(
        strict, "correct" if strict else "incorrect", answer_text, {"share": share}
    )


def named(text: str, kind: str) -> set[str]:
    """Read what a text lists, as `listed` does."""
    plain_text = _THOUSANDS.sub("", text) if kind == "numbers" else text
    entries = [
        _NUMBERING.sub("", entry.strip()) for entry in _SEPARATORS.split(plain_text)
    ]
    names = {entry.strip(NO_TEXT + "*").lower() for entry in entries} - {""}
    if kind == "words":
        return names
    return {
        number for entry in entries for number in re.findall(r"\d+", entry)
    } or names & {"none"}


def agreement(expected: set[str], listed_names: set[str]) -> float:
    """Return the share of expected entries that are listed, of the longer of both lists."""
    return len(expected & listed_names) / max(len(expected), len(listed_names), 1)
