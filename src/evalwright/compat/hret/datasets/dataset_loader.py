"""A file as a dataset: one column is the question, one the answer, the others go along.

`published` reads with pandas, which guesses what cells are (`01` becomes 1, an empty answer `nan`,
a .tsv is split at commas). `corrected` takes every cell as it is written and reads .tsv at tabs,
and .json and .jsonl too.
"""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any

from evalwright.compat.hret.datasets.base import BaseDataset, filled, register_dataset
from evalwright.compat.hret.settings import Rows, check_parameters
from evalwright.extend import DatasetError, MissingExtra
from evalwright.tasks.data_files import listed
from evalwright.tasks.datasets.formats import SUFFIXES
from evalwright.tasks.datasets.opening import file_rows


@register_dataset("generic_file")
class GenericFileDataset(BaseDataset):
    """A local file. input_col, reference_col: its columns. Other arguments go to pandas' reader."""

    def __init__(
        self,
        dataset_name: str = "generic_file",
        file_path: str = "",
        input_col: str = "input",
        reference_col: str = "reference",
        subset: str | None = None,
        split: str = "test",
        base_prompt_template: str | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(dataset_name, split, subset, base_prompt_template, **kwargs)
        if not file_path:
            raise ValueError("generic_file needs file_path, the file to read.")
        self.file_path = str(file_path)
        self.input_col = input_col
        self.reference_col = reference_col
        self.loader_kwargs = kwargs

    def load(self) -> Rows:
        """The rows as samples.

        Raises ValueError for a format that cannot be read, DatasetError for a column that is not
        there.
        """
        self.refuse_subset()
        if self.split != "test" and not self.published:
            raise ValueError(f"A file has no splits: leave out split={self.split!r}.")
        self.notes = []
        self.left_out = 0
        columns = (self.input_col, self.reference_col)
        rows = self._rows()
        samples = []
        for column in columns if rows and not self.published else ():
            if column not in rows[0]:
                raise DatasetError(
                    f"'{self.file_path}' has no column '{column}'. It has:"
                    f" {listed(list(rows[0]))}."
                )
        for row in rows:
            cells = (row.get(column, "") for column in columns)
            text, reference = (
                "" if cell is None and not self.published else str(cell)
                for cell in cells
            )
            prompt = (
                filled(self.base_prompt_template, {"input": text})
                if self.base_prompt_template
                else text
            )
            other_columns = {name: row[name] for name in row if name not in columns}
            samples.append(
                {"input": prompt, "reference": reference, "metadata": other_columns}
            )
        return samples

    def get_raw_samples(self) -> Any:
        """The file as pandas reads it."""
        return self._frame()

    def info(self) -> dict[str, Any]:
        """Path and columns."""
        names = (
            "dataset_name",
            "file_path",
            "input_col",
            "reference_col",
            "split",
            "subset",
        )
        described = {"description": "generic_file: the rows of a local file."}
        return {name: getattr(self, name) for name in names} | described

    def _rows(self) -> list[dict[Any, Any]]:
        kind = Path(self.file_path).suffix.lower()
        if self.published or self.loader_kwargs:
            return list(self._frame().to_dict(orient="records"))
        if kind not in SUFFIXES:
            raise ValueError(f"Unsupported file extension: {kind}")
        return [dict(row) for row in file_rows(Path(self.file_path))]

    def _frame(self) -> Any:
        try:
            import pandas as pd
        except ImportError:
            raise MissingExtra(
                f"Reading '{self.file_path}' as HRET does", "hub", "pandas"
            ) from None
        kind = Path(self.file_path).suffix.lower()
        readers = {
            ".csv": pd.read_csv,
            ".tsv": pd.read_csv,
            ".xls": pd.read_excel,
            ".xlsx": pd.read_excel,
            ".parquet": pd.read_parquet,
        }
        if kind not in readers:
            arguments_note = (
                f", with arguments of pandas: {', '.join(self.loader_kwargs)}"
            )
            raise ValueError(
                "Unsupported file extension:"
                f" {kind}{arguments_note if self.loader_kwargs else ''}"
            )
        options = dict(self.loader_kwargs)
        check_parameters(
            "the dataset 'generic_file'",
            options,
            inspect.signature(readers[kind]).parameters,
        )
        if not self.published and kind != ".parquet":
            options = {"dtype": str, "keep_default_na": False, **options}
            if kind == ".tsv":
                options.setdefault("sep", "\t")
        return readers[kind](self.file_path, **options)
