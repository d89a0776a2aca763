"""Chooses the reader for a sample's answers, by the kind of its targets.

The kind is `metadata["answer_type"]`; if that is missing, it is inferred from how the targets
are written and what the question asks for, in the order of `choose_reader`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Protocol

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Sample
from evalwright.scorers.answers.date_reader import DateReader, asks_for_date
from evalwright.scorers.answers.formula_reader import FormulaReader
from evalwright.scorers.answers.name_reader import NameReader
from evalwright.scorers.answers.name_sentences import SentenceReader
from evalwright.scorers.answers.name_targets import parse_name_targets
from evalwright.scorers.answers.number_reader import NumberReader
from evalwright.scorers.answers.number_targets import (
    parse_number_targets,
    parse_tolerance,
)
from evalwright.scorers.answers.phrase_reader import PhraseReader
from evalwright.scorers.answers.reply import ParsedReply
from evalwright.scorers.answers.time_reader import TimeReader, is_time
from evalwright.scorers.answers.verdict import Verdict
from evalwright.scorers.answers.yes_no_reader import YesNoReader, read_target_side
from evalwright.scorers.text.cues import cue_words, has_spaceless_cue
from evalwright.scorers.text.dates import Date, parse_date
from evalwright.scorers.text.declining import declines
from evalwright.scorers.text.folded import fold_text
from evalwright.scorers.text.formulas import is_formula
from evalwright.scorers.text.languages import short_code
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers
from evalwright.scorers.text.units import counter_after

NAME_PARTS = ("full", "surname", "given", "any")
YEAR_ENDINGS = ("年", "년")
MAX_QUESTION_CHARS = 2_000


class AnswerReader(Protocol):
    """Judges replies against the targets of one sample."""

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge a reply, which is not empty."""
        ...


@dataclass(frozen=True)
class NumberOrAliasReader:
    """Judges replies against target numbers, and against targets in words beside them.

    An example of the latter is "half past six".
    """

    numbers: NumberReader
    aliases: NameReader

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, neither empty nor declining, gives a target."""
        verdict = self.numbers.judge(reply)
        if verdict.label == "unreadable" and self.aliases.targets:
            by_alias = self.aliases.judge(reply)
            if by_alias.label == "correct":
                return by_alias
        return verdict


def choose_reader(sample: Sample) -> AnswerReader:
    """Choose the reader for the kind of a sample's targets.

    Raises:
        ScoringError: the metadata has values that do not exist.
    """
    metadata = sample.metadata
    targets = sample.targets
    question = sample.input
    language = short_code(str(metadata.get("language") or "en"))
    kind = str(metadata.get("answer_type") or "")
    name_parts = str(metadata.get("parts") or "full")
    if name_parts not in NAME_PARTS:
        raise ScoringError(
            "The metadata 'parts' is 'full', 'surname', 'given' or 'any', not"
            f" {name_parts!r}."
        )
    confusable = _parse_names(metadata.get("confusable"))
    tolerance = parse_tolerance(metadata.get("tolerance"))

    is_person = kind == "person" or asks_for_person(
        plain(question[:MAX_QUESTION_CHARS]), language
    )
    may_be_surname = is_person and "parts" not in metadata and kind in ("", "person")
    name_targets = parse_name_targets(
        targets, "surname" if may_be_surname else name_parts
    )
    if kind == "none" or any(declines(target) for target in targets if target.strip()):
        return PhraseReader(name_targets)

    side = read_target_side(targets, language) if kind in ("yes_no", "") else ""
    if side:
        return YesNoReader(side, question, language)

    dates = _parse_dates(targets) if kind in ("date", "") else ()
    if dates and _wants_date(dates, targets, question, kind, language):
        return DateReader(dates, question, language)
    if not kind and targets and all(map(is_time, targets)):
        return TimeReader(targets, language)
    if not kind and all(
        map(is_formula, targets)
    ):  # all of them, unlike "07:00" beside "7 am"
        return FormulaReader(targets, question, language)

    is_number = kind == "number" or (
        kind in ("", "date") and targets and _is_number(targets[0], language)
    )
    unit = str(metadata.get("unit") or "")
    number_targets = (
        parse_number_targets(targets, unit, question, language) if is_number else ()
    )
    if number_targets:
        in_words = tuple(
            target for target in targets if not any(map(str.isdigit, target))
        )
        alias_targets = parse_name_targets(in_words, name_parts)
        return NumberOrAliasReader(
            NumberReader(number_targets, tolerance, question, language),
            NameReader(SentenceReader(alias_targets, question, language, confusable)),
        )
    return NameReader(
        SentenceReader(name_targets, question, language, confusable, is_person)
    )


def asks_for_person(question: str, language: str) -> bool:
    """Return whether a question asks who."""
    person_words = cue_words("person", language)
    return not person_words.isdisjoint(fold_text(question).tokens) or has_spaceless_cue(
        "person", question
    )


def _wants_date(
    dates: Sequence[Date],
    targets: Sequence[str],
    question: str,
    kind: str,
    language: str,
) -> bool:
    """Return whether targets that can be read as dates are dates, not numbers such as "1912"."""
    return (
        kind == "date"
        or max(date.parts for date in dates) > 1
        or asks_for_date(question, language)
        or targets[0].strip().endswith(YEAR_ENDINGS)
    )


@lru_cache(maxsize=2048)
def _parse_dates(targets: tuple[str, ...]) -> tuple[Date, ...]:
    return tuple(date for target in targets for date in parse_date(plain(target)))


@lru_cache(maxsize=2048)
def _is_number(target: str, language: str) -> bool:
    """Return whether a target is only a number with its unit."""
    text = plain(target)
    numbers = find_numbers(text, language)
    if len(numbers) != 1:
        return False

    number = numbers[0]
    counter = counter_after(text, number.end)
    if number.ordinal and counter is None:
        return False
    end = counter[1] if counter else number.end
    beside = text[: number.start] + text[end:]
    return not any(map(str.isalnum, beside))


def _parse_names(names: object) -> tuple[str, ...]:
    if not names:
        return ()
    if isinstance(names, str):
        return (names,)
    if isinstance(names, list | tuple) and all(isinstance(name, str) for name in names):
        return tuple(names)
    raise ScoringError(
        "The metadata 'confusable' is a list of names that are not the answer."
    )
