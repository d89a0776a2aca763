"""Opens a task's data, split by split: a hub dataset, local files, or what its Python generates.

It uses the `datasets` library, because `process_docs` functions expect its tables. Rows stay on
disk. A task file comes from a stranger: it may not open other addresses, files outside its folders,
archives or pickles, unless the user trusts its folder, whose Python may then run anyway (unpickling
stays refused).
"""

from __future__ import annotations

import glob
import pkgutil
import random
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from evalwright import EvalwrightError
from evalwright.compat.lm_eval.tasks.config import Definition
from evalwright.compat.lm_eval.tasks.functions import advice
from evalwright.compat.lm_eval.tasks.options import Options, trust_advice
from evalwright.extend import (
    DatasetError,
    MissingExtra,
    TaskError,
    cause_of,
    hub_libraries,
)

FORMATS = ("arrow", "csv", "json", "parquet", "text")
"""Builders of the library `datasets` that only read data."""

_SETTINGS = {
    "column_names",
    "columns",
    "data_dir",
    "data_files",
    "delimiter",
    "encoding",
    "features",
    "field",
    "header",
    "keep_linebreaks",
    "names",
    "quotechar",
    "quoting",
    "revision",
    "sample_by",
    "sep",
    "skiprows",
    "streaming",
    "verification_mode",
}
_HUB_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]*(/[A-Za-z0-9][A-Za-z0-9_.-]*)?")
_HUB_FILE = re.compile(
    r"hf://datasets/[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*(@[\w.-]+)?/[^:]+"
)
_ARCHIVES = (
    b"\x1f\x8b",
    b"PK\x03\x04",
    b"PK\x05\x06",
    b"BZh",
    b"\xfd7zXZ\x00",
    b"\x28\xb5\x2f\xfd",
    b"\x04\x22\x4d\x18",
    b"7z\xbc\xaf\x27\x1c",
    b"Rar!",
)
"""First bytes of files that `datasets` would unpack, whatever their name."""


def check_source(
    definition: Definition, options: Options
) -> tuple[str, dict[str, Any]]:
    """The path and settings for `datasets.load_dataset`.

    Raises TaskError for anything that is not allowed.
    """
    config = definition.config
    path = str(config.dataset_path)
    dataset_kwargs = dict(config.dataset_kwargs or {})
    dataset_kwargs.pop("trust_remote_code", None)
    if path == "pandas":
        raise TaskError(
            f"The task '{config.task}' reads pickled data (`dataset_path: pandas`),"
            " which could run any program when it is opened. Keep the data as"
            f" {', '.join(FORMATS[1:-1])} or {FORMATS[-1]}."
        )
    folder = definition.folder
    folders = [*([folder] if folder else []), *options.folders()]
    if folder is not None and options.trusts(folder):
        if path in FORMATS and dataset_kwargs.get("data_files") is not None:
            dataset_kwargs["data_files"] = _map_names(
                dataset_kwargs["data_files"],
                lambda name: _find_files(str(name), folders) or name,
            )
        return path, dataset_kwargs
    try:
        return _check_untrusted(path, dataset_kwargs, folders, options)
    except _Refused as error:
        allow = (
            f" To allow it, trust the task's folder: {trust_advice(folder)}."
            if folder
            else ""
        )
        raise TaskError(f"The task '{config.task}' {error}.{allow}") from None


class _Refused(Exception):
    """Something that is not allowed, as the end of a sentence about the task."""


def _check_untrusted(
    path: str, settings: dict[str, Any], folders: Sequence[Path], options: Options
) -> tuple[str, dict[str, Any]]:
    if unknown_settings := sorted(map(str, settings.keys() - _SETTINGS)):
        raise _Refused(
            f"has the setting `dataset_kwargs.{unknown_settings[0]}`; known are"
            f" {', '.join(sorted(_SETTINGS))}"
        )
    files = settings.get("data_files")
    if path in FORMATS:
        if files is None or settings.get("data_dir") is not None:
            raise _Refused("must name each file in `dataset_kwargs.data_files`")
        return path, {
            **settings,
            "data_files": _map_names(
                files, lambda name: _resolve_local(name, folders, options)
            ),
        }
    if not _HUB_ID.fullmatch(path) or path in _builders():
        raise _Refused(
            f"has the `dataset_path` '{path}': only data sets of the hub and"
            f" {', '.join(FORMATS)} are read"
        )
    settings |= {
        key: _map_names(settings[key], _in_repository)
        for key in ("data_files", "data_dir")
        if settings.get(key) is not None
    }
    # A folder here of the same name is not the data set that was meant.
    return f"hf://datasets/{path}" if Path(path).exists() else path, settings


