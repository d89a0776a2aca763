"""Labels that are read in a response, or scored by their log-likelihood, as published."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from statistics import fmean as mean
from typing import TYPE_CHECKING

from evalwright import Answer, Sample, Score
from evalwright.compat.sea_helm.published.scoring import (
    Numbers,
    PublishedScoring,
    SeaHelmRaised,
    normalised,
    plain,
    search,
    standard_error,
)
from evalwright.compat.sea_helm.sea_task import NULL, Row, row_of
from evalwright.extend import Scored

if TYPE_CHECKING:
    from evalwright import Column

_KIND = "subcategories."
_BY_GROUP = {"accuracy": "balanced-accuracy", "macro_f1": "macro-f1"}
_OF_PROBABILITIES = (
    "average_cumulative_probabilities",
    "clt_se_cumulative_probabilities",
    "average_cumulative_logprobs",
    "clt_se_cumulative_logprobs",
    "null_count",
)


class Labels(PublishedScoring):
    """Balanced accuracy and F1 over the labels that the data have, of those run together the last;
    also by groups, from 0 to 1.
    """

    any_case = True

    def prepare(self) -> None:
        self.labels = sorted({str(row["label"]) for row in self.rows})
        end = "+" if self.any_case else "*"
        self._pattern = rf"{self.task.answer_tag}[\s\*]*({'|'.join(self.labels)}){end}"
        self.names += tuple(
            f"{key}.{name}.{suffix}"
            for key, names in self.by.items()
            for name in names
            for suffix in _BY_GROUP
        )

    def row_score(self, row: Row, text: str) -> Score:
        gold = row["label"]
        if not isinstance(gold, str):
            raise SeaHelmRaised(f"AttributeError: the label {gold!r} is not a text")
        extracted = plain(search(self._pattern, text, self.any_case))
        label = {label.lower(): label for label in self.labels}.get(extracted, NULL)
        right = float(label == gold)
        predicted = self.labels.index(label) if label != NULL else -1
        parts = {
            self.part: right,
            "gold": float(self.labels.index(gold)),
            "predicted": float(predicted),
        }
        return Score(right, label, "", parts | self.codes(row))

    def more(self, column: Column) -> Numbers:
        gold, predicted = (
            [int(place) for place in self.part_values(column, name)]
            for name in ("gold", "predicted")
        )
        kinds = ("balanced-accuracy", "macro-f1", "null-weighted-f1")
        accuracy, macro, weighted = (
            label_scores(gold, predicted, kind)[0] for kind in kinds
        )
        labels = len({self.labels[gold_index].lower() for gold_index in gold})
        figures = (accuracy, macro, weighted, normalised(accuracy, 1 / labels, 1))
        numbers = {
            name: 100 * value
            for name, value in zip(self.entry["names"], figures, strict=False)
        }
        for key, names in self.by.items():
            codes = [int(code) for code in self.part_values(column, key)]
            for suffix, kind in _BY_GROUP.items():
                values = label_scores(gold, predicted, kind, codes)
                numbers |= {
                    f"{key}.{names[code]}.{suffix}": values[code] for code in set(codes)
                }
        return {**numbers, "null_count": predicted.count(-1)}


def label_scores(
    gold: Sequence[int],
    predicted: Sequence[int],
    kind: str,
    codes: Sequence[int] | None = None,
) -> list[float]:
    """A metric over classes of each group of answers. kind: "balanced-accuracy", "macro-f1" or
    "null-weighted-f1"; codes: the groups 0, 1, ... of the answers, one without them.
    """
    groups = [0] * len(gold) if codes is None else list(codes)
    pairs = list(zip(gold, predicted, strict=True))
    labels = sorted({label for pair in pairs for label in pair})
    metric = _LABEL_METRICS[kind]
    return [
        metric(
            labels,
            [pair for pair, code in zip(pairs, groups, strict=True) if code == group],
        )
        for group in range(max(groups) + 1)
    ]


Pairs = Sequence[tuple[int, int]]
"""The right label and that of the answer, of each row."""


def _balanced_accuracy(labels: Sequence[int], pairs: Pairs) -> float:
    """The mean over right labels of the share of their rows that were read so."""
    truth, _, hits = _counts(pairs)
    return _mean_ratio([(hits[label], truth[label]) for label in labels])


def _macro_f1(labels: Sequence[int], pairs: Pairs) -> float:
    """The mean F1 of all labels that are right or answered somewhere, that of no label too."""
    truth, answered, hits = _counts(pairs)
    return _mean_ratio(
        [(2 * hits[label], truth[label] + answered[label]) for label in labels]
    )


def _null_weighted_f1(labels: Sequence[int], pairs: Pairs) -> float:
    """The mean F1 of right labels, times the share of answers with a label."""
    truth, answered, hits = _counts(pairs)
    f1 = _mean_ratio(
        [
            (2 * hits[label], truth[label] and truth[label] + answered[label])
            for label in labels
        ]
    )
    return f1 * (len(pairs) - answered[-1]) / len(pairs)


def _counts(pairs: Pairs) -> tuple[Counter[int], Counter[int], Counter[int]]:
    """How often each label is right, answered, and both at once."""
    truth = Counter(gold for gold, _ in pairs)
    answered = Counter(label for _, label in pairs)
    hits = Counter(gold for gold, label in pairs if gold == label)
    return truth, answered, hits


def _mean_ratio(ratios: Sequence[tuple[int, int]]) -> float:
    """The mean of fractions whose denominator is above 0."""
    import numpy as np

    ratio_values = [above / below if below else 0.0 for above, below in ratios]
    return float(
        np.array(ratio_values).sum() / max(sum(below > 0 for _, below in ratios), 1)
    )


_LABEL_METRICS = {
    "balanced-accuracy": _balanced_accuracy,
    "macro-f1": _macro_f1,
    "null-weighted-f1": _null_weighted_f1,
}


class Phenomena(Labels):
    """The mean over phenomena of the share of right answers; counted: the right ones and all of
    each phenomenon alone.
    """

    any_case = False

    def prepare(self) -> None:
        super().prepare()
        ((self.over, group_names),) = self.by.items()
        ends = (".correct", ".total") if self.entry.get("counted") else ("",)
        by = (f"{_KIND}{name}{end}" for name in group_names for end in ends)
        self.names = (*self.entry.get("names", ()), *by)

    def more(self, column: Column) -> Numbers:
        hits = self.part_values(column, self.part)
        rows_by_group = self.groups(column, self.over)
        right = {
            _KIND + name: [hits[place] for place in group_rows]
            for name, group_rows in rows_by_group.items()
        }
        if self.entry.get("counted"):
            sums = {
                f"{name}.correct": sum(hits_of_group)
                for name, hits_of_group in right.items()
            }
            return sums | {
                f"{name}.total": len(hits_of_group)
                for name, hits_of_group in right.items()
            }
        shares = {
            name: 100 * mean(hits_of_group) for name, hits_of_group in right.items()
        }
        accuracy = mean(shares.values())
        labels = len(set(self.part_values(column, "gold")))
        worth = 100 * normalised(accuracy, 100 / labels, 100)
        return {**shares, "accuracy": accuracy, "normalized_accuracy": worth}


class LogProbabilities(PublishedScoring):
    """Means and standard errors of the gold label's log-probability and of 100 times its
    probability, 0 where there is none, over all rows (`whole`) and by phenomenon.
    """

    def prepare(self) -> None:
        before = [""] if self.entry.get("whole") else []
        before += [f"{_KIND}{name}." for names in self.by.values() for name in names]
        self.names = tuple(
            prefix + name for prefix in before for name in _OF_PROBABILITIES
        )

    def score(self, sample: Sample, answer: Answer) -> Scored:
        values = answer.log_likelihoods
        groups = self.codes(row_of(sample))
        if not values:
            return Score(0.0, NULL, "", {self.part: 0.0, **groups})
        gold = values[sample.gold[0]] if len(values) > 1 and sample.gold else values[0]
        worth = math.exp(gold) * 100
        return Score(worth, "", "", {self.part: worth, "logprob": gold, **groups})

    def more(self, column: Column) -> Numbers:
        shares = self.part_values(column, self.part)
        logs = (
            self.part_values(column, "logprob")
            if "logprob" in column.parts
            else [math.nan] * len(shares)
        )
        places = {"": list(range(len(shares)))} if self.entry.get("whole") else {}
        for key in self.by:
            places |= {
                f"{_KIND}{name}.": group_rows
                for name, group_rows in self.groups(column, key).items()
            }
        numbers_by_name: Numbers = {}
        for before, rows in places.items():
            group_shares = [shares[place] for place in rows]
            log_probabilities = [
                logs[place] for place in rows if logs[place] == logs[place]
            ]
            centre = mean(log_probabilities) if len(log_probabilities) > 1 else 0.0
            null = len(group_shares) - len(log_probabilities)
            numbers = (
                mean(group_shares),
                standard_error(group_shares),
                centre,
                standard_error(log_probabilities),
                null,
            )
            numbers_by_name |= {
                before + name: value
                for name, value in zip(_OF_PROBABILITIES, numbers, strict=True)
            }
        return numbers_by_name
