"""From the names of tasks to tasks as one model gets them: loaded, filtered, and in order."""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.core.errors import ConfigurationError, OutOfReach
from evalwright.core.notes import read_note, write_note
from evalwright.core.tasks import Task
from evalwright.core.text import printable
from evalwright.evaluation.configuration import PromptFormat
from evalwright.evaluation.judge_setting import read_panel
from evalwright.evaluation.rules import UnitOrder, unit_order
from evalwright.evaluation.settings import Settings
from evalwright.models.answers import RECORDED
from evalwright.runs.impossible import has_control
from evalwright.strategies.likelihood import RecordedColumn
from evalwright.tasks.data_files import AnswerColumns, answers_beside, as_data_file
from evalwright.tasks.dialects import check_used
from evalwright.tasks.filtering import filtered, read_conditions
from evalwright.tasks.loading import load_tasks, names_like
from evalwright.tasks.panels import Panel, with_panel
from evalwright.tasks.scoring import decided_by, with_votes, without_judges

LONG_SHUFFLE = 100_000
"""Samples from which shuffling takes longer than reading a note."""
SHORT_ORDER = 10_000
"""Most samples of an order that is noted."""
_ORDER_VERSION = 1
"""Raised when the same seed gives another order, so that earlier notes are not used."""


@dataclass(frozen=True, slots=True)
class TaskChoice:
    """Which tasks are evaluated, on which samples, and how prompts are rendered.

    Attributes:
        names: names of tasks, files, or patterns of names.
        objects: Task objects by name.
        new_answers: whether a model under test answers the questions of a data file, even if the
            file has answers.

    The other fields are those of a Configuration.
    """

    names: tuple[str, ...]
    objects: Mapping[str, Task]
    where: tuple[str, ...]
    limit: float | None
    prompt_format: PromptFormat
    overrides: Mapping[str, Any]
    dialect: Mapping[str, Any]
    num_fewshot: int | None
    panel: Panel | None
    unsure: Mapping[str, Any]
    no_judge: bool
    new_answers: bool

    def load(self, chat: bool) -> list[Task]:
        """Load all samples of the tasks, for a model that takes messages or not.

        Raises:
            UsageError: a task cannot be loaded.
        """
        tasks: list[Task] = []
        used: set[str] = set()
        for name in self.names:
            if name in self.objects:
                self._check_unchanged(name)
                tasks.append(self.objects[name])
                continue
            members = names_like(name, self.dialect)
            for member in members:
                loaded = self._load_one(member, len(members), chat, used)
                # A pattern matches groups and their members, and two tags the same task; each task
                # is evaluated once.
                by_name = {task.name: task for task in tasks}
                for task in loaded:
                    same_name = by_name.get(task.name)
                    is_pattern = members != [name]
                    if same_name and (is_pattern or _is_same_task(task, same_name)):
                        continue
                    tasks.append(task)
        _check_some_have_data(tasks)
        check_used(self.dialect, tasks, used)
        if self.panel is not None:
            tasks = [
                task if "dialect" in task.definition else with_panel(task, self.panel)
                for task in tasks
            ]
        if self.unsure:
            tasks = [
                (
                    decided_by(task, self.unsure)
                    if "dialect" not in task.definition
                    else task
                )
                for task in tasks
            ]
        _check_names(tasks)
        return [with_votes(task) for task in tasks]

    def select(self, chat: bool) -> tuple[Sequence[Task], str]:
        """Return the tasks with the samples that the filter keeps, and remarks about their data.

        The remarks are sentences about the columns of data files, tasks of which the filter keeps
        nothing, and images that are not sent.
        """
        tasks = self.load(chat)
        selection = filtered(tasks, read_conditions(self.where))
        remarks = list(self._describe_columns(tasks))
        if selection.left_out:
            remarks.append(
                f"Left out, because no sample matches {' and '.join(self.where)}:"
                f" {', '.join(selection.left_out)}."
            )
        remarks += [
            str(task.metadata["images_not_sent"])
            for task in tasks
            if "images_not_sent" in task.metadata
        ]
        selected = selection.tasks
        if self.no_judge:
            selected = tuple(without_judges(task) for task in selected)
        return selected, " ".join(remarks)

    def _load_one(
        self, name: str, n_members: int, chat: bool, used: set[str]
    ) -> list[Task]:
        overrides = dict(self.overrides)
        if self.new_answers and as_data_file(name):
            overrides = {"answer.mode": "generate", **overrides}
        return load_tasks(
            name,
            prompt_format=self.prompt_format,
            chat=chat,
            overrides=overrides or None,
            dialect=dict(self.dialect),
            num_fewshot=self.num_fewshot,
            limit=None if self.where else self.limit,
            used=used,
            n_names=max(len(self.names), n_members),
        )

    def _check_unchanged(self, name: str) -> None:
        for key in ("overrides", "num_fewshot"):
            if getattr(self, key):
                raise ConfigurationError(
                    f"The task '{name}' is given as an object, so its settings cannot"
                    f" be changed from outside: leave out {key}."
                )

    def _describe_columns(self, tasks: Sequence[Task]) -> Iterator[str]:
        answer_column = self.overrides.get("columns.answer", "")
        for task in tasks:
            if "columns" in task.metadata:
                answers = _describe_answers(task, answer_column)
                columns = f"Columns of '{task.name}': {task.metadata['columns']}. "
                yield f"{columns}{answers}".rstrip()


