"""What every dataset class has, and the registry that names them. A class of a user needs no more than `load()`."""

from __future__ import annotations

import string
from collections.abc import Callable, Mapping
from typing import Any, Literal

from evalwright.compat.hret import settings
from evalwright.core.errors import MissingExtra

DATASET_REGISTRY: dict[str, type[Any]] = {}
"""The dataset classes by their names."""


class BaseDataset:
    """A dataset: a name, a split, subsets, a prompt template; other arguments go to whatever loads the rows.

    scoring: `published` or `corrected`; None takes what `set_scoring` chose. notes: what a person should know of the last `load`
    (rows left out, another split taken). left_out: how many rows it left out.
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
    def published(self) -> bool:
        """Whether samples are made as HRET makes them, faults included."""
        return (self.scoring or settings.scoring()) == "published"

    def load(self) -> list[dict[str, Any]]:
        """The samples: `input` and `reference`, and what else a scorer needs (`options`, `_subset_name`, `metadata`)."""
        raise NotImplementedError("Subclasses must implement load().")

    def get_raw_samples(self) -> Any:
        """The rows as they were read."""
        raise NotImplementedError("This is optional. Override if needed.")

    def info(self) -> dict[str, Any]:
        """What is known of the dataset; `evaluation_only` and `scaling_only` limit how it may be used."""
        return {"name": self.dataset_name, "split": self.split}


def register_dataset(name: str) -> Callable[[type[Any]], type[Any]]:
    """A decorator that gives a dataset class a name. Raises ValueError for a name that is taken."""

    def register(cls: type[Any]) -> type[Any]:
        if name in DATASET_REGISTRY:
            raise ValueError(f"Dataset '{name}' already registered.")
        if not callable(getattr(cls, "load", None)):
            raise TypeError(f"The dataset '{name}' needs a method load() that returns its samples.")
        DATASET_REGISTRY[name] = cls
        return cls

    return register


def load_datasets(name: str, split: str = "test", **kwargs: Any) -> Any:
    """An instance of the dataset of that name. Raises ValueError for an unknown one."""
    if name not in DATASET_REGISTRY:
        raise ValueError(f"Unknown dataset: {name}. Please register it in DATASET_REGISTRY.")
    return DATASET_REGISTRY[name](split=split, **kwargs)


def hub_rows(name: str, subset: str | None, split: str, options: Mapping[str, Any]) -> Any:
    """The rows of a hub dataset, through the library's own function, whatever it is at that time. Raises MissingExtra without it."""
    try:
        import datasets
    except ImportError:
        raise MissingExtra(f"The dataset '{name}'", "hub", "datasets") from None
    where = () if subset is None else (subset,)
    return datasets.load_dataset(name, *where, split=split, **options)


def filled(template: str, fields: Mapping[str, Any]) -> str:
    """A template with its fields in braces: plain names, nothing that is looked up inside a value or padded.

    Raises KeyError for a field that there is not, ValueError for anything but a plain name.
    """
    out: list[str] = []
    for text, name, spec, conversion in string.Formatter().parse(template):
        out.append(text)
        if name is None:
            continue
        if not name.isidentifier() or spec or conversion:
            raise ValueError(
                f"A field of a prompt template is a plain name in braces, not '{{{name}{':' + spec if spec else ''}}}'. Braces that "
                "are text are written twice."
            )
        out.append(str(fields[name]))
    return "".join(out)
