"""Where the samples of a board's runs are, and files of them for a release or the hub."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

from evalwright.core.errors import RunError
from evalwright.core.private import home_folder, private_folder
from evalwright.entries.board_file import BoardFile
from evalwright.runs.reader import Run
from evalwright.tasks.safe_files import failing_as, replacing

BUCKET = "s3://"
RUNS_FOLDER = "runs"
SAMPLES_FOLDER = "samples"
ONLY_IN_RELEASES = ("release", "hub:")
"""Places for samples that a workflow's step uploads to, so that files are prepared for it."""


def what_a_new_judge_finds(board: BoardFile) -> str:
    """Say that a new judge may find no answers to score; "" where it does, or there is no judge."""
    destination = board.publish.samples
    if not board.suite.roles or destination.startswith(BUCKET):
        return ""
    other_places = (
        "nowhere else" if destination == "none" else "from there they are not read back"
    )
    return (
        f"Note: answers are kept in .evalwright/runs, and {other_places} (publish: samples:"
        f" {destination}). Once that folder is lost, and the workflows have it in a cache that"
        " GitHub empties after a week without a run, a new judge has nothing to score, and"
        " all requests must be sent again. With samples: s3://bucket/folder they are kept."
    )


def uploads_folder(
    board: BoardFile, home: str | None, samples_into: Path | None
) -> Path | None:
    """Return the folder of files of samples for an upload; None where the board has none.

    Args:
        board: says where samples go.
        home: the folder of the store.
        samples_into: the folder that was named in its place.
    """
    if samples_into is None and board.publish.samples.startswith(ONLY_IN_RELEASES):
        return home_folder(home) / SAMPLES_FOLDER
    return samples_into


def compress_samples(run: Run, folder: Path, name: str) -> Path:
    """Write a run's samples as `NAME.jsonl.gz`: the same samples give the same bytes.

    Raises:
        RunError: they cannot be read or written.
    """
    file = folder / f"{name}.jsonl.gz"
    samples = run.samples_file
    with failing_as(RunError, f"'{file}' cannot be written"):
        private_folder(folder)
        with (
            replacing(file) as partial,
            samples.open("rb") as source,
            partial.open("wb") as raw,
            gzip.GzipFile(filename="", mode="wb", fileobj=raw, mtime=0) as target,
        ):
            shutil.copyfileobj(source, target)
    return file
