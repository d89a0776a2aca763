"""Next steps of open comparisons."""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evalwright.analysis.next_step import OpenComparison, find_next_steps
from evalwright.analysis.trees import Average
from evalwright.runs.measures import matrices
from support.runs import make_run


@pytest.mark.parametrize("error", [math.nan, math.inf])
def test_a_mean_without_a_standard_error_has_no_plan(
    tmp_path: Path, error: float
) -> None:
    """All answers of one of its tasks may score the same."""
    a = make_run(tmp_path, scores=[1, 0, 1, 0], model="demo/a")
    b = make_run(tmp_path, scores=[1, 1, 0, 0], model="demo/b")
    metrics = {"factual": [run.tasks[0].metrics[0] for run in (a, b)]}
    average = Average(tuple(matrices([a, b], metrics)))
    comparison = OpenComparison(
        difference=0.228,
        standard_error=error,
        n=4170,
        visible=math.nan,
        difference_text="22.8 points",
    )
    assert find_next_steps(average, (a, b), comparison) == ()
