"""Results in a notebook: one line, escaped HTML, data frames, pictures, reports and files, the
same for every kind.
"""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright import compare, leaderboard
from evalwright.core.errors import ConfigurationError, MissingExtra, UnknownName
from evalwright.core.samples import Score
from evalwright.core.tasks import MetricSpec, Task
from evalwright.reports.frames import columns_of, csv_of, frame_of
from evalwright.reports.results import FORMS
from evalwright.runs.reader import Run
from support.runs import make_run

EVIL = "<script>alert(1)</script>\x1b[31m‮"


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("runs")
    a = make_run(
        folder,
        scores=[1, 1, 0, 1] * 5 + [None],
        model="demo/a",
        name="a",
        domains=["땅", "물"],
    )
    b = make_run(
        folder, scores=[0, 1, 0, 0] * 5 + [1], model=f"demo/{EVIL}", name="b", text=EVIL
    )
    c = make_run(
        folder, scores=[0, 0, 0, 0] * 5 + [1], model="demo/c", name="c", text="=1+1"
    )
    return {
        "run": b,
        "comparison": compare(a, b),
        "several": compare(a, b, c),
        "board": leaderboard([a, b, c]),
    }


KINDS = ("run", "comparison", "several", "board")


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_one_short_line(results: dict[str, Any], kind: str) -> None:
    shown = repr(results[kind])
    assert len(shown) < 200 and shown.isprintable()
    assert set(FORMS) == {type(one) for one in results.values()}


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_has_html_without_foreign_markup(
    results: dict[str, Any], kind: str
) -> None:
    for html in (results[kind]._repr_html_(), results[kind].report()._repr_html_()):
        assert "<script" not in html and "\x1b" not in html and "\u202e" not in html
        assert "&lt;" in html and "<table" in html


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_saved_by_the_ending_of_the_name(
    results: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    result = results[kind]
    for ending in ("html", "md", "json", "csv"):
        assert result.save(tmp_path / f"one.{ending}") == tmp_path / f"one.{ending}"
    assert "<!doctype html>" in (tmp_path / "one.html").read_text(encoding="utf-8")
    json.loads((tmp_path / "one.json").read_text(encoding="utf-8"))
    with (tmp_path / "one.csv").open(encoding="utf-8", newline="") as file:
        assert len(list(csv.reader(file))) == 1 + len(result.to_frame("pandas"))
    with pytest.raises(ConfigurationError, match="must end with"):
        result.save(tmp_path / "one.docx")
    report = result.report()
    assert len(repr(report)) < 200 and str(report).startswith("# ")
    assert report.save(tmp_path / "two.md").read_text(encoding="utf-8") == str(report)


@pytest.mark.parametrize("kind", KINDS)
def test_every_result_is_drawn(
    results: dict[str, Any], kind: str, tmp_path: Path
) -> None:
    pytest.importorskip("matplotlib")
    drawn = results[kind].plot()
    assert drawn._repr_html_().startswith("<img alt=")
    assert b"<svg" in results[kind].save(tmp_path / "one.svg").read_bytes()
    assert drawn.save(tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")


def test_a_run_of_many_slices_and_long_texts_stays_one_line(tmp_path: Path) -> None:
    names = [f"domain {i} {'x' * 200}" for i in range(40)]
    scores = {f"{'t' * 300}{i}": [1, 0] * 20 for i in range(8)}
    run = make_run(
        tmp_path,
        scores=scores,
        domains=names,
        model="m" * 500,
        text="word " * 5000,
        name="r",
    )
    assert len(str(dict(run.data))) > 100_000
    assert len(repr(run)) < 200 and "accuracy 50.0 [" in repr(run)
    records = list(run.samples())
    assert len(repr(records[:3])) < 1000 and all(
        len(repr(record.sample)) < 250 for record in records[:3]
    )
    # Half-made or broken results are shown in a debugger all the same.
    assert len(repr(Run(tmp_path, {}))) < 200


def test_a_task_is_one_line() -> None:
    class Nothing(list[Any]):
        content_hash = ""

    async def strategy(*_: Any) -> Any: ...

    task = Task(
        "t" * 500,
        Nothing(["x" * 1000] * 50),
        strategy,  # type: ignore[arg-type]
        (),
        (MetricSpec("a", "mean", "b"),),
    )
    assert len(repr(task)) < 200 and "50 samples" in repr(task)


def test_a_frame_has_a_row_for_every_sample(results: dict[str, Any]) -> None:
    frame = results["comparison"].to_frame("pandas")
    assert list(frame["task"]) == ["factual"] and frame["paired"].all()
    samples = results["run"].to_frame("pandas")
    assert len(samples) == 21 and samples["score"].sum() == 6
    assert {"task", "id", "input", "target", "answer", "outcome", "score_label"} <= set(
        samples.columns
    )
    board = results["board"].to_frame("pandas")
    assert list(board["factual"]) == sorted(board["factual"], reverse=True)


def test_rows_may_differ() -> None:
    rows: list[dict[str, Any]] = [
        {"a": 1},
        {"b": {"c": "가"}},
        {"a": [1, 2], "b": None},
    ]
    assert columns_of(rows) == {
        "a": [1, None, [1, 2]],
        "b": [None, '{"c": "가"}', None],
    }
    assert (
        csv_of([{"a": "=1+1", "b": float("nan")}, {"a": "x\ny"}])
        == 'a,b\n\'=1+1,\n"x\ny",\n'
    )


def test_polars_where_it_is_asked_for(results: dict[str, Any]) -> None:
    pytest.importorskip("polars", reason="polars is not installed")
    frame = results["run"].to_frame("polars")
    assert frame.height == 21 and frame["score"].sum() == 6
    mixed = frame_of([{"a": 1, "b": [1]}, {"a": "x", "b": "y"}], "polars")
    assert mixed.height == 2


def test_a_missing_library_is_named_with_its_command(
    results: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    import evalwright.reports.frames as frames

    for name in ("pandas", "polars"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setattr(frames, "find_spec", lambda name: None)
    with pytest.raises(MissingExtra, match=r"pip install 'evalwright\[polars\]'"):
        results["run"].to_frame("polars")
    with pytest.raises(MissingExtra, match=r"pandas or polars"):
        results["run"].to_frame()
    with pytest.raises(UnknownName, match="pandas"):
        results["run"].to_frame("panda")


def test_nothing_to_draw_is_said(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    run = make_run(tmp_path, scores=[None, None], name="none")
    with pytest.raises(ConfigurationError, match="nothing to plot"):
        run.plot()


def test_scores_of_several_scorers_and_metadata_have_their_columns(
    tmp_path: Path,
) -> None:
    run = make_run(
        tmp_path, scores=[Score(0.5, "partly", "half")], domains=["x"], name="one"
    )
    (row,) = run.to_frame("pandas").to_dict("records")
    assert (row["score"], row["score_label"], row["domain"]) == (0.5, "partly", "x")
