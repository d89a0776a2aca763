"""Makes samples of the rows of a file: what HRET's and our reading have in common."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from evalwright.compat.hret.datasets.dataset_loader import GenericFileDataset
from evalwright.compat.hret.examples import filled
from evalwright.compat.hret.registry import check_parameters
from evalwright.compat.hret.row_samples import Row, Rows
from evalwright.extend import MissingExtra


class FileReader:
    """Reads one file."""

    def __init__(self, dataset: GenericFileDataset) -> None:
        self.dataset = dataset
        self.suffix = Path(dataset.file_path).suffix.lower()

    def samples(self) -> Rows:
        """The rows as samples."""
        dataset = self.dataset
        columns = (dataset.input_col, dataset.reference_col)
        rows = self.rows()
        if rows:
            self.check_columns(rows[0])
        samples = []
        for row in rows:
            text, reference = (self.text_of(row.get(column, "")) for column in columns)
            template = dataset.base_prompt_template
            prompt = filled(template, {"input": text}) if template else text
            other_columns = {name: row[name] for name in row if name not in columns}
            samples.append(
                {"input": prompt, "reference": reference, "metadata": other_columns}
            )
        return samples

    def raw(self) -> Any:
        """The file as pandas reads it."""
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra(
                f"Reading '{self.dataset.file_path}' as HRET does", "hub", "pandas"
            ) from None
        readers = {
            ".csv": pd.read_csv,
            ".tsv": pd.read_csv,
            ".xls": pd.read_excel,
            ".xlsx": pd.read_excel,
            ".parquet": pd.read_parquet,
        }
        options = dict(self.dataset.loader_kwargs)
        if self.suffix not in readers:
            with_arguments = f", with arguments of pandas: {', '.join(options)}"
            raise ValueError(
                "Unsupported file extension:"
                f" {self.suffix}{with_arguments if options else ''}"
            )
        read = readers[self.suffix]
        check_parameters(
            "the dataset 'generic_file'", options, inspect.signature(read).parameters
        )
        return read(self.dataset.file_path, **{**self.defaults(), **options})

    def rows(self) -> list[Row]:
        """The rows, as pandas reads them."""
        return list(self.raw().to_dict(orient="records"))

    def check_columns(self, row: Row) -> None:
        """Raise DatasetError for a column that is not there."""

    def text_of(self, cell: Any) -> str:
        """A cell as text."""
        return str(cell)

    def defaults(self) -> dict[str, Any]:
        """Arguments of pandas' reader that the call may replace."""
        return {}
