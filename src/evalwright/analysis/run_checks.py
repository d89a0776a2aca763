"""Whether runs are whole: nothing damaged or changed, no task and no sample missing, nothing failed, and the tasks those of today."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from shlex import quote
from typing import Any

from evalwright.core.errors import EvalwrightError, RunError
from evalwright.core.plain import Plain
from evalwright.core.tasks import Task
from evalwright.core.text import printable
from evalwright.metrics.registry import is_known
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.images import image_faults
from evalwright.runs.reader import Run, open_run, score_fault
from evalwright.runs.records import record_from
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


def in_words(problems: Mapping[str, Mapping[str, str]]) -> list[str]:
    """What is wrong, in words: some of the names, each with why, "" where there is nothing more to say."""
    told = {
        what: [f"{name} ({why})" if why else name for name, why in names.items()]
        for what, names in problems.items()
    }
    return [f"{what}: {listed(names)}" for what, names in told.items() if names]


def runs_in(folder: Path) -> list[Path]:
    """The folders of runs directly under a folder, those too that were never finished."""
    return sorted(
        {file.parent for name in (RUN_FILE, ".samples.jsonl.*") for file in folder.glob(f"*/{name}")}
    )


_UNCOUNTED = frozenset({"answer", "passages", "exchanges"})
"""What of a record is in no number, and takes longest to read."""


def _unsure_sample(row: Mapping[str, Any]) -> set[int]:
    """The sample of a record, where one of its scores is unsure."""
    return (
        {hash(str(row["index"]))} if any(score.get("unsure") for score in row["scores"].values()) else set()
    )


def _impossible_counts(task: Mapping[str, Any]) -> Iterator[str]:
    """Counts of a task's record that cannot be, in words."""
    n_samples, n_missing, n_unsure = task["n_samples"], task["n_missing"], task.get("n_unsure", 0)
    if not 0 <= n_missing <= n_samples:
        yield f"n_missing is {n_missing}, of {n_samples} samples"
    if not 0 <= n_unsure <= n_samples:
        yield f"n_unsure is {n_unsure}, of {n_samples} samples"
    for metric in task["metrics"]:
        n, label = metric.get("n", 0), metric.get("label")
        if not 0 <= metric.get("n_unsure", 0) <= n:
            yield f"n_unsure of {label} is {metric['n_unsure']}, of {n} scores"
        if metric.get("n_missing", 0) < 0:
            yield f"n_missing of {label} is {metric['n_missing']}"
        ends = metric.get("unsure_range")
        if ends is not None and not (all(map(math.isfinite, ends)) and ends[0] <= ends[1]):
            yield f"unsure_range of {label} is {ends}, not two finite numbers in order"


class RecordFaults:
    """Takes a run's records one by one, and says what cannot be: scores that are no numbers, a sample twice, metrics that its records
    do not give. counts: records by task."""

    def __init__(self, run: Run) -> None:
        self._run = run
        self._number = 0
        self._bad: list[str] = []
        self._twice: dict[str, None] = {}
        self._seen: set[int] = set()
        self._unread: set[str] = set()
        self.counts: Counter[str] = Counter()
        self._outcomes: dict[str, Counter[str]] = defaultdict(Counter)
        self._unsure_samples: dict[str, set[int]] = defaultdict(set)
        self._tallies = {
            str(task["name"]): TaskTally([scorer["name"] for scorer in task.get("scorers", ())], ())
            for task in run.data["tasks"]
        }

    def add(self, row: Mapping[str, Any]) -> None:
        """Take the next record, as it stands in the file."""
        self._number += 1
        task = str(row["task"])
        self.counts[task] += 1
        key = hash(f"{task}\0{row['id']}\0{row['draw']}")
        if key in self._seen:
            self._twice[f"'{printable(str(row['id']))[:60]}' of {task}"] = None
        self._seen.add(key)
        scores = row["scores"]
        faults = [score_fault(name, score) for name, score in scores.items()]
        if any(faults):
            self._bad.append(f"record {self._number:,}: {next(filter(None, faults))}")
            self._unread.add(task)
        elif task in self._tallies:
            self._outcomes[task][str(row.get("outcome"))] += 1
            self._unsure_samples[task] |= _unsure_sample(row)
            try:
                self._tallies[task].add(record_from({key: row[key] for key in row if key not in _UNCOUNTED}))
            except (KeyError, TypeError, AttributeError, ValueError, IndexError) as error:
                self._bad.append(
                    f"record {self._number:,} is not that of a sample ({type(error).__name__}: {printable(str(error))[:100]})"
                )
                self._unread.add(task)
        else:
            self._bad.append(
                f"record {self._number:,} is of '{printable(task)[:60]}', which is no task of the run"
            )

    @property
    def broken(self) -> Mapping[str, Mapping[str, str]]:
        """What the records have that cannot be."""
        twice = dict.fromkeys(self._twice, "")
        return {"impossible records": dict.fromkeys(self._bad, ""), "samples recorded twice": twice}

    @property
    def sentences(self) -> list[str]:
        """All that was found, for people."""
        found = in_words(
            {**self.broken, _IMPOSSIBLE: dict(self.impossible()), _CHANGED: dict(self.changed())}
        )
        return [f"{one[0].upper()}{one[1:]}." for one in found]

    def impossible(self) -> Iterator[tuple[str, str]]:
        """Tasks with counts that cannot be, or that are others than those of the samples."""
        for task in self._run.data["tasks"]:
            name = str(task["name"])
            faults = list(_impossible_counts(task))
            if self._run.data["schema"] > 1 and name not in self._unread:
                faults += self._other_counts(task)
            if faults:
                yield name, faults[0]

    def _other_counts(self, task: Mapping[str, Any]) -> Iterator[str]:
        """Counts of a task's record that the samples do not give."""
        name = str(task["name"])
        n_unsure = len(self._unsure_samples[name])
        if task.get("n_unsure", 0) != n_unsure:
            yield f"n_unsure is {task.get('n_unsure', 0)} in {RUN_FILE}, {n_unsure} in the samples"
        outcomes = dict(self._outcomes[name])
        # Runs that were imported need not count them.
        if (task.get("outcomes") or outcomes) != outcomes:
            yield f"outcomes are {task['outcomes']} in {RUN_FILE}, {outcomes} in the samples"

    def changed(self) -> Iterator[tuple[str, str]]:
        """Tasks with a metric of ours whose recorded value is another than the one made again from the samples."""
        run = self._run
        for task in run.data["tasks"]:
            if task.get("definition", {}).get("dialect") or task.get("metric_specs") is None:
                continue  # another framework's arithmetic
            if task["name"] in self._unread:
                continue  # which is said
            try:
                specs = [spec for spec in run.metric_specs(task["name"]) if is_known(spec)]
                made_again = self._tallies[task["name"]].result(task["name"], task["version"], specs).metrics
            except (KeyError, TypeError, AttributeError, ValueError) as error:
                yield task["name"], f"they cannot be computed again: {type(error).__name__}"
                continue
            again = {one.label: one.estimate.value for one in made_again}
            for metric in run.task(task["name"]).metrics:
                value, made = metric.estimate.value, again.get(metric.label, math.nan)
                if math.isfinite(made) and not math.isclose(value, made, rel_tol=1e-6, abs_tol=1e-9):
                    said = f"{metric.label} is {value:g} in {RUN_FILE}, {made:g} from the samples"
                    yield task["name"], said
                    break


