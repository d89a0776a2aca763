"""Samples of BenchHub's rows, mended.

A value that some row has exactly means that value alone ("KBL" is not "KBLx"); rows are streamed
where the library can, so that only those that pass are held; drawing has a seed of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalwright.compat.hret.datasets.benchhub_reader import (
    BenchHubReader,
    cells_of,
    contains,
    number_options,
)
from evalwright.compat.hret.examples import filled
from evalwright.compat.hret.names import listed
from evalwright.compat.hret.row_samples import Given, Rows


class CorrectedBenchHubReader(BenchHubReader):
    """Every sample has an answer."""

    def rows(self) -> Iterable[Given]:
        """Of the dataset's own split, where there is none of that name."""
        dataset = self.dataset
        errors = []
        for split in dict.fromkeys((dataset.split, dataset.default_split)):
            for more in ({"streaming": True}, {}):
                try:
                    rows: Iterable[Given] = self.read(split, **more)
                except Exception as error:
                    errors.append(error)
                    continue
                if split != dataset.split:
                    dataset.notes.append(
                        f"There is no split '{dataset.split}'; the rows are of"
                        f" '{split}'."
                    )
                return rows
        raise errors[1]  # of the split that was named, read whole

    def chosen(self, passing: list[Given]) -> list[Given]:
        """Values that some row has exactly count for those rows alone."""
        match = self.dataset.filter_match
        if match == "substring":
            return passing
        exact_by_column = {}
        loose_by_column = {}
        for column, values in self.filters.items():
            present = {cell for row in passing for cell in cells_of(row.get(column))}
            exact = present.intersection(values)
            loose = [value for value in values if value not in exact]
            exact_by_column[column] = exact
            loose_by_column[column] = loose if match is None else []
        return [
            row
            for row in passing
            if all(
                exact.intersection(cells_of(row.get(column)))
                or contains(row.get(column), loose_by_column[column])
                for column, exact in exact_by_column.items()
            )
        ]

    def with_references(self, samples: Rows) -> Rows:
        """Those that have a reference."""
        with_reference = [sample for sample in samples if sample["reference"]]
        dataset = self.dataset
        dataset.left_out = len(samples) - len(with_reference)
        if dataset.left_out:
            dataset.notes.append(
                f"{dataset.left_out} rows without an answer were left out."
            )
        return with_reference

    def seed(self) -> int | None:
        """0 where none is given."""
        return self.dataset.seed or 0

    def reference(self, row: Given, cells: Mapping[str, str]) -> str:
        """The answer's text."""
        return cells.get("answer_str") or cells.get("answer", "")

    def prompt(
        self, cells: Mapping[str, str], question: str, options: list[str]
    ) -> str:
        """Raises ValueError for a field that is no column."""
        fields = {**cells, "query": question, "options_str": number_options(options)}
        try:
            return filled(self.dataset.base_prompt_template or "", fields)
        except KeyError as error:
            raise ValueError(
                f"The prompt template has the field {error}, and the rows have no such"
                f" column. They have: {listed(sorted(fields))}."
            ) from None
