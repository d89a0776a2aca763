"""Pivots of boards: two of the keys, the tasks and the models against each other."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path

import pytest

from evalwright.analysis.board import make_board
from evalwright.analysis.board_tree import find_in
from evalwright.analysis.pivots import MOST_TABLES, Pivots, make_pivots
from evalwright.core.errors import UnknownName, UsageError
from evalwright.reports.documents.pivot import pivot_csv, pivot_document
from evalwright.reports.markdown import to_markdown
from evalwright.runs.reader import Run
from support.runs import make_run
from support.tagged_runs import language_metadata, make_tagged_run


@pytest.fixture
def runs(tmp_path: Path) -> list[Run]:
    scores_by_model = {
        "a": {"th-reading": [1, 1, 0], "th-safety": [1, 0], "vi-reading": [1, 1, 1]},
        "b": {"th-reading": [0, 1, 0], "th-safety": [0, 0], "vi-reading": [1, 0, 1]},
    }
    return [
        make_tagged_run(
            tmp_path,
            scores,
            language_metadata(scores),
            model=f"demo/{model}",
            name=model,
            domains=["law", "logic"],
        )
        for model, scores in scores_by_model.items()
    ]


def pivots_of(runs: list[Run], keys: str, model: str | None = None) -> Pivots:
    return make_pivots(make_board(runs), runs, keys.split(","), model=model)


def values(pivots: Pivots, table: int = 0) -> list[list[float | None]]:
    return [
        [
            None
            if cell is None or cell.estimate is None
            else round(cell.estimate.value, 3)
            for cell in cells
        ]
        for cells in pivots.tables[table].cells
    ]


def test_two_keys_of_tasks(runs: list[Run]) -> None:
    pivots = pivots_of(runs, "language,competency")
    assert [table.model for table in pivots.tables] == ["demo/a", "demo/b"]
    assert [title for _, title in pivots.rows.values] == ["Thai", "Vietnamese"]
    assert [title for _, title in pivots.columns.values] == ["All", "reading", "Safety"]
    assert values(pivots) == [[0.583, 0.667, 0.5], [1.0, 1.0, None]]
    assert values(pivots, 1)[0] == [0.167, 0.333, 0.0]
    swapped = pivots_of(runs, "competency,language", "demo/b")
    assert [table.model for table in swapped.tables] == ["demo/b"]
    assert values(swapped) == [[0.5, 0.333, 0.667], [0.0, 0.0, None]]


def test_models_are_a_dimension(runs: list[Run]) -> None:
    by_column = pivots_of(runs, "domain,model")
    assert [label for label, _ in by_column.columns.values] == ["demo/a", "demo/b"]
    assert [value for value, _ in by_column.rows.values] == ["law", "logic"]
    by_row = pivots_of(runs, "model,domain")
    assert values(by_row) == [
        list(column) for column in zip(*values(by_column), strict=True)
    ]
    assert [table.model for table in by_row.tables] == [""]


def test_tasks_are_a_dimension(runs: list[Run]) -> None:
    assert values(pivots_of(runs, "task,model")) == [[0.667, 0.333], [0.5, 0.0], [1.0, 0.667]]  # fmt: skip
    by_domain = pivots_of(runs, "task,domain", "demo/a")
    assert [title for title, _ in by_domain.rows.values] == [
        "th-reading",
        "th-safety",
        "vi-reading",
    ]
    assert values(by_domain)[0][-2:] == [0.5, 1.0]


def test_keys_of_tasks_and_samples(runs: list[Run]) -> None:
    pivots = pivots_of(runs, "language,domain", "demo/a")
    assert values(pivots) == [[0.583, 0.75, 0.5], [1.0, 1.0, 1.0]]


def test_a_number_in_part_says_why(tmp_path: Path) -> None:
    full = {"th-reading": [1, 0], "th-safety": [1, 1], "vi-reading": [1, 1]}
    part = {name: scores for name, scores in full.items() if name != "th-safety"}
    runs = [
        make_tagged_run(
            tmp_path, scores, language_metadata(scores), model=f"demo/{name}"
        )
        for name, scores in (("full", full), ("part", part))
    ]
    pivots = pivots_of(runs, "language,competency", "demo/part")
    assert values(pivots)[0] == [None, 0.5, None]
    assert any("1 of 2 tasks; missing: th-safety" in note for note in pivots.notes)
    record = next(
        record
        for record in pivots.records()
        if (record["language"], record["competency"]) == ("th", "safety")
    )
    assert record["value"] is None
    assert record["reason"] == "the run does not have this task" or record["reason"]


def test_csv_and_json_have_every_number_with_its_n(runs: list[Run]) -> None:
    pivots = pivots_of(runs, "language,competency")
    rows = list(csv.DictReader(io.StringIO(pivot_csv(pivots))))
    assert len(rows) == 2 * 5
    assert {row["n"] for row in rows} <= {"2", "3", "5"}
    assert all(row["low"] and row["high"] for row in rows)
    assert rows[0]["model"] == "demo/a" and rows[0]["competency"] == ""
    record = json.loads(json.dumps(pivots.as_dict(), allow_nan=False))
    assert len(record["scores"]) == 10
    markdown = to_markdown(pivot_document(pivots))
    assert "| `Thai` | 58.3 [" in markdown and "each of 2 to 5 items" in markdown


@pytest.mark.parametrize(
    ("keys", "model", "words"),
    [
        ("model,model", None, "two different keys"),
        ("model,language", "demo/a", "--model has no effect"),
        ("langauge,model", None, "Did you mean 'language'"),
        ("language,competency", "demo/c", "Did you mean 'demo/b' or 'demo/a'"),
    ],
)
def test_what_cannot_be_shown_is_said(
    runs: list[Run], keys: str, model: str | None, words: str
) -> None:
    with pytest.raises((UsageError, UnknownName)) as raised:
        pivots_of(runs, keys, model)
    assert words in str(raised.value)


def test_many_models_have_no_table_each(tmp_path: Path) -> None:
    scores = {"th-reading": [1, 0], "vi-safety": [1, 1]}
    runs = [
        make_tagged_run(
            tmp_path, scores, language_metadata(scores), model=f"demo/{i:02}"
        )
        for i in range(MOST_TABLES + 1)
    ]
    pivots = pivots_of(runs, "language,competency")
    assert len(pivots.tables) == MOST_TABLES
    assert any("--model LABEL" in note for note in pivots.notes)


def test_hostile_names_stay_text(tmp_path: Path) -> None:
    value = "=1+1|<b>`\x1b[31m"
    run = make_run(
        tmp_path, scores=[1, 0, 1, 1], domains=[value, "@x"], label="=cmd|'`"
    )
    pivots = pivots_of([run], "domain,model")
    text = to_markdown(pivot_document(pivots))
    assert "\x1b" not in text.replace("\\x1b", "")
    assert r"| ``=1+1\|<b>`" in text  # a code span, in which nothing runs
    for row in csv.reader(io.StringIO(pivot_csv(pivots))):
        assert not any(cell.startswith(("=", "@")) for cell in row)


def test_numbers_of_languages_are_those_of_the_board(tmp_path: Path) -> None:
    """The board averages competencies within a language, of which one has two tasks."""
    runs = []
    for model, right in (("a", 9), ("b", 6)):
        scores = {
            "th-reading": [1] * right + [0],
            "th-reading-more": [1] * right + [0],
            "th-safety": [1, 0],
            "vi-reading": [1, 0, 1],
        }
        metadata = language_metadata(scores)
        metadata["th-reading-more"] = metadata["th-reading"]
        runs.append(
            make_tagged_run(
                tmp_path, scores, metadata, model=f"demo/{model}", name=model
            )
        )
    board = make_board(runs, by=("language", "competency"))
    (thai,) = (node for node in find_in(board.tree) if node.keys == {"language": "th"})
    of_models = make_pivots(board, runs, ["language", "model"])
    of_competencies = make_pivots(board, runs, ["language", "competency"])
    assert thai.estimates[0] is not None
    assert thai.estimates[0].value == pytest.approx((0.9 + 0.5) / 2)
    assert values(of_models)[0][0] == pytest.approx(0.7)
    assert values(of_competencies)[0][0] == pytest.approx(0.7)
