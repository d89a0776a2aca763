"""`evalwright plan`: what it prints and returns, and that bad input ends in a sentence."""

from __future__ import annotations

import json
import shlex
from itertools import pairwise
from pathlib import Path

import pytest

from support.openai_server import serving
from support.typed import typed

ECHO = ("--model", "scripted/echo")
PLAN = ("plan", "questions.yaml", *ECHO)


def test_json_has_every_number_with_its_basis() -> None:
    done = typed(*PLAN, "--difference", "0.05", "--power", "0.9", "--json")
    found = json.loads(done.out)
    assert done.code == 0
    assert found["pilot"] is None
    (task,) = found["tasks"]
    needed = task["items_for_difference"]
    assert needed["value"] == 2102  # (1.960 + 1.282)^2 x 0.5 / 0.0025
    assert "worst case" in needed["basis"]
    assert task["enough"] is False
    assert found["models"]["scripted/echo"]["requests"]["value"] == 6
    assert "nine times out of ten" in found["conclusion"]


def test_a_pilot_and_then_the_command_that_was_proposed() -> None:
    with serving() as server:
        where = ("-M", f"base_url={server.url}")
        done = typed(
            "plan",
            "questions.yaml",
            "--model",
            "openai/m",
            *where,
            "--pilot",
            "4",
            "--price",
            "1/2",
        )
        assert done.code == 0
        assert "from a pilot of 4 items of each task" in done.out
        assert (
            "The pilot's 4 answers are in the store: the run that follows requests only the rest."
            in done.out
        )
        assert sum(server.received.values()) == 4
        line = next(
            line
            for line in done.out.splitlines()
            if line.startswith("  To run it: evalwright ")
        )
        after = done.out.splitlines()[done.out.splitlines().index(line) + 1]
        words = (
            f"{line} {after.strip()}".strip()
            .removeprefix("To run it: evalwright ")
            .split()
        )
        assert typed(*words, "--quiet").code == 0
        assert sum(server.received.values()) == 6


def test_the_proposed_command_has_every_setting() -> None:
    done = typed(*shlex.split(
        "plan questions.yaml --model scripted/constant -M 'text=two words' --num-fewshot 0 "
        "--format text --pilot 2 --seed 3 --out x --json -T version=9 --half-width 0.3 --assume variance=0.0001"
    ))  # fmt: skip
    words = shlex.split(json.loads(done.out)["command"])
    assert words[:3] == ["evalwright", "run", "questions.yaml"]
    assert ("-M", "text=two words") in pairwise(words)
    wanted = shlex.split(
        "--num-fewshot 0 -T version=9 --format text --seed 3 --out x --limit 3"
    )
    assert set(zip(wanted[::2], wanted[1::2], strict=True)) <= set(pairwise(words))
    assert typed(*words[1:], "--quiet").code == 0
    assert len(list(Path("x").glob("*/samples.jsonl"))) == 2  # the pilot and the run


def test_failures_of_the_pilot_are_exit_code_1() -> None:
    from support.openai_faults import Faults, rules

    faults = Faults(0.0)
    faults.script = rules('[{"match": "00002", "fault": "400", "times": 9}]')
    with serving(faults=faults) as server:
        done = typed(
            "plan",
            "questions.yaml",
            "--model",
            "openai/m",
            "-M",
            f"base_url={server.url}",
            "--pilot",
            "6",
        )
    assert done.code == 1
    assert "1 answer of the pilot is missing" in done.err


def test_from_stored_runs() -> None:
    for name in ("echo", "constant"):
        assert (
            typed(
                "run",
                "questions.yaml",
                "--model",
                f"scripted/{name}",
                "--name",
                name,
                "--quiet",
            ).code
            == 0
        )
    done = typed(
        "plan", "questions.yaml", "--from", "echo", "--from", "constant", "--json"
    )
    found = json.loads(done.out)
    assert list(found["models"]) == ["scripted/echo", "scripted/constant"]
    assert "measured on 6 items" in found["tasks"][0]["paired_variance"]["basis"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("plan",), "name at least one task"),
        ((*PLAN, "--from", "nothing"), "Unknown run 'nothing'"),
        ((*PLAN, "--assume", "acuracy=0.7"), "Did you mean 'accuracy'"),
        ((*PLAN, "--assume", "accuracy"), "name=number"),
        ((*PLAN, "--assume", "accuracy=most"), "needs a number, not 'most'"),
        ((*PLAN, "--price", "3"), "IN/OUT"),
        ((*PLAN, "--price", "x/1"), "needs a number, not 'x'"),
        ((*PLAN, "--price", "-1/1"), "cannot be negative"),
        ((*PLAN, "--price", "echo=1/1"), "Unknown model 'echo' in --price"),
        ((*PLAN, "--difference", "2"), "2 points are 0.02"),
        ((*PLAN, "--pilot", "0"), "at least 2 items"),
        ((*PLAN, *ECHO), "named twice"),
    ],
)
def test_bad_input_ends_in_a_sentence(arguments: tuple[str, ...], says: str) -> None:
    done = typed(*arguments)
    assert done.code == 2
    assert says in done.err
    assert "Traceback" not in done.text
    assert "bug in evalwright" not in done.text
    assert not list(Path("home").glob("store.sqlite*"))
