"""Scores by item: read from records or from arrays of this machine, which stand for the bytes
that they were made of and no others.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from evalwright.core.samples import Answer, Passage, Sample, SampleRecord, Score
from evalwright.core.secrets import remember
from evalwright.runs import score_tables as module
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run, open_run
from evalwright.runs.score_tables import item_scores, keep_scores
from evalwright.runs.scores import (
    UNKNOWN,
    ItemScores,
    hashed,
    names_question,
    sample_content,
    unit_codes,
)
from evalwright.runs.writer import RunWriter
from support.runs import make_run, rewritten


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home folder and settings of this test's own."""
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    return tmp_path / "home"


def kept(home: Path) -> list[Path]:
    """The files of arrays in a home folder."""
    return sorted((home / "scores").glob("*.scores"))


def scored(run: Run, task: str = "x") -> ItemScores:
    return item_scores(run, {task: "score"})[task]


def same(a: ItemScores, b: ItemScores) -> bool:
    return (
        np.array_equal(a.keys, b.keys)
        and np.array_equal(a.values, b.values, equal_nan=True)
        and np.array_equal(a.clusters, b.clusters)
        and np.array_equal(a.contents, b.contents)
        and a.clustered == b.clustered
    )


@pytest.mark.parametrize("cluster_size", [0, 2])
def test_kept_arrays_are_what_was_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path, cluster_size: int
) -> None:
    scores: dict[str, list[float | None]] = {"x": [1, None, 0, 0.5], "y": [None, 1]}
    run = make_run(tmp_path, scores=scores, cluster_size=cluster_size)
    read = [scored(run, "x"), scored(run, "y")]
    assert not kept(home)  # a small run is read again
    monkeypatch.setattr(module, "LARGE", 1)
    scored(run)
    assert len(kept(home)) == 1
    assert sorted(path.name for path in run.folder.iterdir()) == [
        "run.json",
        "samples.jsonl",
    ]
    monkeypatch.setattr(
        Run, "score_rows", lambda self: pytest.fail("the records were read again")
    )
    assert all(
        same(was, scored(run, task)) for was, task in zip(read, "xy", strict=True)
    )
    assert list(item_scores(run, {"z": "score"})["z"].keys) == []
    assert np.isnan(item_scores(run, {"x": "another"})["x"].values).all()


def test_kept_arrays_of_other_records_or_broken_ones_are_made_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr(module, "LARGE", 1)
    run = make_run(tmp_path, scores={"x": [1, 0]})
    assert sorted(scored(run).values) == [0, 1]
    records = run.samples_file.read_text(encoding="utf-8")
    time = run.samples_file.stat().st_mtime_ns
    run = rewritten(run, records.replace('"value":0', '"value":1'))
    os.utime(
        run.samples_file, ns=(time, time)
    )  # of the same size and time, but of another content
    assert sorted(scored(run).values) == [1, 1]
    assert len(kept(home)) == 2
    for broken in (b"", b"PK\x03\x04 no archive", b"\x93NUMPY"):
        for file in kept(home):
            file.write_bytes(broken)
        assert sorted(scored(run).values) == [1, 1]


def test_arrays_that_another_machine_made_are_not_believed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    """Who hands over a folder may put a home folder beside it; the key of its seals is not this
    person's.
    """
    monkeypatch.setattr(module, "LARGE", 1)
    run = make_run(tmp_path, scores={"x": [1, 0]})
    better = make_run(tmp_path / "better", scores={"x": [1, 1]}, name=run.id)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "theirs"))
    scored(better)
    (forged,) = kept(home)
    forged.rename(forged.with_name(f"{run.verify()}.scores"))
    # under the name of other content even with their own key
    assert sorted(scored(run).values) == [0, 1]
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    reread = open_run(run.folder)
    rows: list[Run] = []

    def no_rows(run: Run) -> Iterator[dict[str, Any]]:
        rows.append(run)
        return iter(())

    monkeypatch.setattr(Run, "score_rows", no_rows)
    scored(reread)
    assert rows  # it was theirs, so it is read again
    (tmp_path / "config" / "evalwright" / "sealing.key").chmod(0o644)
    rows.clear()
    scored(reread)
    assert rows  # a key that others can read seals nothing


def test_a_home_that_cannot_be_written_costs_only_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, home: Path
) -> None:
    monkeypatch.setattr(module, "LARGE", 1)
    run = make_run(tmp_path, scores={"x": [1, 0]})
    home.mkdir()
    (home / "scores").write_text("no folder")
    assert sorted(scored(run).values) == [0, 1]
    assert not [*run.folder.glob("*.tmp"), *home.glob("*.tmp")]


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
    monkeypatch.setattr(
        Run, "score_rows", lambda self: pytest.fail("the records were read again")
    )
    assert same(read, scored(run))


