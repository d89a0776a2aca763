"""board.json is what its published schema says, for every kind of board; the long table and the
wide one have the same numbers.
"""

from __future__ import annotations

import csv
import io
import json
import math
import sys
from pathlib import Path
from typing import Any

import pytest

from compat.hhem.hhem_trees import REFUSAL, Line, Model, text_of
from evalwright.analysis.board import Board, make_board
from evalwright.analysis.board_tree import find_in
from evalwright.compat.hhem.importing import import_hhem
from evalwright.core.errors import MissingExtra
from evalwright.core.samples import Score
from evalwright.reports.board_files import (
    board_csv,
    board_json,
    board_parquet,
    board_schema,
    node_rows,
)
from evalwright.runs.reader import Run
from evalwright.runs.writer import to_json
from support.hostile import HOSTILE, as_task_name
from support.runs import make_run

jsonschema = pytest.importorskip("jsonschema")


def valid(board: Board, runs: list[Run]) -> dict[str, Any]:
    """The board as JSON, after it was found to be as its schema says, with no field unnamed."""
    text = to_json(board_json(board, "T", ["p.html"] * len(board.rows), runs))
    assert "1e999" not in text
    record: dict[str, Any] = json.loads(text, parse_constant=pytest.fail)
    schema = board_schema()
    kind = jsonschema.validators.validator_for(schema)
    kind.check_schema(schema)
    kind(schema).validate(record)
    assert record.keys() <= schema["properties"].keys()
    for name in ("node", "model"):
        described = schema["$defs"][name]["properties"].keys()
        for entry in record[f"{name}s"]:
            assert entry.keys() <= described, name
    for node in record["nodes"]:
        for array in ("value", "low", "high", "n", "missing", "rank", "tied"):
            assert len(node[array]) == len(board.rows)
        for row, score in enumerate(node["value"]):
            bare = score is None or node["low"][row] is None or node["high"][row] is None  # fmt: skip
            assert bool(node["reasons"].get(str(row))) >= bare
    return record


def several_tasks(folder: Path) -> list[Run]:
    right = [1.0] * 30 + [0.0] * 10
    wrong = [0.0] * 30 + [1.0] * 9 + [None]
    return [
        make_run(folder, model="a/x", name="a", scores={"f": right, "g": wrong}),
        make_run(folder, model="b/y", name="b", scores={"f": wrong, "g": wrong}),
        make_run(folder, model="c/z", name="c", scores={"f": right}),
    ]


def test_a_board_of_tasks(tmp_path: Path) -> None:
    runs = several_tasks(tmp_path)
    board = make_board(runs)
    record = valid(board, runs)
    assert [node["id"] for node in record["nodes"]] == [
        node.id for node in find_in(board.tree)
    ]
    assert [node["parent"] for node in record["nodes"]] == [None, "overall", "overall"]
    assert record["rank_by"] == "overall"
    by_run = {run.id: run.data["samples"]["sha256"] for run in runs}
    for row, model in enumerate(record["models"]):
        assert model["samples_sha256"] == by_run[model["run"]]
        for node in record["nodes"][1:]:
            score = model["scores"][node["title"]]
            assert (score and score["value"]) == node["value"][row]
    assert record["citation"]["models"] == 3
    # What the file had before is as it was.
    assert [column["name"] for column in record["columns"]] == ["overall", "f", "g"]
    assert record["models"][2]["scores"]["g"] is None


def test_boards_without_numbers_with_infinities_and_in_other_units(
    tmp_path: Path,
) -> None:
    nothing = [make_run(tmp_path, name="n", scores=[None, None])]
    valid(make_board(nothing), nothing)
    infinite = [
        make_run(
            tmp_path,
            name=name,
            scores=[Score(math.inf), Score(1.0), Score(-math.inf)],
            metric="mean",
        )
        for name in ("i", "j")
    ]
    valid(make_board(infinite), infinite)
    mixed = [
        make_run(
            tmp_path,
            name="m",
            scores={"quiz": [1, 0], "prose": [-5.0, -4.0]},
            metric={"prose": "token-perplexity"},
            cost=0.5,
        )
    ]
    record = valid(make_board(mixed, ratings=False), mixed)
    assert {node["id"]: node["scale"] for node in record["nodes"]}["quiz"] == "0 to 1"


def test_a_hallucination_board_names_its_judge(tmp_path: Path) -> None:
    lines = [
        Line(i, text_of(i) if i % 5 else REFUSAL, 0.9 if i % 3 else 0.2)
        for i in range(1, 61)
    ]
    for name in ("acme/a", "acme/b"):
        Model(name=name).write(tmp_path / "tree", lines)
    runs = import_hhem(tmp_path / "tree", tmp_path / "runs")[0]
    record = valid(make_board(runs), runs)
    (judge,) = record["judges"]
    assert "HHEM" in judge["name"] and judge["models"] == [0, 1]
    assert judge["name"] in record["citation"]["bibtex"]


def test_hostile_names_are_data(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path / "runs",
            model=name or "x",
            label=name,
            name=f"run-{i}",
            scores={as_task_name(name): [1.0, 0.0, None]},
        )
        for i, name in enumerate(HOSTILE)
    ]
    for run in runs:
        valid(make_board([run]), [run])


def test_the_wide_and_the_long_table_have_every_number(tmp_path: Path) -> None:
    runs = several_tasks(tmp_path)
    board = make_board(runs)
    wide = list(csv.DictReader(io.StringIO(board_csv(board))))
    long = list(node_rows(board, runs))
    assert len(long) == 3 * 3
    names = {"overall": "overall", "overall/f": "f", "overall/g": "g"}
    for number in long:
        row = next(line for line in wide if line["run"] == number["run"])
        name = names[str(number["node"])]
        for suffix, field in (
            ("", "value"),
            ("_low", "low"),
            ("_high", "high"),
            ("_n", "n"),
        ):
            cell = row[f"{name}{suffix}"]
            assert (float(cell) if cell else None) == number[field]


def test_a_task_called_like_a_column_of_another_keeps_its_numbers(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path, scores={"f_n": [1.0, 0.0], "f": [1.0, 1.0, 1.0]})
    (row,) = csv.DictReader(io.StringIO(board_csv(make_board([run]))))
    assert (row["f_n"], row["task.f"], row["task.f_n"]) == ("0.5", "1.0", "3")


def test_parquet_has_the_long_table(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    runs = several_tasks(tmp_path)
    board = make_board(runs)
    file = tmp_path / "board.parquet"
    file.write_bytes(board_parquet(board, runs))
    assert parquet.read_table(file).to_pylist() == list(node_rows(board, runs))


def test_without_pyarrow_a_sentence_names_the_extra(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow.parquet", None)
    board = make_board(several_tasks(tmp_path))
    with pytest.raises(MissingExtra, match="pip install"):
        board_parquet(board)
