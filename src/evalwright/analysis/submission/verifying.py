"""Verifies a submission by scoring its raw responses again.

The installed task forms every answer again from its raw responses and scores it. This detects
later changes, unknown, missing and duplicate samples, other questions or prompts, answers that
differ from their responses, and wrong scores and metrics. It cannot tell whether that model
really gave these responses.
"""

from __future__ import annotations

import asyncio
import math
from array import array
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import product
from pathlib import Path
from typing import Any

from evalwright.analysis.submission.submission_file import (
    Submission,
    as_mapping,
    prompt_hash,
    sample_hash,
)
from evalwright.core.errors import ConfigurationError, EvalwrightError, closest
from evalwright.core.plain import Plain, plain
from evalwright.core.requests import Request
from evalwright.core.responses import Response
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import Task
from evalwright.core.text import printable
from evalwright.evaluation.scoring import evaluate_sample
from evalwright.evaluation.task_choice import sample_order
from evalwright.models.answers import RECORDED
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.impossible import has_control, impossible_amounts
from evalwright.runs.results import TaskResult
from evalwright.strategies.sampling import TARGET
from evalwright.tasks.data_files import as_data_file
from evalwright.tasks.filtering import filtered, read_conditions
from evalwright.tasks.index import TaskIndex
from evalwright.tasks.loading import load_tasks

PROGRAMS = frozenset({"unit-tests"})
"""Scorers that run code written by a model, which is not done with a file from a stranger."""

_CLOSE = 1e-6
_MOST_TASKS = 1000


@dataclass(frozen=True, slots=True)
class Problem(Plain):
    """One problem with a submission.

    Args:
        kind: in a few words.
        message: what is wrong, in a sentence.
        task: the sample's task, "" if it concerns no sample.
        id: the sample's id, likewise.
    """

    kind: str
    message: str
    task: str = ""
    id: str = ""

    def __str__(self) -> str:
        where = ", ".join(
            phrase
            for phrase in (self.task, f"'{self.id}'" if self.id else "")
            if phrase
        )
        return f"{where}: {self.message}" if where else self.message


@dataclass(slots=True)
class Verification:
    """The findings on a submission.

    Args:
        submission: the submission.
        problems: what is wrong with it.
        tasks: the tasks as they are installed.
        records: the answers scored again.
        results: their metrics.
    """

    submission: Submission
    problems: list[Problem] = field(default_factory=list)
    tasks: list[Task] = field(default_factory=list)
    records: list[SampleRecord] = field(default_factory=list)
    results: list[TaskResult] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        """Whether nothing is wrong."""
        return not self.problems

    @property
    def n_judged(self) -> int:
        """The number of answers that a judge read, by what the file says."""
        return sum(
            isinstance(row, Mapping) and bool(row.get("judged"))
            for row in self.submission.document["samples"]
        )

    @property
    def judges(self) -> list[str]:
        """The names of the judges that the file has, made printable."""
        names = self.submission.run.get("judges")
        listed = names if isinstance(names, list) else []
        return [printable(name)[:200] for name in listed[:20] if isinstance(name, str)]

    def wrong(self, kind: str, message: str, task: str = "", id: str = "") -> None:
        """Add a problem; texts from the file are made printable."""
        self.problems.append(Problem(kind, message, printable(task), printable(id)))

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        return {
            "ok": self.ok,
            "file": self.submission.path.name,
            "sha256": self.submission.hash,
            "rows": len(self.submission.document["samples"]),
            "scored_again": len(self.records),
            **({"read_by_judge": self.n_judged} if self.n_judged else {}),
            "metrics": {
                task_result.name: {
                    metric.label: metric.estimate.as_dict()
                    for metric in task_result.metrics
                }
                for task_result in self.results
            },
            "problems": plain(self.problems),
        }


