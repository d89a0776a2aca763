"""Parquet files as a stream of rows, or of the lines of their JSONL copy.

They are read a column at a time, and columns of text are encoded together.
"""

from __future__ import annotations

from collections.abc import Iterator
from json.encoder import encode_basestring
from operator import add
from pathlib import Path
from typing import Any

from evalwright.core.errors import DatasetError, MissingExtra
from evalwright.tasks.datasets.jsonl_rows import Row, as_json, encode_cells
from evalwright.tasks.yaml_files import shown_path

SMALL_BYTES = 1 << 28
"""Any file may hold that many bytes of rows."""
MAX_EXPANSION = 200
"""How many times its size a larger file may hold."""
MAX_BATCH_ROWS = 128


def parquet_rows(path: Path) -> Iterator[tuple[int, Row]]:
    """Yield the rows of a Parquet file, numbered from 1.

    Args:
        path: the file.

    Raises:
        DatasetError: the file cannot be read, or holds far more than its size.
        MissingExtra: pyarrow is not installed.
    """
    number = 0
    for columns in _column_batches(path):
        for cells in zip(*columns.values(), strict=True):
            number += 1
            yield number, dict(zip(columns, cells, strict=True))


def parquet_lines(path: Path) -> Iterator[tuple[int, bytes]]:
    """Yield the rows as lines of JSONL, as `as_json` encodes them, numbered from 1.

    Args:
        path: the file.

    Raises:
        DatasetError: the file cannot be read, holds far more than its size, or a row cannot be
            written as JSON.
        MissingExtra: pyarrow is not installed.
    """
    number = 0
    for columns in _column_batches(path):
        names = [f"{encode_basestring(name)}: " for name in columns]
        try:
            encoded_columns = [encode_cells(cells) for cells in columns.values()]
        except (TypeError, ValueError):  # of which row, says `as_json`
            for cells in zip(*columns.values(), strict=True):
                number += 1
                row = dict(zip(columns, cells, strict=True))
                yield number, as_json(row, f"{shown_path(path)}, row {number:,}")
            continue
        for encoded_cells in zip(*encoded_columns, strict=True):
            number += 1
            members = ", ".join(map(add, names, encoded_cells))
            yield number, f"{{{members}}}\n".encode()


def _column_batches(path: Path) -> Iterator[dict[str, list[Any]]]:
    """Yield the cells of some rows at a time, by column."""
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise MissingExtra(
            f"Reading '{shown_path(path)}'", "parquet", "pyarrow"
        ) from None
    try:
        with pyarrow.parquet.ParquetFile(path) as file:
            yield from _columns_of(file, path)
    except (
        OSError,
        OverflowError,
        UnicodeDecodeError,
        pyarrow.ArrowException,
    ) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise DatasetError(
            f"{shown_path(path)}: the Parquet file cannot be read: {reason}."
        ) from None


def _columns_of(file: Any, path: Path) -> Iterator[dict[str, list[Any]]]:
    """Yield the cells of an open file, unless it holds far more than its size."""
    file_bytes = path.stat().st_size
    most_bytes = max(SMALL_BYTES, MAX_EXPANSION * file_bytes)
    group_bytes = [
        file.metadata.row_group(group_index).total_byte_size
        for group_index in range(file.num_row_groups)
    ]
    too_much = DatasetError(
        f"{shown_path(path)}: the Parquet file holds more than {most_bytes >> 20:,} MiB of"
        f" rows, which is {most_bytes // max(file_bytes, 1):,} times its own"
        " size; if that is meant, write it as JSONL."
    )
    if sum(group_bytes) > most_bytes:
        raise too_much
    # A cell that is stored once may be repeated in every row.
    batch_rows = min(MAX_BATCH_ROWS, max(1, most_bytes // max([1, *group_bytes])))
    n_bytes = 0
    for batch in file.iter_batches(batch_size=batch_rows, use_threads=False):
        # Of columns with the same name the last one counts.
        columns = dict(zip(batch.schema.names, batch.columns, strict=True))
        cells_by_name = {name: column.to_pylist() for name, column in columns.items()}
        n_bytes += sum(map(_sizes_of, cells_by_name.values()))
        if n_bytes > most_bytes:
            raise too_much
        yield cells_by_name


def _sizes_of(cells: list[Any]) -> int:
    """Return the length of all cells that are text, bytes or lists."""
    return sum(len(cell) for cell in cells if isinstance(cell, (str, bytes, list)))
