"""How a board is cited: BibTeX that reads back, a CITATION.cff, and the same text for the same runs."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from evalwright.analysis.board import make_board
from evalwright.analysis.fact_filters import read_filter
from evalwright.core.errors import ConfigurationError
from evalwright.reports.board_citation import (
    board_version,
    citation_dict,
    citation_text,
)
from evalwright.reports.board_files import board_json
from evalwright.runs.reader import Run, open_run
from evalwright.tasks.citations import entries_of
from support.hostile import ACTIVE, HOSTILE
from support.runs import edited, make_run


def with_bibtex(run: Run, bibtex: object, licence: str = "MIT") -> Run:
    with edited(run.folder) as record:
        for task in record["tasks"]:
            task["definition"]["metadata"] = {"bibtex": bibtex, "licence": licence}
    return open_run(run.folder)


def two_runs(folder: Path) -> list[Run]:
    return [
        make_run(folder, name="a", model="x/a", scores={"f": [1.0, 0.0]}),
        make_run(folder, name="b", model="x/b", scores={"f": [0.0, 0.0]}),
    ]


def test_the_board_its_tasks_and_the_program_are_entries(tmp_path: Path) -> None:
    runs = [with_bibtex(run, "son-etal-2024-hae") for run in two_runs(tmp_path)]
    board = make_board(runs)
    entries = entries_of(citation_text(board, "Hae & Rae", runs, "x.bib"))
    assert list(entries) == ["hae-rae-2026", "son-etal-2024-hae", "evalwright"]
    own_entry = entries["hae-rae-2026"]
    assert r"{{Hae \& Rae}}" in own_entry and "year = {2026}" in own_entry
    assert f"version {board_version(runs)}" in own_entry
    (task,) = citation_dict(board, "T", runs)["tasks"]
    assert task == {
        "task": "f",
        "licence": "MIT",
        "keys": ["son-etal-2024-hae"],
        "missing": "",
    }


def test_the_order_of_runs_changes_nothing_and_other_samples_do(
    tmp_path: Path,
) -> None:
    runs = two_runs(tmp_path)
    back = runs[::-1]
    assert citation_dict(make_board(runs), "T", runs) == citation_dict(
        make_board(back), "T", back
    )
    further = make_run(tmp_path, name="c", model="x/c", scores={"f": [1.0, 1.0]})
    assert board_version(runs) != board_version([runs[0], further])


def test_a_filtered_board_cites_the_runs_that_it_shows(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name=name, model=f"x/{name}", scores=scores, cost=cost)
        for name, scores, cost in (
            ("a", {"f": [1.0], "old": [1.0]}, 5.0),
            ("b", {"f": [1.0, 0.0]}, 0.5),
            ("c", {"f": [0.0, 0.0]}, 0.6),
        )
    ]
    board = make_board(runs, where=[read_filter("cost<1")])
    citation = citation_dict(board, "T", runs)
    assert citation["version"] == board_version(runs[1:])
    assert [task["task"] for task in citation["tasks"]] == ["f"]
    hashes = [
        model["samples_sha256"] for model in board_json(board, "T", runs=runs)["models"]
    ]
    by_run = {run.id: run.data["samples"]["sha256"] for run in runs}
    assert hashes == [by_run[row.run] for row in board.rows]


def test_what_cannot_be_cited_is_said(tmp_path: Path) -> None:
    first, second = two_runs(tmp_path)
    runs = [
        with_bibtex(first, "@misc{k, title = {One}}"),
        with_bibtex(second, "@misc{k, title = {Two}}"),
    ]
    citation = citation_dict(make_board(runs), "T", runs)
    assert [task["keys"] for task in citation["tasks"]] == [["k"], []]
    assert "two different entries" in citation["tasks"][1]["missing"]
    assert "% citation missing: f" in citation["bibtex"]
    assert entries_of(citation["bibtex"]).keys() == {"t-2026", "k", "evalwright"}


def test_a_citation_file(tmp_path: Path) -> None:
    runs = two_runs(tmp_path)
    board = make_board(runs)
    record = yaml.safe_load(citation_text(board, "Board", runs, "CITATION.cff"))
    assert record["cff-version"] == "1.2.0" and record["type"] == "dataset"
    assert record["title"] == "Board" and record["version"] == board_version(runs)
    assert record["authors"] == [{"name": "The maintainers of Board"}]
    assert [reference["type"] for reference in record["references"]] == [
        "data",
        "software",
    ]
    with pytest.raises(ConfigurationError, match=r"\.bib.*\.cff"):
        citation_text(board, "Board", runs, "cite.txt")


@pytest.mark.parametrize("name", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_titles_and_tasks_stay_text(tmp_path: Path, name: str) -> None:
    runs = [
        with_bibtex(
            make_run(tmp_path, name="r", scores=[1.0, 0.0], label=name), name, name
        )
    ]
    board = make_board(runs)
    bibtex = citation_text(board, name, runs, "x.bib")
    assert not set(bibtex) & set(ACTIVE)
    assert len(entries_of(bibtex)) == 2
    record = yaml.safe_load(citation_text(board, name, runs, "x.cff"))
    assert record["cff-version"] == "1.2.0"
