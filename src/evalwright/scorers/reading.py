"""Reads what an answer says, as the task's scorer does, in a canonical form: "B", "42", "1/2".

Answers that agree have the same form, which votes over several draws count. Nothing is compared
with a target here, so a vote never sees what is right.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from functools import partial
from hashlib import blake2b
from string import ascii_uppercase
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.core.tasks import Scored, Scorer
from evalwright.scorers.answers.formula_reader import write_formula
from evalwright.scorers.answers.option_reader import NOT_EXTRACTED, extract_option
from evalwright.scorers.answers.reply import ParsedReply, parse_reply
from evalwright.scorers.exact_match import normalised
from evalwright.scorers.registry import registry
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.languages import language_of
from evalwright.scorers.text.numbers import Number, find_numbers
from evalwright.scorers.text.tokens import fold
from evalwright.scorers.text.units import parse_unit

Read = Callable[[Sample, Answer], str]
_MOST_CHARACTERS = 400
_MOST_DIGITS = 400
_EDGES = " .,;:!?\"'`*“”‘’()[]{}"


def reader(kind: str, options: Mapping[str, Any] | None = None) -> Read:
    """Return the function that reads an answer as the scorer `kind` does.

    A plug-in's scorer has a reader if it has the attribute `read`, a function of sample, answer and
    its options.

    Args:
        kind: the scorer's name, such as "numeric".
        options: the scorer's options, as in a task file.

    Returns:
        A function of sample and answer. It gives a canonical text, equal for answers that agree,
        and "" for no answer.

    Raises:
        ConfigurationError: the scorer reads no answers, or needs an option that is missing.
        UnknownName: there is no such scorer, or no such option of it.
    """
    reader_options = {
        name: value
        for name, value in (options or {}).items()
        if name not in ("unsure", "undecided", "language_penalty")
    }
    registry.check_options(kind, reader_options)
    read = getattr(registry.get(kind), "read", None) or READERS.get(kind)
    if read is None:
        raise ConfigurationError(
            f"The scorer '{kind}' reads no answers that could be alike. Name one that"
            f" does: {', '.join(sorted(READERS))}."
        )
    return partial(read, **reader_options)


def score_with_reading(scorer: Scorer, part_name: str) -> Scorer:
    """Add a part to a scorer's scores: a numeric code of what the answer says.

    Answers with equal readings have equal codes; -1 stands for nothing. Raises like `reader`.
    """
    read = reader(scorer.kind, scorer.options)

    def with_part(score: Scored, sample: Sample, answer: Answer) -> Scored:
        if not isinstance(score, Score):
            return score
        text = read(sample, answer).encode("utf-8", "surrogatepass")
        # A float can represent any whole number of six bytes exactly.
        code = (
            float(int.from_bytes(blake2b(text, digest_size=6).digest()))
            if text
            else -1.0
        )
        return replace(score, parts={**score.parts, part_name: code})

    async def score_asking(sample: Sample, answer: Answer, ask: Any) -> Scored:
        outcome = scorer.function(sample, answer, ask)
        return with_part(
            await outcome if isinstance(outcome, Awaitable) else outcome, sample, answer
        )

    def scored(sample: Sample, answer: Answer) -> Scored:
        score: Any = scorer.function(sample, answer)
        return with_part(score, sample, answer)

    read_fault = scorer.on_fault or (None if scorer.asks else scorer.function)

    def scored_fault(sample: Sample, answer: Answer) -> Scored:
        assert read_fault is not None
        outcome: Any = read_fault(sample, answer)
        return with_part(outcome, sample, answer)

    return replace(
        scorer,
        function=score_asking if scorer.asks else scored,
        on_fault=scored_fault if read_fault is not None else None,
    )


def _read_option(sample: Sample, answer: Answer, **_: Any) -> str:
    """Return the letter of the option."""
    option = answer.choice
    if option is None:
        language = language_of(sample) or "en"
        option = extract_option(
            answer.text, sample.choices, language, sample.input
        ).option
    if option == NOT_EXTRACTED:
        return ""
    return ascii_uppercase[option] if option < len(ascii_uppercase) else str(option)


def _read_number(sample: Sample, answer: Answer, **_: Any) -> str:
    """Return the number as a fraction in lowest terms, in the sample's unit if that is possible."""
    language = language_of(sample) or "en"
    reply = parse_reply(
        answer.text, sample.input, lambda text: bool(find_numbers(text, language))
    )
    region = reply.conclusion or reply.text
    numbers = find_numbers(region.rpartition("=")[2], language) or find_numbers(
        region, language
    )
    if not numbers:
        return ""
    number = numbers[0] if reply.marked else numbers[-1]
    value = _convert_to_unit(number, str(sample.metadata.get("unit") or ""))
    # The fraction for "1e999999" would have a million digits.
    return (
        str(Fraction(value))
        if abs(value.adjusted()) <= _MOST_DIGITS
        else str(value.normalize())
    )


def _convert_to_unit(number: Number, unit: str) -> Decimal:
    target_unit = parse_unit(unit) if unit else None
    converted = (
        number.unit.of(number.value, target_unit)
        if target_unit is not None and number.unit is not None
        else None
    )
    return number.value if converted is None else converted


def _read_formula(sample: Sample, answer: Answer, **_: Any) -> str:
    """Return the formula in canonical form; a number as `_read_number` writes it."""
    reply = parse_reply(answer.text, sample.input)
    return write_formula(reply, language_of(sample) or "en")[:_MOST_CHARACTERS]


def _read_text(sample: Sample, answer: Answer, **_: Any) -> str:
    """Return the words without case and punctuation; "" for an answer that declines."""
    reply = parse_reply(answer.text, sample.input)
    return "" if declines(reply.text) else _normalise_words(reply)


def _normalise_words(reply: ParsedReply) -> str:
    return " ".join(
        fold((reply.conclusion or reply.text).casefold()).strip(_EDGES).split()
    )[:_MOST_CHARACTERS]


def _read_short_answer(sample: Sample, answer: Answer, **_: Any) -> str:
    """Return the number or the words, by the sample's kind of answer."""
    return (
        _read_number if sample.metadata.get("answer_type") == "number" else _read_text
    )(sample, answer)


def _read_final_answer(
    sample: Sample, answer: Answer, *, kind: str = "text", **_: Any
) -> str:
    read = {"choice": _read_option, "number": _read_number, "math": _read_formula}.get(
        kind, _read_text
    )
    return read(sample, answer)


def _normalised_text(sample: Sample, answer: Answer, **options: Any) -> str:
    return normalised(sample, answer.text, **options)[:_MOST_CHARACTERS]


READERS: Mapping[str, Callable[..., str]] = {
    "choice": _read_option,
    "exact-match": _normalised_text,
    "final-answer": _read_final_answer,
    "numeric": _read_number,
    "short-answer": _read_short_answer,
    "token-f1": _read_text,
}
