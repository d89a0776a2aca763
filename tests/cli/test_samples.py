"""Samples are found by conditions, and those that another run scored differently; hostile text
in them acts nowhere.
"""

from __future__ import annotations

import json
import shlex
from pathlib import Path
from typing import Any

import pytest

from evalwright.analysis.sample_search import parse_condition
from evalwright.core.errors import ConfigurationError
from evalwright.core.samples import Score
from support.runs import make_run, rewrite
from support.typed import typed

SCORES = [
    Score(1.0, "correct", "the same text"),
    Score(0.0, "incorrect", "another name: 'Lyon'"),
    None,
    Score(0.5, "partly"),
]


@pytest.fixture
def two(folder: Path) -> Path:
    make_run(folder / "runs", name="a", scores=SCORES, domains=["geography", "history"])
    make_run(
        folder / "runs", name="b", scores=[0.0, 1.0, 1.0, 0.5], text="Paris, of course"
    )
    return folder


def found(*words: str) -> list[str]:
    done = typed("runs", "samples", *words, "--json")
    assert done.code == 0, done.err
    return [sample["record"]["id"] for sample in json.loads(done.out)["samples"]]


@pytest.mark.parametrize(
    ("where", "places"),
    [
        (["label=incorrect"], [1]),
        (["label!=incorrect"], [0, 2, 3]),
        (["score<1"], [1, 3]),
        (["score>=0.5"], [0, 3]),
        (["score=1"], [0]),
        (["domain=history"], [1, 3]),
        (["domain=history", "score>0"], [3]),
        (["score=0.5", "label~PART"], [3]),
        (["outcome=failed"], [2]),
        (["failure=rate limited"], [2]),
        (["id=item-1"], [1]),
        (["label=correct", "label=incorrect"], [0, 1]),
        (["label=correct", "label=incorrect", "domain=history"], [1]),
        (["label!=correct", "label!=incorrect"], [2, 3]),
    ],
)
def test_conditions(two: Path, where: list[str], places: list[int]) -> None:
    words = [word for one in where for word in ("--where", one)]
    assert found("a", *words) == [f"item-{place}" for place in places]


def test_failed_limit_and_flips(two: Path) -> None:
    assert found("a", "--failed") == ["item-2"]
    assert found("a", "--limit", "2") == ["item-0", "item-1"]
    assert found("a", "--flipped-against", "b") == ["item-1", "item-2", "item-0"], (
        "what it lost comes first"
    )
    assert found("b", "--flipped-against", "a", "--limit", "1") == ["item-0"]
    shown = typed(
        "runs",
        "samples",
        "a",
        "--flipped-against",
        "b",
        "--where",
        "id=item-1",
        "--details",
    ).out
    assert "another name: 'Lyon'" in shown
    assert "b: Reply" in shown
    assert "Paris, of course" in shown


def test_other_questions_under_an_id_are_no_flips(two: Path) -> None:
    def change(row: dict[str, object], place: int) -> None:
        row["input"] = f"Another question {place}?"

    b = make_run(two / "runs", name="c", scores=[0.0, 1.0, 1.0, 0.5])
    rewrite(b, change)
    assert found("a", "--flipped-against", "c") == []
    shown = typed("runs", "samples", "a", "--flipped-against", "c").out
    assert "No samples match. No item has another score in 'c'." in shown


def test_wrong_conditions_are_said(two: Path) -> None:
    done = typed("runs", "samples", "a", "--where", "labl=x")
    assert done.code == 2
    assert "Did you mean 'label'?" in done.err
    for text, said in (
        ("label", "is not a condition"),
        ("score<high", "is not a number"),
    ):
        with pytest.raises(ConfigurationError, match=said):
            parse_condition(text)
    assert typed("runs", "samples", "a", "--details", "--json").code == 2


