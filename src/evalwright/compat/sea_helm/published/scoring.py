"""Numbers by SEA-HELM's own arithmetic: what its metric classes give, faults included.

`metrics.toml` says which class of this package scores each metric class, and what its numbers are.
A score's part is what SEA-HELM calls the row's individual score, its label or explanation the
answer as SEA-HELM reads it. Where its code raises, so does this: the row has failed, and the task
counts as 0, as there. What a class nests is named with dots ("difficulty.hard.accuracy"). Of
several draws each is a run of SEA-HELM's, and the numbers are means over them.

What is read out of a response: the answer tag and the labels stand in a pattern as they are, the
first tag counts, and of labels run together the last. A pattern that the files can make slow is
searched in a process with limits.
"""

from __future__ import annotations

import math
import re
import string
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from statistics import fmean as mean
from statistics import variance
from typing import TYPE_CHECKING, Any

from evalwright import Answer, Failure, RequestFailed, Sample, Score
from evalwright.compat.sea_helm.published.phases import written_in_two
from evalwright.compat.sea_helm.sea_task import DIALECT, SCORER, Row, SeaTask, row_of
from evalwright.extend import (
    Ability,
    LimitExceeded,
    MetricSpec,
    Scored,
    Scorer,
    ScoringError,
    call_with_limits,
)

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
            match = call_with_limits(
                _first_match, pattern, text, ignore_case, seconds=_SECONDS, key=pattern
            )
        except LimitExceeded as error:
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


Made = tuple[list[Scorer], list[MetricSpec]]
Rows = Sequence[Row]
Numbers = dict[str, float]


def failed_as_published(name: str, column: Column) -> Estimate:
    """The published 0 of a task that cannot be scored."""
    return as_published(
        0.0, 0, len(column.values) + column.n_missing, "failed, published as 0"
    )


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


class PublishedScoring:
    """One metric class over the rows of a task. entry: what the table says of it.

    row_score: a row's score as SEA-HELM has it, of the response as it reads it; raises
    SeaHelmRaised. asks: the scores are made by `judge`, as other models make them, or take long.
    Nothing that it learns of one answer is kept in it: one task is asked of several models, and
    what a number needs stands in the scores.
    """

    asks = False
    roles: tuple[str, ...] = ()
    able: frozenset[Ability] = frozenset()
    row_score: Callable[[Row, str], Score]
    judge: Callable[..., Awaitable[Score]]

    def __init__(self, task: SeaTask, rows: Rows, entry: Mapping[str, Any]) -> None:
        self.task = task
        self.rows = rows
        self.entry: Mapping[str, Any] = entry.get("published", {})
        self.part = str(entry.get("part", task.metric))
        self.means: dict[str, Sequence[Any]] = dict(self.entry.get("means", {}))
        self.sums: dict[str, str] = dict(self.entry.get("sums", {}))
        self.names = tuple(self.entry.get("names", ()))
        self.by: dict[str, list[str]] = {
            key: list(dict.fromkeys(self.group_of(row, key) for row in rows))
            for key in self.entry.get("by", ())
        }
        self.options: dict[str, Any] = {"scoring": task.scoring}
        self.prepare()

    @staticmethod
    def part_values(column: Column, name: str) -> list[float]:
        """A part of the scores."""
        return [float(value) for value in column.parts[name]]

    def prepare(self) -> None:
        """What a family needs beyond this. Raises UsageError for a task that it cannot score."""

    def more(self, column: Column) -> Numbers:
        """The published numbers that are neither means nor sums, of one draw.

        Raises SeaHelmRaised.
        """
        return {}

    def scorers_and_metrics(self) -> Made:
        """The scorer and the metrics."""
        function = self.judge if self.asks else self.score
        options = self.options | {"class": self.task.scored_by[1]}
        scorer = Scorer(
            SCORER, DIALECT, options, function, self.asks, self.roles, self.able
        )
        names = (self.task.metric, *self.means, *self.names, *self.sums)
        return [scorer], [*published_metrics(names, self._estimate), INDIVIDUAL]

    def score(self, sample: Sample, answer: Answer) -> Scored:
        """The scorer."""
        return self.row_score(row_of(sample), self.text(answer))

    def text(self, answer: Answer) -> str:
        """The first turn's reply as it came, thoughts in its text included; of a base model both of
        its phases with the tag between them.
        """
        if not answer.responses:
            return answer.text
        if not self.task.base:
            return answer.responses[0].text
        return written_in_two(answer.responses, self.task.answer_tag)

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
        for row_index, code in enumerate(self.part_values(column, key)):
            places_by_group.setdefault(self.by[key][int(code)], []).append(row_index)
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
        has_value = values == values
        if has_value.any():
            parts = {
                name: part_draws[has_value, draw]
                for name, part_draws in column.part_draws.items()
            }
            items = [
                draws_of_item[draw]
                for draws_of_item, is_there in zip(
                    column.item_draws, has_value, strict=False
                )
                if is_there
            ]
            columns.append(
                replace(
                    column,
                    values=values[has_value],
                    parts=parts,
                    items=items,
                    draws=None,
                )
            )
    return columns
