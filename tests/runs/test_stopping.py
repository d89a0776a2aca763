"""What a record says about how it ended, in words: hostile names, many runs, rules and budgets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs
from evalwright.reports.conclusions import worded_comparison
from evalwright.reports.documents.board import board_document
from evalwright.reports.documents.run import run_document, runs_document
from evalwright.runs.reader import Run
from evalwright.runs.stopping import NOT_ADJUSTED, early_notes, with_valid_intervals
from support.hostile import ACTIVE, HOSTILE
from support.runs import make_run
from support.shown import board_html, board_markdown, compared, terminal

FOUND: dict[str, Any] = {
    "task": "factual", "rule": "one beats two", "metric": "", "a": "one", "b": "two", "unit": "items", "bounded": True, "decided": True,
    "verdict": "one better", "early": True, "looks": 2, "units": 4, "n_total": 1000, "failed": 0, "value": 0.1234, "low": 0.05,
    "high": 0.2, "level": 0.95, "e_value": None, "estimand": "this benchmark", "method": "exact",
}  # fmt: skip


def stopped(run: Run, *, reached: str = "", asked: int = 4, **found: Any) -> Run:
    """The run as if it had ended early."""
    stopping = {
        "rules": [],
        "decisions": [{**FOUND, **found}],
        "tasks": [{"task": "factual", "asked": asked, "of": 1000}],
        "settled": not reached,
        "saved_requests": 0 if reached else 996,
        "budget_reached": reached,
        "full_run": "",
    }
    return replace(run, data={**run.data, "stopping": stopping})


def made(folder: Path, name: str, **more: Any) -> Run:
    return stopped(
        make_run(folder, scores=[1, 0, 1, 1], name=name, model=f"m/{name}"), **more
    )


def test_many_runs_make_one_note_for_each_reason(tmp_path: Path) -> None:
    runs = [made(tmp_path, f"run{i}", asked=4 + i) for i in range(9)]
    runs.append(made(tmp_path, "spent", reached="requests", decided=False))
    notes = list(early_notes(runs))
    assert len(notes) == 2
    assert notes[0].startswith(
        "Stopped early by the rule 'one beats two', after 4 to 12 of 1,000 answers on factual: "
    )
    assert "and 3 more" in notes[0]
    assert notes[1].startswith(
        "Stopped early by a spent budget, after 4 of 1,000 answers on factual: m/spent."
    )


def test_intervals_of_what_ended_early(tmp_path: Path) -> None:
    task = make_run(
        tmp_path,
        scores=[1, 0, 1, 1],
        name="a",
        domains=["x", "y"],
        more_metrics=["mean"],
    ).data["tasks"][0]
    own = stopped(
        make_run(tmp_path, scores=[1], name="b"), metric="accuracy", a="", b=""
    ).data["stopping"]
    changed = with_valid_intervals(task, own)
    accuracy, mean = changed["metrics"]
    assert (accuracy["low"], accuracy["high"], accuracy["value"]) == (0.05, 0.2, 0.75)
    assert accuracy["method"] == "exact, for all 1,000 items, valid at any look"
    assert mean["method"].endswith(NOT_ADJUSTED)
    assert all(
        metric["method"].endswith(NOT_ADJUSTED)
        for metrics in changed["slices"]["domain"].values()
        for metric in metrics
    )
    for none in (None, {**own, "tasks": [{"task": "factual", "asked": 4, "of": 4}]}):
        assert with_valid_intervals(task, none) == task


def test_names_do_not_act_on_any_page(tmp_path: Path) -> None:
    one, two = (
        make_run(tmp_path, scores=[1, 0, 1, 1], name=name, model=f"m/{name}")
        for name in "ab"
    )
    for text in HOSTILE:
        runs = [
            stopped(
                run, rule=f"{text} beats two", verdict=f"{text} better", method=text
            )
            for run in (one, two)
        ]
        board = make_board(runs)
        documents = [board_document(board), run_document(runs[0]), runs_document(runs)]
        out = terminal(
            *documents, compared(worded_comparison(compare_runs(*runs))), width=100
        )
        assert not set(out) & {*ACTIVE} and out.count("topped early") >= 4, text
        page = board_html(board, runs)
        markdown = board_markdown(board)
        if "<" in text and ">" in text:
            assert text not in page and text not in markdown
        assert "Stopped early" in page and "Stopped early" in markdown
