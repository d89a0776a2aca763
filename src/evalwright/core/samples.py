"""A sample and what became of it: Sample -> Answer -> Score, kept together in a SampleRecord."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from evalwright.core.errors import Failure
from evalwright.core.outcomes import (
    ANSWERED,
    FAILED,
    Outcome,
    is_models_own,
    outcome_of,
    outcome_of_failure,
)
from evalwright.core.requests import Prompt
from evalwright.core.responses import Response, Usage
from evalwright.core.shown import brief


@dataclass(frozen=True, slots=True)
class Passage:
    """A piece of context with an id that an answer can cite."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Sample:
    """One row of a task.

    id: stable and unique in its task. targets: what is right, the canonical form first, then its
    aliases. gold: indices into `choices` that are right (empty without choices). cluster: rows that
    share it are one unit for statistics (a passage, translations of one item); "" means its own.
    row: the raw columns, for templates; not recorded.
    """

    id: str
    input: str = ""
    targets: tuple[str, ...] = ()
    choices: tuple[str, ...] = ()
    gold: tuple[int, ...] = ()
    passages: tuple[Passage, ...] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)
    cluster: str = ""
    row: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    @property
    def target(self) -> str:
        """The canonical target, "" where there is none."""
        return self.targets[0] if self.targets else ""

    def __repr__(self) -> str:
        return (
            f"Sample({brief(self.id)}, {brief(self.input)} -> {brief(self.target, 40)})"
        )


@dataclass(frozen=True, slots=True)
class Answer:
    """What a strategy made of one or more responses.

    text: the answer with reasoning removed; the raw text stays in `responses`. reasoning: what was
    removed. choice: index of the chosen option, where the task has options. log_likelihoods: one
    per choice (or one), natural log. prompt: what was sent (without the continuation). strategy:
    how the answer was formed of several draws (what each said, what was voted), as plain JSON for
    the record.
    """

    text: str = ""
    reasoning: str = ""
    choice: int | None = None
    log_likelihoods: tuple[float, ...] = ()
    prompt: Prompt = ""
    responses: tuple[Response, ...] = ()
    strategy: Mapping[str, Any] = field(default_factory=dict)

    @property
    def usage(self) -> Usage:
        """Tokens of all responses together."""
        if len(self.responses) == 1:
            return self.responses[0].usage
        return sum((response.usage for response in self.responses), Usage())

    @property
    def outcome(self) -> Outcome:
        """That of the last response; of others too where the strategy found no text in any."""
        if self.log_likelihoods or not self.responses:
            return ANSWERED
        last = outcome_of(self.responses[-1])
        if last != ANSWERED or self.text.strip():
            return last
        return next(
            (one for one in map(outcome_of, self.responses) if one != ANSWERED),
            ANSWERED,
        )


@dataclass(frozen=True, slots=True)
class Score:
    """What an answer is worth to one scorer: its best reading, always.

    value: in the scorer's own unit, mostly 0 to 1. label: an outcome class, e.g. "correct" or
    "not_attempted". explanation: why, in words. parts: further numbers, by name (e.g. token counts
    of a perplexity). item: what a metric over the whole corpus needs and is no number (a pair of
    texts, of labels), by name. evidence: the spans of the answer's text that it rests on, where the
    scorer knows them: first character, and the one after the last. unsure: why a careful reader
    might argue with this reading; "" where none would. The value counts all the same, and how many
    scores are unsure stands beside every number.
    """

    value: float
    label: str = ""
    explanation: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    item: Mapping[str, Any] | None = None
    evidence: Sequence[Sequence[int]] = field(default=(), compare=False)
    unsure: str = ""

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON, empty parts left out."""
        more = {
            "label": self.label,
            "explanation": self.explanation,
            "parts": dict(self.parts),
            "item": {name: _plain(value) for name, value in (self.item or {}).items()},
            "evidence": [list(span) for span in self.evidence],
            "unsure": self.unsure,
        }
        return {
            "value": self.value,
            **{name: part for name, part in more.items() if part},
        }


def score_from(outcome: object) -> object:
    """A bare number as a Score: True is 1, False 0, and any number (numpy's too) the value in the
    scorer's own unit.

    Everything else comes back as it is, for the caller to refuse.
    """
    number = plain_number(outcome)
    if isinstance(number, bool | float):
        return Score(float(number))
    if isinstance(number, int):
        return Score(number)
    return outcome


def plain_number(number: object) -> object:
    """A scalar of numpy, torch and their like as Python's own; everything else as it is."""
    is_foreign_scalar = hasattr(number, "dtype") and getattr(number, "ndim", None) == 0
    return number.item() if is_foreign_scalar else number  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class NoScore:
    """In place of a Score: the scorer has nothing to say of this answer (a refusal has no
    faithfulness). No failure.

    The sample is then neither in the number of a metric over these scores nor among those that
    failed.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """What a scorer asked the model of a role, as it names the request, and what came back; None
    where nothing did.
    """

    role: str
    request: Mapping[str, Any]
    response: Response | None = None

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON; unused options, times and long vectors are left out."""
        used = (
            (name, part)
            for name, part in self.request.items()
            if part not in (None, ())
        )
        request = {
            name: _plain(part) for name, part in used if (name, part) != ("draw", 0)
        }
        made: dict[str, Any] = {"role": self.role, "request": request}
        if self.response is not None:
            made["response"] = found = self.response.as_dict()
            if len(found.get("values", ())) > _LONGEST_VECTOR:
                del found["values"]
            found.pop("latency", None)
        return made

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The inverse of `as_dict`, but for what is left out."""
        response = data.get("response")
        return cls(
            data["role"],
            data["request"],
            None if response is None else Response.from_dict(response),
        )


_LONGEST_VECTOR = 16

UNREADABLE = "unreadable"
"""The label of an answer in which nothing can be read that could be what was asked for: wrong."""


@dataclass(frozen=True, slots=True)
class SampleRecord:
    """One line of `samples.jsonl`: a sample and draw, its answer, and its scores by scorer name.

    Where `failure` is set there is no score, and the sample is missing: through no fault of the
    model. A reply without an answer (cut, empty, refused) is in `answer`, and scored. A scorer that
    failed by itself is in `score_failures`, under its name. exchanges: what scorers asked of
    models, by scorer name.
    """

    task: str
    index: int
    draw: int
    sample: Sample
    answer: Answer | None
    scores: Mapping[str, Score]
    failure: Failure | None = None
    score_failures: Mapping[str, Failure] = field(default_factory=dict)
    exchanges: Mapping[str, Sequence[Exchange]] = field(default_factory=dict)

    @property
    def outcome(self) -> Outcome:
        """What became of the sample."""
        if self.failure is not None:
            return (
                outcome_of_failure(self.failure)
                if is_models_own(self.failure)
                else FAILED
            )
        return self.answer.outcome if self.answer is not None else FAILED

    def __repr__(self) -> str:
        said = brief(self.answer.text) if self.answer is not None else self.outcome
        scores = [f"{name} {one.value:g}" for name, one in [*self.scores.items()][:3]]
        place = f"{brief(self.task, 40)}, {brief(self.sample.id, 40)}"
        return f"SampleRecord({', '.join([f'{place} -> {said}', *scores])})"


def _plain(value: Any) -> Any:
    """JSON's own kinds: sequences as lists, numbers and arrays of numpy as Python's."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    return (
        [_plain(part) for part in value]
        if isinstance(value, (list, tuple, set, frozenset))
        else value
    )
