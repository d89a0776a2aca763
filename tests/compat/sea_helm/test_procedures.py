"""LongProc's results as published: lines that SEA-HELM's code takes as wrong, and those that end it."""

from __future__ import annotations

import pytest

from evalwright.compat.sea_helm.published.procedures import procedure_worth
from evalwright.compat.sea_helm.published.scoring import SeaHelmRaised

TRACE = "<Search Procedure>\nstart\n |- Pick two numbers (8, 4)\n  |- Try 8 - 4 = 4. Add 4.\n</Search Procedure>"
COUNTDOWN = {"nums": [8, 4, 3, 2], "target": 6, "search_procedure": TRACE}


def solution(*lines: str) -> str:
    return "<Solution>\n" + "\n".join(lines) + "\n</Solution>"


@pytest.mark.parametrize(
    "line",
    [
        "a - 4 = 4",
        "8 / 0 = 4",
        "2(3) = 6",
        "(8, 4) - 4 = 4",
        "print('x') = 4",
        "'8' + '4' = 4",
    ],
)
def test_published_scoring_stops_at_a_line_that_is_no_arithmetic(line: str) -> None:
    with pytest.raises(SeaHelmRaised, match=r"no arithmetic|zero"):
        procedure_worth("countdown", COUNTDOWN, with_first_line(line))


@pytest.mark.parametrize(
    "line",
    [
        "8 - = 4",
        "08 - 4 = 4",
        "9**9**9**9 = 4",
        "(8 - 4) = 4",
        "8 = 8 = 8",
        "1" * 5000 + " - 4 = 4",
        "(" * 900 + "8" + ")" * 900 + " = 4",
        "-" * 900 + "8 - 4 = 4",
    ],
)
def test_published_scoring_takes_other_lines_as_wrong(line: str) -> None:
    assert procedure_worth("countdown", COUNTDOWN, with_first_line(line))[0] == 0


def with_first_line(line: str) -> str:
    return TRACE + solution(line, "4 / 2 = 2", "2 * 3 = 6")


def test_a_route_has_the_line_that_differs_and_beliefs_need_one_each() -> None:
    assert procedure_worth("route", "a\nb\nc\nd", "<Route>a\nx</Route>")[1] == 0.5
    with pytest.raises(SeaHelmRaised, match="1 beliefs and the reference 2"):
        procedure_worth("beliefs", "- a hall\n- den", "- hall")
