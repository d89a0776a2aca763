"""`leaderboard --preset` and `--facts`, typed: what is written, and what is said of mistakes."""

from __future__ import annotations

import csv
import io
import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from compat.sea_helm.sea_results import write_results
from evalwright.analysis.extra_columns import MeasuredModel
from evalwright.analysis.measured_columns import (
    cost_of_right_answer,
    make_extra_columns,
)
from evalwright.runs.reader import open_run
from support.openai_server import serving
from support.runs import edited, make_run
from support.typed import typed

CAPITALS = """\
task: capitals
version: "1"
dataset:
  rows:
    - {id: peru, input: Capital of Peru?, target: Lima, created_at: "2021-04"}
    - {id: chile, input: Capital of Chile?, target: Santiago, created_at: "2021-04"}
    - {id: japan, input: Capital of Japan?, target: Tokyo, created_at: "2021-04"}
    - {id: norway, input: Capital of Norway?, target: Oslo, created_at: "2025-02"}
    - {id: fiji, input: Capital of Fiji?, target: Suva, created_at: "2025-02"}
scorers: [short-answer]
"""
REWRITES = """\
include: capitals.yaml
task: capitals-rewritten
dataset:
  rows:
    - {id: peru2, input: Name Peru's capital., target: Lima, rewrite_of: peru, rewrite_task: capitals}
    - {id: chile2, input: Name Chile's capital., target: Santiago, rewrite_of: chile, rewrite_task: capitals}
    - {id: fiji2, input: Name Fiji's capital., target: Suva, rewrite_of: fiji, rewrite_task: capitals}
sample:
  metadata: {rewrite_of: "{{ rewrite_of }}", rewrite_task: "{{ rewrite_task }}"}
"""
KNOWN = ("Capital of Peru?", "Capital of Chile?", "Name Peru's capital.", "Capital of Fiji?")  # fmt: skip
ANSWERS = {"Peru": "Lima", "Chile": "Santiago", "Fiji": "Suva"}


def answer(text: str) -> str:
    for question in KNOWN:
        if question in text:
            return next(ANSWERS[name] for name in ANSWERS if name in question)
    return "Vaduz"


@pytest.fixture
def two_runs(folder: Path) -> None:
    """Runs `a` and `b` of two tasks, of models with and without a size in the name."""
    scores = {"one": [1.0, 1.0, 0.0], "two": [1.0, 0.0, 0.0]}
    make_run(folder / "runs", name="a", model="x/qwen-a-8B", scores=scores)
    make_run(folder / "runs", name="b", model="x/b", scores=scores)


@pytest.mark.usefixtures("two_runs")
def test_facts_of_a_table_are_columns_and_sentences(folder: Path) -> None:
    (folder / "facts.csv").write_text(
        "model,licence,size,stars\nx/b,MIT,3B,4\nx/qwen-a8B,none,,\n"
    )
    done = typed(
        "leaderboard", "a", "b", "--facts", "facts.csv", "--json-file", "b.json"
    )
    assert done.code == 0, done.err
    assert "facts.csv:3: no model of this board is called 'x/qwen-a8B'." in done.err
    assert "Did you mean 'x/qwen-a-8B'" in done.err
    assert "facts.csv has no facts about x/qwen-a-8B." in done.err
    assert "MIT" in done.out
    models = json.loads((folder / "b.json").read_text())["models"]
    by_label = {model["label"]: model for model in models}
    assert by_label["x/b"]["facts"] == {
        "licence": "MIT",
        "size": 3.0,
        "stars": 4.0,
        "provider": "x",
    }
    assert by_label["x/b"]["extra"] == {"size": "3B", "licence": "MIT", "stars": "4"}
    assert by_label["x/qwen-a-8B"]["fact_sources"]["size"] == "the name"


@pytest.mark.usefixtures("two_runs")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("--preset", "hem"), "Unknown preset 'hem'. Did you mean 'hhem'"),
        (("--preset", "hhem"), "needs runs with a hallucination rate"),
        (("--preset", "hret"), "needs runs of Korean tasks"),
        (("--facts", "none.yaml"), "The table of facts 'none.yaml' does not exist."),
        (("--facts", "bad.yaml"), "bad.yaml:2: 'big' is no number of parameters"),
        (("--facts", "other.yaml"), "other.yaml:1: no model of this board is called"),
        (("--colour-by", "family"), "--colour-by"),
        (("--plot", "p.svg", "--colour-by", "licence"), "cannot be coloured by 'licence'"),
    ],
)  # fmt: skip
def test_mistakes(folder: Path, arguments: tuple[str, ...], message: str) -> None:
    (folder / "bad.yaml").write_text("x/b: {open: no}\nx/qwen-a-8B: {size: big}\n")
    (folder / "other.yaml").write_text("y/b: {open: no}\n")
    done = typed("leaderboard", "a", "b", *arguments, "--csv", "board.csv")
    assert done.code == 2
    assert message in " ".join(done.err.split())
    assert "Traceback" not in done.err
    assert not (folder / "board.csv").exists()


