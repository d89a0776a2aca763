"""Scores results of long procedures as in LongProc (Ye et al. 2025).

A line of a solution is read by a parser of arithmetic and never run; a trace counts up to its first
difference.
"""

from __future__ import annotations

import csv
import json
import re
import string
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import Any

from evalwright.core.errors import ScoringError, check_known
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import checked

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_BELIEF_WORDS = re.compile(
    r"\b(a|an|the|on|in|at|step|thinks?|believes?|is|are|of|location|knows?|belief)\b"
)


class _UnreadablePlan(Exception):
    """A plan with a number that is none."""


KINDS = ("countdown", "route", "beliefs", "travel", "table")


def _check(options: Mapping[str, Any]) -> None:
    check_known("kind of procedure", [options["kind"]], KINDS)


@checked(_check)
def procedure(sample: Sample, answer: Answer, *, kind: str) -> Score:
    """Score 1.0 if the result of a long procedure is right, else 0.0; for a table F1 of its rows.

    The target is a text; for countdown and travel it is a JSON object with LongProc's fields. The
    part "extracted" says whether there was a result.

    Args:
        kind: "countdown" (three equations in <Solution>), "route" (lines in <Route>), "beliefs"
            (bullets) or "travel" (cities and days in <Plan>), each with the part
            "partial_accuracy", the share of the procedure before the first difference; or "table"
            (a block ```tsv), with the parts "precision" and "recall".

    Raises:
        ScoringError: the target is not one of that kind.
    """
    return score_procedure(sample, answer.text, kind)


def score_procedure(sample: Sample, text: str, kind: str) -> Score:
    """Score a text as `procedure` does an answer."""
    if kind == "table":
        block = _inside("```tsv", "```", text)
        precision, recall, f1, why = _table(sample.target, block)
        parts = {
            "precision": precision,
            "recall": recall,
            "extracted": float(block is not None),
        }
        return Score(f1, "", block or why, parts)
    try:
        target = (
            json.loads(sample.target)
            if kind in ("countdown", "travel")
            else sample.target
        )
        right, partly, extracted = _worth(kind, target, text)
    except _UnreadablePlan as error:
        right = 0.0
        partly = 0.0
        extracted = str(error)
    except (ValueError, KeyError, TypeError, IndexError, ZeroDivisionError) as error:
        raise ScoringError(
            f"The target of the sample '{sample.id}' is none of a {kind}: {error}."
        ) from None
    parts = {"partial_accuracy": partly, "extracted": float(extracted is not None)}
    return Score(right, "correct" if right else "incorrect", extracted or "", parts)


_TAGS = {
    "countdown": ("<Solution>", "</Solution>"),
    "route": ("<Route>", "</Route>"),
    "travel": ("<Plan>", "</Plan>"),
}


def _worth(kind: str, label: Any, text: str) -> tuple[float, float, str | None]:
    """Whether a result is right, the share of the procedure that agrees, and the extracted result
    (None for none).
    """
    if kind == "beliefs":
        return (*_beliefs(label, text), text.strip())
    extracted = _inside(*_TAGS[kind], text)
    if kind == "route":
        return (*_route(label, extracted), extracted)
    of_search = _countdown if kind == "countdown" else _travel
    return (*of_search(label, text, extracted), extracted)


def _inside(opening: str, closing: str, text: str) -> str | None:
    """What follows the last opening tag, up to its closing one; None without it."""
    start = text.rfind(opening)
    if start < 0:
        return None
    return text[start + len(opening) :].partition(closing)[0].strip()


def _same_lines(lines: Sequence[str], reference: Sequence[str]) -> int:
    """Count the equal lines before the first difference."""
    return sum(
        1
        for _ in takewhile(
            lambda pair: pair[0] == pair[1], zip(lines, reference, strict=False)
        )
    )


def _share_before_difference(
    lines: Sequence[str],
    reference: Sequence[str],
    same: Callable[[str, str], bool],
) -> float:
    """The share of reference lines before the first difference."""
    for index, (line, reference_line) in enumerate(zip(lines, reference, strict=False)):
        if not same(line, reference_line):
            return index / len(reference)
    return min(len(lines), len(reference)) / len(reference)


# -- countdown -------------------------------------------------------------------------

_EQUATION = re.compile(r"(\d{1,12})\s*([-+*/×÷−])\s*(\d{1,12})\s*=\s*(\d{1,12})")
_AROUND = " \t-*•`."