def verify_submission(
    submission: Submission, *, task_files: Sequence[Path] = ()
) -> Verification:
    """Check a submission against the installed tasks, or the trusted ones in `task_files`.

    Raises:
        UsageError: a file of `task_files` is wrong; anything about the submission is a Problem.
    """
    verification = Verification(submission)
    if not submission.intact:
        verification.wrong(
            "changed",
            "the content does not match its SHA-256: it was changed after it was"
            " written",
        )
    _check_run(verification)
    tasks_of_files: dict[str, Task] = {}
    for file in task_files:
        tasks_of_files |= {
            task.name: task
            for task in load_tasks(
                str(file),
                overrides=_data_file_overrides(submission, file),
                **_prompt_settings(submission),
            )
        }
    claims = _read_claims(verification)
    found_tasks = {
        name: _find_task(verification, claim, tasks_of_files)
        for name, claim in claims.items()
    }
    tasks = {name: task for name, task in found_tasks.items() if task is not None}
    verification.tasks += tasks.values()
    rows = _read_rows(verification, claims)
    for name, task in tasks.items():
        asyncio.run(_verify_task(verification, task, claims[name], rows))
    return verification


def _check_run(verification: Verification) -> None:
    """Report claims about the run that are impossible or unsafe to display."""
    run = verification.submission.run
    model = as_mapping(run.get("model"))
    settings = as_mapping(run.get("configuration"))
    for key in ("name", "label"):
        name = model.get(key)
        if isinstance(name, str) and has_control(name):
            verification.wrong(
                "impossible",
                f"'run.model.{key}' has control characters: '{printable(name)[:60]}'",
            )
    for fault in impossible_amounts(
        {section: run.get(section) for section in ("seconds", "usage", "hardware")},
        "run",
    ):
        verification.wrong("impossible", fault)
    where = settings.get("where")
    if where and not (
        isinstance(where, list)
        and all(isinstance(condition, str) for condition in where)
    ):
        verification.wrong(
            "filter",
            f"its filter cannot be used: {printable(str(where))[:60]} is no list of"
            " conditions",
        )
    limit = settings.get("limit")
    seed = settings.get("seed")
    if limit is not None and _parse_limit(limit) is None:
        verification.wrong(
            "impossible", f"its limit is {printable(str(limit))[:60]}, which is none"
        )
    if seed is not None and type(seed) is not int:
        verification.wrong(
            "impossible",
            f"its seed is {printable(str(seed))[:60]}, which is no whole number",
        )


def _parse_limit(limit: Any) -> int | float | None:
    """Parse a limit; None if it is invalid."""
    share = isinstance(limit, float) and 0 < limit < 1
    return limit if share or (type(limit) is int and limit > 0) else None


# -- tasks -----------------------------------------------------------------------------


def _read_claims(verification: Verification) -> dict[str, Mapping[str, Any]]:
    """Read what the file says of each task, by name."""
    claims: dict[str, Mapping[str, Any]] = {}
    listed = verification.submission.document["tasks"]
    for claim in listed[:_MOST_TASKS]:
        if not isinstance(claim, Mapping) or not isinstance(claim.get("name"), str):
            verification.wrong("broken", "an entry of 'tasks' has no name")
        elif claim["name"] in claims:
            verification.wrong("doubled", "the task is listed twice", claim["name"])
        else:
            claims[claim["name"]] = claim
    if not claims or len(listed) > _MOST_TASKS:
        verification.wrong("broken", f"it lists {len(listed)} tasks")
    return claims


def _prompt_settings(submission: Submission) -> dict[str, Any]:
    """Return how prompts were rendered, which depends on the model's abilities."""
    form = as_mapping(submission.run.get("configuration")).get("format")
    abilities = as_mapping(submission.run.get("model")).get("abilities")
    chat = isinstance(abilities, list) and "chat" in abilities
    return {"prompt_format": form if form in ("chat", "text") else "auto", "chat": chat}


def _data_file_overrides(submission: Submission, file: Path) -> dict[str, Any] | None:
    """Return the settings with which a data file is a task whose questions a model answers.

    It is None for task files, and for recorded answers, which the data file itself holds.
    """
    name = str(as_mapping(submission.run.get("model")).get("name"))
    if name.startswith(RECORDED) or not as_data_file(str(file)):
        return None
    return {"answer.mode": "generate"}