@pytest.mark.usefixtures("two_runs")
def test_facts_filter_models_and_stay_with_their_runs(folder: Path) -> None:
    make_run(
        folder / "runs", name="c", model="x/c", scores={"one": [1.0], "two": [0.0]}
    )
    (folder / "facts.csv").write_text("model,size\nx/b,3B\nx/c,1B\n")
    done = typed(
        "leaderboard", "a", "b", "c", "--facts", "facts.csv", "--where", "size<=4",
        "--preset", "open-llm", "--json-file", "b.json", "--pages", "pages",
    )  # fmt: skip
    assert done.code == 0, done.err
    models = json.loads((folder / "b.json").read_text())["models"]
    extra = {model["label"]: model["extra"] for model in models}
    assert extra == {"x/b": {"size": "3B"}, "x/c": {"size": "1B"}}
    assert sorted(page.name for page in (folder / "pages").iterdir()) == [
        "x-b.html",
        "x-c.html",
    ]


@pytest.mark.usefixtures("two_runs")
def test_a_workflow_keeps_preset_and_facts(folder: Path) -> None:
    (folder / "suite.yaml").write_text(
        "tasks: [questions.yaml]\nmodels: [scripted/echo]\n"
    )
    (folder / "facts.yaml").write_text("scripted/echo: {size: 1B}\n")
    done = typed(
        "leaderboard", "--workflow", "w.yml", "--config", "suite.yaml", "--into",
        "README.md", "--preset", "open-llm", "--facts", "facts.yaml",
    )  # fmt: skip
    assert done.code == 0, done.err
    text = (folder / "w.yml").read_text()
    assert "--preset open-llm --facts facts.yaml" in text
    assert text.count("facts.yaml") > 1


@pytest.mark.usefixtures("two_runs")
def test_typed_options_win_over_those_of_a_preset(folder: Path) -> None:
    first = typed("leaderboard", "a", "b", "--preset", "open-llm")
    assert first.code == 0, first.err
    assert first.out.startswith("Open LLM leaderboard\n")
    assert "8B" in first.out
    second = typed("leaderboard", "a", "b", "--preset", "open-llm", "--title", "Ours", "--json-file", "b.json")  # fmt: skip
    assert second.out.startswith("Ours\n")


def test_facts_of_a_suite_are_recorded_and_published(folder: Path) -> None:
    (folder / "suite.yaml").write_text(
        "tasks: [questions.yaml]\n"
        "models:\n"
        "  - {model: scripted/echo, label: Echo, facts: {size: 7B, licence: MIT, open: yes}}\n"
        "  - scripted/hash\n"
    )
    done = typed("run", "--config", "suite.yaml", "--name", "s", "--quiet")
    assert done.code == 0, done.err
    record = json.loads((folder / "runs/s-Echo/run.json").read_text())
    facts = {"size": 7.0, "licence": "MIT", "open": True}
    assert record["model"]["facts"] == facts
    assert record["configuration"]["models"][0]["facts"] == facts
    assert typed("export", "scores", "s-Echo").code == 0
    published = json.loads((folder / "published/s-Echo/run.json").read_text())
    assert published["model"]["facts"] == facts
    board = typed("leaderboard", "s-Echo", "s-scripted-hash", "--json-file", "b.json")
    assert board.code == 0, board.err
    models = json.loads((folder / "b.json").read_text())["models"]
    echo = next(model for model in models if model["label"] == "Echo")
    assert echo["facts"] == facts
    assert set(echo["fact_sources"].values()) == {"the run's record"}


def test_wrong_facts_in_a_suite_name_file_and_line(folder: Path) -> None:
    (folder / "suite.yaml").write_text(
        "tasks: [questions.yaml]\n"
        "models:\n"
        "  - model: scripted/echo\n"
        "    facts: {size: big}\n"
    )
    done = typed("run", "--config", "suite.yaml", "--quiet")
    assert done.code == 2
    assert "suite.yaml:4: 'big' is no number of parameters" in done.err


