"""What the explorer's plots are made of: bins that lose no sample, with the intervals of the
statistics, and the rows of labelling sets.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

from evalwright.analysis.judge_validation.drawing import draw_set, write_set
from evalwright.analysis.judge_validation.verdicts import read_verdicts
from evalwright.reports.explorer import index
from evalwright.reports.explorer.index import label_sets_part
from evalwright.reports.explorer.plots import plots_of
from evalwright.runs.reader import Run
from evalwright.statistics import mean_interval
from support.judging import judged_run
from support.runs import make_run, rewrite

WORDS = [
    "Yes. " + "and so on " * (place % 12) + f"\n\nConfidence: {50 + place % 50}%"
    for place in range(60)
]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """60 answers of 12 lengths; the judge passes two of three, and the shortest never."""
    monkeypatch.chdir(tmp_path)
    answers = {f"item-{place}": words for place, words in enumerate(WORDS)}

    def verdict(item: str, text: str) -> str:
        place = int(item.removeprefix("item-"))
        return "0" if place % 12 == 0 or place % 3 == 1 else "1"

    return judged_run(answers, verdict, name="plotted")


def test_bins_hold_every_scored_answer_once_with_the_interval_of_their_scores(
    run: Run,
) -> None:
    (curve,) = [
        curve for curve in plots_of(run)["curves"] if curve["against"] == "length"
    ]
    lengths = np.array([len(row["answer"]) for row in run.rows()])
    scores = np.array(
        [row["scores"]["test-scripted-judge"]["value"] for row in run.rows()]
    )
    bins = curve["bins"]
    assert len(bins) == 6  # 60 answers, at least 10 in each
    assert sum(one["score"]["n"] for one in bins) == 60
    assert all(one["high"] < other["low"] for one, other in pairwise(bins))
    for one in bins:
        own = (lengths >= one["low"]) & (lengths <= one["high"])
        expected = mean_interval(scores[own])
        assert one["mean"] == pytest.approx(lengths[own].mean())
        shown = one["score"]
        assert (shown["value"], shown["low"], shown["high"]) == pytest.approx(
            (expected.value, expected.low, expected.high)
        )


def test_stated_confidence_is_a_curve_with_its_calibration_error(run: Run) -> None:
    (curve,) = [
        curve for curve in plots_of(run)["curves"] if curve["against"] == "confidence"
    ]
    assert 0.5 <= curve["bins"][0]["mean"] < curve["bins"][-1]["mean"] <= 0.99
    assert any("Expected calibration error" in note for note in curve["notes"])


def test_clusters_widen_the_intervals(tmp_path: Path) -> None:
    def clustered_answers(row: dict[str, object], place: int) -> None:
        row["answer"] = "x" * (1 + place % 2)
        row["cluster"] = f"cluster-{place // 10}"

    alone = make_run(tmp_path / "a", scores=[1.0, 0.0, 1.0, 1.0] * 20)
    together = rewrite(
        make_run(tmp_path / "b", scores=[1.0] * 40 + [0.0] * 40), clustered_answers
    )
    assert plots_of(alone)["curves"] == []  # all answers are equally long
    (curve,) = plots_of(together)["curves"]
    clustered = curve["bins"][0]["score"]
    naive = mean_interval(np.repeat([1.0, 0.0], 20))
    assert clustered["high"] - clustered["low"] > naive.high - naive.low


def test_numbers_that_say_nothing_make_no_curve(tmp_path: Path) -> None:
    few = make_run(tmp_path / "few", scores=[1.0, 0.0] * 9)
    none = make_run(tmp_path / "none", scores=[None] * 40)
    assert plots_of(few) == plots_of(none) == {"curves": [], "agreement": []}


def test_unbounded_scores_have_bins_of_their_own_unit(tmp_path: Path) -> None:
    def longer(row: dict[str, object], place: int) -> None:
        row["answer"] = "x" * (1 + place)

    run = rewrite(
        make_run(tmp_path, scores=[3.0 + place for place in range(40)]), longer
    )
    (curve,) = plots_of(run)["curves"]
    assert not curve["bounded"]
    assert curve["bins"][-1]["score"]["value"] == pytest.approx(37.5)
    assert all(math.isfinite(one["score"]["low"]) for one in curve["bins"])


def test_rows_of_a_labelling_set_are_the_answers_that_were_drawn(run: Run) -> None:
    assert label_sets_part(run) == []
    drawn = draw_set(read_verdicts(run), 12, "random", 0)
    write_set(run.folder, drawn)
    rows = list(run.rows())
    (shown,) = label_sets_part(run)
    assert shown["name"] == drawn.name
    assert shown["rows"] == [
        (rows[place]["task"], rows[place]["id"], 0) for place in drawn.rows
    ]
    # A set of other answers is not this run's, and a damaged one is none.
    (run.folder / "labelling-s00000000.json").write_text("{", encoding="utf-8")
    assert len(label_sets_part(run)) == 1
    changed = rewrite(run, lambda row, place: row.update(answer="other"))
    assert label_sets_part(changed) == []


def test_records_of_a_large_run_are_read_once_for_its_label_sets(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    write_set(run.folder, draw_set(read_verdicts(run), 12, "random", 0))
    of_small_run = label_sets_part(run)
    monkeypatch.setattr(index, "LEAST_RECORD_BYTES", 0)
    first = label_sets_part(run)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Run, "_lines", None)
        second = label_sets_part(run)
    assert json.dumps(first) == json.dumps(second) == json.dumps(of_small_run)
    write_set(run.folder, draw_set(read_verdicts(run), 6, "random", 1))
    assert len(label_sets_part(run)) == 2
