"""Tasks whose answers are labels, read in a response or scored by their log-likelihood, and the two
IFEval tasks.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from statistics import fmean as mean
from typing import TYPE_CHECKING, Any

from evalwright import Answer, Sample, Score, UsageError
from evalwright.compat.sea_helm.config import Row
from evalwright.compat.sea_helm.scoring import (
    Numbers,
    Scoring,
    SeaHelmRaised,
    normalised,
    plain,
    search,
    standard_error,
)
from evalwright.extend import MetricSpec, Scored, ScoringError, TaskError, bind_scorer
from evalwright.scorers.label import NULL, score_label

if TYPE_CHECKING:
    from evalwright import Column

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_OPTION = re.compile(r"(?:option|choice|opsi|pilihan)_?([a-z]|\d{1,2})", re.IGNORECASE)
_KIND = "subcategories."
_BY_GROUP = {"accuracy": "balanced-accuracy", "macro_f1": "macro-f1"}
_OF_PROBABILITIES = (
    "average_cumulative_probabilities",
    "clt_se_cumulative_probabilities",
    "average_cumulative_logprobs",
    "clt_se_cumulative_logprobs",
    "null_count",
)
_LISTED = re.compile(r"(?m)^\s{0,4}\(?([A-Z])[).:]\s")


def options_of(row: Row) -> tuple[str, ...]:
    """The texts of a row's lettered options in their order, by the keys of its prompt or by its
    lines; () where it has none.
    """
    prompt = row["prompts"][0] if row.get("prompts") else {}
    texts = [str(value) for key, value in prompt.items() if _OPTION.fullmatch(str(key))]
    if len(texts) > 1:
        return tuple(texts)
    for value in prompt.values():
        parts = _LISTED.split(str(value))
        if len(parts) > 4 and parts[1::2] == list(_LETTERS[: len(parts) // 2]):
            return tuple(option_text.strip() for option_text in parts[2::2])
    return ()


class Labels(Scoring):
    """Balanced accuracy and F1.

    Published, over the labels that the data have, of those run together the last; corrected, over
    those that answers can have, by the definition's `labels`, else the rows' options, else all
    labels of the data. Also by groups, published from 0 to 1.
    """

    any_case = True
    over = ""
    chance = 0.0

    def prepare(self) -> None:
        self.labels = sorted({str(row["label"]) for row in self.rows})
        end = "+" if self.any_case else "*"
        self._pattern = rf"{self.task.answer_tag}[\s\*]*({'|'.join(self.labels)}){end}"
        self.names += tuple(
            f"{of}.{name}.{what}"
            for of, names in self.by.items()
            for name in names
            for what in _BY_GROUP
        )
        if not self.task.published:
            self.labels, self.chance = self._possible()
            self.options["labels"] = self.labels

    def _possible(self) -> tuple[list[str], float]:
        """The labels that answers can have, and the balanced accuracy of guessing among the options
        of each row.
        """
        task = self.task
        labels = self.labels
        configured = task.here.get("labels") or task.config.get("labels")
        if configured:
            return list(map(str, configured)), 1 / len(configured)
        if labels and all(label in _LETTERS for label in labels):
            sizes = [len(options_of(row)) for row in self.rows]
            if all(sizes) and max(sizes) > _LETTERS.index(max(labels)):
                # late letters are right only where there are many
                guessed: dict[str, list[float]] = {}
                for row, size in zip(self.rows, sizes, strict=True):
                    guessed.setdefault(str(row["label"]), []).append(1 / size)
                return list(_LETTERS[: max(sizes)]), mean(map(mean, guessed.values()))
        return labels, 1 / max(len(labels), 2)

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        texts = (
            options_of(self.row_of(sample))
            if all(label in _LETTERS for label in self.labels)
            else ()
        )
        # Of two phases what is scored begins behind the tag.
        tag = (
            "" if self.task.base and len(answer.responses) > 1 else self.task.answer_tag
        )
        choices = texts if 1 < len(texts) <= len(self.labels) else ()
        return score_label(
            sample, answer.text, self.labels, tag, choices, self.task.language
        )

    def corrected_metrics(self) -> list[MetricSpec]:
        over = {"over": self.over} if self.over else {}
        of = "accuracy" if over else "balanced-accuracy"
        return [
            self.metric(
                self.task.metric,
                "chance-normalised",
                chance=self.chance,
                of=of,
                clip=True,
                **over,
            ),
            (
                self.metric("accuracy", "macro", of=of, **over)
                if over
                else self.metric("accuracy", of)
            ),
            *(
                self.metric(f"accuracy by {key}", "macro", of=of, over=key)
                for key in self.by
                if not over
            ),
            self.metric("macro_f1", "macro-f1"),
            self.metric("null_weighted_f1", "null-weighted-f1"),
            self.metric("answers_read", "part-mean", part="read"),
        ]

    def published(self, row: Row, text: str) -> Score:
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
        for of, names in self.by.items():
            codes = [int(code) for code in self.part_values(column, of)]
            for what, kind in _BY_GROUP.items():
                values = label_scores(gold, predicted, kind, codes)
                numbers |= {
                    f"{of}.{names[code]}.{what}": values[code] for code in set(codes)
                }
        return {**numbers, "null_count": predicted.count(-1)}


def label_scores(
    gold: Sequence[int],
    predicted: Sequence[int],
    kind: str,
    codes: Sequence[int] | None = None,
) -> list[float]:
    """A metric over classes of each group of answers. codes: the groups 0, 1, ... of the answers,
    one without them.
    """
    import numpy as np

    from evalwright.statistics.labels import grouped_labels

    groups = np.array(codes if codes is not None else [0] * len(gold), np.int64)
    sums, statistic = grouped_labels(
        gold, predicted, groups, int(groups.max()) + 1, kind
    )
    return [float(value) for value in statistic(sums)]


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


class LogProbabilities(Scoring):
    """Published: means and standard errors of the gold label's log-probability and of 100 times its
    probability, 0 where there is none, over all rows (`whole`) and by phenomenon. Corrected: the
    probability of the gold option among all that were scored; alone, where only its own was.
    """

    def prepare(self) -> None:
        before = [""] if self.entry.get("whole") else []
        before += [f"{_KIND}{name}." for names in self.by.values() for name in names]
        self.names = tuple(
            prefix + name for prefix in before for name in _OF_PROBABILITIES
        )

    def corrected(self, sample: Sample, answer: Answer) -> Scored:
        values = answer.log_likelihoods
        if not values:
            raise ScoringError("The answer has no log-likelihood of an option.")
        if len(values) == 1 or not sample.gold:
            return Score(math.exp(min(values[0], 0.0)), "", "the gold option alone")
        gold = values[sample.gold[0]]
        top = max(values)
        worth = math.exp(gold - top) / sum(math.exp(value - top) for value in values)
        return Score(
            worth, "correct" if gold == top else "incorrect", "among all options"
        )

    def corrected_metrics(self) -> list[MetricSpec]:
        specs = [
            self.metric(self.task.metric, "macro", of="accuracy", over=key)
            for key in self.by
        ]
        return specs or super().corrected_metrics()

    def score(self, sample: Sample, answer: Answer) -> Scored:
        if not self.task.published:
            return super().score(sample, answer)
        values = answer.log_likelihoods
        groups = self.codes(self.row_of(sample))
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
            some = [shares[place] for place in rows]
            log_probabilities = [
                logs[place] for place in rows if logs[place] == logs[place]
            ]
            centre = mean(log_probabilities) if len(log_probabilities) > 1 else 0.0
            null = len(some) - len(log_probabilities)
            numbers = (
                mean(some),
                standard_error(some),
                centre,
                standard_error(log_probabilities),
                null,
            )
            numbers_by_name |= {
                before + name: value
                for name, value in zip(_OF_PROBABILITIES, numbers, strict=True)
            }
        return numbers_by_name


class English(Scoring):
    """Google's set, by all instructions of a row and by each, strict and loose.

    The parts of a score are the numbers of its row, by SEA-HELM's names.
    """

    def prepare(self) -> None:
        task = self.task
        self.options["class"] = task.scored_by[1]
        self.kinds: set[str] = set()
        self.scorers = [
            bind_scorer(self.kind, {**options, "published": task.published})
            for options in self.forms()
        ]
        for place, row in enumerate(self.rows):
            try:
                facts = self.facts(row)
                self.scorers[0].refuse(
                    Sample(str(row.get("id", place)), metadata=facts)
                )  # type: ignore[misc]
            except (UsageError, ScoringError, LookupError, TypeError) as error:
                reason = (
                    error
                    if isinstance(error, UsageError | ScoringError)
                    else f"it has no {error}."
                )
                raise TaskError(
                    f"Row {place + 1:,} of '{task.name}' ({task.language}): {reason}"
                ) from None
            self.kinds.update(facts["kinds"])

    kind = "instructions"
    """The scorer of ours."""

    def forms(self) -> Sequence[Mapping[str, Any]]:
        """Its options, for each number."""
        return [
            {"count": count, "loose": loose}
            for loose in (False, True)
            for count in ("all", "share")
        ]

    def facts(self, row: Row) -> Mapping[str, Any]:
        """What the scorer reads in a sample's metadata."""
        return {
            "kinds": row["metadata"]["instruction_id_list"],
            "settings": row["kwargs"],
        }

    def numbers(self, scores: Sequence[Score], facts: Mapping[str, Any]) -> Numbers:
        """Those of a row."""
        return {
            name: score.value for name, score in zip(self.shown, scores, strict=True)
        }

    def score(self, sample: Sample, answer: Answer) -> Scored:
        facts = self.facts(self.row_of(sample))
        answer = (
            replace(answer, text=self.text(answer)) if self.task.published else answer
        )
        outcomes = [
            scorer.function(replace(sample, metadata=facts), answer)
            for scorer in self.scorers
        ]
        scores = [outcome for outcome in outcomes if isinstance(outcome, Score)]
        if not scores:
            return outcomes[0]  # type: ignore[return-value]
        return replace(scores[0], parts=self.numbers(scores, facts))


