"""Slices with few items stand together on one line, pooled."""

from __future__ import annotations

from pathlib import Path

import pytest

from evalwright.reports.documents.run import merged_slices
from evalwright.statistics.intervals import wilson
from support.runs import make_run


def test_few_items_are_pooled_and_the_others_stay(tmp_path: Path) -> None:
    domains = ["large"] * 6 + ["p", "q", "r"]
    scores = [1.0, 0.0, 1.0, 1.0, 1.0, 1.0, 1.0, 0.0, None] * 2
    run = make_run(tmp_path, scores=scores, domains=domains)
    slices = run.tasks[0].slices["domain"]
    found = merged_slices(slices)
    name = "3 values with under 5 items each"
    assert list(found) == ["large", name] and found["large"] is slices["large"]
    (pooled,) = found[name]
    one = pooled.estimate
    assert (one.value, one.n, one.n_missing) == (0.5, 4, 2)
    assert [one.low, one.high] == pytest.approx(list(wilson(2, 4)))
    alone = merged_slices({key: slices[key] for key in ("large", "p")})
    assert list(alone) == ["large", "p"]
