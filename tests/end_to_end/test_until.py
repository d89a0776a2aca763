"""Stopping rules and budgets as a person meets them: the command line, real servers, `kill -9`
in the middle.
"""

from __future__ import annotations

import json
import random
import re
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from support.command import (
    Done,
    record,
    records,
    stored_requests,
    wait_until,
    write_questions,
)
from support.forked import start_forked
from support.openai_server import OpenAIServer, serving
from support.typed import typed

QUESTION = re.compile(r"Question (\d{5})\?")


def knows(name: str, share: float) -> Callable[[str], str]:
    """The answers of a model that knows this share."""

    def answer(prompt: str) -> str:
        found = QUESTION.search(prompt)
        assert found is not None
        number = found.group(1)
        return (
            str(int(number))
            if random.Random(f"{name} {number}").random() < share
            else "no idea"
        )

    return answer


def asked(server: OpenAIServer) -> Counter[tuple[str, str]]:
    """How often each model got each question."""
    counts: Counter[tuple[str, str]] = Counter()
    for entry in list(server.log or ()):
        body = entry.get("body")
        if body:
            counts[body["model"], QUESTION.findall(json.dumps(body))[0]] += 1
    return counts


def stored(home: Path) -> set[tuple[str, str]]:
    """(fingerprint, question) of the answers that were acknowledged."""
    return {
        (model, QUESTION.findall(request)[0])
        for model, request in stored_requests(home)
    }


def suite(folder: Path, one: str, two: str, *more: str) -> None:
    """A suite of two models on two servers, with a rule."""
    lines = ["tasks: questions.yaml", "models:"]
    for name, url in (("one", one), ("two", two)):
        lines += [
            f"  - model: openai/{name}",
            f"    arguments: {{base_url: '{url}', max_concurrency: 20}}",
            f"    label: {name.title()}",
        ]
    (folder / "suite.yaml").write_text(
        "\n".join([*lines, "name: pair", *more]) + "\n", encoding="utf-8"
    )


def run(folder: Path, *more: str, extra: dict[str, str] | None = None) -> Done:
    trust = ("--trust-file", "suite.yaml")
    return typed(
        "run",
        "--config",
        "suite.yaml",
        *trust,
        "--quiet",
        *more,
        folder=folder,
        extra=extra,
    )


def test_killed_in_the_middle_it_decides_the_same_and_asks_nothing_twice(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 600)
    with (
        serving(knows("one", 0.75), latency=0.05, spread=0.3) as one,
        serving(knows("two", 0.6), latency=0.05, spread=0.3) as two,
    ):
        suite(tmp_path, one.url, two.url, "until: One beats Two")
        calm = run(tmp_path, "--name", "calm", extra={"EVALWRIGHT_HOME": "calm"})
        assert calm.code == 0, calm.text
        before = asked(one) + asked(two)
        for server in (one, two):
            (server.log or []).clear()
        names = {
            record(tmp_path / "runs" / f"calm-{name.title()}")["model"][
                "fingerprint"
            ]: name
            for name in ("one", "two")
        }
        kept: dict[tuple[str, str], int] = {}
        for requests in (30, 70, 110):
            process = start_forked(
                [
                    "run",
                    "--config",
                    "suite.yaml",
                    "--trust-file",
                    "suite.yaml",
                    "--quiet",
                ],
                tmp_path,
                {"EVALWRIGHT_HOME": "killed"},
            )
            wait_until(lambda: len(asked(one) + asked(two)) >= requests, process)  # noqa: B023
            process.kill()
            process.communicate()
            times = asked(one) + asked(two)
            for model, question in stored(tmp_path / "killed"):
                kept.setdefault((names[model], question), times[names[model], question])
        assert len(kept) > 30
        assert not (tmp_path / "runs" / "pair-One" / "run.json").exists()
        plans = [
            json.loads(path.read_text())
            for path in (tmp_path / "runs").glob("pair-*/plan.json")
        ]
        assert {plan["rules"][0]["text"] for plan in plans} == {"One beats Two"}
        done = run(tmp_path, extra={"EVALWRIGHT_HOME": "killed"})
        assert done.code == 0, done.text
        after = asked(one) + asked(two)
        (one.log or []).clear()
        (two.log or []).clear()
        again = run(tmp_path, extra={"EVALWRIGHT_HOME": "killed"})
        assert again.code == 0
        assert not asked(one) + asked(two)
    assert set(before) == set(after)
    # What was in flight at a kill, or had just arrived, may be asked twice; what was stored never
    # is.
    assert {pair: after[pair] for pair in kept} == kept
    for name in ("One", "Two"):
        old = tmp_path / "runs" / f"calm-{name}"
        new = tmp_path / "runs" / f"pair-{name}"
        assert records(old) == records(new)
        assert (
            record(old)["stopping"]["decisions"] == record(new)["stopping"]["decisions"]
        )
        assert record(old)["tasks"] == record(new)["tasks"]
    (decision,) = record(tmp_path / "runs" / "pair-One")["stopping"]["decisions"]
    assert decision["verdict"] == "One better"
    assert decision["early"]
    low, high = (100 * decision[end] for end in ("low", "high"))
    verdict = (
        f"One is better by {100 * decision['value']:.1f} points ({low:.1f} to {high:.1f});"
        f" decided early, after {decision['units']} of 600 items."
    )
    flat = " ".join(done.out.split())
    assert f"One beats Two' on questions: {verdict}" in flat
    assert flat.endswith(verdict), "the last line says it again"
    assert decision["method"] not in flat, "how it was made is for --details"
    assert "Stopped early" in done.out


