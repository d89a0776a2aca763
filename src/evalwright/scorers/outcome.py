"""Classifies what the model did: answered, refused, too short, truncated, empty or unfinished.

A benchmark of summaries that takes one fixed sentence for a refusal counts every other refusal as a
summary, and one that writes an error in place of a summary counts that as a refusal. Here rules
over the response and its text decide the class, with the evidence in the explanation. A request
that failed has no answer, so no scorer sees it: it has the class "failed" and is listed among the
run's failures.

A refusal is a short text that consists of refusing (`text/declining.py`). "The company said it was
unable to name a figure" mentions inability and is an answer; so is a refusal that a real summary
follows.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal, NamedTuple

from evalwright.core import outcomes as core_outcomes
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.core.outcomes import CONTENT_FILTER
from evalwright.core.outcomes import REFUSAL as REFUSAL_FIELD
from evalwright.core.reasoning import separate_reasoning
from evalwright.core.samples import Answer, NoScore, Sample, Score
from evalwright.core.sentences import word_count
from evalwright.scorers import hhem_validity
from evalwright.scorers.registry import checked
from evalwright.scorers.text.declining import REFUSAL, declines, plain_clause

ANSWERED = "answered"
REFUSED = "refused"
SHORT = "too short"
TRUNCATED = "truncated"
EMPTY = "empty"
UNCLOSED = "thinking never closed"
NO_TEXT: Mapping[str, str] = {
    core_outcomes.TOO_LONG: "too long",
    core_outcomes.UNFINISHED: "unfinished",
    core_outcomes.TOOL_CALL: "tool call",
}
"""By outcome, the classes of replies that have no text because of what the model did.

