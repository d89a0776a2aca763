"""`leaderboard --labels` and `check judge sample --for-ranks`: from runs to labels to corrected
ranks, on the command line.
"""

from __future__ import annotations

import csv
import hashlib
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


def add_factual_consistency(folder: Path) -> None:
    """Give the runs the complement of their hallucination rate, as HHEM's runs have it."""
    for run in MODELS:
        file = folder / "runs" / run / "run.json"
        record = json.loads(file.read_text(encoding="utf-8"))
        (task,) = record["tasks"]
        rate = task["metrics"][0]
        ends = {"value": "value", "low": "high", "high": "low"}
        mirrored = {name: 1 - rate[end] for name, end in ends.items()}
        consistency = {
            **rate,
            "label": "factual-consistency-rate",
            "kind": "accuracy",
            "lower_is_better": False,
            **mirrored,
        }
        task["metrics"].append(consistency)
        file.write_text(json.dumps(record), encoding="utf-8")


def test_published_files_lead_with_corrected_scores(
    truth: dict[str, Any], folder: Path
) -> None:
    """README, page and board.json rank by what they show first, and the complement follows it."""
    add_factual_consistency(folder)
    files = [label(truth, run, 100) for run in ("a", "c", "d")]
    outputs = ("--into", "LAB.md", "--html", "b.html", "--json-file", "board.json")
    done = typed(
        *("leaderboard", *MODELS, "--preset", "hhem", *labels_of(*files), *outputs)
    )
    assert done.code == 0, done.err

    record = json.loads(Path("board.json").read_text(encoding="utf-8"))
    headline, judged = record["nodes"][:2]
    corrected = [model["corrected"].get("value") for model in record["models"]]
    assert headline["id"] == record["rank_by"]
    assert headline["value"] == corrected
    assert corrected[:3] == sorted(corrected[:3])
    assert headline["reasons"] == {"3": "not corrected: it has no labels"}
    assert headline["rank"] == [model["rank"] for model in record["models"]]
    assert judged["title"].endswith(", by the judge")
    for value, model in zip(judged["value"], record["models"], strict=True):
        assert value == model["scores"]["hallucination_rate"]["value"]
    for model, rate in zip(record["models"][:3], corrected[:3], strict=True):
        consistency = model["scores"]["corrected_factual_consistency_rate"]
        assert consistency["value"] == pytest.approx(1 - rate)
        assert consistency["low"] == pytest.approx(1 - model["corrected"]["high"])

    readme = Path("LAB.md").read_text(encoding="utf-8")
    table = [line for line in readme.splitlines() if line.startswith("|")]
    heads, _, first_row = (
        [cell.strip() for cell in line.split("|")[1:-1]] for line in table[:3]
    )
    assert heads[1:3] == [
        "Hallucination Rate, corrected",
        "Hallucination Rate, by the judge",
    ]
    assert "Factual Consistency Rate, corrected" in heads
    assert first_row[1].startswith(f"{100 * corrected[0]:.1f} %")

    page = Path("b.html").read_text(encoding="utf-8")
    titles = [
        page.index(f">{title}<")
        for title in (
            "Hallucination rate, corrected",
            "Hallucination rate, by the judge",
        )
    ]
    assert titles == sorted(titles)
    text = " ".join(typed("leaderboard", *MODELS, *labels_of(*files)).out.split())
    assert "false_alarm" not in text + page.partition("<script")[0]
    assert "of right answers" in text


def write_samples(file: Path, records: list[dict[str, Any]]) -> None:
    """Write other samples of a run, with their hash in `run.json`."""
    text = "".join(f"{json.dumps(record)}\n" for record in records)
    file.write_text(text, encoding="utf-8")
    about = file.with_name("run.json")
    run_record = json.loads(about.read_text(encoding="utf-8"))
    run_record["samples"]["sha256"] = hashlib.sha256(text.encode()).hexdigest()
    about.write_text(json.dumps(run_record), encoding="utf-8")


def test_answers_without_texts_are_not_drawn(folder: Path) -> None:
    """Imported scores have no texts: a table of empty cells could not be filled in."""
    for run in ("a", "b"):
        file = folder / "runs" / run / "samples.jsonl"
        records = [json.loads(line) for line in file.read_text().splitlines()]
        for record in records:
            record |= {"input": "", "targets": []}
            record.pop("answer", None)
        write_samples(file, records)
    for arguments in (["a"], ["a", "b"], ["a", "b", "--for-ranks", "--n", "60"]):
        done = typed("check", "judge", "sample", *arguments)
        assert done.code == 2
        message = " ".join(done.err.split())
        assert "has scores but no texts" in message
        assert "no questions or articles and no answers or summaries" in message
        assert not [*Path().glob("*.csv"), *Path("runs").glob("*/labelling-*")]