def stored(folder: Path, *samples: Sample, task: str = "x") -> tuple[Run, TaskTally]:
    """A run of some samples with its tally as it was when the run ended."""
    tally = TaskTally(["score"], [])
    with RunWriter(folder) as writer:
        for index, sample in enumerate(samples):
            record = SampleRecord(
                task, index, 0, sample, Answer(text="a"), {"score": Score(1.0)}
            )
            writer.add(index, record)
            tally.add(record)
        parts = {
            "model": {"name": "m"},
            "configuration": {},
            "usage": {},
            "started": "2026-11-20",
            "tasks": [],
        }
        writer.finish({"schema": 1, "id": folder.name, **parts})
    return open_run(folder), tally


PASSAGES = (Passage("1", "The bridge opened in May."),)
ASKED = Sample("q", "When?", ("May",), ("May", "June"), (0,), PASSAGES)
ROW = {
    "question": "When?",
    "choices": ["May", 7],
    "score": float("nan"),
    "day": date(2026, 1, 2),
    3: "three",
}


@pytest.mark.parametrize(
    "sample",
    [
        ASKED,
        Sample("q"),
        Sample("q", targets=("May", "in May")),
        Sample("q", 'Wann? \ud83d \0 \u2028 "é"', ("",)),
        Sample("q", "A key: sk-very-secret-key-1234"),
        Sample("q", "When?", metadata={"doc": ROW, "language": "en"}),
        Sample("q", "When?", metadata={"doc": "a name"}),
    ],
)
def test_content_is_the_same_at_hand_and_read(
    tmp_path: Path, sample: Sample, monkeypatch: pytest.MonkeyPatch
) -> None:
    remember("sk-very-secret-key-1234")
    run, tally = stored(tmp_path / "run", sample)
    read = scored(run).contents.tolist()
    assert tally.table().contents.tolist() == read == [sample_content(sample)]
    monkeypatch.setattr(module, "LARGE", 1)
    keep_scores(run, {"x": tally.table()})
    monkeypatch.setattr(
        Run, "score_rows", lambda self: pytest.fail("the records were read again")
    )
    assert scored(run).contents.tolist() == read


@pytest.mark.parametrize(
    ("change", "same"),
    [
        ({"input": "Where?"}, False),
        ({"targets": ("June",)}, False),
        ({"targets": ("May", "in May")}, False),
        ({"choices": ("June", "May"), "gold": (1,)}, False),
        ({"passages": (Passage("1", "The bridge opened in June."),)}, False),
        ({"passages": ()}, False),
        ({"id": "another"}, True),
        (
            {
                "metadata": {"domain": "roads"},
                "cluster": "bridges",
                "row": {"question": "When?"},
            },
            True,
        ),
        ({"passages": (Passage("A", PASSAGES[0].text),)}, True),
    ],
)
def test_content_is_of_the_question_alone(change: dict[str, Any], same: bool) -> None:
    assert (sample_content(replace(ASKED, **change)) == sample_content(ASKED)) == same


def test_a_recorded_row_is_the_question() -> None:
    """Tasks that are templates over rows: a template, its shots and what it makes of the row
    change nothing.
    """
    one, other = (
        Sample("0", text, ("May",), metadata={"doc": ROW})
        for text in ("When?", "Q: When? A:")
    )
    assert sample_content(one) == sample_content(other)
    changed = replace(one, metadata={"doc": ROW | {"choices": [7, "May"]}})
    assert sample_content(changed) != sample_content(one)


def test_only_what_names_a_question_is_the_same_question_elsewhere() -> None:
    asked = [
        ASKED,
        Sample("a", "When?"),
        Sample("b", passages=PASSAGES),
        Sample("c", metadata={"doc": ROW}),
    ]
    bare = [
        Sample("d", targets=("A",)),
        Sample("e", targets=("A",), choices=("A", "B")),
        Sample("f"),
    ]
    contents = np.array([sample_content(one) for one in (*asked, *bare)])
    assert names_question(contents).tolist() == [True] * 4 + [False] * 3
    assert contents[-1] == UNKNOWN != contents[-2] != contents[-3] != UNKNOWN


def test_units_are_shared_between_tasks_by_cluster_or_question() -> None:
    """Copies of a question are one unit in two tasks, and so is a passage; ids and what names no
    question are not shared.
    """
    names = ["0", "1", "2", "3", "4"]
    keys = np.array([hashed(name) for name in names])
    # a question, the same one twice, targets alone, nothing
    contents = np.array([11, 13, 13, 8, 0])
    clusters = ~keys
    one, other = (
        unit_codes(task, keys, contents, clusters) for task in ("one", "other")
    )
    assert (one == other).tolist() == [True, False, False, False, False]
    assert len({*one.tolist(), *other.tolist()}) == 9
    named = np.where(np.arange(5) < 2, hashed("passage"), clusters)
    one, other = (unit_codes(task, keys, contents, named) for task in ("one", "other"))
    assert one[0] == one[1] == other[0] == other[1]