class ByLanguage(English):
    """SEA-HELM's own set: an instruction counts where the answer is in the right language."""

    kind = "language-instructions"

    def prepare(self) -> None:
        super().prepare()
        kinds = [_KIND + name for name in sorted(self.kinds)]
        self.names += tuple(kinds)
        self.shown |= dict(zip(kinds, kinds, strict=True))

    def forms(self) -> Sequence[Mapping[str, Any]]:
        return [{"language": self.task.language}]

    def facts(self, row: Row) -> Mapping[str, Any]:
        metadata = row["metadata"]
        settings = (row["kwargs"] or [None])[0] or {}
        response_language = (
            settings.get("response_language")
            if metadata.get("category") == "language"
            else None
        )
        kinds = [str(metadata["subcategory"])]
        return {
            "kinds": kinds,
            "settings": [settings],
            "answer_language": response_language or "",
        }

    def numbers(self, scores: Sequence[Score], facts: Mapping[str, Any]) -> Numbers:
        (score,) = scores
        values = (
            score.value,
            score.parts["followed"],
            score.parts["language"],
            score.parts["followed"],
        )
        return dict(
            zip((*self.entry["means"], _KIND + facts["kinds"][0]), values, strict=True)
        )

    def more(self, column: Column) -> Numbers:
        right, passed, speaking = (
            self.part_values(column, name) for name in self.entry["means"]
        )
        if not sum(speaking) or not sum(right):
            raise SeaHelmRaised("KeyError: True, as no answer counts")
        numbers: Numbers = {
            "overall_count": float(len(passed)),
            "overall_pass": sum(passed),
        }
        for name in self.names[2:]:
            if kind_scores := [
                kind_score
                for kind_score in column.parts.get(name, ())
                if kind_score == kind_score
            ]:
                numbers[name] = mean(kind_scores)
        return numbers
