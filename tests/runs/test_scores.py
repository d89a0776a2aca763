"""Scores by item: read from records or from the arrays beside them, which never outlive the records they were made from."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest

from evalwright.runs import scores as module
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run
from evalwright.runs.scores import KEPT_FILE, ItemScores, item_scores, keep_scores
from support.runs import make_run


def scored(run: Run, task: str = "x") -> ItemScores:
    return item_scores(run, {task: "score"})[task]


def same(a: ItemScores, b: ItemScores) -> bool:
    return (
        np.array_equal(a.keys, b.keys)
        and np.array_equal(a.values, b.values, equal_nan=True)
        and np.array_equal(a.clusters, b.clusters)
        and a.clustered == b.clustered
    )


@pytest.mark.parametrize("cluster_size", [0, 2])
def test_kept_arrays_are_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, cluster_size: int
) -> None:
    scores: dict[str, list[float | None]] = {"x": [1, None, 0, 0.5], "y": [None, 1]}
    run = make_run(tmp_path, scores=scores, cluster_size=cluster_size)
    read = [scored(run, "x"), scored(run, "y")]
    assert not (run.folder / KEPT_FILE).exists()  # a small run stays as it is
    monkeypatch.setattr(module, "LARGE", 1)
    scored(run)
    assert (run.folder / KEPT_FILE).exists()
    monkeypatch.setattr(Run, "rows", lambda self: pytest.fail("the records were read again"))
    assert all(same(was, scored(run, task)) for was, task in zip(read, "xy", strict=True))
    assert list(item_scores(run, {"z": "score"})["z"].keys) == []
    assert np.isnan(item_scores(run, {"x": "another"})["x"].values).all()


def test_changed_records_or_a_broken_file_are_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGE", 1)
    run = make_run(tmp_path, scores={"x": [1, 0]})
    assert sorted(scored(run).values) == [0, 1]
    records = run.samples_file.read_text(encoding="utf-8")
    run.samples_file.write_text(records.replace('"value":0', '"value":1'), encoding="utf-8")
    os.utime(run.samples_file, ns=(1, 1))
    assert sorted(scored(run).values) == [1, 1]
    for broken in (b"", b"PK\x03\x04 no archive", b"\x93NUMPY"):
        (run.folder / KEPT_FILE).write_bytes(broken)
        assert sorted(scored(run).values) == [1, 1]


def test_a_folder_that_cannot_be_written_is_still_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "LARGE", 1)
    run = make_run(tmp_path, scores={"x": [1, 0]})
    (run.folder / KEPT_FILE).mkdir()  # nothing can be moved to its place
    assert sorted(scored(run).values) == [0, 1]
    assert not list(run.folder.glob("*.tmp"))


def test_what_a_run_keeps_at_its_end_is_what_its_records_say(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = make_run(tmp_path, scores={"x": [1, 0, 1]})
    read = scored(run)
    tally = TaskTally(["score"], [])
    for record in run.samples():
        tally.add(record)
    monkeypatch.setattr(module, "LARGE", 1)
    keep_scores(run, {"x": tally.table()})
    monkeypatch.setattr(Run, "rows", lambda self: pytest.fail("the records were read again"))
    assert same(read, scored(run))
