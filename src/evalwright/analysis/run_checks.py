"""Whether runs are whole: nothing damaged or changed, no task and no sample missing, nothing failed, and the tasks those of today."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evalwright.core.errors import EvalwrightError, RunError
from evalwright.core.plain import Plain
from evalwright.core.tasks import Task
from evalwright.metrics.registry import is_known
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import RUN_FILE
from evalwright.tasks.loading import load_tasks

_NAMED = 3


@dataclass(frozen=True, slots=True)
class Checked(Plain):
    """What was found of one run. problems: why it is not whole, in words; notes: what could not be checked; tasks: those that are whole."""

    run: str
    model: str
    tasks: int
    of_tasks: int
    problems: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()


def listed(names: Sequence[str]) -> str:
    """Some names, and how many more there are."""
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"


def runs_in(folder: Path) -> list[Path]:
    """The folders of runs directly under a folder, those too that were never finished."""
    return sorted(
        {file.parent for name in (RUN_FILE, ".samples.jsonl.*") for file in folder.glob(f"*/{name}")}
    )


def check_run(name: str | Path, runs_folder: Path, settings: Mapping[str, Any]) -> Checked:
    """Check one run. settings: of tasks of other frameworks, such as `task_root`. Raises UnknownName where there is no such run."""
    try:
        run = open_run(name, runs_folder)
    except RunError as error:
        return Checked(str(name), "", 0, 0, (f"damaged: {error}",))
    problems: list[str] = []
    records: Counter[str] = Counter()
    tallies = {
        task["name"]: TaskTally([scorer["name"] for scorer in task["scorers"]], ())
        for task in run.data["tasks"]
    }
    try:
        for record in run.samples():
            records[record.task] += 1
            tallies[record.task].add(record)
    except RunError as error:
        return Checked(run.name, run.label, 0, len(run.tasks), (f"damaged: {error}",))
    short = {}
    for task in run.data["tasks"]:
        wanted = int(task["n_samples"]) * int(task.get("draws", 1))
        if records[task["name"]] < wanted and not run.data.get("stopping"):
            short[task["name"]] = f"{task['name']} ({wanted - records[task['name']]:,} of {wanted:,})"
    if short:
        problems.append(f"samples missing: {listed(list(short.values()))}")
    failed = [task.name for task in run.tasks if task.n_failed or task.failures]
    if failed:
        problems.append(f"failures: {listed(failed)}")
    changed = dict(_changed(run, tallies))
    if changed:
        problems.append(
            f"numbers that its samples do not give: {listed([f'{name} ({why})' for name, why in changed.items()])}"
        )
    left_out = {
        str(one["name"]) for task in run.data["tasks"] for one in task["definition"].get("left_out") or ()
    }
    today, notes = _today(run, settings)
    there = {task.name for task in run.tasks}
    missing = sorted((left_out | today.keys()) - there)
    if missing:
        problems.append(f"tasks missing: {listed(missing)}")
    stale = dict(_stale(run, today))
    if stale:
        problems.append(f"not of today: {listed([f'{name} ({why})' for name, why in stale.items()])}")
    bad = {*short, *failed, *changed, *stale}
    return Checked(
        run.name, run.label, len(there - bad), len(there | {*missing}), tuple(problems), tuple(notes)
    )


def _changed(run: Run, tallies: Mapping[str, TaskTally]) -> Iterator[tuple[str, str]]:
    """Tasks with a metric of ours whose recorded value is another than the one made again from the samples."""
    for task in run.data["tasks"]:
        if task["definition"].get("dialect") or task.get("metric_specs") is None:
            continue  # another framework's arithmetic
        specs = [spec for spec in run.metric_specs(task["name"]) if is_known(spec)]
        again = {
            one.label: one.estimate.value
            for one in tallies[task["name"]].result(task["name"], task["version"], specs).metrics
        }
        for metric in run.task(task["name"]).metrics:
            value, made = metric.estimate.value, again.get(metric.label, math.nan)
            if math.isfinite(made) and not math.isclose(value, made, rel_tol=1e-6, abs_tol=1e-9):
                yield task["name"], f"{metric.label} is {value:g} in {RUN_FILE}, {made:g} from the samples"
                break


def _today(run: Run, settings: Mapping[str, Any]) -> tuple[dict[str, Task], list[str]]:
    """The tasks that the run's names stand for now, and why some cannot be read."""
    configuration = run.data["configuration"]
    recorded = {key: value for key, value in (configuration.get("dialect") or {}).items() if key != "trust"}
    found: dict[str, Task] = {}
    notes: dict[str, None] = {}
    for name in configuration.get("tasks") or ():
        if not isinstance(name, str):
            continue
        try:
            made = load_tasks(
                name, overrides=configuration.get("overrides") or {}, dialect={**recorded, **settings}
            )
            found |= {task.name: task for task in made}
        except EvalwrightError as error:
            notes[f"not compared with the tasks of today: {error}"] = None
    return found, list(notes)


def _stale(run: Run, today: Mapping[str, Task]) -> Iterator[tuple[str, str]]:
    for task in run.data["tasks"]:
        if (now := today.get(task["name"])) is None:
            continue
        if now.version != task["version"]:
            yield task["name"], f"version {task['version']}, now {now.version}"
        elif now.samples.content_hash != task["content_hash"]:
            yield task["name"], "other rows"
