"""SEA-HELM's own arithmetic: each metric class over the rows of a task, its numbers under its names.

A score's part is what SEA-HELM calls the row's individual score, its label or explanation the answer as SEA-HELM reads it. Where its code
raises, so does this: the row has failed, and the task counts as 0, as there. What a class nests is named with dots ("difficulty.hard.accuracy").
Of several draws each is a run of SEA-HELM's, and the numbers are means over them.
"""

from __future__ import annotations

import math
import statistics as standard
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm import extraction
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import MetricSpec, Scored, Scorer
from evalwright.scorers.label import NULL

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

DIALECT = SCORER = "sea-helm"
"""The dialect, and the name of the one scorer that its tasks have."""

Made = tuple[list[Scorer], list[MetricSpec]]
Rows = Sequence[Row]
Numbers = dict[str, float]


class SeaHelmRaised(ScoringError):
    """SEA-HELM's own code raises here, and then scores the whole task 0."""


def row_of(sample: Sample) -> Row:
    """The row of a sample. Raises ScoringError where it has none."""
    row = sample.metadata.get("row")
    if not isinstance(row, Mapping):
        raise ScoringError(f"The sample '{sample.id}' has no row of SEA-HELM's in its metadata.")
    return row


def metadata_of(row: Row, key: str, default: str | None = None) -> str:
    """A value of a row's metadata. Raises SeaHelmRaised where it has none."""
    metadata = row.get("metadata") or {}
    if key not in metadata and default is None:
        raise SeaHelmRaised(f"KeyError: '{key}'")
    return str(metadata.get(key, default))


def normalised(score: float, least: float, greatest: float) -> float:
    """The share of the way from the least to the greatest score, not below 0; 0 where both are the same."""
    return 0.0 if least == greatest else max((score - least) / (greatest - least), 0)


def standard_error(values: Sequence[float]) -> float:
    """Of a mean; 0 of fewer than two values."""
    return math.sqrt(standard.variance(values) / len(values)) if len(values) > 1 else 0.0


def mean(values: Sequence[float]) -> float:
    """The mean."""
    return sum(values) / len(values)


class Published:
    """One metric class over the rows of a task.

    part: of a row's individual score. means: the numbers that are means of a part, each with its factor; sums: those that are sums of one.
    names: of the others.
    """

    part = ""
    means: Mapping[str, tuple[float, str]] = {}
    sums: Mapping[str, str] = {}
    names: tuple[str, ...] = ()

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        self.task, self.rows = task, rows
        self._raised = ""
        self._last: tuple[Any, Numbers] | None = None

    def read(self, row: Row, text: str) -> Score:
        """A row's score. Raises SeaHelmRaised."""
        raise NotImplementedError

    def more(self, column: Column) -> Numbers:
        """The numbers that are neither means nor sums, of one draw. Raises SeaHelmRaised."""
        return {}

    def made(self) -> Made:
        """The scorer and the metrics."""
        options = {"scoring": "published", "class": self.task.scored_by[1]}
        names = dict.fromkeys((self.task.metric, *self.means, *self.names, *self.sums))
        specs = [
            MetricSpec(name, "mean", SCORER, {}, name.endswith("null_count"), partial(self._estimate, name))
            for name in names
        ]
        return [Scorer(SCORER, DIALECT, options, self.score)], specs

    def score(self, sample: Sample, answer: Answer) -> Scored:
        """The scorer."""
        try:
            text = extraction.response_text(answer, self.task.answer_tag, self.task.base)
            return self.read(row_of(sample), text)
        except SeaHelmRaised as error:
            self._raised = str(error)
            raise

    def _estimate(self, name: str, column: Column) -> Estimate:
        from evalwright.statistics import Estimate

        n, lost = len(column.values), column.n_failed

        def without(value: float, method: str, failed: bool = False) -> Estimate:
            counts = (0, n + lost) if failed else (n, lost)
            return Estimate(value, math.nan, math.nan, 0.95, *counts, None, None, method)

        try:
            found = self._found(column)
        except SeaHelmRaised as error:
            main = name == self.task.metric
            said = "failed, published as 0" if main else "no number"
            return without(0.0 if main else math.nan, f"{said}: SEA-HELM's code raises {error}", True)
        if name not in found:
            return without(math.nan, "no number: SEA-HELM has none here")
        return without(found[name], "no interval (as published)")

    def _found(self, column: Column) -> Numbers:
        if self._raised or not len(column.values):
            raise SeaHelmRaised(self._raised or "an error, or no answer came: see the failures")
        if self._last is None or self._last[0] is not column:
            runs = [self._numbers(one) for one in _draws(column)]
            shared = [name for name in runs[0] if all(name in run for run in runs)]
            self._last = column, {name: mean([float(run[name]) for run in runs]) for name in shared}
        return self._last[1]

    def _numbers(self, column: Column) -> Numbers:
        found = {name: factor * mean(part(column, of)) for name, (factor, of) in self.means.items()}
        return found | {name: sum(part(column, of)) for name, of in self.sums.items()} | self.more(column)


