"""What a published `run.json` says of a private test set: nothing of its rows, and all that
boards need.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from support.runs import edited, make_run
from support.typed import typed

pytestmark = pytest.mark.usefixtures("own_folder")

TASK = """
task: secret
dataset:
  rows:
  - {question: "Which canaryquestion is it?", answer: canaryanswer}
  - {question: "Which canaryquestion is next?", answer: canaryanswer}
sample: {input: "{{ question }}", target: "{{ answer }}", metadata: {note: canarynote}}
prompt:
  system: Answer in a word.
  user: "{{ input }}"
  few_shot:
    count: 1
    dataset: {rows: [{question: canaryshot, answer: canaryshotanswer}]}
scorers:
- {exact-match: {}}
metrics: [accuracy]
metadata: {licence: MIT, remark: canaryremark}
"""


def published_text(name: str) -> str:
    done = typed("export", "scores", name)
    assert done.code == 0, done.text
    return "\n".join(
        path.read_text() for path in sorted(Path("published", name).iterdir())
    )


def test_rows_and_examples_of_a_definition_are_not_published() -> None:
    Path("secret.yaml").write_text(TASK)
    for name, model in (("a", "scripted/constant"), ("b", "scripted/echo")):
        done = typed("run", "secret.yaml", "--model", model, "--name", name)
        assert done.code == 0, done.text
        assert "canary" in Path("runs", name, "run.json").read_text()
        assert "canary" not in published_text(name)
    definition = json.loads(Path("published/a/run.json").read_text())["tasks"][0][
        "definition"
    ]
    assert (
        definition["dataset"]["rows"].startswith("sha256:")
        and definition["dataset"]["samples"] == 2
    )
    assert definition["prompt"]["system"] == "Answer in a word."
    assert definition["prompt"]["few_shot"]["count"] == 1
    assert definition["metadata"]["licence"] == "MIT"
    board = typed("leaderboard", "published/a", "published/b", "--json")
    assert board.code == 0, board.text
    whole = json.loads(typed("leaderboard", "a", "b", "--json").out)
    rows = json.loads(board.out)["rows"]
    assert [row["tasks"] for row in rows] == [row["tasks"] for row in whole["rows"]]
    assert typed("compare", "published/a", "published/b").code == 0
    # One run with its samples and one without were given the same.
    mixed = typed("leaderboard", "a", "published/b")
    assert mixed.code == 0 and "Settings differ between the runs" not in " ".join(
        mixed.text.split()
    ), mixed.text
    compared = json.loads(typed("compare", "a", "published/b", "--json").out)
    assert not [line for line in compared["differences"] if line.startswith("secret")]


def test_what_an_importer_found_to_differ_is_not_published() -> None:
    make_run(Path("runs"), scores=[1.0, 0.0, 1.0], name="imported")
    differences = [
        {"task_id": "t1", "response": "canaryreply", "reference": "canaryreference"}
    ]
    with edited(Path("runs/imported")) as data:
        data["configuration"]["imported"] = {
            "format": "open-factual-bench",
            "counts": {"recorded": {"correct": 2, "graded": 3}},
            "differences": differences,
            "notes": ["'canarynote' was left out"],
            "later": "canarylater",
        }
        data["tasks"][0]["definition"]["examples_of_errors"] = [{"text": "canaryerror"}]
    text = published_text("imported")
    assert "canary" not in text
    imported = json.loads(Path("published/imported/run.json").read_text())[
        "configuration"
    ]["imported"]
    assert (
        imported["format"] == "open-factual-bench"
        and imported["counts"]["recorded"]["correct"] == 2
    )
    assert imported["differences"].startswith("sha256:")
    assert typed("leaderboard", "published/imported").code == 0


@pytest.mark.parametrize("place", ["overrides", "models", "options", "variables"])
def test_a_text_in_any_part_that_is_not_named_is_hidden(place: str) -> None:
    make_run(Path("runs"), scores=[1.0, 0.0, 1.0], name="mine")
    rows = [{"question": "canary", "answer": "canary"}]
    with edited(Path("runs/mine")) as data:
        if place == "overrides":
            data["configuration"]["overrides"] = {
                "dataset.rows": rows,
                "dataset": {"rows": rows},
            }
        elif place == "models":
            data["configuration"]["models"] = [
                {"model": "scripted/map", "arguments": {"answers": rows}}
            ]
            data["model"]["arguments"] = {"answers": rows, "temperature": 0.5}
        elif place == "options":
            data["tasks"][0]["scorers"] = [
                {"name": "score", "kind": "exact", "options": {"accepted": ["canary"]}}
            ]
        else:
            data["tasks"][0]["definition"]["variables"] = {"question": "canary"}
    assert "canary" not in published_text("mine")
    assert typed("leaderboard", "published/mine").code == 0


def test_publishing_twice_writes_the_same() -> None:
    make_run(Path("runs"), scores=[1.0, 0.0], name="mine")
    assert published_text("mine") == published_text("mine")
