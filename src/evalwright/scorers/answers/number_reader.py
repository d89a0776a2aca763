"""Decides which of a reply's numbers is its answer, and whether it is a target.

Value, unit and tolerance count. Numbers in a text are read in `scorers/text/numbers.py`.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from decimal import Decimal, localcontext
from typing import Literal

from evalwright.scorers.answers.number_targets import (
    SLACK,
    NumberTarget,
    Tolerance,
    counter_of,
    round_to_figures,
)
from evalwright.scorers.answers.reply import ParsedReply
from evalwright.scorers.answers.verdict import (
    Verdict,
    correct,
    incorrect,
    unreadable,
)
from evalwright.scorers.text.contrast import behind_turn, is_set_against
from evalwright.scorers.text.cues import cues_of, has_spaceless_cue
from evalwright.scorers.text.folded import ARTICLES, FUNCTION_WORDS, fold_text
from evalwright.scorers.text.normalise import plain
from evalwright.scorers.text.numbers import (
    ABOUT,
    Number,
    find_numbers,
    has_decimal_comma,
)
from evalwright.scorers.text.tokens import word_set
from evalwright.scorers.text.units import (
    PERCENT,
    sentence_pattern,
)

_CONCLUDES = sentence_pattern("concludes")
_CLAUSE = re.compile(
    r"(?<!\d)[,;:.!?(—、，。；：]|[,;:.!?(—、，。；：](?!\d)|\n|\s[–-]\s"
)
_REASON = re.compile(
    r"(?:[,;(]\s*|\s)(?:since|because|as in|weil|denn|da|car|parce"
    r" que|porque|perch[eé])\s",
    re.IGNORECASE,
)
"""Words that introduce the reasoning after a conclusion."""
_SENTENCE_END = re.compile(r"[.!?]\s+\S|\n")
_CONCLUDING_WORD = re.compile(
    r"\b(?:so|therefore|thus|hence|giving|making|gives|makes|total)\b|→|=>|⇒",
    re.IGNORECASE,
)
_CHANGE = re.compile(
    r"\b(?:cut|cuts|reduced|reduces|lowered|dropped|drops|fell|falls|rose|rises|grew|grows"
    r"|increased|increases|decreased|decreases"
    r"|went|goes|changed|changes|shrank|shrinks|raised|raises|expanded|expands|declined"
    r"|declines|brought|brings|bringing"
    r"|cutting|reducing|raising|lowering|dropping|falling|rising)\b[^.;\d]{0,60}\bfrom\s$",
    re.IGNORECASE,
)
"""Verbs of change: a number between one and "to" is the old value ("fell from 9 to 8")."""
_TO = re.compile(r"\s?to\s(?:just |only )?", re.IGNORECASE)
_SUM = re.compile(r"\d ?[-+*×·x^] ?\d(?<!10\^\d)(?!0 ?(?:\^|\*\*) ?\(?[-+−]?\d)")
_BOUND_ASKED = sentence_pattern("asks_for_a_bound")
_ONCE = sentence_pattern("once")
_FOLLOWS = sentence_pattern("follows")
_MEASURES = word_set(
    "percent length mass volume temperature celsius fahrenheit speed energy power"
)
"""Words for what is measured and not counted, so that a round number may be a rounded one."""
_WRONG_BEHIND = re.compile(
    r"\s?(?:is|ist|est|es|è|é)? ?(?:wrong|false|incorrect|not"
    r" right|falsch|faux|falso)\b",
    re.IGNORECASE,
)
MAX_CHANGE_CHARS = 90
"""The verb of a change is looked for in this many characters before a number."""
MAX_SPELLED_WORDS = 8
"""A reply of at most this many words, with no readable number, may be a number in words."""
MAX_UNKNOWN_WORDS = 3
"""Most words beside a number that are neither function words nor the question's."""
_BUDDHIST = 543
"""Years of the Thai era count from 543 BC."""
SMALL_GAP = Decimal("0.01")
LARGE_GAP = Decimal("0.1")
NO_NUMBER = "no number that can be read"
State = Literal["right", "wrong", "unsure"]