def task_choice(settings: Settings) -> TaskChoice:
    """Return the choice of tasks in these settings."""
    configuration = settings.configuration
    return TaskChoice(
        names=configuration.tasks,
        objects=settings.tasks,
        where=configuration.where,
        limit=configuration.limit,
        prompt_format=configuration.format,
        overrides=configuration.overrides,
        dialect=configuration.dialect,
        num_fewshot=configuration.num_fewshot,
        panel=read_panel(configuration.panel, configuration.roles),
        unsure=configuration.unsure,
        no_judge=configuration.no_judge,
        new_answers=any(
            not spec.model.startswith(RECORDED) for spec in configuration.models
        ),
    )


def order_units(
    task: Task, seed: int, limit: float | None, *, whole_units: bool
) -> UnitOrder:
    """Return the order in which the samples of a task are evaluated, fixed by the seed.

    `whole_units` keeps the samples of a cluster together, as stopping rules and shards require.
    """
    order = sample_order(len(task.samples), seed, limit, task.order == "file")
    if whole_units:
        return unit_order(task, order, seed)
    return UnitOrder(order, range(len(order) + 1), clustered=False)


def sample_order(
    n: int, seed: int, limit: float | None, as_filed: bool = False
) -> array[int]:
    """Return a random order of the samples, fixed only by the seed, or the order of the file.

    `limit` takes its beginning: a number of samples, or below 1 a share of them, rounded up.
    """
    size = n
    if limit is not None:
        size = min(n, math.ceil(n * limit) if limit < 1 else int(limit))
    if as_filed:
        return array("q", range(size))
    is_noted = n >= LONG_SHUFFLE and size <= SHORT_ORDER
    if is_noted and (noted := _noted_order(n, seed, size)):
        return noted
    order = array("q", range(n))
    random.Random(seed).shuffle(order)
    if is_noted:
        write_note("orders", [n, seed, size], _ORDER_VERSION, order[:size].tolist())
    return order[:size]


def _noted_order(n: int, seed: int, size: int) -> array[int] | None:
    """Return the beginning of a long order that an earlier command has computed."""
    noted = read_note("orders", [n, seed, size], _ORDER_VERSION)
    if not isinstance(noted, list) or len(noted) != size:
        return None
    if not all(type(index) is int and 0 <= index < n for index in noted):
        return None
    # A forged note must not give a sample twice.
    return array("q", noted) if len(set(noted)) == size else None


def _check_some_have_data(tasks: Sequence[Task]) -> None:
    """Raise OutOfReach if the data of no task can be fetched.

    A task fails alone only beside others.
    """
    reasons = [
        str(task.metadata["no data"]) for task in tasks if "no data" in task.metadata
    ]
    if reasons and len(reasons) == len(tasks):
        how_many = (
            f" So it is with all {len(reasons):,} tasks." if len(reasons) > 1 else ""
        )
        raise OutOfReach(f"{reasons[0]}{how_many}")


def _check_names(tasks: Sequence[Task]) -> None:
    """Raise ConfigurationError for a name that two tasks have, or that a record may not have."""
    names = [task.name for task in tasks]
    for name in names:
        if names.count(name) > 1:
            raise ConfigurationError(f"The task '{name}' is named twice.")
    for task in tasks:
        labels = [metric.label for metric in task.metrics]
        for name in (task.name, *labels, *(scorer.name for scorer in task.scorers)):
            if has_control(name):
                raise ConfigurationError(
                    f"'{printable(name)}', a name in the task '{printable(task.name)}',"
                    " has control characters in it: give it another."
                )


def _is_same_task(task: Task, earlier: Task) -> bool:
    """Return whether two names of another framework mean one task, even in different sets."""
    if "dialect" not in task.definition:
        return False
    without_sets = {"set": "", "left_out": []}
    return {**task.definition, **without_sets} == {**earlier.definition, **without_sets}


def _describe_answers(task: Task, answer_column: str) -> str:
    """Say whose answers to the questions of a data file are scored: the file's, or the model's.

    `answer_column` is the column that the user named as that of the answers, "" for none.
    """
    if isinstance(task.strategy, RecordedColumn):
        return (
            f"Scored are the answers in the file (column '{task.strategy.column}'):"
            " nothing is generated. To score a model's own answers to the questions,"
            " name it with --model."
        )
    columns = answers_beside(task.definition, answer_column)
    mode = task.definition.get("answer", {}).get("mode", "generate")
    if mode != "generate":
        return _describe_measured_answers(mode, columns)
    if columns.expected:
        return (
            "New answers are generated: those in the file (column"
            f" '{columns.expected}') are what is expected."
        )
    if columns.unused:
        return (
            f"New answers are generated: those in the file (column '{columns.unused}')"
            " are not used."
        )
    return ""


_MEASURED_ANSWERS = {
    "letter": "the answer is the option whose letter the model finds most probable",
    "likelihood": "the answer is the option whose text the model finds most probable",
}
"""What the answer is in modes in which a model writes nothing."""


def _describe_measured_answers(mode: str, columns: AnswerColumns) -> str:
    """Say what the answer is where nothing is generated, and what the file's answers are for."""
    sentences = []
    if mode in _MEASURED_ANSWERS:
        sentences.append(f"Nothing is generated: {_MEASURED_ANSWERS[mode]}.")
    if columns.expected:
        sentences.append(f"The column '{columns.expected}' is what is expected.")
    if columns.unused:
        sentences.append(
            f"The answers in the file (column '{columns.unused}') are not used."
        )
    return " ".join(sentences)
