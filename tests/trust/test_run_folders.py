"""Run folders of others: what is missing, contradicts itself or never ends is an error that says so."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from support.command import write_questions
from support.typed import typed


def make(folder: Path) -> Path:
    """A run of two questions, beside another one."""
    write_questions(folder, 2)
    for name in ("ours", "theirs"):
        done = typed("run", "questions.yaml", "--model", "scripted/echo", "--name", name)
        assert done.code == 0, done.text
    return Path("runs/theirs")


def scored(value: float) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        lines = [json.loads(line) for line in (run / "samples.jsonl").read_text().splitlines()]
        for line in lines:
            line["scores"] = {name: {"value": value} for name in line["scores"]}
        (run / "samples.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))

        data = json.loads((run / "run.json").read_text())
        data["samples"].pop("sha256")
        (run / "run.json").write_text(json.dumps(data))

    return change


def cut(run: Path) -> None:
    lines = (run / "samples.jsonl").read_text().splitlines(keepends=True)
    (run / "samples.jsonl").write_text(lines[0])


def pipe(name: str) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        (run / name).unlink()
        os.mkfifo(run / name)

    return change


def device(run: Path) -> None:
    (run / "samples.jsonl").unlink()
    (run / "samples.jsonl").symlink_to("/dev/zero")


@pytest.mark.parametrize(
    "change, said",
    [
        (scored(2.0), "outside of 0 to 1"),
        (scored(1e308), "outside of 0 to 1"),
        (cut, "was changed after the run"),
        (pipe("samples.jsonl"), "no ordinary file"),
        (pipe("run.json"), "not a finished run"),
        (device, "no ordinary file"),
    ],
)
@pytest.mark.parametrize("command", ["compare", "leaderboard"])
def test_what_cannot_be_counted_is_an_error(
    own_folder: Path, command: str, change: Callable[[Path], None], said: str
) -> None:
    change(make(own_folder))
    done = typed(command, "runs/ours", "runs/theirs")
    assert done.code == 2 and said in done.err, done.text
    assert typed("runs", "list").code == 0


def test_a_cost_below_nothing_is_not_known(own_folder: Path) -> None:
    run = make(own_folder) / "run.json"
    data = json.loads(run.read_text())
    data["usage"]["answers"] = {"cost": -5.0}
    run.write_text(json.dumps(data))
    done = typed("leaderboard", "runs/ours", "runs/theirs")
    assert done.code == 0 and "-5.00" not in done.text, done.text


def test_a_store_that_is_a_pipe_is_refused(own_folder: Path) -> None:
    write_questions(own_folder, 1)
    Path("home").mkdir()
    os.mkfifo("home/store.sqlite")
    done = typed("run", "questions.yaml", "--model", "scripted/echo", "--home", "home")
    assert done.code == 2 and "no ordinary file" in done.err, done.text


@pytest.mark.parametrize(
    "path, value",
    [("alias", None), ("groups", 7), ("config", [1]), ("groups.0.averages", None), ("", None)],
)
@pytest.mark.parametrize("command", ["score", "aggregate"])
def test_a_broken_definition_of_another_frameworks_task_is_an_error(
    own_folder: Path, command: str, path: str, value: object
) -> None:
    write_questions(own_folder, 1)
    (own_folder / "sums.yaml").write_text(
        "task: sums\ndataset_path: json\ndataset_kwargs: {data_files: {test: questions.jsonl}}\ntest_split: test\n"
        'doc_to_text: "{{question}}"\ndoc_to_target: "{{answer}}"\noutput_type: generate_until\n'
        "metric_list: [{metric: exact_match}]\n"
    )
    (own_folder / "all.yaml").write_text(
        "group: all\ntask: [sums]\naggregate_metric_list: [{metric: exact_match}]\n"
    )
    done = typed("run", "lm-eval:all", "--task-root", ".", "--model", "scripted/echo", "--name", "theirs")
    assert done.code == 0, done.text
    run = own_folder / "runs" / "theirs" / "run.json"
    data = json.loads(run.read_text())
    *steps, last = ["definition", *filter(None, path.split("."))]
    at = data["tasks"][0]
    for step in steps:
        at = at[int(step) if step.isdecimal() else step]
    if value is None:
        del at[last]
    else:
        at[last] = value
    run.write_text(json.dumps(data))
    done = typed(command, "theirs", "--name", "again")
    assert "bug" not in done.err, done.text
    if (command, path) != ("aggregate", "config"):
        assert done.code == 2 and "is broken" in done.err, done.text
