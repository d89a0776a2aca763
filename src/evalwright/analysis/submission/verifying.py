"""Is a submission what it says? Every answer is formed again from its raw responses by the installed task, and scored again.

Found are: changes after it was made, unknown, missing and doubled samples, other questions or prompts than the task's, answers
that are not what the responses say, and scores and metrics that the answers do not have. What cannot be found is whether that
model really gave these responses.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from evalwright.analysis.submission.files import Submission, prompt_hash, sample_hash
from evalwright.core.errors import ConfigurationError, EvalwrightError, closest
from evalwright.core.plain import Plain, plain
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.core.text import printable
from evalwright.evaluation.planning import sample_order
from evalwright.evaluation.running import evaluate_sample
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.results import TaskResult
from evalwright.strategies.generate import TARGET
from evalwright.tasks.filtering import filtered, read_conditions
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.loading import load_tasks

PROGRAMS = frozenset({"unit-tests"})
"""Scorers that run what a model wrote, which is not done with a stranger's file."""

_CLOSE = 1e-6
_MOST_TASKS = 1000


@dataclass(frozen=True, slots=True)
class Problem(Plain):
    """One thing that is wrong. kind: in a few words. task, id: of the sample, "" where it is none's."""

    kind: str
    message: str
    task: str = ""
    id: str = ""

    def __str__(self) -> str:
        where = ", ".join(part for part in (self.task, f"'{self.id}'" if self.id else "") if part)
        return f"{where}: {self.message}" if where else self.message


