"""`files`: conditions on what a model left, and places that it may have prepared."""

from __future__ import annotations

from typing import Any

import pytest

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.scorers.registry import bind
from evalwright.scorers.sandbox import expected_files
from support.left_states import files_on, needs_jail

pytestmark = needs_jail


@pytest.mark.parametrize(
    ("content", "expected", "is_met"),
    [
        ("3\n", "3", True),
        ("3", 3, True),
        ("3 \n4\t\n\n", "3\n4", True),
        (" 3", "3", True),
        ("3\n5", "3", False),
        ("a b", {"contains": "b"}, True),
        ("a b", {"contains": ["b", "c"]}, False),
        ("x 12\ny", {"matches": r"^x \d+$"}, True),
        ("x", {"matches": r"^\d"}, False),
        ("x", {"exists": True}, True),
        ("x", {"exists": False}, False),
        ("x 1", {"contains": "x", "matches": r"\d", "equals": "x 1"}, True),
    ],
)
def test_conditions(content: str, expected: Any, is_met: bool) -> None:
    score = files_on(f"printf '%s' '{content}' > /work/out", {"/work/out": expected})
    assert score.value == float(is_met), score
    assert score.label == ("passed" if is_met else "failed")


def test_the_score_is_the_share_of_files() -> None:
    score = files_on("echo 1 > a", {"a": "1", "/work/b": "2", "c": {"exists": False}})
    assert score.value == pytest.approx(2 / 3)
    assert score.parts == {"a": 1.0, "/work/b": 0.0, "c": 1.0}
    assert "/work/b: No such file" in score.explanation


def test_exact_compares_every_byte() -> None:
    assert files_on("echo 1 > a", {"a": "1"}, compare="exact").value == 0
    assert files_on("echo 1 > a", {"a": "1\n"}, compare="exact").value == 1


@pytest.mark.parametrize(
    "script",
    [
        "ln -s /dev/zero out",
        "ln -s out out",
        "mkfifo out",
        "mkdir out",
        "head -c 17M /dev/zero > out",
        "printf '\\xff\\xfe' > out",
        "echo 3 > other; ln -s other out2",
    ],
)
def test_what_is_no_such_text_is_not_met(script: str) -> None:
    assert files_on(script, {"out": "3"}).value == 0


@pytest.mark.parametrize(
    ("script", "is_there"),
    [
        ("true", False),
        ("mkdir -p d/e; rm -r d", False),
        ("touch d", False),
        ("mkdir -p d/e", True),
        ("mkdir d; mkfifo d/e", True),
        ("mkdir d; ln -s e d/e", True),
        ("mkdir d; ln -s /etc d/e", True),
        ("mkdir -p d/e; chmod 000 d", True),
    ],
)
def test_what_should_not_exist_is_no_folder_either(script: str, is_there: bool) -> None:
    score = files_on(script, {"d/e": {"exists": False}})
    assert score.value == float(not is_there), score


def test_a_text_that_a_pattern_gives_up_on_fails(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(expected_files, "PATTERN_SECONDS", 0.5)
    script = "printf 'a%.0s' $(seq 40) > out; echo b >> out"
    score = files_on(script, {"out": {"matches": "(a+)+$"}})
    assert score.value == 0.0
    assert "was given up" in score.explanation


def test_paths_may_stand_beside_the_options() -> None:
    bound = bind("files", {"/work/a": "1", "compare": "exact"})
    assert bound.options == {"compare": "exact", "expected": {"/work/a": "1"}}
    assert bind("files", bound.options).options == bound.options


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({}, "needs paths"),
        ({"expected": {"/a": ["1"]}}, "is a text, or a mapping"),
        ({"expected": {"/a": {"contain": "1"}}}, "Did you mean 'contains'"),
        ({"expected": {"/a": {"exists": "no"}}}, "true or false"),
        ({"expected": {"/a": {"exists": False, "equals": "1"}}}, "nothing else"),
        ({"/a": "1", "compare": "strip"}, "compare"),
        ({"/a": "1", "comapre": "exact"}, "Did you mean 'compare'"),
        ({"expected": {"/a": {"contains": [{}]}}}, "a text, or a list"),
    ],
)
def test_options_are_checked_when_bound(options: dict[str, Any], message: str) -> None:
    with pytest.raises((ConfigurationError, UnknownName), match=message):
        bind("files", options)
