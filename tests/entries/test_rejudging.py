"""`evalwright entries rejudge`: a year of a board's results scored by another judge at a real server."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.evaluation.configuration import ModelSpec
from evalwright.runs.bucket_runs import push_run
from evalwright.runs.buckets import parse_bucket_address
from evalwright.runs.published_scores import publish_scores
from evalwright.runs.reader import open_run
from evalwright.tasks.loading import task_from_definition
from support.bucket_server import serving_buckets
from support.openai_server import OpenAIServer, serving
from support.runs import edited
from support.typed import typed
from support.written_judge import Asked, judge

pytestmark = pytest.mark.usefixtures("own_folder")
N_ITEMS = 6
N_MONTHS = 12
BOARD = """\
title: Our board
suite: {tasks: [factual-closed-book]}
entries: {providers: [openai], prices: {openai/judge-b: 1/10}}
publish: {samples: SAMPLES}
"""


def strict(asked: Asked) -> dict[str, Any]:
    number = int("".join(filter(str.isdigit, asked.material["question"])))
    return {"reason": "r", "class": "correct" if number % 2 else "incorrect"}


def lenient(asked: Asked) -> dict[str, Any]:
    return {"reason": "r", "class": "correct"}


@pytest.fixture
def judge_b() -> Iterator[OpenAIServer]:
    with serving(judge(lenient)) as server:
        yield server


@pytest.fixture(autouse=True)
def _board(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A board with a result of Nova for each month, and the runs in the home folder."""
    monkeypatch.setenv("TEST_JUDGE_KEY", "sk-test")
    Path("board.yaml").write_text(BOARD.replace("SAMPLES", "none"))
    rows = [
        {"id": f"q{n}", "input": f"Question {n}?", "target": f"T{n}"}
        for n in range(N_ITEMS)
    ]
    task = task_from_definition(
        {
            "task": "asked",
            "dataset": {"rows": rows},
            "scorers": ["judge-correct"],
            "metrics": ["accuracy"],
        }
    )
    with serving(judge(strict)) as judge_a:
        spec = ModelSpec(
            "openai/judge-a",
            {"base_url": judge_a.url, "api_key_env": "TEST_JUDGE_KEY"},
        )
        for month in range(1, N_MONTHS + 1):
            text = f"The answer of month {month}."
            model = ScriptedModel(lambda request, text=text: text, name="m", version=str(month))  # type: ignore[misc]  # fmt: skip
            name = f"nova--{month:08d}"
            (run,) = evaluate(task, model, roles={"judge": spec}, name=name, out=".evalwright/runs")  # fmt: skip
            with edited(run.folder) as record:
                record["started"] = f"2025-{month:02d}-05T08:00:00+00:00"
            published = Path(f"results/nova/2025-{month:02d}-05-{month:08d}")
            publish_scores(open_run(run.folder), published)
            with edited(published) as record:
                record["model"]["label"] = "Nova"


def rejudge(server: OpenAIServer, *options: str) -> Any:
    return typed(
        "entries", "rejudge", "--judge", "openai/judge-b",
        "-R", f"judge.base_url={server.url}", "-R", "judge.api_key_env=TEST_JUDGE_KEY",
        "--home", ".evalwright", *options,
    )  # fmt: skip


def n_asked(server: OpenAIServer) -> int:
    return sum(server.received.values())


def test_a_year_of_results_is_scored_by_a_new_judge(judge_b: OpenAIServer) -> None:
    plan = rejudge(judge_b, "--plan", "--json")
    assert plan.code == 0, plan.err
    price = json.loads(plan.out)
    assert price["requests"] == N_MONTHS * N_ITEMS and n_asked(judge_b) == 0
    assert price["dollars"] > 0  # by the board's prices
    old_files = {path: path.read_bytes() for path in Path("results").rglob("*.*")}

    first = rejudge(judge_b, "--budget", "30 requests")
    assert first.code == 1 and "The budget is spent" in first.err
    done = rejudge(judge_b)
    assert done.code == 0, done.err
    assert n_asked(judge_b) == price["requests"]
    for path, content in old_files.items():
        assert path.read_bytes() == content
    results = [open_run(path.parent) for path in Path("results").glob("nova/*/run.json")]  # fmt: skip
    assert len(results) == 2 * N_MONTHS
    assert {run.label for run in results} == {"Nova"}
    assert not list(Path("results").rglob("samples.jsonl"))

    board = typed(
        "leaderboard", *(str(run.folder) for run in results), "--newest",
        "--json-file", "board.json",
    )  # fmt: skip
    assert board.code == 0, board.err
    (model,) = json.loads(Path("board.json").read_text())["models"]
    assert [entry["date"][5:7] for entry in model["history"]] == [
        f"{month:02d}" for month in range(1, N_MONTHS + 1)
    ]
    assert {entry["judge"] for entry in model["history"]} == {"openai/judge-b"}
    assert all(len(entry["earlier_verdicts"]) == 1 for entry in model["history"])

    again = rejudge(judge_b)
    assert again.code == 0 and n_asked(judge_b) == price["requests"]
    assert len(list(Path("results").glob("nova/*"))) == 2 * N_MONTHS


def test_samples_that_are_nowhere_are_named(judge_b: OpenAIServer) -> None:
    shutil.rmtree(".evalwright/runs/nova--00000003")
    plan = rejudge(judge_b, "--plan")
    shown = " ".join(plan.out.split())
    assert plan.code == 1 and "nova/2025-03-05-00000003" in shown
    assert "its samples are not in" in shown
    done = rejudge(judge_b)
    assert done.code == 1 and "nova/2025-03-05-00000003" in done.err
    assert len(list(Path("results").glob("nova/*"))) == 2 * N_MONTHS - 1


def test_samples_come_from_the_bucket_and_new_ones_go_there(
    judge_b: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("botocore")
    place = "s3://team/board"
    Path("board.yaml").write_text(BOARD.replace("SAMPLES", place))
    with serving_buckets() as server:
        for name, setting in server.environment.items():
            monkeypatch.setenv(name, setting)
        for month in (1, 2):
            run = open_run(f".evalwright/runs/nova--{month:08d}")
            push_run(run, parse_bucket_address(place))
            shutil.rmtree(run.folder)
        shutil.rmtree(".evalwright/runs/nova--00000003")
        plan = rejudge(judge_b, "--plan")
        shown = " ".join(plan.out.split())
        assert plan.code == 1 and "2025-03-05" in shown and "nor in s3://team" in shown
        done = rejudge(judge_b)
        assert done.code == 1, done.out
        assert len(list(Path("results").glob("nova/*"))) == 2 * N_MONTHS - 1
        pushed = [key for key in server.objects if key.endswith("judge-b/run.json")]
        assert len(pushed) == N_MONTHS - 1


def test_wrong_names_and_boards_say_what_to_do(judge_b: OpenAIServer) -> None:
    without = typed("entries", "rejudge")
    assert without.code == 2 and "--judge" in without.err
    unknown = rejudge(judge_b, "nova-2")
    assert unknown.code == 2 and "nova" in unknown.err
    shutil.rmtree("results")
    none_yet = rejudge(judge_b)
    assert none_yet.code == 2 and "entries run" in none_yet.err
    Path("board.yaml").unlink()
    assert rejudge(judge_b).code == 2