class NumberReader:
    """Judges replies against the target numbers of one sample."""

    def __init__(
        self,
        goals: Sequence[NumberTarget],
        tolerance: Tolerance,
        question: str,
        language: str,
    ) -> None:
        plain_question = plain(question[:2000])
        self.goals = goals
        self.tolerance = tolerance
        self.question = plain_question
        self.language = language
        self.cues = cues_of(language)
        self.is_year = any(goal.year for goal in goals)
        self.counters = {goal.counter for goal in goals if goal.counter}
        self.is_ordinal = any(goal.ordinal for goal in goals)
        self.is_asked_roughly = ABOUT.search(question.rstrip(" ?")) is not None or any(
            ABOUT.search(re.split(r"\d", goal.written)[0]) for goal in goals
        )
        self.accepts_range = (
            self.is_asked_roughly or len({goal.value for goal in goals}) > 1
        )
        self.question_numbers = {
            reading
            for number in find_numbers(plain_question, language)
            for reading in number.values
        }
        self.question_stems = frozenset(
            token[:5] for token in fold_text(plain_question).tokens
        )
        long = {
            token
            for token in self.question_stems
            if len(token) > 3 or "\u0900" < token < "\u0e00"
        }
        self.question_nouns = long - {token[:5] for token in FUNCTION_WORDS}

    def judge(self, reply: ParsedReply) -> Verdict:
        """Judge whether a reply, neither empty nor declining, gives a target number."""
        text = self._without_working(reply.text)
        numbers = self._possible_answers(text)
        if not numbers:
            is_unread = self.language != "en" and len(text.split()) <= MAX_SPELLED_WORDS
            return unreadable(
                NO_NUMBER, "perhaps a number in words" if is_unread else ""
            )
        left_behind = [
            number for number in numbers if self._is_left_behind(text, number)
        ]
        numbers = [
            number for number in numbers if not self._is_refused(text, number)
        ] or numbers
        numbers = [
            (
                replace(number, bound=False)
                if any(
                    _TO.fullmatch(text, old.end, number.start) for old in left_behind
                )
                else number
            )
            for number in numbers
        ]

        if (
            "=" not in text
            and len(_SUM.findall(text))
            and len(numbers) > 1
            and self._count_unknown_words(text) == 0
        ):
            return incorrect(
                f"'{text[:60]}' is not worked out", "a sum that is not worked out"
            )
        answer, is_firm = self._choose_answer(text, reply, numbers)
        state = self._compare(answer)
        if state == "right" and self._counts_otherwise(text, answer):
            state = "unsure"
        quoted = f"'{_as_written(text, answer)}'"
        is_right = state == "right"
        if self._is_denied(text, answer):
            return incorrect(f"{quoted} is denied")
        if answer.bound and not _BOUND_ASKED.search(self.question):
            return self._judge_bound(text, answer, numbers)
        if state == "unsure":
            return incorrect(
                f"{quoted} is not the target",
                f"{quoted} may be the target, rounded or in another form",
            )
        states = {self._compare(number) for number in numbers}
        doubt = (
            ""
            if is_firm or states <= {state} or "right" not in states
            else "several numbers"
        )
        if is_right:
            return correct(f"{quoted} is the target number", doubt)
        if (
            answer.word
            and self.language != "en"
            and counter_of(text, answer) not in self.counters
        ):
            doubt = doubt or "a number in words"
        return incorrect(f"{quoted} is another number", doubt)

    def _judge_bound(
        self, text: str, answer: Number, numbers: Sequence[Number]
    ) -> Verdict:
        """Judge a limit, or one end of a range, if the question asks for a number."""
        quoted = f"'{_as_written(text, answer)}'"
        if self.accepts_range and self._is_in_range(answer, numbers):
            return correct(f"{quoted} is in a range that holds the target", "a range")

        is_cut = answer.word or answer.unit is not None
        # The question's numbers count here too: "189 or 190" names the target.
        is_open = is_cut or any(
            self._compare(number) == "right"
            for number in (answer, *find_numbers(text, self.language))
        )
        return incorrect(
            f"{quoted} is a bound or in a range",
            "a bound or a range" if is_open else "",
        )

    # -- which number is the answer

    def _without_working(self, text: str) -> str:
        """Remove calculations that give reasons: "It is 51, since 10x3=30 and 7x3=21"."""
        reason = _REASON.search(text)
        if reason is None or not _SUM.search(text, reason.end()):
            return text
        is_last = _SENTENCE_END.search(
            text, reason.end()
        ) is None and not _CONCLUDING_WORD.search(text, reason.end())
        before = text[: reason.start()]
        return before if is_last and self._possible_answers(before) else text

    def _possible_answers(self, text: str) -> list[Number]:
        """List the numbers that may be the answer.

        Years beside the answer, numbers of the question and operands of an equation are left out.
        """
        numbers = [
            number
            for number in find_numbers(text, self.language)
            if self.is_ordinal or not number.ordinal
        ]
        if any(counter_of(text, number) in self.counters for number in numbers):
            numbers = [
                number for number in numbers if not self._counts_otherwise(text, number)
            ]
        years_only = [number for number in numbers if _looks_like_year(number)]
        if self.is_year:
            numbers = years_only or numbers
        else:
            cardinals = [number for number in numbers if number not in years_only]
            numbers = (
                numbers
                if any(1000 <= goal.value <= 2100 for goal in self.goals)
                else cardinals or numbers
            )
        unasked = [
            number
            for number in numbers
            if not set(number.values) & self.question_numbers
        ]
        numbers = unasked or (
            numbers if self._count_unknown_words(text) <= MAX_UNKNOWN_WORDS else []
        )
        return [
            number
            for index, number in enumerate(numbers)
            if not any(_restates(number, earlier) for earlier in numbers[:index])
        ]

    def _counts_otherwise(self, text: str, number: Number) -> bool:
        """Return whether a number counts or measures something other than the target."""
        if not self.counters:
            return False
        counter = counter_of(text, number)
        return number.unit is not None or (
            bool(counter) and counter not in self.counters
        )

    def _choose_answer(
        self, text: str, reply: ParsedReply, numbers: Sequence[Number]
    ) -> tuple[Number, bool]:
        """Choose the number that answers the question, and say whether that choice is certain.

        In this order: in bold, alone at the beginning, in a conclusion, before a noun of the
        question, the first.
        """
        first = numbers[0]
        if len(reply.bold) == 1 and (start := text.rfind(reply.bold[0])) >= 0:
            inside = [
                number
                for number in numbers
                if start <= number.start < start + len(reply.bold[0])
            ]
            if inside:
                return inside[0], True

        edges = [
            0,
            *(edge for mark in _CLAUSE.finditer(text) for edge in mark.span()),
            len(text),
        ]
        spans = list(zip(edges[::2], edges[1::2], strict=True))
        clauses = [
            [number for number in numbers if start <= number.start < stop]
            for start, stop in spans
        ]
        holding = [
            (span, inside)
            for span, inside in zip(spans, clauses, strict=True)
            if inside
        ]
        if not holding:
            return first, False
        start, stop = holding[0][0]
        is_alone = start == 0 and len(text[start:stop].split()) <= 2
        if is_alone and not _SUM.search(text[start:stop]):
            return first, True
        start, stop = holding[-1][0]
        if _CONCLUDES.search(text[start:stop]) or _SUM.search(text):
            equals = text.rfind("=", start, stop)
            follows = max(
                (match.end() for match in _FOLLOWS.finditer(text, start, stop)),
                default=0,
            )
            last = [
                number
                for number in holding[-1][1]
                if number.start >= max(equals, follows)
            ]
            behind = last or [
                number for number in holding[-1][1] if number.start > equals
            ]
            return (behind or holding[-1][1])[0], _CONCLUDES.search(
                text[start:stop]
            ) is not None
        counting = [
            number for number in numbers if self._counts_what_is_asked(text, number)
        ]
        if counting:
            is_plain = counting[0] is first and not self._count_unknown_words(
                text[: first.start]
            )
            return counting[0], is_plain
        return first, False

    def _is_denied(self, text: str, number: Number) -> bool:
        """Return whether a number is negated, before it in its clause or after it."""
        start = max(
            (mark.end() for mark in _CLAUSE.finditer(text, 0, number.start)), default=0
        )
        before = behind_turn(
            text[max(start, number.start - 30) : number.start], self.cues
        )
        if is_set_against(text, number.start, number.end):
            return True
        if self.cues.denies(
            fold_text(before).tokens, before
        ) or before.rstrip().endswith(("≠", "!=")):
            return True
        stop = next(
            (mark.start() for mark in _CLAUSE.finditer(text, number.end)), len(text)
        )
        behind = re.split('["(（]', text[number.end : min(stop, number.end + 12)])[0]
        return (
            has_spaceless_cue("negation", behind)
            or _WRONG_BEHIND.match(text, number.end) is not None
        )

    def _is_in_range(self, answer: Number, numbers: Sequence[Number]) -> bool:
        """Return whether a number is one end of a range that contains a target."""
        ends = [number.value for number in numbers if number.bound]
        return len(ends) == 2 and any(
            min(ends) <= goal.value <= max(ends) for goal in self.goals
        )

    def _is_refused(self, text: str, number: Number) -> bool:
        """Return whether the text rejects this number: "not 365 but", "instead of 365"."""
        before = _CLAUSE.split(text[max(0, number.start - 24) : number.start])[-1]
        if _ONCE.search(before) or self._is_left_behind(text, number):
            return True
        return is_set_against(text, number.start, number.end)

    def _is_left_behind(self, text: str, number: Number) -> bool:
        """Return whether a number is the old value of a change: "fell from 9 to 8"."""
        change = _CHANGE.search(
            text[max(0, number.start - MAX_CHANGE_CHARS) : number.start]
        )
        return change is not None and _TO.match(text, number.end) is not None

    def _counts_what_is_asked(self, text: str, number: Number) -> bool:
        """Return whether the word after a number is a noun of the question."""
        after = _CLAUSE.split(text[number.end : number.end + 40])[0]
        tokens = [
            token for token in fold_text(after).tokens if token not in FUNCTION_WORDS
        ]
        return bool(tokens) and tokens[0][:5] in self.question_nouns

    def _count_unknown_words(self, text: str) -> int:
        """Count the words that are neither function words nor words of the question."""
        for number in reversed(find_numbers(text, self.language)):
            text = f"{text[: number.start]} {text[number.end :]}"
        tokens = [
            token
            for token in fold_text(text).tokens
            if len(token) > 2 and token not in FUNCTION_WORDS | ARTICLES
        ]
        return sum(
            token[:5] not in self.question_stems and not ABOUT.fullmatch(token)
            for token in tokens
        )

    # -- whether a number is a target

    def _compare(self, number: Number) -> State:
        """Compare a number with the targets; "unsure" if it may be one, rounded or rewritten."""
        with localcontext() as context:
            context.prec = 40
            readings = [
                [self._compare_value(reading, number, goal) for goal in self.goals]
                for reading in number.values
            ]
        if "right" in readings[0]:
            return "right"
        states = {state for reading in readings for state in reading}
        if "right" in states:
            return "right" if has_decimal_comma(self.language) else "unsure"
        return "unsure" if "unsure" in states else "wrong"

    def _compare_value(
        self, value: Decimal, number: Number, goal: NumberTarget
    ) -> State:
        unit = number.unit
        kinds = [
            side.dimensions[0][0]
            for side in (unit, goal.unit)
            if side and side.dimensions
        ]
        if kinds in (
            ["angle", "celsius"],
            ["angle", "fahrenheit"],
            ["celsius", "angle"],
        ):
            unit = (
                None if kinds[0] == "angle" else goal.unit
            )  # "100 degrees", "100도" of an angle
        converted_value = value
        target_value = goal.value
        if unit and goal.unit and unit != goal.unit:
            converted = unit.of(value, goal.unit)
            back = goal.unit.of(goal.value, unit)
            if converted is None or back is None:
                return "wrong"
            converted_value = converted
            target_value = back
        if self.tolerance.allows(converted_value, goal) or (
            unit is None and self.tolerance.allows(value * goal.scale, goal)
        ):
            return (
                "unsure"
                if unit and not goal.unit and unit.dimensions == PERCENT
                else "right"
            )
        if (unit is None) != (goal.unit is None):
            share = PERCENT in (
                unit and unit.dimensions,
                goal.unit and goal.unit.dimensions,
            )
            ratios = [Decimal(100) if unit else Decimal("0.01")] * share + [
                *(unit.ratios() if unit else ())
            ]
            if (
                goal.fraction
                and share
                and self.tolerance.allows(value / ratios[0], goal)
            ):
                return "right"
            if any(
                ratio != 1 and _relative_gap(value / ratio, goal.value) <= SMALL_GAP
                for ratio in ratios
            ):
                return "unsure"
        return self._compare_rounded(
            value, target_value, number, goal, converted=converted_value != value
        )

    def _compare_rounded(
        self,
        value: Decimal,
        target_value: Decimal,
        number: Number,
        goal: NumberTarget,
        *,
        converted: bool,
    ) -> State:
        """Return whether a number is the target rounded, less rounded, or approximated."""
        if goal.year or not target_value:
            gap = abs(value - target_value)
            return (
                "unsure"
                if goal.year
                and (gap == _BUDDHIST or (number.approximate and gap <= 10))
                else "wrong"
            )
        if value == -target_value:
            return "unsure" if number.figures > 2 else "wrong"
        off = _relative_gap(value, target_value)
        are_integers = value == int(value) and goal.value == int(goal.value)
        if (
            are_integers
            and abs(target_value) < 100
            and not (goal.unit and goal.unit.dimensions[0][0] in _MEASURES)
        ):
            # A count is exact.
            return "unsure" if number.approximate and off <= LARGE_GAP else "wrong"
        if (
            converted
            and number.figures >= 3
            and abs(value - target_value)
            <= number.step * (1 + SLACK) / (1 if number.figures > 3 else 2)
        ):
            return "right"
        figures = len(value.normalize().as_tuple().digits)
        rounded = round_to_figures(target_value, figures) == value
        if rounded and off <= SMALL_GAP and self.is_asked_roughly and figures >= 2:
            return (  # never for an "about" in the reply: a hedge must not raise a score
                "right"
            )
        if (
            not are_integers
            and figures > goal.figures
            and round_to_figures(value, goal.figures) == target_value
        ):
            return "right" if goal.figures >= 4 else "unsure"
        if (
            rounded
            and figures >= 4
            and not goal.fraction
            and off <= SMALL_GAP / 20
            and (not are_integers or abs(target_value) >= 10**6)
        ):
            return "right"
        if figures < goal.figures and off <= SMALL_GAP:
            return "unsure"
        return (
            "unsure"
            if off
            <= (
                LARGE_GAP
                if number.approximate or converted
                else LARGE_GAP / 2 * rounded
            )
            else "wrong"
        )


