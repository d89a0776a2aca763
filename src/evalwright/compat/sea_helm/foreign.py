"""Loader and metric classes of a SEA-HELM folder that are in no table here: its own Python, once a person trusts it, in a process of its own.

That process has the folder as its working folder, none of our keys, and no say in ours: what it is asked and what it answers are lines of JSON. What
such code imports of SEA-HELM is here in short: a logger, a task's configuration, the bases of loaders and metrics. The rest comes from its own
folder, or is installed.
"""

from __future__ import annotations

import atexit
import json
import logging
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from queue import SimpleQueue
from threading import Lock, Thread, Timer
from types import ModuleType
from typing import Any

from evalwright.compat.sea_helm.config import Class, Row, SeaTask
from evalwright.core.errors import TaskError, closest
from evalwright.tasks.files import is_within

_OWN = ("src", "seahelm_tasks")
_NOT_TAKEN = {"prompt_formatter", "update_conversation", "generate_formatted_conversation"}
_KEPT = ("HF_DATASETS_CACHE", "HF_HOME", "HF_HUB_OFFLINE", "HOME", "LANG", "LC_ALL", "PATH", "TMPDIR")
"""What the process has of the environment."""
_SECONDS = 600.0
_START = "import json, sys; sys.path[:] = json.loads(sys.argv[1]); from evalwright.compat.sea_helm.foreign import serve; serve()"


class _Worker:
    """The process in which the Python of a folder runs. It is started when it is first asked, and ends with ours."""

    def __init__(self, root: Path) -> None:
        self._root, self._lock = root, Lock()
        self._process: subprocess.Popen[str] | None = None

    def ask(self, question: Mapping[str, Any]) -> Any:
        """What it answers. Raises ValueError, in the words of what its code raised, or for one that ended or was ended."""
        with self._lock:
            if self._process is None:
                kept = {name: os.environ[name] for name in _KEPT if name in os.environ}
                path = json.dumps([one or str(Path.cwd()) for one in sys.path])
                command, pipe = [sys.executable, "-c", _START, path], subprocess.PIPE
                self._process = subprocess.Popen(
                    command, stdin=pipe, stdout=pipe, stderr=subprocess.DEVNULL, text=True, cwd=self._root, env=kept,
                    start_new_session=True,  # Ctrl-C is for us alone
                )  # fmt: skip
            assert self._process.stdin is not None and self._process.stdout is not None
            guard = Timer(_SECONDS, self._process.kill)
            guard.start()
            try:
                self._process.stdin.write(json.dumps(question, default=str) + "\n")
                self._process.stdin.flush()
                answer = json.loads(self._process.stdout.readline())
            except (OSError, ValueError):
                self.end()
                raise ValueError(f"its process ended, or took longer than {_SECONDS:g} seconds") from None
            finally:
                guard.cancel()
        if raised := answer.get("raised"):
            raise ValueError(raised)
        return answer["found"]

    def end(self) -> None:
        """End the process; the next question starts another."""
        if self._process is not None:
            self._process.kill()
            self._process.communicate()
            self._process = None


_workers: dict[Path | None, _Worker] = {}


@atexit.register
def end_workers() -> None:
    """End all processes."""
    while _workers:
        _workers.popitem()[1].end()


def _asked(task: SeaTask, kind: str, name: Class, what: str, **more: Any) -> Any:
    facts = {"name": task.name, "language": task.language, "base": task.base, "config": task.config}
    try:
        worker = _workers.setdefault(task.root, _Worker(task.root or Path()))
        return worker.ask({"kind": kind, "class": name, "task": facts, **more})
    except ValueError as error:
        raise TaskError(f"{what}: {error}.") from None


def check_trusted(task: SeaTask, named: Class, known: Iterable[Class]) -> None:
    """Raise TaskError for a class whose file is not trusted or is not in the folder. known: those that need no trust, which may be meant."""
    file, name = named
    path, what = (task.root or Path()) / file, f"The task '{task.name}' needs the class {name} of '{file}'"
    own = path.suffix == ".py" and file.split("/")[0] in _OWN and ".." not in file.split("/")
    if not own or not is_within(path, task.root or path):
        raise TaskError(f"{what}, which is not known here and is no Python file in src or seahelm_tasks.")
    if not any(path.resolve().is_relative_to(Path(one).expanduser().resolve()) for one in task.trust):
        near = [f"Did you mean {one}? Else read" for one in closest(name, [one for _, one in known])[:1]]
        trust = f"{''.join(near) or 'Read'} that file, then allow it with --trust '{task.root}'."
        raise TaskError(
            f"{what}, which is not known here, and whose Python is not run unless you trust it. {trust}"
        )
    _asked(task, "found", named, f"{what}, which cannot be had")


