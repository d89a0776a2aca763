"""`run --round` and `evalwright check drift`: rounds of a model that changes under its name."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest

from support.typed import typed

MODEL = """
import pathlib
import random

COUNT = pathlib.Path("count")


def answer(prompt: str) -> str:
    COUNT.write_text(str(int(COUNT.read_text()) + 1))
    number = int(prompt.split()[-1])
    right = number % 4 > 0
    if pathlib.Path("released").exists() and number % 4 == 1:
        right = False
    return "yes" if right else "no"
"""
N_ITEMS = 64


@pytest.fixture(autouse=True)
def _files(folder: Path) -> None:
    (folder / "clerk.py").write_text(MODEL)
    (folder / "count").write_text("0")
    rows = [json.dumps({"input": f"Item {n}", "target": "yes"}) for n in range(N_ITEMS)]
    (folder / "items.jsonl").write_text("\n".join(rows))
    (folder / "fixed.yaml").write_text(
        "task: fixed\ndataset: items.jsonl\nanswer: {temperature: 1.0}\n"
        "scorers: [exact-match]\n"
    )


def ask(round_name: str, *options: str) -> None:
    command = "run fixed.yaml --model python/clerk.py:answer --name week --quiet"
    done = typed(*command.split(), "--round", round_name, *options)
    assert done.code == 0, done.err


def n_asked() -> int:
    return int(Path("count").read_text())


def check(*options: str) -> dict[str, Any]:
    runs = [str(run) for run in sorted(Path("runs").glob("week-*"))]
    done = typed("check", "drift", *runs, "--json", *options)
    assert done.code in (0, 1), done.err
    return {**json.loads(done.out), "code": done.code}


def test_a_round_asks_again_and_only_once() -> None:
    ask("1")
    assert n_asked() == N_ITEMS
    ask("2")
    assert n_asked() == 2 * N_ITEMS
    ask("2")
    assert n_asked() == 2 * N_ITEMS
    assert json.loads(Path("runs/week-2/run.json").read_text())["configuration"][
        "round"
    ] == ("2")


def test_a_lasting_change_gives_an_alarm_within_weeks() -> None:
    ask("0", "-T", "answer.draws=2")
    ask("1")
    ask("2")
    Path("released").touch()
    ask("3")
    quiet = check()
    assert quiet["code"] == 0
    for name in "456":
        ask(name)
    measured = check()
    assert measured["code"] == 1
    (task,) = measured["tasks"]
    assert task["n_repeats"] == 2
    alarms = {task["score_alarm"], task["verdict_alarm"], task["text_alarm"]}
    assert alarms & {"week-5", "week-6"}
    changes = [look["change"] for look in task["rounds"]]
    assert changes[-1] == pytest.approx(-16 / N_ITEMS)
    assert task["rounds"][-1]["since"] == task["since"] == "week-3"
    assert task["rounds"][-1]["changed_verdicts"] == pytest.approx(16 / N_ITEMS)
    runs = [str(run) for run in sorted(Path("runs").glob("week-*"))]
    shown = " ".join(typed("check", "drift", *runs).out.split())
    assert "since week-3" in shown and "run it again with --round" in shown


def test_one_bad_day_gives_no_alarm() -> None:
    for name in "0123456":
        released = Path("released")
        if name == "4":
            released.touch()
        ask(name)
        released.unlink(missing_ok=True)
        assert check_if_possible() == 0


def check_if_possible() -> int:
    n_rounds = len([*Path("runs").glob("week-*")])
    return int(str(check()["code"])) if n_rounds > 1 else 0


def test_rounds_without_repeats_need_no_joined_baseline() -> None:
    """What two rounds differ by must not be taken for the model's own variation."""
    for name in "123":
        ask(name)
    Path("released").touch()
    for name in "456":
        ask(name)
    measured = check()
    assert measured["baseline"] == ["week-1"]
    assert measured["code"] == 1
    named = check("--baseline", "week-1", "--baseline", "week-3")
    assert named["rounds"] == [f"week-{n}" for n in (2, 4, 5, 6)]


