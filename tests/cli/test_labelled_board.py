"""`leaderboard --labels` and `check judge sample --for-ranks`: from runs to labels to corrected
ranks, on the command line.
"""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from support.judging import fill_in, read_table
from support.runs import make_run
from support.typed import typed

MODELS = {"a": (0.05, 0.02), "b": (0.3, 0.05), "c": (0.1, 0.3), "d": (0.5, 0.05)}
"""By model: how often people call an answer wrong, and how often the judge a right one."""


@pytest.fixture(autouse=True)
def truth(folder: Path) -> dict[str, Any]:
    """Runs with a judge that is hard on c, and what people say of every answer."""
    rng = np.random.default_rng(0)
    right_by_model = {}
    for name, (wrong, alarm) in MODELS.items():
        right = (rng.random(300) >= wrong).astype(float)
        errs = rng.random(300) < np.where(right == 1, alarm, 0.2)
        make_run(
            folder / "runs",
            scores=np.where(errs, 1 - right, right).tolist(),
            name=name,
            model=f"demo/{name}",
            text=f"the answer of {name}",
            metric="hallucination-rate",
        )
        right_by_model[name] = right
    return right_by_model


def label(
    truth: dict[str, Any], run: str, n: int, *, most: int = 1000, **filling: Any
) -> str:
    """Draw `n` answers of a run, label `most` of them, and return the file."""
    table = f"{run}-{n}.csv"
    done = typed("check", "judge", "sample", run, "--n", str(n), "--to", table)
    assert done.code == 0, done.err
    return fill(truth, table, {table: run}, most=most, **filling)


def fill(
    truth: dict[str, Any],
    table: str,
    runs: dict[str, str] | None = None,
    *,
    most: int = 1000,
    labeller: str = "",
    flips: int = 0,
) -> str:
    """Fill in a table; `flips` of the labels are the other way round."""
    names = {}
    for run in MODELS:
        for file in Path("runs", run).glob("labelling-*.json"):
            names[json.loads(file.read_text())["name"]] = run
    rows = read_table(table)
    numbers = {row["row"]: number for number, row in enumerate(rows)}

    def said(row: Any) -> object:
        number = numbers[row["row"]]
        if number >= most:
            return ""
        run = names[row["row"].partition("-")[0]]
        right = truth[run][int(row["id"].removeprefix("item-"))]
        return int(1 - right if number < flips else right)

    done = f"{labeller}done-{table}"
    Path(done).write_text(fill_in(rows, said, labeller=labeller), encoding="utf-8")
    return done


def board(*arguments: str, code: int = 0) -> Any:
    done = typed("leaderboard", *arguments, "--json")
    assert done.code == code, done.err
    return json.loads(done.out)


def labels_of(*files: str) -> list[str]:
    return [word for file in files for word in ("--labels", file)]


def test_labels_correct_rates_and_ranks(truth: dict[str, Any]) -> None:
    """By the judge c is as bad as b; people say that it is much better."""
    files = [label(truth, run, 150) for run in MODELS]
    judged = board(*MODELS)
    assert [row["run"] for row in judged["rows"]].index("c") >= 1
    corrected = board(*MODELS, *labels_of(*files))
    rows = {row["run"]: row for row in corrected["rows"]}
    assert [row["run"] for row in corrected["rows"]] == ["a", "c", "b", "d"]
    for name, row in rows.items():
        estimate = row["corrected"]
        rate = 1 - truth[name].mean()
        assert estimate["low"] <= rate <= estimate["high"]
        assert row["judge_errors"]["labels"] == 150
        assert row["judge_errors"]["false_alarm"]["n"] > 50
    assert rows["c"]["judge_errors"]["false_alarm"]["low"] > 0.2
    assert rows["d"]["ranks"] == [4, 4]
    assert rows["b"]["ranks"] == [3, 3]
    notes = " ".join(corrected["notes"])
    assert "600 labels of 4 models; PPI++" in notes
    assert "The judge does not err alike on all models (false alarms: p = " in notes

    text = " ".join(typed("leaderboard", *MODELS, *labels_of(*files)).out.split())
    assert "corrected" in text
    assert "by the judge" in text
    assert "Judge's misses" in text


def test_files_have_both_numbers(truth: dict[str, Any]) -> None:
    files = [label(truth, run, 100) for run in ("a", "d")]
    outputs = ("--csv", "b.csv", "--html", "b.html", "--markdown", "b.md")
    done = typed("leaderboard", "a", "d", *labels_of(*files), *outputs)
    assert done.code == 0, done.err
    with Path("b.csv").open(encoding="utf-8-sig") as file:
        row = next(csv.DictReader(file))
    assert {"corrected", "corrected_low", "hallucination_rate", "judge_miss"} <= {*row}
    assert "Hallucination rate, corrected" in Path("b.md").read_text(encoding="utf-8")
    assert "corrected" in Path("b.html").read_text(encoding="utf-8")


