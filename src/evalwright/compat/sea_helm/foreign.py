"""Loader and metric classes of a SEA-HELM folder that are in no table here: its own Python, once a
person trusts it, in a process of its own.

That process (`LimitedProcess`) has the folder as its working folder, none of our keys, and no say
in ours: what it answers is plain values. What such code imports of SEA-HELM is here in short: a
logger, a task's configuration, the bases of loaders and metrics. The rest comes from its own
folder, or is installed.
"""

from __future__ import annotations

import atexit
import base64
import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from threading import Lock, Timer
from types import ModuleType
from typing import Any

from evalwright.compat.sea_helm.sea_task import Class, Row, SeaTask, log
from evalwright.extend import (
    LimitedProcess,
    LimitExceeded,
    RaisedInProcess,
    TaskError,
    call_with_limits,
    closest_names,
    is_within,
)

_OWN = ("src", "seahelm_tasks")
_NOT_TAKEN = {
    "prompt_formatter",
    "update_conversation",
    "generate_formatted_conversation",
}
_KEPT = (
    "HF_DATASETS_CACHE",
    "HF_HOME",
    "HF_HUB_OFFLINE",
    "HOME",
    "LANG",
    "LC_ALL",
    "PATH",
    "TMPDIR",
)
"""What the process has of the environment."""
_SECONDS = 600.0
_TOLD = 20.0
"""That a class has for one answer, and after how many of them that is told."""
_processes: dict[Path | None, LimitedProcess] = {}
_given_up: dict[tuple[Path | None, Class], str] = {}
_turn = Lock()


@atexit.register
def end_workers() -> None:
    """End all processes; whoever waits for an answer waits no longer."""
    while _processes:
        _processes.popitem()[1].close()


def _call_class(task: SeaTask, what: str, kind: str, *arguments: Any) -> Any:
    """What the process answers. given: the class first. what: for errors.

    Raises TaskError, in the words of what its code raised, or for one that ended or was ended,
    which is not asked again.
    """
    environment = {name: os.environ[name] for name in _KEPT if name in os.environ}
    new_process = LimitedProcess(task.root, environment, memory=None, patience=_SECONDS)
    process = _processes.setdefault(task.root, new_process)
    named = arguments[0]
    notice_text = (
        "The class %s of '%s' has been at work for %d seconds; it is given up after %d."
    )
    with _turn:
        if (task.root, named) in _given_up:
            raise TaskError(_given_up[task.root, named])
        notice = Timer(
            _TOLD, log.warning, (notice_text, named[1], task.name, _TOLD, _SECONDS)
        )
        notice.start()
        try:
            return call_with_limits(
                _answer, task, kind, *arguments, seconds=_SECONDS, process=process
            )
        except RaisedInProcess as error:
            raise TaskError(f"{what}: {error.kind}: {error}.") from None
        except LimitExceeded as error:
            if _processes.get(task.root) is process:  # not as the run was interrupted
                _given_up[task.root, named] = f"{what}: {error}."
            raise TaskError(f"{what}: {error}.") from None
        finally:
            notice.cancel()


def check_trusted(task: SeaTask, named: Class, known_classes: Iterable[Class]) -> None:
    """Raise TaskError for a class whose file is not trusted or is not in the folder. known: those
    that need no trust, which may be meant.
    """
    file, name = named
    path = (task.root or Path()) / file
    subject = f"The task '{task.name}' needs the class {name} of '{file}'"
    is_in_folder = (
        path.suffix == ".py"
        and file.split("/")[0] in _OWN
        and ".." not in file.split("/")
    )
    if not is_in_folder or not is_within(path, task.root or path):
        raise TaskError(
            f"{subject}, which is not known here and is no Python file in src or"
            " seahelm_tasks."
        )
    if not any(
        path.resolve().is_relative_to(Path(trusted).expanduser().resolve())
        for trusted in task.trust
    ):
        near = "".join(
            f"Did you mean {class_name}? "
            for class_name in closest_names(
                name, [class_name for _, class_name in known_classes]
            )[:1]
        )
        trust = (
            f"{near}{'Else read' if near else 'Read'} that file, then allow it with"
            f" --trust '{task.root}'."
        )
        if task.root is None:
            trust = (
                f"{near}Results alone do not have it: its recorded scores are all that"
                " is known of it."
            )
        raise TaskError(
            f"{subject}, which is not known here, and whose Python is not run unless you"
            f" trust it. {trust}"
        )
    _given_up.pop((task.root, named), None)
    _call_class(task, f"{subject}, which cannot be loaded", "found", named)


