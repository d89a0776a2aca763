"""A file as a dataset: one column is the question, one the answer, the others go along."""

from __future__ import annotations

from typing import Any

from evalwright.compat.hret.datasets.base import BaseDataset, register_dataset
from evalwright.compat.hret.row_samples import Rows


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
        if self.split != "test":
            self.rules.refuse(
                ValueError(f"A file has no splits: leave out split={self.split!r}.")
            )
        self.notes = []
        self.left_out = 0
        return self.rules.reader(self).samples()

    def get_raw_samples(self) -> Any:
        """The file as pandas reads it."""
        return self.rules.reader(self).raw()

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
