"""Records that cannot be: every command that makes numbers of them refuses and names the folder;
what shows a run says what is wrong.
"""

from __future__ import annotations

import base64
import json
import re
import time
import zlib
from collections.abc import Callable
from functools import reduce
from operator import getitem
from pathlib import Path
from typing import Any

import pytest

from evalwright.reports.explorer.following import Follower
from evalwright.runs.reader import open_run
from support.runs import edited, make_run, rewrite
from support.typed import typed

BAD = {"text": "1", "nan": float("nan"), "yes": True, "list": [1], "missing": None}


@pytest.fixture(autouse=True)
def _runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("good", "other", "bad"):
        make_run(
            tmp_path / "runs", scores=[1.0, 0.0, 1.0], name=name, model=f"demo/{name}"
        )


def spoilt(change: Callable[[dict[str, Any]], object]) -> None:
    """Change the second record of the run "bad"."""
    rewrite(
        open_run("runs/bad"), lambda row, place: change(row) if place == 1 else None
    )


def with_value(value: Any) -> Callable[[dict[str, Any]], object]:
    def change(row: dict[str, Any]) -> None:
        row["scores"]["score"]["value"] = value
        if value is None:
            del row["scores"]["score"]["value"]

    return change


def shown(file: str) -> dict[str, Any]:
    """The catalog of a page."""
    (found,) = re.findall(
        r'id="catalog">([^<]*)</script>', Path(file).read_text(encoding="utf-8")
    )
    data: dict[str, Any] = json.loads(zlib.decompress(base64.b64decode(found), -15))
    return data


@pytest.mark.parametrize("kind", [*BAD])
def test_an_impossible_score_is_an_error_of_its_run(kind: str) -> None:
    spoilt(with_value(BAD[kind]))
    for words in (
        ("compare", "good", "bad"),
        ("compare", "good", "other", "bad"),
        ("leaderboard", "good", "other", "bad"),
        ("runs", "samples", "bad"),
        ("runs", "show", "bad", "--analysis"),
    ):
        done = typed(*words)
        assert done.code == 2, words
        told = r"Error: .*runs/bad/samples\.jsonl, line 2: the score 'score' is .*, not a number\."
        assert re.search(told, done.err), (words, done.err)
    verified = typed("runs", "show", "bad", "--verify")
    assert (
        verified.code == 2
        and "runs/bad: Impossible records: record 2: the score 'score'" in verified.err
    )
    checked = typed("runs", "check", "bad")
    assert checked.code == 1 and "impossible records" in " ".join(checked.out.split())


@pytest.mark.parametrize("kind", [*BAD])
def test_a_page_of_such_a_run_says_it(kind: str) -> None:
    spoilt(with_value(BAD[kind]))
    for words in (("bad",), ("good", "bad")):
        done = typed("view", *words, "--html", "page.html")
        assert done.code == 0, done.err
        assert (
            "Warning: bad: Impossible records: record 2: the score 'score' is"
            in done.err
        )
        assert any(
            "Impossible records" in text
            for name, text in shown("page.html")["runs"][-1]["facts"]
        )
    assert "runs/bad/samples.jsonl, line 2" in shown("page.html")["board"]["notes"][0]
    assert typed("export", "site", "bad").code == 0


def test_a_sample_that_is_there_twice_is_said() -> None:
    spoilt(lambda row: row.update(id="item-0"))
    done = typed("view", "bad", "--html", "page.html")
    assert done.code == 0
    assert "Warning: bad: Samples recorded twice: 'item-0' of" in done.err
    assert (
        "Samples recorded twice"
        in dict(shown("page.html")["runs"][0]["facts"])["Warning"]
    )
    assert "samples recorded twice" in " ".join(
        typed("runs", "check", "bad").out.split()
    )


def test_numbers_that_the_samples_do_not_give_are_said() -> None:
    with edited("runs/bad") as data:
        data["tasks"][0]["metrics"][0]["value"] = 0.25
    done = typed("view", "bad", "--html", "page.html")
    assert done.code == 0
    assert "accuracy is 0.25 in run.json, 0.666667 from the samples" in done.err
    assert not typed("view", "good", "--html", "page.html").err.startswith("Warning")
    assert "Warning" not in dict(shown("page.html")["runs"][0]["facts"])