def test_few_labels_correct_nothing_and_the_board_says_so(
    truth: dict[str, Any],
) -> None:
    files = [label(truth, "a", 100), label(truth, "b", 60, most=12)]
    corrected = board("a", "b", "c", *labels_of(*files))
    rows = {row["run"]: row for row in corrected["rows"]}
    assert rows["a"]["ranks"] == [1, 1]
    assert rows["b"]["ranks"] is None
    assert "corrected" not in rows["b"]
    assert rows["b"]["judge_errors"]["pooled"]
    (note,) = (note for note in corrected["notes"] if note.startswith("Not corrected"))
    assert "demo/b (it has 12 labels, fewer than 20)" in note
    assert "demo/c (it has no labels)" in note
    assert "because the judge may favour it" in note

    done = typed("leaderboard", "b", "c", *labels_of(files[1]))
    assert done.code == 2
    assert "correct no model of the board" in done.err
    assert "--for-ranks" in done.err


def test_chosen_and_disputed_labels_correct_nothing(truth: dict[str, Any]) -> None:
    file = label(truth, "a", 100)
    Path("picked.csv").write_text(
        "row,task,id,draw,label\n,factual,item-3,0,0\n,factual,item-4,0,0\n"
    )
    flipped = ("--flipped", "b", "--to", "flipped.csv")
    assert typed("check", "judge", "sample", "a", *flipped).code == 0
    disputed = fill(truth, "flipped.csv")
    alone = board("a", "b", *labels_of(file))
    both = board("a", "b", *labels_of(file, "picked.csv", disputed))
    assert alone["rows"][0]["corrected"] == both["rows"][0]["corrected"]
    notes = " ".join(both["notes"])
    assert (
        "Left out: 2 rows of the tables, which are of answers chosen by hand" in notes
    )
    assert "drawn from disputed ones alone" in notes


def test_people_who_differ(truth: dict[str, Any]) -> None:
    file = label(truth, "a", 80, labeller="Ann")
    second = fill(truth, "a-80.csv", labeller="Bea", flips=8)
    notes = " ".join(board("a", *labels_of(file, second))["notes"])
    assert (
        "2 people labelled; 80 answers have several labels, which differ on 8" in notes
    )


def test_labels_for_ranks(truth: dict[str, Any]) -> None:
    """First labels, then those that could settle a rank: both count, with known chances."""
    names = list(MODELS)
    first = [label(truth, run, 40) for run in names]
    before = board(*names, *labels_of(*first))
    done = typed(
        *("check", "judge", "sample", *names, "--for-ranks", "--n", "200"),
        *labels_of(*first),
        "--json",
    )
    assert done.code == 0, done.err
    drawn = json.loads(done.out)
    assert drawn["rows"] == 200
    assert drawn["open_pairs"] > 0
    assert 0 < drawn["expected_settled"] <= drawn["open_pairs"]
    for model in drawn["models"]:
        assert model["labels"] == 40
        if model["drawn"]:
            assert model["expected_half_width"] < model["half_width"]
    for kept in drawn["kept"]:
        label_set = json.loads(Path(kept).read_text())
        assert label_set["design"] == "stratified"
        assert len(label_set["earlier"]) == 1
        assert all(0 < chance <= 1 for chance in label_set["probabilities"])
        earlier = json.loads(
            Path(kept)
            .with_name(f"labelling-{label_set['earlier'][0]}.json")
            .read_text()
        )
        assert not {*label_set["rows"]} & {*earlier["rows"]}

    more = fill(truth, "ranks.labels.csv")
    after = board(*names, *labels_of(*first, more))
    assert sum(row["judge_errors"]["labels"] for row in after["rows"]) == 360

    def width(record: Any) -> float:
        ends = [row["corrected"] for row in record["rows"]]
        widths = [float(estimate["high"] - estimate["low"]) for estimate in ends]
        return sum(widths)

    assert width(after) < width(before)
    for row in after["rows"]:
        rate = 1 - truth[row["run"]].mean()
        assert row["corrected"]["low"] <= rate <= row["corrected"]["high"]


def test_sets_drawn_independently_are_not_combined(truth: dict[str, Any]) -> None:
    small = label(truth, "a", 30)
    large = label(truth, "a", 90)
    corrected = board("a", *labels_of(small, large))
    assert corrected["rows"][0]["judge_errors"]["labels"] == 90
    assert "30 rows of the tables, which are of further sets" in " ".join(
        corrected["notes"]
    )


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["a", "--for-ranks"], "at least two runs"),
        (["a", "b", "c"], "one run, or two"),
        (["a", "b", "--labels", "x.csv"], "--for-ranks"),
        (["a", "b", "--for-ranks", "--design", "stratified"], "leave out --scorer"),
        (["a", "b", "--for-ranks", "--n", "5"], "two models need at least"),
        (["a", "d", "--for-ranks", "--labels", "none.csv"], "cannot be read"),
    ],
)
def test_wrong_usage_of_draws(arguments: list[str], words: str) -> None:
    done = typed("check", "judge", "sample", *arguments)
    assert done.code == 2
    assert words in " ".join(done.err.split())
    assert "Traceback" not in done.err


def test_labels_that_fit_no_board(truth: dict[str, Any]) -> None:
    file = label(truth, "a", 50)
    done = typed("leaderboard", "b", "c", *labels_of(file))
    assert done.code == 2
    Path("unknown.csv").write_text("row,label\ns12345678-01,1\n")
    done = typed("leaderboard", "a", "b", *labels_of("unknown.csv"))
    assert done.code == 2
    assert "unknown.csv, line 2: the labelling set 's12345678' is unknown" in done.err
