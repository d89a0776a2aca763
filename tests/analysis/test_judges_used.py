"""Boards of runs that another program's judges scored."""

from __future__ import annotations

from pathlib import Path

from evalwright.analysis.judges_used import scored_by_rarer_judges
from evalwright.api import leaderboard
from evalwright.runs.reader import Run, open_run
from support.runs import edited, make_run


def make_judged_run(folder: Path, name: str, judge: str) -> Run:
    run = make_run(folder, scores=[1, 0, 1, 1], name=name, model=f"demo/{name}")
    with edited(run.folder) as record:
        task = record["tasks"][0]
        task["definition"] = {"dialect": "hhem-leaderboard", "judge": judge}
        task["scorers"][0]["kind"] = "hhem-leaderboard"
        task["scorers"][0]["options"] = {"judge": judge}
    return open_run(run.folder)


def test_a_board_names_published_judges_and_marks_the_rarer_one(tmp_path: Path) -> None:
    runs = [
        make_judged_run(tmp_path, "a", "PROD"),
        make_judged_run(tmp_path, "b", "API"),
        make_judged_run(tmp_path, "c", "PROD"),
    ]
    board = leaderboard(runs)
    assert {row.label: row.other_judge for row in board.rows} == {
        "demo/a": False,
        "demo/b": True,
        "demo/c": False,
    }
    notes = " ".join(board.notes)
    assert "Judges: PROD for 2 models and API for 1 model." in notes
    assert "marked †" in notes


def test_a_single_published_judge_is_named_and_marks_nothing(tmp_path: Path) -> None:
    runs = [make_judged_run(tmp_path, name, "PROD") for name in ("a", "b")]
    board = leaderboard(runs)
    assert "Judge: PROD." in board.notes
    assert not any(row.other_judge for row in board.rows)


def test_judges_of_equally_many_runs_are_all_marked(tmp_path: Path) -> None:
    runs = [make_judged_run(tmp_path, name, name.upper()) for name in ("a", "b")]
    assert scored_by_rarer_judges(runs) == [True, True]


def test_imported_answer_rates_say_what_they_leave_out(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=scores, name=name, model=f"demo/{name}")
        for name, scores in (("a", [1, 1, None, None]), ("b", [1, 0, 1, 1]))
    ]
    for run in runs:
        with edited(run.folder) as record:
            for metric in record["tasks"][0]["metrics"]:
                metric["label"] = "answer-rate"
            for spec in record["tasks"][0]["metric_specs"]:
                spec["label"] = "answer-rate"
    notes = " ".join(leaderboard([open_run(run.folder) for run in runs]).notes)
    assert "not over the missing ones (demo/a: 2), of which it says nothing" in notes
