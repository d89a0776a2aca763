"""The judged tasks, as published: SEA-HELM's readers of verdicts and its sums with their faults. An
unread verdict counts 0 and is counted; of several judges only the first is asked, as there.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from itertools import chain
from math import prod
from statistics import fmean as mean
from typing import TYPE_CHECKING, Any

from evalwright import Answer, Ask, Sample, Score
from evalwright.compat.sea_helm.judge_prompts import (
    QUESTIONS,
    Verdicts,
    class_worth,
    filled,
    form_of,
    judge_request,
    judges_of,
    pair_label,
    right_or_wrong,
    won,
)
from evalwright.compat.sea_helm.judge_scales import (
    FIRST,
    PAIRS,
    PASS_OR_FAIL,
    RIGHT_OR_WRONG,
    SAME,
    SECOND,
    SEVERITY,
)
from evalwright.compat.sea_helm.published.scoring import (
    Numbers,
    PublishedScoring,
    SeaHelmRaised,
)
from evalwright.compat.sea_helm.sea_task import Row, row_of
from evalwright.extend import Ability, gather_all, separate_reasoning

if TYPE_CHECKING:
    from evalwright import Column

_FLAT = re.compile(r"\{[^{}]*\}")
_BROKEN = (KeyError, IndexError, TypeError, ValueError, AttributeError)

Worth = tuple[float, Mapping[str, float]]
"""What the verdicts on a row come to, from 0 to 1, and numbers beside it."""


class Judged(PublishedScoring):
    """A metric class whose numbers are verdicts. kind: of `QUESTIONS`; of_groups (in the
    table): the factor of the numbers by category.

    read_verdict: what a reply says; None where it says nothing that can be read. worth: what the
    verdicts on a row come to.
    """

    asks = True
    able: frozenset[Ability] = frozenset({"generate"})
    kind = "criteria"
    scale = PASS_OR_FAIL

    def prepare(self) -> None:
        task = self.task
        (self.first_judge, *_) = judges_of(task)
        self.roles = (self.first_judge.role,)
        settings = {
            key: self.entry[key] for key in ("words", "boxed") if key in self.entry
        }
        fill = partial(filled, refusal=SeaHelmRaised)
        self.form = form_of(task, self.kind, fill=fill, **settings)
        proposed = {self.first_judge.role: self.first_judge.name}
        self.options |= {"class": task.scored_by[1], "proposed": proposed}
        self.means = {task.metric: (100.0, task.metric)}
        self.sums = {"unread_verdicts": "unread"}
        self.names += tuple(
            f"categories.{category}"
            for names in self.by.values()
            for category in sorted(names)
        )

    def read_verdict(self, text: str) -> Any:
        """What a reply says; None for nothing that can be read."""
        raise NotImplementedError

    def worth(self, row: Row, verdicts: Verdicts) -> Worth:
        """What the verdicts on a row come to."""
        raise NotImplementedError

    def shown(self, verdicts: Verdicts) -> Verdicts:
        """What stands in a score's explanation."""
        return verdicts

    def in_order(self, row: Row, verdicts: Verdicts) -> list[Any]:
        """The verdicts of a row's criteria, in the order of their names as texts ("criteria10"
        before "criteria2"), which gives verdicts to other criteria where there are more than ten.

        Raises SeaHelmRaised for an id that has the mark by which names are split.
        """
        if "_" in str(row["id"]):
            raise SeaHelmRaised(
                f"ValueError: the id '{row['id']}' has an underscore, which splits"
                " names"
            )
        return [verdicts[name] for name in sorted(verdicts)]

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer.

        Raises RequestFailed where a judge failed, SeaHelmRaised where SEA-HELM's own code raises.
        """
        row = row_of(sample)
        replies = [response.text for response in answer.responses] or [answer.text]
        try:
            questions = QUESTIONS[self.kind](self.form, row, replies)
            verdicts = await gather_all(
                [self._verdict(ask, question) for question in questions.values()]
            )
            by_question = dict(zip(questions, verdicts, strict=True))
            value, numbers = self.worth(row, by_question)
            listing = ", ".join(
                f"{name}: {'unread' if verdict is None else float(verdict)}"
                for name, verdict in self.shown(by_question).items()
            )
            unread = float(verdicts.count(None))
            parts = {**numbers, "unread": unread, **self.codes(row)}
            return Score(
                value,
                self.scale.label_of(value),
                listing,
                {self.task.metric: value, **parts},
            )
        except _BROKEN as error:
            raise SeaHelmRaised(f"{type(error).__name__}: {error}") from None

    async def _verdict(self, ask: Ask, question: tuple[Any, str]) -> Any:
        judge = self.first_judge
        request = judge_request(
            self.task.name, judge.role, judge.generation, ask, question
        )
        response = await ask(judge.role, request)
        return self.read_verdict(separate_reasoning(response).answer)

    def more(self, column: Column) -> Numbers:
        """The categories' means."""
        factor = float(self.entry.get("of_groups", 1.0))
        pooled = self.pooled(column)
        return {
            f"categories.{name}": (
                factor * mean([value for index in positions for value in pooled[index]])
            )
            for key in self.by
            for name, positions in self.groups(column, key).items()
        }

    def pooled(self, column: Column) -> list[list[float]]:
        """The numbers of each item that are pooled."""
        return [[value] for value in self.part_values(column, self.task.metric)]


