"""Leaderboards: order, rank ranges on simulated models, and what a reader must be told."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

from evalwright.analysis.board import Board, make_board
from evalwright.analysis.board_notes import _spread_over_runs, bound_notes
from evalwright.core.errors import RunError
from evalwright.core.samples import Score
from evalwright.reports.board_files import board_csv
from evalwright.reports.documents.board import board_document, coverage
from evalwright.reports.documents.run import run_document
from evalwright.reports.documents.summary import board_summary
from evalwright.reports.markdown import to_markdown
from evalwright.runs.reader import Run, open_run
from evalwright.scorers.registry import JUDGE_READ
from support.runs import edited, make_run, rewrite


def simulated(
    folder: Path, accuracies: list[float], n: int = 300, seed: int = 1, **more: Any
) -> list[Run]:
    """Runs of models with these true accuracies on the same items, which differ in difficulty."""
    rng = np.random.default_rng(seed)
    ease = rng.normal(0, 1, n)
    runs = []
    for number, accuracy in enumerate(accuracies):
        level = stats.norm.ppf(1 - accuracy, scale=np.sqrt(2))
        scores = (ease + rng.normal(0, 1, n) > level).astype(int).tolist()
        runs.append(
            make_run(folder, scores=scores, model=f"demo/m{number:02d}", **more)
        )
    return runs


def ranks(board: Board) -> dict[str, tuple[int, int] | None]:
    return {row.model: row.ranks for row in board.rows}


def plain(board: Board) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(json.dumps(board.as_dict(), allow_nan=False))
    return found


def test_a_clear_winner_is_first_alone_and_equals_are_tied(tmp_path: Path) -> None:
    board = make_board(simulated(tmp_path, [0.3, 0.9, 0.32, 0.31]))
    assert board.rows[0].model == "demo/m01"
    assert ranks(board)["demo/m01"] == (1, 1)
    assert {ranks(board)[name] for name in ("demo/m00", "demo/m02", "demo/m03")} == {
        (2, 4)
    }
    values = [row.overall.value for row in board.rows if row.overall]
    assert values == sorted(values, reverse=True)


def test_false_ranks_are_rare(tmp_path: Path) -> None:
    """Five equal models: in 5% of boards at most (of 60, with some slack) one is significantly
    better than another.
    """
    wrong = 0
    for seed in range(60):
        board = make_board(simulated(tmp_path / str(seed), [0.5] * 5, n=60, seed=seed))
        wrong += any(row.ranks != (1, 5) for row in board.rows)
    assert wrong <= 6


def test_less_is_better_of_a_perplexity(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    text = rng.normal(-60, 10, 40)
    runs = [
        make_run(
            tmp_path,
            scores=(text - loss + rng.normal(0, 0.5, 40)).tolist(),
            metric="token-perplexity",
            model=f"demo/{name}",
        )
        for name, loss in (("worst", 9), ("best", 0), ("middle", 4))
    ]
    board = make_board(runs)
    assert [row.model for row in board.rows] == [
        "demo/best",
        "demo/middle",
        "demo/worst",
    ]
    assert [row.ranks for row in board.rows] == [(1, 1), (2, 2), (3, 3)]
    task = board.tasks[0]
    assert (task.bounded, task.lower_is_better) == (False, True)
    values = [row.cells["factual"].estimate.value for row in board.rows]
    assert values == sorted(values)


def test_each_unit_has_a_table_of_its_own(tmp_path: Path) -> None:
    metric = {"quiz": "accuracy", "prose": "token-perplexity"}
    runs = [
        make_run(
            tmp_path,
            scores={"quiz": quiz, "prose": prose},
            metric=metric,
            model=f"demo/{name}",
        )
        for name, quiz, prose in (
            ("a", [1, 0, 0], [-50.0, -40.0]),
            ("b", [1, 1, 0], [-60.0, -70.0]),
        )
    ]
    board = make_board(runs)
    assert not board.has_overall
    assert [row.model for row in board.rows] == ["demo/b", "demo/a"]
    (prose,) = board.more
    assert [task.name for task in board.tasks] == ["quiz"]
    assert [task.name for task in prose.tasks] == ["prose"]
    assert [row.model for row in prose.rows] == ["demo/a", "demo/b"]  # less is better
    for part in (board, prose):
        assert all(
            row.ranks is not None and row.run_index in (0, 1) for row in part.rows
        )
        assert any("different units" in note for note in part.notes)
    assert board.as_dict()["more"] == [prose.as_dict()]


def test_runs_without_a_score_stand_below_without_a_rank(tmp_path: Path) -> None:
    whole = [
        make_run(tmp_path, scores={"x": [0, 0, 1], "y": [0, 0]}, model="demo/low"),
        make_run(tmp_path, scores={"x": [1, 0, 1], "y": [1, 0]}, model="demo/high"),
    ]
    part = make_run(tmp_path, scores={"x": [1, 1, 1]}, model="demo/part")
    failed = make_run(
        tmp_path, scores={"x": [1, 1, 1], "y": [None, None]}, model="demo/failed"
    )
    board = make_board([part, failed, *whole])
    assert [row.model for row in board.rows] == [
        "demo/high",
        "demo/low",
        "demo/failed",
        "demo/part",
    ]
    assert [row.ranks is None for row in board.rows] == [False, False, True, True]
    assert [row.overall is None for row in board.rows] == [False, False, True, True]
    assert any("without a rank" in note for note in board.notes)
    assert any("Missing answers are left out" in note for note in board.notes)
    cell = plain(board)["rows"][2]["tasks"]["y"]
    assert (cell["value"], cell["n_missing"]) == (None, 2)


def test_different_metrics_cannot_stand_on_one_board(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0], model="demo/a")
    b = make_run(tmp_path, scores=[1, 0], model="demo/b", metric="mean")
    with pytest.raises(RunError, match=r"accuracy and mean"):
        make_board([a, b])
    with pytest.raises(RunError, match="at least one run"):
        make_board([])


def test_a_reader_is_told_where_the_runs_did_not_ask_alike(tmp_path: Path) -> None:
    a = make_run(tmp_path, scores=[1, 0], model="demo/a")
    b = make_run(tmp_path, scores=[1, 0], model="demo/b")
    assert not any(
        "Settings differ between the runs" in note for note in make_board([a, b]).notes
    )
    for key, value, said in (
        ("version", "2", "versions (1 in demo/a; 2 in demo/b)"),
        ("content_hash", "other", "data (demo/a against demo/b)"),
        ("scorers", [], "scorers (demo/a against demo/b)"),
    ):
        data = json.loads((b.folder / "run.json").read_text())
        data["tasks"][0][key] = value
        (tmp_path / key).mkdir()
        (tmp_path / key / "run.json").write_text(json.dumps(data))
        (tmp_path / key / "samples.jsonl").write_bytes(
            (b.folder / "samples.jsonl").read_bytes()
        )
        notes = make_board([a, open_run(tmp_path / key)]).notes
        assert (
            sum(
                note.endswith(f"Settings differ between the runs on 'factual': {said}.")
                for note in notes
            )
            == 1
        )


@pytest.mark.parametrize("tasks", [1, 3])
def test_own_and_simultaneous_intervals(tmp_path: Path, tasks: int) -> None:
    rng = np.random.default_rng(8)
    runs = [
        make_run(
            tmp_path,
            scores={
                f"t{task}": (rng.random(200) < 0.6).astype(float).tolist()
                for task in range(tasks)
            },
            model=f"demo/m{number}",
        )
        for number in range(7)
    ]
    board = make_board(runs)
    for row in board.rows:
        own = row.overall
        assert own is not None and row.together is not None
        assert row.together.value == pytest.approx(own.value)
        assert row.together.low < own.low < own.high < row.together.high
        assert row.ranks is not None and row.own_ranks is not None
        assert row.ranks[0] <= row.own_ranks[0] <= row.own_ranks[1] <= row.ranks[1]
    assert plain(board)["rows"][0]["together"]["level"] < 1
    assert make_board(runs[:1]).rows[0].together is None


def test_a_run_without_common_items_is_held_against_the_others_as_another_sample(
    tmp_path: Path,
) -> None:
    runs = simulated(tmp_path, [0.9, 0.5])
    runs.append(
        make_run(tmp_path, scores=[1, 0, 1], model="demo/apart", ids="other-{}")
    )
    board = make_board(runs)
    rows = {row.model: row for row in board.rows}
    assert rows["demo/apart"].ranks == (1, 3)
    # Three items tell nothing, so it may be either.
    assert [rows[name].letters for name in ("demo/m00", "demo/m01", "demo/apart")] == [
        "a",
        "b",
        "ab",
    ]
    assert any(
        "2 pairs of models have no item in common, and are compared as independent"
        in note
        for note in board.notes
    )
    many = make_run(
        tmp_path, scores=[0, 0, 0, 1] * 50, model="demo/worst", ids="other-{}"
    )
    assert {row.model: row.ranks for row in make_board([*runs[:2], many]).rows}[
        "demo/worst"
    ] == (3, 3)


@pytest.mark.parametrize("holes", [False, True])
def test_the_order_in_which_runs_are_named_changes_nothing(
    tmp_path: Path, holes: bool
) -> None:
    runs = simulated(tmp_path, [0.4, 0.45, 0.5, 0.55, 0.6, 0.65], n=120)
    if holes:
        runs.append(make_run(tmp_path, scores=[1, None, 0] * 40, model="demo/holes"))
    board = plain(make_board(runs))
    for seed in range(3):
        shuffled = [
            runs[place] for place in np.random.default_rng(seed).permutation(len(runs))
        ]
        assert plain(make_board(shuffled)) == board


def test_what_the_runs_were_given_differently_is_named(tmp_path: Path) -> None:
    run = make_run(tmp_path, model="a", name="a", scores=[1.0, 0.0, 1.0])
    two = make_run(tmp_path, model="b", name="b", scores=[1.0, 0.0])
    two.data["tasks"][0]["version"] = "2"
    two.data["tasks"][0]["definition"] = {
        "prompt": {"user": "Q: {{ question }}", "few_shot": {"count": 5}}
    }
    said = [
        note
        for note in make_board([run, two]).notes
        if note.startswith("Settings differ between the runs")
    ]
    assert said == [
        "Settings differ between the runs on 'factual': versions (1 in a; 2 in b), shots (0 in a; 5 in b), items (3 in a; 2 in b), "
        "prompts (a against b)."
    ]
    same = make_run(tmp_path, model="c", name="c", scores=[1.0, 1.0, 1.0])
    assert not [
        note for note in make_board([run, same]).notes if "were not all given" in note
    ]


def test_rows_whose_rank_disagrees_with_their_order_are_named(tmp_path: Path) -> None:
    """The run that answered the easy half alone has the highest score, and is worse on what it
    shares with another.
    """
    from evalwright.analysis.board_notes import _order_notes

    runs = [
        make_run(tmp_path, model=name, name=name, scores=[1.0, 0.0]) for name in "abc"
    ]
    rows = make_board(runs).rows
    ranked = [
        replace(row, ranks=ranks)
        for row, ranks in zip(rows, ((2, 3), (1, 2), (1, 3)), strict=True)
    ]
    (said,) = _order_notes(ranked)
    assert (
        "a (row 1, rank 2 to 3)" in said
        and "b (row 2" not in said  # its row is one of its possible ranks
        and "trust the rank" in said
        and "the model answered" not in said  # all answered everything
    )
    assert not list(
        _order_notes(
            [replace(row, ranks=(1 + index, 3)) for index, row in enumerate(rows)]
        )
    )
    assert not list(_order_notes([replace(row, ranks=(1, 3)) for row in rows]))


def test_missing_and_unsure_answers_have_columns_and_a_mark(tmp_path: Path) -> None:
    doubtful = Score(1.0, "correct", unsure="two numbers")
    few: list[Any] = [None] * 5 + [doubtful] * 3 + [1.0] * 52 + [0.0] * 40
    many: list[Any] = [None] * 6 + [1.0] * 54 + [0.0] * 40
    runs = [
        make_run(tmp_path, scores=few, model="demo/few", name="few"),
        make_run(tmp_path, scores=many, model="demo/many", name="many", limit=100),
    ]
    board = make_board(runs)
    rows = {row.run: row for row in board.rows}
    assert (rows["few"].n_missing, rows["few"].n_unsure, rows["few"].provisional) == (
        5,
        3,
        False,
    )
    assert (
        rows["many"].n_missing,
        rows["many"].n_unsure,
        rows["many"].provisional,
    ) == (6, 0, True)
    text = to_markdown(board_document(board))
    assert "| Missing | Unsure |" in text
    (line,) = [
        line
        for line in text.splitlines()
        if "demo/many" in line and line.startswith("|")
    ]
    assert "&#42;" in line.split("|")[1], "the mark is behind the rank"
    assert any(
        "More than 5% of the answers of demo/many (6.0%) are missing" in note
        for note in board.notes
    )
    assert any(
        "Limited to part of the items (--limit): demo/many (100)" in note
        for note in board.notes
    )
    assert not any("Failed" in note for note in board.notes)


def test_the_share_of_missing_answers_is_of_all_that_was_asked(tmp_path: Path) -> None:
    silent: list[Any] = [None] * 2 + ["no score"] * 20 + [1.0] * 18
    many: list[Any] = [None] * 3 + ["no score"] * 20 + [1.0] * 17
    runs = [
        make_run(tmp_path, scores=silent, model="demo/few", name="few"),
        make_run(tmp_path, scores=many, model="demo/many", name="many"),
    ]
    board = make_board(runs)
    assert {row.run: row.provisional for row in board.rows} == {
        "few": False,
        "many": True,
    }
    assert any("of demo/many (7.5%) are missing" in note for note in board.notes)


def test_missing_answers_in_the_answer_rate_are_said(tmp_path: Path) -> None:
    some = make_run(
        tmp_path, scores=[1.0] * 20 + [None], more_metrics=["answer-rate"], name="some"
    )
    none = make_run(
        tmp_path,
        scores=[None] * 21,
        more_metrics=["answer-rate"],
        name="none",
        model="demo/b",
    )
    assert some.tasks[0].metrics[1].estimate.value == pytest.approx(20 / 21)
    rate = none.tasks[0].metrics[1].estimate
    assert math.isnan(rate.value) and rate.n_missing == 21
    said = "a missing answer counts as not answered"
    assert any(said in note for note in make_board([some, none]).notes)
    shown = [block for run in (some, none) for block in run_document(run).blocks]
    assert sum(said in str(block) for block in shown) == 2


def test_nobody_is_told_to_run_again_what_was_imported(tmp_path: Path) -> None:
    scores = [None] * 5 + [1.0] * 20
    ours = make_run(tmp_path, scores=scores, name="ours")
    make_run(tmp_path, scores=scores, name="theirs", model="demo/b")
    with edited(tmp_path / "theirs") as data:
        data["configuration"]["imported"] = {"format": "x"}
    theirs = open_run(tmp_path / "theirs")
    (note,) = [
        note for note in make_board([ours, theirs]).notes if "More than 5%" in note
    ]
    assert "command that made 'ours' to fill its gap" in note
    assert "only the program that made 'theirs' can send these requests again" in note
    (alone,) = [note for note in make_board([theirs]).notes if "More than 5%" in note]
    assert "evalwright run" not in alone


def test_what_a_budget_left_out_is_said(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=[1.0, 0.0] * 20, model="demo/a", name="a"),
        make_run(tmp_path, scores=[1.0, 0.0] * 30, model="demo/b", name="b"),
    ]
    with edited(runs[0].folder) as record:
        record["stopping"] = {
            "rules": [],
            "decisions": [],
            "tasks": [{"task": "factual", "asked": 40, "of": 60}],
            "settled": False,
            "saved_requests": 0,
            "budget_reached": "cost",
        }
    board = make_board([open_run(runs[0].folder), runs[1]])
    row = next(row for row in board.rows if row.run == "a")
    assert (row.n, row.n_missing, row.n_not_asked) == (40, 0, 20)
    assert coverage(row) == "40 (20 not asked)"
    assert any("a spent budget" in note for note in board.notes)


def test_the_models_own_faults_are_counted_by_kind(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=[1.0, 0.0] * 20, model=f"demo/{name}", name=name)
        for name in ("a", "b")
    ]
    rewrite(
        runs[0], lambda row, place: row.update(outcome="cut") if place < 3 else None
    )
    with edited(runs[0].folder) as record:
        record["tasks"][0]["outcomes"] = {"answered": 37, "cut": 3}
    board = make_board([open_run(runs[0].folder), runs[1]])
    assert [
        dict(row.faults) for row in sorted(board.rows, key=lambda row: row.run)
    ] == [{"cut": 3}, {}]
    assert "| Cut |" in to_markdown(board_document(board)).replace(
        " (the model's own fault)", ""
    )


@pytest.mark.parametrize(
    ("counts", "spread"),
    [
        ([7], ""),
        ([10, 71], " (10 and 71)"),
        ([4, 4], " (4 in each run)"),
        ([3, 9, 5], " (from 3 to 9 a run)"),
    ],
)
def test_a_total_says_how_it_is_spread_over_the_runs(
    counts: list[int], spread: str
) -> None:
    assert _spread_over_runs(counts) == spread


def test_a_board_shows_no_address_of_a_server(tmp_path: Path) -> None:
    address = "openai/http://127.0.0.1:8931/v1#beta"
    runs = [
        make_run(tmp_path, scores=[1.0, 0.0] * 10, model=address, name="plain"),
        make_run(tmp_path, scores=[1.0] * 20, model=address, name="labelled"),
    ]
    with edited(runs[1].folder) as record:
        record["model"]["label"] = "Beta"
    runs = [open_run(run.folder) for run in runs]
    assert [run.label for run in runs] == ["openai/beta", "Beta"]
    assert runs[0].model == address, "the record stays as it is"
    board = make_board(runs)
    pages = [
        json.dumps(board.as_dict()),
        to_markdown(board_document(board)),
        board_csv(board),
        *(to_markdown(run_document(run)) for run in runs),
    ]
    for page in pages:
        assert "127.0.0.1" not in page and "eta" in page


def judged_by(folder: Path, judges: dict[str, str], n_judged: int = 3) -> list[Run]:
    """Runs of models, of each of which a judge read some unsure answers."""
    runs = []
    for name, judge in judges.items():
        read = [Score(1.0, "correct", parts={JUDGE_READ: 1.0})] * n_judged
        scores: list[Any] = [*read, *[1.0, 0.0] * 20]
        run = make_run(folder, scores=scores, model=f"demo/{name}", name=name)
        with edited(run.folder) as record:
            scorer = record["tasks"][0]["scorers"][0]
            scorer["options"] = {"unsure": {"scorer": "judge-correct"}}
            record["roles"] = {"judge": {"name": judge, "fingerprint": judge}}
        runs.append(open_run(run.folder))
    return runs


def test_ranks_that_two_judges_gave_are_marked(tmp_path: Path) -> None:
    one = make_board(judged_by(tmp_path / "one", {"a": "x/j1", "b": "x/j1"}))
    page = to_markdown(board_document(one))
    assert "Scored with x/j1 in the role 'judge'." in page and "†" not in page
    judges = {"a": "x/j1", "b": "x/j2", "c": "x/j2"}
    board = make_board(judged_by(tmp_path / "two", judges))
    assert all(row.other_judge for row in board.rows)
    page = to_markdown(board_document(board))
    assert "x/j1 for demo/a; x/j2 for demo/b and demo/c" in page
    assert page.count("1–3 †") == 3 and "ranks marked †" in page
    summary = to_markdown(board_summary(board))
    assert "† another judge" in summary


def test_a_judge_without_unsure_answers_is_no_difference(tmp_path: Path) -> None:
    runs = judged_by(tmp_path, {"a": "x/j1"})
    runs += judged_by(tmp_path, {"b": "x/j1", "c": "x/j2"}, n_judged=0)
    board = make_board(runs)
    assert not any(row.other_judge for row in board.rows)
    assert not any("not those of" in note for note in board.notes)


def test_a_model_whose_answers_are_all_missing_is_not_provisional(
    tmp_path: Path,
) -> None:
    runs = [
        make_run(tmp_path, scores=[1.0, 0.0] * 10, model="demo/a", name="a"),
        make_run(tmp_path, scores=[None] * 20, model="demo/b", name="b"),
    ]
    notes = " ".join(make_board(runs).notes)
    assert "All answers of demo/b are missing." in notes
    assert "marked *" not in notes


def test_a_board_of_one_task_has_no_note_of_another(tmp_path: Path) -> None:
    scores = {"factual": [1.0, 0.0] * 10, "other": [1.0, 0.0] * 10}
    runs = [
        make_run(tmp_path, scores=scores, model=f"demo/{name}", name=name)
        for name in "ab"
    ]
    with edited(runs[1].folder) as record:
        record["tasks"][1]["definition"]["answer"] = {"max_tokens": 7}
    runs = [open_run(run.folder) for run in runs]
    assert any("'other'" in note for note in make_board(runs).notes)
    board = make_board(runs, metric="factual.accuracy")
    assert not any("'other'" in note for note in board.notes)


def test_notes_that_differ_in_names_and_numbers_alone_are_counted() -> None:
    names = [f"model-{number}" for number in range(9)]
    notes = [
        "Intervals are 95%.",
        *(f"{name} lacks {number + 10} answers." for number, name in enumerate(names)),
        "Another note.",
    ]
    assert bound_notes(notes, names) == [
        "Intervals are 95%.",
        "model-0 lacks 10 answers.",
        "model-1 lacks 11 answers.",
        "model-2 lacks 12 answers.",
        "6 more notes of this kind are left out.",
        "Another note.",
    ]


def test_rounded_published_numbers_are_ranked_by_their_items(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, scores=[1] * right + [0] * (400 - right), label=f"m{right}")
        for right in (123, 250, 377)
    ]
    exact = make_board(runs)
    for run in runs:
        with edited(run.folder) as record:
            record["tasks"][0]["definition"]["dialect"] = "hhem-leaderboard"
            for metric in record["tasks"][0]["metrics"]:
                metric["value"] = round(metric["value"], 3)
                metric["method"] += "; rounded to one decimal"
    rounded = make_board([open_run(run.folder) for run in runs])
    assert [row.ranks for row in rounded.rows] == [row.ranks for row in exact.rows]
    assert rounded.rows[0].cells["factual"].estimate.value == 0.943
    assert any("are rounded, as they were published" in note for note in rounded.notes)


def test_only_scores_that_may_be_the_best_are_bold(tmp_path: Path) -> None:
    runs = [
        make_run(
            tmp_path,
            scores={task: [1.0] * right + [0.0] * (60 - right) for task in "xy"},
            name=name,
            model=f"demo/{name}",
        )
        for name, right in (("a", 55), ("b", 52), ("c", 12))
    ]
    text = to_markdown(board_document(make_board(runs)))
    row_by_model = {
        name: line
        for name in "abc"
        for line in text.splitlines()
        if f"demo/{name}" in line and line.startswith("|")
    }
    assert [row_by_model[name].count("**91.7") for name in "abc"] == [1, 0, 0]
    assert "**86.7" in row_by_model["b"]
    assert "**20.0" not in row_by_model["c"]
