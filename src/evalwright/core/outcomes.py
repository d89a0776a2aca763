"""What became of a sample: answered, cut, filtered, refused or failed. Only an answer is scored.

| outcome | what happened |
|---|---|
| answered | the model wrote an answer and ended by itself, or the token limit ended an answer that had begun |
| cut | the reply ended before any answer text: at the token limit, or after reasoning alone, which is not an answer |
| filtered | the provider's filter stopped the prompt or the reply, whatever text stands in the reply |
| refused | the model refused in a field of the reply made for it; refusing in words is an answer |
| failed | there is no reply, or none that can be used; the Failure says who failed |

Everything is derived from what is recorded (finish reasons, texts, failures), so records of any age have an outcome.
"""

from __future__ import annotations

from typing import Literal, get_args

from evalwright.core.errors import Failure, Party
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.responses import Response

Outcome = Literal["answered", "cut", "filtered", "refused", "failed"]

ANSWERED: Outcome = "answered"
CUT: Outcome = "cut"
FILTERED: Outcome = "filtered"
REFUSED: Outcome = "refused"
FAILED: Outcome = "failed"
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)

NO_ANSWER: tuple[Outcome, ...] = (CUT, FILTERED, REFUSED)
"""A reply came, or a filter spoke in its place, and there is no answer. A task may have these scored as an empty answer."""

WORDS = {CUT: "cut before any answer", FILTERED: "filtered by the provider", REFUSED: "refused by the model"}
"""How people read them."""

LENGTH, CONTENT_FILTER, REFUSAL = "length", "content_filter", "refusal"
"""Finish reasons that say it, in our words; `models/remote/wire` translates every provider's."""

_MESSAGES: dict[Outcome, tuple[Party, str]] = {
    CUT: (
        "model",
        "The reply{of} ended before any answer text: at the token limit, or after reasoning alone.",
    ),
    FILTERED: ("provider", "The provider's filter stopped the reply{of}."),
    REFUSED: ("model", "The reply{of} is a refusal, in the field made for it."),
}


def outcome_of(response: Response) -> Outcome:
    """What a reply to a request for text is."""
    reason = response.finish_reason
    if reason == CONTENT_FILTER:
        return FILTERED
    if reason == REFUSAL:
        return REFUSED
    if "<" not in response.text and _seen(response.text):
        return ANSWERED
    found = separate_reasoning(response)
    return CUT if not _seen(found.answer) and (reason == LENGTH or found.reasoning) else ANSWERED


def _seen(text: str) -> bool:
    """Whether a text has a character that people see."""
    text = text.strip()
    first = text[:1].isprintable() and text != ""
    return first or any(sign.isprintable() and not sign.isspace() for sign in text)


def outcome_of_failure(failure: Failure) -> Outcome:
    """The outcome of a sample that failed this way."""
    if failure.party not in ("model", "provider"):
        return FAILED
    # Records of earlier versions may say it in two words.
    kind = failure.kind.removeprefix("prompt ")
    return next((known for known in NO_ANSWER if kind == known), FAILED)


def failure_of(outcome: Outcome, role: str = "") -> Failure:
    """A reply without an answer as a failure: counted and bounded like every other. role: a judge's, whose failure it is then."""
    party, message = _MESSAGES[outcome]
    return Failure(outcome, "judge" if role else party, message.format(of=f" of '{role}'" if role else ""))
