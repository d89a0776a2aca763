"""`evalwright score RUN...`: many runs scored again by a new judge at a real server, with the price
first, within one budget, and to be continued.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.evaluation.configuration import ModelSpec
from evalwright.runs.published_scores import publish_scores
from evalwright.runs.reader import Run, open_run
from evalwright.tasks.loading import task_from_definition
from support.openai_server import OpenAIServer, serving
from support.runs import edited
from support.typed import typed
from support.written_judge import Asked, judge

N_ITEMS = 8
N_RUNS = 12
PRICE = "1/10"
"""US dollars per million tokens."""


def strict(asked: Asked) -> dict[str, Any]:
    number = int("".join(filter(str.isdigit, asked.material["question"])))
    return {"reason": "r", "class": "correct" if number % 2 else "incorrect"}


def lenient(asked: Asked) -> dict[str, Any]:
    return {"reason": "a longer reason than before", "class": "correct"}


@pytest.fixture
def old_server() -> Iterator[OpenAIServer]:
    with serving(judge(strict)) as server:
        yield server


@pytest.fixture
def new_server() -> Iterator[OpenAIServer]:
    with serving(judge(lenient)) as server:
        yield server


@pytest.fixture
def runs(folder: Path, old_server: OpenAIServer, monkeypatch: Any) -> list[Run]:
    """A run a month, each with other answers, judged when it was made."""
    monkeypatch.setenv("TEST_JUDGE_KEY", "sk-test")
    made = []
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
    spec = ModelSpec(
        "openai/judge-a",
        {"base_url": old_server.url, "api_key_env": "TEST_JUDGE_KEY"},
    )
    for month in range(1, N_RUNS + 1):
        text = f"The answer of month {month}."
        model = ScriptedModel(lambda request, text=text: text, name="m", version=str(month))  # type: ignore[misc]  # fmt: skip
        (run,) = evaluate(task, model, roles={"judge": spec}, name=f"month-{month:02d}")
        with edited(run.folder) as record:
            record["started"] = f"2025-{month:02d}-05T08:00:00+00:00"
            record["model"]["label"] = "Nova"
        made.append(open_run(run.folder))
    return made


def score(server: OpenAIServer, *options: str, names: str = "month-*") -> Any:
    found = sorted(str(path) for path in Path("runs").glob(names) if path.suffix != ".rescored")  # fmt: skip
    return typed(
        "score", *found, "--judge", "openai/judge-b",
        "-R", f"judge.base_url={server.url}", "-R", "judge.api_key_env=TEST_JUDGE_KEY",
        *options,
    )  # fmt: skip


def n_asked(server: OpenAIServer) -> int:
    return sum(server.received.values())


@pytest.mark.usefixtures("runs")
def test_a_year_is_scored_again_for_the_price_that_was_said(
    new_server: OpenAIServer,
) -> None:
    planned = score(new_server, "--plan", "--price", PRICE, "--json")
    assert planned.code == 0, planned.err
    plan = json.loads(planned.out)
    assert n_asked(new_server) == 0
    assert plan["requests"] == N_RUNS * N_ITEMS
    assert 0 < plan["dollars"] < plan["most_dollars"]
    assert all(run["n_measured"] == N_ITEMS for run in plan["runs"])
    assert not list(Path("runs").glob("*.rescored"))
    shown = score(new_server, "--plan", "--price", PRICE)
    assert "openai/judge-b" in shown.out and "Nothing was sent" in shown.out

    done = score(new_server, "--price", PRICE, "--json")
    assert done.code == 0, done.err
    assert n_asked(new_server) == plan["requests"]
    new_runs = [open_run(run["folder"]) for run in json.loads(done.out)["runs"]]
    assert len(new_runs) == N_RUNS
    spent = sum(run.data["usage"]["cost"] for run in new_runs)
    # Both judges reply with a few words: the price was said within a factor of two.
    assert spent / 2 < plan["dollars"] < 2 * spent
    assert spent < plan["most_dollars"]
    assert {run.score.value for run in new_runs} == {1.0}
    for run in new_runs:
        month = run.id.partition(".")[0]
        old = open_run(Path("runs") / month)
        assert old.score.value == 0.5  # the old results stay
        assert run.data["scored_from"]["answered"] == old.data["started"]

    board = typed(
        "leaderboard", *map(str, Path("runs").glob("month-*")), "--newest",
        "--json-file", "board.json", "--pages", "models",
    )  # fmt: skip
    assert board.code == 0, board.err
    (model,) = json.loads(Path("board.json").read_text())["models"]
    history = model["history"]
    assert len(history) == N_RUNS
    assert {entry["judge"] for entry in history} == {"openai/judge-b"}
    assert not any(change for entry in history for change in entry["changes"] if change["what"] == "judge")  # fmt: skip
    assert {old["judge"] for entry in history for old in entry["earlier_verdicts"]} == {"openai/judge-a"}  # fmt: skip
    assert "as scored on 2025-01-05" in Path("models/nova.html").read_text()


@pytest.mark.usefixtures("runs")
def test_the_same_command_continues_and_sends_nothing_twice(
    new_server: OpenAIServer,
) -> None:
    first = score(new_server, "--budget", "20 requests")
    assert first.code == 1
    assert "The budget is spent" in first.err and "--budget" in first.err
    finished = sorted(path.name for path in Path("runs").glob("*.rescored/run.json"))
    done_before = {
        path: path.read_bytes() for path in Path("runs").glob("*.rescored/run.json")
    }
    assert 0 < len(done_before) < N_RUNS and finished
    asked = n_asked(new_server)
    assert asked <= 20
    plan = json.loads(score(new_server, "--plan", "--json").out)
    assert plan["requests"] == N_RUNS * N_ITEMS - asked
    assert sum(run["done"] for run in plan["runs"]) == len(done_before)
    second = score(new_server)
    assert second.code == 0, second.err
    assert n_asked(new_server) == N_RUNS * N_ITEMS
    assert "left as they are" in second.out
    for path, content in done_before.items():
        assert path.read_bytes() == content
    assert score(new_server).code == 0
    assert n_asked(new_server) == N_RUNS * N_ITEMS
    nothing = score(new_server, "--plan")
    assert nothing.code == 0 and "No request is needed." in nothing.err


@pytest.mark.usefixtures("runs")
def test_a_third_judge_replaces_nothing(
    new_server: OpenAIServer, old_server: OpenAIServer
) -> None:
    assert score(new_server, names="month-0[12]").code == 0
    before = Path("runs/month-01.rescored/run.json").read_bytes()
    other = score(old_server, names="month-0[12]")
    assert other.code == 2
    assert "another judge" in other.err and "--name" in other.err
    assert Path("runs/month-01.rescored/run.json").read_bytes() == before
    named = score(old_server, "--name", "{}.third", names="month-0[12]")
    assert named.code == 0, named.err
    assert Path("runs/month-02.third/run.json").is_file()
    unnamed = score(old_server, "--name", "third", names="month-0[12]")
    assert unnamed.code == 2 and "{}" in unnamed.err


def test_runs_without_samples_are_named(
    runs: list[Run], new_server: OpenAIServer
) -> None:
    publish_scores(runs[0], Path("runs/month-00"))
    planned = score(new_server, "--plan", names="month-0[012]")
    assert planned.code == 1
    assert "month-01' was published without its samples" in " ".join(planned.out.split())  # fmt: skip
    done = score(new_server, names="month-0[012]")
    assert done.code == 1 and "without its samples" in done.err
    assert n_asked(new_server) == 2 * N_ITEMS
    alone = score(new_server, names="month-00")
    assert alone.code == 2 and "without its samples" in alone.err


@pytest.mark.usefixtures("runs")
def test_equal_requests_are_counted_and_sent_once(new_server: OpenAIServer) -> None:
    import shutil

    shutil.copytree("runs/month-01", "runs/month-01copy")
    with edited("runs/month-01copy") as record:
        record["id"] = "month-01copy"
    plan = json.loads(score(new_server, "--plan", "--json", names="month-01*").out)
    assert [run["requests"] for run in plan["runs"]] == [N_ITEMS, 0]
    assert [run["stored"] for run in plan["runs"]] == [0, N_ITEMS]
    assert score(new_server, names="month-01*").code == 0
    assert n_asked(new_server) == N_ITEMS


@pytest.mark.usefixtures("runs")
def test_one_run_is_scored_as_before(new_server: OpenAIServer) -> None:
    done = score(new_server, "--json", names="month-01")
    assert done.code == 0, done.err
    assert json.loads(done.out)["id"] == "month-01.rescored"
    again = score(new_server, names="month-01")
    assert again.code == 0 and "month-01.rescored" in again.out
    spent = score(new_server, "--budget", "1 request", names="month-02")
    assert spent.code == 1 and "The budget is spent" in spent.err
    assert not Path("runs/month-02.rescored/run.json").exists()
    unknown = score(new_server, "--budget", "5 USD", names="month-03")
    assert unknown.code == 2 and "price of" in unknown.err
