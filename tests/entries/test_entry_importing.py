"""`entries import`: runs that are there already become results of a board, and live on as such."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.runs import make_run
from support.typed import typed

BOARD = """
title: Ours
suite: {tasks: [summary-faithfulness], limit: 4, roles: {judge: baseline/lexical}}
board: {preset: hhem}
entries: {providers: [openai, demo]}
publish: {readme: README.md, plot: "", site: site, samples: none}
"""
RUN = ("run", "summary-faithfulness", "--limit", "4", "--quiet")
JUDGE = ("--role", "judge=baseline/lexical")


@pytest.fixture(autouse=True)
def _board(own_folder: Path) -> None:
    (own_folder / "board.yaml").write_text(BOARD)
    (own_folder / "entries").mkdir()


def results(own_folder: Path) -> list[str]:
    return sorted(
        str(file.parent.parent.relative_to(own_folder / "results"))
        for file in (own_folder / "results").rglob("run.json")
    )


def published(own_folder: Path) -> list[dict[str, object]]:
    done = typed("entries", "publish")
    assert done.code == 0, done.err
    models: list[dict[str, object]] = json.loads(
        (own_folder / "site/board.json").read_text()
    )["models"]
    return models


def test_runs_become_results_once_and_are_judged_again(own_folder: Path) -> None:
    assert typed(*RUN, "--model", "scripted/lead", *JUDGE, "--name", "lead").code == 0
    done = typed("entries", "import", "lead")
    assert done.code == 0, done.err
    assert results(own_folder) == ["scripted-lead"]
    assert "No entry of scripted-lead: shown, and never run again." in done.out
    again = typed("entries", "import", "lead")
    assert again.code == 0 and "Already results: 1 run." in again.out
    assert results(own_folder) == ["scripted-lead"]
    assert [model["label"] for model in published(own_folder)] == ["scripted/lead"]

    hashing = ("scripted/hash",)
    done = typed("entries", "rejudge", "--judge", *hashing, "--runs", "runs")
    assert done.code == 0, done.err
    assert results(own_folder) == ["scripted-lead"] * 2
    (model,) = published(own_folder)
    history = model["history"]
    assert isinstance(history, list)
    assert [dated["judge"] for dated in history] == ["scripted/hash"]


def test_a_run_belongs_to_the_entry_of_its_model_or_to_a_named_one(
    own_folder: Path,
) -> None:
    (own_folder / "entries/mine.yaml").write_text("model: demo/small\n")
    command = (*RUN, "--model", "demo/small", *JUDGE, "--name")
    assert typed(*command, "first").code == 0
    done = typed("entries", "import", "first")
    assert done.code == 0 and "No entry of" not in done.out
    assert results(own_folder) == ["mine"]
    make_run(
        own_folder / "runs",
        name="second",
        model="x/y",
        scores={"summary-faithfulness": [1, 0]},
    )
    assert typed("entries", "import", "second", "--entry", "other").code == 0
    assert results(own_folder) == ["mine", "other"]
    done = typed("entries", "import", "second", "--entry", "../up")
    assert done.code == 2 and "cannot be an entry's" in done.err


def test_names_are_made_of_labels_and_never_shared(own_folder: Path) -> None:
    for name, label in (("a", "Model (a)"), ("b", "model [A]"), ("c", "모델")):
        scores = {"summary-faithfulness": [1, 0, 1, len(name)]}
        make_run(own_folder / "runs", name=name, label=label, scores=scores, text=name)
    assert typed("entries", "import", "a", "b", "c").code == 0
    first, second, third = results(own_folder)
    assert first == "model-a"
    assert {second[:6], third[:6]} == {"model-"} and second != third


def test_what_cannot_be_on_the_board_is_refused(own_folder: Path) -> None:
    make_run(own_folder / "runs", name="a", scores={"summary-faithfulness": [1, 0]})
    make_run(own_folder / "runs", name="b", scores={"arithmetic": [1, 0]})
    done = typed("entries", "import", "a", "b")
    assert done.code == 2 and "'b' has 'arithmetic'" in done.err
    assert results(own_folder) == []
    done = typed("entries", "import", "nothing")
    assert done.code == 2 and "nothing" in done.err


def test_a_record_does_not_choose_where_its_result_is_written(own_folder: Path) -> None:
    make_run(own_folder / "runs", name="a", scores={"summary-faithfulness": [1, 0]})
    file = own_folder / "runs/a/run.json"
    record = json.loads(file.read_text())
    file.write_text(json.dumps({**record, "identity": "/../../x"}))
    assert typed("entries", "import", "a", "--entry", "mine").code == 0
    assert results(own_folder) == ["mine"]
    assert [place.name for place in (own_folder / "results").iterdir()] == ["mine"]
