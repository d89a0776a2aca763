"""Short answers: does the reply give the target, or one of its aliases, as its answer?

Rules only, no model. Every verdict says which words and which rule led to it. docs/short-answer.md explains the rules on one page.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Literal, NamedTuple

from evalwright.core.errors import ScoringError
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.abstention import abstains, abstains_before
from evalwright.scorers.alternatives import among_alternatives
from evalwright.scorers.assertion import unasserted
from evalwright.scorers.date_judge import judge_date
from evalwright.scorers.dates import Date, parse_date
from evalwright.scorers.echo import without_question
from evalwright.scorers.forms import PARTS, Parts
from evalwright.scorers.names import Match, Names, prepare
from evalwright.scorers.numbers.agree import read_tolerance
from evalwright.scorers.numbers.judge import NO_NUMBER, NumberTask, judge_number, number_task
from evalwright.scorers.numbers.parse import find_numbers
from evalwright.scorers.polarity import denied_before, in_question, negated, taken_back
from evalwright.scorers.text.normalise import answer_place, plain
from evalwright.scorers.text.places import place_in
from evalwright.scorers.text.tokens import Quote, Words
from evalwright.scorers.verdict import Verdict, correct, incorrect, not_attempted
from evalwright.scorers.yes_no import judge_yes_no, polarity_of

_SIGNS = re.compile(r"[^\w\s]{1,20}")
_MOST_MATCHES = 40
"""A reply that names the target more often than this is not read further."""
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
    "yes_no", "none"; worked out from the targets where it is missing), `unit`, `tolerance`, `language`, `parts` (which part
    of a person's name is enough: "full", "surname", "given", "any") and `confusable` (names of others that hold a target).
    Where a target itself says that there is no answer ("No answer", "not stated"), the targets are phrases, and finding one
    is enough. The parts `evidence_start` and `evidence_end` are the place in the answer of the words that decided. Raises
    ScoringError for metadata that say nothing.
    """
    metadata = sample.metadata
    language = str(metadata.get("language") or "en")
    goal = _goal(
        sample.targets,
        str(metadata.get("answer_type") or ""),
        str(metadata.get("unit") or ""),
        language,
        _parts(metadata.get("parts")),
        _strings(metadata.get("confusable")),
    )
    start, end = answer_place(answer.text)
    region = answer.text[start:end]
    verdict, made = _judge(region, goal, sample, language)
    first, last = place_in(region, made, *verdict.span) if verdict.span[1] else (0, 0)
    return verdict.score_at(start + first, start + last) if last else verdict.score()


def _judge(region: str, goal: _Goal, sample: Sample, language: str) -> tuple[Verdict, str]:
    """The verdict, and the plain text that its span counts in."""
    if goal.names.symbols and (symbol := _symbol(region, goal.names.symbols)):
        place = region.index(symbol)
        shown = Quote(f"'{symbol}'", (place, place + len(symbol)))
        return correct(f"{shown} is a target as written", shown), region
    words = Words(plain(region))
    if not words.tokens:
        if goal.names.symbols and region.strip():
            return incorrect("other signs than the target"), region
        return not_attempted("the answer is empty"), region
    words = without_question(words, sample.input)
    if not words.tokens:
        return not_attempted("the answer only repeats the question"), region
    return _judge_words(words, goal, sample, language), words.text


def _judge_words(words: Words, goal: _Goal, sample: Sample, language: str) -> Verdict:
    if goal.kind == "phrase":
        return _judge_phrase(words, goal.names)
    question = sample.input
    if goal.number is not None:
        verdict = judge_number(
            words, goal.number, read_tolerance(sample.metadata.get("tolerance")), question, language
        )
        # An alias in other words, such as "half past six"; digits alone were judged as numbers.
        found = goal.names.find(words, strict=True) if verdict.why == NO_NUMBER else []
        found = [match for match in found if any(map(str.isalpha, words.tokens[match.start]))]
        if found:
            verdict = _judge_found(words, goal.names, found, question, language)
        return verdict
    if goal.dates:
        return judge_date(words, goal.dates, question, language) or _judge_name(
            words, goal.names, question, language
        )
    if goal.polarity:
        return judge_yes_no(words, goal.polarity, question, language)
    return _judge_name(words, goal.names, question, language)


def _parts(value: object) -> Parts:
    if value in (None, "", "full"):
        return "full"
    for known in PARTS:
        if value == known:
            return known
    raise ScoringError(f"The metadata 'parts' is 'full', 'surname', 'given' or 'any', not {value!r}.")


def _strings(value: object) -> tuple[str, ...]:
    if not value:
        return ()
    if isinstance(value, str):
        return (value,)
    if isinstance(value, list | tuple) and all(isinstance(one, str) for one in value):
        return tuple(value)
    raise ScoringError("The metadata 'confusable' is a list of names that are not the answer.")


@lru_cache(maxsize=2048)
def _goal(
    targets: tuple[str, ...],
    answer_type: str,
    unit: str,
    language: str,
    parts: Parts,
    confusable: tuple[str, ...],
) -> _Goal:
    names = prepare(targets, parts, confusable)
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
        shown = words.quote(found[0].start, found[0].end)
        return correct(f"{shown} is one of the expected phrases", shown)
    if abstention := abstains(words):
        return not_attempted(f"gives no answer: {abstention}", abstention)
    return incorrect("none of the expected phrases in the answer")


def _judge_name(words: Words, names: Names, question: str, language: str) -> Verdict:
    if f" {words.joined.strip()} " in names.forms:
        shown = words.quote(0, len(words.tokens))
        return correct(f"{shown} is a target as written", shown)
    found = names.find(words)
    if not found:
        if abstention := abstains(words):
            return not_attempted(f"gives no answer: {abstention}", abstention)
        return incorrect("no target in the answer")
    return _judge_found(words, names, found, question, language)


def _judge_found(words: Words, names: Names, found: list[Match], question: str, language: str) -> Verdict:
    """Targets stand in the answer: is one of them affirmed, and not withdrawn?"""
    affirmed: Match | None = None
    reason = ""
    evidence = ""
    for match in found[:_MOST_MATCHES]:
        place = (match.start, match.end)
        shown = words.quote(*place)
        if denial := negated(words, place, language):
            reason, evidence = f"{shown} is denied by {denial}", shown
            if affirmed is not None and denied_before(words, place, language):
                return incorrect(f"{reason} after it was given", shown)
        elif why := unasserted(words, place, question):
            reason, evidence = reason or f"{shown} is {why}", evidence or shown
        elif in_question(words, place):
            reason, evidence = reason or f"{shown} is only asked about", evidence or shown
        else:
            affirmed = match
    if affirmed is None:
        if "denied" in reason and (abstention := abstains(words)):
            return not_attempted(f"gives no answer; {reason}", abstention)
        return incorrect(reason, evidence)
    return _judge_affirmed(words, names, affirmed, language)


def _judge_affirmed(words: Words, names: Names, match: Match, language: str) -> Verdict:
    """A target stands in the answer undenied: is it given as the answer?"""
    place = (match.start, match.end)
    shown = words.quote(*place)
    if other := among_alternatives(
        words, place, lambda start, end: names.contains(words, start, end), language
    ):
        return incorrect(f"{shown} is one of several candidates: {other}", shown)
    if marker := taken_back(words, place):
        return incorrect(f"{shown} is taken back by {marker}", shown)
    if abstention := abstains_before(words, place):
        return not_attempted(f"gives no answer: {abstention}", abstention)
    return correct(f"{shown} is a target {match.rule}", shown)
