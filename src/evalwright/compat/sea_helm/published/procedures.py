"""LongProc's procedures and tables, as published: SEA-HELM's code stops at a line that is no
arithmetic and at traces of unequal length.

A line of a solution is read by a parser of arithmetic and never run.
"""

from __future__ import annotations

import ast
import csv
import operator
import re
import string
import warnings
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from typing import TYPE_CHECKING, Any

from evalwright import Score
from evalwright.compat.sea_helm.published.scoring import (
    Numbers,
    PublishedScoring,
    SeaHelmRaised,
)
from evalwright.compat.sea_helm.sea_task import NULL, Row

if TYPE_CHECKING:
    from evalwright import Column

Worth = tuple[float, float]
"""Whether a result is right, and the share of the procedure that agrees."""


class Procedures(PublishedScoring):
    """LongProc: the share of right results, and how far the procedure agrees. kind (in the table):
    "countdown", "route", "beliefs" or "travel".
    """

    def row_score(self, row: Row, text: str) -> Score:
        right, partly, extracted = procedure_worth(
            self.entry["kind"], row["label"], text
        )
        parts = {
            self.part: partly,
            "right": right,
            "extracted": float(extracted is not None),
        }
        return Score(
            partly, "" if extracted is not None else NULL, extracted or "", parts
        )

    def more(self, column: Column) -> Numbers:
        if (
            self.entry["kind"] == "route"
            and len(set(self.part_values(column, "extracted"))) == 2
        ):
            raise SeaHelmRaised(
                "AttributeError: 'float' object has no attribute 'strip'"
            )
        return {}


class Tables(PublishedScoring):
    """Precision, recall and F1 of the rows of tables, and how many could not be read."""

    def row_score(self, row: Row, text: str) -> Score:
        extracted = _inside("```tsv", "```", text)
        precision, recall, f1, error = _table(str(row["label"]), extracted)
        parts = {
            self.part: f1,
            "precision": precision,
            "recall": recall,
            "error": float(bool(error)),
        }
        return Score(f1, error, extracted or "", parts)


_TAGS = {
    "countdown": ("<Solution>", "</Solution>"),
    "route": ("<Route>", "</Route>"),
    "travel": ("<Plan>", "</Plan>"),
}
_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_BELIEF_WORDS = re.compile(
    r"\b(a|an|the|on|in|at|step|thinks?|believes?|is|are|of|location|knows?|belief)\b"
)


def procedure_worth(
    kind: str, label: Any, text: str
) -> tuple[float, float, str | None]:
    """Whether a result is right, the share of the procedure that agrees, and the extracted result
    (None for none). Raises SeaHelmRaised.
    """
    if kind == "beliefs":
        return (*_beliefs(label, text), text.strip())
    extracted = _inside(*_TAGS[kind], text)
    if kind == "route":
        return (*_route(label, extracted), extracted)
    of_search = _countdown if kind == "countdown" else _travel
    return (*of_search(label, text, extracted), extracted)


def _inside(opening: str, closing: str, text: str) -> str | None:
    """What stands from the first opening to the last closing tag; None without them."""
    start = text.find(opening)
    if start < 0:
        return None
    start += len(opening)
    end = text.rfind(closing, start)
    return None if end < 0 else text[start:end].strip()


