"""Classifies a row's outcome by its text, or else by its number of words.

The engine writes an error in place of a summary and judges that too; afterwards only `is_valid` and
the number of words distinguish a failed request from a refusal. The sentences below are the
engine's own. Whether a text is a summary is for our scorer `outcome` to say, by its option
`validity: hhem`.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

from evalwright import Answer, Failure, Sample, Score
from evalwright.extend import Scorer, bind_scorer

ANSWERED = "answered"
REFUSED = "refused"
SHORT = "too short"
EMPTY = "empty"
UNCLOSED = "thinking never closed"
TRUNCATED = "truncated"
FAILED = "failed"
UNKNOWN = "not told"

_LONG = 1000
"""An invalid row of more words than this can only be a text that ran on."""

_MIN_WORDS = 6
"""A valid row has at least as many words."""

_UNCLOSED_THINKING = "FOUND <think> WITH NO CLOSING </think>"
_EMPTY_SUMMARY = "EMPTY SUMMARY GIVEN BY MODEL"
_REFUSALS = {
    "I am unable to summarize this passage.": "the sentence that the prompt asks for",
    # The prompt of older runs; later code no longer knows the sentence and would take it for a
    # summary.
    "I am unable to summarize this text.": "the sentence that older prompts ask for",
}
_FAILURES = {
    "MODEL FAILED TO RETURN ANY OUTPUT": (
        "request failed",
        "The request failed; the engine kept no reason.",
    ),
    "THREAD ERROR": ("request failed", "The engine's thread failed."),
    "DID NOT RECIEIVE A STRING TYPE FROM OUTPUT": (
        "bad reply",
        "The reply was not text.",
    ),
    (
        "THIS SUMMARY IS EMPTY, THIS IS THE DEFAULT VALUE A SUMMARY VARIABLE GETS. "
        "A REAL SUMMARY WAS NOT ASSIGNED TO THIS VARIABLE."
    ): ("not asked", "The engine could not call this model."),
}


_BY_WORDS: dict[int, tuple[str, ...]] = {
    0: (EMPTY,),
    6: (
        FAILED,
        "request failed or thinking never closed",
        (
            "The request failed, or thinking was never closed; without the summaries it"
            " is unknown which."
        ),
    ),
    7: (REFUSED, "known by its 7 words"),
    8: (FAILED, "bad reply", "The reply was not text, as its 8 words show."),
    22: (
        FAILED,
        "not asked",
        "The engine could not call this model, as its 22 words show.",
    ),
}


@dataclass(frozen=True, slots=True)
class RowOutcome:
    """The outcome of a row.

    label: its class. explanation: how it is known. failure: set if the model's answer is unknown.
    """

    label: str
    explanation: str = ""
    failure: Failure | None = None


def row_outcome(valid: bool, words: int, text: str | None) -> RowOutcome:
    """Classify a row that was recorded as valid or not. text: None if there is no summary."""
    if valid:
        return RowOutcome(ANSWERED)
    return _classify_length(words) if text is None else _classify_text(text)


@cache
def _validity() -> Scorer:
    return bind_scorer("outcome", {"validity": "hhem"})


def is_summary(text: str) -> bool:
    """Whether the engine counts a text as a summary."""
    score = _validity().function(Sample(""), Answer(text))
    return isinstance(score, Score) and score.value == 1


def is_refusal(text: str) -> bool:
    """Whether a text is one of the sentences with which prompts let a model refuse."""
    return text.strip() in _REFUSALS


def _classify_text(text: str) -> RowOutcome:
    text = text.strip()
    if text in _FAILURES:
        return _failed_outcome(*_FAILURES[text])
    if text in _REFUSALS:
        return RowOutcome(REFUSED, _REFUSALS[text])
    if text == _UNCLOSED_THINKING:
        return RowOutcome(UNCLOSED)
    if text in ("", _EMPTY_SUMMARY):
        return RowOutcome(EMPTY)
    words = len(text.split())
    if words < _MIN_WORDS:
        return RowOutcome(SHORT, f"{words} words")
    return _classify_long_text(words)


def _classify_length(words: int) -> RowOutcome:
    """Classify by length: the engine's sentences have different numbers of words."""
    if words in _BY_WORDS:
        label, *details = _BY_WORDS[words]
        return (
            _failed_outcome(*details)
            if label == FAILED
            else RowOutcome(label, "".join(details))
        )
    if words < _MIN_WORDS:
        alternative = {2: ", or a thread that failed", 5: ", or nothing at all"}.get(
            words, ""
        )
        return RowOutcome(SHORT, f"{words} words{alternative}")
    return _classify_long_text(words)


def _classify_long_text(words: int) -> RowOutcome:
    if words > _LONG:
        reason = "recorded as invalid: most likely a text cut off at its limit"
        return RowOutcome(TRUNCATED, f"{words} words, {reason}")
    return RowOutcome(
        UNKNOWN, f"recorded as invalid with {words} words, for an unknown reason"
    )


def _failed_outcome(kind: str, message: str) -> RowOutcome:
    return RowOutcome(FAILED, message, Failure(kind, "provider", message))
