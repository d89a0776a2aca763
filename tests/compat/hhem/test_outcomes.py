"""What became of a row, told by its text or by its number of words, is told the same way."""

from __future__ import annotations

import pytest

from compat.hhem.hhem_trees import PLACEHOLDERS
from evalwright.compat.hhem.outcomes import is_summary, row_outcome
from evalwright.scorers.hhem_validity import OWN_SENTENCES

EXPECTED = {
    PLACEHOLDERS[0]: ("failed", "request failed"),
    PLACEHOLDERS[1]: ("failed", "bad reply"),
    PLACEHOLDERS[2]: ("thinking never closed", None),
    PLACEHOLDERS[3]: ("empty", None),
    PLACEHOLDERS[4]: ("failed", "not asked"),
    PLACEHOLDERS[5]: ("refused", None),
    PLACEHOLDERS[6]: ("failed", "request failed"),
    "I am unable to summarize this text.": ("refused", None),
    "": ("empty", None),
    "One two three.": ("too short", None),
    "no rule of ours makes this invalid": ("not told", None),
    "word " * 20_000: ("truncated", None),
}


@pytest.mark.parametrize("text", EXPECTED, ids=lambda text: text[:30])
def test_by_text(text: str) -> None:
    label, kind = EXPECTED[text]
    found = row_outcome(False, len(text.split()), f"  {text}\n")
    assert (found.label, found.failure and found.failure.kind) == (label, kind)
    if text not in (
        "no rule of ours makes this invalid",
        "word " * 20_000,
        "I am unable to summarize this text.",
    ):
        assert not is_summary(text)


@pytest.mark.parametrize("sentence", sorted(OWN_SENTENCES))
def test_what_the_scorer_takes_for_no_summary_has_a_class_here(sentence: str) -> None:
    outcome = row_outcome(False, len(sentence.split()), sentence)
    assert outcome.label not in ("answered", "too short", "not told")


@pytest.mark.parametrize(
    ("words", "label", "kind"),
    [
        (0, "empty", None), (2, "too short", None), (5, "too short", None),
        (6, "failed", "request failed or thinking never closed"), (7, "refused", None),
        (8, "failed", "bad reply"), (9, "not told", None), (22, "failed", "not asked"),
        (24_000, "truncated", None),
    ],
)  # fmt: skip
def test_by_the_number_of_words(words: int, label: str, kind: str | None) -> None:
    found = row_outcome(False, words, None)
    assert (found.label, found.failure and found.failure.kind) == (label, kind)
