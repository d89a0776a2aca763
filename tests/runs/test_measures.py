"""Scores side by side: which way a metric points, and who has which item."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.analysis.comparison import read_matrices
from evalwright.runs import measures
from evalwright.runs.reader import Run, open_run
from support.runs import edited, make_run
from support.shown import compare_two as compare_runs


def changed(run: Run, **metric: Any) -> Run:
    """The run with another main metric in its record, as another program may have made it."""
    with edited(run.folder) as data:
        data["tasks"][0]["definition"]["dialect"] = "another-program"
        data["tasks"][0]["metrics"][0] |= metric
    return open_run(run.folder)


def two(folder: Path, value: Any, **metric: Any) -> list[Run]:
    """Two runs whose main metric has the value that `value` makes of the mean of the scores."""
    runs = []
    for name, scores in (("a", [1.0, 1, 1, 0]), ("b", [1.0, 0, 0, 0])):
        run = make_run(folder, scores=scores, name=name, model=f"demo/{name}")
        runs.append(changed(run, value=value(sum(scores) / 4), **metric))
    return runs


@pytest.mark.parametrize(
    ("value", "metric", "form", "less", "first"),
    [
        (lambda mean: mean, {}, "score", False, [1, 1, 1, 0]),
        (
            lambda mean: 1 - mean,
            {"lower_is_better": True},
            "complement",
            True,
            [0, 0, 0, 1],
        ),
        (lambda mean: mean, {"lower_is_better": True}, "score", True, [1, 1, 1, 0]),
        (
            lambda mean: -mean,
            {"lower_is_better": True, "kind": "mean"},
            "negated",
            True,
            [-1, -1, -1, 0],
        ),
        (lambda mean: mean**2, {}, "other", False, [0.5625]),
        (lambda mean: mean**2, {"lower_is_better": True}, "other", True, [0.5625]),
        (lambda mean: 10 + mean, {"kind": "word-perplexity"}, "other", True, [10.75]),
    ],
)
def test_scores_are_shown_as_the_metric_is(
    tmp_path: Path,
    value: Any,
    metric: dict[str, Any],
    form: str,
    less: bool,
    first: list[float],
) -> None:
    runs = two(tmp_path, value, **metric)
    (found,) = read_matrices(runs)
    assert (found.measure.form, found.measure.lower_is_better) == (form, less)
    assert sorted(found.values[0].tolist()) == sorted(first)
    task = compare_runs(*runs).tasks[0]
    # A number that the scores do not give has no interval, and the reason is said.
    assert any("from the record" in warning for warning in task.warnings) == (
        form == "other"
    )
    assert task.result.mean_a == pytest.approx(value(0.75))
    assert np.isnan(task.result.low) == (form == "other")
    assert task.sentence.endswith("lower is better.") == less


def test_a_rate_that_its_kind_calls_worse_when_higher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BOUNDED", "LOWER_IS_BETTER"):
        monkeypatch.setattr(
            measures, name, getattr(measures, name) | {"hallucination-rate"}
        )
    runs = two(tmp_path, lambda mean: 1 - mean, kind="hallucination-rate")
    (found,) = read_matrices(runs)
    one = found.measure
    assert (one.form, one.lower_is_better, one.bounded) == ("complement", True, True)
    assert found.values.mean(axis=1).tolist() == [0.25, 0.75]


def test_items_by_run(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0, None], model="demo/a", cluster_size=2)
    b = make_run(tmp_path, scores=[1, 1, 0, 1], model="demo/b", cluster_size=2)
    (found,) = read_matrices([a, b])
    assert found.values.shape == (2, 4)
    assert found.was_asked.sum(axis=1).tolist() == [3, 4]
    assert found.common().sum() == 3
    assert np.isnan(found.values).sum(axis=1).tolist() == [2, 0]
    assert found.clusters is not None
    assert len(np.unique(found.clusters)) == 2
    assert list(found.keys) == sorted(found.keys)
