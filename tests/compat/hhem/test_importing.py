"""`import_hhem` on trees with everything that can be wrong in them."""

from __future__ import annotations

import json
import math
import random
from pathlib import Path

import pytest

from compat.hhem.hhem_trees import (
    PLACEHOLDERS,
    REFUSAL,
    Line,
    Model,
    about,
    engine,
    lines_of,
    mixed,
    one,
    read,
    shown,
    text_of,
    three,
    write,
)
from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs
from evalwright.compat.hhem.importing import import_hhem
from evalwright.reports.columns import shown_columns
from evalwright.runs.records import record_row
from evalwright.statistics import wilson
from runs.test_schemas import validator

RATE = "Answer rate"

# -- what a run holds
# ---------------------------------------------------------------------------------------------------


def test_rows_are_what_became_of_them(tmp_path: Path) -> None:
    Model().write(tmp_path / "output", mixed())
    run = one(tmp_path / "output", tmp_path / "runs")
    run.verify()
    validator("run").validate(json.loads((run.folder / "run.json").read_text()))
    rows = list(run.rows())
    for row in rows:
        validator("sample").validate(row)
    assert [record_row(record) for record in run.samples()] == rows
    assert [row["id"] for row in rows] == [str(place) for place in range(1, 8)]
    labels = [row["scores"]["answered"]["label"] for row in rows]
    assert labels == ["answered"] * 4 + ["refused", "failed", "too short"]
    values = [row["scores"].get("consistency", {}).get("value") for row in rows]
    assert values == [1.0, 1.0, 1.0, 0.0, None, None, None]
    assert rows[3]["scores"]["consistency"]["parts"] == {"score": 0.4999}
    assert rows[5]["score_failures"]["consistency"]["kind"] == "request failed"
    assert rows[5]["metadata"]["recorded"] == PLACEHOLDERS[0]
    assert "answer" not in rows[5] and rows[4]["answer"] == REFUSAL
    (task,) = run.tasks
    assert (task.n_samples, task.n_missing, task.failures) == (
        7,
        1,
        {"request failed": 1},
    )
    assert three(run) == (25.0, 57.1, 15.0)
    by_label = {metric.label: metric.estimate for metric in task.metrics}
    main = by_label["hallucination-rate"]
    assert (main.n, main.n_missing) == (4, 1)
    assert main.low < 0.25 < main.high
    assert main.bounds is not None and list(main.bounds) == pytest.approx(
        [wilson(1, 5)[0], wilson(2, 5)[1]]
    )
    consistent = by_label["factual-consistency-rate"]
    assert (consistent.value, consistent.low, consistent.high) == (
        0.75,
        1 - main.high,
        1 - main.low,
    )
    replies = by_label["answer-rate-of-replies"]
    assert replies.value == pytest.approx(4 / 6)
    assert (replies.n, replies.n_missing) == (6, 1)
    assert run.model == "acme/one"
    assert run.data["started"] == "2026-01-02T00:00:00+00:00"
    assert about(run)["judge"] == "HHEM-2.3-API"


def test_the_path_is_a_tree_a_company_a_model_or_its_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = Model().write(tmp_path / "output", mixed())
    out = tmp_path / "runs"
    found = {
        one(path, out).folder
        for path in (
            folder,
            folder.parent,
            folder.parent.parent,
            folder / "judgments.jsonl",
        )
    }
    monkeypatch.chdir(folder)
    found.add(one(Path(), out).folder)
    assert found == {out / "acme-one--2026-01-02"}
    assert one(folder, out, name="mine").id == "mine"