def _find_task(
    verification: Verification,
    claim: Mapping[str, Any],
    tasks_of_files: Mapping[str, Task],
) -> Task | None:
    """Find the installed task, or one of the reader's own, with the submission's filter applied."""
    name = str(claim["name"])
    task = tasks_of_files.get(name) or _load_installed(verification, name)
    if task is None:
        return None
    where = as_mapping(verification.submission.run.get("configuration")).get("where")
    conditions = (
        [condition for condition in where if isinstance(condition, str)]
        if isinstance(where, list)
        else []
    )
    try:
        (task,) = filtered([task], read_conditions(conditions)).tasks
    except (ConfigurationError, ValueError) as error:
        verification.wrong("filter", f"its filter cannot be used: {error}", name)
        return None
    version, content = (
        printable(str(claim.get(key))) for key in ("version", "content_hash")
    )
    content_hash = task.samples.content_hash
    difference = ""
    if version != task.version:
        difference = (
            f"made with version {version} of the task, here it is {task.version}"
        )
    elif content != content_hash:
        difference = (
            f"made with other data of the same version {version} of the task (SHA-256"
            f" {content[:12]}, here {content_hash[:12]})"
        )
    if difference:
        verification.wrong("another version", difference, name)
    return task


def _load_installed(verification: Verification, name: str) -> Task | None:
    """Load an installed task by its listed name, which is never taken for a path."""
    installed = TaskIndex(()).names()
    if name not in installed:
        near = closest(name[:200], installed)
        meant = f"; did you mean '{near[0]}'?" if near else ""
        message = (
            f"there is no task of this name here{meant} (a file of your own: --task"
            " FILE)"
        )
        verification.wrong("unknown task", message, name)
        return None
    try:
        loaded = load_tasks(name, **_prompt_settings(verification.submission))
    except EvalwrightError as error:
        verification.wrong("unknown task", f"it cannot be loaded: {error}", name)
        return None
    task = next((task for task in loaded if task.name == name), None)
    if task is None:
        verification.wrong("unknown task", "the name is that of a group", name)
    return task


# -- rows ------------------------------------------------------------------------------

Key = tuple[str, str, int]


def _read_rows(
    verification: Verification, names: Collection[str]
) -> dict[Key, Mapping[str, Any]]:
    """Read the rows by task, id and draw; broken and duplicate ones are reported."""
    rows: dict[Key, Mapping[str, Any]] = {}
    for number, row in enumerate(verification.submission.document["samples"], 1):
        wrong = _find_shape_fault(row)
        if wrong:
            verification.wrong("broken", f"row {number}: {wrong}")
            continue
        key = (row["task"], row["id"], row["draw"])
        if row["task"] not in names:
            verification.wrong(
                "unknown task",
                f"row {number} is of a task that is not listed",
                *key[:2],
            )
        elif key in rows:
            verification.wrong(
                "doubled",
                f"row {number} is the sample a second time (draw {row['draw']})",
                *key[:2],
            )
        else:
            rows[key] = row
    return rows


def _find_shape_fault(row: Any) -> str:
    if not isinstance(row, Mapping):
        return "it is not an object"
    for key, expected_type in (
        ("task", str),
        ("id", str),
        ("answer", str),
        ("responses", list),
        ("scores", dict),
    ):
        if not isinstance(row.get(key), expected_type):
            return f"`{key}` is missing or not valid"
    if not isinstance(row.get("draw"), int) or isinstance(row["draw"], bool):
        return "`draw` is not a whole number"
    return ""


