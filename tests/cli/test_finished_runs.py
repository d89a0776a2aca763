"""`score`, `compare`, `leaderboard` and `runs`: commands over what was recorded."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from support.runs import make_run
from support.typed import typed


@pytest.fixture(autouse=True)
def _two_runs(folder: Path) -> None:
    for name, scores in (("a", [1, 1, 1, 0]), ("b", [0, 1, None, 0])):
        make_run(
            folder / "runs",
            scores=scores,
            name=name,
            model=f"demo/{name}",
            domains=["x", "y"],
        )


def test_runs_list_and_show() -> None:
    done = typed("runs", "list")
    assert (done.code, done.err) == (0, "")
    assert "demo/a" in done.out
    rows = json.loads(typed("runs", "list", "--json").out)
    assert [(row["id"], row["n_missing"]) for row in rows] == [("a", 0), ("b", 1)]
    Path("elsewhere").mkdir()
    assert "No runs in 'elsewhere'" in typed("runs", "list", "--out", "elsewhere").out
    assert json.loads(typed("runs", "list", "--out", "elsewhere", "--json").out) == []
    shown = typed("runs", "show", "b")
    assert shown.code == 0
    assert "rate limited" in shown.out
    assert json.loads(typed("runs", "show", "b", "--json").out)["id"] == "b"


def test_runs_show_verifies_where_asked() -> None:
    assert typed("runs", "show", "a", "--verify").code == 0
    path = Path("runs/a/samples.jsonl")
    path.write_text(path.read_text().replace("an answer", "another answer"))
    assert typed("runs", "show", "a").code == 0
    done = typed("runs", "show", "a", "--verify")
    assert done.code == 2
    assert "changed after the run" in done.err


def test_score_again() -> None:
    assert (
        typed(
            "run",
            "questions.yaml",
            "--model",
            "scripted/constant",
            "-M",
            "text=3 apples",
            "--name",
            "said",
        ).code
        == 0
    )
    done = typed("score", "said")
    assert (done.code, done.err) == (0, "")
    assert "Run said.rescored" in done.out
    done = typed(
        "score", "said", "--scorer", "numeric", "--scorer", "exact-match", "-S", "exact-match.ignore_case=false",
        "--name", "numbers", "--json",
    )  # fmt: skip
    assert done.code == 0, done.err
    data = json.loads(done.out)
    assert data["folder"] == "runs/numbers"
    assert [task["name"] for task in data["tasks"][0]["scorers"]] == [
        "numeric",
        "exact-match",
    ]
    assert data["tasks"][0]["scorers"][1]["options"] == {"ignore_case": False}
    assert data["tasks"][0]["metrics"][0]["value"] == pytest.approx(1 / 6)
    compared = typed("compare", "said", "numbers")
    assert compared.code == 0
    assert "the scorers differ" in compared.out
    compared = typed("compare", "numbers", "said")
    assert compared.code == 2
    assert "scored by 'numeric'" in compared.err


def test_score_refuses_options_of_nobody() -> None:
    done = typed("score", "a", "--scorer", "numeric", "-S", "numerc.x=1")
    assert done.code == 2
    assert "Name it with --scorer first" in done.err


def test_runs_list_names_copies_and_damaged_folders() -> None:
    first = Path("runs") / json.loads(typed("runs", "list", "--json").out)[0]["id"]
    shutil.copytree(first, "runs/copied")
    shutil.copytree(first, "runs/broken")
    Path("runs/broken/run.json").write_text("{")
    done = typed("runs", "list", "--json")
    assert done.code == 0
    assert {first.name, "copied"} <= {row["id"] for row in json.loads(done.out)}
    (line,) = done.err.splitlines()
    assert line.startswith(f"{Path('runs/broken')} cannot be read: ")
    assert "copied" in typed("runs", "list").out


def test_runs_list_of_no_folder_is_wrong_usage() -> None:
    done = typed("runs", "list", "--out", "nosuch")
    assert done.code == 2
    assert "'nosuch' is not a folder" in done.err
