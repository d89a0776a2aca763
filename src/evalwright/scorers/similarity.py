"""Scores how similar an answer and a target are: by embeddings, by words, or by characters.

Similar texts may contradict each other, above all in names and numbers. So this is a second column
beside a scorer that decides; `similarity_guard` keeps it from calling texts similar that differ in
a number or name. docs/reference/text-scorers.md#similarity shows where it errs.
"""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError, ScoringError, UnknownName
from evalwright.core.requests import Embed
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.registry import checked
from evalwright.scorers.similarity_guard import conflict, not_the_answer
from evalwright.scorers.text.languages import language_of
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.text.tokens import fold
from evalwright.scorers.token_f1 import overlap, words
from evalwright.strategies.several import gather_all

MEASURES = ("cosine", "characters", "token-f1")
THRESHOLDS = {"cosine": 0.8, "characters": 0.5, "token-f1": 0.5}
"""The default threshold from which texts are "similar", by measure.

No number is right for all embedders: see docs/reference/text-scorers.md#similarity.
"""

SIMILAR = "similar"
DIFFERENT = "different"
LONGEST_GRAM = 6
"""Characters of the longest n-grams, as in chrF."""

Measure = Literal["cosine", "characters", "token-f1"]


def check_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError if an option of the scorer has a value that is not allowed."""
    role = options["role"]
    measure = options["measure"]
    threshold = options["threshold"]
    if role is not None and (not isinstance(role, str) or not role):
        raise ConfigurationError(
            "The option 'role' must be the name of a role, such as embedder, not"
            f" {role!r}."
        )
    if measure is not None and measure not in MEASURES:
        raise UnknownName(
            "value of the option 'measure'",
            str(measure),
            MEASURES,
            f"Known: {', '.join(MEASURES)}.",
        )
    if measure == "cosine" and role is None:
        raise ConfigurationError(
            "The measure 'cosine' needs an embedder: add `role: embedder` to the"
            " scorer, and name the model with --role embedder=provider/name."
        )
    if measure in ("characters", "token-f1") and role is not None:
        raise ConfigurationError(
            f"The measure '{measure}' uses no model: leave out 'role', or leave out"
            " 'measure'."
        )
    number = isinstance(threshold, int | float) and not isinstance(threshold, bool)
    if threshold is not None and not (number and 0 < threshold <= 1):
        raise ConfigurationError(
            "The option 'threshold' must be a number above 0, at most 1, not"
            f" {threshold!r}."
        )


@checked(check_options, able=("embed",))
async def similarity(
    sample: Sample,
    answer: Answer,
    ask: Ask,
    *,
    role: str | None = None,
    measure: Measure | None = None,
    threshold: float | None = None,
) -> Score:
    """Score how similar the answer and its most similar target are, from 0 to 1.

    It reads the first paragraph of the answer. Labels: "similar" from `threshold` on, else
    "different".

    The score is 0 and "different" if the answer has another number than the target, or if a name,
    number, date, or yes or no is asked for and the scorer `short-answer` finds a wrong one; it is
    unsure if it may be the same name or number after all. The explanation says so. Parts: "cosine",
    "characters" and "token_f1" of the best target as measured, and "blocked" (1) if that was
    overruled.

    Args:
        role: the embedder to ask; the measure is then the cosine of the vectors, at least 0.
        measure: without a role: "characters" (the default; see `character_f`) or "token-f1".
        threshold: the least score of "similar"; by default that of `THRESHOLDS`.

    Raises:
        ScoringError: there is no target, or the embedder's vectors cannot be compared.
        RequestFailed: the embedder failed.
    """
    if not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    used: Measure = measure or ("cosine" if role is not None else "characters")
    least = THRESHOLDS[used] if threshold is None else threshold
    text = answer_region(answer.text).strip()
    if not text:
        return Score(0.0, DIFFERENT, "the answer is empty")
    cosines = (
        await _cosines(sample, text, ask, role)
        if role is not None
        else [None] * len(sample.targets)
    )
    measured = [
        _measure(target, text, cosine)
        for target, cosine in zip(sample.targets, cosines, strict=True)
    ]
    language = language_of(sample) or "en"
    against = [
        conflict(target, text, sample.input, language) for target in sample.targets
    ]
    if (refused := not_the_answer(sample, answer)) is not None:
        against = [(refused.explanation, not refused.unsure)] * len(sample.targets)
    name = used.replace("-", "_")
    # The most similar of the targets that nothing contradicts; a contradiction counts only if all
    # targets have one.
    best = max(
        range(len(measured)),
        key=lambda index: (
            not against[index][0],
            not against[index][1],
            measured[index][name],
        ),
    )
    why, certain = against[best]
    score = _score(sample.targets[best], measured[best], used, least, why)
    if why and (not certain or sample.metadata.get("tolerance")):
        return replace(score, unsure=f"it may not be the same: {why}")
    return score


def _score(
    target: str, parts: dict[str, float], measure: Measure, least: float, against: str
) -> Score:
    similarity_value = min(max(parts[measure.replace("-", "_")], 0.0), 1.0)
    explanation = f"{measure} {similarity_value:.3f} to '{shortened(target, 80)}'"
    if against:
        return Score(
            0.0, DIFFERENT, f"{explanation}, but {against}", {**parts, "blocked": 1.0}
        )
    return Score(
        similarity_value,
        SIMILAR if similarity_value >= least else DIFFERENT,
        explanation,
        parts,
    )


def _measure(target: str, text: str, cosine: float | None) -> dict[str, float]:
    measures = {
        "characters": character_f(text, target),
        "token_f1": overlap(words(text), words(target))[0],
    }
    return measures if cosine is None else {"cosine": cosine, **measures}


async def _cosines(sample: Sample, text: str, ask: Ask, role: str) -> list[float]:
    # In one spelling, because a model of bytes or word pieces takes composed and decomposed accents
    # for different words.
    requests = [
        Embed(plain(text_or_target)) for text_or_target in (text, *sample.targets)
    ]
    responses = await gather_all(
        [ask(role, request) for request in dict.fromkeys(requests)]
    )
    vector_by_request = dict(
        zip(
            dict.fromkeys(requests),
            (response.values for response in responses),
            strict=True,
        )
    )
    return cosines([vector_by_request[request] for request in requests], role)


def cosines(vectors: Sequence[Sequence[float]], role: str = "embedder") -> list[float]:
    """Compute the cosine of the first vector with each of the others.

    Raises:
        ScoringError: the vectors cannot be compared.
    """
    lengths = {len(vector) for vector in vectors}
    if len(lengths) != 1 or not min(lengths):
        raise ScoringError(
            f"The {role}'s vectors have different lengths: {sorted(lengths)}."
        )
    table = np.asarray(vectors, dtype=np.float64)
    if not np.isfinite(table).all():
        raise ScoringError(
            f"The {role} gave a vector with numbers that are not finite."
        )
    # Scaled by the largest element first, so that no square overflows or vanishes.
    largest = np.abs(table).max(axis=1, keepdims=True)
    if not largest.all():
        raise ScoringError(
            f"The {role} gave a vector of zeros, which has no similarity to anything."
        )
    table = table / largest
    table /= np.linalg.norm(table, axis=1, keepdims=True)
    return [float(cosine) for cosine in np.clip(table[1:] @ table[0], -1.0, 1.0)]


def character_f(text: str, target: str) -> float:
    """Compute the mean F1 over character n-grams of length 1 to 6, as multisets, from 0 to 1.

    It is the idea of chrF (Popović 2015), with beta 1. Characters are compared without case,
    accents, punctuation and white space, so it works in scripts without spaces. Lengths for which
    neither text is long enough do not count.
    """
    answer_chars = _comparable_characters(text)
    target_chars = _comparable_characters(target)
    if not answer_chars or not target_chars:
        return float(answer_chars == target_chars)
    orders = range(1, min(LONGEST_GRAM, max(len(answer_chars), len(target_chars))) + 1)
    return math.fsum(_ngram_f1(answer_chars, target_chars, n) for n in orders) / len(
        orders
    )


def _comparable_characters(text: str) -> str:
    # Marks stay where folding left them: the vowel signs of Indic scripts are as good as letters.
    return "".join(
        char
        for char in fold(plain(text).casefold())
        if unicodedata.category(char)[0] in "LNM"
    )


def _ngram_f1(answer_chars: str, target_chars: str, n: int) -> float:
    answer_grams, target_grams = (
        Counter(text[start : start + n] for start in range(len(text) - n + 1))
        for text in (answer_chars, target_chars)
    )
    total = answer_grams.total() + target_grams.total()
    return 2.0 * (answer_grams & target_grams).total() / total if total else 0.0
