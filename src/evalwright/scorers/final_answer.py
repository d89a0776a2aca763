"""Scores the final answer of a reply with reasoning: number, formula, option or a few words."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from fractions import Fraction

from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import UNREADABLE, Answer, Sample, Score
from evalwright.scorers.answers.formula_reader import FormulaReader
from evalwright.scorers.answers.further_question import before_next_question
from evalwright.scorers.answers.reply import ParsedReply, parse_reply
from evalwright.scorers.answers.verdict import shortened
from evalwright.scorers.choice import choice_of_text
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.languages import language_of
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers

_QUOTES = "\"'`*“”‘’ \t"


def final_answer(sample: Sample, answer: Answer, *, kind: str = "text") -> Score:
    r"""Score 1.0 if what the reply concludes with is a target, else 0.0.

    It reads the reply's last claim (`scorers/answers/reply.py`); without any, the last line (for a
    number, the last number). Labels: "correct", "incorrect", UNREADABLE (nothing of the kind is
    there), "not_attempted" (empty, or it declines).

    Args:
        kind: "number" compares rational numbers exactly; "math" compares short formulas
            (`scorers/answers/formula_reader.py`), a target with a `\boxed{}` standing for its
            content; "choice" reads an option's letter or text; "text" compares words, ignoring case
            and white space.

    Raises:
        ScoringError: the sample has no target of that kind.
    """
    check_known("kind of final answer", [kind], ("choice", "math", "number", "text"))
    if not answer.text.strip():
        return Score(0.0, "not_attempted", "the answer is empty")
    language = language_of(sample) or "en"
    if kind == "choice":
        return choice_of_text(sample, answer.text)
    if not sample.targets:
        raise ScoringError(f"The sample '{sample.id}' has no target.")
    holds = _HOLDS.get(kind)
    text = answer.text
    if kind in ("math", "number"):
        text = before_next_question(text, sample.input, _has_number)
    reply = parse_reply(text, sample.input, holds)
    if not reply.marked and kind != "math":
        written_lines = [
            line.strip() for line in reply.as_written.splitlines() if line.strip()
        ]
        reply = reply._replace(
            as_written=written_lines[-1] if written_lines else "", rule="the last line"
        )
    if not reply.marked and (declined := declines(answer.text)):
        return Score(0.0, "not_attempted", f"gives no answer: {declined}")
    if kind == "number":
        return with_evidence(
            _score_number(sample, reply, language), answer.text, reply.as_written
        )
    if kind == "math":
        return with_evidence(
            _score_formula(sample, reply, language), answer.text, reply.as_written
        )
    right = any(
        _normalise_words(reply.as_written) == _normalise_words(target)
        for target in sample.targets
    )
    score = Score(
        float(right),
        "correct" if right else "incorrect",
        f"{reply.rule}: '{shortened(reply.as_written)}'",
    )
    return with_evidence(score, answer.text, reply.as_written)


def _score_number(sample: Sample, reply: ParsedReply, language: str) -> Score:
    targets = [
        values[-1]
        for target in sample.targets
        if (values := _find_fractions(plain(target), language))
    ]
    if not targets:
        raise ScoringError(
            f"The target of the sample '{sample.id}' is not a number:"
            f" '{sample.target[:60]}'."
        )
    # "7 * 6 = 42 apples": the result of an equation counts.
    numbers = _find_fractions(
        reply.text.rpartition("=")[2], language
    ) or _find_fractions(reply.text, language)
    if not numbers:
        return Score(0.0, UNREADABLE, f"{reply.rule}: no number there")
    number, rule = (
        (numbers[0], reply.rule) if reply.marked else (numbers[-1], "the last number")
    )
    right = number in targets
    return Score(float(right), "correct" if right else "incorrect", f"{rule}: {number}")


def _find_fractions(text: str, language: str) -> list[Fraction]:
    return [
        Fraction(number.value)
        for number in find_numbers(text, language)
        if not number.word or number.value > 1
    ]


def _has_number(text: str) -> bool:
    return any(map(str.isdigit, text)) or bool(find_numbers(text))


_HOLDS: Mapping[str, Callable[[str], bool]] = {"number": _has_number, "text": bool}
"""By kind: what a text must contain to count as a claim."""


def _score_formula(sample: Sample, reply: ParsedReply, language: str) -> Score:
    if not any(map(str.isalnum, plain(reply.as_written))):
        return Score(0.0, UNREADABLE, f"{reply.rule}: nothing there")
    return FormulaReader(sample.targets, sample.input, language).judge(reply).outcome()


def _normalise_words(text: str) -> str:
    return " ".join(
        text.casefold().strip(_QUOTES).removesuffix(".").strip(_QUOTES).split()
    )
