"""CSV and JSON of a board, read back and held against the runs' own numbers."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from compat.hhem.hhem_trees import REFUSAL, Line, Model, text_of
from evalwright.analysis.board import make_board
from evalwright.compat.hhem.importing import import_hhem
from evalwright.reports.board_files import board_csv, board_json
from evalwright.runs.writer import to_json
from support.hostile import ACTIVE, HOSTILE, as_task_name
from support.runs import make_run


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_columns_of_a_board_of_tasks(tmp_path: Path) -> None:
    strong = [1.0] * 36 + [0.0] * 4
    weak = [1.0] * 4 + [0.0] * 35 + [None]
    runs = [
        make_run(
            tmp_path,
            model="a/weak",
            name="a",
            scores={"factual": weak, "other": weak},
            cost=0.25,
        ),
        make_run(
            tmp_path,
            model="b/strong",
            name="b",
            scores={"factual": strong, "other": strong},
        ),
        make_run(tmp_path, model="c/part", name="c", scores={"factual": strong}),
    ]
    first, second, third = _rows(board_csv(make_board(runs)))
    assert (first["model"], first["rank_best"], first["rank_worst"]) == (
        "b/strong",
        "1",
        "1",
    )
    assert float(first["overall"]) == float(first["factual"]) == 0.9
    assert float(first["factual_low"]) == runs[1].tasks[0].metrics[0].estimate.low
    assert (second["items"], second["asked"], second["missing"], second["cost"]) == (
        "78",
        "80",
        "2",
        "0.25",
    )
    assert (third["rank_best"], third["overall"], third["other"]) == ("", "", "")


def test_the_four_columns_of_a_hallucination_board(tmp_path: Path) -> None:
    lines = [
        Line(i, text_of(i) if i % 5 else REFUSAL, 0.9 if i % 3 else 0.2)
        for i in range(1, 61)
    ]
    Model().write(tmp_path / "tree", lines)
    (run,) = import_hhem(tmp_path / "tree", tmp_path / "runs")[0]
    (row,) = _rows(board_csv(make_board([run])))
    valid = [line for line in lines if line.text != REFUSAL]
    wrong = sum((line.score or 0) < 0.5 for line in valid)
    assert float(row["hallucination_rate"]) == pytest.approx(wrong / len(valid))
    assert float(row["factual_consistency_rate"]) == pytest.approx(
        1 - wrong / len(valid)
    )
    assert float(row["answer_rate"]) == pytest.approx(len(valid) / 60)
    assert float(row["average_summary_length"]) == 15
    data = board_json(make_board([run]), "T", ["p.html"])
    assert [column["name"] for column in data["columns"]] == [
        "hallucination_rate", "factual_consistency_rate", "answer_rate", "average_summary_length",
    ]  # fmt: skip
    assert [column["lower_is_better"] for column in data["columns"]] == [
        True,
        False,
        False,
        None,
    ]
    assert data["models"][0]["page"] == "p.html" and data["as_of"] == "2026-01-02"
    assert data["models"][0]["scores"]["answer_rate"]["n"] == 60


def test_json_has_no_number_that_json_lacks(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name="a", scores=[None, None]),
        make_run(tmp_path, name="b", scores=[1.0]),
    ]
    text = to_json(board_json(make_board(runs), "T"))
    data = json.loads(text, parse_constant=lambda name: pytest.fail(name))
    scores = {row["run"]: row["scores"]["factual"] for row in data["models"]}
    assert scores["a"] is None and scores["b"]["value"] == 1.0


def test_no_cell_becomes_a_formula(tmp_path: Path) -> None:
    for i, name in enumerate(
        [*HOSTILE, "=1+1", "+1", "-1", "@SUM(A1)", "\t=1", " =1", '"=1', "＝1"]
    ):
        run = make_run(
            tmp_path,
            model=name or "x",
            label=name,
            name=f"run{i}",
            scores={as_task_name(name): [1.0, 0.0]},
        )
        text = board_csv(make_board([run]))
        assert not set(text) & set(ACTIVE), name
        header, row = list(csv.reader(io.StringIO(text)))
        for cell in (*header, row[3], row[4]):
            assert not cell.lstrip(" \"'\t").startswith(
                tuple("=+-@＝＋－＠")
            ) or cell.startswith("'"), name