@pytest.mark.parametrize("shuffled", [False, True])
@pytest.mark.parametrize("summaries", [True, False])
def test_both_modes_against_plain_loops(
    tmp_path: Path, summaries: bool, shuffled: bool
) -> None:
    """Rows that share uids at random: the engine's numbers by its join, ours by counting rows."""
    dice = random.Random(f"{summaries}{shuffled}")
    lines = []
    for place in range(1, 120):
        text = dice.choice(
            [
                text_of(place),
                text_of(dice.randrange(9)),
                REFUSAL,
                "Short.",
                PLACEHOLDERS[1],
            ]
        )
        uid = text if dice.random() < 0.5 else ""
        lines.append(Line(place, text, dice.choice([0.2, 0.4999, 0.5, 0.9]), uid))
    folder = Model().write(tmp_path / "output", lines)
    judgments = read(folder / "judgments.jsonl")
    written = read(folder / "summaries.jsonl")
    if shuffled:
        dice.shuffle(written)
        write(folder / "summaries.jsonl", written)
    if not summaries:
        (folder / "summaries.jsonl").unlink()
    theirs = one(folder, tmp_path / "published", scoring="published")
    assert three(theirs) == engine(judgments, written, "", "2026-01-01", "2026-01-02")
    assert about(theirs)["differences"] == []
    ours = one(folder, tmp_path / "corrected")
    valid = [row for row in judgments if row["is_valid"]]
    wrong = sum(row["hhem_score"] < 0.5 for row in valid)
    words = sum(row["word_count"] for row in valid) / len(valid)
    assert three(ours) == (
        round(wrong / len(valid) * 100, 1),
        round(len(valid) / len(judgments) * 100, 1),
        round(words, 1),
    )
    assert three(ours) != three(theirs)
    differing = {
        difference["metric"]: difference for difference in about(ours)["differences"]
    }
    assert differing["answer-rate"] == {
        "metric": "answer-rate",
        "ours": three(ours)[1],
        "published": three(theirs)[1],
    }
    assert next(ours.rows())["id"] == ("1" if summaries else "1 of 119")
    if summaries:
        ids = {row["id"]: row for row in ours.rows()}
        for line, judgment in zip(lines, judgments, strict=True):
            scores = ids[str(line.article)]["scores"]
            if judgment["is_valid"]:
                assert scores["consistency"]["parts"]["score"] == line.score


# -- groups
# -------------------------------------------------------------------------------------------------------------


