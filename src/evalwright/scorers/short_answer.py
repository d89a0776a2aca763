"""Short answers: does the reply give the target, or one of its aliases, as its answer?

Rules only, no model. Every verdict says which words and which rule led to it. docs/scorers.md explains the rules on one page.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.abstention import abstains, abstains_before
from evalwright.scorers.alternatives import among_alternatives
from evalwright.scorers.dates import Date, Found, find_dates, parse_date
from evalwright.scorers.echo import without_question
from evalwright.scorers.names import Match, Names, prepare
from evalwright.scorers.numbers.agree import read_tolerance
from evalwright.scorers.numbers.judge import NO_NUMBER, NumberTask, judge_number, number_task
from evalwright.scorers.numbers.parse import find_numbers
from evalwright.scorers.polarity import denied_before, in_question, negated, taken_back
from evalwright.scorers.text.normalise import answer_region, plain
from evalwright.scorers.text.tokens import Words
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted
from evalwright.scorers.yes_no import judge_yes_no, polarity_of

_OTHER_DAY = re.compile(r"\d(?:st|nd|rd|th)?\s*(?:or|to|and|-|–|/)\s*(?:the )?$", re.IGNORECASE)
_SIGNS = re.compile(r"[^\w\s]{1,20}")
Kind = Literal["name", "number", "date", "yes_no", "phrase"]


class _Goal(NamedTuple):
    """What is right, prepared once: the kind of answer and its targets in that kind's form."""

    kind: Kind
    names: Names
    number: NumberTask | None = None
    dates: tuple[Date, ...] = ()
    polarity: str = ""


def short_answer(sample: Sample, answer: Answer) -> Score:
    """1.0 where the answer gives a target, else 0.0; labels "correct", "incorrect", "not_attempted".

    Reads `sample.targets` (the canonical form and its aliases) and the metadata `answer_type` ("name", "number", "date",
    "yes_no", "none"; worked out from the targets where it is missing), `unit`, `tolerance` and `language`. Where a target
    itself says that there is no answer ("No answer", "not stated"), the targets are phrases, and finding one is enough.
    """
    metadata = sample.metadata
    language = str(metadata.get("language") or "en")
    goal = _goal(
        sample.targets, str(metadata.get("answer_type") or ""), str(metadata.get("unit") or ""), language
    )
    region = answer_region(answer.text)
    if goal.names.symbols and (symbol := _symbol(region, goal.names.symbols)):
        return correct(f"'{symbol}' is a target as written").score()
    words = Words(plain(region))
    if not words.tokens:
        if goal.names.symbols and region.strip():
            return incorrect("other signs than the target").score()
        return not_attempted("the answer is empty").score()
    words = without_question(words, sample.input)
    if not words.tokens:
        return not_attempted("the answer only repeats the question").score()
    if goal.kind == "phrase":
        return _judge_phrase(words, goal.names).score()
    if goal.number is not None:
        verdict = judge_number(
            words, goal.number, read_tolerance(metadata.get("tolerance")), sample.input, language
        )
        # An alias in other words, such as "half past six"; digits alone were judged as numbers.
        found = goal.names.find(words, strict=True) if verdict.why == NO_NUMBER else []
        found = [match for match in found if any(map(str.isalpha, words.tokens[match.start]))]
        if found:
            verdict = _judge_found(words, goal.names, found, language)
    elif goal.dates:
        verdict = _judge_date(words, goal, sample.input, language)
    elif goal.polarity:
        verdict = judge_yes_no(words, goal.polarity, sample.input, language)
    else:
        verdict = _judge_name(words, goal.names, language)
    return verdict.score()


@lru_cache(maxsize=2048)
def _goal(targets: tuple[str, ...], answer_type: str, unit: str, language: str) -> _Goal:
    names = prepare(targets)
    if answer_type == "none" or any(_is_abstention(target) for target in names.targets):
        return _Goal("phrase", names)
    if answer_type in ("yes_no", "") and (polarity := polarity_of(targets, language)):
        return _Goal("yes_no", names, polarity=polarity)
    if answer_type in ("date", ""):
        dates = tuple(date for target in targets for date in parse_date(target))
        if dates and (answer_type == "date" or max(date.parts for date in dates) > 1):
            return _Goal("date", names, dates=dates)
    if answer_type == "number" or (answer_type in ("", "date") and _is_number(names.targets[0], language)):
        number = number_task(targets, unit, language)
        if number is not None:
            return _Goal("number", names, number=number)
    return _Goal("name", names)


def _is_abstention(target: Words) -> bool:
    return bool(target.tokens) and bool(abstains(target))


def _is_number(target: Words, language: str) -> bool:
    """Whether a target of no stated type is nothing but a number, with its unit."""
    numbers = find_numbers(target, language)
    if len(numbers) != 1 or numbers[0].ordinal:
        return False
    number = numbers[0]
    around = target.text[: number.start] + target.text[max(number.end, number.unit_end) :]
    return not any(char.isalnum() for char in around)