def foreign_rows(task: SeaTask, examples: int, known: Iterable[Class]) -> list[Row]:
    """The rows that a class of the folder loads, or its examples. known: as of `check_trusted`. Raises TaskError."""
    named = task.loaded_by or ("", "")
    check_trusted(task, named, known)
    what = f"The task '{task.name}' is loaded by its own class {named[1]}, which fails"
    found = _asked(task, "rows", named, what, examples=examples)
    if not isinstance(found, list) or not all(isinstance(one, dict) for one in found):
        raise TaskError(f"{what}: it gives no rows.")
    return found


def foreign_numbers(task: SeaTask, rows: Sequence[Row]) -> tuple[Mapping[str, Any], Sequence[Any]]:
    """The numbers of a task's own metric class over rows with their responses, and what it gives to each row. Raises TaskError."""
    what = f"The metric of '{task.name}' is its own class {task.scored_by[1]}, which fails"
    numbers, each = _asked(task, "numbers", task.scored_by, what, rows=[dict(row) for row in rows])
    return numbers, each


# -- in the process: what the folder's classes find there -----------------------------------------------------------------


class Config(dict[str, Any]):
    """A mapping whose keys are attributes too."""

    def __getattr__(self, name: str) -> Any:
        return Config(found) if isinstance(found := self.get(name), dict) else found


class TaskConfig:
    """What a task's classes are told of it."""

    def __init__(self, task: Mapping[str, Any]) -> None:
        self.config, self.is_base_model = Config(task["config"]), task["base"]
        self.task_name, self.lang = task["name"], task["language"]


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


def serve() -> None:
    """Answer questions until there are no more; what the folder's code prints goes nowhere, and its input is empty."""
    from evalwright.compat.sea_helm.scoring import normalised, plain, standard_error

    asked, answers = os.fdopen(os.dup(0)), os.fdopen(os.dup(1), "w")
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, 0)
    os.dup2(nothing, 1)
    helpers: dict[str, Any] = {
        "normalize_answer": plain,
        "normalize_score": normalised,
        "calculate_stderr": standard_error,
    }
    for name, function in helpers.items():
        setattr(Metric, name, staticmethod(function))
    loaders = {"AbstractDataloader": Loader, "HuggingFaceDataloader": Loader}
    shim: dict[str, dict[str, Any]] = {
        "base_logger": {"get_logger": logging.getLogger}, "task_config": {"TaskConfig": TaskConfig},
        "metrics.seahelm_metric": {"SeaHelmMetric": Metric}, "dataloaders.base_dataloader": loaders,
        "dataloaders.huggingface_dataloader": loaders,
    }  # fmt: skip
    for name in (*_OWN, "src.metrics", "src.dataloaders", *(f"src.{name}" for name in shim)):
        sys.modules[name] = ModuleType(name)
        vars(sys.modules[name]).update(
            shim.get(name[4:], {"__path__": [str(Path(*name.split(".")).resolve())]})
        )
    lines: SimpleQueue[str] = SimpleQueue()

    def read() -> None:
        for line in asked:
            lines.put(line)
        os._exit(0)  # whoever asks is gone, whatever runs here

    Thread(target=read, daemon=True).start()
    while True:
        try:
            answer = {"found": _answer(json.loads(lines.get()))}
        except (Exception, SystemExit) as error:
            answer = {"raised": f"{type(error).__name__}: {error}"}
        text = json.dumps(answer, default=lambda one: one.item() if hasattr(one, "item") else str(one))
        answers.write(f"{text}\n")
        answers.flush()


def _answer(question: Mapping[str, Any]) -> Any:
    file, name = question["class"]
    kind = getattr(import_module(".".join(file.removesuffix(".py").split("/"))), name)
    config = TaskConfig(question["task"])
    if question["kind"] == "found":
        return None
    if question["kind"] == "rows":
        if own := sorted(_NOT_TAKEN & vars(kind).keys()):
            raise TypeError(f"its own `{own[0]}` makes prompts, which is not taken over")
        examples = question["examples"]
        loader = kind(config, examples, is_base_model=config.is_base_model)
        loader.load_example_dataset(examples) if examples else loader.load_dataset(None)
        return [dict(row) for row in (loader.example_dataset if examples else loader.dataset)]
    loader = Loader(config)
    loader.dataframe = import_module("pandas").DataFrame(question["rows"])
    numbers = kind(loader, config).evaluate_responses()[config.task_name]
    return numbers, list(loader.dataframe.get("individual_scores", ()))
