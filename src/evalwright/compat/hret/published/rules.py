"""HRET's behaviour behind the interface of `Rules`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import Any

from evalwright import Answer, Sample
from evalwright.compat.hret.call import Call
from evalwright.compat.hret.datasets.benchhub import BenchHubDataset
from evalwright.compat.hret.datasets.dataset_loader import GenericFileDataset
from evalwright.compat.hret.datasets.file_reader import FileReader
from evalwright.compat.hret.datasets.hub import HubDataset
from evalwright.compat.hret.examples import FewShot, Shots
from evalwright.compat.hret.methods import LANGUAGE_PENALTY, penalty_has_no_place
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.published.answering import PublishedAnswer
from evalwright.compat.hret.published.backends import BACKENDS
from evalwright.compat.hret.published.benchhub_rows import PublishedBenchHubReader
from evalwright.compat.hret.published.examples import first_examples
from evalwright.compat.hret.published.hub_rows import PublishedHubReader
from evalwright.compat.hret.published.methods import measure, method_of
from evalwright.compat.hret.published.replies import detected, final_answer
from evalwright.compat.hret.published.scorers import scoring_of
from evalwright.compat.hret.published.strategies import strategy_of
from evalwright.compat.hret.row_samples import Given, Row, Rows, values_of
from evalwright.compat.hret.rules import (
    DatasetReader,
    JudgeBatch,
    Rules,
    ScorersAndMetrics,
)
from evalwright.extend import NO_ANSWER, Strategy, TaskResult

_READERS: Sequence[tuple[type[Any], Callable[[Any], DatasetReader]]] = (
    (HubDataset, PublishedHubReader),
    (BenchHubDataset, PublishedBenchHubReader),
    (GenericFileDataset, FileReader),
)


class PublishedRules(Rules):
    """As HRET does."""

    name = "published"
    hands_parsers_on = False
    score_as_empty = NO_ANSWER

    def refuse(self, error: Exception) -> None:
        """Nothing: HRET goes on."""

    def dataset_arguments(self, arguments: Given, params: Given) -> Given:
        """Raises TypeError for what is given twice."""
        if twice := sorted(params.keys() & arguments):
            raise TypeError(
                f"load_datasets() got multiple values for keyword argument '{twice[0]}'"
            )
        return {**arguments, **params}

    def reader(self, dataset: Any) -> DatasetReader:
        """See `Rules`."""
        return next(make for kind, make in _READERS if isinstance(dataset, kind))(
            dataset
        )

    def examples(self, rows: Sequence[Row], few_shot: FewShot) -> Shots:
        """The first rows of a split."""
        return first_examples(list(rows), few_shot)

    def native(self, backend: str, params: Given, *, by_options: bool) -> Native:
        """See `Rules`."""
        return BACKENDS[backend](params, self)

    def fault_of(self, sample: Given) -> str:
        """A reply without a text is an answer to HRET."""
        return ""

    def strategy(
        self,
        method: str | None,
        params: Given,
        native: Native | None = None,
        roles: Collection[str] = (),
    ) -> Strategy:
        """HRET's arithmetic."""
        return strategy_of(method, params, native, roles)

    def answering(self, call: Call) -> Strategy:
        """See `Rules`."""
        return PublishedAnswer(call)

    def scoring(self, call: Call, samples: Sequence[Sample]) -> ScorersAndMetrics:
        """One scorer for all that HRET writes."""
        params = call.method_params or {}
        if LANGUAGE_PENALTY in params:
            raise penalty_has_no_place()
        method = method_of(call.method, params)
        return scoring_of(call.method, method, call.language, samples, call.judge)

    def measure(
        self, method: str, params: Given, rows: Rows, judge: JudgeBatch | None
    ) -> dict[str, Any]:
        """HRET's metrics."""
        return measure(method_of(method, params), rows, judge)

    def parsed(
        self, rows: Rows, parse: Callable[[Any], Any], judge: Any, *, is_custom: bool
    ) -> Rows:
        """The parsed prediction takes the place of the raw one; with a judge, its reply to the
        question does.
        """
        for row in rows:
            row["prediction"] = parse(row.get("prediction", ""))
        return rows if judge is None else list(judge.judge_batch(rows))

    def metrics(self, result: TaskResult) -> tuple[dict[str, Any], dict[str, Any]]:
        """The metrics alone."""
        return values_of(result.metrics), {}

    def reply_fields(self, answer: Answer) -> dict[str, Any]:
        """Nothing."""
        return {}

    def without_faults(self, samples: Rows) -> tuple[Rows, Rows]:
        """All of them are scored."""
        return samples, []

    def unused_roles(self, call: Call, used_roles: Collection[str]) -> list[str]:
        """HRET says nothing of them."""
        return []

    def final_answer(self, text: str) -> str:
        """What is behind the first marker."""
        return final_answer(text)

    def language_share(self, text: object, language: str) -> float:
        """1 where langdetect says so."""
        return detected(text, language)


RULES = PublishedRules()
