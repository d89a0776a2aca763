"""Reading run folders: by name and by place, and what is said of records that are damaged,
changed or too new.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from evalwright import aggregate_run, evaluate, score_run
from evalwright.core.errors import RunError, UnknownName
from evalwright.runs import reader
from evalwright.runs.reader import list_runs, open_run
from evalwright.runs.records import record_row
from support.command import write_questions
from support.runs import make_run

LINE = b'{"task": "factual", "index": 1, "id": "1", "draw": 0, "input": "x", "targets": [], "scores": {"s": {"value": 1.0}}}'


def edited(folder: Path, **changes: Any) -> None:
    """Put other values into a `run.json`; None takes a key out."""
    path = folder / "run.json"
    data = {**json.loads(path.read_text()), **changes}
    path.write_text(
        json.dumps({key: value for key, value in data.items() if value is not None})
    )


def test_a_run_is_found_by_folder_record_and_name(tmp_path: Path) -> None:
    made = make_run(tmp_path, scores=[1, 0, None, 1], name="mine", label="Mine")
    for run in (
        open_run(tmp_path / "mine"),
        open_run(tmp_path / "mine" / "run.json"),
        open_run("mine", tmp_path),
    ):
        assert run.data == made.data
        run.verify()
    assert (made.id, made.model, made.label, made.n_missing) == (
        "mine",
        "demo/small",
        "Mine",
        1,
    )
    assert made.task("factual").n_samples == 4
    assert [spec.kind for spec in made.metric_specs("factual")] == ["accuracy"]
    records = list(made.samples())
    assert [record.index for record in records] == [0, 1, 2, 3]
    assert records[2].failure is not None
    assert records[0].answer is not None
    assert records[0].scores["score"].value == 1.0
    assert [record_row(record) for record in records] == list(made.rows())


def test_unknown_names_come_with_the_closest(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1], name="first")
    with pytest.raises(UnknownName, match=r"frist.*'first'.*runs list"):
        open_run("frist", tmp_path)
    for find in (run.task, run.metric_specs):
        with pytest.raises(UnknownName, match=r"factul.*'factual'"):
            find("factul")
    (tmp_path / "empty").mkdir()
    with pytest.raises(RunError, match="not a finished run"):
        open_run(tmp_path / "empty")


def test_verify_detects_a_changed_and_a_missing_file(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1, 0, 1], name="r")
    path = run.folder / "samples.jsonl"
    path.write_text(path.read_text().replace('"value":0.0', '"value":1.0'))
    with pytest.raises(RunError, match="changed after the run"):
        run.verify()
    path.unlink()
    with pytest.raises(RunError, match="cannot be read"):
        run.verify()
    with pytest.raises(RunError, match="cannot be read"):
        list(run.rows())


@pytest.mark.parametrize(
    ("line", "says"),
    [
        (b'{"task": "factual", ', "line 2 is not valid JSON"),
        (b'\xff\xfe{"task"', "line 2 is not valid JSON"),
        (b'{"task": "fact\xffual"}', "line 2 is not valid JSON"),
        (b"", "line 2 is not valid JSON"),
        (b"[1, 2]", "line 2 is not a sample record"),
        (b'{"task": "factual"}', "line 2 is not a sample record"),
        (
            LINE.replace(b'"index": 1', b'"index": true'),
            "line 2 is not a sample record: 'index' is true or false",
        ),
        (
            LINE.replace(b'"id": "1"', b'"id": 1'),
            "line 2 is not a sample record: 'id' is a whole number",
        ),
        (
            LINE.replace(b"[]", b"null"),
            r"line 2 is not a sample record: 'targets' is nothing",
        ),
        (
            LINE.replace(b'{"s": {"value": 1.0}}', b'{"s": 1.0}'),
            "line 2: the score 's' is a number, not a mapping",
        ),
        (
            LINE.replace(b"1.0}", b'1.0, "label": []}'),
            "line 2: the label of the score 's' is a list, not text",
        ),
    ],
)
def test_a_damaged_line_is_named(tmp_path: Path, line: bytes, says: str) -> None:
    run = make_run(tmp_path, scores=[1, 0, 1], name="r")
    path = run.folder / "samples.jsonl"
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], line, *lines[2:]]))
    for read in (run.rows, run.samples):
        with pytest.raises(RunError, match=says):
            list(read())


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"schema": 3}, "schema 3.*Upgrade"),
        ({"schema": "1"}, "not the record"),
        ({"schema": None}, "not the record"),
        ({"tasks": None}, "'tasks' is missing"),
        ({"id": None}, "'id' is missing"),
        ({"samples": []}, "does not name"),
        ({"roles": "judge"}, "'roles' is text, not object"),
        ({"tasks": {}}, "'tasks' is a mapping, not array"),
        ({"usage": []}, "'usage' is a list, not object"),
        (
            {"samples": {"file": "../other/samples.jsonl", "sha256": ""}},
            "does not name",
        ),
        ({"samples": {"file": "/etc/passwd", "sha256": ""}}, "does not name"),
        ({"samples": {"file": "..", "sha256": ""}}, "does not name"),
    ],
)
def test_a_record_that_cannot_be_used_is_a_sentence(
    tmp_path: Path, changes: dict[str, Any], says: str
) -> None:
    make_run(tmp_path, scores=[1], name="r")
    make_run(tmp_path, scores=[1], name="good")
    edited(tmp_path / "r", **changes)
    with pytest.raises(RunError, match=says):
        open_run("r", tmp_path)
    assert [run.id for run in list_runs(tmp_path)] == ["good"]


def test_not_utf8(tmp_path: Path) -> None:
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "run.json").write_bytes(b'{"schema": 1, "id": "\xff"}')
    with pytest.raises(RunError, match="not valid JSON"):
        open_run("r", tmp_path)


def test_runs_are_listed_oldest_first(tmp_path: Path) -> None:
    for day, name in (("18", "b"), ("20", "a"), ("18", "a-too"), ("03", "z")):
        make_run(
            tmp_path, scores=[1], name=name, started=f"2026-11-{day}T10:00:00+00:00"
        )
    (tmp_path / "notes.txt").write_text("no run")
    (tmp_path / "half").mkdir()
    assert [run.id for run in list_runs(tmp_path)] == ["z", "a-too", "b", "a"]
    assert list_runs(None) == list_runs(tmp_path / "nowhere") == []


@pytest.mark.parametrize("more", [{"evidence": 1}, {"parts": None, "worth": 1}])
def test_a_score_that_is_none_names_its_line(
    tmp_path: Path, more: dict[str, Any]
) -> None:
    run = make_run(tmp_path, scores=[1, 0], name="r")
    path = run.folder / "samples.jsonl"
    first, *rest = [json.loads(line) for line in path.read_text().splitlines()]
    first["responses"] = [{"nothing": 1}]
    path.write_text("".join(json.dumps(row | more) + "\n" for row in [*rest, first]))
    with pytest.raises(RunError, match="line 2 is not a sample record"):
        list(run.samples())


def test_a_run_without_a_hash_is_scored_and_averaged_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_questions(tmp_path, 2)
    (run,) = evaluate("questions.yaml", "scripted/echo", name="old")
    known = run.samples_sha256
    edited(run.folder, samples={"file": "samples.jsonl", "records": 2})
    assert open_run(run.folder).samples_sha256 == known
    assert score_run(run.folder, name="scored").tasks[0].main == run.tasks[0].main
    assert (
        aggregate_run(open_run(run.folder), level=0.9, name="again").tasks[0].n_samples
        == 2
    )


def test_the_quick_check_of_types_accepts_nothing_that_the_slow_one_refuses(
    tmp_path: Path,
) -> None:
    run = make_run(tmp_path, scores=[1, 0, None, 1], domains=["a", "b"])
    record = json.loads((run.folder / "run.json").read_text())
    assert reader._certainly_fits(record)
    n_refused = 0
    for path in places(record):
        for wrong in (None, True, 1, 1.5, 10**400, "text", [], ["x"], {}, {"x": [1]}):
            changed = json.loads(json.dumps(record))
            holder = changed
            for key in path[:-1]:
                holder = holder[key]
            holder[path[-1]] = wrong
            is_refused = bool(reader._misfit(changed, reader._schema("run"), ""))
            n_refused += is_refused
            assert not (is_refused and reader._certainly_fits(changed)), (path, wrong)
    assert n_refused > 100


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Every place in a record where a value is."""
    if path:
        yield path
    if isinstance(value, list):
        value = dict(enumerate(value))
    for key, member in value.items() if isinstance(value, dict) else ():
        yield from places(member, (*path, key))


def test_results_are_built_once_and_again_for_other_records(tmp_path: Path) -> None:
    run = make_run(tmp_path, scores=[1, 0])
    assert run.tasks is run.tasks
    assert run.groups is run.groups
    other = replace(run, data={**run.data, "tasks": []})
    assert other.tasks == ()
    assert len(run.tasks) == 1
