"""A task as the runner sees it, whether written in YAML, in Python, or for another framework."""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, Protocol

from evalwright.core.ask import Ask
from evalwright.core.errors import ConfigurationError
from evalwright.core.outcomes import Outcome
from evalwright.core.requests import Ability
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.shown import brief


class SampleSource(Protocol):
    """The samples of a task in file order, read one at a time so that memory use stays constant.

    `content_hash` changes when any sample changes.
    """

    @property
    def content_hash(self) -> str: ...

    def __len__(self) -> int: ...

    def __getitem__(self, index: int, /) -> Sample: ...

    def __iter__(self) -> Iterator[Sample]: ...


class Strategy(Protocol):
    """How one sample becomes one answer: `answer = await strategy(sample, ask, draw)`.

    It may also have `roles`: the other models that it sends requests to, each with the abilities of
    which it needs one.

    Attributes:
        needs: what the model under test must be able to do.
    """

    needs: frozenset[Ability]

    async def __call__(self, sample: Sample, ask: Ask, draw: int) -> Answer: ...


Scored = Score | NoScore
"""What a scorer returns."""


@dataclass(frozen=True, slots=True)
class Scorer:
    """A scoring function with its options bound.

    Attributes:
        name: the column of the record.
        kind: the registered name.
        options: the options that were bound.
        function: `(sample, answer) -> Score`, or `async (sample, answer, ask) -> Score` where
            `asks` is true. It may return a NoScore where it does not apply.
        asks: whether it sends requests to models.
        roles: the models that it uses.
        able: abilities of which each of these models needs one; empty for no condition.
        refuse: raises an error for a sample that cannot be scored, before anything is sent.
        worst: the value of a reply that is no answer through the model's own fault (cut, empty,
            refused); None where such a reply gets no score because the scorer does not measure
            correctness (a length, a rate of hallucination).
        own_faults: whether the scorer scores such replies itself, as empty answers.
        on_fault: scores such a reply as an empty answer and without any request, for the parts that
            metrics over classes and corpora need; its value counts only where it is below a `worst`
            of 0. By default `function`, where it sends no requests.
    """

    name: str
    kind: str
    options: Mapping[str, Any]
    function: Callable[..., Scored | Awaitable[Scored]]
    asks: bool = False
    roles: tuple[str, ...] = ()
    able: frozenset[Ability] = frozenset()
    refuse: Callable[[Sample], None] | None = field(default=None, compare=False)
    worst: float | None = 0.0
    own_faults: bool = False
    on_fault: Callable[..., Any] | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class MetricSpec:
    """Which metric to compute over which scorer's column.

    Attributes:
        label: the name shown, such as "accuracy".
        kind: the registered metric.
        scorer: the scorer's column.
        options: options of the metric.
        lower_is_better: set where lower values are better and the metric's kind does not imply it
            (an error rate computed as a mean).
        function: a task's own function from a Column to an Estimate, used in place of the
            registered metric; not recorded.
        value_range: the least and the greatest value that the metric can have, None for an end that
            is open; by default what is known of its kind. Exports state it.

    Raises:
        ConfigurationError: the range is not two ends, the lower one first.
    """

    label: str
    kind: str
    scorer: str
    options: Mapping[str, Any] = field(default_factory=dict)
    lower_is_better: bool = False
    function: Callable[[Any], Any] | None = field(
        default=None, compare=False, repr=False
    )
    value_range: tuple[float | None, float | None] | None = None

    def __post_init__(self) -> None:
        if self.value_range is not None:
            # A record has a list.
            object.__setattr__(self, "value_range", _checked_range(self))


def _checked_range(spec: MetricSpec) -> tuple[float | None, float | None]:
    """Return the range of a metric's values as a pair. Raises ConfigurationError."""
    value_range: Any = spec.value_range
    ends = tuple(value_range) if isinstance(value_range, (list, tuple)) else ()
    known_ends = [end for end in ends if end is not None]
    are_numbers = all(
        isinstance(end, (int, float))
        and not isinstance(end, bool)
        and math.isfinite(end)
        for end in known_ends
    )
    if (
        len(ends) != 2
        or not are_numbers
        or (len(known_ends) == 2 and ends[0] >= ends[1])
    ):
        raise ConfigurationError(
            f"The range of the metric '{spec.label}' is {value_range!r}: give its least and"
            " its greatest value, such as (0, 10), with None for an end that is open."
        )
    return ends[0], ends[1]


