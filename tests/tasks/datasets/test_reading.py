"""Rows for readers of their own: from files, from memory, some of them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.core.errors import ConfigurationError, DatasetError, UnknownName
from evalwright.tasks.datasets.reading import open_dataset
from evalwright.tasks.templates import native


def lines(path: Path, count: int, start: int = 0) -> Path:
    path.write_text(
        "".join(json.dumps({"n": n}) + "\n" for n in range(start, start + count))
    )
    return path


def test_rows_of_files_with_their_places(tmp_path: Path) -> None:
    files = [lines(tmp_path / "a.jsonl", 3), lines(tmp_path / "b.jsonl", 2, 3)]
    rows = open_dataset({"path": files}, label=["first", "second"])
    assert [row["n"] for row in rows] == [0, 1, 2, 3, 4]
    assert rows[-1] == {"n": 4} and rows[1:3] == [{"n": 1}, {"n": 2}]
    assert rows.where(3) == "second, row 1"
    odd = open_dataset({"path": files}, keep=lambda row: row["n"] % 2 == 1, first=4)
    assert [row["n"] for row in odd] == [1, 3]
    assert [odd.place(index) for index in range(len(odd))] == [1, 3]


def test_rows_of_a_list_and_of_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("EVALWRIGHT_HOME", str(tmp_path / "home"))
    file = tmp_path / "rows.json"
    file.write_text('[{"n": 1}, {"n": 2}]')
    assert list(open_dataset({"path": file, "format": "json"})) == [{"n": 1}, {"n": 2}]
    rows = open_dataset({"rows": [{"n": 1}]}, label="What it gives")
    assert list(rows) == [{"n": 1}] and rows.where(0) == "What it gives, row 1"


def test_what_is_wrong_is_said_with_its_place(tmp_path: Path) -> None:
    file = lines(tmp_path / "a.jsonl", 1)
    with pytest.raises(UnknownName, match="'path'"):
        open_dataset({"paths": file})
    with pytest.raises(ConfigurationError, match="`hub`"):
        open_dataset({})
    condition = native("{{ missing > 1 }}")
    with pytest.raises(DatasetError, match=r"a\.jsonl, row 1"):
        open_dataset({"path": file}, keep=condition)
