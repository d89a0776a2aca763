"""Two runs side by side, against cases small enough to be worked out by hand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.comparison import NOT_FROM_ITEMS, TaskComparison, pair_task
from evalwright.core.errors import RunError
from evalwright.reports.document import Table
from evalwright.reports.documents.comparison import comparison_document
from evalwright.runs.measures import matrices
from evalwright.runs.reader import open_run
from evalwright.statistics import PairedComparison, compare_paired, compare_unpaired
from support.runs import edited, make_run
from support.shown import compare_two as compare_runs


def paired(task: TaskComparison) -> PairedComparison:
    assert task.paired is not None
    return task.paired


def plain(comparison: Any) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(
        json.dumps(comparison.as_dict(), allow_nan=False)
    )
    return found


def test_right_and_wrong_by_hand(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 1, 1, 1, 1, 1, 0, 0, 1, 0], model="demo/a")
    b = make_run(tmp_path, scores=[0, 0, 0, 1, 1, 1, 1, 0, 0, 0], model="demo/b")
    found = compare_runs(a, b)
    task = found.tasks[0]
    assert paired(task).discordant == (4, 1)
    assert paired(task).difference == pytest.approx(0.3)
    alone = compare_paired(
        [1, 1, 1, 1, 1, 1, 0, 0, 1, 0], [0, 0, 0, 1, 1, 1, 1, 0, 0, 0]
    )
    assert paired(task).p_value == pytest.approx(alone.p_value)
    assert (paired(task).n, paired(task).n_missing, task.only_a, task.only_b, task.n_differing) == (
        10, 0, 0, 0, 5,
    )  # fmt: skip
    assert [(flip.id, flip.a, flip.b) for flip in task.flips] == [
        ("item-0", 1, 0), ("item-1", 1, 0), ("item-2", 1, 0), ("item-6", 0, 1), ("item-8", 1, 0),
    ]  # fmt: skip
    assert found.overall is None
    assert found.conclusion.startswith(task.sentence)
    assert (
        "Next: Use a larger set of questions, of about 44 items (there are 10)"
        in found.conclusion
    )
    assert "demo/a" in found.conclusion
    assert found.differences == ()
    assert plain(found)["tasks"][0]["flips"][0] == {
        "task": "factual",
        "id": "item-0",
        "a": 1.0,
        "b": 0.0,
    }


def test_items_that_one_run_lacks_are_left_out_and_counted(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0, 1, 1, 1, None], model="demo/a")
    b = make_run(tmp_path, scores=[1, 1, None], model="demo/b")
    task = compare_runs(a, b).tasks[0]
    assert (task.only_a, task.only_b) == (3, 0)
    assert (paired(task).n, paired(task).n_missing) == (2, 1)
    assert (task.n_differing, [flip.id for flip in task.flips]) == (1, ["item-1"])
    assert (paired(task).mean_a, paired(task).mean_b) == (0.5, 1.0)


def test_failed_items_flip_nothing_and_nothing_scored_is_said(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[None, None, None], model="demo/a")
    b = make_run(tmp_path, scores=[1, 0, 1], model="demo/b")
    found = compare_runs(a, b)
    task = found.tasks[0]
    assert (paired(task).n, paired(task).n_missing, task.n_differing, task.flips) == (
        0,
        3,
        0,
        (),
    )
    assert math.isnan(paired(task).difference)
    assert "cannot be compared" in found.conclusion
    assert plain(found)["tasks"][0]["paired"]["difference"] is None


def test_runs_without_a_common_item_are_two_independent_samples(tmp_path: Path) -> None:
    one = [1.0] * 30 + [0.0] * 10
    other = [1.0] * 10 + [0.0] * 40 + [None]
    a = make_run(tmp_path, scores={"x": one, "y": one}, model="demo/a")
    b = make_run(
        tmp_path, scores={"x": other, "y": one}, model="demo/b", ids="other-{}"
    )
    found = compare_runs(a, b)
    task = found.tasks[0]
    oracle = compare_unpaired(
        one, [math.nan if score is None else score for score in other]
    )
    assert task.paired is None
    assert task.unpaired == oracle
    assert task.result.n_missing_b == 1
    assert "1 missing answer" in task.warnings[0]
    assert "share no item" in task.warnings[1]
    assert (
        "unpaired" in found.conclusion
        and "different items: 40 and 50" in found.conclusion
    )
    assert found.overall is None
    assert "two independent samples" in found.estimand
    assert (task.n_differing, task.flips) == (0, ())
    assert plain(found)["tasks"][0]["unpaired"]["n_a"] == 40
    empty = make_run(tmp_path, scores={"x": [None, None]}, model="demo/e", ids="e-{}")
    assert "cannot be compared" in compare_runs(a, empty).conclusion


def test_runs_scored_by_different_scorers_are_not_compared(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0], model="demo/a")
    other = make_run(tmp_path, scores=[1, 0], model="demo/b")
    data = json.loads((other.folder / "run.json").read_text())
    data["tasks"][0]["scorers"][0]["name"] = "judge"
    (other.folder / "run.json").write_text(json.dumps(data))
    with pytest.raises(RunError, match=r"'score'.* judge.*evalwright score"):
        compare_runs(a, open_run(other.folder))


def test_tasks_count_the_same_whatever_their_size(tmp_path: Path) -> None:
    a = make_run(
        tmp_path,
        scores={"big": [1] * 90 + [0] * 10, "small": [1] * 5 + [0] * 5},
        model="demo/a",
    )
    b = make_run(
        tmp_path,
        scores={"big": [1] * 50 + [0] * 50, "small": [1] * 5 + [0] * 5},
        model="demo/b",
    )
    found = compare_runs(a, b)
    assert found.overall is not None
    assert found.overall.difference == pytest.approx(0.2)
    assert "demo/a" in found.conclusion
    assert "20.0 points" in found.conclusion or "+20.0 points" in found.conclusion


def test_no_overall_where_units_differ(tmp_path: Path) -> None:
    scores: dict[str, list[float]] = {
        "quiz": [1, 0, 1, 1],
        "prose": [-80.0, -75.0, -60.0, -55.0],
    }
    worse: dict[str, list[float]] = {
        "quiz": [1, 0, 0, 1],
        "prose": [-90.0, -80.0, -70.0, -50.0],
    }
    metric = {"quiz": "accuracy", "prose": "token-perplexity"}
    found = compare_runs(
        make_run(tmp_path, scores=scores, metric=metric, model="demo/a"),
        make_run(tmp_path, scores=worse, metric=metric, model="demo/b"),
    )
    assert found.overall is None
    assert found.conclusion.count("quiz: ") == 1
    assert found.conclusion.count("prose: ") == 1
    assert "Over all tasks" not in found.conclusion


def test_wins_are_of_the_better_run_where_lower_is_better(tmp_path: Path) -> None:
    a = make_run(
        tmp_path,
        scores=[0, 0, 0, 1, 1, 0],
        metric="hallucination-rate",
        model="demo/a",
    )
    b = make_run(
        tmp_path,
        scores=[1, 1, 1, 1, 0, 1],
        metric="hallucination-rate",
        model="demo/b",
    )
    comparison = compare_runs(a, b)
    task = comparison.tasks[0]
    assert task.lower_is_better
    assert task.result.mean_a > task.result.mean_b
    (table,) = (
        block
        for block in comparison_document(comparison).blocks
        if isinstance(block, Table) and block.caption == "Differences"
    )
    heads = [column.title for column in table.columns]
    assert table.rows[0][heads.index("Wins A : B")] == "1 : 4"


def test_more_of_a_number_without_a_range_is_higher_and_not_better(
    tmp_path: Path,
) -> None:
    """A longer summary is not a better one."""
    scores = [float(20 + index % 3) for index in range(40)]
    a = make_run(tmp_path, scores=scores, metric="mean", model="demo/a")
    b = make_run(
        tmp_path,
        scores=[score - 9 - index % 2 for index, score in enumerate(scores)],
        metric="mean",
        model="demo/b",
    )
    assert not compare_runs(a, b).tasks[0].has_direction


def test_a_number_that_its_items_do_not_give_is_not_of_one_item(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0, 1, 1], model="demo/a")
    b = make_run(tmp_path, scores=[1, 0, 0, None], model="demo/b")
    metrics = {"factual": [run.tasks[0].metrics[0] for run in (a, b)]}
    (scores,) = matrices([a, b], metrics)
    single = replace(
        scores.part(scores.common() & (scores.keys == scores.keys[0])),
        scores=scores,
        problems=("demo/a: its value is another when made again",),
    )
    comparison = pair_task(single)
    assert comparison.test == NOT_FROM_ITEMS
    assert comparison.n == 3


def test_a_mean_of_tasks_says_that_boards_average_groups_first(tmp_path: Path) -> None:
    runs = []
    for name, right in (("a", 30), ("b", 20)):
        scores = [1.0] * right + [0.0] * (40 - right)
        run = make_run(
            tmp_path,
            scores={"nlu-1": scores, "nlu-2": scores, "safety": scores},
            name=name,
            model=f"demo/{name}",
        )
        with edited(run.folder) as record:
            for task in record["tasks"]:
                task["metadata"] = {"competency": task["name"].partition("-")[0]}
        runs.append(open_run(run.folder))
    caveats = " ".join(compare_runs(*runs).caveats)
    assert "averages groups of tasks first, such as each competency" in caveats

    plain_runs = [
        make_run(tmp_path / "plain", scores={"x": [1, 0], "y": [1, 1]}, name=name)
        for name in ("a", "b")
    ]
    assert not compare_runs(*plain_runs).caveats