def test_the_last_judgment_of_each_date_code(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    old = Model()
    old.write(tree, lines_of([0.1, 0.1, 0.9]))
    new = old.but(judgment_date="2026-02-01", summary_date="2026-01-31")
    new.write(tree, lines_of([0.9, 0.9, 0.9]), append=True)
    run = one(tree, tmp_path / "runs")
    assert three(run)[0] == 0.0
    assert about(run)["older_judgments_left_out"] == 1
    assert about(run)["summary_date"] == "2026-01-31"
    both = import_hhem(tree, tmp_path / "all", every=True)[0]
    assert [(three(found)[0], found.id[-10:]) for found in both] == [
        (66.7, "2026-01-02"),
        (0.0, "2026-02-01"),
    ]


def test_a_date_code_that_the_engine_lost(tmp_path: Path) -> None:
    """Two models in one folder; the statistics know one of them, or none."""
    tree = tmp_path / "output"
    Model().write(tree, lines_of([0.9, 0.9]))
    Model(date_code="0324", stats=False).write(tree, lines_of([0.1, 0.9]), append=True)
    runs = {run.model: run for run in import_hhem(tree, tmp_path / "runs")[0]}
    assert {name: three(run)[0] for name, run in runs.items()} == {
        "acme/one": 0.0,
        "acme/one-0324": 50.0,
    }
    assert about(runs["acme/one-0324"])["published"] is None
    assert "published nothing" in about(runs["acme/one-0324"])["notes"][0]
    (tree / "acme" / "one" / "stats.jsonl").write_text("")
    assert len(import_hhem(tree, tmp_path / "again")[0]) == 2


def test_a_model_summarised_twice(tmp_path: Path) -> None:
    """Asked twice without overwriting, every article stands twice: one cluster each, and pairing
    with others holds.
    """
    tree = tmp_path / "output"
    Model().write(tree, lines_of([0.9, 0.1, 0.9]))
    Model().write(tree, lines_of([0.9, 0.9, 0.9]), append=True)
    Model("acme/two").write(tree, lines_of([0.9, 0.9, 0.1]))
    doubled, other = import_hhem(tree, tmp_path / "runs")[0]
    assert [row["id"] for row in doubled.rows()] == ["1", "2", "3", "1#2", "2#2", "3#2"]
    main = doubled.tasks[0].metrics[0].estimate
    assert (main.n, main.n_clusters) == (6, 3)
    assert main.value == pytest.approx(1 / 6)
    assert about(doubled)["lost"] == 0
    pair = compare_runs(doubled, other).tasks[0].paired
    assert pair is not None
    assert pair.n == 3


def test_summaries_and_judgments_that_do_not_meet(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    folder = Model(stats=False).write(tree, lines_of([0.9, 0.1, 0.9]))
    kept = read(folder / "summaries.jsonl")
    write(
        folder / "summaries.jsonl",
        [*kept[:2], {**kept[2], "summary_uid": "other", "article_id": 9}],
    )
    run = one(tree, tmp_path / "runs")
    rows = list(run.rows())
    assert [row["id"] for row in rows] == [f"{place} of 4" for place in range(1, 5)]
    assert rows[3]["score_failures"]["consistency"]["kind"] == "not judged"
    assert run.tasks[0].metrics[0].estimate.n == 3
    notes = " ".join(about(run)["notes"])
    assert "never judged: 1" in notes and "without an article: 1" in notes
    write(
        folder / "summaries.jsonl",
        [{**row, "summary_uid": f"x{row['summary_uid']}"} for row in kept],
    )
    run = one(tree, tmp_path / "none")
    assert run.tasks[0].metrics[0].estimate.n == 3
    assert "none of the summaries" in about(run)["notes"][0]


def test_a_judge_that_gave_no_score(tmp_path: Path) -> None:
    Model().write(tmp_path / "output", lines_of([0.9, None, 0.1]))
    run = one(tmp_path / "output", tmp_path / "runs")
    (task,) = run.tasks
    assert task.failures == {"not judged": 1}
    assert (task.metrics[0].estimate.value, task.metrics[0].estimate.n) == (0.5, 2)
    assert (
        three(one(tmp_path / "output", tmp_path / "p", scoring="published"))[0] == 66.7
    )


def test_nothing_valid_is_no_number(tmp_path: Path) -> None:
    Model().write(tmp_path / "output", [Line(1, REFUSAL, 0.9), Line(2, REFUSAL, 0.9)])
    for scoring in ("corrected", "published"):
        run = one(tmp_path / "output", tmp_path / scoring, scoring=scoring)
        assert math.isnan(run.tasks[0].metrics[0].estimate.value)
        assert three(run) == (None, 0.0, None)


# -- lost rows and the data set
# -----------------------------------------------------------------------------------------


def test_lost_rows_are_said_and_pair_with_nothing(tmp_path: Path) -> None:
    tree = tmp_path / "output"
    for name, lines in (
        ("a", lines_of([0.9] * 10)),
        ("b", lines_of([0.9, 0.1] * 4)),
        ("c", lines_of([0.1] * 10)),
    ):
        folder = Model(f"acme/{name}").write(tree, lines)
        (folder / "summaries.jsonl").unlink()
    a, b, c = import_hhem(tree, tmp_path / "runs")[0]
    assert [about(run)["lost"] for run in (a, b, c)] == [0, 2, 0]
    assert (shown(b)["answer-rate"], shown(b)["answer-rate-of-dataset"]) == (
        100.0,
        80.0,
    )
    assert b.tasks[0].failures == {"row lost": 2}
    assert "longest of 3 runs" in about(b)["dataset"]["known_from"]
    assert about(b)["notes"][0].startswith("2 of the data set's 10 rows are lost")
    (task,) = compare_runs(a, c).tasks
    assert task.paired is not None
    assert task.paired.n == 10
    (task,) = compare_runs(a, b).tasks
    assert task.paired is None
    assert task.unpaired is not None
    alone = one(tree / "acme" / "b", tmp_path / "runs")
    assert alone.folder == b.folder
    assert about(alone)["lost"] == 0
    assert "cannot be counted" in about(alone)["dataset"]["known_from"]


def test_a_boards_answer_rate_counts_lost_rows(tmp_path: Path) -> None:
    """All models' rates are over the same items: 2 lost rows are 2 that are not answered."""
    tree = tmp_path / "output"
    for name, lines in (
        ("whole", lines_of([0.9] * 9 + [0.1])),
        ("lost", lines_of([0.9, 0.1] * 4)),
    ):
        folder = Model(f"acme/{name}").write(tree, lines)
        (folder / "summaries.jsonl").unlink()
    for scoring, rate in (("corrected", 80.0), ("published", 100.0)):
        runs = import_hhem(tree, tmp_path / scoring, scoring=scoring)[0]
        board = make_board(runs, metric="hallucination-rate")
        column = next(
            column for column in shown_columns(board).columns if column.title == RATE
        )
        rates = {
            row.label: estimate and round(100 * estimate.value, 1)
            for row, estimate in zip(board.rows, column.estimates, strict=True)
        }
        assert rates == {"acme/whole": 100.0, "acme/lost": rate}
        said = "lost count as not answered (acme/lost: 2)" in " ".join(board.notes)
        assert said == (scoring == "corrected")


def articles_csv(path: Path, n: int) -> Path:
    kinds = ("law", "news")
    rows = [
        f'{place},"A text, with\na line",{kinds[place % 2]},standard_text'
        for place in range(1, n + 1)
    ]
    path.write_text(
        "\n".join(["article_id,text,category,text_type", *rows]) + "\n",
        encoding="utf-8-sig",
    )
    return path


@pytest.mark.parametrize("scoring", ["corrected", "published"])
@pytest.mark.parametrize("summaries", [True, False])
def test_slices_by_the_articles(tmp_path: Path, scoring: str, summaries: bool) -> None:
    folder = Model().write(tmp_path / "output", lines_of([0.9, 0.1, 0.9, 0.1, 0.9]))
    if not summaries:
        (folder / "summaries.jsonl").unlink()
    csv = articles_csv(tmp_path / "articles.csv", 5)
    run = one(folder, tmp_path / "runs", articles=csv, scoring=scoring)
    (task,) = run.tasks
    assert list(task.slices) == ["category"]
    rates = {
        value: metrics[0].estimate.value
        for value, metrics in task.slices["category"].items()
    }
    assert rates == {"law": 1.0, "news": 0.0}
    assert next(run.rows())["metadata"]["category"] == "news"
    assert [row["id"] for row in run.rows()] == ["1", "2", "3", "4", "5"]
    assert "A text" not in (run.folder / "samples.jsonl").read_text()


def test_articles_without_a_row_are_lost_in_their_slice(tmp_path: Path) -> None:
    folder = Model().write(
        tmp_path / "output", [line for line in lines_of([0.9] * 6) if line.article != 3]
    )
    run = one(
        folder, tmp_path / "runs", articles=articles_csv(tmp_path / "articles.csv", 6)
    )
    assert about(run)["lost"] == 1
    (task,) = run.tasks
    of = {
        value: {m.label: m.estimate for m in metrics}
        for value, metrics in task.slices["category"].items()
    }
    assert of["news"]["answer-rate-of-dataset"].value == pytest.approx(2 / 3)
    assert of["law"]["answer-rate-of-dataset"].value == 1.0
    again = one(folder, tmp_path / "runs")
    assert again.folder == run.folder and about(again)["lost"] == 0
    (folder / "summaries.jsonl").unlink()
    (folder / "stats.jsonl").unlink()
    run = one(folder, tmp_path / "again", articles=tmp_path / "articles.csv")
    assert run.tasks[0].slices == {}
    assert "no slices" in " ".join(about(run)["notes"])


def test_rows_in_another_order_pair_with_nothing(tmp_path: Path) -> None:
    """Hard articles are hard for every model; one run of five went through them in another
    order.
    """
    tree = tmp_path / "output"
    dice = random.Random(4)
    hard = [dice.random() for _ in range(600)]
    for model in range(5):
        order = list(range(600))
        if model == 3:
            dice.shuffle(order)
        scores = [(hard[article] + 2 * dice.random()) / 3 for article in order]
        folder = Model(f"acme/m{model}").write(tree, lines_of(scores))
        (folder / "summaries.jsonl").unlink()
    runs = import_hhem(tree, tmp_path / "runs")[0]
    ids = [{row["id"] for row in run.rows()} for run in runs]
    assert ids[0] == ids[1] == ids[2] == ids[4]
    assert not ids[3] & ids[0]
    assert "another order" in about(runs[3])["pairing"]
    assert any("another order" in note for note in about(runs[3])["notes"])