def _symbol(region: str, symbols: tuple[str, ...]) -> str:
    """The target without letters that stands in the answer, not as a part of a longer run of signs."""
    for symbol in symbols:
        runs = _SIGNS.findall(region)
        if symbol in runs or any(run.strip("`'\"*.,()") == symbol for run in runs):
            return symbol
    return ""


def _judge_phrase(words: Words, names: Names) -> Verdict:
    found = names.find(words)
    if found:
        return correct(f"{words.quote(found[0].start, found[0].end)} is one of the expected phrases")
    if abstention := abstains(words):
        return not_attempted(f"gives no answer: {abstention}")
    return incorrect("none of the expected phrases in the answer")


def _judge_name(words: Words, names: Names, language: str) -> Verdict:
    if f" {words.joined.strip()} " in names.forms:
        return correct(f"{words.quote(0, len(words.tokens))} is a target as written")
    found = names.find(words)
    if not found:
        if abstention := abstains(words):
            return not_attempted(f"gives no answer: {abstention}")
        return incorrect("no target in the answer")
    return _judge_found(words, names, found, language)


def _judge_found(words: Words, names: Names, found: list[Match], language: str) -> Verdict:
    """Targets stand in the answer: is one of them affirmed, and not withdrawn?"""
    affirmed: Match | None = None
    reason = ""
    for match in found:
        place = (match.start, match.end)
        if denial := negated(words, place, language):
            reason = f"{words.quote(*place)} is denied by {denial}"
            if affirmed is not None and denied_before(words, place, language):
                return incorrect(f"{reason} after it was given")
        elif in_question(words, place):
            reason = reason or f"{words.quote(*place)} is only asked about"
        else:
            affirmed = match
    if affirmed is None:
        if abstains(words) and "denied" in reason:
            return not_attempted(f"gives no answer; {reason}")
        return incorrect(reason)
    return _judge_affirmed(words, names, affirmed)


def _judge_affirmed(words: Words, names: Names, match: Match) -> Verdict:
    """A target stands in the answer undenied: is it given as the answer?"""
    place = (match.start, match.end)
    shown = words.quote(*place)
    if other := among_alternatives(words, place, lambda start, end: names.contains(words, start, end)):
        return incorrect(f"{shown} is one of several candidates: {other}")
    if marker := taken_back(words, place):
        return incorrect(f"{shown} is taken back by {marker}")
    if abstention := abstains_before(words, place):
        return not_attempted(f"gives no answer: '{abstention}'")
    return correct(f"{shown} is a target {match.rule}")


def _judge_date(words: Words, goal: _Goal, question: str, language: str) -> Verdict:
    found = find_dates(words)
    asked = {reading for date in find_dates(Words(plain(question[:1000]))) for reading in date.readings}
    kept = [date for date in found if asked.isdisjoint(date.readings)] or found
    if not kept:
        if goal.names.find(words):
            return _judge_name(words, goal.names, language)
        if abstention := abstains(words):
            return not_attempted(f"gives no answer: {abstention}")
        return incorrect("no date in the answer")
    fewest = min(date.parts for date in goal.dates)
    full = [date for date in kept if max(reading.parts for reading in date.readings) >= fewest]
    reason = ""
    for position, date in enumerate(full or kept):
        shown = f"'{words.text[date.start : date.end]}'"
        place = _tokens_between(words, date)
        if denial := negated(words, place, language):
            reason = f"{shown} is denied by {denial}"
            continue
        if not _date_agrees(date, goal.dates):
            return incorrect(f"{shown} is not the date" + ("" if full else ", or not all of it"))
        if _OTHER_DAY.search(words.text[max(0, date.start - 16) : date.start]) is not None:
            return incorrect(f"{shown} is one of several dates")
        following = full[position + 1 : position + 2]
        between = words.text[date.end : following[0].start].strip() if following else ""
        if between in ("or", "to", "-", "–", "/") and not _date_agrees(following[0], goal.dates):
            return incorrect(f"{shown} is one of several dates")
        return correct(f"{shown} is the date")
    return incorrect(reason or "no date in the answer")


def _date_agrees(found: Found, targets: tuple[Date, ...]) -> bool:
    """Whether a reading has all parts of a target and contradicts none of the fullest targets.

    An alias without a year ("14 June") does not let another year in where a fuller alias names one.
    """
    most = max(target.parts for target in targets)
    fullest = [target for target in targets if target.parts == most]
    return any(
        reading.covers(target) and any(not reading.conflicts(full) for full in fullest)
        for reading in found.readings
        for target in targets
    )


def _tokens_between(words: Words, date: Found) -> tuple[int, int]:
    inside = [
        index for index, (start, end) in enumerate(words.spans) if start < date.end and end > date.start
    ]
    return inside[0], inside[-1] + 1
