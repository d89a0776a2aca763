"""BenchHub: rows of many benchmarks in one table, chosen by what they are about.

A filter takes rows whose column contains one of its values (upper and lower case alike); a row
passes all filters. `published` keeps to that. `corrected` lets a value that some row has exactly
mean that value alone ("KBL" is not "KBLx"), unless `filter_match` says `substring` or `exact`; rows
are streamed where the library can, so that only those that pass are held; sampling has a seed of
its own.
"""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from evalwright.compat.hret.datasets.base import (
    BaseDataset,
    filled,
    hub_rows,
    register_dataset,
)
from evalwright.compat.hret.datasets.hub import tables
from evalwright.compat.hret.settings import Given, Rows
from evalwright.tasks.data_files import listed

FACETS = ("problem_type", "task_type", "target_type", "subject_type", "benchmark_name")
"""The columns that filters look at; a filter is called by the plural."""
TABLE = tables()["benchhub"]


@register_dataset("benchhub")
class BenchHubDataset(BaseDataset):
    """Rows of BenchHub, filtered and sampled. language: `ko` or `en`. filter_match: see the module;
    None is the mode's own.
    """

    def __init__(
        self,
        dataset_name: str = "benchhub",
        split: str = "train",
        language: str = "ko",
        base_prompt_template: str | None = None,
        sample_size: int | None = None,
        seed: int | None = None,
        problem_types: list[str] | None = None,
        task_types: list[str] | None = None,
        target_types: list[str] | None = None,
        subject_types: list[str] | None = None,
        benchmark_names: list[str] | None = None,
        chunk_size: int = 1000,
        hf_load_kwargs: dict[str, Any] | None = None,
        filter_match: Literal["exact", "substring"] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__(
            dataset_name,
            split,
            kwargs.pop("subset", None),
            base_prompt_template,
            **kwargs,
        )
        self.language = language.lower()
        if self.language not in ("ko", "en"):
            raise ValueError("Language must be 'ko' or 'en'.")
        if filter_match not in (None, "exact", "substring"):
            raise ValueError(
                f"filter_match is 'exact' or 'substring', not {filter_match!r}."
            )
        if sample_size is not None and sample_size < 0:
            raise ValueError(
                f"sample_size is how many rows to take, not {sample_size}."
            )
        self.repo_id = TABLE["hub"] + self.language.capitalize()
        self.sample_size = sample_size
        self.seed = seed
        self.chunk_size = chunk_size
        values_by_column = (
            problem_types,
            task_types,
            target_types,
            subject_types,
            benchmark_names,
        )
        self.filters = {
            column: [values] if isinstance(values, str) else list(values or ())
            for column, values in zip(FACETS, values_by_column, strict=True)
        }
        self.filter_match = filter_match
        self.hf_load_kwargs = {"name": "default", **(hf_load_kwargs or {})}

    def load(self) -> Rows:
        """The samples that pass the filters, sampled where `sample_size` says so.

        Raises ValueError for an unknown column of a template.
        """
        self.refuse_subset()
        self.notes = []
        self.left_out = 0
        samples = [self._sample(row) for row in self._chosen(self._rows())]
        if not self.published:
            with_reference = [sample for sample in samples if sample["reference"]]
            self.left_out = len(samples) - len(with_reference)
            if self.left_out:
                self.notes.append(
                    f"{self.left_out} rows without an answer were left out."
                )
            samples = with_reference
        if self.sample_size is not None and self.sample_size < len(samples):
            seed = self.seed if self.published else self.seed or 0
            samples = random.Random(seed).sample(samples, self.sample_size)
        return samples

    def get_raw_samples(self) -> Any:
        """The rows as the hub has them."""
        return self._read(self.split)

    def info(self) -> dict[str, Any]:
        """Name, repository, split, language and filters; after `load`, `notes` where there is
        something to say.
        """
        return {
            "dataset_name": self.dataset_name,
            "repo_id": self.repo_id,
            "split": self.split,
            "language": self.language,
            "description": (
                "benchhub: rows of many benchmarks, chosen by kind, ability, target and"
                " subject."
            ),
            "filters_applied": {
                f"{name}s": values or None for name, values in self.filters.items()
            },
            "huggingface_load_kwargs": self.hf_load_kwargs,
            "evaluation_only": None,
            **({"notes": list(self.notes)} if self.notes else {}),
        }

    def _read(self, split: str, **more: Any) -> Any:
        options = {
            key: value for key, value in self.hf_load_kwargs.items() if key != "name"
        }
        return hub_rows(
            self.repo_id, self.hf_load_kwargs["name"], split, options | more
        )

    def _rows(self) -> Iterable[Given]:
        if self.published:
            try:
                return self._read(self.split)  # type: ignore[no-any-return]
            except Exception as error:
                self.notes.append(f"The split '{self.split}' cannot be read: {error}")
                return []
        errors = []
        for split in dict.fromkeys((self.split, TABLE["split"])):
            for more in ({"streaming": True}, {}):
                try:
                    rows: Iterable[Given] = self._read(split, **more)
                except Exception as error:
                    errors.append(error)
                    continue
                if split != self.split:
                    self.notes.append(
                        f"There is no split '{self.split}'; the rows are of '{split}'."
                    )
                return rows
        raise errors[1]  # of the split that was named, read whole

    def _chosen(self, rows: Iterable[Given]) -> list[Given]:
        """The rows that pass.

        First by substrings; then values that some row has exactly count for those rows alone.
        """
        filters = {
            of: [allowed_value.lower() for allowed_value in allowed]
            for of, allowed in self.filters.items()
            if allowed
        }
        passing = [
            row
            for row in rows
            if all(_contains(row.get(of), filters[of]) for of in filters)
        ]
        match = self.filter_match or ("substring" if self.published else None)
        if match == "substring":
            return passing
        chosen = {}
        for of, allowed in filters.items():
            exact = {
                cell for row in passing for cell in _cells(row.get(of))
            }.intersection(allowed)
            chosen[of] = (
                exact,
                [
                    allowed_value
                    for allowed_value in allowed
                    if allowed_value not in exact and match is None
                ],
            )
        return [
            row
            for row in passing
            if all(
                exact.intersection(_cells(row.get(of))) or _contains(row.get(of), loose)
                for of, (exact, loose) in chosen.items()
            )
        ]

    def _sample(self, row: Given) -> dict[str, Any]:
        cells = {name: _joined(value) for name, value in row.items()}
        question = "\n".join(filter(None, (cells.get("context"), cells.get("prompt"))))
        options = _listed(row.get("options"))
        reference = cells.get("answer_str") or cells.get("answer", "")
        if self.published:
            reference = _joined(
                row.get("answer_str") or row.get("answer") or row.get("reference")
            )
        metadata = {
            name: cells.get(column, "") for name, column in TABLE["metadata"].items()
        }
        return {
            "input": (
                self._prompt(cells, question, options)
                if self.base_prompt_template
                else question
            ),
            "reference": reference,
            "options": options,
            "_subset_name": cells.get("benchmark_name") or "benchhub_default_subset",
            "metadata": {
                **metadata,
                "subject_type": _listed(row.get("subject_type")),
                "language": self.language,
            },
        }

    def _prompt(
        self, cells: Mapping[str, str], question: str, options: list[str]
    ) -> str:
        fields = {**cells, "query": question}
        if options or not self.published:
            fields["options_str"] = "\n".join(
                f"{place}. {option}" for place, option in enumerate(options, 1)
            )
        try:
            return filled(self.base_prompt_template or "", fields)
        except KeyError as error:
            if self.published:
                return question
            raise ValueError(
                f"The prompt template has the field {error}, and the rows have no such"
                f" column. They have: {listed(sorted(fields))}."
            ) from None


def _joined(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " | ".join(map(str, value))
    return "" if value is None or value != value else str(value)


def _listed(value: Any) -> list[str]:
    if isinstance(value, list | tuple):
        return [_joined(element) for element in value if element is not None]
    return [piece.strip() for piece in _joined(value).split("|") if piece.strip()]


def _cells(value: Any) -> list[str]:
    values = value if isinstance(value, list | tuple) else [value]
    return [_joined(element).lower() for element in values]


def _contains(value: Any, phrases: list[str]) -> bool:
    return any(phrase in cell for cell in _cells(value) for phrase in phrases)
