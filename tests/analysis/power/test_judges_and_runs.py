"""Plans with a judge, and plans from runs: nothing that the run would take or had is left out."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.openai_server import OpenAIServer, serving
from support.typed import typed

RUBRIC = ("--rubric", "Gives the number.")
PROMPTS = ("--prompt", "plain.txt", "--prompt", "polite.txt")


def reply(prompt: str) -> str:
    mark = re.search(r'mark="(\w+)"', prompt)
    if mark is None:
        return "1" if "Please" in prompt or "2" in prompt else "0"
    answer = re.search(r"<answer[^>]*>\n(.*?)\n</", prompt, re.DOTALL)
    verdict = "met" if answer is not None and answer[1] == "1" else "not met"
    return json.dumps(
        {"check": mark[1], "c1": {"reason": "it is there", "class": verdict}}
    )


@pytest.fixture(name="server")
def _server(folder: Path) -> Iterator[OpenAIServer]:
    (folder / "plain.txt").write_text("{{ input }}")
    (folder / "polite.txt").write_text("Please: {{ input }}")
    rows = "".join(f"What is number {place}?,{place}\n" for place in range(40))
    (folder / "numbers.csv").write_text(f"question,reference\n{rows}")
    with serving(answer=reply) as server:
        yield server


def models(server: OpenAIServer) -> tuple[str, ...]:
    return "--model", "openai/m", "-M", f"base_url={server.url}"


def judge(server: OpenAIServer) -> tuple[str, ...]:
    return "--judge", "openai/judge", "-R", f"judge.base_url={server.url}"


def run(server: OpenAIServer, *arguments: str) -> None:
    done = typed(
        "run", "numbers.csv", *models(server), *RUBRIC, *judge(server), *arguments,
        "--quiet",
    )  # fmt: skip
    assert done.code == 0, done.text


def planned(*arguments: str) -> Any:
    done = typed("plan", "numbers.csv", *arguments, "--json")
    assert done.code == 0, done.text
    return json.loads(done.out)


@pytest.mark.parametrize("source", ["runs", "pilot"])
def test_the_sum_has_the_judge_whose_tokens_earlier_answers_show(
    server: OpenAIServer, source: str
) -> None:
    setup = (*models(server), *PROMPTS, *RUBRIC, *judge(server))
    measured: tuple[str, ...]
    if source == "runs":
        run(server, *PROMPTS, "--name", "a")
        measured = ("--from", "a-plain", "--from", "a-polite")
    else:
        measured = ("--pilot", "40")
    forecast = planned(
        *setup, *measured, "--price", "1/2", "--price", "openai/judge=10/20"
    )
    folders = [Path("runs/a-plain"), Path("runs/a-polite")]
    if source == "pilot":
        folders = [Path(folder) for folder in forecast["pilot_runs"]]
    tokens = {"input_tokens": 0, "output_tokens": 0}
    for folder in folders:
        for line in (folder / "samples.jsonl").read_text().splitlines():
            (exchange,) = json.loads(line)["exchanges"]["judge-rubric"]
            for way in tokens:
                tokens[way] += exchange["response"]["usage"][way]
    (row,) = forecast["judges"]
    assert row["requests"]["value"] == pytest.approx(80)
    assert row["input_tokens"]["value"] == pytest.approx(tokens["input_tokens"])
    assert row["output_tokens"]["value"] == pytest.approx(tokens["output_tokens"])
    cost = (10 * tokens["input_tokens"] + 20 * tokens["output_tokens"]) / 1e6
    assert row["money"]["value"] == pytest.approx(cost)
    of_models = sum(usage["money"]["value"] for usage in forecast["models"].values())
    assert forecast["total"]["money"]["value"] == pytest.approx(cost + of_models)
    assert forecast["total"]["requests"]["value"] == pytest.approx(160)
    assert "All 2 runs, the judge included: 160 requests" in forecast["conclusion"]
    assert not any("without the other roles" in note for note in forecast["notes"])


def test_a_judge_that_nothing_was_measured_of_is_named_as_missing(
    server: OpenAIServer,
) -> None:
    forecast = planned(
        *models(server), *PROMPTS, *RUBRIC, *judge(server), "--price", "1/2"
    )
    assert forecast["conclusion"].endswith(", without the judge.")
    one = planned(*models(server), *RUBRIC, *judge(server), "--price", "1/2")
    assert one["conclusion"].endswith(", without the judge.")
    assert "total" not in one


def test_a_price_may_be_for_the_judge_and_for_nobody_else(server: OpenAIServer) -> None:
    setup = (*models(server), *RUBRIC, *judge(server))
    for name in ("openai/judge", "judge"):
        planned(*setup, "--price", f"{name}=2/8")
    done = typed("plan", "numbers.csv", *setup, "--price", "openai/jugde=2/8")
    assert done.code == 2 and "Did you mean 'openai/judge'" in done.err


def test_a_plan_from_runs_has_their_prompts_judge_and_rubric(
    server: OpenAIServer,
) -> None:
    run(server, *PROMPTS, "--name", "a")
    forecast = planned("--from", "a-plain", "--from", "a-polite", "--price", "1/2")
    assert set(forecast["models"]) == {"openai/m · plain", "openai/m · polite"}
    assert [row["model"] for row in forecast["judges"]] == ["openai/judge"]
    words = shlex.split(forecast["command"])
    before = sum(server.received.values())
    done = typed(*words[1:], "--name", "again", "--json")
    assert done.code == 0, done.text
    assert sum(server.received.values()) == before, "it is the evaluation of the runs"
    text = typed("plan", "numbers.csv", "--from", "a-plain", "--from", "a-polite").out
    assert "the runs have one prompt" not in text
    assert "two models" not in text and "of each model" not in text
    assert "the prompts are what is compared" in text


def test_what_the_runs_had_and_the_plan_cannot_take_is_said(
    server: OpenAIServer, folder: Path
) -> None:
    run(server, *PROMPTS, "--name", "a")
    (folder / "polite.txt").write_text("Changed: {{ input }}")
    forecast = planned("--from", "a-plain", "--from", "a-polite")
    assert set(forecast["models"]) == {"openai/m"}
    assert any(
        "prompts (plain, polite), which the plan leaves out: their files have changed"
        in note
        for note in forecast["notes"]
    )
    run(server, *PROMPTS[:2], "-T", "answer.max_tokens=9", "--name", "b")
    (folder / "polite.txt").write_text("Please: {{ input }}")
    forecast = planned("--from", "a-polite", "--from", "b")
    assert any(
        "The runs differ in their settings" in note for note in forecast["notes"]
    )


def test_costs_are_said_for_the_items_that_are_needed(
    server: OpenAIServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    run(server, *PROMPTS, "--name", "a")
    done = typed(
        "plan", "numbers.csv", "--from", "a-plain", "--from", "a-polite",
        "--price", "100/200", "--difference", "0.1",
    )  # fmt: skip
    (header,) = [line for line in done.out.splitlines() if "Answers per run" in line]
    assert header.split()[-1] == "Cost"
    (as_run,) = [line for line in done.out.splitlines() if line.endswith("as run")]
    (cheapest,) = [line for line in done.out.splitlines() if "cheapest that" in line]
    (total,) = [line for line in done.out.splitlines() if "all 2 runs" in line[:20]]
    costs = [float(re.findall(r"\$([\d.]+)", line)[0]) for line in (as_run, total)]
    assert costs[0] == costs[1]
    needed = re.findall(r"[\d,]+", cheapest)[0]
    money = re.findall(r"\$[\d.,]+", cheapest)[0]
    flat = " ".join(done.out.split())
    assert (
        "are for the 40 items that numbers has, not for the"
        f" {needed} items needed; these would cost {money}" in flat
    )


def test_a_run_of_another_task_is_refused_with_what_to_do(
    server: OpenAIServer, folder: Path
) -> None:
    run(server, "--limit", "5", "--name", "short")
    rows = "".join(f"What is number {place}?,{place}\n" for place in range(90))
    (folder / "many.csv").write_text(f"question,reference\n{rows}")
    done = typed("plan", "many.csv", "--from", "short")
    assert done.code == 2
    assert "'short' is of the task numbers, not of 'many'" in done.err
    assert "--pilot 30" in done.err
