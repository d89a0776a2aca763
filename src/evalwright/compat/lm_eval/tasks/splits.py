"""The rows of a task: a hub data set, local files, or what the task's own Python makes, split by split.

Opened with the `datasets` library, because `process_docs` functions are written for its tables. Rows stay on disk.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.options import Options
from evalwright.compat.lm_eval.tasks.sources import checked_source
from evalwright.core.errors import DatasetError, EvalwrightError, MissingExtra, TaskError, cause_of


class Splits:
    """Opens a task's data, once."""

    def __init__(self, definition: Definition, options: Options) -> None:
        self.definition = definition
        self.options = options
        self._data: Any = None

    def questions(self) -> Any:
        """The rows that are asked: the test split, else the validation split."""
        config = self.definition.config
        name = config.test_split or config.validation_split
        if name is None:
            raise TaskError(f"The task '{config.task}' has neither a test nor a validation split.")
        return self._processed(name, config.process_docs)

    def pool(self) -> Any:
        """The rows that shots are drawn from, None where there are none."""
        config, shots = self.definition.config, self.definition.shots
        if shots.split is not None:
            return self._processed(shots.split, shots.process_docs)
        if shots.samples is not None:
            if callable(shots.samples):
                return self._called(shots.samples)
            return list(shots.samples)
        for name in (config.training_split, config.validation_split, config.test_split):
            if name is not None:
                return self._processed(name, config.process_docs)
        return None

    def _processed(self, split: str, process: Callable[..., Any] | None) -> Any:
        rows = self._split(split)
        return rows if process is None else self._called(process, rows)

    def _split(self, name: str) -> Any:
        if self._data is None:
            self._data = self._open()
        try:
            return self._data[name]
        except KeyError:
            there = ", ".join(sorted(map(str, self._data)))
            raise DatasetError(
                f"The data of the task '{self.definition.name}' have no split '{name}'; they have: {there}."
            ) from None

    def _open(self) -> Any:
        config = self.definition.config
        if config.custom_dataset is not None:
            made = config.custom_dataset
            given = {
                key: value
                for key, value in (config.dataset_kwargs or {}).items()
                if key != "trust_remote_code"
            }
            return self._called(lambda: made(**(config.metadata or {}), **given))
        if config.dataset_path is None:
            raise TaskError(f"The task '{config.task}' names no data set (`dataset_path`).")
        _require_library(config.dataset_path)
        path, settings = checked_source(self.definition, self.options)
        return _load(path, config.dataset_name, settings)

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """What a function of the task's gives, or a sentence that says that it failed."""
        try:
            with fixed_chance(), quiet():
                return function(*arguments)
        except EvalwrightError:
            raise
        except Exception as error:
            raise DatasetError(
                f"The Python of the task '{self.definition.name}' fails on its data: {type(error).__name__}: {error}."
            ) from error


def _require_library(path: str) -> None:
    try:
        import datasets  # noqa: F401
    except ImportError:
        raise MissingExtra(f"The data set '{path}'", "lm-eval", "datasets") from None


def _load(path: str, name: str | None, options: Mapping[str, Any]) -> Any:
    import datasets

    try:
        with quiet():
            return datasets.load_dataset(path, name, **options)
    except Exception as error:
        label = f"{path} ({name})" if name else path
        raise DatasetError(f"The data set '{label}' cannot be loaded: {cause_of(error)}.") from error


@contextmanager
def quiet() -> Iterator[None]:
    """No progress bars, and no results of earlier code taken from a cache of transformed tables."""
    try:
        import datasets
    except ImportError:
        yield
        return
    bars, caching = datasets.is_progress_bar_enabled(), datasets.is_caching_enabled()
    datasets.disable_progress_bar()
    datasets.disable_caching()
    try:
        yield
    finally:
        if bars:
            datasets.enable_progress_bar()
        if caching:
            datasets.enable_caching()


@contextmanager
def fixed_chance() -> Iterator[None]:
    """Python's random numbers begin at 0, as in the published runs, and go on afterwards as if nothing had been drawn."""
    state = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(state)
