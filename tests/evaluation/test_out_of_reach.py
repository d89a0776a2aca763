"""A task whose data cannot be fetched fails alone beside others, with the models that it would
use; by itself it is an error.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evalwright import evaluate
from evalwright.cli import main
from evalwright.core.errors import DatasetError, OutOfReach, UsageError
from evalwright.models.scripted import ScriptedModel

HERE = """\
task: here
dataset: {rows: [{id: 1, input: Capital of France?, target: Paris}, {id: 2, input: Of Peru?, target: Lima}]}
scorers: [exact-match]
"""
FAR = """\
task: far
dataset: {hub: owner/no-such-data, revision: 0123456789012345678901234567890123456789, split: test}
sample: {id: "{{ id }}", input: "{{ q }}", target: "{{ a }}"}
scorers: [judge-correct]
"""
SEVERAL = """\
for_each: {language: [xx, yy]}
task: "many-{{ language }}"
dataset: {hub: owner/no-such-data, config: "{{ language }}", revision: first-fetch, split: test}
sample: {id: "{{ id }}", input: "{{ q }}", target: "{{ a }}"}
scorers: [exact-match]
"""
RUN = ("run", "--model", "scripted/constant", "-M", "text=Paris", "--quiet")


@pytest.fixture
def files(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    for name, text in (("here", HERE), ("far", FAR), ("many", SEVERAL)):
        (own_folder / f"{name}.yaml").write_text(text)
    return own_folder


def tasks_of(folder: Path, name: str) -> dict[str, Any]:
    data = json.loads((folder / "runs" / name / "run.json").read_text())
    return {task["name"]: task for task in data["tasks"]}


def test_the_others_are_run_and_the_exit_code_says_so(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = ["--role", "judge=scripted/constant", "-R", "judge.text=x"]
    assert main([*RUN, "here.yaml", "far.yaml", "--name", "r", *judge]) == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "1 answer is missing: no data" in said
    tasks = tasks_of(files, "r")
    assert tasks["here"]["metrics"][0]["value"] == 0.5
    assert (tasks["far"]["n_samples"], tasks["far"]["failures"]) == (1, {"no data": 1})
    assert tasks["far"]["metrics"][0]["value"] is None
    line = (files / "runs" / "r" / "samples.jsonl").read_text().splitlines()[-1]
    assert "owner/no-such-data" in json.loads(line)["failure"]["message"]


def test_its_models_are_asked_for_as_if_the_data_were_there(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "here.yaml", "far.yaml"]) == 2
    assert "uses a model in the role 'judge'" in " ".join(
        capsys.readouterr().err.split()
    )
    assert main([*RUN, "here.yaml", "--role", "judge=scripted/constant"]) == 2


def test_by_itself_it_is_an_error_and_so_is_a_broken_file_of_several(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    judge = ["--role", "judge=scripted/constant", "-R", "judge.text=x"]
    assert main([*RUN, "far.yaml", *judge]) == 2
    assert "owner/no-such-data" in capsys.readouterr().err
    (files / "broken.yaml").write_text(
        "task: broken\ndataset: nowhere.jsonl\nscorers: [exact-match]\n"
    )
    assert main([*RUN, "here.yaml", "broken.yaml"]) == 2
    with pytest.raises(OutOfReach):
        evaluate(
            str(files / "far.yaml"),
            ScriptedModel("x"),
            roles={"judge": ScriptedModel("y", name="scripted/j")},
        )
    assert issubclass(OutOfReach, DatasetError) and issubclass(OutOfReach, UsageError)


def test_members_of_one_file_fail_one_by_one_but_not_all_of_them(
    files: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*RUN, "here.yaml", "many.yaml", "--name", "m"]) == 1
    tasks = tasks_of(files, "m")
    assert [tasks[name]["failures"] for name in ("many-xx", "many-yy")] == [
        {"no data": 1}
    ] * 2
    capsys.readouterr()
    assert main([*RUN, "many.yaml"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert "owner/no-such-data" in said
    assert said.endswith("So it is with all 2 tasks.")


def test_once_the_data_are_there_the_same_command_asks_only_for_them(
    files: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    far = FAR.replace("judge-correct", "exact-match")
    (files / "far.yaml").write_text(far)
    assert main([*RUN, "here.yaml", "far.yaml"]) == 1
    kept = files / "data.jsonl"
    kept.write_text('{"id": 1, "q": "Of Italy?", "a": "Rome"}\n')
    monkeypatch.setattr(
        "evalwright.tasks.datasets.opening.copy_of_hub", lambda *_: kept
    )
    assert main([*RUN, "here.yaml", "far.yaml"]) == 0
    runs = [
        json.loads(path.read_text()) for path in (files / "runs").glob("*/run.json")
    ]
    (whole,) = (
        run for run in runs if not any(task["failures"] for task in run["tasks"])
    )
    assert [task["n_samples"] for task in whole["tasks"]] == [2, 1]