_IMPOSSIBLE = "impossible counts"
_CHANGED = "numbers that its samples do not give"


def check_run(name: str | Path, runs_folder: Path, settings: Mapping[str, Any]) -> Checked:
    """Check one run. settings: of tasks of other frameworks, such as `task_root`. Raises UnknownName where there is no such run."""
    try:
        run = open_run(name, runs_folder)
    except RunError as error:
        return Checked(str(name), "", 0, 0, (f"damaged: {error}",))
    records = RecordFaults(run)
    try:
        for _, row in run.lines():
            records.add(row)
    except RunError as error:
        return Checked(run.name, run.label, 0, len(run.tasks), (f"damaged: {error}",))
    short = {}
    for task in run.data["tasks"]:
        wanted = int(task["n_samples"]) * int(task.get("draws", 1))
        if records.counts[task["name"]] < wanted and not run.data.get("stopping"):
            short[task["name"]] = f"{wanted - records.counts[task['name']]:,} of {wanted:,}"
    failed = {task.name: "" for task in run.tasks if task.n_missing or task.failures}
    older = _recorded_earlier(run) if run.n_left_out else {}
    impossible = dict(records.impossible())
    changed = dict(records.changed())
    left_out = {
        str(one["name"]) for task in run.data["tasks"] for one in task["definition"].get("left_out") or ()
    }
    today, notes = _today(run, settings)
    there = {task.name for task in run.tasks}
    missing = dict.fromkeys(sorted((left_out | today.keys()) - there), "")
    stale = dict(_stale(run, today))
    images, image_notes = image_faults(run)
    problems = {
        **records.broken, "images": images, "samples missing": short, "failures": {} if older else failed,
        "recorded by an earlier version": older, _IMPOSSIBLE: impossible, _CHANGED: changed, "tasks missing": missing,
        "not of today": stale,
    }  # fmt: skip
    whole = there - {*short, *failed, *impossible, *changed, *stale}
    said = tuple(in_words(problems))
    return Checked(run.name, run.label, len(whole), len(there | {*missing}), said, (*notes, *image_notes))


def _recorded_earlier(run: Run) -> dict[str, str]:
    """How many answers an earlier version left without a score, and the command that gives them one."""
    n_left_out = run.n_left_out
    answers = "1 answer has" if n_left_out == 1 else f"{n_left_out:,} answers have"
    return {
        f"{answers} no score": f"evalwright score {quote(str(run.folder))} gives every answer one, without a request"
    }


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
        now = today.get(task["name"])
        # Rows that another program recorded are those of a task of ours in name only.
        if now is None or task["definition"].get("dialect") != now.definition.get("dialect"):
            continue
        if now.version != task["version"]:
            yield task["name"], f"version {task['version']}, now {now.version}"
        elif now.samples.content_hash != task["content_hash"]:
            yield task["name"], "other rows"
