"""What the command line says of runs that ended early: by a rule, or by a spent budget."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.openai_server import OpenAIServer, serving
from support.typed import typed

PROMPTS = ("--prompt", "plain.txt", "--prompt", "polite.txt", "--prompt", "same.txt")


def reply(prompt: str) -> str:
    mark = re.search(r'mark="(\w+)"', prompt)
    if mark is None:
        return "right" if "Please" in prompt or prompt[-2] in "01" else "wrong"
    verdict = "met" if "\nright\n" in prompt else "not met"
    return json.dumps({"check": mark[1], "c1": {"reason": "said", "class": verdict}})


@pytest.fixture(name="server")
def _server(own_folder: Path) -> Iterator[OpenAIServer]:
    (own_folder / "plain.txt").write_text("{{ input }}")
    (own_folder / "polite.txt").write_text("Please: {{ input }}")
    (own_folder / "same.txt").write_text("Please, please: {{ input }}")
    rows = "".join(f"What is number {place}?,{place}\n" for place in range(300))
    (own_folder / "numbers.csv").write_text(f"question,reference\n{rows}")
    with serving(answer=reply) as server:
        yield server


def run(server: OpenAIServer, *arguments: str) -> tuple[int, str, str]:
    done = typed(
        "run", "numbers.csv", "--model", "openai/m", "-M", f"base_url={server.url}",
        "--rubric", "Is right.", "--judge", "openai/judge", "-R",
        f"judge.base_url={server.url}", "--quiet", *arguments,
    )  # fmt: skip
    return done.code, " ".join(done.out.split()), done.err


def test_saved_requests_are_of_all_runs_and_their_judge(server: OpenAIServer) -> None:
    code, out, err = run(
        server, *PROMPTS[:4], "--until", "polite beats plain", "--name", "r"
    )
    assert code == 0, err
    stopping = json.loads(Path("runs/r-plain/run.json").read_text())["stopping"]
    asked = stopping["tasks"][0]["asked"]
    assert asked < 300
    assert f"{asked} of 300 items were asked, of each; about" in out
    saved = 2 * stopping["saved_requests"]
    assert saved == 4 * (300 - asked), "two runs, with a verdict for each answer"
    assert f"about {saved:,} requests saved, the judge's included." in out
    assert re.search(
        r"polite is better by [\d.]+ points \([\d.]+ to [\d.]+\);"
        rf" decided early, after {asked} of 300 items\.$",
        out,
    )
    assert "without replacement" not in out
    details = " ".join(typed("runs", "show", "r-plain", "--details").out.split())
    assert "without replacement" in details


def test_no_difference_has_points_and_the_interval(server: OpenAIServer) -> None:
    rule = "polite differs from same or not by 0.1"
    code, out, err = run(server, *PROMPTS[2:], "--until", rule, "--name", "r")
    assert code == 0, err
    assert re.search(
        r"no difference of 10\.0 points or more; difference \+0\.0 points"
        r" \(-?[\d.]+ to [\d.]+\); decided .*after \d+ of 300 items\.$",
        out,
    )


def test_a_spent_budget_names_the_runs_and_what_the_difference_is_on(
    server: OpenAIServer,
) -> None:
    code, out, _ = run(server, *PROMPTS[:4], "--budget", "120 requests", "--name", "r")
    assert code == 1
    asked = {
        name: json.loads(Path(f"runs/r-{name}/run.json").read_text())["stopping"][
            "tasks"
        ][0]["asked"]
        for name in ("plain", "polite")
    }
    assert (
        "Stopped early because the budget was spent: openai/m · plain after"
        f" {asked['plain']} of 300 items; openai/m · polite after {asked['polite']} of"
        " 300 items." in out
    )


def test_a_difference_says_that_it_is_on_the_items_that_both_have(
    server: OpenAIServer,
) -> None:
    for name, limit in (("a", "10"), ("b", "20")):
        code, _, err = run(server, "--limit", limit, "--name", name)
        assert code == 0, err
    out = " ".join(typed("compare", "a", "b").out.split())
    assert "on the 10 items that both have" in out
    out = " ".join(typed("compare", "a", "a", "--paired").out.split())
    assert "that both have" not in out


def test_costs_of_the_model_and_the_judge_are_told_apart(server: OpenAIServer) -> None:
    price = ("--price", "1000/2000", "--price", "openai/judge=3000/4000")
    code, _, err = run(server, "--limit", "10", "--name", "a", *price)
    assert code == 0, err
    record = json.loads(Path("runs/a/run.json").read_text())
    rows = Path("runs/a/samples.jsonl").read_text().splitlines()
    judge = sum(
        exchange["response"]["cost"]
        for row in rows
        for exchange in json.loads(row)["exchanges"]["judge-rubric"]
    )
    model = record["usage"]["answers"]["cost"]
    assert record["usage"]["cost"] == pytest.approx(judge + model)
    details = typed("runs", "show", "a", "--details").out
    facts = dict(
        re.findall(r"^ +(Paid by this command|Cost of the \w+) +(.*)$", details, re.M)
    )
    assert facts["Paid by this command"].endswith(", the judge included")
    assert facts["Cost of the answers"].endswith(", without the judge")
    for name, cost in (("answers", model), ("judge", judge)):
        shown = float(facts[f"Cost of the {name}"].split(",")[0].removeprefix("$"))
        assert shown == pytest.approx(cost, rel=0.05)
    code, _, err = run(server, "--limit", "10", "--name", "b", *price)
    assert code == 0, err
    details = typed("runs", "show", "b", "--details").out
    assert re.search(r"Tokens +none sent", details)
