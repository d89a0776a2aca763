"""Metric classes of the folder itself, whose Python a person trusts."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright import Answer, Ask, Sample, Score
from evalwright.compat.sea_helm.foreign import (
    check_trusted,
    end_workers,
    foreign_numbers,
)
from evalwright.compat.sea_helm.metric_classes import METRICS
from evalwright.compat.sea_helm.published.scoring import (
    Made,
    PublishedScoring,
    SeaHelmRaised,
)
from evalwright.compat.sea_helm.sea_task import row_of
from evalwright.extend import ScoringError, TaskError

if TYPE_CHECKING:
    from evalwright import Column
    from evalwright.statistics import Estimate

_FAILED = "scorer error: ScoringError: "


class FolderMetric(PublishedScoring):
    """A metric class of the folder: its number over all responses, and the mean of what it gives to
    each row by itself.
    """

    asks = True

    def prepare(self) -> None:
        check_trusted(self.task, self.task.scored_by, METRICS)
        # What is made to be averaged is from 0 to 100 there; as a share it has a part in totals
        # here.
        self._share = not self.task.published and self.task.metric.startswith(
            "normalized_"
        )
        self.task = replace(self.task, published=True)  # there is no other arithmetic

    def scorers_and_metrics(self) -> Made:
        scorers_made, (first, *others) = super().scorers_and_metrics()
        # The class decides what a reply without an answer is worth, as it decides on all others.
        scorers = [replace(scorer, own_faults=True) for scorer in scorers_made]
        return scorers, [
            replace(first, kind="accuracy") if self._share else first,
            *others,
        ]

    def _estimate(self, name: str, column: Column) -> Estimate:
        estimate = super()._estimate(name, column)
        return (
            replace(estimate, value=estimate.value / 100)
            if self._share and name == self.task.metric
            else estimate
        )

    async def judge(self, sample: Sample, answer: Answer, ask: Ask) -> Score:
        """The scorer; other samples, and Ctrl-C, do not wait for it."""
        replies = (
            [self.text(answer)]
            if self.task.base
            else [response.text for response in answer.responses]
        )
        row = {**row_of(sample), "responses": replies}
        try:
            numbers, row_numbers = await asyncio.to_thread(
                foreign_numbers, self.task, [row]
            )
        except asyncio.CancelledError:
            end_workers()
            raise
        except TaskError as error:  # there is no other arithmetic to be named
            raise ScoringError(str(error)) from None
        row_score = row_numbers[0] if row_numbers else numbers
        value = (
            row_score.get(self.task.metric, next(iter(row_score.values())))
            if isinstance(row_score, Mapping)
            else row_score
        )
        # SEA-HELM's classes give rows 0 or 1 where the number is of 100.
        scale = 100 if self._share and (not row_numbers or value > 1) else 1
        return Score(float(value) / scale, item={"row": row})

    def raised(self, column: Column) -> str:
        """The first failure of a scorer: the class raises on a row, and so it does over all of
        them.
        """
        return next(
            (
                reason.removeprefix(_FAILED)
                for reason in column.failures
                if reason.startswith(_FAILED)
            ),
            "",
        )

    def more(self, column: Column) -> dict[str, float]:
        try:
            numbers, _ = foreign_numbers(
                self.task, [item["row"] for item in column.items]
            )
        except TaskError as error:
            raise SeaHelmRaised(str(error)) from None
        if not isinstance(numbers[self.task.metric], int | float):
            raise SeaHelmRaised(f"TypeError: '{self.task.metric}' is not a number")
        return {
            name: float(figure)
            for name, figure in numbers.items()
            if isinstance(figure, int | float)
        }
