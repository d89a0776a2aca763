"""A file whose cells are taken as they are written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from evalwright.compat.hret.datasets.file_reader import FileReader
from evalwright.compat.hret.names import listed
from evalwright.compat.hret.row_samples import Row
from evalwright.extend import DatasetError, read_rows


class CorrectedFileReader(FileReader):
    """Reads with our own readers, with pandas where the call has arguments of it."""

    def rows(self) -> list[Row]:
        """The rows.

        Raises ValueError for a format that cannot be read.
        """
        if self.dataset.loader_kwargs:
            return super().rows()
        try:
            rows = read_rows(Path(self.dataset.file_path))
        except DatasetError:
            raise ValueError(f"Unsupported file extension: {self.suffix}") from None
        return [dict(row) for row in rows]

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