def test_a_spent_budget_ends_with_one_and_the_same_command_goes_on(
    tmp_path: Path,
) -> None:
    write_questions(tmp_path, 120)
    with serving(knows("one", 0.72)) as one, serving(knows("two", 0.7)) as two:
        suite(
            tmp_path, one.url, two.url, "until: [One beats Two]", "budget: 150 requests"
        )
        first = run(tmp_path)
        assert first.code == 1
        assert "The budget of requests was spent" in first.err
        assert sum((asked(one) + asked(two)).values()) == 150
        second = run(tmp_path)
        assert second.code == 0, second.text
        assert sum((asked(one) + asked(two)).values()) == 240
        assert set((asked(one) + asked(two)).values()) == {1}
    page = typed(
        "leaderboard", "pair-One", "pair-Two", "--html", "board.html", folder=tmp_path
    )
    assert page.code == 0, page.text


def test_ctrl_c_between_two_looks(tmp_path: Path) -> None:
    write_questions(tmp_path, 400)
    with (
        serving(knows("one", 0.7), latency=0.3) as one,
        serving(knows("two", 0.7), latency=0.3) as two,
    ):
        suite(tmp_path, one.url, two.url, "until: One beats Two")
        process = start_forked(
            ["run", "--config", "suite.yaml", "--trust-file", "suite.yaml"], tmp_path
        )
        wait_until(lambda: len(asked(one) + asked(two)) >= 120, process)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=900)
    assert process.returncode == 130
    assert "Traceback" not in err
    assert (tmp_path / "runs" / "pair-One" / "plan.json").exists()
    assert not (tmp_path / "runs" / "pair-One" / "run.json").exists()
    changed = run(tmp_path, "--until", "Two beats One")
    assert changed.code == 2
    assert "was begun from another configuration" in changed.err


def knows_by_prompt(prompt: str) -> str:
    """The answers of a model that knows more where it is asked politely."""
    if "Please" in prompt:
        return knows("polite", 0.75)(prompt)
    return knows("plain", 0.55)(prompt)


def test_prompts_are_killed_in_the_middle_and_decide_the_same(tmp_path: Path) -> None:
    write_questions(tmp_path, 600)
    (tmp_path / "plain.txt").write_text("{{ input }}")
    (tmp_path / "polite.txt").write_text("Please: {{ input }}")
    with serving(knows_by_prompt, latency=0.05, spread=0.3) as server:
        command = [
            *("run", "questions.yaml", "--model", "openai/one", "--quiet"),
            *("-M", f"base_url={server.url}", "-M", "max_concurrency=20"),
            *("--prompt", "plain.txt", "--prompt", "polite.txt"),
            *("--until", "polite beats plain", "--name"),
        ]
        calm = typed(*command, "calm", folder=tmp_path, extra={"EVALWRIGHT_HOME": "c"})
        assert calm.code == 0, calm.text
        n_calm = sum(server.received.values())
        home = {"EVALWRIGHT_HOME": "killed"}
        process = start_forked([*command, "cut"], tmp_path, home)
        wait_until(lambda: sum(server.received.values()) >= n_calm + 80, process)
        process.kill()
        process.communicate()
        assert not (tmp_path / "runs" / "cut-plain" / "run.json").exists()
        n_stored = len(list(stored_requests(tmp_path / "killed")))
        n_before = sum(server.received.values())
        done = typed(*command, "cut", folder=tmp_path, extra=home)
        assert done.code == 0, done.text
        assert sum(server.received.values()) - n_before == n_calm - n_stored
    for name in ("plain", "polite"):
        old = tmp_path / "runs" / f"calm-{name}"
        new = tmp_path / "runs" / f"cut-{name}"
        assert records(old) == records(new)
        (decision,) = record(new)["stopping"]["decisions"]
        assert [decision] == record(old)["stopping"]["decisions"]
        assert decision["verdict"] == "openai/one · polite better"
        assert decision["early"]
