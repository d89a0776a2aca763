"""An address such as s3://bucket in place of a path: an error before anything is sent or
written, wherever a path may stand.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from evalwright import ScriptedModel, evaluate
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.runs.writer import RunWriter
from evalwright.tasks.safe_files import check_file, write_file
from support.typed import typed

RUN = ["run", "factual-choice", "--model", "demo/small", "--limit", "2", "--quiet"]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("addresses")
    done = typed(*RUN, "--name", "there", folder=folder)
    assert done.code == 0, done.text
    (folder / "suite.yaml").write_text(
        "tasks: [factual-choice]\nmodels: [demo/small]\nout: s3://b/runs\n"
    )
    (folder / "rows.yaml").write_text(
        'task: q\ndataset: {path: "s3://b/q.jsonl"}\nscorers: [exact-match]\n'
    )
    return folder


def files_of(folder: Path) -> list[Path]:
    """What is there, but for the index of tasks, which reading makes."""
    return sorted(path for path in folder.rglob("*") if path.name != "tasks.json")


@pytest.mark.parametrize(
    "arguments",
    [
        [*RUN, "--out", "s3://b/runs"],
        [*RUN, "--home", "gs://b/home"],
        [*RUN, "--log-file", "s3://b/log"],
        [*RUN, "--plugin", "https://b/plugin.py"],
        [*RUN, "--task-root", "hdfs:///tasks"],
        [*RUN, "-T", "dataset.path=gs://b/rows.csv"],
        ["run", "--config", "suite.yaml"],
        ["run", "--config", "s3://b/suite.yaml"],
        ["run", "rows.yaml", "--model", "demo/small"],
        ["run", "s3://b/task.yaml", "--model", "demo/small"],
        ["plan", "factual-choice", "--model", "demo/small", "--out", "s3://b/runs"],
        ["jobs", "slurm", "--into", "s3://b/job", "--", *RUN, "--name", "x"],
        ["leaderboard", "there", "--html", "s3://b/board.html"],
        ["leaderboard", "there", "--pages", "s3://b/pages"],
        ["runs", "plot", "scores", "there", "--into", "s3://b/plot.svg"],
        ["view", "there", "--html", "s3://b/page.html"],
        ["export", "site", "there", "--out", "s3://b/site"],
        ["export", "parquet", "there", "--out", "s3://b/rows"],
        ["runs", "submit", "make", "there", "--into", "s3://b/results.json"],
        ["runs", "list", "--out", "gs://b/runs"],
        ["runs", "pull", "s3://bucket/run", "--out", "s3://bucket/runs"],
        ["store", "export", "gs://b/store.jsonl.gz"],
        ["store", "import", "gs://b/store.jsonl.gz"],
        ["store", "info", "--home", "s3://b/home"],
    ],
    ids=lambda arguments: " ".join(arguments[:2] + arguments[-1:]),
)
def test_of_the_command_line(arguments: list[str], folder: Path) -> None:
    before = files_of(folder)
    done = typed(*arguments, folder=folder)
    assert done.code == 2, done.text
    assert "is not a local path: " in done.err
    assert "://" in done.err
    assert files_of(folder) == before


def test_of_the_environment(folder: Path) -> None:
    done = typed(
        *RUN, "--name", "x", folder=folder, extra={"EVALWRIGHT_HOME": "s3://b/home"}
    )
    assert done.code == 2
    assert "EVALWRIGHT_HOME: 's3://b/home' is not a local path" in done.err
    done = typed(
        *RUN, "--name", "x", folder=folder, extra={"EVALWRIGHT_STORE": "s3://b/home"}
    )
    assert done.code == 2
    assert "EVALWRIGHT_STORE" in done.err
    assert (
        sorted(path.name for path in folder.iterdir() if path.name.endswith(":")) == []
    )


@pytest.mark.parametrize("setting", ["out", "home"])
def test_of_python(setting: str, own_folder: Path) -> None:
    model = ScriptedModel("A", name="one")
    for address in ("s3://b/x", Path("s3://b/x")):
        settings: dict[str, Any] = {"limit": 2, setting: address}
        with pytest.raises(ConfigurationError, match="is not a local path"):
            evaluate("factual-choice", model, **settings)
    assert model.asked == 0
    assert not list(own_folder.iterdir())


def test_no_writer_makes_a_folder_of_an_address(own_folder: Path) -> None:
    for write in (write_file, lambda path, _: check_file(path)):
        with pytest.raises(ConfigurationError, match="s3:// is not supported"):
            write(Path("s3://b/page.html"), "text")
    with pytest.raises(RunError, match="s3:// is not supported"):
        RunWriter(Path("s3://b/run"))
    assert not list(own_folder.iterdir())
