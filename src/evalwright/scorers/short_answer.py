"""Short answers: does the reply give the target, or one of its aliases, as its answer?

Rules only, no model: always the best reading, and why a careful reader might argue with it.
docs/scorers.md#short-answer explains the rules on one page.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import lru_cache

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.answers.date_reader import asks_for_date, judge_date
from evalwright.scorers.answers.formula_reader import judge_formula
from evalwright.scorers.answers.name_reader import Names
from evalwright.scorers.answers.name_targets import mentions, targets_of
from evalwright.scorers.answers.number_reader import Numbers
from evalwright.scorers.answers.number_targets import goals_of, read_tolerance
from evalwright.scorers.answers.reply import Said, said
from evalwright.scorers.answers.time_reader import is_time, judge_time
from evalwright.scorers.answers.verdict import (
    Verdict,
    correct,
    incorrect,
    not_attempted,
    unreadable,
)
from evalwright.scorers.answers.yes_no_reader import judge_yes_no, polarity_of
from evalwright.scorers.text.cues import anywhere, words
from evalwright.scorers.text.dates import Date, parse_date
from evalwright.scorers.text.declining import NO_INFORMATION, declines, speaks_of_text
from evalwright.scorers.text.evidence import with_evidence
from evalwright.scorers.text.folded import read
from evalwright.scorers.text.formulas import is_formula
from evalwright.scorers.text.languages import short_code
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import find_numbers
from evalwright.scorers.text.units import counter_after

YEAR_ENDINGS = ("年", "년")
PARTS = ("full", "surname", "given", "any")
_NOTHING = frozenset(
    ("null", "nan", "nil", "tbd", "tba", "to be determined", "to be announced")
)
_INTRODUCING = frozenset(
    ("i", "was", "am", "asked", "the", "question", "is", "you", "your", "q")
)
Judge = Callable[[Said], Verdict]


def short_answer(sample: Sample, answer: Answer) -> Score:
    """1.0 where the answer gives a target, else 0.0; labels "correct", "incorrect",
    "not_attempted", "unreadable".

    Reads `sample.targets` (the canonical form and its aliases) and the metadata `answer_type`
    ("name", "number", "date", "yes_no", "none"; worked out from the targets where it is missing),
    `unit`, `tolerance`, `language`, `parts` (which part of a person's name is enough: "full",
    "surname", "given", "any") and `confusable` (names of others that hold a target). Where a target
    itself says that there is no answer ("No answer", "not stated"), the targets are phrases, and
    finding one is enough. Unsure where a careful reader might argue. Raises ScoringError for
    metadata that say nothing.
    """
    judge, symbols = _judge(sample)
    if any(
        symbol in answer.text.split() or symbol == answer.text.strip(" .`'\"*")
        for symbol in symbols
    ):
        return correct("a target as written").outcome()
    found = said(answer.text, sample.input, is_short=True)
    if symbols and found.text and not any(map(str.isalnum, found.text)):
        return incorrect("other signs than the target").outcome()
    score = _verdict(found, sample, judge).outcome()
    right = score.value == 1
    return with_evidence(score, answer.text, found.raw, sample.targets if right else ())


def _verdict(found: Said, sample: Sample, judge: Judge) -> Verdict:
    if found.none:
        return not_attempted(f"{found.rule} is empty")
    if any(unicodedata.category(char) == "So" for char in found.text) and not any(
        map(str.isalnum, found.text)
    ):
        return unreadable("signs only", "signs may stand for an answer")
    if found.text.casefold().strip(" .") in _NOTHING or not any(
        map(str.isalnum, found.text)
    ):
        return not_attempted("the answer is empty")
    found = found._replace(text=_without_question(found.text, plain(sample.input)))
    if not found.text:
        return not_attempted("the answer only repeats the question")
    found = _with_option_text(found)
    whole = _bare(found.text)
    if not found.after and any(
        whole == _bare(plain(target)) for target in sample.targets
    ):
        return correct(f"'{whole[:60]}' is a target as written")
    return judge(found)


def _judge(sample: Sample) -> tuple[Judge, tuple[str, ...]]:
    metadata = sample.metadata
    language = short_code(str(metadata.get("language") or "en"))
    kind = str(metadata.get("answer_type") or "")
    parts = str(metadata.get("parts") or "full")
    if parts not in PARTS:
        raise ScoringError(
            "The metadata 'parts' is 'full', 'surname', 'given' or 'any', not"
            f" {parts!r}."
        )
    targets = sample.targets
    question = sample.input
    symbols = tuple(
        target
        for target in targets
        if target.strip() and not any(map(str.isalnum, target))
    )
    confusable = _strings(metadata.get("confusable"))
    tolerance = read_tolerance(metadata.get("tolerance"))
    asked = plain(question[:2000])
    is_person = kind == "person" or asks_for_person(asked, language)
    shorter = (
        "surname"
        if is_person and "parts" not in metadata and kind in ("", "person")
        else parts
    )
    names = Names(
        targets_of(targets, shorter), question, language, confusable, is_person
    )
    if kind == "none" or any(declines(target) for target in targets if target.strip()):
        return lambda found: _phrases(found, names), symbols
    side = polarity_of(targets, language) if kind in ("yes_no", "") else ""
    if side:
        return (
            lambda found: _unless_declined(
                found, judge_yes_no(found, side, question, language)
            ),
            symbols,
        )
    dates = _dates(targets) if kind in ("date", "") else ()
    if dates and (
        kind == "date"
        or max(date.parts for date in dates) > 1
        or asks_for_date(question, language)
        or targets[0].strip().endswith(YEAR_ENDINGS)
    ):
        return (
            lambda found: _unless_declined(
                found, judge_date(found, dates, question, language)
            ),
            symbols,
        )
    if not kind and targets and all(map(is_time, targets)):
        return (
            lambda found: _unless_declined(found, judge_time(found, targets, language)),
            symbols,
        )
    if not kind and all(map(is_formula, targets)):  # not "07:00" beside "7 am"
        return (
            lambda found: (
                _declining(found) or judge_formula(found, targets, question, language)
            ),
            symbols,
        )
    unit = str(metadata.get("unit") or "")
    if kind == "number" or (
        kind in ("", "date") and targets and _is_number(targets[0], language)
    ):
        goals = goals_of(targets, unit, question, language)
        if goals:
            numbers = Numbers(goals, tolerance, question, language)
            others = tuple(
                target for target in targets if not any(map(str.isdigit, target))
            )
            aliases = Names(targets_of(others, parts), question, language, confusable)
            return lambda found: _number(found, numbers, aliases), symbols
    return lambda found: _name(found, names), symbols


def _name(found: Said, names: Names) -> Verdict:
    return _unless_declined(found, names.judge(found))


def _number(found: Said, numbers: Numbers, names: Names) -> Verdict:
    verdict = numbers.judge(found)
    if verdict.label == "unreadable" and names.targets:
        whole = names.judge(found)  # an alias in other words, such as "half past six"
        verdict = whole if whole.label == "correct" else verdict
    return _unless_declined(found, verdict)


def _phrases(found: Said, names: Names) -> Verdict:
    """The targets say that there is no answer: one of them anywhere is right."""
    if mentions(read(found.text), names.targets):
        return correct("one of the expected phrases")
    declined = declines(found.text)
    if declined and declined.kind == NO_INFORMATION and speaks_of_text(declined):
        return correct(
            f"says that there is no answer: {declined}",
            "in other words than the target",
        )
    return _declining(found) or incorrect("none of the expected phrases in the answer")


def _without_question(text: str, question: str) -> str:
    """The reply without the question where it repeats it; "" where nothing but an introduction is
    left.
    """
    asked = question.strip()
    place = text.casefold().find(asked.casefold()) if len(asked) > 12 else -1
    if place < 0:
        return text
    rest = f"{text[:place]} {text[place + len(asked) :]}".strip(" .:\n\"'")
    return rest if any(token not in _INTRODUCING for token in read(rest).tokens) else ""


def _with_option_text(found: Said) -> Said:
    """The text of an option that the model made up itself and answers with: "a. Toba b. Poso.
    Answer: a".
    """
    letter = found.text.strip(" .()").casefold()
    if not found.marked or len(letter) != 1 or not found.before:
        return found
    option = re.search(
        rf"(?:^|\s){re.escape(letter)}[.)] *(.+?)(?=\s+[a-e][.)]|\n|$)",
        found.before,
        re.IGNORECASE,
    )
    return found._replace(text=option[1], before="") if option else found


def _bare(text: str) -> str:
    return " ".join(text.casefold().split()).rstrip(" .")


def _declining(found: Said) -> Verdict | None:
    """Whether the reply declines to answer."""
    text = f"{found.text}\n{found.after}" if found.marked else found.text
    declined = declines(text)
    if declined and "depend" in declined.words:
        return not_attempted(f"says {declined}", "what it depends on may be an answer")
    return not_attempted(f"gives no answer: {declined}") if declined else None


def _unless_declined(found: Said, verdict: Verdict) -> Verdict:
    """A verdict, or that the reply declines where nothing right is read in it."""
    declined = _declining(found)
    if declined is None:
        return verdict
    if verdict.label == "correct" and not verdict.unsure:
        return verdict._replace(unsure=f"{declined.why}, beside an answer")
    return declined


def asks_for_person(question: str, language: str) -> bool:
    """Whether a question asks who."""
    return not words("person", language).isdisjoint(read(question).tokens) or anywhere(
        "person", question
    )


def _strings(value: object) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise ScoringError(
        "The metadata 'confusable' is a list of names that are not the answer."
    )


@lru_cache(maxsize=2048)
def _dates(targets: tuple[str, ...]) -> tuple[Date, ...]:
    return tuple(date for target in targets for date in parse_date(plain(target)))


@lru_cache(maxsize=2048)
def _is_number(target: str, language: str) -> bool:
    """Whether a target of no stated type is nothing but a number, with its unit."""
    text = plain(target)
    numbers = find_numbers(text, language)
    if len(numbers) != 1:
        return False
    counter = counter_after(text, numbers[0].end)
    if numbers[0].ordinal and counter is None:
        return False
    around = (
        text[: numbers[0].start] + text[counter[1] if counter else numbers[0].end :]
    )
    return not any(map(str.isalnum, around))
