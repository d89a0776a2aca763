"""`evalwright runs plot`: every kind of figure of real runs, what they show, and what cannot be
drawn.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, EvalwrightError, UnknownName
from evalwright.reports.figures import KINDS, Chart, figure
from evalwright.reports.plot_view import PlotView
from evalwright.runs.reader import Run
from support.hostile import HOSTILE
from support.runs import make_run, rewrite

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

STARTED = ("2026-01-05", "2026-03-09", "2026-11-20")


def _runs(folder: Path) -> list[Run]:
    """Three runs with costs, times and stated confidences: sure 90% of what is right in half of
    the cases.
    """
    out = []
    for i, name in enumerate(("lab/first", HOSTILE[0], "نموذج/文心")):
        scores = [1.0] * (10 + i) + [0.0] * (10 - i)
        cost = None if i == 1 else 0.1 * 30**i
        started = f"{STARTED[i]}T09:30:00+00:00"
        run = make_run(
            folder,
            model=name,
            name=f"run-{i}",
            scores=scores,
            cost=cost,
            started=started,
        )

        def told(row: dict[str, Any], place: int, i: int = i) -> None:
            row["answer"] = row["responses"][0]["text"] = (
                f"{'word ' * (place % 5)}\n\nConfidence: {90 if place % 2 else 60}%"
            )
            row["timing"] = {"latency": [0.5 + i]}

        out.append(rewrite(run, told))
    return out


def _view(kind: str, runs: Sequence[Run]) -> PlotView | Chart:
    return KINDS[kind].view(runs, None)


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "agreement"])
def test_each_kind_is_drawn_twice_the_same(tmp_path: Path, kind: str) -> None:
    runs = _runs(tmp_path)
    first = figure(kind, runs, ".pdf" if kind == "cost" else ".svg")
    assert first.startswith((b"<?xml", b"%PDF"))
    assert b"<script" not in first
    if kind == "cost":
        assert first == figure(kind, runs, ".pdf")


def test_points_have_the_numbers_of_the_runs(tmp_path: Path) -> None:
    runs = _runs(tmp_path)
    cost, latency, day = (_view(kind, runs) for kind in ("cost", "latency", "date"))
    assert (
        isinstance(cost, Chart)
        and isinstance(latency, Chart)
        and isinstance(day, Chart)
    )
    by_y = {round(one.points[0].y): one.points[0].x for one in cost.series}
    assert by_y == {
        60: pytest.approx(1000 * 90 / 20),
        50: pytest.approx(1000 * 0.1 / 20),
    }
    assert cost.notes == (f"Without a known cost: {HOSTILE[0]}.",)
    assert sorted(one.points[0].x for one in latency.series) == [0.5, 1.5, 2.5]
    assert [
        one.points[0].low < one.points[0].y < one.points[0].high for one in day.series
    ] == [True] * 3
    assert (day.ticks[0][1], day.ticks[-1][1] >= "2026-08-01") == ("2026-01-05", True)


def test_calibration_counts_right_answers_by_confidence(tmp_path: Path) -> None:
    found = _view("calibration", _runs(tmp_path)[:1])
    assert isinstance(found, Chart) and found.diagonal
    (one,) = found.series
    assert len(one.points) == 10 and {round(point.x) for point in one.points} == {
        60,
        90,
    }
    assert sum(point.y for point in one.points) / 10 == pytest.approx(50)


def test_what_cannot_be_drawn_is_told(tmp_path: Path) -> None:
    runs = _runs(tmp_path)
    with pytest.raises(UnknownName, match="cost"):
        figure("costs", runs, ".svg")
    with pytest.raises(ConfigurationError, match="two runs or more"):
        figure("differences", runs[:1], ".svg")
    with pytest.raises(ConfigurationError, match="no run has a known cost"):
        figure("cost", runs[1:2], ".svg")
    with pytest.raises(ConfigurationError, match="At most 8"):
        figure("length", runs * 3, ".svg")
    with pytest.raises(EvalwrightError):
        figure("agreement", runs, ".svg")
    for kind in ("length", "calibration", "agreement"):
        with pytest.raises(
            ConfigurationError,
            match=f"'{kind}'.*--metric",
        ):
            figure(kind, runs, ".svg", metric="accuracy")


@pytest.mark.parametrize("kind", ["scores", "differences", "cost"])
def test_a_title_of_ones_own_is_drawn(tmp_path: Path, kind: str) -> None:
    runs = _runs(tmp_path)
    own = figure(kind, runs, ".svg", "Mine & others")
    assert b"<dc:title>Mine &amp; others</dc:title>" in own
    assert b"Mine" not in figure(kind, runs, ".svg")
