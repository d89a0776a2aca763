"""Short answers, summaries, translations and mathematics, as published."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from evalwright import Answer, Ask, Sample, Score
from evalwright.compat.sea_helm.metricx import METRICX, metricx_errors
from evalwright.compat.sea_helm.published import words
from evalwright.compat.sea_helm.published.scoring import (
    LINE,
    SAME_LINE,
    Numbers,
    PublishedScoring,
    normalised,
    search,
)
from evalwright.compat.sea_helm.sea_task import Row, row_of
from evalwright.extend import (
    LimitExceeded,
    ScoringError,
    bind_scorer,
    call_with_limits,
)

if TYPE_CHECKING:
    from evalwright import Column

_ORDERS = ("c1", "c2", "c3", "c4", "c5", "c6", "w1", "w2")
"""Of chrF++: runs of one to six characters, one word and two."""


class Answers(PublishedScoring):
    """F1 and exact match with the references, of words, which in Thai and Chinese are found by a
    dictionary, against the first alone.
    """

    def prepare(self) -> None:
        words.require(
            self.task.language, f"The published F1 of the task '{self.task.name}'"
        )

    def row_score(self, row: Row, text: str) -> Score:
        language = self.task.language
        extracted = search(self.task.answer_tag + LINE, text)
        references_of_row = list(row["label"])
        references = (
            references_of_row[:1] if language in words.LIBRARIES else references_of_row
        )
        answer_tokens, *targets = (
            words.answer_words(phrase, language) for phrase in (extracted, *references)
        )
        f1 = max(words.shared_f1(answer_tokens, target) for target in targets)
        contains_target = float(
            references_of_row[0].lower().strip(".") in extracted.lower().strip(".")
        )
        parts = {
            self.part: f1,
            "exact": float(answer_tokens in targets),
            "found": contains_target,
            "empty": float(not extracted),
        }
        return Score(f1, "", extracted, parts)


class _WithChrf(PublishedScoring):
    """What summaries and translations have in common: chrF++ where the task says so."""

    def prepare(self) -> None:
        self._chrf = bool(self.task.config.get("use_chrf_metric"))
        if self._chrf:
            self._counts = bind_scorer("chrf++").function
            self.names += ("chrf_score", "normalized_chrf_score")

    def counts(self, translation: str, targets: tuple[str, ...]) -> dict[str, float]:
        """What chrF++ is made of."""
        if not self._chrf:
            return {}
        scored: Any = self._counts(Sample("", targets=targets), Answer(translation))
        return dict(scored.parts)

    def row_score(self, row: Row, text: str) -> Score:
        extracted = search(self.task.answer_tag + LINE, text)
        return Score(
            0.0,
            "",
            extracted,
            {
                "empty": float(not extracted),
                **self.counts(extracted, (str(row["label"]),)),
            },
        )

    def more(self, column: Column) -> Numbers:
        if not self._chrf:
            return {}
        score = _chrf_of_sums(
            {
                name: float(part.sum())
                for name, part in column.parts.items()
                if name.endswith(_ORDERS)
            }
        )
        return {"chrf_score": score, "normalized_chrf_score": score}


def _chrf_of_sums(sums: Mapping[str, float]) -> float:
    """chrF++ of a corpus, with recall weighing twice as much as precision; orders that one side
    lacks do not count.
    """
    precisions: list[float] = []
    recalls: list[float] = []
    for order in _ORDERS:
        answer, target = sums[f"answer_{order}"], sums[f"target_{order}"]
        if answer > 0 and target > 0:
            precisions.append(sums[f"match_{order}"] / answer)
            recalls.append(sums[f"match_{order}"] / target)
    if not precisions:
        return 0.0
    precision = sum(precisions) / len(precisions)
    recall = sum(recalls) / len(recalls)
    weighed = 4 * precision + recall
    return 100 * (5 * precision * recall / weighed) if weighed else 0.0


class Summaries(_WithChrf):
    """ROUGE-L of words by language: the medians of 1,000 bootstrap means."""

    rouge = ("rougel_precision", "rougel_recall", "rougel_f1", "normalized_rougel_f1")

    def prepare(self) -> None:
        task = self.task
        super().prepare()
        self.names += self.rouge
        if task.language == "th":
            words.require("th", f"The published ROUGE of the task '{task.name}'")

    def row_score(self, row: Row, text: str) -> Score:
        scored = super().row_score(row, text)
        texts = (str(row["label"]), scored.explanation)
        target_tokens, answer_tokens = (
            words.rouge_words(phrase, self.task.language) for phrase in texts
        )
        f1, precision, recall = words.f1_of_subsequence(target_tokens, answer_tokens)
        parts = {
            self.part: 100 * f1,
            "precision": precision,
            "recall": recall,
            "f1": f1,
        }
        return replace(scored, value=100 * f1, parts={**parts, **scored.parts})

    def more(self, column: Column) -> Numbers:
        import numpy as np

        matrix = np.stack(
            [column.parts[name] for name in ("precision", "recall", "f1")], axis=1
        )
        draws = np.random.RandomState(4156)
        n = len(matrix)
        means = [
            matrix[draws.choice(np.arange(n), size=n)].mean(axis=0) for _ in range(1000)
        ]
        middle = [100 * float(value) for value in np.percentile(means, 50, axis=0)]
        return super().more(column) | dict(
            zip(self.rouge, (*middle, middle[2]), strict=True)
        )


class Translations(_WithChrf):
    """MetricX's errors, of which 25 are 0 and none is 100."""

    def prepare(self) -> None:
        super().prepare()
        self.asks = bool(self.task.config.get("use_metricx_metric"))
        if self.asks:
            self.roles = (METRICX,)
            self.able = frozenset({"reward"})
            self.means = {
                self.part: (1, self.part),
                "metricx_wmt24_scores": (1, "errors"),
            }

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer."""
        row = row_of(sample)
        scored = self.row_score(row, self.text(answer))
        errors = await metricx_errors(ask, row, scored.explanation, str(row["label"]))
        worth = 100 * normalised(errors, 25, 0)
        return replace(
            scored,
            value=worth,
            parts={self.part: worth, "errors": errors, **scored.parts},
        )


class Lines(PublishedScoring):
    """The share of answers whose line behind the tag is the label."""

    def row_score(self, row: Row, text: str) -> Score:
        extracted = search(self.task.answer_tag + SAME_LINE, text)
        right = 100.0 * (str(row["label"]) == extracted)
        return Score(right, "", extracted, {self.part: right})


class Mathematics(PublishedScoring):
    """The share of responses that math-verify reads as the label."""

    def row_score(self, row: Row, text: str) -> Score:
        try:
            right = float(
                call_with_limits(math_verified, str(row["label"]), text, seconds=30.0)
            )
        except LimitExceeded as error:
            raise ScoringError(f"math-verify was given up: {error}.") from None
        return Score(right, "", text.strip(), {self.part: right})


def math_verified(label: str, text: str) -> int:
    """Whether math-verify reads both as the same: 1 or 0. Run in the process with limits."""
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    configs = [LatexExtractionConfig(), ExprExtractionConfig()]
    with suppress(Exception):
        extracted = parse(text.strip(), extraction_config=configs)
        return int(bool(verify(parse(label, extraction_config=configs), extracted)))
    return 0