def _relative_gap(value: Decimal, target_value: Decimal) -> Decimal:
    return abs(value - target_value) / abs(target_value) if target_value else Decimal(1)


def _as_written(text: str, number: Number) -> str:
    return text[number.start : number.end].strip()


def _looks_like_year(number: Number) -> bool:
    plain_year = number.unit is None or number.unit.dimensions == (("year", 1),)
    return (
        not number.word
        and plain_year
        and 1000 <= number.value <= 2100
        and number.value == int(number.value)
        and number.figures == 4
    )


def _restates(number: Number, earlier: Number) -> bool:
    """Return whether a number repeats an earlier one in another unit or form."""
    if set(number.values) & set(earlier.values):
        return number.unit == earlier.unit or len(number.values) > 1
    if (
        number.unit is not None
        and number.unit.dimensions == PERCENT
        and earlier.unit is None
    ):
        return number.value == earlier.value * 100
    if number.unit and earlier.unit:
        converted = number.unit.of(number.value, earlier.unit)
    elif number.unit is earlier.unit:
        converted = number.value
    else:
        converted = None
    close = (
        converted is not None
        and earlier.value
        and abs(converted - earlier.value) <= abs(earlier.value) * Decimal("0.006")
    )
    return bool(
        close
        and (
            number.unit != earlier.unit
            or number.approximate
            or number.figures <= 3 < earlier.figures
        )
    )
