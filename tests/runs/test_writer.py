"""A run's folder appears whole or not at all, in order, and readable by anything that reads
JSON.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from datetime import date
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.core.errors import RunError
from evalwright.core.responses import Response
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.runs import writer as writer_module
from evalwright.runs.reader import open_run
from evalwright.runs.writer import RunWriter, to_json, write_json
from evalwright.tasks.safe_files import write_text
from support.runs import make_run


def a_record(index: int, text: str = "yes", **metadata: Any) -> SampleRecord:
    sample = Sample(id=f"item-{index}", input="?", targets=("yes",), metadata=metadata)
    answer = Answer(
        text=text, prompt="?", responses=(Response(text=text, latency=0.5),)
    )
    return SampleRecord("t", index, 0, sample, answer, {"s": Score(1.0)})


def strict(text: str) -> Any:
    """JSON as a strict reader takes it."""

    def refuse(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return json.loads(text, parse_constant=refuse)


@settings(max_examples=30)
@given(st.permutations(range(12)), st.text(max_size=30))
def test_lines_stand_in_the_order_of_positions(
    tmp_path_factory: pytest.TempPathFactory, order: list[int], text: str
) -> None:
    folder = tmp_path_factory.mktemp("run")
    with RunWriter(folder) as writer:
        for index in order:
            writer.add(index * 10, a_record(index, text * index))
        writer.finish({"id": "r"})
    data = (folder / "samples.jsonl").read_bytes()
    rows = [strict(line) for line in data.decode().split("\n")[:-1]]
    assert [row["index"] for row in rows] == list(range(12))
    assert [row["answer"] for row in rows] == [text * index for index in range(12)]
    samples = strict((folder / "run.json").read_text())["samples"]
    assert samples == {
        "file": "samples.jsonl",
        "records": 12,
        "sha256": hashlib.sha256(data).hexdigest(),
    }
    assert sorted(path.name for path in folder.iterdir()) == [
        "run.json",
        "samples.jsonl",
    ]


@pytest.mark.parametrize(
    ("block_bytes", "read_ahead"), [(1, 8), (900, 8), (900, 1), (900, 0), (1 << 20, 8)]
)
def test_records_are_ordered_block_by_block(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block_bytes: int, read_ahead: int
) -> None:
    """Whatever a block holds, and whether its records lie close together or are read one by one."""
    monkeypatch.setattr(writer_module, "_BLOCK_BYTES", block_bytes)
    monkeypatch.setattr(writer_module, "_READ_AHEAD", read_ahead)
    positions = [7 * index % 40 for index in range(40)]
    with RunWriter(tmp_path) as writer:
        for position in positions:
            writer.add(position, a_record(position, "yes" * position))
        writer.finish({"id": "r"})
    data = (tmp_path / "samples.jsonl").read_bytes()
    rows = [strict(line) for line in data.decode().splitlines()]
    assert [(row["index"], row["answer"]) for row in rows] == [
        (position, "yes" * position) for position in range(40)
    ]
    samples = strict((tmp_path / "run.json").read_text())["samples"]
    assert samples["sha256"] == hashlib.sha256(data).hexdigest()


def test_an_unfinished_run_leaves_nothing(tmp_path: Path) -> None:
    with pytest.raises(KeyError), RunWriter(tmp_path / "r") as writer:
        writer.add(0, a_record(0))
        assert len(list((tmp_path / "r").iterdir())) == 1
        raise KeyError
    assert list((tmp_path / "r").iterdir()) == []


class Crash(BaseException):
    """Stands for the end of the process."""


@pytest.mark.parametrize("step", range(4))
def test_a_crash_at_any_step_of_replacing_leaves_a_whole_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: int
) -> None:
    old = make_run(tmp_path, scores=[1, 1, 0], name="r")
    before = list(old.rows())
    done = 0
    replace = Path.replace

    def counting(self: Path, target: Path) -> Path:
        nonlocal done
        if done == step:
            raise Crash
        done += 1
        return replace(self, target)

    # A process that is killed cleans up nothing.
    monkeypatch.setattr(RunWriter, "discard", lambda self: self._file.close())
    monkeypatch.setattr(Path, "replace", counting)
    with pytest.raises(Crash):
        make_run(tmp_path, scores=[0, 0, 0, 0], name="r")
    monkeypatch.undo()
    run = open_run(tmp_path / "r")
    run.verify()
    rows = list(run.rows())
    if step < 2:
        assert rows == before
        assert run.data == old.data
    else:
        assert len(rows) == 4
        assert run.tasks[0].n_samples == 4
    again = make_run(tmp_path, scores=[0, 1], name="r")
    again.verify()
    assert again.samples_file.name == "samples.jsonl"
    assert len(list(again.rows())) == 2


def test_what_killed_processes_left_is_removed_and_what_running_ones_use_is_kept(
    tmp_path: Path,
) -> None:
    import subprocess
    import sys

    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    for number in (gone.pid, os.getppid(), 10**30):
        (tmp_path / f".samples.jsonl.{number}.partial").write_text("x")
    (tmp_path / f".samples.jsonl.{gone.pid}.sorted").write_text("x")
    (tmp_path / ".samples.jsonl.mine.partial").write_text("x")
    with RunWriter(tmp_path):
        left = {path.name for path in tmp_path.iterdir()}
    assert f".samples.jsonl.{os.getppid()}.partial" in left
    assert ".samples.jsonl.mine.partial" in left
    assert not any(f".{gone.pid}." in name for name in left)


def test_lone_surrogates_survive(tmp_path: Path) -> None:
    text = 'a "\ud83d" \\ \udc80 é 漢\u2028'
    with RunWriter(tmp_path) as writer:
        writer.add(0, a_record(0, text))
        writer.add(1, a_record(1, "plain é"))
        writer.finish({"id": text})
    lines = (tmp_path / "samples.jsonl").read_text(encoding="utf-8").split("\n")
    assert strict(lines[0])["answer"] == text
    assert "plain é" in lines[1]
    assert strict((tmp_path / "run.json").read_text(encoding="utf-8"))["id"] == text


def test_numbers_that_json_has_not() -> None:
    data = {
        "a": math.nan,
        "b": [math.inf, -math.inf, 1.5],
        "c": {"d": (math.nan, "NaN", "Infinity")},
    }
    found = strict(to_json(data))
    assert found == {
        "a": None,
        "b": [math.inf, -math.inf, 1.5],
        "c": {"d": [None, "NaN", "Infinity"]},
    }
    assert to_json({"x": "1e999"}) == '{"x": "1e999"}'


def test_metadata_of_any_type_can_be_recorded(tmp_path: Path) -> None:
    with RunWriter(tmp_path) as writer:
        writer.add(0, a_record(0, day=date(2026, 11, 20), size=math.nan))
        writer.finish(
            {"id": "r", "definition": {"made": date(2026, 1, 2), "weight": math.inf}}
        )
    row = strict((tmp_path / "samples.jsonl").read_text())
    assert row["metadata"] == {"day": "2026-11-20", "size": None}
    assert strict((tmp_path / "run.json").read_text())["definition"] == {
        "made": "2026-01-02",
        "weight": math.inf,
    }


@given(
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text()
        | st.floats(allow_nan=False),
        lambda inner: (
            st.lists(inner, max_size=3)
            | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=12,
    )
)
def test_any_json_round_trips(value: Any) -> None:
    assert strict(to_json(value)) == value


def test_a_folder_that_cannot_be_made_is_a_sentence(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(RunError, match=r"cannot be written.*--out") as caught:
        RunWriter(tmp_path / "file" / "run")
    assert "space" not in str(caught.value)


def test_a_full_disk_is_a_sentence_and_keeps_the_old_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old = make_run(tmp_path, scores=[1, 1, 0], name="r")

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(RunError, match="No space left on device"):
        make_run(tmp_path, scores=[0] * 5, name="r")
    monkeypatch.undo()
    run = open_run(tmp_path / "r")
    run.verify()
    assert run.data == old.data
    assert sorted(path.name for path in run.folder.iterdir()) == [
        "run.json",
        "samples.jsonl",
    ]


def test_a_text_file_is_the_old_or_the_new_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "deep" / "page.md"
    write_text(path, "old\n")
    monkeypatch.setattr(
        os, "fsync", lambda _: (_ for _ in ()).throw(OSError(28, "full"))
    )
    with pytest.raises(OSError, match="full"):
        write_text(path, "new\n")
    monkeypatch.undo()
    assert path.read_text() == "old\n"
    assert [file.name for file in path.parent.iterdir()] == ["page.md"]
    write_json(path, {"a": "\ud800"})
    assert strict(path.read_text()) == {"a": "\ud800"}


def test_many_records_stay_out_of_memory(tmp_path: Path) -> None:
    import tracemalloc

    tracemalloc.start()
    with RunWriter(tmp_path) as writer:
        record = a_record(0, "x" * 2000)
        for position in range(4_000):
            writer.add(4_000 - position, record)
        _, peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        writer.finish({"id": "r"})
    assert peak < 3e6
    assert (tmp_path / "samples.jsonl").read_bytes().count(b"\n") == 4_000


def test_two_writers_of_one_process_do_not_meet(tmp_path: Path) -> None:
    with RunWriter(tmp_path / "r") as one, RunWriter(tmp_path / "r") as other:
        assert (
            len(
                list((tmp_path / "r").glob("*.partial"))
                + list((tmp_path / "r").glob(".*.partial"))
            )
            >= 2
        )
        one.discard()
        other.discard()