async def _verify_task(
    verification: Verification,
    task: Task,
    claim: Mapping[str, Any],
    rows: Mapping[Key, Mapping[str, Any]],
) -> None:
    unscored = [
        scorer.name
        for scorer in task.scorers
        if scorer.roles or scorer.kind in PROGRAMS
    ]
    if unscored:
        message = (
            f"{', '.join(unscored)} uses a model or runs programs, so its scores cannot"
            " be checked here"
        )
        verification.wrong("not verifiable", message, task.name)
        return
    seen: set[Key] = set()
    tally = TaskTally([scorer.name for scorer in task.scorers], task.slices)
    missing: list[str] = []
    for index, draw in product(
        _expected_indices(verification, task), range(task.draws)
    ):
        sample = task.samples[index]
        key = (task.name, sample.id, draw)
        seen.add(key)
        row = rows.get(key)
        if row is None:
            missing.append(sample.id)
            continue
        try:
            record = await _score_again(task, index, draw, row)
        except _CannotScore as wrong:
            verification.wrong(wrong.kind, printable(str(wrong)), task.name, sample.id)
            continue
        _check_row(verification, task, record, row)
        verification.records.append(record)
        tally.add(record)
    for name in missing:
        verification.wrong("missing", "the sample has no row", task.name, name)
    sample_ids = {sample.id for sample in task.samples} if rows.keys() - seen else set()
    for _, name, draw in sorted(
        key for key in rows if key[0] == task.name and key not in seen
    ):
        message = "the task has no such sample"
        if name in sample_ids:
            message = f"draw {draw} of it is not one of these settings"
        verification.wrong("unknown sample", message, task.name, name)
    metrics = task.found_metrics(tally.names()) if task.found_metrics else task.metrics
    task_result = tally.result(task.name, task.version, metrics)
    verification.results.append(task_result)
    _check_metrics(verification, task_result, claim)


def _expected_indices(verification: Verification, task: Task) -> array[int]:
    """List the samples that the settings select, in the order of the task."""
    settings = as_mapping(verification.submission.run.get("configuration"))
    limit = settings.get("limit")
    seed = settings.get("seed")
    n_limit = _parse_limit(limit)
    start = seed if isinstance(seed, int) and not isinstance(seed, bool) else 0
    return array(
        "q",
        sorted(sample_order(len(task.samples), start, n_limit, task.order == "file")),
    )


class _CannotScore(Exception):
    """A row whose responses cannot be scored. kind: of the problem."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


async def _score_again(
    task: Task, index: int, draw: int, row: Mapping[str, Any]
) -> SampleRecord:
    """Create the record that the task makes from the row's raw responses. Raises _CannotScore."""
    try:
        responses = [_parse_response(response) for response in row["responses"]]
    except (TypeError, ValueError, KeyError, OverflowError) as error:
        raise _CannotScore("broken", f"a response is not valid: {error}") from error
    if not responses:
        raise _CannotScore("broken", "it has no response")
    remaining = iter(responses)

    async def ask(role: str, request: Request) -> Response:
        if role != TARGET:
            raise LookupError(f"it needs a model in the role '{role}'")
        response = next(remaining, None)
        if response is None:
            raise LookupError("it has fewer responses than the task sends requests")
        return response

    record = await evaluate_sample(task, index, task.samples[index], draw, ask)
    failure = record.failure or next(iter(record.score_failures.values()), None)
    if failure is not None:
        raise _CannotScore("not scored", failure.message)
    if next(remaining, None) is not None:
        raise _CannotScore(
            "broken", "it has more responses than the task sends requests"
        )
    return record


def _is_number(number: Any) -> bool:
    return (
        isinstance(number, int | float)
        and not isinstance(number, bool)
        and not math.isnan(number)
    )


def _is_token(token: Any) -> bool:
    """Tell whether a value has the form that `TokenLogProb.as_dict` writes."""
    if (
        not isinstance(token, list)
        or not 2 <= len(token) <= 3
        or not isinstance(token[0], str)
    ):
        return False
    others = token[2] if len(token) == 3 else []
    are_pairs = isinstance(others, list) and all(
        isinstance(alternative, list) and len(alternative) == 2
        for alternative in others
    )
    return (
        _is_number(token[1])
        and are_pairs
        and all(
            isinstance(alternative[0], str) and _is_number(alternative[1])
            for alternative in others
        )
    )


