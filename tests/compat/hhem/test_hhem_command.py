"""`evalwright import hhem` and what other commands make of its runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from compat.hhem.hhem_trees import PLACEHOLDERS, Line, Model, lines_of
from support.typed import typed


def test_import_show_compare_and_board() -> None:
    same = [Line(3, "", 0.9, "u"), Line(4, "", 0.9, "u")]
    Model("acme/one").write(Path("output"), [*lines_of([0.9, 0.1]), *same])
    Model("acme/two", more={"model_key": "s3cret"}).write(
        Path("output"), lines_of([0.9, 0.9, 0.1, 0.9])
    )
    done = typed("import", "hhem", "output")
    assert (done.code, done.err) == (0, "")
    first, second, third = done.out.splitlines()
    where = Path("runs/acme-one--2026-01-02")
    assert first.startswith(
        f"Imported: {where} (acme/one: 4 rows): hallucination rate 50.0, answer rate 50.0"
    )
    assert (
        second == "  Differs from what was published: answer rate 50.0 (published 33.3)"
    )
    assert "(acme/two: 4 rows): hallucination rate 25.0" in third
    shown = typed("runs", "show", "acme-one--2026-01-02", "--verify")
    assert shown.code == 0 and "hallucination-rate" in shown.out
    compared = typed(
        "compare", "acme-one--2026-01-02", "acme-two--2026-01-02", "--json"
    )
    assert (compared.code, compared.err) == (0, "")
    assert json.loads(compared.out)["tasks"][0]["paired"]["n"] == 2
    board = json.loads(
        typed(
            "leaderboard", "acme-one--2026-01-02", "acme-two--2026-01-02", "--json"
        ).out
    )
    assert [row["run"] for row in board["rows"]] == [
        "acme-two--2026-01-02",
        "acme-one--2026-01-02",
    ]
    assert board["tasks"][0]["lower_is_better"] is True
    assert (
        typed(
            "leaderboard",
            "acme-one--2026-01-02",
            "acme-two--2026-01-02",
            "--html",
            "b.html",
        ).code
        == 0
    )
    assert typed("export", "lm-eval", "acme-one--2026-01-02").code == 0
    assert all(
        "s3cret" not in path.read_text(errors="ignore")
        for path in Path("runs").rglob("*.json*")
    )


def test_published_and_json() -> None:
    Model().write(
        Path("output"), [Line(1, "", 0.9, "u"), Line(2, "", 0.9, "u"), *lines_of([0.9])]
    )
    Path("output/acme/never").mkdir()
    Path("output/acme/never/judgments.jsonl").touch()
    done = typed("import", "hhem", "output", "--scoring", "published")
    assert (
        "(acme/one: 3 rows, as published): hallucination rate 0.0, answer rate 20.0"
        in done.out
    )
    assert "never" in done.err and done.code == 0
    found = json.loads(
        typed("import", "hhem", "output", "--name", "mine", "--json").out
    )
    (run,) = found["runs"]
    assert (run["id"], run["scoring"], run["model"]) == (
        "mine",
        "corrected",
        "acme/one",
    )
    assert run["metrics"]["answer-rate"]["value"] == pytest.approx(1 / 3)
    assert len(found["left_out"]) == 1


def test_an_imported_failure_is_no_request_to_ask_again() -> None:
    Model().write(
        Path("output"), [*lines_of([0.9, 0.1]), Line(3, PLACEHOLDERS[0], 0.9)]
    )
    assert "1 failed or lost" in typed("import", "hhem", "output", "--name", "mine").out
    shown = typed("runs", "show", "mine").out
    assert "request failed" in shown and "Run the same command again" not in shown
