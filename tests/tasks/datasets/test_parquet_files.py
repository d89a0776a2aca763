"""Parquet: the rows that pyarrow gives, and the lines that `as_json` makes of them."""

from __future__ import annotations

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from evalwright.core.errors import DatasetError
from evalwright.tasks.datasets import parquet_files
from evalwright.tasks.datasets.formats import read_lines, read_rows
from evalwright.tasks.datasets.jsonl_rows import as_json

pyarrow = pytest.importorskip("pyarrow", reason="needs the parquet extra")
parquet = pytest.importorskip("pyarrow.parquet")

COLUMNS: dict[str, list[Any]] = {
    "text": ["plain", "", "é😀", 'a "b"', "\\", "\n", "\x00", "{}%s"],
    "gaps": ["a", None, "c", None, None, '"', "\t", ""],
    "whole": [0, -1, 2**62, 3, 4, 5, 6, 7],
    "whole gaps": [0, None, 2, None, 4, 5, 6, 7],
    "float": [0.1, -0.0, 1e300, float("nan"), float("inf"), 5e-324, 3.0, None],
    "flag": [True, False, None, True, True, True, False, False],
    "empty": [None] * 8,
    "list": [["a", '"'], [], None, ["\n"], ["b"], [], [], []],
    "deep": [{"x": [1, None], "y": {"z": "é"}}] * 8,
    "bytes": [b"\x00\xff", b"", None, b"a", b"b", b"c", b"d", b"e"],
    "time": [datetime(2026, 1, 2, 3, 4, 5, 6, tzinfo=UTC), *[None] * 7],
    "decimal": [Decimal("1.10"), *[None] * 7],
    '"the"\n%s name': ["x"] * 8,
}


@pytest.mark.parametrize("batch_rows", [1, 3, 128])
def test_lines_are_those_of_the_rows(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, batch_rows: int
) -> None:
    monkeypatch.setattr(parquet_files, "MAX_BATCH_ROWS", batch_rows)
    path = tmp_path / "d.parquet"
    table = pyarrow.table(COLUMNS)
    coded = table.column("text").dictionary_encode()
    parquet.write_table(table.append_column("coded", coded), path, row_group_size=5)
    rows = parquet.read_table(path).to_pylist()
    expected = [(number, as_json(row, "")) for number, row in enumerate(rows, 1)]
    assert list(read_lines(path, "parquet")) == expected
    assert str(list(read_rows(path, "parquet"))) == str(list(enumerate(rows, 1)))


def test_of_columns_with_the_same_name_the_last_counts(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    cells = [pyarrow.array(["first"]), pyarrow.array([1]), pyarrow.array(["last"])]
    parquet.write_table(pyarrow.Table.from_arrays(cells, ["a", "b", "a"]), path)
    assert list(read_lines(path, "parquet")) == [(1, b'{"a": "last", "b": 1}\n')]
    assert list(read_rows(path, "parquet")) == [(1, {"a": "last", "b": 1})]


def test_a_row_that_is_no_json_is_named(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    duration = pyarrow.array([None, None, 5], pyarrow.duration("s"))
    parquet.write_table(pyarrow.table({"a": [1, 2, 3], "b": duration}), path)
    lines = read_lines(path, "parquet")
    assert [next(lines), next(lines)] == [
        (1, b'{"a": 1, "b": null}\n'),
        (2, b'{"a": 2, "b": null}\n'),
    ]
    with pytest.raises(
        DatasetError, match=r"d.parquet, row 3: .*timedelta cannot be stored as JSON"
    ):
        next(lines)


def test_text_that_is_not_utf8_is_an_error_of_the_file(tmp_path: Path) -> None:
    path = tmp_path / "d.parquet"
    text = pyarrow.array([b"\xff"]).cast(pyarrow.string(), safe=False)
    parquet.write_table(pyarrow.table({"a": text}), path)
    for reader in (read_rows, read_lines):
        with pytest.raises(DatasetError, match="the Parquet file cannot be read"):
            list(reader(path, "parquet"))


@pytest.mark.parametrize(
    "times",
    [
        pyarrow.array([2**30], pyarrow.date32()),
        pyarrow.array([-9 * 10**17], pyarrow.timestamp("us")),
        pyarrow.array([[9 * 10**18]], pyarrow.list_(pyarrow.duration("ms"))),
    ],
    ids=["date", "timestamp", "duration in a list"],
)
def test_a_time_beyond_those_of_python_is_an_error_of_the_file(
    tmp_path: Path, times: Any
) -> None:
    path = tmp_path / "d.parquet"
    parquet.write_table(pyarrow.table({"a": times}), path)
    for reader in (read_rows, read_lines):
        with pytest.raises(DatasetError, match="the Parquet file cannot be read"):
            list(reader(path, "parquet"))
