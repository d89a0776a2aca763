"""What figures and tables of a comparison emphasise is what its conclusion claims."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from evalwright.analysis.comparison import Comparison
from evalwright.reports.conclusions import claimed_differences, headline
from evalwright.reports.document import Cell, Table
from evalwright.reports.documents.comparison import comparison_document
from evalwright.reports.results import picture
from support.runs import make_run
from support.shown import compare_two, terminal

MAX_HEADLINE_WORDS = 25
"""Beside the names of runs and tasks."""

N_ITEMS = 60


def right(count: int) -> list[float]:
    return [1.0] * count + [0.0] * (N_ITEMS - count)


def compare_by_task(
    folder: Path,
    counts: dict[str, tuple[int, int]],
    metric: dict[str, str] | None = None,
) -> Comparison:
    """Compare runs with so many right answers by task, of A and of B."""
    runs = [
        make_run(
            folder,
            scores={task: right(pair[side]) for task, pair in counts.items()},
            model=model,
            metric=metric or "accuracy",
        )
        for side, model in enumerate(("demo/a", "demo/b"))
    ]
    return compare_two(*runs)


DISAGREEING = {
    "clear": (50, 5),
    "against": (10, 40),
    "doubtful": (13, 8),
    "none": (9, 9),
}
"""On "doubtful" the interval excludes 0 only before Holm's correction."""


def test_a_headline_has_its_interval_and_names_the_task_that_disagrees(
    tmp_path: Path,
) -> None:
    comparison = compare_by_task(tmp_path, {**DISAGREEING, "clear": (60, 0)})
    text = headline(comparison)
    assert re.search(
        r"demo/a scores [\d.]+ points higher than demo/b \(95% interval", text
    )
    assert text.endswith(", but tasks disagree: demo/b is higher on against.")
    assert len(text.split()) <= MAX_HEADLINE_WORDS


def test_a_headline_without_a_difference_says_that_tasks_disagree(
    tmp_path: Path,
) -> None:
    comparison = compare_by_task(tmp_path, {"clear": (50, 10), "against": (10, 50)})
    text = headline(comparison)
    assert text.startswith("No significant difference between demo/a and demo/b")
    assert text.endswith("; tasks disagree: demo/a is higher on 1, demo/b on 1.")
    assert "interval" in text
    assert len(text.split()) <= MAX_HEADLINE_WORDS + len(("demo/a", "demo/b")) * 2


def test_what_is_emphasised_is_what_the_conclusion_claims(tmp_path: Path) -> None:
    comparison = compare_by_task(tmp_path, DISAGREEING)
    doubtful = next(task for task in comparison.tasks if task.task == "doubtful")
    assert doubtful.result.low > 0
    by_task = comparison.conclusion.partition("By task")[2]
    assert "doubtful" not in by_task

    claimed = {
        task.task
        for task, is_claimed in zip(
            comparison.tasks, claimed_differences(comparison), strict=True
        )
        if is_claimed
    }
    assert claimed == {"clear", "against"}
    assert all(task in by_task for task in claimed)

    table = next(
        block
        for block in comparison_document(comparison).blocks
        if isinstance(block, Table)
    )
    strong = {
        str(row[0]).split(" ")[0]
        for row in table.rows
        if isinstance(row[3], Cell) and row[3].tone == "strong"
    }
    assert strong & set(DISAGREEING) == claimed


def test_a_figure_emphasises_claims_names_all_metrics_and_has_the_mean(
    tmp_path: Path,
) -> None:
    pytest.importorskip("matplotlib")
    metric = dict.fromkeys(DISAGREEING, "accuracy") | {"none": "exact-match"}
    view = picture(compare_by_task(tmp_path, DISAGREEING, metric)).view
    assert {row.label for row in view.rows if row.leads} - {"Mean of 4 tasks"} == {
        "clear",
        "against",
    }
    assert view.rows[-1].label == "Mean of 4 tasks"
    assert view.subtitle.startswith("difference in accuracy or exact-match")


def test_a_test_that_few_know_is_explained_where_it_is_used(tmp_path: Path) -> None:
    graded = [
        make_run(
            tmp_path,
            scores=[(index * step % 7) / 7 for index in range(40)],
            model=f"demo/{step}",
        )
        for step in (2, 3)
    ]
    shown = terminal(comparison_document(compare_two(*graded)))
    assert "skewness-adjusted t" in shown
    assert "docs/reference/paired-tests.md" in shown

    plain = terminal(comparison_document(compare_by_task(tmp_path, {"x": (40, 20)})))
    assert "paired-tests.md" not in plain
