"""Three and more runs: tables, their shared error, and a last sentence that says no more than
they do.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.several import SeveralComparison
from evalwright.analysis.several import compare_several as compare_all
from evalwright.core.errors import RunError, UnknownName
from evalwright.reports.conclusions import worded_several
from evalwright.runs.reader import Run
from evalwright.statistics import benjamini_hochberg, compare_paired
from evalwright.statistics.many_models import all_differences
from evalwright.statistics.many_models_macro import all_macro_differences
from support.runs import make_run


def compare_several(runs: list[Run], **settings: Any) -> SeveralComparison:
    return worded_several(compare_all(runs, **settings))


def models(
    folder: Path, rates: list[float], n: int = 200, tasks: int = 1, **more: Any
) -> list[Run]:
    rng = np.random.default_rng(7)
    ease = rng.normal(0, 0.1, n)
    return [
        make_run(
            folder,
            scores={
                f"t{task}": (rng.random(n) < np.clip(rate + ease, 0, 1))
                .astype(float)
                .tolist()
                for task in range(tasks)
            },
            model=f"demo/m{number}",
            name=f"r{number}",
            **more,
        )
        for number, rate in enumerate(rates)
    ]


def scores(run: Run, task: str = "t0") -> list[float]:
    return [
        row["scores"]["score"]["value"] if row["scores"] else float("nan")
        for row in run.rows()
        if row["task"] == task
    ]


def test_all_pairs_on_one_task(tmp_path: Path) -> None:
    runs = models(tmp_path, [0.3, 0.5, 0.505, 0.9])
    found = compare_several(runs)
    (table,) = found.tasks
    oracle = all_differences([scores(run) for run in runs])
    assert [(pair.a, pair.b) for pair in table.pairs] == [
        (0, 1),
        (0, 2),
        (0, 3),
        (1, 2),
        (1, 3),
        (2, 3),
    ]
    for pair in table.pairs:
        assert pair.difference == pytest.approx(oracle.difference[pair.a, pair.b])
        assert pair.low == pytest.approx(oracle.low[pair.a, pair.b])
        assert pair.p_adjusted == pytest.approx(oracle.p_adjusted[pair.a, pair.b])
    assert found.overall is None
    assert table.ranks == ((4, 4), (2, 3), (2, 3), (1, 1))
    assert table.letters == ("c", "b", "b", "a")
    assert "On t0 demo/m3 scores" in found.conclusion
    assert "These cannot be separated: demo/m1 and demo/m2" in found.conclusion
    assert "would usually go undetected" in found.conclusion
    assert "for 6 pairs" in found.conclusion
    data = json.loads(json.dumps(found.as_dict(), allow_nan=False))
    assert data["tasks"][0]["pairs"][0]["verdict"] == "worse"


def test_several_tasks_share_their_error_and_the_mean_comes_first(
    tmp_path: Path,
) -> None:
    runs = models(tmp_path, [0.4, 0.6, 0.6], tasks=3)
    found = compare_several(runs)
    assert found.overall is not None
    oracle = all_macro_differences(
        [([scores(run, f"t{task}") for run in runs], None) for task in range(3)]
    )
    for pair in found.overall.pairs:
        assert pair.difference == pytest.approx(oracle.difference[pair.a, pair.b])
        assert pair.low == pytest.approx(oracle.low[pair.a, pair.b], abs=0.01)
    assert found.overall.means[0].value == pytest.approx(
        np.mean([np.mean(scores(runs[0], f"t{task}")) for task in range(3)])
    )
    assert [table.level for table in found.tasks] == [pytest.approx(1 - 0.05 / 3)] * 3
    alone = compare_several(models(tmp_path / "one", [0.4, 0.6, 0.6])).tasks[0]
    assert alone.level == 0.95
    assert "all 3 tasks (Bonferroni)" in found.tasks[0].correction
    assert found.conclusion.startswith("Over all tasks ")


def test_each_against_a_baseline(tmp_path: Path) -> None:
    runs = models(tmp_path, [0.4, 0.42, 0.8])
    found = compare_several(runs, baseline=runs[1])
    (table,) = found.tasks
    assert found.baseline == 1
    assert [(pair.a, pair.b) for pair in table.pairs] == [(0, 1), (2, 1)]
    assert (table.ranks, table.letters) == ((), ())
    assert "for 2 pairs with the baseline" in found.conclusion
    assert "demo/m0 cannot be separated from demo/m1" in found.conclusion
    assert json.loads(json.dumps(found.as_dict()))["baseline"] == "r1"


def test_by_slice(tmp_path: Path) -> None:
    runs = models(tmp_path, [0.2, 0.5, 0.8], domains=["y", "x"])
    found = compare_several(runs, slices=["domain"], slices_adjust="holm")
    assert [table.slice for table in found.slices] == ["domain: x", "domain: y"]
    assert all(table.level == 0.975 for table in found.slices)
    assert "all 2 values of 'domain' (Bonferroni)" in found.slices[0].correction
    pair = found.slices[0].pairs[0]
    first, second = (scores(run)[1::2] for run in runs[:2])
    assert pair.n == 100
    assert pair.difference == pytest.approx(float(np.mean(first) - np.mean(second)))
    every = [
        pair
        for table in compare_several(runs, slices=["domain"]).slices
        for pair in table.pairs
    ]
    adjusted = benjamini_hochberg([pair.p_value for pair in every])
    level = 1 - 0.05 * np.count_nonzero(adjusted < 0.05) / 6
    for place, pair in enumerate(every):
        items = slice(1 - place // 3, None, 2)
        alone = compare_paired(
            scores(runs[pair.a])[items], scores(runs[pair.b])[items], level=level
        )
        assert (pair.low, pair.high, pair.p_value) == pytest.approx(
            (alone.low, alone.high, alone.p_value)
        )
        assert pair.p_adjusted == pytest.approx(adjusted[place])
        assert pair.verdict == alone.verdict


def test_what_cannot_be_compared_item_by_item_is_said(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0] * 20, model="demo/a")
    b = make_run(tmp_path, scores=[1, 1] * 20, model="demo/b")
    other = make_run(tmp_path, scores=[1, 0] * 20, model="demo/o", ids="other-{}")
    few = make_run(tmp_path, scores=[1, 0] * 5, model="demo/f")
    failed = make_run(tmp_path, scores=[None] * 40, model="demo/x", metric="mean")
    found = compare_several([a, b, other, few])
    assert (
        "factual: no item in common, so compared as independent samples"
        in found.warnings[0]
    )
    assert "demo/a and demo/o" in found.warnings[0]
    assert (
        "under half of the items are common to demo/a and demo/f (10)"
        in found.warnings[1]
    )
    assert "demo/b and demo/o" not in found.conclusion.split("cannot be separated")[1]
    found = compare_several([a, b, failed])
    assert (
        "demo/x could not be compared with any other, because they have too few scored items in common."
        in found.conclusion
    )
    assert found.conclusion.endswith(
        "Repeat the `evalwright run` command that made 'factual--demo-x' to fill the gap: only what is missing is sent."
    )
    assert found.tasks[0].letters[2] == ""
    assert found.tasks[0].ranks[2] == (1, 3)


def test_an_error_rate_is_better_when_lower(tmp_path: Path) -> None:
    runs = models(tmp_path, [0.1, 0.5, 0.9])
    for run in runs:
        path = run.folder / "run.json"
        data = json.loads(path.read_text())
        metric = data["tasks"][0]["metrics"][0]
        metric |= {
            "lower_is_better": True,
            "label": "error-rate",
            "value": 1 - metric["value"],
        }
        path.write_text(json.dumps(data))
    found = compare_several(
        [
            Run(run.folder, json.loads((run.folder / "run.json").read_text()))
            for run in runs
        ]
    )
    (table,) = found.tasks
    assert table.lower_is_better
    assert table.ranks == ((3, 3), (2, 2), (1, 1))
    assert {(pair.a, pair.b): pair.verdict for pair in table.pairs} == {
        (0, 1): "worse",
        (0, 2): "worse",
        (1, 2): "worse",
    }
    assert table.pairs[0].difference > 0
    assert "lower is better" in found.conclusion


def test_two_runs_this_way_agree_with_the_comparison_of_two(tmp_path: Path) -> None:
    runs = models(tmp_path, [0.4, 0.6])
    (pair,) = compare_several(runs).tasks[0].pairs
    paired = compare_runs(*runs).tasks[0].result
    assert pair.difference == pytest.approx(paired.difference)
    assert (pair.low, pair.high) == pytest.approx((paired.low, paired.high), abs=0.01)
    assert pair.p_value == pytest.approx(paired.p_value)


def test_errors(tmp_path: Path) -> None:
    a, b, c = models(tmp_path, [0.4, 0.5, 0.6])
    with pytest.raises(RunError, match="at least two runs"):
        compare_several([a])
    with pytest.raises(RunError, match="'r0' is named more than once"):
        compare_several([a, b, a])
    with pytest.raises(UnknownName, match="must be one of the runs"):
        compare_several([a, b], baseline=c)
    other = make_run(tmp_path, scores={"u": [1, 0]}, name="u")
    with pytest.raises(RunError, match="t0 against t0 against u"):
        compare_several([a, b, other])
