"""Results of long procedures: right ones, wrong ones, and lines that are programs."""

from __future__ import annotations

import json

import pytest

from evalwright.core.errors import ScoringError, UnknownName
from evalwright.core.samples import Answer, Sample, Score
from evalwright.scorers.registry import bind

TRACE = "<Search Procedure>\nstart\n |- Pick two numbers (8, 4)\n  |- Try 8 - 4 = 4. Add 4.\n</Search Procedure>"
COUNTDOWN = {"nums": [8, 4, 3, 2], "target": 6, "search_procedure": TRACE}
TRAVEL = {
    "ground_truth_cities": "Rome**Oslo", "ground_truth_durations": "3**4", "solving_procedure": "<Solving Procedure>\nFirst the Rome.\nThen Oslo.",
}  # fmt: skip
PLAN = "European cities for 6 days\nDay 1-3: Rome\nDay 3: Fly from Rome to Oslo\nDay 3-6: Oslo"


def solution(*lines: str) -> str:
    return "<Solution>\n" + "\n".join(lines) + "\n</Solution>"


def score(kind: str, target: object, text: str) -> Score:
    given = target if isinstance(target, str) else json.dumps(target)
    found = bind("procedure", {"kind": kind}).function(
        Sample("s", targets=(given,)), Answer(text)
    )
    assert isinstance(found, Score)
    return found


@pytest.mark.parametrize(
    ("lines", "right"),
    [
        (("8 - 4 = 4", "4 / 2 = 2", "2 * 3 = 6"), True),
        (("8 - 4 = 4", "", "- 4 ÷ 2 = 2", "2 × 3 = 6."), True),
        (("8 - 4 = 4", "4 + 2 = 6"), False),
        (("8 - 4 = 5", "5 + 3 = 8", "8 - 2 = 6"), False),
        (("8 + 8 = 16", "16 - 8 = 8", "8 - 2 = 6"), False),
        (("3 / 2 = 1", "8 - 1 = 7", "7 - 4 = 3"), False),
        (("__import__('os').system('false') = 6", "1 = 1", "1 = 1"), False),
    ],
)
def test_countdown(lines: tuple[str, ...], right: bool) -> None:
    found = score("countdown", COUNTDOWN, TRACE + solution(*lines))
    assert found.value == right and found.parts["partial_accuracy"] == 1.0
    assert found.parts["extracted"] == 1


def test_partial_credit() -> None:
    assert (
        score("route", "a\nb\nc\nd", "<Route>\na\nb\nx\nd\n</Route>").parts[
            "partial_accuracy"
        ]
        == 0.5
    )
    assert score("route", "a\nb", "<Route>a</Route> no: <Route>\n- a\n- b").value == 1
    assert score("route", "a\nb", "a\nb").parts["extracted"] == 0
    assert (
        score("beliefs", "- the hall\n- the den", "- Ann: hall").parts[
            "partial_accuracy"
        ]
        == 0
    )
    assert (
        score("beliefs", "- She believes the hall\n- the den", "- she, hall").parts[
            "partial_accuracy"
        ]
        == 0.5
    )


def test_travel() -> None:
    steps = "<Solving Procedure>\nfirst Rome, of course\nThen Oslo."
    assert score("travel", TRAVEL, f"{steps}<Plan>{PLAN}</Plan>").value == 1
    assert (
        score(
            "travel", TRAVEL, f"{steps}<Plan>{PLAN.replace('Oslo', 'Bonn')}</Plan>"
        ).value
        == 0
    )
    assert score("travel", TRAVEL, steps).parts == {
        "partial_accuracy": 1.0,
        "extracted": 0.0,
    }


def test_tables() -> None:
    target = "name\tprice\nThe lamp\t$5\ndesk\t10"
    assert (
        score("table", target, "```tsv\nname\tprice\nDesk\t10\nlamp\t5\n```").value == 1
    )
    found = score("table", target, "```tsv\nname\tprice\nlamp\t5\nchair\n```")
    assert found.parts["recall"] == 0.5 and found.parts["precision"] == 1
    assert (
        score("table", target, "name\tprice").value
        == score("table", target, "```tsv\nname\nlamp\n```").value
        == 0
    )


def test_errors() -> None:
    with pytest.raises(UnknownName, match="countdown"):
        bind("procedure", {"kind": "countdwn"})
    with pytest.raises(ScoringError, match="none of a travel"):
        score("travel", "Rome", "Rome")
