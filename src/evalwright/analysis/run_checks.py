"""Checks whether runs are complete and undamaged, and belong to the installed task versions."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from shlex import quote
from typing import Any

from evalwright.core.errors import EvalwrightError, RunError
from evalwright.core.plain import Plain
from evalwright.core.tasks import Task
from evalwright.core.text import printable
from evalwright.runs.confirmed import (
    AS_PUBLISHED,
    Confirmation,
    RunScores,
    keep_confirmation,
)
from evalwright.runs.content_hashes import data_differ
from evalwright.runs.images import image_faults
from evalwright.runs.reader import Run, open_run, score_fault
from evalwright.runs.records import record_from
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.loading import load_tasks

_NAMED = 3


@dataclass(frozen=True, slots=True)
class RunCheck(Plain):
    """The findings on one run.

    Args:
        run: the run's name.
        model: the model's label.
        tasks: how many of its tasks are in order.
        of_tasks: number of its tasks.
        problems: why it is not in order, in words.
        notes: what could not be checked.
    """

    run: str
    model: str
    tasks: int
    of_tasks: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def list_names(names: Sequence[str]) -> str:
    """List the first few names, and how many more there are."""
    further = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{further}"


def describe_problems(problems: Mapping[str, Mapping[str, str]]) -> list[str]:
    """Describe problems in words: some of the names each concerns, with any reasons."""
    names_by_problem = {
        problem: [f"{name} ({why})" if why else name for name, why in names.items()]
        for problem, names in problems.items()
    }
    return [
        f"{problem}: {list_names(names)}"
        for problem, names in names_by_problem.items()
        if names
    ]


def list_run_folders(folder: Path) -> list[Path]:
    """List the run folders directly under a folder, unfinished ones included."""
    return sorted(
        {
            file.parent
            for name in (RUN_FILE, ".samples.jsonl.*")
            for file in folder.glob(f"*/{name}")
        }
    )


_UNCOUNTED = frozenset({"answer", "passages", "exchanges"})
"""Keys of a record that no number depends on, and that take longest to read."""


class RecordFaults:
    """Finds faults in a run's records, one record at a time.

    These are scores that are not numbers, samples recorded twice, and metrics that the records do
    not reproduce. counts: records by task.
    """

    def __init__(self, run: Run) -> None:
        self._run = run
        self._number = 0
        self._bad: list[str] = []
        self._twice: dict[str, None] = {}
        self._seen: set[int] = set()
        self._unread: set[str] = set()
        self._names = {str(task["name"]) for task in run.data["tasks"]}
        self.counts: Counter[str] = Counter()
        self._scores = RunScores(run)

    def add(self, row: Mapping[str, Any]) -> None:
        """Check the next record, as it is in the file."""
        self._number += 1
        task = str(row["task"])
        self.counts[task] += 1
        key = hash(f"{task}\0{row['id']}\0{row['draw']}")
        if key in self._seen:
            self._twice[f"'{printable(str(row['id']))[:60]}' of {task}"] = None
        self._seen.add(key)
        faults = [score_fault(name, score) for name, score in row["scores"].items()]
        if any(faults):
            self._bad.append(f"record {self._number:,}: {next(filter(None, faults))}")
            self._unread.add(task)
        elif task in self._names:
            try:
                record_from({key: row[key] for key in row if key not in _UNCOUNTED})
                self._scores.add(row)
            except (
                KeyError,
                TypeError,
                AttributeError,
                ValueError,
                IndexError,
                RunError,
            ) as error:
                self._bad.append(
                    f"record {self._number:,} is not that of a sample"
                    f" ({type(error).__name__}: {printable(str(error))[:100]})"
                )
                self._unread.add(task)
        else:
            self._bad.append(
                f"record {self._number:,} is of '{printable(task)[:60]}', which is no"
                " task of the run"
            )

    def keep_numbers(self) -> None:
        """Keep the numbers and scores for other commands, if nothing is wrong with the records."""
        if not self._bad and not self._unread:
            keep_confirmation(self._run, self._scores, self._confirmation)

    @property
    def broken(self) -> Mapping[str, Mapping[str, str]]:
        """The impossible and duplicate records."""
        twice = dict.fromkeys(self._twice, "")
        return {
            "impossible records": dict.fromkeys(self._bad, ""),
            "samples recorded twice": twice,
        }

    @property
    def sentences(self) -> list[str]:
        """All findings as sentences."""
        problems = describe_problems({**self.broken, _CHANGED: self.changed()})
        return [f"{problem[0].upper()}{problem[1:]}." for problem in problems]

    @property
    def as_published(self) -> str:
        """Which numbers come from another program and could not be reproduced; "" without any."""
        try:
            named = self._confirmation.as_published
        except RunError:
            return ""
        return (
            f"{AS_PUBLISHED[0].upper()}{AS_PUBLISHED[1:]}:"
            f" {list_names(list(map(printable, named)))}"
            if named
            else ""
        )

    @cached_property
    def _confirmation(self) -> Confirmation:
        return self._scores.confirmation(frozenset(self._unread))

    def changed(self) -> dict[str, str]:
        """Return the first recorded number that the samples do not reproduce, by task (or run)."""
        try:
            disagreements = self._confirmation.disagreements
        except RunError as error:  # scores that the metric cannot have
            return {self._run.name: str(error)}
        return {
            disagreement.task or self._run.name: disagreement.sentence
            for disagreement in reversed(disagreements)
        }


_CHANGED = "numbers that its samples do not give"


def check_run(
    name: str | Path, runs_folder: Path, settings: Mapping[str, Any]
) -> RunCheck:
    """Check one run.

    Args:
        name: the run's name or folder.
        runs_folder: where names are looked up.
        settings: of other frameworks' tasks, such as `task_root`.

    Raises:
        UnknownName: there is no such run.
    """
    try:
        run = open_run(name, runs_folder)
    except RunError as error:
        return RunCheck(str(name), "", 0, 0, (f"damaged: {error}",))
    records = RecordFaults(run)
    try:
        for _, row in run.lines():
            records.add(row)
    except RunError as error:
        return RunCheck(run.name, run.label, 0, len(run.tasks), (f"damaged: {error}",))
    short = {}
    for task in run.data["tasks"]:
        n_expected = int(task["n_samples"]) * int(task.get("draws", 1))
        if records.counts[task["name"]] < n_expected and not run.data.get("stopping"):
            short[task["name"]] = (
                f"{n_expected - records.counts[task['name']]:,} of {n_expected:,}"
            )
    failed = {task.name: "" for task in run.tasks if task.n_missing or task.failures}
    older = _describe_unscored(run) if run.n_left_out else {}
    changed = records.changed()
    without_metrics = {
        str(task["name"]): list_names(
            [printable(str(spec["label"])) for spec in task["metric_specs"]]
        )
        for task in run.data["tasks"]
        if task.get("metric_specs") and not task["metrics"]
    }
    left_out = {
        str(left_out_task["name"])
        for task in run.data["tasks"]
        for left_out_task in task["definition"].get("left_out") or ()
    }
    today, notes = _load_current_tasks(run, settings)
    if records.as_published:
        notes.append(records.as_published)
    task_names = {task.name for task in run.tasks}
    missing = dict.fromkeys(sorted((left_out | today.keys()) - task_names), "")
    stale = dict(_find_stale_tasks(run, today))
    images, image_notes = image_faults(run.folder, run.data)
    problems = {
        **records.broken,
        "images": images,
        "samples missing": short,
        "failures": {} if older else failed,
        "recorded by an earlier version": older,
        _CHANGED: changed,
        "metrics missing": without_metrics,
        "tasks missing": missing,
        "not of today": stale,
    }
    whole_tasks = task_names - {*short, *failed, *changed, *without_metrics, *stale}
    problem_texts = tuple(describe_problems(problems))
    return RunCheck(
        run.name,
        run.label,
        len(whole_tasks),
        len(task_names | {*missing}),
        problem_texts,
        (*notes, *image_notes),
    )


def _describe_unscored(run: Run) -> dict[str, str]:
    """Say how many answers an earlier version left unscored, and which command scores them."""
    n_left_out = run.n_left_out
    answers = "1 answer has" if n_left_out == 1 else f"{n_left_out:,} answers have"
    return {
        f"{answers} no score": (
            f"evalwright score {quote(str(run.folder))} gives every answer one, without"
            " a request"
        )
    }


def _load_current_tasks(
    run: Run, settings: Mapping[str, Any]
) -> tuple[dict[str, Task], list[str]]:
    """Load the tasks that the run's names refer to now; also returns why some cannot be loaded."""
    configuration = run.data["configuration"]
    recorded = {
        key: setting
        for key, setting in (configuration.get("dialect") or {}).items()
        if key != "trust"
    }
    tasks: dict[str, Task] = {}
    notes: dict[str, None] = {}
    for name in configuration.get("tasks") or ():
        if not isinstance(name, str):
            continue
        try:
            loaded = load_tasks(
                name,
                overrides=configuration.get("overrides") or {},
                dialect={**recorded, **settings},
            )
            tasks |= {task.name: task for task in loaded}
        except EvalwrightError as error:
            notes[f"not compared with the tasks of today: {error}"] = None
    return tasks, list(notes)


def _find_stale_tasks(run: Run, today: Mapping[str, Task]) -> Iterator[tuple[str, str]]:
    for task in run.data["tasks"]:
        now = today.get(task["name"])
        # Rows that another program recorded share only their task's name with ours.
        if now is None or task["definition"].get("dialect") != now.definition.get(
            "dialect"
        ):
            continue
        if now.version != task["version"]:
            yield task["name"], f"version {task['version']}, now {now.version}"
        elif data_differ(now.samples.content_hash, task["content_hash"]):
            yield task["name"], "other rows"