def test_the_served_page_says_it_too() -> None:
    spoilt(with_value("1"))
    said: list[str] = []
    follower = Follower([Path("runs/good"), Path("runs/bad")], "x", said.append)
    follower.start()
    try:
        while not (all(run.complete for run in follower.runs.values()) and said):
            assert not any(run.trouble for run in follower.runs.values())
            time.sleep(0.02)
        facts = follower.runs["1"].info()["facts"]
    finally:
        follower.stop()
    assert facts[0][0] == "Warning" and "Impossible records: record 2" in facts[0][1]
    assert len(said) == 1 and said[0].startswith("Warning: bad: Impossible records")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        (("tasks", 0, "metrics", 0, "value"), "1"),
        (("tasks", 0, "metrics", 0, "low"), [0]),
        (("tasks", 0, "metrics"), 3),
        (("tasks",), "none"),
        (("model",), "demo"),
        (("tasks", 0, "n_missing"), "no"),
    ],
)
def test_one_bad_record_among_many_is_named(path: tuple[Any, ...], value: Any) -> None:
    with edited("runs/bad") as data:
        reduce(getitem, path[:-1], data)[path[-1]] = value
    for words in (
        ("leaderboard", "good", "other", "bad"),
        ("compare", "good", "bad"),
        ("runs", "show", "bad"),
        ("runs", "samples", "bad"),
        ("view", "good", "bad", "--html", "x.html"),
    ):
        done = typed(*words)
        assert done.code == 2 and "runs/bad/run.json is not" in done.err, (
            words,
            done.err,
        )
    listed = typed("runs", "list")
    assert (
        listed.code == 0
        and "good" in listed.out
        and "runs/bad cannot be read" in listed.err
    )


def _judged(row: dict[str, Any], **parts: Any) -> None:
    row.update(
        exchanges={"score": [{"role": "judge", "request": {"generate": "?"}, **parts}]}
    )


def _called(row: dict[str, Any], calls: Any) -> None:
    row["prompt"] = [["user", "x"], ["assistant", "", {"tool_calls": calls}]]


FORMS: dict[str, Callable[[dict[str, Any]], object]] = {
    "failure with more": lambda row: row.update(
        failure={"kind": "k", "party": "model", "message": "m", "x": 1}
    ),
    "failure cut": lambda row: row.update(failure={"kind": "k"}),
    "failure a text": lambda row: row.update(failure="k"),
    "failures of scorers a list": lambda row: row.update(score_failures=["k"]),
    "undecided a number": lambda row: row.update(undecided={"score": 5}),
    "replies numbers": lambda row: row.update(responses=[5]),
    "exchanges numbers": lambda row: row.update(exchanges={"score": [5]}),
    "an exchange without a role": lambda row: _judged(row, role=None),
    "metadata a list": lambda row: row.update(metadata=[1]),
    "choices a number": lambda row: row.update(choices=5),
    "gold a text": lambda row: row.update(gold=["a"]),
    "passages texts": lambda row: row.update(passages=["a"]),
    "calls of a turn numbers": lambda row: _called(row, [5]),
    "calls of a turn nothing": lambda row: _called(row, None),
    "calls of a turn without texts": lambda row: _called(
        row, [{"name": "f", "arguments": {}}]
    ),
    "timing a list": lambda row: row.update(timing=[1]),
    "times texts": lambda row: row.update(timing={"latency": ["long"]}),
    "tokens a text": lambda row: row.update(
        responses=[{"text": "a", "usage": {"input_tokens": "x"}}]
    ),
}


@pytest.mark.parametrize("kind", [*FORMS])
def test_a_part_of_another_form_is_an_error_of_its_run(kind: str) -> None:
    spoilt(FORMS[kind])
    with edited(Path("runs/bad")) as data:
        data["tasks"][0]["failures"] = {"k": 1}
    for words in (
        ("runs", "samples", "bad", "--details"),
        ("runs", "show", "bad", "--analysis"),
        ("runs", "show", "bad"),
        ("compare", "good", "bad"),
        ("leaderboard", "good", "bad", "--pages", "pages"),
        ("export", "site", "bad", "--out", "site"),
        ("view", "bad", "--html", "page.html"),
    ):
        done = typed(*words)
        assert "bug" not in done.err and "Traceback" not in done.text, (
            words,
            done.text,
        )
        assert done.code in (0, 2)
        assert done.code == 0 or "is not a sample record" in done.err, (words, done.err)
    assert typed("runs", "show", "bad", "--analysis").code == 2
