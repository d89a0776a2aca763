"""Filters of a board's models by what is known of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.analysis.board import make_board
from evalwright.analysis.fact_filters import Fact, read_filter
from evalwright.core.errors import EvalwrightError, RunError, UnknownName, UsageError
from support.runs import make_run


@pytest.mark.parametrize(
    ("text", "fact", "fits"),
    [
        ("size<=8", 8, True),
        ("size<=8", 8.5, False),
        ("size<8", 8, False),
        ("size>7.9", 8, True),
        ("size=8", 8.0, True),
        ("size!=8", 8.0, False),
        ("open=true", True, True),
        ("open = No", False, True),
        ("open!=yes", True, False),
        ("licence=MIT", "mit", True),
        ("licence!=mit", "apache-2.0", True),
        ("released>=2026-01", "2026-03-01", True),
        ("released<2026-01", "2026-03-01", False),
        ("name==a=b", "A=b", True),
    ],
)
def test_conditions(text: str, fact: Fact, fits: bool) -> None:
    assert read_filter(text).fits(fact) is fits


@pytest.mark.parametrize("text", ["", "size", "size<=", "<=8", "=", "size<=\n"])
def test_what_is_no_condition_is_said(text: str) -> None:
    with pytest.raises(UsageError, match="--where takes KEY=VALUE"):
        read_filter(text)


@pytest.mark.parametrize(("text", "fact"), [("size<=big", 8), ("open=maybe", True)])
def test_a_value_of_another_type_is_said(text: str, fact: Fact) -> None:
    with pytest.raises(UsageError):
        read_filter(text).fits(fact)


def test_a_board_has_the_models_that_fulfil_all(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=[1] * n + [0] * (10 - n), model=f"demo/m{n}")
        for n in (9, 5, 7, 3)
    ]
    facts: list[dict[str, Fact]] = [
        {"size": 70, "open": True},
        {"size": 8, "open": True},
        {"size": 1, "open": False},
        {"size": None},
    ]
    where = [read_filter("size<=70"), read_filter("open=true")]
    board = make_board(runs, facts=facts, where=where)
    assert [row.model for row in board.rows] == ["demo/m9", "demo/m5"]
    assert [row.run_index for row in board.rows] == [0, 1]
    assert board.rows[0].facts == {"size": 70, "open": True}
    assert board.notes[0] == (
        "Models with size<=70 and open=true: 2 of 4; ranks are among them."
    )
    assert board.notes[1].startswith("Left out, because 'size' is not known: 1 model")
    assert all(len(node.estimates) == 2 for node in board.tree)
    (small,) = make_board(runs, facts=facts, where=[read_filter("size<8")]).rows
    assert (small.model, small.run_index) == ("demo/m7", 2)


@pytest.mark.parametrize(
    ("text", "error", "words"),
    [
        ("siez<=8", UnknownName, "Did you mean 'size'"),
        ("size<=0", RunError, "No model matches --where size<=0."),
        ("cost<1", RunError, "'cost' is not known: 1 model"),
        ("date>=2000", None, ""),
        ("model=demo/small", None, ""),
    ],
)
def test_unknown_facts_and_empty_boards(
    tmp_path: Path, text: str, error: type[EvalwrightError] | None, words: str
) -> None:
    run = make_run(tmp_path, scores=[1, 0])
    where = [read_filter(text)]
    if error is None:
        assert len(make_board([run], facts=[{"size": 8}], where=where).rows) == 1
        return
    with pytest.raises(error) as raised:
        make_board([run], facts=[{"size": 8}], where=where)
    assert words in str(raised.value)