def _countdown(
    label: Mapping[str, Any], text: str, solution: str | None
) -> tuple[float, float]:
    """Whether the solution is right, and the share of the search before its first wrong step."""
    if solution is not None and _is_solution(label["nums"], label["target"], solution):
        return 1.0, 1.0
    return 0.0, _score_search(text, label["search_procedure"])


def _is_solution(nums: Sequence[int], target: int, solution: str) -> bool:
    """Return whether three lines "a + b = c" use each number once and reach the target."""
    stripped_lines = (line.strip(_AROUND) for line in solution.split("\n"))
    lines = [line for line in stripped_lines if line]
    left = list(nums)
    if len(lines) != 3:
        return False
    for line in lines:
        numbers = _read_equation(line)
        if numbers is None:
            return False
        for number in numbers[:2]:
            if number not in left:
                return False
            left.remove(number)
        left.append(numbers[2])
    return left == [target]


def _read_equation(line: str) -> tuple[int, int, int] | None:
    """Read an equation that is true: its two operands and its result; None for any other line."""
    if (equation := _EQUATION.fullmatch(line)) is None:
        return None
    first = int(equation[1])
    sign = equation[2]
    second = int(equation[3])
    outcome = int(equation[4])
    if sign in "/÷":
        computed = first if second and outcome * second == first else None
        return None if computed is None else (first, second, outcome)
    if sign == "+":
        computed = first + second
    elif sign in "*×":
        computed = first * second
    else:
        computed = first - second
    return (first, second, outcome) if computed == outcome else None


def _score_search(text: str, reference: str) -> float:
    """Return the share of search steps before the first difference; a try's result may differ."""
    opening = "<Search Procedure>"
    closing = "</Search Procedure>"
    reference = reference.split(opening)[1].split(closing)[0]
    if opening in text:
        text = text.split(opening)[1]
    mine, theirs = (
        text.split(closing)[0].strip().split("\n") for text in (text, reference)
    )
    if mine[0] != theirs[0]:
        return 0.0
    return _share_before_difference(mine[1:], theirs[1:], _same_step)


def _same_step(step: str, reference_step: str) -> bool:
    if (
        step == reference_step
        or "|- Try" not in reference_step
        or "Pick two numbers" in reference_step
    ):
        return step == reference_step
    dropped = "drop this branch"
    return step.split("=")[0] == reference_step.split("=")[0] and (dropped in step) == (
        dropped in reference_step
    )


# -- routes and beliefs ----------------------------------------------------------------


def _route(reference: str, route_text: str | None) -> tuple[float, float]:
    """Whether a route is right, and the share of its lines before the first difference."""
    if route_text is None:
        return 0.0, 0.0
    lines = (line.strip(_AROUND) for line in route_text.strip().split("\n"))
    mine = [line for line in lines if line]
    theirs = [line.strip(_AROUND) for line in reference.strip().split("\n")]
    if mine == theirs:
        return 1.0, 1.0
    return 0.0, _same_lines(mine, theirs) / len(theirs)


def _beliefs(reference: str, text: str) -> tuple[float, float]:
    """Whether the bullets are the reference's, ignoring small words, and the share before the
    first difference.
    """
    mine = _read_bullets(text)
    theirs = _read_bullets(reference)
    if not theirs:
        raise ValueError("no beliefs")
    if mine == theirs:
        return 1.0, 1.0
    return 0.0, _same_lines(mine, theirs) / len(theirs)


def _read_bullets(text: str) -> list[str]:
    bullets = []
    for line in text.strip().split("\n"):
        if line.startswith("-"):
            stripped = line[1:].strip().lower().translate(_PUNCTUATION).replace("’", "")
            if words := " ".join(_BELIEF_WORDS.sub(" ", stripped).split()):
                bullets.append(words)
    return bullets


# -- tables ----------------------------------------------------------------------------

NO_TABLE = "no table"
NO_ROWS = "a table without rows"
OTHER_COLUMNS = "another number of columns"
UNREADABLE_TABLE = "a table that cannot be read"


