"""SEA-HELM's own arithmetic: each metric class over the rows of a task, its numbers under its names.

A score's part is what SEA-HELM calls the row's individual score, its label or explanation the answer as SEA-HELM reads it. Where its code
raises, so does this: the row has failed, and the task counts as 0, as there. What a class nests is named with dots ("difficulty.hard.accuracy").
"""

from __future__ import annotations

import math
import statistics as standard
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from evalwright import bounded
from evalwright.compat.sea_helm import extraction, longproc
from evalwright.compat.sea_helm.extraction import NULL
from evalwright.compat.sea_helm.task import Row, SeaTask
from evalwright.core.asking import Ask
from evalwright.core.errors import ScoringError
from evalwright.core.requests import Reward
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import MetricSpec, Scored, Scorer
from evalwright.metrics.corpus import SCORES
from evalwright.scorers.corpus import PARTS, statistics
from evalwright.scorers.rouge import common_length
from evalwright.scorers.token_f1 import overlap

if TYPE_CHECKING:
    from evalwright.metrics.registry import Column
    from evalwright.statistics import Estimate

DIALECT = "sea-helm"
SCORER = "sea-helm"
"""The name of the one scorer that these tasks have."""
METRICX = "metricx"
"""The role of the model that says how good a translation is."""

Made = tuple[list[Scorer], list[MetricSpec]]
Rows = Sequence[Row]
Numbers = Mapping[str, float]


def row_of(sample: Sample) -> Row:
    """The row of a sample. Raises ScoringError where it has none."""
    row = sample.metadata.get("row")
    if not isinstance(row, Mapping):
        raise ScoringError(f"The sample '{sample.id}' has no row of SEA-HELM's in its metadata.")
    return row


def source_of(row: Row) -> str:
    """What a row asks to translate."""
    return str(row["prompts"][0]["text"])


def normalised(score: float, least: float, greatest: float) -> float:
    """The share of the way from the least to the greatest score, not below 0; 0 where both are the same."""
    return 0.0 if least == greatest else max((score - least) / (greatest - least), 0)


def standard_error(values: Sequence[float]) -> float:
    """Of a mean; 0 of fewer than two values."""
    return math.sqrt(standard.variance(values) / len(values)) if len(values) > 1 else 0.0


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
        accuracy, macro, among = label_scores(pairs)
        nulls = sum(read == NULL for _, read in pairs)
        labels = len({gold.lower() for gold, _ in pairs})
        return {
            "accuracy": 100 * accuracy,
            "macro_f1": 100 * macro,
            "null_weighted_f1": 100 * (among * (1 - nulls / len(pairs))),
            "normalized_accuracy": 100 * normalised(accuracy, 1 / labels, 1),
            "null_count": nulls,
        }


def label_scores(pairs: Sequence[tuple[str, str]]) -> tuple[float, float, float]:
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


class SuperGPQA(PublishedLabels):
    """The same, and balanced accuracy and F1 by difficulty and field, from 0 to 1."""

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        groups = (
            (by, str((row.get("metadata") or {}).get(by, "unknown")))
            for by in ("difficulty", "field")
            for row in rows
        )
        self.names += tuple(
            f"{by}.{name}.{what}" for by, name in dict.fromkeys(groups) for what in ("accuracy", "macro_f1")
        )

    def _more(self, row: Row) -> dict[str, Any]:
        return {by: str((row.get("metadata") or {}).get(by, "unknown")) for by in ("difficulty", "field")}

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows, and those of each difficulty and field."""
        found = super().totals(column)
        for by in ("difficulty", "field"):
            for name in dict.fromkeys(one[by] for one in column.items):
                accuracy, macro, _ = label_scores(
                    [(one["gold"], one["read"]) for one in column.items if one[by] == name]
                )
                found |= {f"{by}.{name}.accuracy": accuracy, f"{by}.{name}.macro_f1": macro}
        return found


class MinimalPairs(PublishedLabels):
    """The mean over phenomena of the share of right answers; counted: the right ones and all of each phenomenon alone."""

    ignore_case = False

    def __init__(self, task: SeaTask, rows: Rows, counted: bool = False) -> None:
        super().__init__(task, rows)
        self._counted = counted
        self.names = () if counted else ("accuracy", "normalized_accuracy")
        ends = (".correct", ".total") if counted else ("",)
        self.names += tuple(
            f"subcategories.{name}{end}" for name in dict.fromkeys(map(phenomenon, rows)) for end in ends
        )

    def _more(self, row: Row) -> dict[str, Any]:
        return {"of": phenomenon(row)}

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows."""
        right: dict[str, list[bool]] = {}
        for one in column.items:
            right.setdefault(one["of"], []).append(one["gold"] == one["read"])
        if self._counted:
            return {
                f"subcategories.{name}{end}": number
                for name, own in right.items()
                for end, number in ((".correct", sum(own)), (".total", len(own)))
            }
        shares = {f"subcategories.{name}": 100 * _mean(own) for name, own in right.items()}
        accuracy, labels = _mean(list(shares.values())), len({one["gold"].lower() for one in column.items})
        return {
            "accuracy": accuracy,
            "normalized_accuracy": 100 * normalised(accuracy, 1 / labels * 100, 100),
            **shares,
        }


