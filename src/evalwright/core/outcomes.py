"""Outcomes of samples: answered, no answer by the model's own fault, or missing by no fault of it.

- answered: the model wrote an answer and ended by itself, or the token limit ended an answer that
  had begun (scored)
- cut: the reply ended before any answer text: at the token limit, or after reasoning alone, which
  is not an answer (wrong)
- empty: the reply has no text and gives no reason, also when it was asked for again (wrong)
- refused: the model refused in a field of the reply made for it; refusing in words is an answer
  (wrong)
- filtered: the provider's filter stopped the reply (wrong), or the prompt before any reply
  (missing)
- too_long: the prompt does not fit the model's context (wrong)
- unfinished: the model was still writing at the time limit (wrong)
- tool_call: the reply is a call of a tool that was not offered (wrong)
- failed: there is no reply, or none that can be used; the Failure says who failed (missing)

"Wrong" is the worst value of the scorer, unless the scorer or the task says that such a reply has
no score (`core/tasks`). Everything is derived from what is recorded (finish reasons, texts,
failures), so records of any age have an outcome.
"""

from __future__ import annotations

from typing import Literal, get_args

from evalwright.core.errors import Failure, Party
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.responses import Response, Usage

NoAnswer = Literal[
    "cut", "empty", "refused", "filtered", "too_long", "unfinished", "tool_call"
]
Outcome = Literal[
    "answered",
    "cut",
    "empty",
    "refused",
    "filtered",
    "too_long",
    "unfinished",
    "tool_call",
    "failed",
]

ANSWERED: Outcome = "answered"
"""The model wrote an answer. Its outcome, like those below, is the one in the table above."""
CUT: Outcome = "cut"
EMPTY: Outcome = "empty"
REFUSED: Outcome = "refused"
FILTERED: Outcome = "filtered"
TOO_LONG: Outcome = "too_long"
UNFINISHED: Outcome = "unfinished"
TOOL_CALL: Outcome = "tool_call"
FAILED: Outcome = "failed"
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

NO_ANSWER: tuple[Outcome, ...] = (
    CUT,
    EMPTY,
    REFUSED,
    FILTERED,
    TOO_LONG,
    UNFINISHED,
    TOOL_CALL,
)
"""Outcomes in which the model gave no answer.

They get the scorer's worst value, or are scored as an empty answer where a task says so.
"""

WORDS = {
    CUT: "cut before any answer",
    EMPTY: "empty",
    REFUSED: "refused by the model",
    FILTERED: "filtered by the provider",
    TOO_LONG: "with a prompt too long for the model",
    UNFINISHED: "still being written at the time limit",
    TOOL_CALL: "calling a tool that was not offered",
}
"""How messages and reports describe these outcomes."""

LENGTH = "length"
CONTENT_FILTER = "content_filter"
REFUSAL = "refusal"
"""Finish reasons that decide the outcome.

`models/remote/wire` translates every provider's own words into these.
"""

TOOL_CALLS = "tool_calls"
"""Finish reason of a reply that calls tools which the request offered: an answer."""

_BY_FINISH_REASON: dict[str, Outcome] = {
    CONTENT_FILTER: FILTERED,
    REFUSAL: REFUSED,
    EMPTY: EMPTY,
    TOO_LONG: TOO_LONG,
    UNFINISHED: UNFINISHED,
    TOOL_CALL: TOOL_CALL,
}

_TOOL_CALLS = frozenset({"tool_use", "tool_calls", "function_call", "TOOL_CALL"})
"""Providers' finish reasons for a reply that ended in a tool call."""

_BY_FAILURE: dict[str, Outcome] = {
    "empty reply": EMPTY,
    "prompt too long": TOO_LONG,
    "still writing": UNFINISHED,
    "tool call": TOOL_CALL,
}
"""Failures that count as the model's own fault, by kind (see `core/errors`).

The model replied, but not with an answer.
"""

_MESSAGES: dict[Outcome, tuple[Party, str]] = {
    CUT: (
        "model",
        (
            "The reply{of} ended before any answer text: at the token limit, or after"
            " reasoning alone."
        ),
    ),
    EMPTY: ("model", "The reply{of} is empty."),
    FILTERED: ("provider", "The provider's filter stopped the reply{of}."),
    REFUSED: ("model", "The reply{of} is a refusal, in the field made for it."),
    TOO_LONG: ("model", "The prompt{of} does not fit the model's context."),
    UNFINISHED: ("model", "The reply{of} was still being written at the time limit."),
    TOOL_CALL: ("model", "The reply{of} calls a tool that was not offered."),
}


def outcome_of(response: Response) -> Outcome:
    """Determine the outcome of a response to a text request.

    Args:
        response: a model's response.

    Returns:
        `ANSWERED`, or one of `NO_ANSWER`: "cut", "empty", "refused", "filtered", "too_long",
        "unfinished" or "tool_call".
    """
    if response.tool_calls:
        return ANSWERED  # calls of tools that were offered
    by_reason = _BY_FINISH_REASON.get(response.finish_reason)
    if by_reason is not None and not (
        by_reason == TOOL_CALL and _is_visible(response.text)
    ):
        return by_reason
    if "<" not in response.text and _is_visible(response.text):
        return ANSWERED
    if response.values or response.log_likelihood is not None:
        return ANSWERED  # numbers were requested, not text
    separated = separate_reasoning(response)
    if _is_visible(separated.answer):
        return ANSWERED
    if response.finish_reason in _TOOL_CALLS:
        return TOOL_CALL
    return CUT if response.finish_reason == LENGTH or separated.reasoning else EMPTY


def _is_visible(text: str) -> bool:
    """Tell whether a text has at least one visible character."""
    text = text.strip()
    first = text[:1].isprintable() and text != ""
    return first or any(sign.isprintable() and not sign.isspace() for sign in text)


def outcome_of_failure(failure: Failure) -> Outcome:
    """Determine the outcome of a sample from the failure of its request."""
    if failure.party not in ("model", "provider"):
        return FAILED
    if failure.kind in _BY_FAILURE:
        return _BY_FAILURE[failure.kind]
    # Records of earlier versions may have the kind as "prompt filtered".
    short_kind = failure.kind.removeprefix("prompt ")
    return next((outcome for outcome in NO_ANSWER if short_kind == outcome), FAILED)


def is_models_own(failure: Failure) -> bool:
    """Tell whether a request failed through the model's own fault, so that its sample is scored.

    Otherwise the sample is missing. A prompt that the provider's filter stopped never reached the
    model: that is the provider's failure. A reply that the filter stopped is the model's.
    """
    outcome = outcome_of_failure(failure)
    return outcome in NO_ANSWER and (outcome != FILTERED or failure.party == "model")


def response_of_fault(failure: Failure) -> Response:
    """Build the empty response that stands for a failure of the model's own."""
    usage = Usage(**failure.usage) if failure.usage else Usage()
    outcome = outcome_of_failure(failure)
    finish_reason = CONTENT_FILTER if outcome == FILTERED else outcome
    return Response(finish_reason=finish_reason, usage=usage, cost=failure.cost)


def explanation_of(outcome: Outcome) -> str:
    """Explain in a sentence why a reply with this outcome counts as no answer."""
    return _MESSAGES[outcome][1].format(of="")


def failure_of(outcome: Outcome, role: str = "") -> Failure:
    """Build a Failure from a reply without an answer.

    Args:
        outcome: the reply's outcome.
        role: the judge's role, if the reply is a judge's.
    """
    party, message = _MESSAGES[outcome]
    return Failure(
        outcome,
        "judge" if role else party,
        message.format(of=f" of '{role}'" if role else ""),
    )
