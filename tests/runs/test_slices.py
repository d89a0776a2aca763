"""Comparisons by slice, against the single comparisons and Holm by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evalwright.analysis.comparison import compare_runs
from evalwright.runs import scores as module
from evalwright.runs.reader import Run
from evalwright.runs.scores import KEPT_FILE, item_scores
from evalwright.statistics import compare_paired
from support.runs import make_run


def two(folder: Path) -> tuple[list[float], list[float], list[Run]]:
    rng = np.random.default_rng(5)
    a, b = ((rng.random(120) < rate).astype(float) for rate in (0.7, 0.5))
    b[::3] = 0.0  # on the first domain B knows nothing
    both = a.tolist(), b.tolist()
    runs = [
        make_run(folder, scores=scores, model=f"demo/{name}", domains=["x", "y", "z"])
        for name, scores in zip("ab", both, strict=True)
    ]
    return *both, runs


def test_each_slice_is_its_own_comparison_and_p_is_holm_adjusted(tmp_path: Path) -> None:
    a, b, runs = two(tmp_path)
    (sliced,) = compare_runs(*runs, slices=["domain"]).tasks[0].slices
    assert [part.value for part in sliced.parts] == ["x", "y", "z"]
    alone = [compare_paired(a[start::3], b[start::3]) for start in range(3)]
    for part, one in zip(sliced.parts, alone, strict=True):
        assert (part.paired.difference, part.paired.low, part.paired.n) == (one.difference, one.low, 40)
    order = np.argsort([one.p_value for one in alone])
    least = 0.0
    for rank, place in enumerate(order):
        least = min(1.0, max(least, alone[place].p_value * (3 - rank)))
        assert sliced.parts[place].p_adjusted == pytest.approx(least)
    assert sliced.parts[0].paired.verdict == "better"
    assert sliced.correction == "Holm over the 3 values of 'domain', 5%"
    assert sliced.without == 0


def test_a_verdict_does_not_outlive_the_correction(tmp_path: Path) -> None:
    """One slice has p = 0.03 alone; among four it is no finding."""
    a, b = [0.0] * 80, [0.0] * 80
    for item in range(0, 24, 4):
        a[item] = 1.0  # six items of the first domain
    runs = [
        make_run(tmp_path, scores=scores, model=f"demo/{name}", domains=list("wxyz"))
        for name, scores in (("a", a), ("b", b))
    ]
    (sliced,) = compare_runs(*runs, slices=["domain"]).tasks[0].slices
    assert compare_paired(a[::4], b[::4]).verdict == "better"
    assert sliced.parts[0].paired.p_value < 0.05 < sliced.parts[0].p_adjusted
    assert sliced.parts[0].paired.verdict == "no difference seen"


def test_kept_arrays_hold_slices_and_old_ones_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGE", 1)
    run = two(tmp_path)[2][0]
    read = item_scores(run, {"factual": "score"}, ["domain"])["factual"].slices["domain"]
    assert (run.folder / KEPT_FILE).exists()
    monkeypatch.setattr(Run, "rows", lambda self: pytest.fail("the records were read again"))
    kept = item_scores(run, {"factual": "score"}, ["domain"])["factual"].slices["domain"]
    assert kept.names == read.names
    assert np.array_equal(kept.codes, read.codes)
    # A key that is in no record is not looked for twice: all metadata were kept.
    assert item_scores(run, {"factual": "score"}, ["other"])["factual"].slices == {}
    monkeypatch.setattr(module, "FORMAT", module.FORMAT + 1)
    with pytest.raises(pytest.fail.Exception, match="read again"):
        item_scores(run, {"factual": "score"})


def test_keys_that_the_task_does_not_slice_by_are_read_from_the_records(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, scores=[1, 0, 1], domains=["x"])
    path = run.samples_file
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for number, row in enumerate(rows):
        row["metadata"] = {"level": number % 2, "text": f"{number}" * 3, "nested": {"no": 1}, "none": None}
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    found = item_scores(run, {"factual": "score"}, ["level", "text", "nested", "none"])["factual"].slices
    assert sorted(found) == ["level", "text"]
    assert sorted(found["level"].names) == ["0", "1"]
    monkeypatch.setattr(module, "MOST_VALUES", 2)
    assert sorted(item_scores(run, {"factual": "score"}, ["level", "text"])["factual"].slices) == ["level"]