def _draws(column: Column) -> list[Column]:
    """The column of each draw alone, without the items that it lacks."""
    if column.draws is None:
        return [column]
    found = []
    for draw, values in enumerate(column.draws.T):
        there = values == values
        if there.any():
            parts = {name: own[there, draw] for name, own in column.part_draws.items()}
            items = [item for item, kept in zip(column.items, there, strict=False) if kept]
            found.append(replace(column, values=values[there], parts=parts, items=items, draws=None))
    return found


def part(column: Column, name: str) -> list[float]:
    """A part of the scores."""
    return [float(value) for value in column.parts[name]]


# -- labels -------------------------------------------------------------------------------------------------------------


class Labels(Published):
    """Balanced accuracy and F1 over the labels that the data have; an answer without one is "null"."""

    names: tuple[str, ...] = ("accuracy", "macro_f1", "null_weighted_f1", "normalized_accuracy", "null_count")
    part = "normalized_accuracy"
    ignore_case = True
    by: tuple[str, ...] = ()

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self.labels = sorted({str(row["label"]) for row in rows})
        self._reader = extraction.LabelReader(task.answer_tag, self.labels, ignore_case=self.ignore_case)

    def read(self, row: Row, text: str) -> Score:
        gold = row["label"]
        if not isinstance(gold, str):
            raise SeaHelmRaised(f"AttributeError: the label {gold!r} is not a text")
        found = self._reader.read(text)
        right = float(found == gold)
        places = (self.labels.index(gold), self.labels.index(found) if found != NULL else -1)
        parts = {self.part: right, **dict(zip(("gold", "predicted"), map(float, places), strict=True))}
        return Score(
            right, found, "", parts, {of: metadata_of(row, of, self._default) for of in self.by} or None
        )

    _default: str | None = "unknown"

    def pairs(self, column: Column) -> list[tuple[int, int]]:
        """Gold and read labels; with a limit the data have fewer labels, and no other is read."""
        gold, said = ([int(place) for place in part(column, name)] for name in ("gold", "predicted"))
        known = set(gold)
        return [(one, other if other in known else -1) for one, other in zip(gold, said, strict=True)]

    def more(self, column: Column) -> Numbers:
        pairs = self.pairs(column)
        accuracy, macro, among = label_scores(pairs)
        nulls = sum(said == -1 for _, said in pairs)
        labels = len({self.labels[gold].lower() for gold, _ in pairs})
        found = (accuracy, macro, among * (1 - nulls / len(pairs)), normalised(accuracy, 1 / labels, 1))
        numbers = {name: 100 * value for name, value in zip(self.names, found, strict=False)}
        return {**numbers, "null_count": nulls}


def label_scores(pairs: Sequence[tuple[Any, Any]]) -> tuple[float, float, float]:
    """Balanced accuracy, the mean F1 over all labels, that of no label among them, and over the gold ones, of (gold, read) pairs."""
    golds = dict.fromkeys(gold for gold, _ in pairs)
    counts = {label: [0, 0, 0] for label in (*golds, *(read for _, read in pairs))}
    for gold, read in pairs:
        counts[gold][0] += gold == read
        counts[gold][1] += 1
        counts[read][2] += 1
    f1 = {label: 2 * hits / (own + said) for label, (hits, own, said) in counts.items()}
    recall = [counts[label][0] / counts[label][1] for label in golds]
    return mean(recall), mean(list(f1.values())), mean([f1[label] for label in golds])