def test_models_with_the_same_answers_share_labels(
    truth: dict[str, Any], folder: Path
) -> None:
    """Labels are of answers: 40 of them stay 40, whichever models gave the answers."""
    right = truth["b"]
    make_run(
        folder / "runs",
        scores=right.tolist(),
        name="twin",
        model="demo/twin",
        text="the answer of a",
        metric="hallucination-rate",
    )
    file = label(truth, "a", 40)
    corrected = board("a", "twin", *labels_of(file))
    notes = " ".join(corrected["notes"])
    assert "(40 labels of 2 models; PPI++)" in notes
    assert "gave the same answers, so they share their labels" in notes


def make_run_of_two_scorers(folder: Path, name: str, right: float) -> None:
    """Write a run of the tasks x and y, of which y is scored by another scorer."""
    rng = np.random.default_rng(3)
    scores = {task: (rng.random(300) < right).astype(float).tolist() for task in "xy"}
    make_run(folder, scores=scores, name=name, model=f"demo/{name}", text=f"of {name}")
    file = folder / name / "samples.jsonl"
    records = [json.loads(line) for line in file.read_text().splitlines()]
    about = file.with_name("run.json")
    run_record = json.loads(about.read_text(encoding="utf-8"))
    second = json.dumps(run_record["tasks"][1]).replace('"score"', '"second"')
    run_record["tasks"][1] = json.loads(second)
    about.write_text(json.dumps(run_record), encoding="utf-8")
    for record in records:
        if record["task"] == "y" and "score" in record["scores"]:
            record["scores"] = {"second": record["scores"]["score"]}
    write_samples(file, records)


def test_an_average_over_scorers_is_corrected_task_by_task() -> None:
    """A board of several scorers says so first, and names the way that works."""
    folder = Path("runs")
    for name, right in {"e": 0.9, "f": 0.6}.items():
        make_run_of_two_scorers(folder, name, right)
    sample = ("check", "judge", "sample", "e", "f", "--for-ranks", "--n", "80")
    refused = typed(*sample)
    assert refused.code == 2
    message = " ".join(refused.err.split())
    assert "an average of 2 tasks with 2 scorers (score and second)" in message
    assert "`--task TASK`" in message
    assert "no labels" not in message

    drawn = typed(*sample, "--task", "y", "--json")
    assert drawn.code == 0, drawn.err
    record = json.loads(drawn.out)
    assert record["next"].startswith("evalwright leaderboard e f --rank-by y --labels")
    rows = read_table("ranks.labels.csv")
    assert {row["task"] for row in rows} == {"y"}
    Path("done.csv").write_text(fill_in(rows, lambda row: 1), encoding="utf-8")
    assert typed("leaderboard", "e", "f", "--labels", "done.csv").code == 2
    corrected = board("e", "f", "--rank-by", "y", "--labels", "done.csv")
    assert all(row["corrected"] for row in corrected["rows"])
    several = typed(*sample, "--task", "x", "--task", "y")
    assert several.code == 2
    assert "name one --task" in " ".join(several.err.split())


def test_a_draw_for_ranks_says_what_labels_would_settle(truth: dict[str, Any]) -> None:
    """A reader learns which ranks labels can settle, and can draw for the top alone."""
    sample = ("check", "judge", "sample", *MODELS, "--for-ranks", "--n", "60")
    done = typed(*sample, "--to", "all.csv")
    assert done.code == 0, done.err
    lines = done.out.splitlines()
    start = lines.index(
        "Labels of each of two neighbours that would settle their ranks (80% chance):"
    )
    assert lines[start + 1].startswith("  demo/a and demo/b, about ")
    assert lines[start + 1].endswith(" each")
    assert lines[start + 3].endswith("all their answers are too few")
    assert any(line.startswith("  demo/a: 0 labels so far, 2") for line in lines)

    top = typed(*sample, "--top", "2", "--to", "top.csv", "--json")
    record = json.loads(top.out)
    drawn = {model["label"] for model in record["models"] if model["drawn"]}
    assert drawn == {"demo/a", "demo/b"}
    assert record["open_pairs"] == 1
    (need,) = record["needs"]
    assert (need["better"], need["worse"]) == ("demo/a", "demo/b")
    assert 20 <= need["labels"] <= 100
    alone = typed("check", "judge", "sample", "a", "--top", "2")
    assert alone.code == 2
    assert "--for-ranks" in alone.err
