"""A sample and what becomes of it: Sample -> Answer -> Score, kept together in a SampleRecord."""

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
from evalwright.core.quick_init import quick_init
from evalwright.core.requests import Prompt
from evalwright.core.responses import Response, Usage
from evalwright.core.shown import brief
from evalwright.core.tool_calls import ToolCall
from evalwright.core.tools import ToolDefinition


@dataclass(frozen=True, slots=True)
class Passage:
    """A passage of context, with an id that an answer can cite.

    Args:
        id: the id that answers cite.
        text: the passage.
    """

    id: str
    text: str


@quick_init
@dataclass(frozen=True, slots=True)
class Sample:
    """One row of a task.

    Args:
        id: stable, and unique in its task.
        input: the question.
        targets: right answers, the canonical form first, then its aliases.
        choices: the options to choose from.
        gold: indices of the right options in `choices`; empty without choices.
        passages: context to answer from.
        metadata: facts about the row, for slices and filters.
        cluster: rows with the same value count as one unit in statistics (rows on one passage,
            translations of one item); "" makes the row a unit of its own.
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
        """The canonical target; "" if the sample has none."""
        return self.targets[0] if self.targets else ""

    def __repr__(self) -> str:
        return (
            f"Sample({brief(self.id)}, {brief(self.input)} -> {brief(self.target, 40)})"
        )


@quick_init
@dataclass(frozen=True, slots=True)
class Answer:
    """The answer that a strategy formed from one or more responses.

    Args:
        text: the answer without reasoning; the raw text stays in `responses`.
        reasoning: the reasoning that was separated from it.
        choice: index of the chosen option, where the task has options.
        log_likelihoods: one per option (or one), natural log.
        prompt: what was sent, without the continuation.
        responses: the responses that the answer was formed from.
        strategy: how several draws were combined (each draw, the vote), as plain JSON for the
            record.
        tools: definitions of the tools that the requests offered, where the task's own definition
            does not list them.
    """

    text: str = ""
    reasoning: str = ""
    choice: int | None = None
    log_likelihoods: tuple[float, ...] = ()
    prompt: Prompt = ""
    responses: tuple[Response, ...] = ()
    strategy: Mapping[str, Any] = field(default_factory=dict)
    tools: tuple[ToolDefinition, ...] = ()

    @property
    def tool_calls(self) -> tuple[ToolCall, ...]:
        """The calls of tools in the last response."""
        return self.responses[-1].tool_calls if self.responses else ()

    @property
    def usage(self) -> Usage:
        """Tokens of all responses together."""
        if len(self.responses) == 1:
            return self.responses[0].usage
        return sum((response.usage for response in self.responses), Usage())

    @property
    def outcome(self) -> Outcome:
        """The outcome of the last response.

        If that is "answered" but the strategy extracted no text, the first outcome that is not.
        """
        if self.log_likelihoods or not self.responses:
            return ANSWERED
        last = outcome_of(self.responses[-1])
        if last != ANSWERED or self.text.strip():
            return last
        return next(
            (
                outcome
                for outcome in map(outcome_of, self.responses)
                if outcome != ANSWERED
            ),
            ANSWERED,
        )


@quick_init
@dataclass(frozen=True, slots=True)
class Score:
    """A scorer's verdict on an answer: always a value, with a note where it is debatable.

    Args:
        value: in the scorer's own unit, mostly 0 to 1.
        label: a class of outcome, such as "correct" or "not_attempted".
        explanation: why, in words.
        parts: further numbers by name, such as the token counts of a perplexity.
        item: non-numeric data that a corpus metric needs (a pair of texts, of labels).
        evidence: spans of the answer's text that the score rests on: index of the first character,
            and of the one after the last.
        unsure: why a careful reader might disagree; "" where none would. The value counts all the
            same, and the number of unsure scores is shown beside every metric.
        sentences: the verdicts of judges on sentences of the answer, in order: `span` of the
            sentence in the answer's text, and `verdicts` by the judge's role, each with
            `supported`, its `probability`, and where known `reason`, `relation`, `evidence` (spans
            of the source) and `refused`.
    """

    value: float
    label: str = ""
    explanation: str = ""
    parts: Mapping[str, float] = field(default_factory=dict)
    item: Mapping[str, Any] | None = None
    evidence: Sequence[Sequence[int]] = field(default=(), compare=False)
    unsure: str = ""
    sentences: Sequence[Mapping[str, Any]] = field(default=(), compare=False)

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON, leaving out empty fields."""
        fields: dict[str, Any] = {"value": self.value}
        if self.label:
            fields["label"] = self.label
        if self.explanation:
            fields["explanation"] = self.explanation
        if self.parts:
            fields["parts"] = dict(self.parts)
        if self.item:
            fields["item"] = {name: _plain(value) for name, value in self.item.items()}
        if evidence := [list(span) for span in self.evidence]:
            fields["evidence"] = evidence
        if self.unsure:
            fields["unsure"] = self.unsure
        if self.sentences:
            fields["sentences"] = list(self.sentences)
        return fields