def test_several_tasks_share_the_chance_of_a_false_alarm() -> None:
    text = Path("fixed.yaml").read_text()
    Path("second.yaml").write_text(text.replace("task: fixed", "task: second"))
    for name in "1234":
        if name == "3":
            Path("released").touch()
        ask_both(name)
    measured = check()
    assert measured["alpha"] == 0.05
    assert [task["task"] for task in measured["tasks"]] == ["fixed", "second"]


def ask_both(round_name: str) -> None:
    command = "run fixed.yaml second.yaml --model python/clerk.py:answer --name week"
    done = typed(*command.split(), "--quiet", "--round", round_name)
    assert done.code == 0, done.err


JUDGE = """
import json
import pathlib
import re


def answer(prompt: str) -> str:
    mark = re.search(r"[0-9a-f]{16}", prompt)[0]
    number = int(prompt.split("Item ")[1].split()[0].rstrip(".,:"))
    strict = pathlib.Path("stricter").exists() and number % 3 == 0
    verdict = "incorrect" if strict else "correct"
    return json.dumps({"check": mark, "reason": "so", "class": verdict})
"""


def test_a_judge_is_asked_again_about_the_same_answers() -> None:
    Path("judge.py").write_text(JUDGE)
    judged = Path("fixed.yaml").read_text().replace("exact-match", "judge-correct")
    Path("judged.yaml").write_text(judged)
    command = "run judged.yaml --model python/clerk.py:answer --name judged --quiet"
    done = typed(*command.split(), "--judge", "python/judge.py:answer")
    assert done.code == 0, done.err
    rounds = ["judged"]
    for week in range(1, 8):
        if week == 3:
            Path("stricter").touch()
        command = f"score judged --judge python/judge.py:answer --round W{week}"
        done = typed(*command.split(), "--json")
        assert done.code == 0, done.err
        rounds.append(f"judged.rescored-W{week}")
    assert n_asked() == N_ITEMS
    record = json.loads(Path(f"runs/{rounds[-1]}/run.json").read_text())
    assert record["scored_from"]["round"] == "W7"
    done = typed("check", "drift", *reversed(rounds))
    assert done.code == 1, done.out + done.err
    shown = " ".join(done.out.split())
    assert "the judge python/judge.py:answer" in shown
    assert "since judged.rescored-W3" in shown and "evalwright score --round" in shown


def test_what_cannot_be_checked_says_why() -> None:
    ask("1")
    done = typed("check", "drift", "week-1")
    assert done.code == 2 and "--round" in done.err
    ask("2")
    done = typed("check", "drift", "week-1", "week-2")
    assert done.code == 0 and "there can be none yet" in " ".join(done.out.split())
    command = "run fixed.yaml --model scripted/echo --name other --quiet --round 1"
    assert typed(*command.split()).code == 0
    done = typed("check", "drift", "week-1", "week-2", "other-1")
    assert done.code == 2 and "scripted/echo" in done.err


def test_what_too_few_items_would_show_is_said() -> None:
    rows = Path("items.jsonl").read_text().splitlines()[:20]
    Path("items.jsonl").write_text("\n".join(rows))
    for name in "123456":
        ask(name)
    runs = [str(run) for run in sorted(Path("runs").glob("week-*"))]
    shown = " ".join(typed("check", "drift", *runs).out.split())
    (task,) = check()["tasks"]
    assert 0.1 < task["detectable_change"] < 0.3
    assert f"(20 items): a lasting change of {points(task)} points or of " in shown
    assert f"For 4 points, ask about {task['n_items_advised']} items." in shown
    assert "No sign that python/clerk.py:answer has changed, but a change of 4" in shown


def points(task: dict[str, Any]) -> int:
    return math.ceil(100 * float(task["detectable_change"]))


def test_rounds_are_not_for_batches() -> None:
    command = "run fixed.yaml --model openai/gpt-4.1 --batch --round 1"
    done = typed(*command.split())
    assert done.code == 2 and "--batch" in done.err


@pytest.mark.parametrize("name", ["", " ", "..", "a/b", "a b", "x" * 61])
def test_a_rounds_name_is_one_that_a_run_can_have(name: str) -> None:
    command = "run fixed.yaml --model python/clerk.py:answer --name week"
    done = typed(*command.split(), "--round", name)
    assert done.code == 2 and "--round" in done.err
    assert n_asked() == 0 and not Path("runs").exists()
