"""SEA-HELM's own arithmetic of texts: answers, summaries, translations, mathematics, long procedures."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright import bounded
from evalwright.compat.sea_helm import extraction
from evalwright.compat.sea_helm.published import (
    Made,
    Numbers,
    Published,
    Rows,
    SeaHelmRaised,
    mean,
    normalised,
    part,
    row_of,
)
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.asking import Ask
from evalwright.core.errors import ScoringError
from evalwright.core.requests import Ability, Reward
from evalwright.core.samples import Answer, Sample, Score
from evalwright.metrics.corpus import SCORES
from evalwright.scorers import procedure
from evalwright.scorers.corpus import PARTS, require, statistics
from evalwright.scorers.label import NULL
from evalwright.scorers.rouge import common_length
from evalwright.scorers.text import published_words
from evalwright.scorers.token_f1 import overlap

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column

METRICX = "metricx"
"""The role of the model that says how good a translation is."""


class Answers(Published):
    """F1 and exact match with the references: of words, which in Thai and Chinese are found by a dictionary, against the first alone."""

    part = "normalized_f1"
    means = {  # noqa: RUF012
        "normalized_f1": (100, part), "f1": (100, part), "exact_match": (100, "exact"), "found_in_prediction": (100, "found"),
    }  # fmt: skip
    sums = {"null_count": "empty"}  # noqa: RUF012

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        published_words.require(task.language, f"The published F1 of the task '{task.name}'")

    def read(self, row: Row, text: str) -> Score:
        language = self.task.language
        said, wanted = extraction.line_of(self.task.answer_tag, text), list(row["label"])
        references = wanted[:1] if language in published_words.LIBRARIES else wanted
        given, *targets = (published_words.answer_words(one, language) for one in (said, *references))
        f1 = max(overlap(given, target)[0] if given and target else 0.0 for target in targets)
        found = float(wanted[0].lower().strip(".") in said.lower().strip("."))
        parts = {self.part: f1, "exact": float(given in targets), "found": found, "empty": float(not said)}
        return Score(f1, "", said, parts)


class _Texts(Published):
    """What summaries and translations have in common: chrF++ where the task says so."""

    sums = {"null_count": "empty"}  # noqa: RUF012

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self._chrf = bool(task.config["use_chrf_metric"])
        if self._chrf:
            require(what=f"chrF++ of the task '{task.name}'")
        self.names = ("chrf_score", "normalized_chrf_score") if self._chrf else ()

    def read(self, row: Row, text: str) -> Score:
        said = extraction.line_of(self.task.answer_tag, text)
        kind = "chrf++"
        counts = (
            zip(PARTS[kind], statistics(kind, said, [str(row["label"])]), strict=True) if self._chrf else ()
        )
        return Score(0.0, "", said, {"empty": float(not said), **dict(counts)})

    def more(self, column: Column) -> Numbers:
        import numpy as np

        if not self._chrf:
            return {}
        score = float(SCORES["chrf++"](np.array([column.parts[name].sum() for name in PARTS["chrf++"]])))
        return {"chrf_score": score, "normalized_chrf_score": score}


class Summaries(_Texts):
    """ROUGE-L of words by language: the medians of 1,000 bootstrap means."""

    part = "normalized_rougel_f1"
    rouge = ("rougel_precision", "rougel_recall", "rougel_f1", "normalized_rougel_f1")

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self._rouge = bool(task.config["use_rougeL_metric"])
        self.names += self.rouge if self._rouge else ()
        if task.language == "th":
            published_words.require("th", f"The published ROUGE of the task '{task.name}'")

    def read(self, row: Row, text: str) -> Score:
        found = super().read(row, text)
        texts = (found.explanation, str(row["label"]))
        given, wanted = (published_words.rouge_words(one, self.task.language) for one in texts)
        common = common_length(wanted, given)
        precision, recall = common / max(len(given), 1), common / max(len(wanted), 1)
        f1 = 2 * precision * recall / (precision + recall) if common else 0.0
        parts = {self.part: 100 * f1, "precision": precision, "recall": recall, "f1": f1}
        return replace(found, value=100 * f1, parts={**parts, **found.parts})

    def more(self, column: Column) -> Numbers:
        import numpy as np

        if not self._rouge:
            return super().more(column)
        matrix = np.stack([column.parts[name] for name in ("precision", "recall", "f1")], axis=1)
        draws, n = np.random.RandomState(4156), len(matrix)
        means = [matrix[draws.choice(np.arange(n), size=n)].mean(axis=0) for _ in range(1000)]
        middle = [100 * float(value) for value in np.percentile(means, 50, axis=0)]
        return super().more(column) | dict(zip(self.rouge, (*middle, middle[2]), strict=True))


class Translations(_Texts):
    """MetricX's errors, 25 at worst, as 0 to 100."""

    part = "normalized_metricx_wmt24_scores"

    def made(self) -> Made:
        asks = bool(self.task.config["use_metricx_metric"])
        self.means = {self.part: (1, self.part), "metricx_wmt24_scores": (1, "errors")} if asks else {}
        (scorer,), specs = super().made()
        able: frozenset[Ability] = frozenset({"reward"})
        return [
            replace(scorer, function=self.judged, asks=True, roles=(METRICX,), able=able) if asks else scorer
        ], specs

    async def judged(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The share of the errors that are not there, from 0 to 100."""
        row = row_of(sample)
        found = self.read(row, extraction.response_text(answer, self.task.answer_tag, self.task.base))
        errors = await errors_of(ask, row, found.explanation, str(row["label"]))
        worth = 100 * normalised(errors, 25, 0)
        return replace(found, value=worth, parts={self.part: worth, "errors": errors, **found.parts})


async def errors_of(ask: Ask, row: Row, said: str, reference: str) -> float:
    """How many errors MetricX sees in a translation, from 0 to 25. Raises ScoringError where its model gave no value."""
    response = await ask(METRICX, Reward(str(row["prompts"][0]["text"]), said, reference))
    if not response.values:
        raise ScoringError("The reward model gave no value.")
    return response.values[1] if len(response.values) > 1 else -response.values[0]


class Lines(Published):
    """The share of answers whose line behind the tag is the label."""

    part = "normalized_exact_match"
    means = {"normalized_exact_match": (1, part), "exact_match": (1, part)}  # noqa: RUF012

    def read(self, row: Row, text: str) -> Score:
        found = extraction.search(self.task.answer_tag + extraction.SAME_LINE, text)
        said = (text if found is None else found).strip()
        right = 100.0 * (str(row["label"]) == said)
        return Score(right, "", said, {self.part: right})


class Mathematics(Published):
    """The share of responses that math-verify reads as the label."""

    part = "normalized_math_verify_score"
    means = {"normalized_math_verify_score": (100, part), "math_verify_score": (100, part)}  # noqa: RUF012

    def read(self, row: Row, text: str) -> Score:
        try:
            right = float(bounded.call(extraction.math_verified, str(row["label"]), text, seconds=30.0))
        except bounded.LimitExceeded as error:
            raise ScoringError(f"math-verify was given up: {error}.") from None
        return Score(right, "", text.strip(), {self.part: right})


# -- long procedures ----------------------------------------------------------------------------------------------------


class Procedures(Published):
    """LongProc: the share of right results, and how far the procedure agrees. kind: as of the scorer `procedure`."""

    part = "normalized_partial_accuracy_score"

    def __init__(self, task: SeaTask, rows: Rows, kind: str) -> None:
        super().__init__(task, rows)
        self._kind = kind
        self.means = {
            "normalized_accuracy": (100, "right"), "accuracy": (100, "right"), "partial_accuracy": (100, self.part),
            **({} if kind == "beliefs" else {"extraction_rate": (100, "extracted")}),
        }  # fmt: skip

    def read(self, row: Row, text: str) -> Score:
        try:
            right, partly, said = procedure.worth(self._kind, row["label"], text, published=True)
        except procedure.Raised as error:
            raise SeaHelmRaised(str(error)) from None
        parts = {self.part: partly, "right": right, "extracted": float(said is not None)}
        return Score(partly, "" if said is not None else NULL, said or "", parts)

    def more(self, column: Column) -> Numbers:
        if self._kind == "route" and 0 < mean(part(column, "extracted")) < 1:
            raise SeaHelmRaised("AttributeError: 'float' object has no attribute 'strip'")
        return {}


class Tables(Published):
    """Precision, recall and F1 of the rows of tables, and how many could not be read."""

    part = "normalized_f1"
    means = {  # noqa: RUF012
        "normalized_f1": (100, part), "f1": (100, part), "precision": (100, "precision"), "recall": (100, "recall"),
    }  # fmt: skip
    sums = {"parsing_errors": "error"}  # noqa: RUF012

    def read(self, row: Row, text: str) -> Score:
        said = procedure.inside("```tsv", "```", text, True)
        precision, recall, f1, error = procedure.table(str(row["label"]), said, True)
        parts = {self.part: f1, "precision": precision, "recall": recall, "error": float(bool(error))}
        return Score(f1, error, said or "", parts)
