"""JSONL by offset: any row, any order, whatever the line ends."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core import file_hashes
from evalwright.core.errors import DatasetError
from evalwright.tasks.datasets.formats import read_rows
from evalwright.tasks.datasets.jsonl_rows import (
    DECODER,
    FileSource,
    Rows,
    as_json,
    file_source,
    parse,
)


def kept(rows: Rows, wanted: Any = lambda row: True) -> Rows:
    for row, _ in rows.scan():
        if wanted(row):
            rows.keep()
    return rows


def test_rows_of_several_files_in_any_order(tmp_path: Path) -> None:
    for name, numbers in (("a", (1, 2)), ("empty", ()), ("b", (3,)), ("c", (4, 5))):
        (tmp_path / name).write_bytes(
            b"\xef\xbb\xbf\r\n" + b"".join(b'{"n": %d}\r\n\r\n' % n for n in numbers)
        )
    rows = kept(
        Rows([file_source(tmp_path / name) for name in ("a", "empty", "b", "c")])
    )
    assert [rows[index]["n"] for index in (4, 0, 2, 1, 3)] == [5, 1, 3, 2, 4]
    assert [rows.where(index).split("/")[-1] for index in range(5)] == [
        "a, row 1", "a, row 2", "b, row 1", "c, row 1", "c, row 2",
    ]  # fmt: skip
    assert rows.total == 5
    assert rows.label.endswith("a and 3 more")


def test_one_file_is_opened_once_until_it_changes(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text('{"n": 1}\n')
    first = file_source(path)
    assert file_source(path) is first
    path.write_text('{"n": 22}\n')
    assert file_source(path) is not first


def test_values_of_python_have_a_plain_form() -> None:
    import datetime
    import decimal

    row = {
        "d": datetime.date(2026, 1, 2),
        "b": b"\x00\xff",
        "n": decimal.Decimal("1.10"),
    }
    assert json.loads(as_json(row, "x")) == {
        "d": "2026-01-02",
        "b": "AP8=",
        "n": "1.10",
    }
    with pytest.raises(
        DatasetError,
        match=r"x: .*object cannot be stored as JSON",
    ):
        as_json({"a": object()}, "x")


@given(st.binary(max_size=40))
def test_no_line_raises_anything_but_a_dataset_error(line: bytes) -> None:
    try:
        assert isinstance(parse(line, lambda: "f, row 1"), dict)
    except DatasetError as error:
        assert str(error).startswith("f, row 1: ")
        assert "\n" not in str(error)


_SPACES = st.sampled_from(["", " ", "\t "])
_SCALARS = st.sampled_from(
    [
        *("1", "-0.0", "1e400", "1e5", "9" * 30, "0x1", "nul"),
        *("NaN", "Infinity", "true", "null"),
        *(
            '"a:b"',
            '"\\ud800"',
            '"\\ud83d\\ude00"',
            '"\\q"',
            '"',
            '""',
            '"é\\u0000"',
            '"\t"',
        ),
    ]
)


def _objects(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """JSON objects of few keys, so that some are repeated, with or without white space."""
    keys = st.sampled_from(['"a"', '"b"', '"a:"', '""', '"\\u0061"'])
    pairs = st.tuples(keys, _SPACES, _SPACES, values)
    written = pairs.map(lambda pair: f"{pair[0]}{pair[1]}:{pair[2]}{pair[3]}")
    return st.lists(written, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}")


def _lists(values: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    return st.lists(values, max_size=2).map(lambda parts: "[" + ", ".join(parts) + "]")


@given(
    _objects(st.recursive(_SCALARS, lambda v: _objects(v) | _lists(v), max_leaves=4))
)
def test_rows_are_read_quickly_as_they_are_read_strictly(text: str) -> None:
    try:
        strict = DECODER.decode(text)
        json.dumps(strict, ensure_ascii=False).encode()
    except ValueError:
        with pytest.raises(DatasetError, match=r"^f, row 1: "):
            parse(text.encode(), lambda: "f, row 1")
    else:
        assert repr(parse(text.encode(), lambda: "f, row 1")) == repr(strict)


@pytest.mark.parametrize(
    ("row", "why"),
    [
        ('{"a": NaN}', "it has NaN, which is no JSON"),
        ('{"a": [1, {"b": -Infinity}]}', "it has -Infinity, which is no JSON"),
        ('{"a": Infinity}', "it has Infinity, which is no JSON"),
        ('{"a": 1e999}', "it has the number 1e999, which is too large"),
        ('{"a": -1e999}', "it has the number -1e999, which is too large"),
        ('{"answer": "x", "answer": "y"}', "it has the key 'answer' twice"),
        ('{"a": {"b": 1, "c": 2, "b": 1}}', "it has the key 'b' twice"),
    ],
)
def test_what_says_nothing_certain_is_an_error_with_file_and_line(
    row: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("d.jsonl").write_text('{"a": 1.5e3}\n' + row + '\n{"a": 2}\n')
    with pytest.raises(
        DatasetError, match=rf"^d\.jsonl, row 2: this line is no row: {re.escape(why)}"
    ):
        kept(Rows([file_source(Path("d.jsonl"))]))
    Path("blank.jsonl").write_text('{"a": 1}\n\n\n' + row)
    with pytest.raises(
        DatasetError, match=rf"^blank\.jsonl, row 2 \(line 4\): .*{re.escape(why)}"
    ):
        kept(Rows([file_source(Path("blank.jsonl"))]))
    Path("d.json").write_text(f'[{{"a": 1}}, {row}]')
    with pytest.raises(DatasetError, match=rf"^d\.json, row 2: {re.escape(why)}"):
        list(read_rows(Path("d.json"), "json"))
    Path("k.json").write_text(f'{{"rows": [{{"a": 1}}, {row}]}}')
    with pytest.raises(DatasetError, match=rf"^k\.json: .*{re.escape(why)}"):
        list(read_rows(Path("k.json"), "json", "rows"))


def test_a_copy_of_a_table_may_have_what_json_has_not(tmp_path: Path) -> None:
    """A column of numbers in Parquet has NaN where a value is missing; the copy was written
    here.
    """
    (tmp_path / "copy.jsonl").write_bytes(
        as_json({"a": float("nan")}, "t.parquet, row 1")
    )
    (row,) = [
        row
        for row, _ in Rows([file_source(tmp_path / "copy.jsonl", "t.parquet")]).scan()
    ]
    assert row["a"] != row["a"]


def test_a_file_that_changes_after_its_noted_hash_was_used_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(file_hashes, "SETTLED_SECONDS", -1.0)
    monkeypatch.setattr(file_hashes, "_has_change_times", bool)
    path = tmp_path / "rows.jsonl"
    path.write_bytes(b'{"a": 1}\n' * 200_000)
    content = FileSource(path).content()
    source = FileSource(path)
    assert source.content() == content
    path.write_bytes(b'{"a": 22}\n' * 200_000)
    with pytest.raises(DatasetError, match="the file changed during the run"):
        source.read(0, 8)