@dataclass(slots=True)
class Verification:
    """What was found. tasks: as they are installed; records: the answers scored again; results: their metrics."""

    submission: Submission
    problems: list[Problem] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    records: list[SampleRecord] = field(default_factory=list)
    results: list[TaskResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    def as_dict(self) -> dict[str, Any]:
        """A plain mapping for JSON."""
        return {
            "ok": self.ok,
            "file": self.submission.path.name,
            "sha256": self.submission.hash,
            "rows": len(self.submission.data["samples"]),
            "scored_again": len(self.records),
            "metrics": {
                result.name: {metric.label: metric.estimate.as_dict() for metric in result.metrics}
                for result in self.results
            },
            "problems": plain(self.problems),
        }


def verify_submission(submission: Submission, *, task_files: Sequence[Path] = ()) -> Verification:
    """Check a submission against the installed tasks, or those in `task_files`, which the reader trusts.

    Raises UsageError only where a file of `task_files` is wrong; everything about the submission is a Problem.
    """
    found = Verification(submission)
    if not submission.intact:
        found.problems.append(
            Problem("changed", "the content does not match its SHA-256: it was changed after it was written")
        )
    own = _own_tasks(submission, task_files)
    claims = _claims(found)
    for claim in claims:
        task = _task(found, claim, own)
        if task is not None:
            found.tasks.append(task)
    rows = _rows(found, {claim["name"] for claim in claims})
    for task, claim in (
        (task, claim) for task in found.tasks for claim in claims if claim["name"] == task.name
    ):
        asyncio.run(_verify_task(found, task, claim, rows))
    return found


# -- tasks --------------------------------------------------------------------------------------------------------------


def _claims(found: Verification) -> list[Mapping[str, Any]]:
    claims: list[Mapping[str, Any]] = []
    listed = found.submission.data["tasks"]
    for claim in listed[:_MOST_TASKS]:
        if not isinstance(claim, Mapping) or not isinstance(claim.get("name"), str):
            found.problems.append(Problem("broken", "an entry of 'tasks' has no name"))
        elif any(claim["name"] == other["name"] for other in claims):
            found.problems.append(Problem("doubled", "the task is listed twice", printable(claim["name"])))
        else:
            claims.append(claim)
    if not claims or len(listed) > _MOST_TASKS:
        found.problems.append(Problem("broken", f"it lists {len(listed)} tasks"))
    return claims


def _own_tasks(submission: Submission, files: Sequence[Path]) -> dict[str, Task]:
    tasks: dict[str, Task] = {}
    for file in files:
        tasks |= {task.name: task for task in load_tasks(str(file), **_form(submission))}
    return tasks


def _form(submission: Submission) -> dict[str, Any]:
    """How prompts were rendered: as for every model with its abilities."""
    model, settings = _part(submission.run, "model"), _part(submission.run, "configuration")
    form = settings.get("format")
    abilities = model.get("abilities")
    chat = isinstance(abilities, list) and "chat" in abilities
    return {"prompt_format": form if form in ("chat", "text") else "auto", "chat": chat}


def _part(data: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    value = data.get(name)
    return value if isinstance(value, Mapping) else {}


def _task(found: Verification, claim: Mapping[str, Any], own: Mapping[str, Task]) -> Task | None:
    name = str(claim["name"])
    task = own.get(name)
    if task is None:
        known = TaskIndex(()).names()
        # Only names that the index has: a name is never taken for a path.
        if name not in known:
            near = closest(name[:200], known)
            meant = f"; did you mean '{near[0]}'?" if near else ""
            message = f"there is no task of this name here{meant} (a file of your own: --task FILE)"
            found.problems.append(Problem("unknown task", message, printable(name)))
            return None
        try:
            loaded = load_tasks(name, **_form(found.submission))
        except EvalwrightError as error:
            found.problems.append(Problem("unknown task", f"it cannot be loaded: {error}", name))
            return None
        task = next((one for one in loaded if one.name == name), None)
        if task is None:
            found.problems.append(Problem("unknown task", "the name is that of a group", name))
            return None
    where = _part(found.submission.run, "configuration").get("where") or ()
    try:
        conditions = read_conditions(
            [one for one in where if isinstance(one, str)] if isinstance(where, list) else ()
        )
        (task,) = filtered([task], conditions).tasks
    except (ConfigurationError, ValueError) as error:
        found.problems.append(Problem("filter", f"its filter cannot be used: {error}", name))
        return None
    if (claim.get("version"), claim.get("content_hash")) != (task.version, task.samples.content_hash):
        found.problems.append(
            Problem(
                "another version",
                f"made with version {printable(str(claim.get('version')))} of the task's data "
                f"({printable(str(claim.get('content_hash')))[:12]}), here it is version {task.version} "
                f"({task.samples.content_hash[:12]})",
                name,
            )
        )
    return task


# -- rows ---------------------------------------------------------------------------------------------------------------

Key = tuple[str, str, int]


def _rows(found: Verification, names: set[str]) -> dict[Key, Mapping[str, Any]]:
    """Rows by task, id and draw; what is broken or doubled is told."""
    rows: dict[Key, Mapping[str, Any]] = {}
    for place, row in enumerate(found.submission.data["samples"], 1):
        wrong = _shape(row)
        if wrong:
            found.problems.append(Problem("broken", f"row {place}: {wrong}"))
            continue
        key = (row["task"], row["id"], row["draw"])
        if row["task"] not in names:
            message = f"row {place} is of a task that is not listed"
            found.problems.append(
                Problem("unknown task", message, printable(row["task"]), printable(row["id"]))
            )
        elif key in rows:
            message = f"row {place} is the sample a second time (draw {row['draw']})"
            found.problems.append(Problem("doubled", message, printable(row["task"]), printable(row["id"])))
        else:
            rows[key] = row
    return rows


def _shape(row: Any) -> str:
    if not isinstance(row, Mapping):
        return "it is not an object"
    for key, kind in (("task", str), ("id", str), ("answer", str), ("responses", list), ("scores", dict)):
        if not isinstance(row.get(key), kind):
            return f"`{key}` is missing or not valid"
    if not isinstance(row.get("draw"), int) or isinstance(row["draw"], bool):
        return "`draw` is not a whole number"
    return ""


async def _verify_task(
    found: Verification, task: Task, claim: Mapping[str, Any], rows: dict[Key, Mapping[str, Any]]
) -> None:
    places = _expected(found, task)
    seen: set[Key] = set()
    tally = TaskTally([scorer.name for scorer in task.scorers], task.slices)
    missing: list[str] = []
    unscored = [one.name for one in task.scorers if one.roles or one.kind in PROGRAMS]
    if unscored:
        message = f"{', '.join(unscored)} uses a model or runs programs, so its scores cannot be checked here"
        found.problems.append(Problem("not verifiable", message, task.name))
        return
    for index, draw in product(places, range(task.draws)):
        sample = task.samples[index]
        key = (task.name, sample.id, draw)
        seen.add(key)
        row = rows.get(key)
        if row is None:
            missing.append(sample.id)
            continue
        record = await _again(task, index, draw, row)
        if isinstance(record, Problem):
            found.problems.append(record)
            continue
        found.problems += _row_problems(task, record, row)
        found.records.append(record)
        tally.add(record)
    for name in missing:
        found.problems.append(Problem("missing", "the sample has no row", task.name, name))
    known = {sample.id for sample in task.samples} if rows.keys() - seen else set()
    for _, name, draw in sorted(key for key in rows if key[0] == task.name and key not in seen):
        message = (
            f"draw {draw} of it is not part of these settings"
            if name in known
            else "the task has no such sample"
        )
        found.problems.append(Problem("unknown sample", message, task.name, printable(name)))
    metrics = task.found_metrics(tally.names()) if task.found_metrics else task.metrics
    result = tally.result(task.name, task.version, metrics)
    found.results.append(result)
    found.problems += _metric_problems(result, claim)


def _expected(found: Verification, task: Task) -> array[int]:
    """The places of the samples that these settings ask for, in the order of the task."""
    settings = _part(found.submission.run, "configuration")
    limit, seed = settings.get("limit"), settings.get("seed")
    whole = limit if isinstance(limit, int) and not isinstance(limit, bool) and limit > 0 else None
    start = seed if isinstance(seed, int) and not isinstance(seed, bool) else 0
    return array("q", sorted(sample_order(len(task.samples), start, whole, task.order == "file")))


async def _again(task: Task, index: int, draw: int, row: Mapping[str, Any]) -> SampleRecord | Problem:
    """The record that the task makes of the row's raw responses, or what is wrong with these."""
    sample = task.samples[index]
    try:
        responses = [_response(one) for one in row["responses"]]
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        return Problem("broken", f"a response is not valid: {printable(str(error))}", task.name, sample.id)
    if not responses:
        return Problem("broken", "it has no response", task.name, sample.id)
    given = iter(responses)

    async def ask(role: str, request: Request) -> Response:
        if role != TARGET:
            raise LookupError(f"it needs a model in the role '{role}'")
        response = next(given, None)
        if response is None:
            raise LookupError("it has fewer responses than the task sends requests")
        return response

    record = await evaluate_sample(task, index, sample, draw, ask)
    failure = record.failure or next(iter(record.score_failures.values()), None)
    if failure is not None:
        return Problem("not scored", printable(failure.message), task.name, sample.id)
    if next(given, None) is not None:
        return Problem("broken", "it has more responses than the task sends requests", task.name, sample.id)
    return record


_TEXTS, _NUMBERS = ("text", "reasoning", "finish_reason"), ("log_likelihood", "tokens_scored")


def _response(data: Any) -> Response:
    """A response of plain parts, each of its kind. Raises TypeError or ValueError."""
    if not isinstance(data, Mapping):
        raise TypeError("it is not an object")
    known: dict[str, Any] = {}
    for name, value in data.items():
        if name in _TEXTS:
            fits = isinstance(value, str)
        elif name in _NUMBERS:
            fits = isinstance(value, int | float) and not isinstance(value, bool) and not math.isnan(value)
        elif name == "is_greedy":
            fits = isinstance(value, bool)
        elif name == "values":
            fits = isinstance(value, list) and all(isinstance(one, int | float) for one in value)
        elif name == "usage":
            fits = isinstance(value, Mapping) and all(
                isinstance(one, int) and 0 <= one < 1 << 40 for one in value.values()
            )
        else:
            raise ValueError(f"it has the unknown part '{name}'")
        if not fits:
            raise TypeError(f"its '{name}' has the wrong type")
        known[name] = value
    return Response.from_dict(known)


def _row_problems(task: Task, record: SampleRecord, row: Mapping[str, Any]) -> list[Problem]:
    """What differs between a row and what its responses make."""
    answer, sample = record.answer, record.sample
    assert answer is not None
    out = []
    if row.get("sample_sha256") != sample_hash(sample):
        out.append(("another question", "the question, its options or its targets differ from the task's"))
    if row.get("prompt_sha256") != prompt_hash(answer.prompt):
        out.append(("another prompt", "the prompt differs from the task's"))
    if row["answer"] != answer.text:
        claimed, real = printable(row["answer"][:60]), printable(answer.text[:60])
        out.append(("wrong answer", f"the answer is given as '{claimed}', but its response says '{real}'"))
    for name, score in record.scores.items():
        claim = row["scores"].get(name)
        value = claim.get("value") if isinstance(claim, Mapping) else None
        label = claim.get("label", "") if isinstance(claim, Mapping) else ""
        if not _same(value, score.value) or label != score.label:
            said = "no score" if value is None else printable(f"{value} {label}".strip())
            real = f"{score.value:g} {score.label}".strip()
            why = f" ({printable(score.explanation)})" if score.explanation else ""
            out.append(("wrong score", f"{name} is given as {said}, and is {real}{why}"))
    unknown = sorted(row["scores"].keys() - record.scores.keys())
    out += [("wrong score", f"{printable(name)} is not a score of this task") for name in unknown]
    return [Problem(kind, message, task.name, sample.id) for kind, message in out]


def _metric_problems(result: TaskResult, claim: Mapping[str, Any]) -> list[Problem]:
    listed = claim.get("metrics")
    claims = {
        one["label"]: one
        for one in (listed if isinstance(listed, list) else ())
        if isinstance(one, Mapping) and isinstance(one.get("label"), str)
    }
    out = []
    for metric in result.metrics:
        claimed = claims.pop(metric.label, {})
        real = metric.estimate.as_dict()
        for key in ("value", "low", "high", "n", "n_failed"):
            if not _same(claimed.get(key), real[key]):
                said = printable(str(claimed.get(key)))
                out.append(f"{metric.label}: {key} is given as {said}, and is {real[key]}")
                break
    out += [f"{printable(label)} is not a metric of this task" for label in claims]
    return [Problem("wrong metric", message, result.name) for message in out]


def _same(claimed: Any, real: float | None) -> bool:
    if real is None or claimed is None:
        return claimed is None and (real is None or math.isnan(real))
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        return False
    try:
        return math.isclose(float(claimed), real, rel_tol=_CLOSE, abs_tol=_CLOSE)
    except OverflowError:
        return False
