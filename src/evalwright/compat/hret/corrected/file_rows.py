"""A file whose cells are taken as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.compat.hret.datasets.file_reader import FileReader
from evalwright.compat.hret.names import listed
from evalwright.compat.hret.row_samples import Row
from evalwright.extend import DatasetError
from evalwright.tasks.datasets.formats import SUFFIXES
from evalwright.tasks.datasets.opening import file_rows


class CorrectedFileReader(FileReader):
    """Reads with our own readers, with pandas where the call has arguments of it."""

    def rows(self) -> list[Row]:
        """The rows.

        Raises ValueError for a format that cannot be read.
        """
        if self.dataset.loader_kwargs:
            return super().rows()
        if self.suffix not in SUFFIXES:
            raise ValueError(f"Unsupported file extension: {self.suffix}")
        return [dict(row) for row in file_rows(Path(self.dataset.file_path))]

    def check_columns(self, row: Row) -> None:
        """Raise DatasetError for a column that is not there."""
        for column in (self.dataset.input_col, self.dataset.reference_col):
            if column not in row:
                raise DatasetError(
                    f"'{self.dataset.file_path}' has no column '{column}'. It has:"
                    f" {listed(list(row))}."
                )

    def text_of(self, cell: Any) -> str:
        """An empty cell is an empty text."""
        return "" if cell is None else str(cell)

    def defaults(self) -> dict[str, Any]:
        """What keeps pandas from guessing."""
        if self.suffix == ".parquet":
            return {}
        separator = {"sep": "\t"} if self.suffix == ".tsv" else {}
        return {"dtype": str, "keep_default_na": False, **separator}
