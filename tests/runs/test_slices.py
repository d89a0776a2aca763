"""Comparisons by slice, against the single comparisons and the adjustments by hand."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from evalwright.analysis.comparison import compare_runs
from evalwright.runs import score_tables as module
from evalwright.runs.reader import Run
from evalwright.runs.score_tables import item_scores
from evalwright.statistics import benjamini_hochberg, compare_paired, holm
from evalwright.statistics.multiplicity import ADJUSTMENTS, Adjustment, interval_level
from support.runs import make_run, rewritten


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


def by_hand(p: list[float], how: str) -> list[float]:
    """Adjusted p-values of some tests."""
    order = sorted(range(len(p)), key=lambda place: p[place])
    m = len(p)
    out = [0.0] * len(p)
    for rank, place in enumerate(order):
        holm = max(p[one] * (m - k) for k, one in enumerate(order[: rank + 1]))
        bh = min(p[one] * m / (k + 1) for k, one in enumerate(order) if k >= rank)
        out[place] = min(1.0, {"holm": holm, "bh": bh, "none": p[place]}[how])
    return out


@pytest.mark.parametrize("how", ADJUSTMENTS)
def test_each_slice_is_its_own_comparison_at_the_level_of_the_adjustment(
    tmp_path: Path, how: Adjustment
) -> None:
    a, b, runs = two(tmp_path)
    (sliced,) = (
        compare_runs(*runs, slices=["domain"], slices_adjust=how).tasks[0].slices
    )
    assert [part.value for part in sliced.parts] == ["x", "y", "z"]
    adjusted = by_hand(
        [compare_paired(a[start::3], b[start::3]).p_value for start in range(3)], how
    )
    findings = sum(p < 0.05 for p in adjusted)
    assert findings == 1
    level = {"bh": 1 - 0.05 * findings / 3, "holm": 1 - 0.05 / 3, "none": 0.95}[how]
    for start, (part, p) in enumerate(zip(sliced.parts, adjusted, strict=True)):
        alone = compare_paired(a[start::3], b[start::3], level=level)
        ends = (
            part.paired.low,
            part.paired.high,
            part.paired.smallest_visible_difference,
        )
        assert ends == pytest.approx(
            (alone.low, alone.high, alone.smallest_visible_difference)
        )
        assert part.paired.verdict == alone.verdict
        assert part.p_adjusted == pytest.approx(p) and part.paired.n == 40
        assert (part.paired.verdict == "no difference seen") == (p >= 0.05)
    said = {
        "bh": "false discovery rate 5%",
        "holm": "any false finding",
        "none": "tested at 5% alone",
    }[how]
    assert said in sliced.correction and "3 values of 'domain'" in sliced.correction
    assert sliced.without == 0


def test_an_interval_ends_at_0_where_a_later_step_of_holm_has_ruled_it_out(
    tmp_path: Path,
) -> None:
    """Two slices: p = 0.0002 and 0.03.

    The second is under 5% / 1, yet its interval at 97.5% holds 0.
    """
    a = [0.0] * 80
    b = [0.0] * 80
    for item in [*range(0, 24, 2), *range(1, 11, 2)]:
        a[item] = 1.0
    runs = [
        make_run(tmp_path, scores=scores, model=f"demo/{name}", domains=list("xy"))
        for name, scores in (("a", a), ("b", b))
    ]
    (sliced,) = (
        compare_runs(*runs, slices=["domain"], slices_adjust="holm").tasks[0].slices
    )
    second = sliced.parts[1]
    assert compare_paired(a[1::2], b[1::2], level=0.975).low < 0
    assert (
        second.p_adjusted < 0.05
        and second.paired.low == 0
        and second.paired.verdict == "better"
    )


def test_intervals_and_adjusted_p_values_never_contradict_each_other() -> None:
    """Of p-values at random: those of findings, and they alone, are under 1 - level (for Holm
    with its first step).
    """
    rng = np.random.default_rng(3)
    for _ in range(300):
        p = np.concatenate([rng.random(12), rng.random(8) * 0.02 * rng.integers(0, 2)])
        share = 1 - interval_level(p, "bh")
        assert ((p < share) == (benjamini_hochberg(p) < 0.05)).all()
        assert ((p < 1 - interval_level(p, "holm")) <= (holm(p) < 0.05)).all()


def test_a_verdict_does_not_outlive_the_correction(tmp_path: Path) -> None:
    """One slice has p = 0.03 alone; among four it is no finding."""
    a = [0.0] * 80
    b = [0.0] * 80
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
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(module, "LARGE", 1)
    run = two(tmp_path)[2][0]
    read = item_scores(run, {"factual": "score"}, ["domain"])["factual"].slices[
        "domain"
    ]
    assert [*(tmp_path / "home" / "scores").glob("*.scores")]
    monkeypatch.setattr(
        Run, "score_rows", lambda self: pytest.fail("the records were read again")
    )
    kept = item_scores(run, {"factual": "score"}, ["domain"])["factual"].slices[
        "domain"
    ]
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
        row["metadata"] = {
            "level": number % 2,
            "text": f"{number}" * 3,
            "nested": {"no": 1},
            "none": None,
        }
    run = rewritten(run, "".join(json.dumps(row) + "\n" for row in rows))
    found = item_scores(run, {"factual": "score"}, ["level", "text", "nested", "none"])[
        "factual"
    ].slices
    assert sorted(found) == ["level", "text"]
    assert sorted(found["level"].names) == ["0", "1"]
    monkeypatch.setattr(module, "MOST_VALUES", 2)
    assert sorted(
        item_scores(run, {"factual": "score"}, ["level", "text"])["factual"].slices
    ) == ["level"]
