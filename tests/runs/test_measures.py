"""Scores side by side: which way a metric points, and who has which item."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.analysis.comparison import read_matrices
from evalwright.core.errors import UnknownName
from evalwright.runs import measures
from evalwright.runs.reader import Run, open_run
from support.runs import make_run
from support.shown import compare_two as compare_runs


def changed(run: Run, **metric: Any) -> Run:
    """The run with another main metric in its record."""
    path = run.folder / "run.json"
    data = json.loads(path.read_text())
    data["tasks"][0]["metrics"][0] |= metric
    path.write_text(json.dumps(data))
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
        (lambda mean: 1 - mean, {"lower_is_better": True}, "complement", True, [0, 0, 0, 1]),
        (lambda mean: mean, {"lower_is_better": True}, "score", True, [1, 1, 1, 0]),
        (lambda mean: -mean, {"lower_is_better": True, "kind": "mean"}, "negated", True, [-1, -1, -1, 0]),
        (lambda mean: mean**2, {}, "other", False, [1, 1, 1, 0]),
        (lambda mean: mean**2, {"lower_is_better": True}, "other", False, [1, 1, 1, 0]),
        (lambda mean: mean, {"kind": "macro-f1"}, "other", False, [1, 1, 1, 0]),
        (lambda mean: 10 + mean, {"kind": "word-perplexity"}, "other", False, [1, 1, 1, 0]),
    ],
)
def test_scores_are_shown_as_the_metric_is(
    tmp_path: Path, value: Any, metric: dict[str, Any], form: str, less: bool, first: list[float]
) -> None:
    runs = two(tmp_path, value, **metric)
    (found,) = read_matrices(runs)
    assert (found.measure.form, found.measure.lower_is_better) == (form, less)
    assert sorted(found.values[0].tolist()) == sorted(first)
    task = compare_runs(*runs).tasks[0]
    assert any("is not a mean over items" in warning for warning in task.warnings) == (form == "other")
    assert task.sentence.endswith("lower is better.") == less


def test_an_error_rate_is_compared_as_one(tmp_path: Path) -> None:
    runs = two(tmp_path, lambda mean: 1 - mean, label="hallucination rate", lower_is_better=True)
    task = compare_runs(*runs).tasks[0]
    assert (task.result.mean_a, task.result.mean_b, task.result.difference) == (0.25, 0.75, -0.5)


def test_a_rate_that_its_kind_calls_worse_when_higher(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("BOUNDED", "LOWER_IS_BETTER"):
        monkeypatch.setattr(measures, name, getattr(measures, name) | {"hallucination-rate"})
    runs = two(tmp_path, lambda mean: 1 - mean, kind="hallucination-rate")
    (found,) = read_matrices(runs)
    assert (found.measure.form, found.measure.lower_is_better, found.measure.bounded) == (
        "complement",
        True,
        True,
    )
    assert found.values.mean(axis=1).tolist() == [0.25, 0.75]


def test_a_perplexity_without_a_number_is_no_mean(tmp_path: Path) -> None:
    runs = two(tmp_path, lambda mean: None, kind="word-perplexity")
    assert read_matrices(runs)[0].measure.form == "other"


def test_items_by_run(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0, None], model="demo/a", cluster_size=2)
    b = make_run(tmp_path, scores=[1, 1, 0, 1], model="demo/b", cluster_size=2)
    (found,) = read_matrices([a, b])
    assert found.values.shape == (2, 4)
    assert found.asked.sum(axis=1).tolist() == [3, 4]
    assert found.common().sum() == 3
    assert np.isnan(found.values).sum(axis=1).tolist() == [2, 0]
    assert found.clusters is not None
    assert len(np.unique(found.clusters)) == 2
    assert list(found.keys) == sorted(found.keys)


def test_slices_by_item(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0, 1], model="demo/a", domains=["x", "y"])
    b = make_run(tmp_path, scores=[1, 0, 1, 1, 1], model="demo/b", domains=["x", "y"])
    (found,) = read_matrices([a, b], ["domain"])
    codes = found.slices["domain"]
    assert sorted(codes.names) == ["x", "y"]
    counts = {name: int((codes.codes == code).sum()) for code, name in enumerate(codes.names)}
    assert counts == {"x": 3, "y": 2}
    with pytest.raises(UnknownName, match=r"'domian'.*'domain'"):
        read_matrices([a, b], ["domian"])
    plain = make_run(tmp_path / "p", scores=[1, 0, 1], model="demo/p")
    with pytest.raises(UnknownName, match="no metadata"):
        read_matrices([plain, plain], ["domain"])


def test_nothing_scored_is_nan(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[None, None], model="demo/a")
    b = make_run(tmp_path, scores=[1, 0], model="demo/b")
    assert math.isnan(compare_runs(a, b).tasks[0].result.difference)
