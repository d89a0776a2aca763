"""The scorers and metrics of SEA-HELM's tasks: published, by its own arithmetic, or corrected, by scorers and metrics of ours.

A table goes from the file and the class of a task's metric to what makes them. Published: each score has the part that SEA-HELM calls the
row's individual score, its label or explanation is the answer as SEA-HELM reads it, and the metrics are those of its result, under its names
("difficulty.hard.accuracy" where it nests them). Where its code raises, the task has failed and counts as 0.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm import extraction
from evalwright.compat.sea_helm.extraction import NULL
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import ScoringError, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import MetricSpec, Scored, Scorer
from evalwright.scorers.choice import NOT_EXTRACTED

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

DIALECT = "sea-helm"
SCORER = "sea-helm"
"""The name of the one scorer that these tasks have, where no scorer of ours stands in its place."""

Made = tuple[list[Scorer], list[MetricSpec]]
Rows = Sequence[Row]


def scoring_of(task: SeaTask, rows: Rows) -> Made:
    """The scorers and metrics of a task, the metric that it stands for first. rows: published, those that are asked; corrected, all.

    A sample has its row as metadata "row". Raises UsageError for a metric class that is not known, or cannot be had.
    """
    make = _TABLE.get(task.scored_by)
    if make is None:
        file, name = task.scored_by
        known = sorted({f"{name} of {file}" for file, name in _TABLE})
        raise UnknownName("metric class", f"{name} of {file}", known, f"The task '{task.name}' needs it.")
    return make(task, rows)


def row_of(sample: Sample) -> Row:
    """The row of a sample. Raises ScoringError where it has none."""
    row = sample.metadata.get("row")
    if not isinstance(row, Mapping):
        raise ScoringError(f"The sample '{sample.id}' has no row of SEA-HELM's in its metadata.")
    return row


def normalised(score: float, least: float, greatest: float) -> float:
    """Published: the share of the way from the least to the greatest score, not below 0; 0 where both are the same."""
    return 0.0 if least == greatest else max((score - least) / (greatest - least), 0)


# -- published ----------------------------------------------------------------------------------------------------------


class SeaHelmRaised(ScoringError):
    """SEA-HELM's own code raises here, and then scores the whole task 0."""


class Published:
    """One metric class of SEA-HELM over the rows of a task. names: of the numbers of its result; part: of a row's individual score."""

    names: tuple[str, ...] = ()
    part = ""

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        self.task, self.rows = task, rows
        self._raised = ""
        self._last: tuple[Any, Mapping[str, float]] | None = None

    def read(self, row: Row, text: str) -> Score:
        """A row's score. Raises SeaHelmRaised."""
        raise NotImplementedError

    def totals(self, column: Column) -> Mapping[str, float]:
        """The numbers of the result. Raises SeaHelmRaised."""
        raise NotImplementedError

    def made(self) -> Made:
        """The scorer and the metrics."""
        options = {"scoring": "published", "class": self.task.scored_by[1]}
        names = dict.fromkeys((self.task.metric, *self.names))
        specs = [
            MetricSpec(
                name,
                "mean",
                SCORER,
                {"as": "published"},
                name.endswith("null_count"),
                partial(self._estimate, name),
            )
            for name in names
        ]
        return [Scorer(SCORER, DIALECT, options, self.score)], specs

    def score(self, sample: Sample, answer: Answer) -> Scored:
        """The scorer."""
        try:
            return self.read(
                row_of(sample), extraction.published_text(answer, self.task.answer_tag, self.task.base)
            )
        except SeaHelmRaised as error:
            self._raised = str(error)
            raise

    def _estimate(self, name: str, column: Column) -> Estimate:
        from evalwright.statistics import Estimate

        def without(value: float, method: str, n: int) -> Estimate:
            lost = len(column.values) + column.n_failed - n
            return Estimate(value, math.nan, math.nan, 0.95, n, lost, None, None, method)

        try:
            if self._raised:
                raise SeaHelmRaised(self._raised)
            found = self._found(column)
        except SeaHelmRaised as error:
            if name == self.task.metric:
                return without(0.0, f"failed, published as 0: {error}", 0)
            return without(math.nan, f"no number: {error}", 0)
        if name not in found:
            return without(math.nan, "no number: SEA-HELM has none here", len(column.values))
        return without(float(found[name]), "no interval (as published)", len(column.values))

    def _found(self, column: Column) -> Mapping[str, float]:
        if self._last is None or self._last[0] is not column:
            if not len(column.values):
                raise SeaHelmRaised("ZeroDivisionError: nothing was scored")
            self._last = column, self.totals(column)
        return self._last[1]


