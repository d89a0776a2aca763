"""What every dataset class has, and the registry that names them.

A class of a user needs no more than `load()`.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

from evalwright.compat.hret.registry import Classes
from evalwright.compat.hret.row_samples import Given, Rows
from evalwright.compat.hret.rules import Rules, rules_of
from evalwright.extend import MissingExtra, hub_libraries

DATASET_REGISTRY = Classes(
    "dataset",
    "Unknown dataset: {name}. Please register it in DATASET_REGISTRY.",
    ("load",),
)
"""The dataset classes by their names."""


class BaseDataset:
    """A dataset: a name, a split, subsets, a prompt template; other arguments go to whatever loads
    the rows.

    scoring: `published` or `corrected`; None takes what `set_scoring` chose. notes: what a person
    should know of the last `load` (rows left out, another split taken). left_out: how many rows it
    left out.
    """

    scoring: Literal["published", "corrected"] | None = None

    def __init__(
        self,
        dataset_name: str,
        split: str = "test",
        subset: str | list[str] | None = None,
        base_prompt_template: str | None = None,
        **kwargs: Any,
    ) -> None:
        self.dataset_name = dataset_name
        self.split = split
        self.subset = subset
        self.base_prompt_template = base_prompt_template
        self.kwargs = kwargs
        self.notes: list[str] = []
        self.left_out = 0

    @property
    def rules(self) -> Rules:
        """Whether samples are made as HRET makes them, faults included."""
        return rules_of(self.scoring)

    def refuse_subset(self) -> None:
        """Refuse a subset of a dataset without any."""
        if self.subset:
            self.rules.refuse(
                ValueError(
                    f"'{self.dataset_name}' has no subsets: leave out"
                    f" subset={self.subset!r}."
                )
            )

    def load(self) -> Rows:
        """The samples: `input` and `reference`, and what else a scorer needs (`options`,
        `_subset_name`, `metadata`).
        """
        raise NotImplementedError("Subclasses must implement load().")

    def get_raw_samples(self) -> Any:
        """The rows as they were read."""
        raise NotImplementedError("This is optional. Override if needed.")

    def info(self) -> dict[str, Any]:
        """What is known of the dataset; `evaluation_only` and `scaling_only` limit how it may be
        used.
        """
        return {"name": self.dataset_name, "split": self.split}


register_dataset = DATASET_REGISTRY.register


def load_datasets(name: str, split: str = "test", **kwargs: Any) -> Any:
    """An instance of the dataset of that name. Raises ValueError for an unknown one."""
    return DATASET_REGISTRY.make(name, split=split, **kwargs)


def hub_rows(name: str, subset: str | None, split: str, options: Given) -> Any:
    """The rows of a hub dataset, through the library's own function, whatever it is at that time.

    Raises MissingExtra without it.
    """
    try:
        import datasets
    except ImportError:
        raise MissingExtra(f"The dataset '{name}'", "hub", "datasets") from None
    where = () if subset is None else (subset,)
    if Path(name).exists():
        return datasets.load_dataset(name, *where, split=split, **options)
    with hub_libraries(f"The dataset '{name}'", name):
        return datasets.load_dataset(name, *where, split=split, **options)