def phenomenon(row: Row) -> str:
    """The linguistic phenomenon of a row. Raises SeaHelmRaised where it has none."""
    metadata = row.get("metadata") or {}
    if "linguistic_phenomenon" not in metadata:
        raise SeaHelmRaised("KeyError: 'linguistic_phenomenon'")
    return str(metadata["linguistic_phenomenon"])


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
        self.names = self.each if by != "phenomena" else ()
        if by != "whole":
            self.names += tuple(
                f"subcategories.{of}.{name}"
                for of in dict.fromkeys(map(phenomenon, rows))
                for name in self.each
            )

    def score(self, sample: Sample, answer: Answer) -> Score:
        """The probability of the gold label from 0 to 100."""
        row = row_of(sample)
        values = answer.log_likelihoods
        item = {"of": "" if self._by == "whole" else phenomenon(row)}
        if not values:
            return Score(0.0, NULL, "", {self.part: 0.0}, item)
        gold = values[sample.gold[0]] if len(values) > 1 and sample.gold else values[0]
        probability = math.exp(gold) * 100
        return Score(probability, "", "", {self.part: probability, "logprob": gold}, item)

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows, or over each phenomenon."""
        logs = column.parts.get("logprob")
        rows = [
            (one["of"], probability, None if logs is None or math.isnan(logs[place]) else float(logs[place]))
            for place, (one, probability) in enumerate(
                zip(column.items, _part(column, self.part), strict=True)
            )
        ]
        found = self._numbers("", rows) if self._by != "phenomena" else {}
        if self._by != "whole":
            for of in dict.fromkeys(of for of, _, _ in rows):
                found |= self._numbers(f"subcategories.{of}.", [row for row in rows if row[0] == of])
        return found

    def _numbers(self, before: str, rows: Sequence[tuple[str, float, float | None]]) -> dict[str, float]:
        shares, known = [row[1] for row in rows], [row[2] for row in rows if row[2] is not None]
        mean = standard.mean(known) if len(known) > 1 else 0.0
        found = (
            standard.mean(shares),
            standard_error(shares),
            mean,
            standard_error(known),
            len(rows) - len(known),
        )
        return {before + name: value for name, value in zip(self.each, found, strict=True)}


class Answers(Published):
    """F1 and exact match with the references: of words, which in Thai and Chinese are found by a dictionary, against the first alone."""

    names = ("exact_match", "f1", "normalized_f1", "found_in_prediction", "null_count")
    part = "normalized_f1"

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        extraction.require(task.language, f"The published F1 of the task '{task.name}'")

    def read(self, row: Row, text: str) -> Score:
        """The F1 of one answer."""
        said, wanted = extraction.line_of(self.task.answer_tag, text), list(row["label"])
        given = extraction.answer_words(said, self.task.language)
        if self.task.language in extraction.SEGMENTED:
            wanted = wanted[:1]
        targets = [extraction.answer_words(target, self.task.language) for target in wanted]
        f1 = max(_f1(given, target) for target in targets)
        more = {
            "exact_match": float(given in targets),
            "found": float(wanted[0].lower().strip(".") in said.lower().strip(".")),
            "empty": float(not said),
        }
        return Score(f1, "", said, {self.part: f1, **more})

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows."""
        means = {name: 100 * _mean(_part(column, name)) for name in (self.part, "exact_match", "found")}
        return {
            "exact_match": means["exact_match"], "f1": means[self.part], "normalized_f1": means[self.part],
            "found_in_prediction": means["found"], "null_count": sum(_part(column, "empty")),
        }  # fmt: skip


