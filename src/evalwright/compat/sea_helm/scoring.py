"""The scorers and metrics of SEA-HELM's tasks: published, by its own arithmetic, or corrected, by
metrics and scorers of ours.

`metrics.toml` says which class here scores each metric class, and what its numbers are. Published:
a score's part is what SEA-HELM calls the row's individual score, its label or explanation the
answer as SEA-HELM reads it. Where its code raises, so does this: the row has failed, and the task
counts as 0, as there. What a class nests is named with dots ("difficulty.hard.accuracy"). Of
several draws each is a run of SEA-HELM's, and the numbers are means over them. Corrected: the last
claim of a response counts, labels and the chance of guessing them come from the definition, all
references and whole answers are compared, nothing raises, and every number has its interval.

What is read out of a response: the answer tag and the labels stand in a pattern as they are, the
first tag counts, and of labels run together the last. A pattern that the files can make slow is
searched in the process of `bounded.py`.
"""

from __future__ import annotations

import math
import re
import string
import tomllib
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from pkgutil import resolve_name
from statistics import fmean as mean
from statistics import variance
from typing import TYPE_CHECKING, Any

from evalwright import (
    Answer,
    Failure,
    RequestFailed,
    Sample,
    Score,
    UsageError,
    bounded,
)
from evalwright.compat.recording import not_scored
from evalwright.compat.sea_helm.config import Class, Row, SeaTask
from evalwright.compat.sea_helm.phases import written_in_two
from evalwright.extend import (
    Ability,
    MetricSpec,
    Scored,
    Scorer,
    ScoringError,
    TaskError,
)
from evalwright.scorers.label import behind_tag
from evalwright.scorers.text.formulas import compare_with_math_verify

if TYPE_CHECKING:
    from evalwright import Column
    from evalwright.statistics import Estimate

LINE = r"[\s\r\n`*]*(.*)"
"""Behind the answer tag of free text: what stands on its line, or on the next that is not empty."""
SAME_LINE = r"[\s\*]*(.*)"
"""The same of a short answer."""
_GAP = r"[\s\*]*("
_PLAIN = re.compile(r"[^\\.^$*+?{}\[\]|()]*")
_STRIPPED = string.punctuation + " \n"
_SECONDS = 2.0


def search(pattern: str, text: str, ignore_case: bool = False) -> str:
    """The first group of the first place where a pattern of SEA-HELM's files matches, stripped; the
    whole text where there is none, or it is no pattern.
    """
    tag, _, labels = pattern.removesuffix(LINE).removesuffix(SAME_LINE).partition(_GAP)
    # without a tag the gap before a label finds nothing else, in the square of the time
    if not tag:
        pattern = pattern.removeprefix(_GAP[:-1]) if pattern.endswith(")+") else pattern
    plain = _PLAIN.fullmatch(tag + labels.rstrip("()*+").replace("|", "")) is not None
    if plain and not tag[-1:].isspace() and tag[-1:] not in ("*", "`"):
        match = _first_match(pattern, text, ignore_case)
    else:
        try:
            match = bounded.call(
                _first_match, pattern, text, ignore_case, seconds=_SECONDS, key=pattern
            )
        except bounded.LimitExceeded as error:
            raise ScoringError(
                f"The pattern of the answer tag was given up: {error}."
            ) from None
    return (text if match is None else match).strip()


def _first_match(pattern: str, text: str, ignore_case: bool) -> str | None:
    with suppress(re.error, IndexError, RecursionError, OverflowError):
        if match := re.search(pattern, text, re.IGNORECASE if ignore_case else 0):
            return match[1]
    return None


def plain(text: str) -> str:
    """Lower case, without ASCII punctuation and spaces at both ends, white space as single
    spaces.
    """
    return " ".join(text.lower().strip(_STRIPPED).split())


def math_verified(label: str, text: str) -> int:
    """Whether math-verify reads both as the same: 1 or 0. Run in the process with limits."""
    return int(compare_with_math_verify(text.strip(), label)[2])


DIALECT = SCORER = "sea-helm"
"""The dialect, and the name of the one scorer that its tasks have."""

Made = tuple[list[Scorer], list[MetricSpec]]
Rows = Sequence[Row]
Numbers = dict[str, float]

