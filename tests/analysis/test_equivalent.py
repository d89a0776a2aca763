"""Equivalence of two runs, against the interval that it rests on."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from evalwright.core.errors import ConfigurationError
from evalwright.runs.reader import Run
from evalwright.statistics import compare_paired, equivalence_paired
from support.runs import make_run
from support.shown import compare_two as compare_runs


def two(
    folder: Path, n: int, tasks: int = 1, **more: str
) -> tuple[list[np.ndarray], list[Run]]:
    rng = np.random.default_rng(n)
    scores = [(rng.random((tasks, n)) < 0.9).astype(float) for _ in range(2)]
    runs = [
        make_run(
            folder,
            scores={f"t{i}": values.tolist() for i, values in enumerate(side)},
            model=f"demo/{name}",
            **({} if name == "a" else more),  # type: ignore[arg-type]
        )
        for name, side in zip("ab", scores, strict=True)
    ]
    return scores, runs


def test_many_items_show_equivalence_and_few_do_not(tmp_path: Path) -> None:
    for n, shown in ((2000, True), (30, False)):
        (a, b), runs = two(tmp_path / str(n), n)
        found = compare_runs(*runs, equivalent=0.05)
        same = found.tasks[0].equivalence
        assert same is not None
        oracle = equivalence_paired(a[0], b[0], margin=0.05)
        assert (same.low, same.high, same.p_value) == (
            oracle.low,
            oracle.high,
            oracle.p_value,
        )
        ninety = compare_paired(a[0], b[0], level=0.9)
        assert same.equivalent == (ninety.low >= -0.05 and ninety.high <= 0.05) == shown
        assert ("are equivalent within 5 points" in found.conclusion) == shown
        assert ("not shown to be equivalent" in found.conclusion) != shown


def test_over_tasks_and_on_different_items(tmp_path: Path) -> None:
    _, runs = two(tmp_path, 1500, tasks=3)
    whole = compare_runs(*runs, equivalent=0.03)
    assert whole.overall_equivalence is not None
    assert whole.overall_equivalence.equivalent
    assert (
        "Over all tasks demo/a and demo/b are equivalent within 3 points"
        in whole.conclusion
    )
    _, apart = two(tmp_path / "apart", 1500, ids="other-{}")
    same = compare_runs(*apart, equivalent=0.05).tasks[0].equivalence
    assert same is not None
    assert same.equivalent and "Newcombe" in same.method


@pytest.mark.parametrize("margin", [0.0, -0.1, 1.0, float("nan")])
def test_a_margin_that_is_none(tmp_path: Path, margin: float) -> None:
    with pytest.raises(
        ConfigurationError, match="smallest difference that would matter"
    ):
        compare_runs(*two(tmp_path, 20)[1], equivalent=margin)