def _f1(given: Sequence[str], wanted: Sequence[str]) -> float:
    found = overlap(list(given), list(wanted))[0]
    return found if given and wanted else 0.0


class Summaries(Published):
    """ROUGE-L of words by language: the medians of 1,000 bootstrap means; chrF++ where the task says so."""

    part = "normalized_rougel_f1"
    rouge = ("rougel_precision", "rougel_recall", "rougel_f1", "normalized_rougel_f1")

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        extraction.require(
            task.language if task.language == "th" else "", f"The published ROUGE of the task '{task.name}'"
        )
        self._rouge, self._chrf = bool(task.config["use_rougeL_metric"]), bool(task.config["use_chrf_metric"])
        self.names = (self.rouge if self._rouge else ()) + (_CHRF if self._chrf else ()) + ("null_count",)

    def read(self, row: Row, text: str) -> Score:
        """The ROUGE-L of one summary from 0 to 100."""
        said, reference = extraction.line_of(self.task.answer_tag, text), str(row["label"])
        given, wanted = (extraction.rouge_words(one, self.task.language) for one in (said, reference))
        common = common_length(wanted, given)
        precision, recall = common / len(given) if given else 0.0, common / len(wanted) if wanted else 0.0
        f1 = 2 * precision * recall / (precision + recall) if common else 0.0
        counts = _chrf_counts(said, reference) if self._chrf else {}
        parts = {
            self.part: 100 * f1,
            "precision": precision,
            "recall": recall,
            "f1": f1,
            "empty": float(not said),
            **counts,
        }
        return Score(100 * f1, "", said, parts)

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows."""
        import numpy as np

        found = {"null_count": sum(_part(column, "empty"))}
        if self._rouge:
            matrix = np.stack([column.parts[name] for name in ("precision", "recall", "f1")], axis=1)
            draws, n = np.random.RandomState(4156), len(matrix)
            means = [matrix[draws.choice(np.arange(n), size=n)].mean(axis=0) for _ in range(1000)]
            middle = [100 * float(value) for value in np.percentile(means, 50, axis=0)]
            found |= dict(zip(self.rouge, (*middle, max(middle[2], 0.0)), strict=True))
        return found | (_chrf(column) if self._chrf else {})


_CHRF = ("chrf_score", "normalized_chrf_score")


def _chrf_counts(text: str, reference: str) -> dict[str, float]:
    return dict(zip(PARTS["chrf++"], statistics("chrf++", text, [reference]), strict=True))


def _chrf(column: Column) -> dict[str, float]:
    import numpy as np

    score = float(SCORES["chrf++"](np.array([column.parts[name].sum() for name in PARTS["chrf++"]])))
    return dict.fromkeys(_CHRF, score)


class Translations(Published):
    """MetricX's errors, 25 at worst, as 0 to 100; chrF++ where the task says so."""

    part = "normalized_metricx_wmt24_scores"

    def __init__(self, task: SeaTask, rows: Rows) -> None:
        super().__init__(task, rows)
        self._metricx, self._chrf = (
            bool(task.config["use_metricx_metric"]),
            bool(task.config["use_chrf_metric"]),
        )
        own = (self.part, "metricx_wmt24_scores") if self._metricx else ()
        self.names = own + (_CHRF if self._chrf else ()) + ("null_count",)

    def made(self) -> Made:
        """A scorer that asks for the errors, and the metrics."""
        (scorer,), specs = super().made()
        if self._metricx:
            asking = {
                "function": self.judged,
                "asks": True,
                "roles": (METRICX,),
                "able": frozenset({"reward"}),
            }
            scorer = replace(scorer, **asking)
        return [scorer], specs

    def read(self, row: Row, text: str) -> Score:
        """The line that is scored, with its counts for chrF++."""
        said = extraction.line_of(self.task.answer_tag, text)
        counts = _chrf_counts(said, str(row["label"])) if self._chrf else {}
        return Score(0.0, "", said, {"empty": float(not said), **counts})

    async def judged(self, sample: Sample, answer: Answer, ask: Ask) -> Scored:
        """The share of the errors that are not there, from 0 to 100."""
        found, row = self.score(sample, answer), row_of(sample)
        assert isinstance(found, Score)
        errors = await errors_of(ask, source_of(row), found.explanation, str(row["label"]))
        worth = 100 * normalised(errors, 25, 0)
        return replace(found, value=worth, parts={**found.parts, self.part: worth, "errors": errors})

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows."""
        found = {"null_count": sum(_part(column, "empty"))}
        if self._metricx:
            found |= {
                "metricx_wmt24_scores": _mean(_part(column, "errors")),
                self.part: _mean(_part(column, self.part)),
            }
        return found | (_chrf(column) if self._chrf else {})


async def errors_of(ask: Ask, source: str, said: str, reference: str) -> float:
    """How many errors MetricX sees in a translation, from 0 to 25. Raises ScoringError where its model gave no value."""
    response = await ask(METRICX, Reward(source, said, reference))
    if not response.values:
        raise ScoringError("The reward model gave no value.")
    return response.values[1] if len(response.values) > 1 else -response.values[0]


class Lines(Published):
    """The share of answers whose line behind the tag is the label."""

    names = ("exact_match", "normalized_exact_match")
    part = "normalized_exact_match"

    def read(self, row: Row, text: str) -> Score:
        """100 or 0."""
        found = extraction.search(self.task.answer_tag + extraction.SAME_LINE, text)
        said = (text if found is None else found).strip()
        right = 100.0 * (str(row["label"]) == said)
        return Score(right, "", said, {self.part: right})

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows."""
        return dict.fromkeys(self.names, _mean(_part(column, self.part)))


