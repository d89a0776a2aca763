"""`evalwright lift`: two tasks of one run, question by question."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from evalwright.cli.lift import lift
from evalwright.core.errors import RunError
from support.runs import make_run

SCORES: dict[str, list[float | None]] = {"open": [1, 1, 1, 0, 1, 1], "closed": [0, 0, 1, 0, 0, None]}
ARGUMENTS = ["--with", "open", "--without", "closed", "--scorer", "score", "--by", "domain"]


def test_it_says_what_passages_add(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=SCORES, domains=["a", "b"], name="both")
    done = CliRunner().invoke(lift, ["both", "--out", str(tmp_path), *ARGUMENTS])
    assert done.exit_code == 0, done.output
    assert "all: with 80.0, without 20.0, difference +60.0" in done.output
    assert "domain: a" in done.output and "domain: b" in done.output
    assert "the model without them" in done.output
    found = json.loads(CliRunner().invoke(lift, [str(run.folder), *ARGUMENTS, "--json"]).output)
    assert found["parts"][0]["difference"] == pytest.approx(0.6)
    assert found["parts"][0]["n_missing"] == 1
    assert [part["n"] for part in found["parts"][1:]] == [2, 3]


def test_a_run_without_the_twin_is_told_how_to_get_it(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=SCORES, name="both")
    done = CliRunner().invoke(lift, [str(run.folder)])
    assert isinstance(done.exception, RunError)
    assert "factual-grounded" in str(done.exception)
