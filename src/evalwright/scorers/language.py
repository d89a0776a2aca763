"""Scores whether the answer is in the expected language."""

from __future__ import annotations

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.text.language import identify, script_share, speaks
from evalwright.scorers.text.languages import language_of, short_code


def language(sample: Sample, answer: Answer, *, expected: str = "") -> Score:
    """Score 1.0 if the answer may be in the expected language, else 0.0.

    It reads the answer as it is, without its reasoning. Labels: "expected", "another" and "empty"
    (no letters). Part: "script", the share of letters in the language's script.

    Args:
        expected: the language; by default `metadata["language"]`.

    Raises:
        ScoringError: no language is named, or it is one that cannot be recognised.
    """
    code = language_of(sample, expected)
    if not code:
        raise ScoringError(
            f"The sample '{sample.id}' names no language: set its metadata 'language'"
            " or the option 'expected'."
        )
    identified, certainty = identify(answer.text)
    parts = {"script": script_share(answer.text, code)}
    right = speaks(answer.text, code)
    if not identified:
        return Score(0.0, "empty", "no letters", parts)
    why = (
        f"'{identified}' ({certainty:.0%} of what speaks for any language), asked for"
        f" '{short_code(code)}'"
    )
    return Score(float(right), "expected" if right else "another", why, parts)
