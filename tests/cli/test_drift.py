"""`run --round` and `evalwright check drift`: rounds of a model that changes under its name."""

from __future__ import annotations

import json
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


def test_a_change_gives_an_alarm_from_its_round_on() -> None:
    ask("0", "-T", "answer.draws=2")
    ask("1")
    quiet = check()
    assert quiet["code"] == 0
    Path("released").touch()
    ask("2")
    ask("3")
    measured = check()
    assert measured["code"] == 1
    (task,) = measured["tasks"]
    assert task["n_repeats"] == 2
    assert task["text_alarm"] == "week-2"
    changes = [look["change"] for look in task["rounds"]]
    assert changes[0] == 0.0 and changes[-1] == pytest.approx(-16 / N_ITEMS)
    assert task["rounds"][-1]["since"] == "week-2"
    runs = [str(run) for run in sorted(Path("runs").glob("week-*"))]
    shown = " ".join(typed("check", "drift", *runs).out.split())
    assert "week-2" in shown and "run it again with --round" in shown


def test_two_rounds_without_repeats_are_the_baseline() -> None:
    for name in "123":
        ask(name)
    measured = check()
    assert measured["baseline"] == ["week-1", "week-2"]
    assert check("--baseline", "week-1", "--baseline", "week-3")["rounds"] == ["week-2"]


def test_what_cannot_be_checked_says_why() -> None:
    ask("1")
    done = typed("check", "drift", "week-1")
    assert done.code == 2 and "--round" in done.err
    ask("2")
    done = typed("check", "drift", "week-1", "week-2", "--baseline", "week-1")
    assert done.code == 2 and "draws" in done.err
    command = "run fixed.yaml --model scripted/echo --name other --quiet --round 1"
    assert typed(*command.split()).code == 0
    done = typed("check", "drift", "week-1", "week-2", "other-1")
    assert done.code == 2 and "scripted/echo" in done.err


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
