"""Samples of BenchHub's rows as HRET makes them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from evalwright.compat.hret.datasets.benchhub_reader import (
    BenchHubReader,
    cells_of,
    joined,
    number_options,
)
from evalwright.compat.hret.examples import filled
from evalwright.compat.hret.row_samples import Given


class PublishedBenchHubReader(BenchHubReader):
    """A value means every cell that contains it."""

    def rows(self) -> Iterable[Given]:
        """None of a split that cannot be read."""
        dataset = self.dataset
        try:
            rows: Iterable[Given] = self.read(dataset.split)
        except Exception as error:
            dataset.notes.append(f"The split '{dataset.split}' cannot be read: {error}")
            return []
        return rows

    def chosen(self, passing: list[Given]) -> list[Given]:
        """All, unless the call wants exact values."""
        if self.dataset.filter_match != "exact":
            return passing
        return [
            row
            for row in passing
            if all(
                set(values).intersection(cells_of(row.get(column)))
                for column, values in self.filters.items()
            )
        ]

    def reference(self, row: Given, cells: Mapping[str, str]) -> str:
        """Of three columns the first that holds something."""
        return joined(
            row.get("answer_str") or row.get("answer") or row.get("reference")
        )

    def prompt(
        self, cells: Mapping[str, str], question: str, options: list[str]
    ) -> str:
        """The question alone where the template names what there is not."""
        fields = {**cells, "query": question}
        if options:
            fields["options_str"] = number_options(options)
        try:
            return filled(self.dataset.base_prompt_template or "", fields)
        except KeyError:
            return question
