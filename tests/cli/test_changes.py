"""`evalwright runs changes`: one text on a change, whose parts agree with each other."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from support.runs import make_run
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")


def make_sides(before: Sequence[float | None], after: Sequence[float | None]) -> None:
    for name, scores in (("before", before), ("after", after)):
        make_run(Path("runs"), scores=scores, name=name, model="demo/shop")


def comment(*rules: str, mode: str = "shown") -> tuple[int, str]:
    """The exit code and the text of a comment about both sides."""
    arguments = [word for rule in rules for word in ("--fail-if", rule)]
    done = typed(
        *("runs", "changes", "before", "after", "--gate", mode, *arguments),
        *("--markdown", "comment.md"),
    )
    assert "Traceback" not in done.text
    return done.code, " ".join(Path("comment.md").read_text().split())


def test_a_drop_has_one_sign_and_one_direction() -> None:
    make_sides([1.0] * 90 + [0.0] * 10, [1.0] * 60 + [0.0] * 40)
    code, text = comment("accuracy drops by more than 5 points")
    assert code == 1
    assert "gate failed" in text
    assert "accuracy dropped by 30.0 points (90% interval" in text
    assert "A - B" not in text and "+30.0" not in text


def test_the_conclusion_of_a_failed_gate_is_its_reason() -> None:
    make_sides([1.0] * 6 + [0.0] * 2, [1.0] * 6 + [0.0] * 2)
    code, text = comment("accuracy drops by more than 5 points", mode="not-ruled-out")
    assert code == 1
    conclusion = text.partition("gate failed")[2].partition("|")[0]
    reason = conclusion.index("Failed: accuracy drops by more than 5 points.")
    assert reason < conclusion.index("No significant difference")
    assert "a drop of more than 5.0 points is not ruled out" in conclusion


def test_a_set_that_is_too_small_and_missing_answers_are_in_the_headline() -> None:
    make_sides([1.0] * 6 + [0.0] * 2, [1.0] * 5 + [0.0] * 3)
    code, text = comment("accuracy drops by more than 3 points")
    assert code == 0
    assert "gate passed, but too few items to decide (would catch" in text
    assert "your margin is 3" in text
    make_sides([1.0] * 90 + [0.0] * 30, [1.0] * 84 + [None] * 36)
    code, text = comment("accuracy drops by more than 3 points")
    assert code == 0
    assert "gate passed provisionally: 36 of 120 answers" in text


def test_a_rule_is_read_before_runs_are_looked_for() -> None:
    done = typed("runs", "changes", "no", "where", "--fail-if", "accuracy falls")
    assert done.code == 2
    assert "cannot be read" in done.err
