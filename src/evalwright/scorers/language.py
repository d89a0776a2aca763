"""Is the answer in the language that it should be in?"""

from __future__ import annotations

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.text.language import identify, script_share, speaks
from evalwright.scorers.text.languages import language_of, short_code


def language(sample: Sample, answer: Answer, *, expected: str = "") -> Score:
    """1.0 where the answer may be in the language `expected` (default: `metadata["language"]`),
    else 0.0.

    Labels "expected", "another" and "empty" (no letters). parts: "script", the share of letters in
    the language's script. Read is the answer as it is, without its reasoning. Raises ScoringError
    where no language is named, or it cannot be told.
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
