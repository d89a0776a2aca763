"""CSV, TSV, JSON and Parquet: the same rows whatever the format, and errors that name the row."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import DatasetError, MissingExtra
from evalwright.tasks.datasets import formats
from evalwright.tasks.datasets.formats import read_rows


def rows_of(path: Path, kind: str, key: str | None = None) -> list[dict[str, Any]]:
    found = list(read_rows(path, kind, key))
    assert [number for number, _ in found] == list(range(1, len(found) + 1))
    return [row for _, row in found]


@pytest.mark.parametrize(("kind", "delimiter"), [("csv", ","), ("tsv", "\t")])
def test_separated_values(tmp_path: Path, kind: str, delimiter: str) -> None:
    path = tmp_path / "d"
    with path.open("w", encoding="utf-8-sig", newline="") as file:
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerows([["q", "a b"], ["one,\ttwo", "x\ny"], [], ['"quoted"', "é"]])
    assert rows_of(path, kind) == [
        {"q": "one,\ttwo", "a b": "x\ny"},
        {"q": '"quoted"', "a b": "é"},
    ]


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"a,b\n1,2\n3\n", "d.csv, row 2 (line 3): it has 1 cells, the header has 2."),
        (b"a,b\n1,2,3\n", "d.csv, row 1 (line 2): it has 3 cells, the header has 2."),
        (b"a,a\n1,2\n", "d.csv: the header has the column 'a' twice."),
        (b"a,\n1,2\n", "d.csv: a column of the header has no name."),
        (
            b'a,b\n1,2\n"x"y,2\n',
            "d.csv, row 2: this is not CSV: ',' expected after '\"'.",
        ),
        (
            b'a,b\n1,2\n"open,2\n',
            "d.csv, row 2: this is not CSV: unexpected end of data.",
        ),
        (b"a,b\n1,\xe9\n", "d.csv, row 1: the file is not UTF-8 text"),
        (b"a,b\n1,2\n3,\xe9\n", "d.csv, row 2: the file is not UTF-8 text"),
        (b"a,\xe9\n1,2\n", "d.csv, header: the file is not UTF-8 text"),
    ],
)
def test_broken_csv(tmp_path: Path, content: bytes, message: str) -> None:
    path = tmp_path / "d.csv"
    path.write_bytes(content)
    with pytest.raises(DatasetError) as caught:
        rows_of(path, "csv")
    assert message in str(caught.value)


@given(
    rows=st.lists(
        st.dictionaries(
            st.text("ab"), st.text(max_size=30) | st.integers() | st.none(), max_size=3
        ),
        max_size=12,
    ),
    chunk=st.sampled_from([1, 2, 7, 64]),
    indent=st.sampled_from([None, 2]),
)
def test_a_json_array_is_read_in_pieces_of_any_size(
    tmp_path_factory: pytest.TempPathFactory,
    rows: list[dict[str, Any]],
    chunk: int,
    indent: int | None,
) -> None:
    path = tmp_path_factory.mktemp("json") / "d.json"
    path.write_text(
        json.dumps(rows, indent=indent, ensure_ascii=False),
        encoding="utf-8",
        newline="",
    )
    whole = formats._CHUNK
    formats._CHUNK = chunk
    try:
        assert rows_of(path, "json") == rows
    finally:
        formats._CHUNK = whole


def test_a_list_inside_an_object(tmp_path: Path) -> None:
    path = tmp_path / "d.json"
    path.write_text(json.dumps({"version": 1, "data": {"rows": [{"a": 1}]}}))
    assert rows_of(path, "json", "data.rows") == [{"a": 1}]


@pytest.mark.parametrize(
    ("content", "key", "message"),
    [
        (
            '[{"a": 1}, {"a": 2},, {"a": 3}]',
            None,
            "d.json, row 3: this is not JSON: expecting value.",
        ),
        (
            '[{"a": 1} {"a": 2}]',
            None,
            "d.json, after row 1: a comma is missing, or the list ends too early.",
        ),
        (
            '[{"a": 1}, {"a": 2}',
            None,
            "d.json, after row 2: a comma is missing, or the list ends too early.",
        ),
        (
            '[{"a": 1}, {"a": ',
            None,
            "d.json, row 2: this is not JSON: expecting value.",
        ),
        (
            '[{"a": 1}, 5]',
            None,
            "d.json, row 2: a row must be an object of columns, not a whole number.",
        ),
        (
            '{"data": []}',
            None,
            "a JSON data file must be a list of rows; name the key of the list with `key:`.",
        ),
        ('"text"', None, "d.json: a JSON data file must be a list of rows."),
        ("", None, "d.json: a JSON data file must be a list of rows."),
        ('{"data": []}', "rows", "d.json: there is no key 'rows' in the file."),
        (
            '{"data": 5}',
            "data",
            "d.json: the key 'data' holds a whole number, not a list of rows.",
        ),
        ('{"data": [', "data", "d.json: this is not JSON"),
    ],
)
def test_broken_json(
    tmp_path: Path, content: str, key: str | None, message: str
) -> None:
    path = tmp_path / "d.json"
    path.write_text(content)
    with pytest.raises(DatasetError) as caught:
        rows_of(path, "json", key)
    assert message in str(caught.value)


def test_parquet_keeps_types(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow", reason="needs the parquet extra")
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "d.parquet"
    rows = [
        {"n": index, "list": ["a", "b"], "deep": {"x": None}, "flag": True}
        for index in range(3000)
    ]
    parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    assert rows_of(path, "parquet") == rows


def test_parquet_without_its_library(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(
        MissingExtra,
        match=r"'d.parquet'.*'pyarrow'.*pip install 'evalwright\[parquet\]'",
    ):
        rows_of(Path("d.parquet"), "parquet")


def test_broken_parquet(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow", reason="needs the parquet extra")
    path = tmp_path / "d.parquet"
    path.write_bytes(b"not parquet at all")
    with pytest.raises(DatasetError, match=r"d.parquet: .*cannot be read"):
        rows_of(path, "parquet")