def foreign_rows(
    task: SeaTask, examples: int, known_classes: Iterable[Class]
) -> list[dict[str, Any]]:
    """The rows that a class of the folder loads, or its examples. known: as of `check_trusted`.

    Raises TaskError.
    """
    named = task.loaded_by or ("", "")
    check_trusted(task, named, known_classes)
    subject = (
        f"The task '{task.name}' is loaded by its own class {named[1]}, which fails"
    )
    rows = _call_class(task, subject, "rows", named, examples)
    if not isinstance(rows, list) or not all(isinstance(row, dict) for row in rows):
        raise TaskError(f"{subject}: it gives no rows.")
    return rows


def foreign_numbers(
    task: SeaTask, rows: Sequence[Row]
) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """The numbers of a task's own metric class over rows with their responses, and what it gives to
    each row. Raises TaskError.
    """
    subject = (
        f"The metric of '{task.name}' is its own class {task.scored_by[1]}, which fails"
    )
    numbers, row_numbers = _call_class(
        task, subject, "numbers", task.scored_by, [dict(row) for row in rows]
    )
    return numbers, row_numbers


# -- in the process: what the folder's classes find there ------------------------------


class Config(dict[str, Any]):
    """A mapping whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        return Config(nested) if isinstance(nested := self.get(name), dict) else nested


class TaskConfig:
    """What a task's classes are told of it."""

    def __init__(self, task: SeaTask) -> None:
        self.config = Config(task.config)
        self.is_base_model = task.base
        self.task_name = task.name
        self.lang = task.language


class Loader:
    """The base of loaders: one sets `dataset` in `load_dataset`, and `example_dataset` in
    `load_example_dataset`.
    """

    dataset: Any = None
    example_dataset = dataframe = dataset
    num_workers = 1

    def __init__(
        self,
        task_config: TaskConfig,
        default_num_in_context_examples: int = 0,
        **_: Any,
    ) -> None:
        self.task_config = task_config
        self.task_name = task_config.task_name
        self.lang = task_config.lang
        self.specific_task_config = task_config.config["languages"][self.lang]
        self.fewshot_num_examples = default_num_in_context_examples

    def update_individual_scores(self, scores: Sequence[Any]) -> None:
        """A score of each row."""
        self.dataframe["individual_scores"] = list(scores)


class Metric:
    """The base of metrics: one says in `calculate_metrics` what a frame of rows and responses comes
    to.
    """

    response_column = "responses"
    postprocessed_response_column = "cleaned_responses"
    label_column = "label"
    regex_string = ""

    def __init__(self, dataloader: Loader, task_config: TaskConfig, **_: Any) -> None:
        self.dataloader = dataloader
        self.task_config = task_config
        self.task = task_config.task_name
        self.lang = task_config.lang

    def drop_error_responses(self) -> None:
        """Leave out rows with a reply that is None."""
        frame = self.dataloader.dataframe
        self.dataloader.dataframe = frame[
            [None not in responses for responses in frame[self.response_column]]
        ].copy()

    def replace_error_responses(self, replacement: str = "") -> None:
        """Put a text where a reply is None."""
        frame = self.dataloader.dataframe
        replaced = [
            [replacement if response is None else response for response in responses]
            for responses in frame[self.response_column]
        ]
        frame[self.response_column] = replaced

    def extract_response(
        self,
        response: Sequence[str],
        flags: int = 0,
        return_original_response_on_failure: bool = True,
    ) -> str | None:
        """What the class's pattern finds in the first reply, else the reply."""
        match = (
            re.search(self.regex_string, response[0], flags)
            if self.regex_string
            else None
        )
        if match and match[1] is not None:
            return match[1].strip()
        return response[0].strip() if return_original_response_on_failure else None

    def evaluate_responses(self, drop_error_response: bool = False) -> dict[str, Any]:
        """The numbers, by the task's name."""
        self.postprocess_responses()
        return {self.task: self.calculate_metrics()}  # type: ignore[attr-defined]

    def postprocess_responses(self) -> None:
        """Fill the column of what was read in the responses."""
        frame = self.dataloader.dataframe
        frame[self.postprocessed_response_column] = frame[self.response_column].map(
            self.extract_response
        )