class Mathematics(Published):
    """The share of responses that math-verify reads as the label."""

    names = ("math_verify_score", "normalized_math_verify_score")
    part = "normalized_math_verify_score"

    def read(self, row: Row, text: str) -> Score:
        """1.0 or 0.0."""
        try:
            right = float(bounded.call(extraction.math_verified, str(row["label"]), text, seconds=30.0))
        except bounded.LimitExceeded as error:
            raise ScoringError(f"math-verify was given up: {error}.") from None
        return Score(right, "", text.strip(), {self.part: right})

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows."""
        return dict.fromkeys(self.names, 100 * _mean(_part(column, self.part)))


class Procedures(Published):
    """LongProc: the share of right results, and how far the procedure agrees. worth: of a label, a text, what stands in the tags."""

    names = ("accuracy", "partial_accuracy", "extraction_rate", "normalized_accuracy")
    part = "normalized_partial_accuracy_score"

    def __init__(self, task: SeaTask, rows: Rows, kind: str) -> None:
        super().__init__(task, rows)
        self._kind = kind
        if kind == "beliefs":
            self.names = ("accuracy", "partial_accuracy", "normalized_accuracy")

    def read(self, row: Row, text: str) -> Score:
        """The share of the procedure that agrees."""
        try:
            right, partly, said = longproc.worth(self._kind, row["label"], text, published=True)
        except longproc.Raised as error:
            raise SeaHelmRaised(str(error)) from None
        parts = {self.part: partly, "right": right, "extracted": float(said is not None)}
        return Score(partly, "" if said is not None else NULL, said or "", parts)

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows. Raises SeaHelmRaised for routes of which only some could be read (pandas makes the others NaN)."""
        extracted = _part(column, "extracted")
        if self._kind == "route" and 0 < sum(extracted) < len(extracted):
            raise SeaHelmRaised("AttributeError: 'float' object has no attribute 'strip'")
        accuracy = 100 * _mean(_part(column, "right"))
        partly, read = 100 * _mean(_part(column, self.part)), 100 * _mean(extracted)
        return {
            "accuracy": accuracy,
            "partial_accuracy": partly,
            "extraction_rate": read,
            "normalized_accuracy": accuracy,
        }


class Tables(Published):
    """Precision, recall and F1 of the rows of tables."""

    names = ("precision", "recall", "f1", "normalized_f1", "parsing_errors")
    part = "normalized_f1"

    def read(self, row: Row, text: str) -> Score:
        """The F1 of one table."""
        said = longproc.inside("```tsv", "```", text, True)
        precision, recall, f1, error = longproc.table(str(row["label"]), said, True)
        parts = {self.part: f1, "precision": precision, "recall": recall, "error": float(bool(error))}
        return Score(f1, error, said or "", parts)

    def totals(self, column: Column) -> dict[str, float]:
        """The numbers over all rows; of the errors their number."""
        found = {name: 100 * _mean(_part(column, name)) for name in ("precision", "recall", self.part)}
        return {**found, "f1": found[self.part], "parsing_errors": sum(_part(column, "error"))}