def _part(column: Column, name: str) -> list[float]:
    return [float(value) for value in column.parts[name]]


def _mean(values: Sequence[float]) -> float:
    return sum(values) / len(values)


class PublishedLabels(Published):
    """Balanced accuracy and F1 over the labels that the data have; an answer without one is "null"."""

    names = ("accuracy", "macro_f1", "null_weighted_f1", "normalized_accuracy", "null_count")
    part = "normalized_accuracy"
    ignore_case = True

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.labels = sorted({str(row["label"]) for row in rows})
        self._readers: dict[tuple[str, ...], extraction.PublishedLabels] = {}

    def _reader(self, labels: Sequence[str]) -> extraction.PublishedLabels:
        key = tuple(labels)
        if key not in self._readers:
            self._readers[key] = extraction.PublishedLabels(
                self.task.answer_tag, key, ignore_case=self.ignore_case
            )
        return self._readers[key]

    def read(self, row: Row, text: str) -> Score:
        """1.0 where the label that is read is the row's."""
        gold = row["label"]
        if not isinstance(gold, str):
            raise SeaHelmRaised(f"AttributeError: the label {gold!r} is not a text")
        found = self._reader(self.labels).read(text)
        right = float(found == gold)
        return Score(right, found, "", {self.part: right}, {"gold": gold, "read": found, **self._more(row)})

    def _more(self, row: Row) -> dict[str, Any]:
        return {}

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows."""
        # With a limit the data have fewer labels, and no other is read.
        known = {one["gold"] for one in column.items}
        return self.of_labels(
            [(one["gold"], one["read"] if one["read"] in known else NULL) for one in column.items]
        )

    def of_labels(self, pairs: Sequence[tuple[str, str]]) -> dict[str, float]:
        """From (gold, read) pairs."""
        accuracy, macro, among = _label_scores(pairs)
        nulls = sum(read == NULL for _, read in pairs)
        labels = len({gold.lower() for gold, _ in pairs})
        return {
            "accuracy": 100 * accuracy,
            "macro_f1": 100 * macro,
            "null_weighted_f1": 100 * (among * (1 - nulls / len(pairs))),
            "normalized_accuracy": 100 * normalised(accuracy, 1 / labels, 1),
            "null_count": nulls,
        }


def _label_scores(pairs: Sequence[tuple[str, str]]) -> tuple[float, float, float]:
    """Balanced accuracy, the mean F1 over all labels, "null" among them, and over the gold ones."""
    golds = sorted({gold for gold, _ in pairs})
    counts = {label: [0, 0, 0] for label in (*golds, *(read for _, read in pairs))}
    for gold, read in pairs:
        counts[gold][0] += gold == read
        counts[gold][1] += 1
        counts[read][2] += 1
    f1 = {label: 2 * hits / (own + said) for label, (hits, own, said) in counts.items()}
    recall = [counts[label][0] / counts[label][1] for label in golds]
    return _mean(recall), _mean(list(f1.values())), _mean([f1[label] for label in golds])


# -- corrected ----------------------------------------------------------------------------------------------------------

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OPTION = re.compile(r"(?:option|choice|opsi|pilihan)_?([a-z]|\d{1,2})", re.IGNORECASE)
_LISTED = re.compile(r"(?m)^\s{0,4}\(?([A-Z])[).:]\s")


def options_of(row: Row) -> tuple[str, ...]:
    """The texts of a row's lettered options in their order, by the keys of its prompt or by its lines; () where it has none."""
    prompt = row["prompts"][0] if row.get("prompts") else {}
    texts = [str(value) for key, value in prompt.items() if _OPTION.fullmatch(str(key))]
    if len(texts) > 1:
        return tuple(texts)
    for value in prompt.values():
        parts = _LISTED.split(str(value))
        if len(parts) > 4 and parts[1::2] == list(_LETTERS[: len(parts) // 2]):
            return tuple(part.strip() for part in parts[2::2])
    return ()


def labels_of(task: SeaTask, rows: Rows) -> tuple[tuple[str, ...], float]:
    """The labels that answers of a task can have, and the accuracy of guessing: by the definition's `labels`, else the rows' options, else
    all labels of the data.
    """
    labels = {str(row["label"]) for row in rows}
    given = task.here.get("labels") or task.config.get("labels")
    if given:
        return tuple(map(str, given)), 1 / len(given)
    if labels and all(label in _LETTERS for label in labels):
        sizes = [len(options_of(row)) for row in rows]
        if all(sizes) and max(sizes) > _LETTERS.index(max(labels)):
            return tuple(_LETTERS[: max(sizes)]), _mean([1 / size for size in sizes])
    return tuple(sorted(labels)), 1 / len(labels) if labels else 0.0


def _corrected_labels(task: SeaTask, rows: Rows, over: str = "") -> Made:
    labels, chance = labels_of(task, rows)
    lettered = all(label in _LETTERS for label in labels)

    def score(sample: Sample, answer: Answer) -> Score:
        row = row_of(sample)
        gold = row["label"]
        if gold not in labels:
            raise ScoringError(
                f"The label of the sample '{sample.id}' is {gold!r}, which is none of {', '.join(labels)}."
            )
        texts = options_of(row) if lettered else ()
        texts = texts if 1 < len(texts) <= len(labels) else ()
        # Of two phases what is scored begins behind the tag.
        tag = "" if task.base and len(answer.responses) > 1 else task.answer_tag
        place, how = extraction.last_label(tag, labels, answer.text, texts, task.language, sample.input)
        right = float(place == labels.index(gold))
        said = labels[place] if place != NOT_EXTRACTED else NULL
        parts = {
            "gold": float(labels.index(gold)),
            "predicted": float(place),
            "read": float(place != NOT_EXTRACTED),
        }
        return Score(right, said, how, {task.metric: right, **parts})

    of = "accuracy" if over else "balanced-accuracy"
    by = {"over": over} if over else {}
    options = {"scoring": "corrected", "labels": list(labels)}
    specs = [
        MetricSpec(task.metric, "chance-normalised", SCORER, {"chance": chance, "of": of, **by}),
        MetricSpec("accuracy", "macro", SCORER, {"of": of, **by})
        if over
        else MetricSpec("accuracy", of, SCORER),
        MetricSpec("macro_f1", "macro-f1", SCORER),
        MetricSpec("null_weighted_f1", "null-weighted-f1", SCORER),
        MetricSpec("answers_read", "part-mean", SCORER, {"part": "read"}),
    ]
    return [Scorer(SCORER, DIALECT, options, score)], specs


def _by(
    published: type[Published], corrected: Callable[[SeaTask, Rows], Made]
) -> Callable[[SeaTask, Rows], Made]:
    def make(task: SeaTask, rows: Rows) -> Made:
        return published(task, rows).made() if task.published else corrected(task, rows)

    return make


_TABLE: Mapping[tuple[str, str], Callable[[SeaTask, Rows], Made]] = {
    ("src/metrics/f1_acc_metric.py", "F1AccMetric"): _by(PublishedLabels, _corrected_labels),
}
"""What makes the scorers and metrics of each metric class."""