_TABLE = tomllib.loads(
    Path(__file__).with_name("metrics.toml").read_text(encoding="utf-8")
)
METRICS: Mapping[Class, Mapping[str, Any]] = {
    (name.rpartition(":")[0], name.rpartition(":")[2]): entry
    for name, entry in _TABLE.items()
}
"""The table, by file and class."""


def scoring_of(task: SeaTask, rows: Rows) -> Made:
    """The scorers and metrics of a task, the metric that it stands for first. rows: all of the
    task.

    A sample has its row as metadata "row". Raises NotScoredHere for a metric class that is known
    and not here, UsageError for one that is not known and not trusted, or cannot be had.
    """
    entry = METRICS.get(task.scored_by, {"family": "texts:Foreign"})
    if "refused" in entry:
        raise NotScoredHere(f"The task '{task.name}' {entry['refused']}")
    family: type[Scoring] = resolve_name(f"{__package__}.{entry['family']}")
    try:
        return family(task, rows, entry).scorers_and_metrics()
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ScoringError,
        SeaHelmRaised,
    ) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise TaskError(
            f"The task '{task.name}' ({task.language}), or a row of it, is not what"
            f" {task.scored_by[1]} scores: {why}."
        ) from None


class NotScoredHere(UsageError):
    """A task whose metric is not here."""


def scoring_without_data(task: SeaTask) -> Made:
    """The scorer and the metric of a task that is not asked: those of its other kind of run, so
    that it uses the same models.

    Its number is missing; as published it is 0, as that of every task that SEA-HELM's code fails
    on.
    """
    scorer = Scorer(
        SCORER,
        DIALECT,
        {"scoring": "published" if task.published else "corrected"},
        not_scored,
    )
    metrics = [MetricSpec(task.metric, "accuracy", SCORER)]
    with suppress(UsageError):
        (own_scorer,), published = scoring_of(task, ())
        scorer = replace(
            scorer,
            options=own_scorer.options,
            roles=own_scorer.roles,
            able=own_scorer.able,
        )
        metrics = published if task.published else metrics
    if task.published and metrics[0].function is None:
        metrics = published_metrics([task.metric], failed_as_published)
    return [scorer], metrics


def failed_as_published(name: str, column: Column) -> Estimate:
    """The published 0 of a task that cannot be scored."""
    return as_published(
        0.0, 0, len(column.values) + column.n_missing, "failed, published as 0"
    )


def slices_of(task: SeaTask) -> tuple[str, ...]:
    """The keys of a row's metadata that the metrics of a task go by, which its samples' metadata
    need too.
    """
    return tuple(METRICS.get(task.scored_by, {}).get("slices", ()))


class SeaHelmRaised(RequestFailed):
    """SEA-HELM's own code raises here, and then scores the whole task 0. why: what it raises."""

    kind = "published failure"
    _BEFORE = "SEA-HELM's code raises "
    _BEHIND = ". The published number is 0."

    def __init__(self, why: str) -> None:
        super().__init__(
            Failure(self.kind, "scorer", f"{self._BEFORE}{why}{self._BEHIND}")
        )
        self.why = why

    @classmethod
    def why_in(cls, reason: str) -> str:
        """What is raised by a reason of a column ("kind: message"); "" where it is another
        failure.
        """
        kind, _, message = reason.partition(": ")
        is_raised = kind == cls.kind and message.startswith(cls._BEFORE)
        return (
            message.removeprefix(cls._BEFORE).removesuffix(cls._BEHIND)
            if is_raised
            else ""
        )


def normalised(score: float, least: float, greatest: float) -> float:
    """The share of the way from the least to the greatest score, not below 0; 0 where both are the
    same.
    """
    return 0.0 if least == greatest else max((score - least) / (greatest - least), 0)


def standard_error(values: Sequence[float]) -> float:
    """Of a mean; 0 of fewer than two values."""
    return math.sqrt(variance(values) / len(values)) if len(values) > 1 else 0.0


