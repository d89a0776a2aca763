"""The registry of runs, and the numbers of factual runs on it and on boards."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.open_factual_bench.test_importing import write_questions, write_run
from evalwright import evaluate
from evalwright.analysis.board import make_board
from evalwright.analysis.factual import factual_shares, hardware_of, is_factual
from evalwright.compat.open_factual_bench.importing import import_ofb
from evalwright.runs.reader import open_run
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")


def imported(name: str = "one", model: str = "acme/small") -> None:
    tasks = write_questions(Path("tasks.json"))
    import_ofb(
        write_run(Path(f"{name}.json"), model),
        Path("runs"),
        name,
        scoring="published",
        tasks=tasks,
    )


def test_shares_of_an_imported_run() -> None:
    imported()
    run = open_run("runs/one")
    assert is_factual([run]) and hardware_of(run) == "a toaster"
    shares = factual_shares(run)
    assert {name: (one.value, one.n) for name, one in shares.items()} == {
        "accuracy": (0.75, 4), "refused": (0.5, 2), "hallucinated": (0.5, 2),
    }  # fmt: skip
    (row,) = make_board([run]).rows
    assert row.shares.keys() == shares.keys()


def test_a_board_of_factual_runs_has_their_columns() -> None:
    imported("one")
    imported("two", "acme/<b>large</b>")
    done = typed(
        "leaderboard",
        "one",
        "two",
        "--html",
        "b.html",
        "--csv",
        "b.csv",
        "--markdown",
        "b.md",
    )
    assert done.code == 0
    assert "Refused or corrected" in " ".join(Path("b.md").read_text().split())
    assert "Accuracy is over the questions that have an answer" in " ".join(
        done.out.split()
    )
    for word in ("Accuracy", "Hallucinated", "Refused"):
        assert (
            word in done.out
            and word in Path("b.html").read_text()
            and word in Path("b.md").read_text()
        )
    names = Path("b.csv").read_text().splitlines()[0].split(",")
    first = names.index("accuracy")
    group = ("accuracy", "accuracy_low", "accuracy_high", "accuracy_n", "hallucinated")
    assert tuple(names[first : first + 5]) == group
    assert "<b>large" not in Path("b.html").read_text()


def test_the_index_is_made_of_the_runs_alone() -> None:
    imported("one")
    evaluate("factual-closed-book", "oracle/gold", limit=20, name="sim")
    done = typed("runs", "index")
    assert done.code == 0 and "Written: runs/index.json" in done.out
    found = json.loads(Path("runs/index.json").read_text())
    assert [run["folder"] for run in found["runs"]] == ["one", "sim"]
    first, second = found["runs"]
    assert (first["hardware"], first["date"], first["scoring"]) == (
        "a toaster",
        "2026-01-02",
        "published",
    )
    assert first["shares"]["hallucinated"]["value"] == 0.5
    assert second["simulation"] is True and second["limit"] == 20
    assert set(found["by_slice"]["open-factual-bench"]["domain"]) == {
        "math",
        "other",
        "science",
    }
    page = Path("runs/index.md").read_text()
    assert (
        "do not edit" in page
        and "| `one` | `acme/small` | a toaster | 75.0 [30.1, 95.4], n 4 |" in page
    )
    assert "## open-factual-bench by domain" in page and "(SIMULATION)" in page
    before = Path("runs/index.json").read_bytes(), Path("runs/index.md").read_bytes()
    assert typed("runs", "index", "--check").code == 0
    assert "Unchanged: runs/index.json" in typed("runs", "index").out
    assert before == (
        Path("runs/index.json").read_bytes(),
        Path("runs/index.md").read_bytes(),
    )


def test_an_index_that_was_edited_or_is_old_is_told() -> None:
    imported("one")
    assert typed("runs", "index", "--check").code == 1
    typed("runs", "index")
    Path("runs/index.md").write_text("better numbers")
    done = typed("runs", "index", "--check")
    assert (
        done.code == 1 and "runs/index.md" in done.out and "index.json" not in done.out
    )
    assert Path("runs/index.md").read_text() == "better numbers"


def test_damaged_runs_hide_no_others() -> None:
    imported("one")
    Path("runs/broken").mkdir()
    Path("runs/broken/run.json").write_text("{")
    done = typed("runs", "index")
    assert done.code == 0 and "broken" in done.err
    found = json.loads(Path("runs/index.json").read_text())
    assert [run["folder"] for run in found["runs"]] == ["one"]
    assert found["damaged"][0]["folder"] == "broken"
    assert str(Path.cwd()) not in Path("runs/index.json").read_text()
    assert typed("runs", "index", "--out", "nowhere").code == 2