def score_from(outcome: object) -> object:
    """Turn a bare number into a Score: True is 1, False is 0, other numbers are the value itself.

    NumPy's numbers count too. Anything else is returned unchanged, for the caller to reject.
    """
    number = plain_number(outcome)
    if isinstance(number, bool | float):
        return Score(float(number))
    if isinstance(number, int):
        return Score(number)
    return outcome


def plain_number(number: object) -> object:
    """Convert a scalar of NumPy, torch or similar to Python's own.

    Return anything else unchanged.
    """
    is_foreign_scalar = hasattr(number, "dtype") and getattr(number, "ndim", None) == 0
    return number.item() if is_foreign_scalar else number  # type: ignore[attr-defined]


@dataclass(frozen=True, slots=True)
class NoScore:
    """Returned by a scorer in place of a Score when it does not apply to an answer.

    A refusal has no faithfulness, for example. That is not a failure: the sample is left out of the
    metrics over these scores and does not count as missing.

    Args:
        reason: why, in words.
    """

    reason: str = ""


@dataclass(frozen=True, slots=True)
class Exchange:
    """One request that a scorer sent to the model in a role, with its response.

    None if it failed.
    """

    role: str
    request: Mapping[str, Any]
    response: Response | None = None

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON; unused options, times and long vectors are left out."""
        used = (
            (name, content)
            for name, content in self.request.items()
            if content not in (None, ())
        )
        request = {
            name: _plain(content)
            for name, content in used
            if (name, content) != ("draw", 0)
        }
        exchange: dict[str, Any] = {"role": self.role, "request": request}
        if self.response is not None:
            exchange["response"] = response = self.response.as_dict()
            if len(response.get("values", ())) > _LONGEST_VECTOR:
                del response["values"]
            response.pop("latency", None)
        return exchange

    @classmethod
    def from_dict(cls, recorded: Mapping[str, Any]) -> Self:
        """Rebuild the exchange from what `as_dict` wrote; what that left out stays missing."""
        response = recorded.get("response")
        return cls(
            recorded["role"],
            recorded["request"],
            None if response is None else Response.from_dict(response),
        )


_LONGEST_VECTOR = 16

UNREADABLE = "unreadable"
"""The label of an answer that contains nothing that could be the answer. It counts as wrong."""


@quick_init
@dataclass(frozen=True, slots=True)
class SampleRecord:
    """A sample with its answer and scores: one line of `samples.jsonl`.

    Args:
        task: the task's name.
        index: the sample's position in the task, from 0.
        draw: the index of the repeat, from 0.
        sample: the sample.
        answer: the answer, also one that is cut, empty or refused; None where the sample failed.
        scores: by scorer name.
        failure: why there is no answer, through no fault of the model. The sample is then missing,
            and has no score.
        score_failures: scorers that failed by themselves, by name.
        exchanges: the requests that scorers sent to models, with the responses, by scorer name.
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
        """What became of the sample; see `core/outcomes`."""
        if self.failure is not None:
            return (
                outcome_of_failure(self.failure)
                if is_models_own(self.failure)
                else FAILED
            )
        return self.answer.outcome if self.answer is not None else FAILED

    def __repr__(self) -> str:
        reply = brief(self.answer.text) if self.answer is not None else self.outcome
        scores = [
            f"{name} {score.value:g}" for name, score in [*self.scores.items()][:3]
        ]
        label = f"{brief(self.task, 40)}, {brief(self.sample.id, 40)}"
        return f"SampleRecord({', '.join([f'{label} -> {reply}', *scores])})"


def _plain(value: Any) -> Any:
    """Convert a value to its JSON form: sequences become lists, NumPy's types Python's."""
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): _plain(element) for key, element in value.items()}
    return (
        [_plain(element) for element in value]
        if isinstance(value, (list, tuple, set, frozenset))
        else value
    )
