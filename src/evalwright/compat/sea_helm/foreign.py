"""Loader and metric classes of a SEA-HELM folder that are in no table here: its own Python, run in this process once a person trusts it.

What such code imports of SEA-HELM is here in short: a logger, a task's configuration, the bases of loaders and metrics. The rest comes
from its own folder, or is installed.
"""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from evalwright.compat.sea_helm.config import Class, Row, SeaTask
from evalwright.compat.sea_helm.scoring import normalised, plain, standard_error
from evalwright.core.errors import TaskError, closest
from evalwright.tasks.files import is_within

_OWN = ("src", "seahelm_tasks")
_NOT_TAKEN = {"prompt_formatter", "update_conversation", "generate_formatted_conversation"}


class Config(dict[str, Any]):
    """A mapping whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        return Config(found) if isinstance(found := self.get(name), dict) else found


class TaskConfig:
    """What a task's classes are told of it; file names are absolute."""

    def __init__(self, task: SeaTask) -> None:
        paths = {
            key: task.root / str(task.here.get(key)) for key in ("filepath", "example_filepath") if task.root
        }
        here = {**task.here, **{key: str(path) for key, path in paths.items() if path.is_file()}}
        self.config = Config({**task.config, "languages": {task.language: here}})
        self.task_name, self.lang, self.is_base_model = task.name, task.language, task.base


class Loader:
    """The base of loaders: one sets `dataset` in `load_dataset`, and `example_dataset` in `load_example_dataset`."""

    dataset: Any = None
    example_dataset = dataframe = dataset
    num_workers = 1

    def __init__(self, task_config: TaskConfig, default_num_in_context_examples: int = 0, **_: Any) -> None:
        self.task_config, self.task_name, self.lang = task_config, task_config.task_name, task_config.lang
        self.specific_task_config = task_config.config["languages"][self.lang]
        self.fewshot_num_examples = default_num_in_context_examples

    def update_individual_scores(self, scores: Sequence[Any]) -> None:
        """A score of each row."""
        self.dataframe["individual_scores"] = list(scores)


class Metric:
    """The base of metrics: one says in `calculate_metrics` what a frame of rows and responses comes to."""

    response_column, postprocessed_response_column, label_column = "responses", "cleaned_responses", "label"
    regex_string = ""
    normalize_answer, normalize_score = staticmethod(plain), staticmethod(normalised)
    calculate_stderr = staticmethod(standard_error)

    def __init__(self, dataloader: Loader, task_config: TaskConfig, **_: Any) -> None:
        self.dataloader, self.task_config = dataloader, task_config
        self.task, self.lang = task_config.task_name, task_config.lang

    def extract_response(self, response: Sequence[str], flags: int = 0, whole: bool = True) -> str | None:
        """What the class's pattern finds in the first reply, else the reply."""
        found = re.search(self.regex_string, response[0], flags) if self.regex_string else None
        return found[1].strip() if found else response[0].strip() if whole else None

    def evaluate_responses(self, drop_error_response: bool = False) -> dict[str, Any]:
        """The numbers, by the task's name."""
        self.postprocess_responses()
        return {self.task: self.calculate_metrics()}  # type: ignore[attr-defined]

    def postprocess_responses(self) -> None:
        """Fill the column of what was read in the responses."""
        frame = self.dataloader.dataframe
        frame[self.postprocessed_response_column] = frame[self.response_column].map(self.extract_response)


_SHIM: dict[str, Any] = {
    "base_logger": {"get_logger": logging.getLogger}, "task_config": {"TaskConfig": TaskConfig},
    "metrics.seahelm_metric": {"SeaHelmMetric": Metric}, "dataloaders.base_dataloader": {"AbstractDataloader": Loader},
    "dataloaders.huggingface_dataloader": {"HuggingFaceDataloader": Loader},
}  # fmt: skip


@contextmanager
def running(task: SeaTask, what: str) -> Iterator[None]:
    """`src` and `seahelm_tasks` are those of the folder, with the shim in them; then what they were. Raises TaskError for what is raised."""
    before = {name: sys.modules.pop(name) for name in [*sys.modules] if name.partition(".")[0] in _OWN}
    for name in (*_OWN, "src.metrics", "src.dataloaders", *(f"src.{name}" for name in _SHIM)):
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(
            _SHIM.get(name[4:], {"__path__": [f"{task.root}/{name.replace('.', '/')}"]})
        )
    try:
        yield
    except (Exception, SystemExit) as error:
        raise TaskError(f"{what}, which raises {type(error).__name__}: {error}.") from error
    finally:
        for name in [one for one in sys.modules if one.partition(".")[0] in _OWN]:
            del sys.modules[name]
        sys.modules.update(before)


def class_of(task: SeaTask, file: str, name: str, known: Iterable[Class]) -> Any:
    """A class of the folder. known: those that need no trust, which may be meant. Raises TaskError where its file is not trusted, is not in the folder, or has no such class."""
    path, what = (task.root or Path()) / file, f"The task '{task.name}' needs the class {name} of '{file}'"
    names = file.removesuffix(".py").split("/")
    if (
        path.suffix != ".py"
        or names[0] not in _OWN
        or ".." in names
        or not is_within(path, task.root or path)
    ):
        raise TaskError(f"{what}, which is not known here and is no Python file in src or seahelm_tasks.")
    if not any(path.resolve().is_relative_to(Path(one).expanduser().resolve()) for one in task.trust):
        near = [f"Did you mean {one}? Else read" for one in closest(name, [one for _, one in known])[:1]]
        trust = f"{''.join(near) or 'Read'} that file, then allow it with --trust '{task.root}'."
        raise TaskError(
            f"{what}, which is not known here, and whose Python is not run unless you trust it. {trust}"
        )
    with running(task, what):
        return getattr(import_module(".".join(names)), name)


def foreign_rows(task: SeaTask, examples: int, known: Iterable[Class]) -> list[Row]:
    """The rows that a class of the folder loads, or its examples. known: as of `class_of`. Raises TaskError."""
    kind = class_of(task, *(task.loaded_by or ("", "")), known)
    what = f"The task '{task.name}' is loaded by its own class {kind.__name__}"
    if own := sorted(_NOT_TAKEN & vars(kind).keys()):
        raise TaskError(f"{what}, whose own `{own[0]}` makes prompts: that is not taken over.")
    with running(task, what):
        loader = kind(TaskConfig(task), examples, is_base_model=task.base)
        loader.load_example_dataset(examples) if examples else loader.load_dataset(None)
        return [dict(row) for row in (loader.example_dataset if examples else loader.dataset)]
