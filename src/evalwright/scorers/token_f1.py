"""Token F1: the F1 of an answer's words against the words of the best target, by language."""

from __future__ import annotations

import unicodedata
from collections import Counter
from collections.abc import Mapping
from typing import Any

from evalwright.core.errors import ConfigurationError, ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.judge.options import check_flags
from evalwright.scorers.registry import checked
from evalwright.scorers.text import segmentation
from evalwright.scorers.text.languages import (
    check_language,
    language_of,
    without_articles,
)
from evalwright.scorers.text.normalise import answer_region
from evalwright.scorers.text.tokens import Words

UNITS = ("characters", "words")
_BY_CHARACTER = frozenset({"ja", "zh"})
"""Languages whose characters count as words by default, as published with MLQA for Chinese."""


def _check(options: Mapping[str, Any]) -> None:
    check_language(options["language"])
    if options["unit"] not in (None, *UNITS):
        raise ConfigurationError(
            f"The option 'unit' must be characters or words, not {options['unit']!r}."
        )
    check_flags(options, "exact")
    check_f1_sample(Sample(""), options)


def check_f1_sample(sample: Sample, options: Mapping[str, Any]) -> None:
    """Raise MissingExtra if words of the sample's language need a library that is not installed.

    Called before any request is sent.
    """
    language = language_of(sample, options.get("language"))
    if not _by_character(language, options.get("unit")):
        segmentation.require(language, "Token F1 by words")


@checked(_check)
def token_f1(
    sample: Sample,
    answer: Answer,
    *,
    language: str | None = None,
    unit: str | None = None,
    exact: bool = False,
) -> Score:
    """Score the highest F1 over the targets between the words of answer and target, from 0 to 1.

    Words are multisets, lower-cased, without punctuation and articles (the arithmetic published
    with SQuAD, and with MLQA for other languages). Chinese and Japanese count characters; Burmese,
    Khmer, Lao and Thai count segmented words. Only the answer's first paragraph is read. Parts:
    "precision" and "recall" of the best target. Labels: "correct" (1), "partial", "incorrect" (0).

    Args:
        language: the language; by default the sample's metadata `language`, else English.
        unit: "characters" or "words", to override what the language counts.
        exact: whether to add the part "exact_match": 1 where the words of the whole answer are
            those of a target, in their order.

    Raises:
        ScoringError: the sample has no target.
    """
    if not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    code = language_of(sample, language)
    answer_words = words(answer_region(answer.text), code, unit)
    best = max(
        (overlap(answer_words, words(target, code, unit)) for target in sample.targets),
        key=lambda scores: scores[0],
    )
    f1, precision, recall = best
    if f1 == 1.0:
        label = "correct"
    elif f1:
        label = "partial"
    else:
        label = "incorrect"
    parts = {"precision": precision, "recall": recall}
    if exact:
        answer_tokens = words(answer.text, code, unit)
        same = any(
            answer_tokens == words(target, code, unit) for target in sample.targets
        )
        parts = {"exact_match": float(same), **parts}
    return Score(f1, label, f"{len(answer_words)} words", parts)


vars(token_f1)["check_sample"] = check_f1_sample


def words(text: str, language: str = "", unit: str | None = None) -> list[str]:
    """Return the words that are compared; the language "" means English."""
    folded = unicodedata.normalize("NFC", text).lower()
    if language in (
        "fr",
        "it",
    ):  # an article may end in the apostrophe that is removed next
        folded = without_articles(folded, language)
    without_punctuation = "".join(
        " " if char == "-" else char
        for char in folded
        if unicodedata.category(char)[0] != "P" or char == "-"
    )
    without_punctuation = without_articles(without_punctuation, language)
    if language not in segmentation.UNSPACED:
        return without_punctuation.split()
    if _by_character(language, unit):
        return Words(without_punctuation).cased
    return [
        word
        for run in without_punctuation.split()
        for word in segmentation.segment(run, language)
    ]


def _by_character(language: str, unit: str | None) -> bool:
    return unit == "characters" or (unit is None and language in _BY_CHARACTER)


def overlap(
    answer_words: list[str], target_words: list[str]
) -> tuple[float, float, float]:
    """Compute F1, precision and recall of two lists of words as multisets."""
    if not answer_words or not target_words:
        equal = float(answer_words == target_words)
        return equal, equal, equal
    common = (Counter(answer_words) & Counter(target_words)).total()
    if not common:
        return 0.0, 0.0, 0.0
    precision = common / len(answer_words)
    recall = common / len(target_words)
    return 2 * precision * recall / (precision + recall), precision, recall