None of these replies counts as empty.
"""
OUTCOMES = (ANSWERED, REFUSED, SHORT, TRUNCATED, EMPTY, UNCLOSED, *NO_TEXT.values())
"""The classes that an answer may have; "failed" is not among them because it has no answer."""
RULES = "rules"
HHEM = "hhem"
VALIDITIES = (RULES, HHEM)

LEAST_WORDS = 6
"""Least words of a summary."""


class Outcome(NamedTuple):
    """The class of an answer, and how it is known."""

    label: str
    why: str


def check_options(options: Mapping[str, Any]) -> None:
    """Raise UsageError if `least_words`, `refusals` or `validity` has an illegal value."""
    least = options["least_words"]
    refusals = options["refusals"]
    if isinstance(least, bool) or not isinstance(least, int) or least < 1:
        raise ConfigurationError(
            "The option 'least_words' must be a whole number of at least 1, not"
            f" {least!r}."
        )
    if not isinstance(refusals, list | tuple) or not all(
        isinstance(sentence, str) and sentence.strip() for sentence in refusals
    ):
        raise ConfigurationError("The option 'refusals' is a list of sentences.")
    check_known("value of the option 'validity'", [options["validity"]], VALIDITIES)


@checked(check_options)
def outcome(
    sample: Sample,
    answer: Answer,
    *,
    least_words: int = LEAST_WORDS,
    refusals: Sequence[str] = (),
    validity: Literal["rules", "hhem"] = "rules",
) -> Score:
    """Score 1 for an answer, else 0, with the class as label; the part named after the class is 1.

    Args:
        least_words: an answer of fewer words is "too short" (in a script without spaces, two
            characters of Han or four of Thai count as a word).
        refusals: further sentences that count as refusals, such as one that your prompt asks for.
        validity: "hhem" counts as answers what the engine of the HHEM leaderboard counts as
            summaries, whatever they say.
    """
    answer_outcome = outcome_of(
        answer, least_words=least_words, refusals=refusals, validity=validity
    )
    return Score(
        float(answer_outcome.label == ANSWERED),
        answer_outcome.label,
        answer_outcome.why,
        {answer_outcome.label: 1.0},
    )


@checked(check_options)
def words(
    sample: Sample,
    answer: Answer,
    *,
    least_words: int = LEAST_WORDS,
    refusals: Sequence[str] = (),
    validity: Literal["rules", "hhem"] = "rules",
) -> Score | NoScore:
    """Score the number of words of the answer; no score for what does not count as an answer.

    The options are those of `outcome`.
    """
    answer_outcome = outcome_of(
        answer, least_words=least_words, refusals=refusals, validity=validity
    )
    if answer_outcome.label != ANSWERED:
        return NoScore(answer_outcome.label)
    return Score(
        float(len(answer.text.split()) if validity == HHEM else word_count(answer.text))
    )


def outcome_of(
    answer: Answer,
    *,
    least_words: int = LEAST_WORDS,
    refusals: Sequence[str] = (),
    validity: Literal["rules", "hhem"] = "rules",
) -> Outcome:
    """Return the class of an answer.

    The options are those of the scorer `outcome`, checked by `check_options`.
    """
    last = answer.responses[-1] if answer.responses else None
    finish = last.finish_reason if last is not None else ""
    text = answer.text.strip()
    if last is not None and separate_reasoning(last).unclosed:
        return Outcome(UNCLOSED, "its reasoning has no end")
    if validity == HHEM and text:
        return _by_hhem(text, refusals)
    if finish in (CONTENT_FILTER, REFUSAL_FIELD):
        who = (
            "the provider's filter stopped it"
            if finish == CONTENT_FILTER
            else "in the reply's field for refusals"
        )
        return Outcome(REFUSED, who)
    if not text:
        return _without_text(answer, finish)
    refusal = refusal_in(text, refusals)
    if refusal:
        return Outcome(REFUSED, refusal)
    if finish == "length":
        return Outcome(
            TRUNCATED,
            f"cut off at the limit of its length, after {_n_words(word_count(text))}",
        )
    count = word_count(text)
    if count < least_words:
        return Outcome(SHORT, _n_words(count))
    return Outcome(ANSWERED, _n_words(count))


def _without_text(answer: Answer, finish: str) -> Outcome:
    """Return the class of a reply without text: empty only if nothing says why there is none."""
    if finish == "length" and answer.reasoning:
        return Outcome(UNCLOSED, "it was still reasoning at the limit of its length")
    outcome = answer.outcome
    if outcome == core_outcomes.CUT:
        why = (
            "cut off at the limit of its length, before any text"
            if finish == "length"
            else "it ended after its reasoning, before any text"
        )
        return Outcome(TRUNCATED, why)
    if outcome in NO_TEXT:
        return Outcome(NO_TEXT[outcome], f"no text (finish reason {finish})")
    return Outcome(EMPTY, f"no text{f' (finish reason {finish})' if finish else ''}")


def _by_hhem(text: str, refusals: Sequence[str]) -> Outcome:
    """Return the class of a text by the rule of the HHEM leaderboard's engine.

    That rule knows refusals only as whole sentences, compared letter by letter.
    """
    if text in (hhem_validity.REFUSAL, *(sentence.strip() for sentence in refusals)):
        return Outcome(REFUSED, f"the sentence '{text}'")
    n_words = len(text.split())
    if hhem_validity.is_summary(text):
        return Outcome(
            ANSWERED,
            f"{_n_words(n_words)}, a summary by the rule of the HHEM leaderboard",
        )
    return Outcome(
        SHORT if n_words < hhem_validity.MIN_WORDS else EMPTY, _n_words(n_words)
    )


def _n_words(n: int) -> str:
    return f"{n:,} word{'' if n == 1 else 's'}"


def refusal_in(text: str, more_refusals: Sequence[str] = ()) -> str:
    """Return the words by which a text refuses, with their language; "" if it does not refuse.

    `more_refusals` are further sentences that count as refusals.
    """
    plain_text = plain_clause(text)
    for sentence in more_refusals:
        if plain_text == plain_clause(sentence):
            return f"the sentence '{sentence.strip()}'"
    declined = declines(text, beside=LEAST_WORDS - 1)
    return str(declined) if declined is not None and declined.kind == REFUSAL else ""