class Scoring:
    """One metric class over the rows of a task. entry: its line of the table.

    A family says how a row is scored in either way, and what its metrics are beyond the table.
    published: a row's score as SEA-HELM has it, of the response as it reads it; raises
    SeaHelmRaised. corrected: a sample's score. Nothing that it learns of one answer is kept in it:
    one task is asked of several models, and what a number needs stands in the scores. asks: a
    sample's score in either way is made by `judge`, as other models make it, or it takes long.
    """

    asks = False
    roles: tuple[str, ...] = ()
    able: frozenset[Ability] = frozenset()
    published: Callable[[Row, str], Score]
    corrected: Callable[[Sample, Answer], Scored]
    judge: Callable[..., Awaitable[Score]]

    def __init__(self, task: SeaTask, rows: Rows, entry: Mapping[str, Any]) -> None:
        self.task = task
        self.rows = rows
        self.entry = entry
        self.part = str(entry.get("part", task.metric))
        self.means: dict[str, Sequence[Any]] = dict(entry.get("means", {}))
        self.sums: dict[str, str] = dict(entry.get("sums", {}))
        self.shown: dict[str, str] = dict(entry.get("shown", {}))
        self.names = tuple(entry.get("names", ()))
        # Corrected, groups are slices of the samples.
        grouped = rows if task.published else ()
        self.by: dict[str, list[str]] = {
            key: list(dict.fromkeys(self.group_of(row, key) for row in grouped))
            for key in entry.get("by", ())
        }
        self.options: dict[str, Any] = {
            "scoring": "published" if task.published else "corrected"
        }
        self.prepare()

    @staticmethod
    def row_of(sample: Sample) -> Row:
        """The row of a sample. Raises ScoringError where it has none."""
        row = sample.metadata.get("row")
        if not isinstance(row, Mapping):
            raise ScoringError(
                f"The sample '{sample.id}' has no row of SEA-HELM's in its metadata."
            )
        return row

    @staticmethod
    def part_values(column: Column, name: str) -> list[float]:
        """A part of the scores."""
        return [float(value) for value in column.parts[name]]

    @staticmethod
    def metric(label: str, kind: str, **options: Any) -> MetricSpec:
        """A metric of the one scorer."""
        return MetricSpec(label, kind, SCORER, options)

    def prepare(self) -> None:
        """What a family needs beyond this. Raises UsageError for a task that it cannot score."""

    def more(self, column: Column) -> Numbers:
        """The published numbers that are neither means nor sums, of one draw.

        Raises SeaHelmRaised.
        """
        return {}

    def corrected_metrics(self) -> list[MetricSpec]:
        """The corrected metrics, that of the task first."""
        others = [
            self.metric(label, "part-mean", part=part_name)
            for label, part_name in self.shown.items()
        ]
        return [self.metric(self.task.metric, "accuracy"), *others]

    def scorers_and_metrics(self) -> Made:
        """The scorer and the metrics."""
        published = self.task.published
        options = self.options | (
            {"class": self.task.scored_by[1]} if published else {}
        )
        function = self.judge if self.asks else self.score
        scorer = Scorer(
            SCORER, DIALECT, options, function, self.asks, self.roles, self.able
        )
        if not published:
            return [scorer], self.corrected_metrics()
        names = (self.task.metric, *self.means, *self.names, *self.sums)
        return [scorer], [*published_metrics(names, self._estimate), INDIVIDUAL]

    def score(self, sample: Sample, answer: Answer) -> Scored:
        """The scorer."""
        if not self.task.published:
            scored = self.corrected(sample, answer)
            if isinstance(scored, Score):
                return replace(
                    scored, parts={self.task.metric: scored.value, **scored.parts}
                )
            return scored
        return self.published(self.row_of(sample), self.text(answer))

    def text(self, answer: Answer) -> str:
        """The first turn's reply as it came, thoughts in its text included; of a base model both of
        its phases with the tag between them.
        """
        if not answer.responses:
            return answer.text
        if not self.task.base:
            return answer.responses[0].text
        return written_in_two(answer.responses, self.task.answer_tag)

    def extract_answer(self, answer: Answer) -> str:
        """What a response gives as its answer; of two phases the second begins behind the tag."""
        if self.task.base and len(answer.responses) > 1:
            return answer.text.strip()
        return behind_tag(self.task.answer_tag, answer.text)

    # -- groups of rows, by a key of their metadata
    # ---------------------------------------------------------------------

    def group_of(self, row: Row, key: str) -> str:
        """A value of a row's metadata.

        Raises SeaHelmRaised where it has none, and the table names no other.
        """
        metadata = row.get("metadata") or {}
        if key not in metadata and "otherwise" not in self.entry:
            raise SeaHelmRaised(f"KeyError: '{key}'")
        return str(metadata.get(key, self.entry.get("otherwise")))

    def codes(self, row: Row) -> Numbers:
        """The groups that a row is in, as parts of its score: their places in `by`."""
        return {
            key: float(names.index(self.group_of(row, key)))
            for key, names in self.by.items()
        }

    def groups(self, column: Column, key: str) -> dict[str, list[int]]:
        """The places of a column's items by group."""
        places_by_group: dict[str, list[int]] = {}
        for place, code in enumerate(self.part_values(column, key)):
            places_by_group.setdefault(self.by[key][int(code)], []).append(place)
        return places_by_group

    # -- published numbers
    # ----------------------------------------------------------------------------------------------

    def _estimate(self, name: str, column: Column) -> Estimate:
        n = len(column.values)
        lost = column.n_missing
        try:
            return as_published(
                self._published_numbers(column).get(name, math.nan), n, lost
            )
        except SeaHelmRaised as error:
            zero = name == self.task.metric and self.options["scoring"] == "published"
            reason = (
                f"{'failed, published as 0' if zero else 'no number'}: SEA-HELM's code"
                f" raises {error.why}"
            )
            return as_published(0.0 if zero else math.nan, 0, n + lost, reason)

    def _published_numbers(self, column: Column) -> Numbers:
        raised = self.raised(column)
        if raised or not len(column.values):
            raise SeaHelmRaised(
                raised or "an error, or no answer came: see the failures"
            )
        if self not in column.memory:
            runs = [self._numbers(draw_column) for draw_column in _draws(column)]
            shared = [name for name in runs[0] if all(name in run for run in runs)]
            column.memory[self] = {
                name: mean([float(run[name]) for run in runs]) for name in shared
            }
        numbers: Numbers = column.memory[self]
        return numbers

    def raised(self, column: Column) -> str:
        """What SEA-HELM's code raises on one of the rows, which ends the task there; "" where it
        raises on none.
        """
        return next(
            (why for why in map(SeaHelmRaised.why_in, column.failures) if why), ""
        )

    def _numbers(self, column: Column) -> Numbers:
        numbers = {
            name: factor * mean(self.part_values(column, of))
            for name, (factor, of) in self.means.items()
        }
        return (
            numbers
            | {
                name: sum(self.part_values(column, of))
                for name, of in self.sums.items()
            }
            | self.more(column)
        )


