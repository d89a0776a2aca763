"""What HRET's own behaviour and ours differ in, as one interface with two implementations:
`published/` and `corrected/`. One of them is chosen where a call begins.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from importlib import import_module
from typing import Any, ClassVar, Literal, Protocol, cast

from evalwright import Answer, Sample
from evalwright.compat.hret.call import Call
from evalwright.compat.hret.examples import FewShot, Shots
from evalwright.compat.hret.native import Native
from evalwright.compat.hret.row_samples import Given, Row, Rows
from evalwright.extend import MetricSpec, Scorer, Strategy, TaskResult

Scoring = Literal["published", "corrected"]
"""HRET's own arithmetic, faults included, or ours."""
ScorersAndMetrics = tuple[list[Scorer], list[MetricSpec]]
JudgeBatch = Callable[[Rows], Sequence[Given]]
"""`judge_batch` of a judge."""


class DatasetReader(Protocol):
    """Makes samples of a dataset's rows."""

    def samples(self) -> Rows:
        """The samples."""

    def raw(self) -> Any:
        """The rows as they were read."""


class Rules(ABC):
    """How one call is evaluated: as HRET does, or as we do."""

    name: ClassVar[Scoring]
    hands_parsers_on: ClassVar[bool]
    """Whether a `multi` gives the model that generates its parser of a chain of thought."""
    score_as_empty: ClassVar[tuple[Any, ...]] = ()
    """The outcomes of replies that are scored as empty ones."""

    more_scaling_methods: ClassVar[Collection[str]] = ()
    """Those that HRET's documents list and it does not have."""

    # -- a call --

    @abstractmethod
    def refuse(self, error: Exception) -> None:
        """Raise a mistake in a call that HRET says nothing of."""

    @abstractmethod
    def dataset_arguments(self, arguments: Given, params: Given) -> Given:
        """What a dataset is made with: arguments of the call, and its `dataset_params`."""

    # -- rows --

    @abstractmethod
    def reader(self, dataset: Any) -> DatasetReader:
        """What makes samples of one of HRET's datasets."""

    @abstractmethod
    def examples(self, rows: Sequence[Row], few_shot: FewShot) -> Shots:
        """The rows to evaluate, and the examples before them."""

    # -- models --

    @abstractmethod
    def native(self, backend: str, params: Given, *, by_options: bool) -> Native:
        """The model of a back end of HRET's. by_options: whether rows with options are answered by
        the likelihood of each.
        """

    @abstractmethod
    def fault_of(self, sample: Given) -> str:
        """Why a plug-in's sample is no reply; "" for one."""

    # -- answers and scores --

    @abstractmethod
    def strategy(
        self,
        method: str | None,
        params: Given,
        native: Native | None = None,
        roles: Collection[str] = (),
    ) -> Strategy:
        """The strategy of a scaling method of HRET, None for one reply to each row.

        native: the model that answers, None for a class of a user, which asks for its own chain of
        thought. roles: that the run has.
        """

    @abstractmethod
    def answering(self, call: Call) -> Strategy:
        """How a row of the call is answered, with what models write into it."""

    @abstractmethod
    def scoring(self, call: Call, samples: Sequence[Sample]) -> ScorersAndMetrics:
        """The scorers and metrics of the call's evaluation method, its main metric first."""

    @abstractmethod
    def measure(
        self, method: str, params: Given, rows: Rows, judge: JudgeBatch | None
    ) -> dict[str, Any]:
        """The metrics of rows that have a prediction, outside of a run; verdicts are written into
        them.
        """

    @abstractmethod
    def parsed(
        self, rows: Rows, parse: Callable[[Any], Any], judge: Any, *, is_custom: bool
    ) -> Rows:
        """The rows with parsed predictions. judge: a model with `judge_batch`, None for none.
        is_custom: whether a user wrote the parser.
        """

    # -- the result in HRET's words --

    @abstractmethod
    def metrics(self, result: TaskResult) -> tuple[dict[str, Any], dict[str, Any]]:
        """The metrics of a run, and what its info says of them."""

    @abstractmethod
    def reply_fields(self, answer: Answer) -> dict[str, Any]:
        """What a sample says of the replies behind its prediction."""

    @abstractmethod
    def without_faults(self, samples: Rows) -> tuple[Rows, Rows]:
        """The samples that a user's evaluator scores, and those that it does not."""

    @abstractmethod
    def unused_roles(self, call: Call, used_roles: Collection[str]) -> list[str]:
        """The roles besides the target that are played and never asked, where a result says so."""

    # -- texts --

    @abstractmethod
    def final_answer(self, text: str) -> str:
        """The answer that a reply gives; the whole reply where it marks none."""

    @abstractmethod
    def language_share(self, text: object, language: str) -> float:
        """How much of a text is in a language."""


_chosen: list[Scoring] = ["corrected"]
_of_call: ContextVar[Rules | None] = ContextVar("hret_rules", default=None)


def current() -> Rules:
    """Those of the call that is running, else those that `set_scoring` chose last; at first
    `corrected`.
    """
    return _of_call.get() or rules_of(_chosen[0])


def rules_of(scoring: str | None) -> Rules:
    """The rules of that name; None takes the current ones.

    Raises ValueError for anything but the two.
    """
    if scoring is None:
        return current()
    module = import_module(f"evalwright.compat.hret.{_checked(scoring)}.rules")
    return cast(Rules, module.RULES)


def set_scoring(value: str) -> None:
    """Choose for every later call that names none. Raises ValueError for anything but the two."""
    _chosen[0] = _checked(value)


@contextmanager
def using(scoring: str | Rules | None) -> Iterator[Rules]:
    """Choose for what is called inside; None changes nothing.

    Raises ValueError for anything but the two.
    """
    rules = scoring if isinstance(scoring, Rules) else rules_of(scoring)
    token = _of_call.set(rules)
    try:
        yield rules
    finally:
        _of_call.reset(token)


def _checked(value: str) -> Scoring:
    if value not in ("published", "corrected"):
        raise ValueError(f"scoring is 'published' or 'corrected', not {value!r}.")
    return cast(Scoring, value)
