"""A run whose samples were edited after the run gives no numbers, by whichever command; and the
conclusions of edited questions.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from evalwright.cli import cli
from support.command import write_questions
from support.runs import edited, make_run, rewrite
from support.typed import typed

ECHO = ("run", "questions.yaml", "--model", "scripted/echo", "--name")
LISTING = {
    "runs show",
    "runs samples",
    "runs live",
    "runs rename",
    "export citations",
    "init",
}
"""Commands that make no number of the samples: they show what is recorded, or write commands."""

READERS: dict[str, list[tuple[str, ...]]] = {
    "plan": [("plan", "questions.yaml", "--from", "a")],
    "tasks check": [("tasks", "check", "questions.yaml", "--run", "a")],
    "score": [("score", "a")],
    "runs aggregate": [("runs", "aggregate", "a")],
    "compare": [
        ("compare", "a", "b"),
        ("compare", "b", "a"),
        ("compare", "b", "c", "a"),
        ("compare", "b", "c", "a", "--baseline", "a"),
        ("compare", "b", "a", "--fail-if", "accuracy drops by more than 0.02"),
    ],
    "check calibration": [("check", "calibration", "a")],
    "check drift": [("check", "drift", "a", "b", "c")],
    "check contamination": [
        ("check", "contamination", "a"),
        ("check", "contamination", "b", "--rewrites", "a"),
    ],
    "leaderboard": [
        ("leaderboard", "a", "b"),
        ("leaderboard", "b", "a", "--kept", "kept"),
    ],
    "check judge agreement": [
        ("check", "judge", "agreement", "a", "b", "--scorer", "exact-match")
    ],
    "check judge bias": [
        ("check", "judge", "bias", "a", "b", "--scorer", "exact-match")
    ],
    "check judge calibrate": [
        ("check", "judge", "calibrate", "a", "--labels", "labels.csv")
    ],
    "check judge sample": [
        ("check", "judge", "sample", "a", "--to", "t.csv"),
        ("check", "judge", "sample", "b", "a", "--to", "t.csv"),
    ],
    "entries import": [("entries", "import", "a")],
    "runs plot": [("runs", "plot", "scores", "a", "--into", "p.svg")],
    "view": [("view", "a", "--html", "p.html")],
    "export site": [("export", "site", "a", "--out", "site")],
    "export methods": [("export", "methods", "a", "--into", "methods.txt")],
    "export scores": [("export", "scores", "a", "--out", "exported")],
    "export inspect": [("export", "inspect", "a", "--out", "exported")],
    "export every-eval-ever": [("export", "every-eval-ever", "a", "--out", "exported")],
    "export parquet": [("export", "parquet", "a", "--out", "exported")],
    "runs submit make": [("runs", "submit", "make", "a", "--into", "sent.json")],
    "export sea-helm": [("export", "sea-helm", "a", "--out", "exported")],
    "export lm-eval": [("export", "lm-eval", "a", "--out", "exported")],
    "export model-card": [("export", "model-card", "a")],
    "export hf-results": [("export", "hf-results", "a", "b", "--out", "exported")],
    "export eval-results": [
        (
            "export",
            "eval-results",
            "a",
            "--dataset",
            "x/y",
            "--task-id",
            "t",
            "--out",
            "exported",
        )
    ],
}


def commands(
    command: click.Command, path: tuple[str, ...] = ()
) -> Iterator[tuple[str, click.Command]]:
    """Every command of the command line with its words."""
    if isinstance(command, click.Group):
        context = click.Context(command)
        for name in command.list_commands(context):
            found = command.get_command(context, name)
            assert found is not None
            yield from commands(found, (*path, name))
    else:
        yield " ".join(path), command


def test_every_command_that_takes_a_run_is_here() -> None:
    """A new one is put among the readers, with a line that reads samples, or among those that
    only list.
    """
    taking = {
        name
        for name, command in commands(cli)
        for one in command.params
        if one.name in ("run", "runs", "run2", "run_name", "baseline", "rewrites")
        or getattr(one, "metavar", "") == "RUN"
    }
    assert taking == READERS.keys() | LISTING


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the finished runs `a`, `b` and `c`, a sheet of labels, and a board."""
    made = tmp_path_factory.mktemp("finished")
    write_questions(made, 6)
    (made / "board.yaml").write_text(
        "title: Ours\nsuite: {tasks: [questions.yaml]}\nentries: {providers: [demo]}\n"
        'publish: {readme: README.md, plot: "", site: site, samples: none}\n'
    )
    (made / "entries").mkdir()
    for name in "abc":
        assert typed(*ECHO, name, folder=made).code == 0
    assert typed(
        "check", "judge", "sample", "a", "--to", "labels.csv", folder=made
    ).code in (
        0,
        2,
    )
    return made


@pytest.mark.parametrize(
    "words", [line for lines in READERS.values() for line in lines], ids=" ".join
)
def test_changed_samples_are_refused(
    folder: Path, finished: Path, words: tuple[str, ...]
) -> None:
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    for name in "ab" if "agreement" in words else "":
        with edited(Path("runs", name)) as data:
            # whose verdicts may be a judge's
            data["tasks"][0]["scorers"][0]["kind"] = "another-program"
    samples = Path("runs/a/samples.jsonl")
    samples.write_text(
        samples.read_text().replace('"value":0.0', '"value":1.0'), encoding="utf-8"
    )
    before = {path for path in Path().rglob("*") if path.is_file()}
    done = typed(*words)
    assert done.code == 2, done.text
    assert "samples.jsonl was changed after the run" in done.err
    assert "Restore the file" in done.err
    made = {path for path in Path().rglob("*") if path.is_file()} - before
    assert not {path for path in made if ".evalwright" not in str(path)}


def test_changed_numbers_over_true_samples_are_found(
    folder: Path, finished: Path
) -> None:
    shutil.copytree(finished, folder, dirs_exist_ok=True)
    assert typed("runs", "check", "a", "b").code == 0
    with edited("runs/a") as data:
        data["tasks"][0]["metrics"][0]["value"] = 0.99
    done = typed("runs", "check", "a", "b", "--json")
    assert done.code == 1
    first, second = json.loads(done.out)["runs"]
    assert "is 0.99 in run.json, 0 from the samples" in first["problems"][0]
    assert second["problems"] == []


def test_other_questions_under_the_same_ids_win_nothing(folder: Path) -> None:
    """The same ids with other questions were once concluded to be 66.7 points higher, p <
    0.0001.
    """
    a = make_run(folder / "runs", scores=[1.0, 0, 0] * 30, name="a", model="demo/a")
    b = make_run(folder / "runs", scores=[1.0] * 90, name="b", model="demo/b")

    def change(row: dict[str, object], place: int) -> None:
        row["input"] = f"An easy question {place}?"

    rewrite(b, change)
    data = json.loads(typed("compare", "a", "b", "--json").out)
    assert data["tasks"][0]["paired"] is None
    assert "the runs asked different questions under the same ids" in data["conclusion"]
    assert "unpaired" in data["conclusion"]
    assert "different questions" in typed("compare", "a", "b").out.replace("\n", " ")
    assert a.folder.is_dir()