def with_task_metadata(
    sample_metadata: Mapping[str, Any], task_metadata: Mapping[str, Any]
) -> Mapping[str, Any]:
    """Return a sample's metadata, with its task's own where the sample has no value of a key."""
    if not task_metadata:
        return sample_metadata
    of_sample = {
        key: value
        for key, value in sample_metadata.items()
        if value is not None and value != ""
    }
    return {**sample_metadata, **task_metadata, **of_sample}


def metadata_texts(value: Any) -> list[str]:
    """Return a metadata value as texts; of a list, one for each element; none for nothing."""
    if value is None or value == "":
        return []
    if isinstance(value, list | tuple):
        return list(dict.fromkeys(str(member) for member in value))
    if isinstance(value, bool):
        return ["true" if value else "false"]
    return [str(value)]


@dataclass(frozen=True, slots=True)
class Task:
    """A dataset, a strategy, scorers and metrics: what models are evaluated on.

    Args:
        name: the task's name.
        samples: the samples, in the order of the file.
        strategy: forms the answer to a sample.
        scorers: score the answer; each is a column of the record.
        metrics: aggregate columns of scores into numbers; the first is the main one.
        version: changes whenever scores may change.
        description: one line for lists.
        draws: answers per sample; repeated draws are averaged within the sample.
        slices: metadata keys; the metrics are also shown for each of their values.
        metadata: facts about the task, for the record.
        definition: the whole resolved definition as plain JSON, recorded with the run.
        source: the file that it came from.
        order: "shuffled" (by the run's seed) or "file"; a limit takes the first samples of that
            order.
        score_as_empty: outcomes without an answer that are scored as an empty answer.
        no_answer: what other replies without an answer get: "worst", each scorer's worst value, or
            "unscored", no score.
        found_metrics: for a task whose metrics depend on its scores: maps the names of the scores'
            parts, by scorer, to all metrics; used in place of `metrics`.
        sandbox: the sandbox of its samples with their reference solutions, of a task file that has
            one; not recorded.
    """

    name: str
    samples: SampleSource
    strategy: Strategy
    scorers: tuple[Scorer, ...]
    metrics: tuple[MetricSpec, ...]
    version: str = "1"
    description: str = ""
    draws: int = 1
    slices: tuple[str, ...] = ("domain", "language")
    metadata: Mapping[str, Any] = field(default_factory=dict)
    definition: Mapping[str, Any] = field(default_factory=dict)
    source: str = ""
    order: Literal["shuffled", "file"] = "shuffled"
    score_as_empty: tuple[Outcome, ...] = ()
    no_answer: Literal["worst", "unscored"] = "worst"
    found_metrics: (
        Callable[[Mapping[str, Sequence[str]]], Sequence[MetricSpec]] | None
    ) = None
    sandbox: Any = field(default=None, compare=False, repr=False)

    @property
    def strategy_roles(self) -> Mapping[str, frozenset[Ability]]:
        """The other models that the strategy uses: by role, the abilities of which it needs one."""
        roles: Mapping[str, frozenset[Ability]] = getattr(self.strategy, "roles", {})
        return roles

    @property
    def roles(self) -> frozenset[str]:
        """The roles of all other models that the strategy or the scorers use."""
        return frozenset(
            (
                *self.strategy_roles,
                *(role for scorer in self.scorers for role in scorer.roles),
            )
        )

    def __repr__(self) -> str:
        scorers = ", ".join(brief(scorer.name, 30) for scorer in self.scorers[:3])
        return (
            f"Task({brief(self.name)}, version {brief(self.version, 20)},"
            f" {len(self.samples)} samples, scored by {scorers})"
        )
