"""What an answer lists, in any order, against all that was asked for: numbers that were hidden in a
text, the most common words of a list.

The targets of other scorers are one answer in several forms; the target here is a list of which
every part is wanted.
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
"""What is no text of a word's or sentence's own."""
_SEPARATORS = re.compile(r"[,，、;；\n]")
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}(?!\d))")
_NUMBERING = re.compile(r"^\d+[.)]\s")


def _check(options: Mapping[str, Any]) -> None:
    check_known("kind of list", [options["kind"]], KINDS)


@checked(_check)
def listed(
    sample: Sample, answer: Answer, *, kind: str = "words", tag: str = "answer"
) -> Score:
    """1.0 where an answer lists all that the target lists and nothing more, in any order, else 0.0;
    part "share": how much of it, from 0 to 1.

    Lists are split at the commas, semicolons and line breaks of all scripts. kind: "words" (without
    numbering, quotation marks and case), "numbers" (runs of digits, or the word "none"). tag: read
    is what stands after the last `<tag>`, closed or not; an answer without one is read as a whole.
    Raises ScoringError where the target lists nothing.
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
    """The share of expected entries that are listed, of the longer of both lists."""
    return len(expected & listed_names) / max(len(expected), len(listed_names), 1)
