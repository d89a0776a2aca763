"""BenchHub: rows of many benchmarks in one table, chosen by what they are about.

A filter takes rows whose column contains one of its values (upper and lower case alike); a row
passes all filters. Which of them mean a value alone is for the rules, unless `filter_match` says
`substring` or `exact`.
"""

from __future__ import annotations

from typing import Any, Literal

from evalwright.compat.hret.datasets.base import BaseDataset, register_dataset
from evalwright.compat.hret.datasets.hub import definition_of
from evalwright.compat.hret.row_samples import Rows
from evalwright.compat.hret.tables import tables

FACETS = ("problem_type", "task_type", "target_type", "subject_type", "benchmark_name")
"""The columns that filters look at; a filter is called by the plural."""


@register_dataset("benchhub")
class BenchHubDataset(BaseDataset):
    """Rows of BenchHub, filtered and sampled. language: `ko` or `en`. filter_match: see the module;
    None is for the rules.
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
        task = tables()["datasets"]["benchhub"]["tasks"][self.language]
        source = definition_of(task)["dataset"]
        self.repo_id = source["hub"]
        self.default_split = source["split"]
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
        return self.rules.reader(self).samples()

    def get_raw_samples(self) -> Any:
        """The rows as the hub has them."""
        return self.rules.reader(self).raw()

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