def test_a_value_that_no_sample_has_is_said_with_those_that_there_are(
    two: Path,
) -> None:
    told = typed("runs", "samples", "a", "--where", "label=incorect")
    assert told.code == 0, "nothing may match where every answer is right"
    assert "None has label 'incorect'. Did you mean 'incorrect'" in " ".join(
        told.out.split()
    )
    assert "There are: correct, incorrect, partly." in " ".join(told.out.split())
    for where in ("answer=Rome", "score=0.25", "label~nothing"):
        assert "There are" not in typed("runs", "samples", "a", "--where", where).out
    assert found("a", "--where", "label=incorect") == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (
            ("runs", "samples", "a", "item-1", "--limit", "2"),
            "leave out --limit. To list samples by their ids: --where 'id~item-1' --limit 2.",
        ),
        (("runs", "samples", "a", "--flipped-against", "runs/a"), "names 'a' itself"),
        (("leaderboard", "a", "runs/a"), "named more than once"),
        (("plot", "scores", "a", "a", "--into", "f.svg"), "named more than once"),
        (("plot", "score", "a", "--into", "f.svg"), "Did you mean 'scores'?"),
    ],
)
def test_a_run_is_named_once_and_no_flag_is_without_effect(
    two: Path, words: tuple[str, ...], said: str
) -> None:
    done = typed(*words)
    assert done.code == 2
    assert said in done.err


def test_what_stands_in_a_sample_stays_text(two: Path) -> None:
    run = make_run(
        two / "runs", name="hostile", scores=[1.0], text="\x1b[2Jgone \u202eback"
    )
    for words in ((), ("--details",)):
        out = typed("runs", "samples", run.name, *words).out
        assert "\x1b" not in out
        assert "\u202e" not in out
        assert "gone" in out


def test_the_command_for_one_sample_is_safe_to_copy(two: Path) -> None:
    run = make_run(two / "runs", name="odd", scores=[1.0])
    for name in ("a'; touch stolen #", "--help"):

        def named(row: dict[str, Any], place: int, name: str = name) -> None:
            row["id"] = name

        rewrite(run, named)
        line = typed("runs", "samples", "odd").out.partition(
            "One sample in full: evalwright "
        )[2]
        shown = typed(*shlex.split(line)).out
        assert name in shown
        assert "Reply" in shown


def test_one_sample_by_its_id(two: Path) -> None:
    shown = typed("runs", "samples", "a", "item-1").out
    assert "item-0" not in shown
    for part in (
        "Outcome",
        "Prompt",
        "Reply",
        "Expected",
        "incorrect",
        "another name: 'Lyon'",
    ):
        assert part in shown
    record = json.loads(typed("runs", "samples", "a", "item-1", "--json").out)[
        "samples"
    ]
    assert [one["record"]["id"] for one in record] == ["item-1"]
    unknown = typed("runs", "samples", "a", "itme-1")
    assert unknown.code == 2
    assert "Unknown sample 'itme-1' of run 'a'. Did you mean 'item-1'" in unknown.err
    assert (
        "No samples match." in typed("runs", "samples", "a", "item-1", "--failed").out
    )
    assert typed("runs", "samples", "a", "item-1", "--details").code == 2


@pytest.mark.parametrize(
    "name", ["{}", "an-identifier-of-sixty-characters/that-no-table-can-hold-{}"]
)
@pytest.mark.parametrize(
    "task", ["short", "a-task-with-a-name-of-forty-characters-or-so"]
)
def test_lines_fit_80_columns_and_ids_are_whole(
    two: Path, name: str, task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(
        two / "runs", name="wide", scores=[1.0, 0.0, None], text="word " * 60
    )

    def change(row: dict[str, object], place: int) -> None:
        row["id"] = name.format(place)
        row["task"] = f"{task}-{place % 2}"
        row["targets"] = ["a long target " * 20, "another"]

    rewrite(run, change)
    monkeypatch.setenv("COLUMNS", "80")
    out = typed("runs", "samples", "wide").out
    assert max(map(len, out.splitlines())) <= 80
    for place in range(3):
        assert name.format(place) in out
        assert f"{task}-{place % 2}" in out
    assert out.count("(+1 more)") == 3