INDIVIDUAL = MetricSpec("mean_individual_score", "mean", SCORER)
"""Published numbers have no interval; the mean of the rows' scores has one, and is what two runs
are compared by.
"""


def published_metrics(
    names: Iterable[str], estimate: Callable[[str, Column], Estimate]
) -> list[MetricSpec]:
    """The metrics of these names, each once, by a function of the name and the scores."""
    return [
        MetricSpec(
            name,
            "mean",
            SCORER,
            {},
            name.endswith("null_count"),
            partial(estimate, name),
        )
        for name in dict.fromkeys(names)
    ]


def as_published(value: float, n: int, lost: int, method: str = "") -> Estimate:
    """A number of SEA-HELM's, which has no interval; nan where there is none. method: what to say
    of it instead.
    """
    from evalwright.statistics import Estimate

    default_method = (
        "no interval (as published)"
        if value == value
        else "no number: SEA-HELM has none here"
    )
    return replace(Estimate.none(method or default_method, lost, n=n), value=value)


def _draws(column: Column) -> list[Column]:
    """The column of each draw alone, without the items that it lacks."""
    if column.draws is None:
        return [column]
    columns = []
    for draw, values in enumerate(column.draws.T):
        there = values == values
        if there.any():
            parts = {
                name: part_draws[there, draw]
                for name, part_draws in column.part_draws.items()
            }
            items = [
                draws_of_item[draw]
                for draws_of_item, is_there in zip(
                    column.item_draws, there, strict=False
                )
                if is_there
            ]
            columns.append(
                replace(
                    column, values=values[there], parts=parts, items=items, draws=None
                )
            )
    return columns