class Criteria(Judged):
    """Classes are worth what the file says. last (in the table): the last class in a reply counts,
    else the first.
    """

    def read_verdict(self, text: str) -> float | None:
        return class_worth(self.form, text, bool(self.entry.get("last")))

    def worth(self, row: Row, verdicts: Verdicts) -> Worth:
        return mean([verdict or 0.0 for verdict in self.in_order(row, verdicts)]), {}


class TwoTurns(Criteria):
    """MT-Bench's criteria: each belongs to a turn, whose mean counts as much as the other's; a turn
    without criteria counts 0.
    """

    kind = "turns"

    def worth(self, row: Row, verdicts: Verdicts) -> Worth:
        self.in_order(row, verdicts)
        means = {
            f"turn {turn + 1}": mean(
                [
                    verdicts[name] or 0.0
                    for name in verdicts
                    if name.startswith(f"turn{turn}_")
                ]
                or [0.0]
            )
            for turn in (0, 1)
        }
        return mean(means.values()), means


class Lindsea(Criteria):
    """Criteria weighed by severity, times those that any sentence must meet ("generic"); what a row
    has no criteria for is 0.
    """

    kind = "severity"

    def worth(self, row: Row, verdicts: Verdicts) -> Worth:
        kinds = [str(criterion["severity"]).lower() for criterion in row["criteria"]]
        values = self.in_order(row, verdicts)
        parts = {}
        for name, generic in (("generic_score", True), ("criteria_score", False)):
            positions = [
                kind_index
                for kind_index, kind in enumerate(kinds)
                if (kind == "generic") == generic
            ]
            weights = [SEVERITY.get(kinds[index], 1.0) for index in positions]
            parts[name] = (
                mean([values[index] or 0.0 for index in positions], weights)
                if positions
                else 0.0
            )
        return prod(parts.values()), parts


class Points(Judged):
    """HealthBench's rubric: the points of what is met, over all points above 0."""

    kind = "points"

    def group_of(self, row: Row, key: str) -> str:
        tags = (row.get("metadata") or {}).get(key)
        return str(tags[0]) if tags else ""

    def read_verdict(self, text: str) -> Any:
        """What the last pair of braces without others in it says, also one in the explanation."""
        for written in _FLAT.findall(text)[-1:]:
            for json_text in (
                written,
                written.replace('\\"criteria_met\\"', '"criteria_met"'),
            ):
                with suppress(ValueError):
                    return json.loads(json_text).get("criteria_met")
        return None

    def worth(self, row: Row, verdicts: Verdicts) -> Worth:
        points = [int(criterion["points"]) for criterion in row["criteria"]]
        values = self.in_order(row, verdicts)
        if any(not isinstance(verdict, int | float | None) for verdict in values):
            raise TypeError("a verdict is not a number")
        reached = sum(
            (verdict or 0) * worth
            for verdict, worth in zip(values, points, strict=True)
        )
        return max(0.0, reached) / sum(max(worth, 0) for worth in points), {}


class Correct(Judged):
    """Does the answer say what the reference says? words (in the table): right and wrong; boxed:
    what is in the last box is judged, if any.
    """

    kind = "correct"
    scale = RIGHT_OR_WRONG

    def read_verdict(self, text: str) -> float | None:
        return right_or_wrong(self.form, text)

    def worth(self, row: Row, verdicts: Verdicts) -> Worth:
        return verdicts["verdict"] or 0.0, {}


class Pairs(Judged):
    """Each turn's reply against the baseline's, in both orders; the mean over categories counts."""

    kind = "pairs"
    scale = PAIRS

    def prepare(self) -> None:
        super().prepare()
        self.means = {}

    def read_verdict(self, text: str) -> str | None:
        return pair_label(self.form, text)

    def shown(self, verdicts: Verdicts) -> Verdicts:
        return won(self.form, verdicts)

    def worth(self, row: Row, verdicts: Verdicts) -> Worth:
        outcomes_by_order = list(won(self.form, verdicts).values())
        # Of each turn both orders, which stand one after the other.
        order_pairs = list(zip(*[iter(outcomes_by_order)] * 2, strict=True))
        turns = {
            f"turn {turn}": self._final(*pair)
            for turn, pair in enumerate(order_pairs, 1)
        }
        agreeing = [float(first == second) for first, second in order_pairs]
        parts = {SAME: mean(agreeing), **turns}
        for name, outcomes in zip(
            (FIRST, SECOND), zip(*order_pairs, strict=True), strict=True
        ):
            decided = [outcome for outcome in outcomes if outcome is not None]
            parts |= {name: mean(decided)} if decided else {}
        return mean(turns.values()), parts

    def _final(self, first: float | None, second: float | None) -> float:
        """Of a turn: what both orders say, else a tie. Where neither can be read it is lost, and
        without ties where they differ.
        """
        if first == second:
            return first or 0.0
        return 0.5 if self.form.ties else 0.0

    def pooled(self, column: Column) -> list[list[float]]:
        turns = [
            turn_scores
            for name, turn_scores in column.parts.items()
            if name.startswith("turn ")
        ]
        return [
            [float(turn_score) for turn_score in values if turn_score == turn_score]
            for values in zip(*turns, strict=True)
        ]

    def more(self, column: Column) -> Numbers:
        rates = super().more(column)
        every = chain.from_iterable(self.pooled(column))
        return {
            self.task.metric: 100 * mean(rates.values()),
            "win_rate": mean(every),
            **rates,
        }