def _table(reference: str, table_text: str | None) -> tuple[float, float, float, str]:
    """Score the rows of a table, in any order.

    Rows with missing or extra cells match nothing.

    Returns:
        Precision, recall, F1, and why there is no score ("" if there is one).
    """
    mine = None if table_text is None else _read_table(table_text)
    theirs = _read_table(reference)
    if isinstance(mine, str) or isinstance(theirs, str):
        return 0.0, 0.0, 0.0, str(mine if isinstance(mine, str) else theirs)
    if mine is None or theirs is None:
        return 0.0, 0.0, 0.0, NO_TABLE
    (columns, rows), (columns_wanted, rows_wanted) = mine, theirs
    if not rows or not rows_wanted:
        return 0.0, 0.0, 0.0, NO_ROWS
    if columns != columns_wanted:
        return 0.0, 0.0, 0.0, OTHER_COLUMNS
    row_set = set(rows)
    known_wanted = set(rows_wanted)
    precision = sum(row in known_wanted for row in rows) / len(rows)
    recall = sum(row in row_set for row in rows_wanted) / len(rows_wanted)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return precision, recall, f1, ""


def _read_table(text: str) -> tuple[int, list[tuple[str, ...]]] | str | None:
    """Read the number of columns and the rows of a table.

    Returns:
        Both; None if there is no table; a text that says why the table is unreadable.
    """
    try:
        lines = list(csv.reader(text.strip().split("\n"), delimiter="\t"))
    except csv.Error:
        return UNREADABLE_TABLE
    header = lines[0]
    rows = lines[1:]
    if not rows:
        return None
    if len(rows[-1]) != len(header):
        rows = rows[:-1]
    ragged = ("",) * (len(header) + 1)
    return len(header), [
        tuple(map(_normalise_cell, row)) if len(row) == len(header) else ragged
        for row in rows
    ]


def _normalise_cell(text: str) -> str:
    return "".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


# -- travel plans ----------------------------------------------------------------------

_FLIGHT = re.compile(r"from (\w+) to (\w+)")
_DAY = re.compile(r"Day (\d+)")
_STAY = re.compile(
    r"(?<!\d)\d++-\d+"
)  # starts only at the first digit, since long numbers would otherwise take quadratic time
_TOTAL = re.compile(r"European cities for (\d+) days")
_ASIDE = "Output the plan in the required format:"


def _travel(
    label: Mapping[str, Any], text: str, plan: str | None
) -> tuple[float, float]:
    """Return whether a plan has the right cities, order and days, and the share of right steps.

    That share ends at the first step that differs.
    """
    cities = [city for city in label["ground_truth_cities"].split("**") if city]
    days = [int(stay) for stay in label["ground_truth_durations"].split("**") if stay]
    parsed = [] if plan is None else _read_plan(plan)
    if parsed == list(zip(cities, days, strict=False)):
        return 1.0, 1.0
    opening = "<Solving Procedure>"
    reference_steps = label["solving_procedure"].replace(_ASIDE, "").split(opening)[1]
    steps = text.replace(_ASIDE, "")
    if opening in steps:
        steps = opening + steps.split(opening)[1]
    mine, theirs = (
        [line.rstrip() for line in steps_text.strip().split("\n") if line.strip()]
        for steps_text in (steps, opening + reference_steps)
    )
    return 0.0, _share_before_difference(
        mine,
        theirs,
        lambda line, reference_line: (
            _normalise_line(reference_line) in _normalise_line(line)
        ),
    )


def _read_plan(text: str) -> list[tuple[str, int]]:
    """Read the cities of a plan, each with the days between its flights."""
    stays: list[str] = []
    flights: list[tuple[int, str, str]] = []
    total = None
    try:
        for line in text.split("\n"):
            if total_match := _TOTAL.search(line):
                total = int(total_match[1])
            if stay := _STAY.search(line):
                stays.append(stay[0])
                if int(stay[0].split("-")[1]) == total:
                    break
            if flight := _read_flight(line):
                flights.append(flight)
        if not stays or not flights:
            return []
        days = [1, *(day for day, _, _ in flights), int(stays[-1].split("-")[1])]
    except ValueError as error:
        raise _UnreadablePlan(f"a plan that cannot be read: {error}") from None
    cities = [flights[0][1], *(city for _, _, city in flights)]
    return [
        (city, days[index + 1] - days[index] + 1) for index, city in enumerate(cities)
    ]


def _read_flight(line: str) -> tuple[int, str, str] | None:
    """Read the last flight of a line, with the last day before it."""
    way = next(iter(list(_FLIGHT.finditer(line))[-1:]), None)
    if way is None:
        return None
    day = next(iter(list(_DAY.finditer(line, 0, way.start()))[-1:]), None)
    return None if day is None else (int(day[1]), way[1], way[2])


def _normalise_line(line: str) -> str:
    return " ".join(_ARTICLES.sub(" ", line.lower().translate(_PUNCTUATION)).split())