def _install() -> None:
    """Put the modules of SEA-HELM that the folder's code imports in their place."""
    from evalwright.compat.sea_helm.published.scoring import (
        normalised,
        plain,
        standard_error,
    )

    helpers: dict[str, Any] = {
        "normalize_answer": plain,
        "normalize_score": normalised,
        "calculate_stderr": standard_error,
    }
    for name, function in helpers.items():
        setattr(Metric, name, staticmethod(function))
    loaders = {"AbstractDataloader": Loader, "HuggingFaceDataloader": Loader}
    shim: dict[str, dict[str, Any]] = {
        "base_logger": {"get_logger": logging.getLogger},
        "task_config": {"TaskConfig": TaskConfig},
        "metrics.seahelm_metric": {"SeaHelmMetric": Metric},
        "dataloaders.base_dataloader": loaders,
        "dataloaders.huggingface_dataloader": loaders,
    }
    for name in (
        *_OWN,
        "src.metrics",
        "src.dataloaders",
        *(f"src.{name}" for name in shim),
    ):
        sys.modules[name] = ModuleType(name)
        path = {"__path__": [str(Path(*name.split(".")).resolve())]}
        vars(sys.modules[name]).update(shim.get(name[4:], path))


def _answer(task: SeaTask, kind: str, named: Class, argument: Any = None) -> Any:
    """kind: what is asked of the class: whether it is `foreign_class`, its `rows` (given: how many
    examples), its `numbers` over rows that are given.
    """
    if _OWN[0] not in sys.modules:
        _install()
    file, name = named
    foreign_class = getattr(
        import_module(".".join(file.removesuffix(".py").split("/"))), name
    )
    config = TaskConfig(task)
    answer: Any = None
    if kind == "rows":
        if overridden := sorted(_NOT_TAKEN & vars(foreign_class).keys()):
            raise TypeError(
                f"its own `{overridden[0]}` makes prompts, which is not taken over"
            )
        loader = foreign_class(config, argument, is_base_model=task.base)
        loader.load_example_dataset(argument) if argument else loader.load_dataset(None)
        answer = [
            dict(row)
            for row in (loader.example_dataset if argument else loader.dataset)
        ]
    elif kind == "numbers":
        loader = Loader(config)
        loader.dataframe = import_module("pandas").DataFrame(argument)
        numbers = foreign_class(loader, config).evaluate_responses()[task.name]
        if not isinstance(numbers, Mapping) or task.metric not in numbers:
            what_it_gives = (
                f"only {', '.join(map(str, numbers))}"
                if isinstance(numbers, Mapping)
                else f"a {type(numbers).__name__}"
            )
            raise KeyError(f"it gives {what_it_gives}, and no number '{task.metric}'")
        answer = numbers, list(loader.dataframe.get("individual_scores", ()))
    return json.loads(json.dumps(answer, default=_plain))


def _plain(value: Any) -> Any:
    """Arrays and their numbers as lists and numbers, images as base64."""
    if hasattr(value, "tolist"):
        return value.tolist()
    return base64.b64encode(value).decode() if isinstance(value, bytes) else str(value)