def _builders() -> set[str]:
    from datasets import packaged_modules

    return {module.name for module in pkgutil.iter_modules(packaged_modules.__path__)}


def _map_names(value: Any, check: Any) -> Any:
    """Apply a check to every name in a value, and replace each by its result."""
    if isinstance(value, Mapping):
        return {str(key): _map_names(child, check) for key, child in value.items()}
    if isinstance(value, list | tuple):
        checked = [check(child) for child in value]
        return [
            name
            for replacement in checked
            for name in (
                replacement if isinstance(replacement, list) else [replacement]
            )
        ]
    return check(value)


def _in_repository(name: Any) -> str:
    text = str(name)
    outside = (
        text.startswith(("/", "\\", "~")) or ".." in Path(text).parts or ":" in text
    )
    if outside and not (_HUB_FILE.fullmatch(text) and ".." not in text):
        raise _Refused(
            f"reads '{text}', which is not a file of its data set on the hub"
        )
    return text


def _resolve_local(name: Any, folders: Sequence[Path], options: Options) -> Any:
    """The files that a name or pattern matches; a file on the hub is returned unchanged."""
    text = str(name)
    if _HUB_FILE.fullmatch(text) and ".." not in text:
        return text
    if ":" in text:
        raise _Refused(f"reads '{text}': addresses are not opened")
    if files := _find_files(text, folders):
        return [_check_inside(file, text, folders, options) for file in files]
    raise DatasetError(f"The data file '{text}' does not exist.")


def _find_files(text: str, folders: Sequence[Path]) -> list[str]:
    """Local files that match a pattern, in the working folder or the first folder with any."""
    for pattern in (Path.cwd() / text, *(folder / text for folder in folders)):
        matches = [str(pattern)]
        if glob.has_magic(text):
            matches = sorted(glob.glob(str(pattern), recursive=True))  # noqa: PTH207
        if files := [match for match in matches if Path(match).is_file()]:
            return files
    return []


def _check_inside(
    file: str, name: str, folders: Sequence[Path], options: Options
) -> str:
    """Return the path of a file that `name` in a task file means, if the task may read it."""
    resolved = Path(file).resolve()
    if not (
        any(resolved.is_relative_to(folder.resolve()) for folder in folders)
        or options.is_beside(resolved)
    ):
        raise _Refused(
            f"reads '{file}', which is outside its folder '{folders[0]}'."
            f"{_advise_on_file_beside(name, folders)} Or name a folder that holds both:"
            " --task-root (of `evalwright lm-eval`: --include_path; from Python:"
            " include_path)"
        )
    try:
        with resolved.open("rb") as opened:
            start = opened.read(8)
    except OSError as error:
        raise DatasetError(
            f"The data file '{file}' cannot be read: {error.strerror}."
        ) from None
    if start.startswith(_ARCHIVES):
        raise _Refused(f"reads '{file}', which is compressed; unpack it")
    return str(resolved)


def _advise_on_file_beside(name: str, folders: Sequence[Path]) -> str:
    """Say how to read a file beside the task file rather than that of the working folder."""
    beside = [folder for folder in folders if (folder / name).is_file()]
    if not beside:
        return " Move the file there."
    return (
        f" One of that name lies beside the task file, but names of files count from the"
        f" working folder, as in lm_eval: to read it, run the command in '{beside[0]}'."
    )