_RESPONSE: Mapping[str, Callable[[Any], bool]] = {
    **dict.fromkeys(
        ("text", "reasoning", "finish_reason", "stopped_at"),
        lambda field: isinstance(field, str),
    ),
    **dict.fromkeys(("log_likelihood", "tokens_scored"), _is_number),
    "is_greedy": lambda field: isinstance(field, bool),
    "tokens": (
        lambda field: (
            isinstance(field, list) and all(_is_token(token) for token in field)
        )
    ),
    "values": (
        lambda field: (
            isinstance(field, list)
            and all(isinstance(number, int | float) for number in field)
        )
    ),
    "usage": lambda field: (
        isinstance(field, Mapping)
        and all(
            isinstance(amount, int) and 0 <= amount < 1 << 40
            for amount in field.values()
        )
    ),
}
"""The keys that a response may have, each with a check of its value."""


def _parse_response(record: Any) -> Response:
    """Build a response from a checked mapping. Raises TypeError or ValueError."""
    if not isinstance(record, Mapping):
        raise TypeError("it is not an object")
    for name, content in record.items():
        if name not in _RESPONSE:
            raise ValueError(f"it has the unknown part '{name}'")
        if not _RESPONSE[name](content):
            raise TypeError(f"its '{name}' has the wrong type")
    return Response.from_dict(dict(record))


def _check_row(
    verification: Verification, task: Task, record: SampleRecord, row: Mapping[str, Any]
) -> None:
    """Report where a row differs from what its responses yield."""
    answer = record.answer
    sample = record.sample
    assert answer is not None

    def wrong(kind: str, message: str) -> None:
        verification.wrong(kind, message, task.name, sample.id)

    if row.get("sample_sha256") != sample_hash(sample):
        wrong(
            "another question",
            "the question, its options or its targets differ from the task's",
        )
    if row.get("prompt_sha256") != prompt_hash(answer.prompt):
        wrong("another prompt", "the prompt differs from the task's")
    if row["answer"] != answer.text:
        claimed = printable(row["answer"][:60])
        real = printable(answer.text[:60])
        wrong(
            "wrong answer",
            f"the answer is given as '{claimed}', but its response says '{real}'",
        )
    for name, score in record.scores.items():
        claim = as_mapping(row["scores"].get(name))
        claimed_value = claim.get("value")
        label = claim.get("label", "")
        if not _is_close(claimed_value, score.value) or label != score.label:
            claimed_text = (
                "no score"
                if claimed_value is None
                else printable(f"{claimed_value} {label}".strip())
            )
            real = f"{score.value:g} {score.label}".strip()
            why = f" ({printable(score.explanation)})" if score.explanation else ""
            wrong(
                "wrong score", f"{name} is given as {claimed_text}, and is {real}{why}"
            )
    for name in sorted(row["scores"].keys() - record.scores.keys()):
        wrong("wrong score", f"{printable(name)} is not a score of this task")


def _check_metrics(
    verification: Verification, task_result: TaskResult, claim: Mapping[str, Any]
) -> None:
    listed = claim.get("metrics")
    claims = {
        metric["label"]: metric
        for metric in (listed if isinstance(listed, list) else ())
        if isinstance(metric, Mapping) and isinstance(metric.get("label"), str)
    }
    for metric in task_result.metrics:
        claimed = claims.pop(metric.label, {})
        real = metric.estimate.as_dict()
        keys = ("value", "low", "high", "n", "n_missing")
        key = next(
            (key for key in keys if not _is_close(claimed.get(key), real[key])), None
        )
        if key is not None:
            claimed_text = printable(str(claimed.get(key)))
            message = (
                f"{metric.label}: {key} is given as {claimed_text}, and is {real[key]}"
            )
            verification.wrong("wrong metric", message, task_result.name)
    for label in claims:
        verification.wrong(
            "wrong metric",
            f"{printable(label)} is not a metric of this task",
            task_result.name,
        )


def _is_close(claimed: Any, real: float | None) -> bool:
    if real is None or claimed is None:
        return claimed is None and (real is None or math.isnan(real))
    if isinstance(claimed, bool) or not isinstance(claimed, int | float):
        return False
    try:
        return math.isclose(float(claimed), real, rel_tol=_CLOSE, abs_tol=_CLOSE)
    except OverflowError:
        return False