def _same_lines(lines: Sequence[str], reference: Sequence[str]) -> int:
    pairs = zip(lines, reference, strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _share_before_difference(
    lines: Sequence[str], reference: Sequence[str], same: Callable[[str, str], bool]
) -> float:
    """The share of reference lines before the first difference; a trace without one has all but
    one.
    """
    for index, (line, reference_line) in enumerate(zip(lines, reference, strict=False)):
        if not same(line, reference_line):
            return index / len(reference)
    if len(lines) != len(reference):
        raise SeaHelmRaised(
            f"the answer has {len(lines):,} lines and the reference {len(reference):,}"
        )
    return (len(reference) - 1) / len(reference)


# -- countdown -------------------------------------------------------------------------


def _countdown(label: Mapping[str, Any], text: str, solution: str | None) -> Worth:
    if solution is not None and _is_solution(label["nums"], label["target"], solution):
        return 1.0, 1.0
    return 0.0, _score_search(text, label["search_procedure"])


def _is_solution(nums: Sequence[int], target: int, solution: str) -> bool:
    """Return whether three lines "a + b = c" use each number once and reach the target."""
    lines = solution.split("\n")
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
    return left[0] == target


def _read_equation(line: str) -> tuple[int, int, int] | None:
    """As `_read_equation`, the way SEA-HELM does: evaluate the left side, split it at its first
    sign.
    """
    sides = line.strip().split("=")
    if len(sides) != 2:
        return None
    left, right = sides
    try:
        computed = _evaluate(left)
        sign = next(
            (operator_sign for operator_sign in "+-*/" if operator_sign in left), None
        )
        if sign is None:
            return None
        first, second = map(int, left.split(sign))
        return (first, second, int(right)) if computed == int(right) else None
    except (ValueError, SyntaxError):
        return None


_OPERATORS: Mapping[type[ast.AST], Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.USub: operator.neg,
    ast.UAdd: operator.pos,
}
MAX_NUMBER = 10**30
MAX_EXPRESSION_CHARS = 1_000


def _evaluate(expression: str) -> float | None:
    """Evaluate an expression of numbers; None for a number that is too large.

    Raises:
        SyntaxError: for text that is no expression.
        SeaHelmRaised: for an expression that is no arithmetic.
    """
    if len(expression) > MAX_EXPRESSION_CHARS:
        raise SyntaxError
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            tree = ast.parse(expression.lstrip(" \t"), mode="eval")
        except (RecursionError, MemoryError):
            raise SyntaxError from None
    try:
        return _evaluate_node(tree.body)
    except RecursionError:
        raise SyntaxError from None
    except ZeroDivisionError:
        raise SeaHelmRaised(f"'{expression.strip()}' divides by zero") from None


def _evaluate_node(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return node.value if abs(node.value) < MAX_NUMBER else None
    if isinstance(node, ast.UnaryOp):
        operands = [_evaluate_node(node.operand)]
    elif isinstance(node, ast.BinOp):
        operands = [_evaluate_node(node.left), _evaluate_node(node.right)]
    else:
        line = ast.unparse(node)
        raise SeaHelmRaised(f"'{line[:60]}' is no arithmetic, and is not run")

    function = _OPERATORS.get(type(node.op))
    if function is None or None in operands:
        return None
    number: float = function(*operands)
    return number if abs(number) < MAX_NUMBER else None


def _score_search(text: str, reference: str) -> float:
    """Return the share of search steps before the first difference; a try's result may differ."""
    opening = "<Search Procedure>"
    closing = "</Search Procedure>"
    reference = reference.split(opening)[1].split(closing)[0]
    if opening in text:
        text = text.split(opening)[1]
    mine, theirs = (
        steps.split(closing)[0].strip().split("\n") for steps in (text, reference)
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


def _route(reference: str, route_text: str | None) -> Worth:
    """The line that differs counts too."""
    if route_text is None:
        return 0.0, 0.0
    mine = route_text.strip().split("\n")
    theirs = reference.strip().split("\n")
    if mine == theirs:
        return 1.0, 1.0
    same = _same_lines(mine, theirs)
    return 0.0, min(same + 1, len(mine), len(theirs)) / len(theirs)


def _beliefs(reference: str, text: str) -> Worth:
    """The bullets, ignoring small words."""
    mine = _read_bullets(text)
    theirs = _read_bullets(reference)
    if not theirs:
        raise SeaHelmRaised("the reference has no beliefs")
    if mine == theirs:
        return 1.0, 1.0
    same = _same_lines(mine, theirs)
    if same == min(len(mine), len(theirs)):
        raise SeaHelmRaised(
            f"the answer has {len(mine):,} beliefs and the reference {len(theirs):,}"
        )
    return 0.0, same / len(theirs)


def _read_bullets(text: str) -> list[str]:
    bullets = []
    for line in text.strip().split("\n"):
        if line.startswith("-"):
            stripped = line[1:].strip().lower().translate(_PUNCTUATION).replace("’", "")
            if words := " ".join(_BELIEF_WORDS.sub(" ", stripped).split()):
                bullets.append(words)
    return bullets


# -- tables ----------------------------------------------------------------------------

_Table = tuple[int, list[tuple[str, ...]]]
"""The number of columns, and the rows."""


def _table(reference: str, table_text: str | None) -> tuple[float, float, float, str]:
    """Precision, recall, F1, and why there is no score ("" if there is one)."""
    mine = None if table_text is None else _read_table(table_text)
    theirs = _read_table(reference)
    if isinstance(mine, str) or isinstance(theirs, str):
        return 0.0, 0.0, 0.0, str(mine if isinstance(mine, str) else theirs)
    if mine is None or theirs is None:
        return 0.0, 0.0, 0.0, "no table"
    (columns, rows), (columns_wanted, rows_wanted) = mine, theirs
    if not rows or not rows_wanted:
        return 0.0, 0.0, 0.0, "a table without rows"
    if columns != columns_wanted:
        return 0.0, 0.0, 0.0, "another number of columns"
    row_set = set(rows)
    known_wanted = set(rows_wanted)
    precision = sum(row in known_wanted for row in rows) / len(rows)
    recall = sum(row in row_set for row in rows_wanted) / len(rows_wanted)
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return precision, recall, f1, ""


def _read_table(text: str) -> _Table | str | None:
    """None for no table, a text for an unreadable one; a row with other cells is one of "na"."""
    try:
        header, *rows = csv.reader(text.strip().split("\n"), delimiter="\t")
    except csv.Error:
        return "a table that cannot be read"
    if not rows or len(set(header)) < len(header):
        return None
    if len(rows[-1]) != len(header):
        rows = rows[:-1]
    ragged = ("na",) * len(header)
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
)  # from the first digit on alone, or long numbers take the square of the time
_TOTAL = re.compile(r"European cities for (\d+) days")
_ASIDE = "Output the plan in the required format:"


def _travel(label: Mapping[str, Any], text: str, plan: str | None) -> Worth:
    """The cities, their order and days; what a plan has behind them counts nothing."""
    cities = [city for city in label["ground_truth_cities"].split("**") if city]
    days = [int(stay) for stay in label["ground_truth_durations"].split("**") if stay]
    parsed = [] if plan is None else _read_plan(plan)
    if parsed[: len(cities)] == list(zip(cities, days, strict=False)):
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
        raise SeaHelmRaised(f"a plan that cannot be read: {error}") from None
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