class Splits:
    """Opens a task's data, once.

    The tables are those of the library `datasets`, which a task's Python works on; only the way to
    the hub is ours.
    """

    def __init__(self, definition: Definition, options: Options) -> None:
        self.definition = definition
        self.options = options
        self._data: Any = None

    def questions(self) -> Any:
        """The rows to evaluate: the test split, else the validation split."""
        config = self.definition.config
        name = config.test_split or config.validation_split
        if name is None:
            raise TaskError(
                f"The task '{config.task}' has neither a test nor a validation split."
            )
        return self._load_split(name, config.process_docs)

    def pool(self) -> Any:
        """The rows that few-shot examples are drawn from; None if there are none."""
        config = self.definition.config
        shots = self.definition.shots
        if shots.split is not None:
            return self._load_split(shots.split, shots.process_docs)
        if shots.samples is not None:
            if callable(shots.samples):
                return self._call(shots.samples)
            return list(shots.samples)
        for name in (config.training_split, config.validation_split, config.test_split):
            if name is not None:
                return self._load_split(name, config.process_docs)
        return None

    def _load_split(self, split: str, process: Callable[..., Any] | None) -> Any:
        rows = self._split(split)
        return rows if process is None else self._call(process, rows)

    def _split(self, name: str) -> Any:
        if self._data is None:
            self._data = self._open()
        try:
            return self._data[name]
        except KeyError:
            split_names = ", ".join(sorted(map(str, self._data)))
            raise DatasetError(
                f"The data of the task '{self.definition.name}' have no split '{name}';"
                f" they have: {split_names}."
            ) from None

    def _open(self) -> Any:
        config = self.definition.config
        if (make_dataset := config.custom_dataset) is not None:
            dataset_kwargs = dict(config.dataset_kwargs or {})
            dataset_kwargs.pop("trust_remote_code", None)
            return self._call(
                lambda: make_dataset(**(config.metadata or {}), **dataset_kwargs)
            )
        if config.dataset_path is None:
            raise TaskError(
                f"The task '{config.task}' names no data set (`dataset_path`)."
            )
        try:
            import datasets
        except ImportError:
            raise MissingExtra(
                f"The data set '{config.dataset_path}'", "lm-eval", "datasets"
            ) from None
        path, settings = check_source(self.definition, self.options)
        label = f"{path} ({config.dataset_name})" if config.dataset_name else path
        repository = path.removeprefix("hf://datasets/")
        is_on_hub = (
            path not in FORMATS
            and _HUB_ID.fullmatch(repository)
            and not Path(path).exists()
        )
        try:
            with quiet(), ExitStack() as of_hub:
                if is_on_hub:
                    of_hub.enter_context(
                        hub_libraries(f"The data set '{label}'", repository)
                    )
                return datasets.load_dataset(path, config.dataset_name, **settings)
        except DatasetError:
            raise
        except Exception as error:
            raise DatasetError(
                f"The data set '{label}' cannot be loaded: {cause_of(error)}."
            ) from error

    def _call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function of the task; its errors become a DatasetError."""
        problem = f"The Python of the task '{self.definition.name}' fails on its data"
        with reported(DatasetError, problem), fixed_chance(), quiet():
            return function(*arguments)


@contextmanager
def reported(error_type: type[EvalwrightError], problem: str) -> Iterator[None]:
    """Convert exceptions of foreign Python to our errors, with advice on what to install."""
    try:
        yield
    except EvalwrightError:
        raise
    except Exception as error:
        raise error_type(
            f"{problem}: {type(error).__name__}: {error}.{advice(error)}"
        ) from error


@contextmanager
def quiet() -> Iterator[None]:
    """Disable progress bars and the cache of transformed tables."""
    with ExitStack() as cleanup:
        with suppress(ImportError):
            import datasets

            for name in ("progress_bar", "caching"):
                if getattr(datasets, f"is_{name}_enabled")():
                    cleanup.callback(getattr(datasets, f"enable_{name}"))
                getattr(datasets, f"disable_{name}")()
        yield


@contextmanager
def fixed_chance() -> Iterator[None]:
    """Seed Python's random numbers with 0, as in published runs; restore their state afterwards."""
    state = random.getstate()
    random.seed(0)
    try:
        yield
    finally:
        random.setstate(state)