class SuperGPQA(Labels):
    """The same, and balanced accuracy and F1 by difficulty and field, from 0 to 1."""

    by = ("difficulty", "field")

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        groups = dict.fromkeys((of, metadata_of(row, of, "unknown")) for of in self.by for row in rows)
        self.names += tuple(f"{of}.{name}.{what}" for of, name in groups for what in ("accuracy", "macro_f1"))

    def more(self, column: Column) -> Numbers:
        found = super().more(column)
        groups: dict[tuple[str, str], list[tuple[int, int]]] = {}
        for pair, item in zip(self.pairs(column), column.items, strict=True):
            for of in self.by:
                groups.setdefault((of, item[of]), []).append(pair)
        for (of, name), pairs in groups.items():
            accuracy, macro, _ = label_scores(pairs)
            found |= {f"{of}.{name}.accuracy": accuracy, f"{of}.{name}.macro_f1": macro}
        return found


class MinimalPairs(Labels):
    """The mean over phenomena of the share of right answers; counted: the right ones and all of each phenomenon alone."""

    ignore_case = False
    by = ("linguistic_phenomenon",)
    _default = None

    def __init__(self, task: SeaTask, rows: Rows, counted: bool = False) -> None:
        super().__init__(task, rows)
        self._counted = counted
        ends = (".correct", ".total") if counted else ("",)
        known = dict.fromkeys(metadata_of(row, self.by[0]) for row in rows)
        self.names = () if counted else ("accuracy", "normalized_accuracy")
        self.names += tuple(f"subcategories.{name}{end}" for name in known for end in ends)

    def more(self, column: Column) -> Numbers:
        right: dict[str, list[float]] = {}
        for hit, item in zip(part(column, self.part), column.items, strict=True):
            right.setdefault(f"subcategories.{item[self.by[0]]}", []).append(hit)
        if self._counted:
            sums = {f"{name}.correct": sum(own) for name, own in right.items()}
            return sums | {f"{name}.total": len(own) for name, own in right.items()}
        shares = {name: 100 * mean(own) for name, own in right.items()}
        accuracy, labels = mean(list(shares.values())), len({gold for gold, _ in self.pairs(column)})
        return shares | {
            "accuracy": accuracy,
            "normalized_accuracy": 100 * normalised(accuracy, 100 / labels, 100),
        }


class LogProbabilities(Published):
    """Means and standard errors of the gold label's log-probability and of 100 times its probability, 0 where there is none.

    by: "whole", over all rows; "phenomena", over each; "both".
    """

    part = "probabilities_accuracy"
    each = (
        "average_cumulative_probabilities", "clt_se_cumulative_probabilities", "average_cumulative_logprobs", "clt_se_cumulative_logprobs",
        "null_count",
    )  # fmt: skip

    def __init__(self, task: SeaTask, rows: Rows, by: str = "whole") -> None:
        super().__init__(task, rows)
        self._by = by
        known = (
            () if by == "whole" else dict.fromkeys(metadata_of(row, "linguistic_phenomenon") for row in rows)
        )
        self._before: tuple[str, ...] = ("",) if by != "phenomena" else ()
        self._before += tuple(f"subcategories.{of}." for of in known)
        self.names = tuple(before + name for before in self._before for name in self.each)

    def score(self, sample: Sample, answer: Answer) -> Score:
        values, row = answer.log_likelihoods, row_of(sample)
        item = None if self._by == "whole" else {"of": metadata_of(row, "linguistic_phenomenon")}
        if not values:
            return Score(0.0, NULL, "", {self.part: 0.0}, item)
        gold = values[sample.gold[0]] if len(values) > 1 and sample.gold else values[0]
        probability = math.exp(gold) * 100
        return Score(probability, "", "", {self.part: probability, "logprob": gold}, item)

    def more(self, column: Column) -> Numbers:
        shares = part(column, self.part)
        logs = part(column, "logprob") if "logprob" in column.parts else [math.nan] * len(shares)
        of = [f"subcategories.{item['of']}." for item in column.items] if self._by != "whole" else shares
        found: Numbers = {}
        for before in self._before:
            rows = [place for place, own in enumerate(of) if own == before or not before]
            some, known = (
                [shares[place] for place in rows],
                [logs[place] for place in rows if logs[place] == logs[place]],
            )
            if not rows:
                continue
            centre = standard.mean(known) if len(known) > 1 else 0.0
            numbers = (
                standard.mean(some),
                standard_error(some),
                centre,
                standard_error(known),
                len(some) - len(known),
            )
            found |= {before + name: value for name, value in zip(self.each, numbers, strict=True)}
        return found