def test_cost_speed_cut_off_and_rewrites_of_real_runs(folder: Path) -> None:
    (folder / "capitals.yaml").write_text(CAPITALS)
    (folder / "rewrites.yaml").write_text(REWRITES)
    with serving(answer=answer) as server:
        done = typed(
            "run", "capitals.yaml", "rewrites.yaml", "--model", "openai/m",
            "-M", f"base_url={server.url}", "--price", "1000/2000", "--name", "paid",
            "--quiet",
        )  # fmt: skip
    assert done.code == 0, done.err
    run = open_run(folder / "runs" / "paid")
    cost = cost_of_right_answer(run)
    assert not isinstance(cost, str)
    n_right = 4
    assert cost.value == pytest.approx((run.cost or 0.0) / n_right)
    assert cost.n == 8
    assert cost.low < cost.value < cost.high
    model = MeasuredModel(run, {"cutoff": "2024-06"})
    before, after, drop = make_extra_columns(("cutoff", "rewrites"), [model])
    assert before.value_of(0)["value"] == pytest.approx(2 / 3)
    assert after.value_of(0)["value"] == pytest.approx(1 / 2)
    assert before.value_of(0)["n"] == 3
    assert "dated by created_at" in before.note
    # originals 1, 1, 1 against rewrites 1, 0, 0
    assert drop.value_of(0)["value"] == pytest.approx(2 / 3)
    assert drop.value_of(0)["n"] == 3


def test_a_preset_colours_only_what_it_can(folder: Path) -> None:
    """A model whose family no name says must not keep the board from being published."""
    make_run(
        folder / "runs",
        scores=[1, 0, 1],
        metric="hallucination-rate",
        name="acme",
        model="acme/small-1",
    )
    board = ("leaderboard", "acme", "--preset", "hhem", "--plot", "p.svg")
    done = typed(*board)
    assert done.code == 0 and (folder / "p.svg").is_file(), done.err
    done = typed(*board, "--colour-by", "family")
    assert done.code == 2 and "cannot be coloured by 'family'" in done.err


def test_a_board_of_groups_shows_groups_of_factual_tasks_too(folder: Path) -> None:
    """README and page have the same columns, and the weights are said."""
    tasks = ("factual-closed-book", "factual-choice", "factual-stress")
    models = ("--model", "demo/small", "--model", "demo/large")
    command = ("run", *tasks, *models, "--name", "f", "--limit", "6", "--quiet")
    assert typed(*command).code == 0
    board = ("leaderboard", "f-demo-small", "f-demo-large", "--json-file", "b.json")
    groups = ["factual-choice", "factual-closed-book", "factual-stress"]
    done = typed(*board, "--preset", "open-llm", "--into", "README.md")
    assert done.code == 0, done.err
    head = next(
        line
        for line in (folder / "README.md").read_text().splitlines()
        if line.startswith("| Rank |")
    )
    assert [name for name in groups if name in head] == groups
    assert "Hallucinated" not in (folder / "README.md").read_text()
    record = json.loads((folder / "b.json").read_text())
    inner = [node["title"] for node in record["nodes"] if node["parent"] == "overall"]
    assert inner == groups
    said = "the mean of 4 tasks, which count the same: factual-choice as 2 of them."
    assert said in " ".join(record["notes"])
    assert typed(*board).code == 0
    record = json.loads((folder / "b.json").read_text())
    assert "hallucinated" in [column["name"] for column in record["columns"]]


def test_prices_of_the_record_are_facts(folder: Path) -> None:
    with serving(answer=answer) as server:
        done = typed(
            "run", "questions.yaml", "--model", "openai/m", "-M",
            f"base_url={server.url}", "--price", "0.15/0.6", "--name", "paid", "--quiet",
        )  # fmt: skip
    assert done.code == 0, done.err
    assert typed("leaderboard", "paid", "--json-file", "b.json").code == 0
    (model,) = json.loads((folder / "b.json").read_text())["models"]
    assert (model["facts"]["price_in"], model["facts"]["price_out"]) == (0.15, 0.6)


def test_imported_runs_have_the_speed_of_their_answers(folder: Path) -> None:
    row = {"is_correct": True, "timestamp": "2026-01-02T03:04:06", "metadata": None}
    rows = [
        {**row, "task_id": f"q{i}", "model_response": "Au", "latency_ms": 100.0 + i, "tokens_generated": 2 + i % 2}
        for i in range(6)
    ]  # fmt: skip
    stress = {**row, "is_correct": None, "task_id": "false_1", "model_response": "King Harald", "latency_ms": 300.0,
              "tokens_generated": 4, "metadata": {"hallucination_label": "hallucination_candidate"}}  # fmt: skip
    record = {
        "run_id": "run_20260102_030405",
        "config": {"model_id": "acme/small", "eval_type": "factual_qa", "max_new_tokens": 64, "temperature": 0.0,
                   "hardware": "T4 16GB", "seed": 0, "extra": None},
        "summary": {"total_tasks": 7, "auto_graded": 6, "correct": 6, "accuracy": 1.0, "skipped": 1,
                    "hallucination_tasks": 1, "hallucinated": 1, "refused": 0, "unclear": 0},
        "results": [*rows, stress],
    }  # fmt: skip
    (folder / "results").mkdir()
    file = folder / "results/run_20260102_030405_acme-small.json"
    file.write_text(json.dumps(record))
    done = typed("import", "open-factual-bench", "results", "--name", "p", "--scoring", "published")  # fmt: skip
    assert done.code == 0, done.err
    board = typed("leaderboard", "p", "--preset", "factual", "--json-file", "b.json")
    assert board.code == 0, board.err
    assert "T4 16GB" in board.out
    (model,) = json.loads((folder / "b.json").read_text())["models"]
    speed = model["extra"]["tokens_per_second"]
    n_tokens = sum(2 + i % 2 for i in range(6)) + 4
    seconds = (sum(100 + i for i in range(6)) + 300) / 1000
    assert speed["value"] == pytest.approx(n_tokens / seconds)
    assert speed["low"] < speed["value"] < speed["high"]
    assert speed["n"] == 7


