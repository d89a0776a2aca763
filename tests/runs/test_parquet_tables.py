"""A run as Parquet files and back, byte for byte."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from evalwright.core.errors import RunError
from support.runs import make_run
from support.typed import typed

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")


def test_round_trip(tmp_path: Path) -> None:
    run = make_run(
        tmp_path / "runs",
        scores=[1, 0, None, 0.5],
        cluster_size=2,
        text="half a pair \ud800, \x00 and 中",
        name="one",
    )
    done = typed("export", "parquet", "one", folder=tmp_path)
    assert done.code == 0, done.text
    samples = pq.read_table(tmp_path / "parquet" / "one.samples.parquet")
    scores = pq.read_table(tmp_path / "parquet" / "one.scores.parquet").to_pylist()
    assert samples.column("outcome").to_pylist() == [
        "answered",
        "answered",
        "failed",
        "answered",
    ]
    assert samples.column("failure").to_pylist()[2].startswith("rate limited")
    assert [(row["id"], row["value"]) for row in scores] == [
        ("item-0", 1.0),
        ("item-1", 0.0),
        ("item-3", 0.5),
    ]
    done = typed(
        "import",
        "parquet",
        "parquet/one.samples.parquet",
        "--out",
        "again",
        folder=tmp_path,
    )
    assert done.code == 0, done.text
    for name in ("run.json", "samples.jsonl"):
        assert (tmp_path / "again" / "one" / name).read_bytes() == (
            run.folder / name
        ).read_bytes()


@pytest.mark.parametrize(
    ("rows", "facts", "told"),
    [
        ({"x": ["1"]}, {}, "was not written by"),
        ({"record": ["{}"]}, {"schema": 99, "id": "a"}, "does not read"),
        ({"record": ["{}"]}, {"schema": 1, "id": "a"}, "row 1 is not a record"),
        ({"record": ["["]}, {"schema": 1, "id": "a"}, "row 1 is not valid JSON"),
        ({"record": [None]}, {"schema": 1, "id": "a"}, "row 1 has no record"),
    ],
)
def test_broken_files_are_named(
    rows: dict[str, list[str]], facts: dict[str, object], told: str, tmp_path: Path
) -> None:
    from evalwright.cli.parquet import import_tables

    table = pa.table(rows)
    table = table.replace_schema_metadata(
        {b"evalwright.run": json.dumps(facts).encode()} if facts else {}
    )
    pq.write_table(table, tmp_path / "bad.parquet")
    with pytest.raises(RunError, match=told):
        import_tables(tmp_path / "bad.parquet", tmp_path / "runs", "")
    (tmp_path / "text.parquet").write_text("hello", encoding="utf-8")
    with pytest.raises(RunError, match="cannot be read as Parquet"):
        import_tables(tmp_path / "text.parquet", tmp_path / "runs", "")
    assert not list((tmp_path / "runs").glob("*/run.json"))


def test_what_unpacks_to_too_much_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from evalwright.cli.parquet import import_tables
    from evalwright.runs import parquet_tables

    run = make_run(tmp_path, scores=[1], text="x" * 10**6)
    (samples, _) = parquet_tables.write_tables(run, tmp_path)
    monkeypatch.setattr(parquet_tables, "MAX_RECORDS_BYTES", 1000)
    with pytest.raises(RunError, match="unpacks to more than"):
        import_tables(samples, tmp_path / "again", "")
