"""Makes samples of BenchHub's rows: what HRET's and our reading have in common."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any

from evalwright.compat.hret.datasets.base import hub_rows
from evalwright.compat.hret.datasets.benchhub import BenchHubDataset
from evalwright.compat.hret.row_samples import Given, Row, Rows
from evalwright.compat.hret.tables import tables


class BenchHubReader:
    """Reads one selection of BenchHub."""

    def __init__(self, dataset: BenchHubDataset) -> None:
        self.dataset = dataset
        self.filters = {
            column: [allowed_value.lower() for allowed_value in allowed]
            for column, allowed in dataset.filters.items()
            if allowed
        }

    def samples(self) -> Rows:
        """The samples that pass the filters, drawn where a number of them is wanted."""
        dataset = self.dataset
        passing = [row for row in self.rows() if self._contains_all(row)]
        samples = self.with_references(
            [self._sample(row) for row in self.chosen(passing)]
        )
        size = dataset.sample_size
        if size is None or size >= len(samples):
            return samples
        return random.Random(self.seed()).sample(samples, size)

    def raw(self) -> Any:
        """The rows as the hub has them."""
        return self.read(self.dataset.split)

    def read(self, split: str, **more: Any) -> Any:
        """A split, from the hub."""
        arguments = self.dataset.hf_load_kwargs
        options = {key: value for key, value in arguments.items() if key != "name"}
        return hub_rows(self.dataset.repo_id, arguments["name"], split, options | more)

    def rows(self) -> Iterable[Given]:
        """The rows of the split."""
        raise NotImplementedError

    def chosen(self, passing: list[Given]) -> list[Given]:
        """Of the rows whose cells contain a value of each filter, those that are meant."""
        raise NotImplementedError

    def with_references(self, samples: Rows) -> Rows:
        """The samples that can be scored."""
        return samples

    def seed(self) -> int | None:
        """Seeds the drawing."""
        return self.dataset.seed

    def reference(self, row: Given, cells: Mapping[str, str]) -> str:
        """The answer of a row."""
        raise NotImplementedError

    def prompt(
        self, cells: Mapping[str, str], question: str, options: list[str]
    ) -> str:
        """The template of the call, filled."""
        raise NotImplementedError

    def _contains_all(self, row: Given) -> bool:
        return all(
            contains(row.get(column), values) for column, values in self.filters.items()
        )

    def _sample(self, row: Given) -> Row:
        cells = {name: joined(value) for name, value in row.items()}
        question = "\n".join(filter(None, (cells.get("context"), cells.get("prompt"))))
        options = split_cell(row.get("options"))
        columns = tables()["datasets"]["benchhub"]["metadata"]
        metadata = {name: cells.get(column, "") for name, column in columns.items()}
        return {
            "input": (
                self.prompt(cells, question, options)
                if self.dataset.base_prompt_template
                else question
            ),
            "reference": self.reference(row, cells),
            "options": options,
            "_subset_name": cells.get("benchmark_name") or "benchhub_default_subset",
            "metadata": {
                **metadata,
                "subject_type": split_cell(row.get("subject_type")),
                "language": self.dataset.language,
            },
        }


def number_options(options: list[str]) -> str:
    """A line for each option, counted from 1."""
    return "\n".join(
        f"{option_number}. {option}" for option_number, option in enumerate(options, 1)
    )


def joined(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " | ".join(map(str, value))
    return "" if value is None or value != value else str(value)


def split_cell(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [joined(element) for element in value if element is not None]
    return [piece.strip() for piece in joined(value).split("|") if piece.strip()]


def cells_of(value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [joined(element).lower() for element in values]


def contains(value: Any, phrases: list[str]) -> bool:
    return any(phrase in cell for cell in cells_of(value) for phrase in phrases)