def test_the_factual_preset(folder: Path) -> None:
    tasks = ("factual-closed-book", "factual-stress")
    done = typed("run", *tasks, "--model", "demo/small", "--limit", "12", "--name", "f",
                 "--hardware", "my laptop", "--quiet")  # fmt: skip
    assert done.code == 0, done.err
    (folder / "facts.yaml").write_text("demo/small: {cutoff: 1950}\n")
    board = typed("leaderboard", "f", "--preset", "factual", "--facts", "facts.yaml",
                  "--csv", "b.csv", "--markdown", "b.md")  # fmt: skip
    assert board.code == 0, board.err
    assert board.out.startswith("Factual questions\n")
    assert "my laptop" in board.out
    head = board.out.splitlines()[3].split()
    assert head[:4] == ["Rank", "Model", "Accuracy", "Hallucinated"]
    (row,) = csv.DictReader(io.StringIO((folder / "b.csv").read_text()))
    assert float(row["tokens_per_second"]) > 0  # in a new store, so all answers are new
    assert float(row["memory"]) > 0
    assert row["accuracy_before_cutoff"] or row["accuracy_after_cutoff"]
    assert "cost_per_correct" not in row
    assert "By domain, factual-closed-book" in (folder / "b.md").read_text()


def test_the_numbers_of_the_notebook_are_those_of_its_own_command(folder: Path) -> None:
    write_results(folder / "results/acme", "acme/tiny", ["AAB-AB", "AABBBA", "BABBAA"])
    done = typed("import", "sea-helm", "results", "--name", "r", "--over-runs")
    assert done.code == 0, done.err
    numbers = yaml.safe_load((folder / "runs/acme--tiny_scores.yaml").read_text())
    board = typed("leaderboard", "r", "--preset", "sea-helm", "--json-file", "b.json")
    assert board.code == 0, board.err
    (model,) = json.loads((folder / "b.json").read_text())["models"]
    extra: dict[str, Any] = model["extra"]
    shown = {name: extra[f"over_runs.{name}"]["value"] for name in ("sea", "all", "id", "tl")}  # fmt: skip
    assert shown == pytest.approx(
        {
            "sea": numbers["sea_mean"],
            "all": numbers["mean"],
            "id": numbers["id"]["mean"],
            "tl": numbers["tl"]["mean"],
        }
    )
    reason = extra["over_runs.sea"]["reason"]
    assert reason == "no interval: SEA-HELM's notebook over 3 runs"


def test_korean_runs_show_language_and_scaling(folder: Path) -> None:
    result = {
        "metrics": {"accuracy": 0.5, "language_penalizer_average": 0.75},
        "samples": [
            {"input": f"질문 {i}", "reference": "서울", "prediction": "서울",
             "evaluation": {"is_correct": i % 2 == 0}, "language_penalizer": 0.5 + i / 4}
            for i in range(3)
        ],
        "info": {"dataset_name": "haerae_bench", "scaling_method_name": "best_of_n"},
    }  # fmt: skip
    (folder / "result.json").write_text(json.dumps(result))
    done = typed("import", "hret", "result.json", "--name", "k")
    assert done.code == 0, done.err
    board = typed("leaderboard", "k", "--preset", "hret", "--json-file", "b.json")
    assert board.code == 0, board.err
    (model,) = json.loads((folder / "b.json").read_text())["models"]
    assert model["extra"]["scaling"] == "best_of_n"
    assert model["extra"]["language_share"]["value"] == pytest.approx(0.75)


def test_a_record_may_not_hold_other_facts(folder: Path) -> None:
    run = make_run(folder / "runs", name="x", model="x/m", scores=[1.0, 0.0])
    with edited(run.folder) as data:
        data["model"]["facts"] = {"size": [1]}
    done = typed("leaderboard", "x")
    assert done.code == 2
    assert "Traceback" not in done.err
