"""Run folders of others: what is missing, contradicts itself or never ends is an error that says
so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from evalwright.runs.reader import open_run
from support.command import write_questions
from support.runs import edited, rewrite, rewritten
from support.typed import typed


def make(folder: Path) -> Path:
    """A run of two questions, beside another one."""
    write_questions(folder, 2)
    for name in ("ours", "theirs"):
        done = typed(
            "run", "questions.yaml", "--model", "scripted/echo", "--name", name
        )
        assert done.code == 0, done.text
    return Path("runs/theirs")


def scored(value: float) -> Callable[[Path], None]:
    def change(run: Path) -> None:
        lines = [
            json.loads(line)
            for line in (run / "samples.jsonl").read_text().splitlines()
        ]
        for line in lines:
            line["scores"] = {name: {"value": value} for name in line["scores"]}
        (run / "samples.jsonl").write_text(
            "".join(json.dumps(line) + "\n" for line in lines)
        )

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


IMPOSSIBLE_FIGURES: dict[str, tuple[object, str]] = {
    "id": ("../../..", "which leads to another folder"),
    "id ": ("a\x1b[2Jb", "which has control characters"),
    "id  ": ("..", "which names no folder"),
    "started": ("99999-99-99", "which cannot be a date and time"),
    "seconds": (-1.5, "which is below 0"),
    "tasks.0.n_samples": (-5, "which is below 0"),
    "tasks.0.n_samples ": (1.5, "which is no whole number"),
    "tasks.0.n_missing": (3, "of 2 samples"),
    "tasks.0.n_unsure": (3, "of 2 samples"),
    "tasks.0.draws": (0, "which is below 1"),
    "tasks.0.name": ("a\x00b", "which has control characters"),
    "tasks.0.outcomes": ({"answered": -1}, "which is below 0"),
    "tasks.0.metrics.0.value": (
        1.5,
        "which is outside the range of 'accuracy', 0 to 1",
    ),
    "tasks.0.metrics.0.n": (-2, "which is below 0"),
    "tasks.0.metrics.0.n_missing": (float("inf"), "which is not finite"),
    "tasks.0.metrics.0.level": (1, "which is not between 0 and 1"),
    "usage.answers": ({"cost": -5.0}, "which is below 0"),
    "usage.answers ": ({"cost": float("inf")}, "which is not finite"),
    "usage.usage": ({"input_tokens": -1}, "which is below 0"),
    "usage.requested": (-1, "which is below 0"),
    "configuration.limit": ("ten", "which is no limit"),
    "configuration.limit ": (-1, "which is below 0"),
    "stopping": (
        {"tasks": [{"task": "questions", "asked": 3, "of": 2}], "decisions": []},
        "of 2 answers",
    ),
    "samples.records": (-2, "which is below 0"),
    "samples.sha256": ("0", "which is no SHA-256"),
}
"""By field (spaces tell several of one apart): what cannot be there, and what is said of it."""


def put(data: dict[str, Any], field: str, figure: object) -> None:
    """Set a field of a record by its dotted name."""
    *steps, last = field.strip().split(".")
    part: Any = data
    for step in steps:
        part = part[int(step)] if isinstance(part, list) else part[step]
    part[last] = figure


@pytest.mark.parametrize("field", [*IMPOSSIBLE_FIGURES])
def test_impossible_figures_are_said_with_file_and_field(
    own_folder: Path, field: str
) -> None:
    figure, reason = IMPOSSIBLE_FIGURES[field]
    run = make(own_folder)
    with edited(run) as data:
        put(data, field, figure)
    file = run / "run.json"
    file.write_text(file.read_text().replace("Infinity", "1e999"))
    for words in (
        ("leaderboard", "ours", "theirs"),
        ("compare", "ours", "theirs"),
        ("runs", "show", "theirs"),
        ("runs", "submit", "make", "theirs", "--into", "sent.json"),
        ("export", "every-eval-ever", "theirs"),
    ):
        done = typed(*words)
        assert done.code == 2, (words, done.text)
        assert "runs/theirs/run.json has a figure that cannot be" in done.err
        assert f"'{field.strip()}" in done.err and reason in done.err, done.err
    checked = typed("runs", "check", "theirs")
    assert checked.code == 1 and field.strip() in checked.text.replace("\n", ""), (
        checked.text
    )
    listed = typed("runs", "list")
    assert listed.code == 0 and "runs/theirs cannot be read" in listed.err
    assert "\x1b[2J" not in listed.text


@pytest.mark.parametrize(
    ("part", "figure", "field"),
    [
        (
            "responses",
            [{"text": "a", "usage": {"output_tokens": -3}}],
            "responses.0.usage.output_tokens",
        ),
        ("responses", [{"text": "a", "cost": -0.5}], "responses.0.cost"),
        ("responses", [{"text": "a", "cost": float("inf")}], "responses.0.cost"),
        ("timing", {"latency": [-1.0]}, "timing.latency.0"),
        ("index", -1, "index"),
        ("draw", -1, "draw"),
    ],
)
def test_impossible_figures_of_samples_are_said_with_line_and_field(
    own_folder: Path, part: str, figure: object, field: str
) -> None:
    run = make(own_folder)
    rewrite(
        open_run(run),
        lambda row, place: row.update({part: figure}) if place == 1 else None,
    )
    samples = (run / "samples.jsonl").read_text().replace("Infinity", "1e999")
    rewritten(open_run(run), samples)
    for words in (
        ("leaderboard", "ours", "theirs"),
        ("compare", "ours", "theirs"),
        ("score", "theirs"),
    ):
        done = typed(*words)
        assert done.code == 2, (words, done.text)
        assert (
            f"samples.jsonl, line 2 has a figure that cannot be: '{field}'" in done.err
        ), done.err
    checked = typed("runs", "check", "theirs")
    assert checked.code == 1 and "line 2 has a figure" in " ".join(checked.text.split())


def test_a_store_that_is_a_pipe_is_refused(own_folder: Path) -> None:
    write_questions(own_folder, 1)
    Path("home").mkdir()
    os.mkfifo("home/store.sqlite")
    done = typed("run", "questions.yaml", "--model", "scripted/echo", "--home", "home")
    assert done.code == 2 and "no ordinary file" in done.err, done.text


@pytest.mark.parametrize(
    "path, value",
    [
        ("alias", None),
        ("groups", 7),
        ("config", [1]),
        ("groups.0.averages", None),
        ("", None),
    ],
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
    done = typed(
        "run",
        "lm-eval:all",
        "--task-root",
        ".",
        "--model",
        "scripted/echo",
        "--name",
        "theirs",
    )
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
