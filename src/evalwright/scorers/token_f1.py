"""Token F1: how much of the answer's words are the target's and the other way round, for answers that are short spans."""

from __future__ import annotations

import re
import unicodedata
from collections import Counter

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.text.normalise import answer_region

_ARTICLES = re.compile(r"\b(?:a|an|the)\b")


def token_f1(sample: Sample, answer: Answer) -> Score:
    """The highest F1 over the targets between the answer's words and the target's, as multisets, from 0 to 1.

    Words are lower-cased, without punctuation and English articles (the arithmetic published with SQuAD). Read is the first
    paragraph. parts: "precision" and "recall" of the best target. Labels "correct" (1), "partial", "incorrect" (0).
    Raises ScoringError where the sample has no target.
    """
    if not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    given = words(answer_region(answer.text))
    best = max((overlap(given, words(target)) for target in sample.targets), key=lambda found: found[0])
    value, precision, recall = best
    label = "correct" if value == 1.0 else "partial" if value else "incorrect"
    return Score(value, label, f"{len(given)} words", {"precision": precision, "recall": recall})


def words(text: str) -> list[str]:
    """The words that are compared."""
    folded = unicodedata.normalize("NFC", text).lower()
    kept = "".join(
        " " if char == "-" else char for char in folded if unicodedata.category(char)[0] != "P" or char == "-"
    )
    return _ARTICLES.sub(" ", kept).split()


def overlap(given: list[str], wanted: list[str]) -> tuple[float, float, float]:
    """F1, precision and recall of two lists of words as multisets."""
    if not given or not wanted:
        equal = float(given == wanted)
        return equal, equal, equal
    common = (Counter(given) & Counter(wanted)).total()
    if not common:
        return 0.0, 0.0, 0.0
    precision, recall = common / len(given), common / len(wanted)
    return 2 * precision * recall / (precision + recall), precision, recall
