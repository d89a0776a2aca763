"""Every recorded model gives the recorded numbers, to the last digit and in both modes."""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

import pytest

from compat.hhem.hhem_trees import SHARED, shown
from evalwright.analysis.board import make_board
from evalwright.compat.hhem.importing import import_hhem
from evalwright.runs.reader import Run

pytestmark = pytest.mark.skipif(
    not SHARED.is_dir(), reason="the recorded runs of the HHEM engine are not here"
)

Runs = Mapping[str, Run]


def expected(version: str) -> list[dict[str, str]]:
    file = SHARED / version / "expected.csv"
    if not file.is_file():
        return []
    with file.open(newline="") as rows:
        return list(csv.DictReader(rows))


def imported(version: str, scoring: str, folder: Path) -> Runs:
    runs, left_out = import_hhem(SHARED / version, folder, scoring=scoring)
    assert left_out == []
    return {f"{version} {run.model}": run for run in runs}


@pytest.fixture(scope="module")
def corrected(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("corrected")
    return {
        **imported("v2", "corrected", folder / "2"),
        **imported("v1", "corrected", folder / "1"),
    }


@pytest.fixture(scope="module")
def published(tmp_path_factory: pytest.TempPathFactory) -> Runs:
    folder = tmp_path_factory.mktemp("published")
    return {
        **imported("v2", "published", folder / "2"),
        **imported("v1", "published", folder / "1"),
    }


def three(run: Run) -> list[float | None]:
    found = shown(run)
    return [found["hallucination-rate"], found["answer-rate"], found["mean-words"]]


@pytest.mark.parametrize("row", expected("v2"), ids=lambda row: str(row["model"]))
def test_the_second_data_set(
    row: Mapping[str, str], corrected: Runs, published: Runs
) -> None:
    run = corrected["v2 " + row["model"]]
    wanted = [
        float(row[name])
        for name in ("hallucination_rate", "answer_rate", "avg_word_count")
    ]
    assert three(run) == wanted
    assert three(published["v2 " + row["model"]]) == wanted
    (task,) = run.tasks
    main = task.metrics[0].estimate
    assert main.n == int(row["valid"])
    assert round(main.value * main.n) == int(row["hallucinated"])
    about = run.data["configuration"]["imported"]
    assert (about["judge"], about["summary_date"], about["judgment_date"]) == (
        row["hhem_version"],
        row["summary_date"],
        row["judgment_date"],
    )
    assert about["differences"] == []
    counts = Counter(label for record in run.rows() for label in _reason(record))
    assert counts["6"] == int(row["invalid_6w_api_or_think_error"])
    assert counts["refused"] == int(row["invalid_7w_refusal"])
    assert counts["8"] == int(row["invalid_8w_non_string"])
    assert counts["too short"] + counts["empty"] == int(row["invalid_le5w"])
    assert counts["truncated"] + counts["not told"] == int(row["invalid_gt8w"])
    lost = 7731 - int(row["rows"])
    assert about["lost"] == lost
    assert task.failures == {
        kind: n
        for kind, n in {
            "bad reply": counts["8"],
            "request failed or thinking never closed": counts["6"],
            "row lost": lost,
        }.items()
        if n
    }
    assert shown(run)["answer-rate-of-dataset"] == round(
        int(row["valid"]) / 7731 * 100, 1
    )


def _reason(record: Mapping[str, object]) -> list[str]:
    scores = record["scores"]
    metadata = record["metadata"]
    assert isinstance(scores, dict) and isinstance(metadata, dict)
    label = scores["answered"]["label"]
    assert ("consistency" in scores) == (label == "answered")
    assert ("score_failures" in record) == (label == "failed")
    return [str(metadata["judged"]["words"]) if label == "failed" else label]


@pytest.mark.parametrize("row", expected("v1"), ids=lambda row: str(row["model"]))
def test_the_first_data_set(
    row: Mapping[str, str], corrected: Runs, published: Runs
) -> None:
    name = row["model"] + (f"-{row['date_code']}" if row["date_code"] else "")
    run = corrected[f"v1 {name}"]
    theirs = published[f"v1 {name}"]
    assert three(run) == [float(row[f"rowwise_{key}"]) for key in ("hr", "ar", "awc")]
    assert three(theirs) == [
        float(row[f"published_{key}"]) for key in ("hr", "ar", "awc")
    ]
    about = run.data["configuration"]["imported"]
    assert (about["differences"] == []) == (row["same"] == "1")
    assert theirs.data["configuration"]["imported"]["differences"] == []
    assert about["checks"]["summaries"] == int(row["rows"])
    assert (
        about["checks"]["word counts that differ"]
        == about["checks"]["validity that differs"]
        == 0
    )


@pytest.mark.skipif(not expected("v2"), reason="the second data set is not here")
def test_they_stand_on_one_board(corrected: Runs) -> None:
    runs = [corrected["v2 " + row["model"]] for row in expected("v2")]
    board = make_board(runs)
    rates = [float(row["hallucination_rate"]) for row in expected("v2")]
    places = [row.run for row in board.rows]
    assert len(places) == len(runs)
    assert places[0] == runs[rates.index(min(rates))].id
    # Judged by two judges, on different articles: the board must say so.
    assert any(
        "Settings differ between the runs" in note and "'summary-faithfulness'" in note
        for note in board.notes
    )
