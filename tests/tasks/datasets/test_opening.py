"""From `dataset` to rows: every format gives the same task, globs, `where`, copies, and the hub."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import (
    ConfigurationError,
    DatasetError,
    MissingExtra,
    UsageError,
)
from evalwright.core.tasks import Task
from evalwright.tasks.datasets.opening import Filter
from evalwright.tasks.loading import load_task
from evalwright.tasks.yaml_files import Document

ROWS = [
    {"id": str(number), "input": f"question, {number}\n?", "target": "ä"}
    for number in range(5)
]
PARQUET = pytest.param(
    "parquet",
    marks=pytest.mark.skipif(
        find_spec("pyarrow") is None, reason="needs the parquet extra"
    ),
)
needs_hub = pytest.mark.skipif(
    find_spec("datasets") is None, reason="needs the hub extra"
)
COPIED = ["json", "csv", "tsv", PARQUET]


def put(name: str, rows: list[dict[str, Any]]) -> Path:
    path = Path(name)
    path.parent.mkdir(parents=True, exist_ok=True)
    kind = path.suffix[1:]
    if kind in ("jsonl", "ndjson"):
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    elif kind == "json":
        path.write_text(json.dumps(rows))
    elif kind == "parquet":
        import pyarrow
        import pyarrow.parquet

        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    else:
        with path.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(
                file, list(rows[0]), delimiter="," if kind == "csv" else "\t"
            )
            writer.writeheader()
            writer.writerows(rows)
    return path


def load(text: str) -> Task:
    Path("t.yaml").write_text("task: t\n" + text)
    return load_task("t.yaml")


@pytest.mark.parametrize("kind", ["jsonl", "ndjson", *COPIED])
def test_every_format_gives_the_same_samples(kind: str) -> None:
    put(f"d.{kind}", ROWS)
    task = load(f"dataset: d.{kind}\n")
    assert [dict(sample.row) for sample in task.samples] == ROWS
    put("same.jsonl", ROWS)
    if kind not in ("jsonl", "ndjson"):
        assert [sample.id for sample in load("dataset: same.jsonl\n").samples] == [
            sample.id for sample in task.samples
        ]


@pytest.mark.parametrize("kind", COPIED)
def test_a_copy_is_made_once_and_again_when_the_content_changes(
    kind: str, tmp_path: Path
) -> None:
    path = put(f"d.{kind}", ROWS)
    load(f"dataset: d.{kind}\n")
    (copy,) = (tmp_path / "home" / "datasets").iterdir()
    before = copy.stat().st_mtime_ns
    path.touch()
    load(f"dataset: d.{kind}\n")
    assert copy.stat().st_mtime_ns == before
    put(f"d.{kind}", [*ROWS, {"id": "9", "input": "q", "target": "t"}])
    assert len(load(f"dataset: d.{kind}\n").samples) == 6
    assert len(list((tmp_path / "home" / "datasets").iterdir())) == 2


def test_globs_lists_and_a_format_that_the_name_does_not_say() -> None:
    put("data/b.jsonl", ROWS[2:4])
    put("data/a.jsonl", ROWS[:2])
    put("data/deep/c.csv", ROWS[4:])
    put("plain.jsonl", ROWS).rename("plain.txt")
    assert [sample.id for sample in load('dataset: "data/*.jsonl"\n').samples] == [
        "0",
        "1",
        "2",
        "3",
    ]
    assert [sample.id for sample in load('dataset: "data/**/*.*"\n').samples] == [
        "0",
        "1",
        "2",
        "3",
        "4",
    ]
    assert [
        sample.id
        for sample in load("dataset: {path: [data/deep/c.csv, data/a.jsonl]}\n").samples
    ] == [
        "4",
        "0",
        "1",
    ]
    assert len(load("dataset: {path: plain.txt, format: jsonl}\n").samples) == 5
    assert len(load(f"dataset: {Path('data/a.jsonl').resolve()}\n").samples) == 2


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('dataset: "data/*.jsonl"\n', "t.yaml:2: no file matches 'data/*.jsonl'."),
        ("dataset: d.jsonl\n", "t.yaml:2: the data file 'd.jsonl' does not exist."),
        ("dataset: home2\n", "t.yaml:2: the data file 'home2' is a folder, not a file, and has no data files (.jsonl"),
        ("dataset: t.yaml\n", "t.yaml:2: the name 't.yaml' does not say its format; add `format: jsonl`"),
        ("dataset: {path: empty.jsonl, key: a}\n", "t.yaml:2: `key` can only be used with JSON files and workbooks, and 'empty.jsonl' is jsonl."),
        ("dataset: empty.jsonl\n", "t.yaml:2: the dataset is empty (empty.jsonl)."),
        ("dataset: header.csv\n", "t.yaml:2: the dataset is empty (header.csv)."),
        ("dataset: one.jsonl\nwhere: {id: 7}\n", "t.yaml:3: no row is left after `where` (one.jsonl)."),
        ("dataset: one.jsonl\nwhere: {idd: 7}\n", "one.jsonl, row 1: `where` (t.yaml:3): there is no column 'idd'; did you mean 'id'?"),
        ("dataset: one.jsonl\nwhere: idd > 7\n", "one.jsonl, row 1: `where` (t.yaml:3) cannot be decided: there is no column 'idd'"),
    ],
)  # fmt: skip
def test_what_cannot_be_opened(text: str, message: str) -> None:
    Path("home2").mkdir()
    Path("empty.jsonl").write_text("\n\n")
    Path("header.csv").write_text("a,b\n")
    put("one.jsonl", ROWS[:1])
    with pytest.raises(UsageError) as caught:
        load(text)
    assert message in str(caught.value)


def test_a_folder_for_copies_that_cannot_be_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    put("d.csv", ROWS)
    Path("in-the-way").write_text("")
    monkeypatch.setenv("EVALWRIGHT_HOME", "in-the-way")
    with pytest.raises(
        ConfigurationError,
        match=r"'in-the-way/datasets'",
    ):
        load("dataset: d.csv\n")


def test_a_broken_file_leaves_no_copy(tmp_path: Path) -> None:
    Path("d.csv").write_text("a,b\n1,2\n3\n")
    with pytest.raises(DatasetError, match=r"d.csv, row 2 \(line 3\)"):
        load("dataset: d.csv\n")
    assert list((tmp_path / "home" / "datasets").iterdir()) == []


def test_where_reaches_into_columns() -> None:
    put(
        "d.jsonl",
        [
            {"id": n, "input": "q", "meta": {"lang": "de" if n % 2 else "en"}}
            for n in range(4)
        ],
    )
    assert [
        sample.id
        for sample in load("dataset: d.jsonl\nwhere: {meta.lang: de}\n").samples
    ] == ["1", "3"]


def test_where_tells_true_from_one_and_text_from_number() -> None:
    put(
        "d.jsonl",
        [{"id": n, "v": value} for n, value in enumerate([1, True, "1", 1.0, None])],
    )
    found = {
        where: [
            sample.id
            for sample in load(f"dataset: d.jsonl\nwhere: {{v: {where}}}\n").samples
        ]
        for where in ("1", "true", "'1'", "null", "[true, '1']")
    }
    assert found == {
        "1": ["0", "3"],
        "true": ["1"],
        "'1'": ["2"],
        "null": ["4"],
        "[true, '1']": ["1", "2"],
    }


def test_a_broken_line_does_not_hide_behind_where() -> None:
    rows = [
        json.dumps({"id": n, "subject": "art history" if n % 2 else "law"})
        for n in range(10)
    ]
    rows[4] = '{"id": 4, "subj'
    Path("d.jsonl").write_text("\n".join(rows))
    for _ in range(2):
        with pytest.raises(
            DatasetError, match=r"^d.jsonl, row 5: this line is not JSON"
        ):
            load('dataset: d.jsonl\nwhere: {subject: "art history"}\n')


VALUES = (
    st.sampled_from(
        ["art history", "law", "a", "xy", "é law", "law-school", 'la"w', "5"]
    )
    | st.integers(0, 5)
    | st.none()
)


@given(
    rows=st.lists(
        st.fixed_dictionaries({"subject": VALUES, "other": VALUES}),
        min_size=1,
        max_size=8,
    ),
    wanted=st.lists(VALUES, min_size=1, max_size=2),
    ascii_only=st.booleans(),
)
def test_skipping_lines_unread_never_changes_what_is_wanted(
    rows: list[dict[str, Any]], wanted: list[Any], ascii_only: bool
) -> None:
    where = {"subject": wanted[0] if len(wanted) == 1 else wanted}
    chosen = Filter(where, {}, Document({}, "t", Path()), ("where",))
    skip = chosen.skipper()
    for row in rows:
        line = json.dumps(row, ensure_ascii=ascii_only).encode()
        if skip is not None and skip(line):
            assert not chosen.wants(row, lambda: "x")


HUB = """
import sys
from evalwright.tasks.datasets import copies
from evalwright.tasks.loading import load_task
copies._is_here = lambda repository: False  # the folder is the hub's data set, and not one that stands in its way
task = load_task("t.yaml")
print([sample.input for sample in task.samples], "datasets" in sys.modules)
"""


@needs_hub
def test_the_hub_is_needed_once(tmp_path: Path) -> None:
    """The real library, over a folder that stands where a hub id would."""
    put("owner/name/data/test.jsonl", [{"input": "a", "n": 1}, {"input": "b", "n": 2}])
    put("owner/name/data/train.jsonl", [{"input": "c", "n": 3}])
    Path("t.yaml").write_text(
        "task: t\ndataset: {hub: owner/name, revision: 0123abc, split: test}\n"
    )
    environment = {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(sys.path),
        "HF_HOME": str(tmp_path / "hf"),
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
    }

    def run() -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-c", HUB],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )

    first = run()
    assert first.stdout.strip() == "['a', 'b'] True", first.stderr
    for path in sorted(Path("owner").rglob("*"), reverse=True):
        path.unlink() if path.is_file() else path.rmdir()
    assert run().stdout.strip() == "['a', 'b'] False"


def test_the_hub_without_its_library(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "datasets", None)
    with pytest.raises(
        MissingExtra,
        match=r"'owner/name'.*'datasets'.*evalwright\[hub\]",
    ):
        load("dataset: {hub: owner/name, revision: x}\n")


@needs_hub
def test_a_hub_dataset_that_cannot_be_loaded(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    Path("owner/name").mkdir(parents=True)
    with pytest.raises(
        DatasetError,
        match=r"'owner/name' \(configuration default, split test, revision x\).*HF_HUB_OFFLINE",
    ):
        load("dataset: {hub: owner/name, revision: x}\n")
    assert not list(tmp_path.glob("home/datasets/*.jsonl"))


# -- parts, added columns and what `where` can say
# ------------------------------------------------------------------


def test_rows_know_their_part_and_their_own_column_counts(tmp_path: Path) -> None:
    put(
        "parts/art.jsonl",
        [{"input": "a", "target": "x"}, {"input": "b", "target": "y", "part": "own"}],
    )
    put("parts/law.jsonl", [{"input": "a", "target": "x"}])
    task = load(
        "dataset: {path: 'parts/*.jsonl', subset: part}\nsample: {metadata: {domain: '{{ part }}'}}\n"
        "where: {part: [art, own, law]}\n"
    )
    assert [(sample.input, sample.metadata["domain"]) for sample in task.samples] == [
        ("a", "art"),
        ("b", "own"),
        ("a", "law"),
    ]
    # A second task may skip lines unread, and an added column stands in none.
    again = load("dataset: {path: 'parts/*.jsonl', subset: part}\nwhere: {part: law}\n")
    assert [sample.input for sample in again.samples] == ["a"]


def test_every_row_once_for_each_value_is_one_cluster(tmp_path: Path) -> None:
    put("d.jsonl", [{"input": "a", "target": "x"}, {"input": "b", "target": "y"}])
    text = "dataset: {path: d.jsonl, each: {order: [ab, ba], n: [1, 2]}}\nprompt: {user: '{{ input }} {{ order }} {{ n }}'}\n"
    task = load(text)
    samples = list(task.samples)
    assert len(samples) == 8 and len({sample.id for sample in samples}) == 8
    clusters = {sample.input: {other.cluster for other in samples if other.input == sample.input} for sample in samples}  # fmt: skip
    assert [len(cluster) for cluster in clusters.values()] == [1, 1] and clusters[
        "a"
    ] != clusters["b"]
    assert (
        load(text.replace("2]}", "2], m: [0]}")).definition["dataset"]["content_hash"]
        != task.definition["dataset"]["content_hash"]
    )
    named = load(text + "sample: {cluster: '{{ order }}'}\n")
    assert {sample.cluster for sample in named.samples} == {"ab", "ba"}


@pytest.mark.parametrize(
    ("where", "kept"),
    [
        ("{tags: math}", "a"),
        ("{tags: [math, law]}", "ab"),
        ("{tags: {contains: MAT}}", "ac"),
        ("{tags: {contains: [matter, law]}, input: {contains: b}}", "b"),
        ("{input: {holds: \"input != 'a'\"}, tags: {contains: m}}", "c"),
    ],
)
def test_where_takes_parts_elements_and_expressions(where: str, kept: str) -> None:
    put("d.jsonl", [
        {"input": "a", "target": "x", "tags": ["math", "school"]},
        {"input": "b", "target": "x", "tags": ["law"]},
        {"input": "c", "target": "x", "tags": "matter"},
        {"input": "d", "target": "x", "tags": [None]},
    ])  # fmt: skip
    task = load(f"dataset: d.jsonl\nwhere: {where}\n")
    assert "".join(sample.input for sample in task.samples) == kept


@pytest.mark.parametrize(
    "where", ["{a: {contains: []}}", "{a: {like: b}}", "{a: {holds: '{%'}}"]
)
def test_where_says_what_it_cannot_be(where: str) -> None:
    put("d.jsonl", ROWS)
    with pytest.raises(UsageError, match=r"where|template"):
        load(f"dataset: d.jsonl\nwhere: {where}\n")


@needs_hub
@pytest.mark.parametrize("in_splits", [False, True])
def test_a_folder_that_datasets_saved(in_splits: bool) -> None:
    import datasets

    rows = datasets.Dataset.from_list(ROWS)
    saved = datasets.DatasetDict({"test": rows}) if in_splits else rows
    saved.save_to_disk("saved")
    task = load("dataset: saved\n")
    assert [sample.id for sample in task.samples] == ["0", "1", "2", "3", "4"]
    assert list(task.samples) == list(load_rows_as_jsonl())


def load_rows_as_jsonl() -> Any:
    put("plain.jsonl", ROWS)
    return load("dataset: plain.jsonl\n").samples


@needs_hub
def test_a_saved_folder_with_several_splits_or_false_names() -> None:
    import datasets

    rows = datasets.Dataset.from_list(ROWS)
    datasets.DatasetDict({"dev": rows, "test": rows}).save_to_disk("saved")
    with pytest.raises(
        UsageError, match="Name the part of it that you mean: 'saved/test', 'saved/dev'"
    ):
        load("dataset: saved\n")
    assert len(load("dataset: saved/test\n").samples) == 5

    state = Path("saved/test/state.json")
    state.write_text(state.read_text().replace("data-", "../dev/data-"))
    with pytest.raises(DatasetError, match="outside of the folder"):
        load("dataset: saved/test\n")


def test_a_folder_with_the_files_of_one_split() -> None:
    put("shards/test-00000-of-00002.jsonl", ROWS[:2])
    put("shards/test-00001-of-00002.jsonl", ROWS[2:])
    Path("shards/README.md").write_text("Rows.")
    assert len(load("dataset: shards\n").samples) == 5
    put("single/questions.csv", ROWS)
    assert len(load("dataset: single\n").samples) == 5

    put("shards/train-00000-of-00001.jsonl", ROWS[:1])
    with pytest.raises(UsageError) as refused:
        load("dataset: shards\n")
    assert str(refused.value).endswith(
        "the data file 'shards' is a folder, not a file. Name the part of it that you"
        " mean: 'shards/test-*.jsonl', 'shards/train-00000-of-00001.jsonl'."
    )
    assert len(load("dataset: shards/test-*.jsonl\n").samples) == 5
    put("hub/data/test.jsonl", ROWS)
    with pytest.raises(UsageError, match="Name one with data, such as 'hub/data'"):
        load("dataset: hub\n")
