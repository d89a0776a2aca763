"""What the page reads first: the runs with their numbers, the board of several, and two runs
compared. All numbers are made elsewhere.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

from evalwright._version import __version__
from evalwright.core.errors import EvalwrightError, RunError
from evalwright.metrics.registry import BOUNDED
from evalwright.reports.documents.run import reply_name_facts, usage_facts
from evalwright.reports.endings import stopping_sentences
from evalwright.reports.explorer.parts import MALFORMED, Samples, array_part
from evalwright.reports.explorer.plots import (
    estimate_json,
    interval_json,
    label_sets_of,
    number_json,
)
from evalwright.reports.hardware_view import hardware_facts
from evalwright.runs.results import GroupResult, MetricResult, TaskResult

if TYPE_CHECKING:
    from evalwright.analysis.comparison import TaskComparison
    from evalwright.statistics import (
        MacroDifference,
        PairedComparison,
        UnpairedComparison,
    )
from array import array

import numpy as np
from numpy.typing import NDArray

from evalwright.runs.images import KeptImages, images_sentence
from evalwright.runs.pairing import pair_items
from evalwright.runs.reader import Run
from evalwright.runs.score_tables import item_scores

MOST_PAIRED = 8
"""Runs of which a file holds every pair."""


def catalog(
    runs: Sequence[Mapping[str, Any]],
    board: Mapping[str, Any] | None,
    *,
    title: str,
    live: bool = False,
    now: datetime | None = None,
) -> dict[str, Any]:
    """The part "catalog"."""
    return {
        "format": 1,
        "title": title,
        "made": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "version": __version__,
        "live": live,
        "runs": list(runs),
        "board": board,
    }


def run_info(key: str, run: Run, records: int) -> dict[str, Any]:
    """A finished run. Raises RunError where its record has another form than ours."""
    try:
        return _run_info(key, run, records)
    except MALFORMED as error:
        raise RunError(
            f"The record of '{run.name}' is not that of a run ({type(error).__name__}:"
            f" {error})."
        ) from error


def _run_info(key: str, run: Run, records: int) -> dict[str, Any]:
    usage = run.data["usage"].get("answers") or run.data["usage"].get("usage") or {}
    images = KeptImages(run)
    return {
        "key": key,
        "name": run.name,
        "label": run.label,
        "model": run.model,
        "started": str(run.data["started"]),
        "seconds": run.data.get("seconds"),
        "state": "finished",
        "records": records,
        "expected": records,
        "tasks": [
            task_info(task, str(run.record(task.name).get("description", "")))
            for task in run.tasks
        ],
        "groups": [_group(group) for group in run.groups],
        "cost": run.cost,
        "inputTokens": int(usage.get("input_tokens", 0)),
        "outputTokens": int(usage.get("output_tokens", 0)),
        "facts": _facts(run),
        "labelSets": label_sets_of(run),
        "hasImages": bool(images.entries),
        "imagesMissing": images.why_missing,
    }


def task_info(task: TaskResult, description: str) -> dict[str, Any]:
    """A task of a run, with its numbers."""
    return {
        "name": task.name,
        "description": description,
        "samples": task.n_samples,
        "missing": task.n_missing,
        "unsure": task.n_unsure,
        "outcomes": dict(task.outcomes),
        "failures": dict(task.failures),
        "metrics": [_metric(metric) for metric in task.metrics],
        "slices": [
            {
                "key": key,
                "parts": [
                    {"name": value, "metric": _metric(metrics[0])}
                    for value, metrics in by_value.items()
                    if metrics
                ],
            }
            for key, by_value in task.slices.items()
        ],
    }


def _group(group: GroupResult) -> dict[str, Any]:
    return {
        "name": group.name,
        "label": group.label,
        "parts": list(group.parts or group.tasks),
        "metric": _metric(group.metrics[0]) if group.metrics else None,
    }


def _metric(metric: MetricResult) -> dict[str, Any]:
    bounded = metric.kind in BOUNDED
    return {
        "name": metric.label,
        "bounded": bounded,
        "lowerIsBetter": metric.less_is_better,
        **estimate_json(metric.estimate),
    }


def _facts(run: Run) -> list[tuple[str, str]]:
    """What else there is to know, in words."""
    data = run.data
    configuration = data["configuration"]
    facts = [
        ("Model", run.model),
        ("Fingerprint", str(data["model"].get("fingerprint", ""))),
        *(
            (f"Role {role}", str(model.get("name", "")))
            for role, model in data.get("roles", {}).items()
        ),
        *reply_name_facts(data),
        *(
            (key.capitalize(), str(configuration[key]))
            for key in ("seed", "limit", "where", "format")
            if configuration.get(key) is not None
        ),
        ("Evalwright", str(data.get("evalwright", ""))),
        *usage_facts(data["usage"]),
        *hardware_facts(data),
        *((f"Version of {task.name}", task.version) for task in run.tasks),
        *(("Ended", sentence) for sentence in stopping_sentences(run)),
        ("Images", images_sentence(run)),
        ("Folder", run.name),
        ("SHA-256 of the samples", str(data["samples"].get("sha256", ""))),
    ]
    return [(name, text) for name, text in facts if text]


def board_of(runs: Sequence[tuple[str, Run]]) -> dict[str, Any] | None:
    """The board of some runs, each with its key; None for fewer than two.

    Where none can be made the notes say why, and the runs stand without numbers.
    """
    if len(runs) < 2:
        return None
    from evalwright.analysis.board import SIMULTANEOUS_NOTE, TIED_NOTE, make_board

    try:
        board = make_board([run for _, run in runs])
    except EvalwrightError as error:
        alone: list[dict[str, Any]] = [
            {"run": key, "ranks": None, "overall": None, "cells": []} for key, _ in runs
        ]
        return {
            "columns": [],
            "rows": alone,
            "notes": [f"There is no board of these runs: {error}"],
        }
    boards = [board, *board.more]
    cells = {id(task): (one, task) for one in boards for task in one.tasks}
    columns = [
        {
            "name": task.name,
            "note": task.metric + (", less is better" if task.lower_is_better else ""),
        }
        for _, task in cells.values()
    ]
    rows = []
    for row in board.rows:
        own = {
            id(one): next(
                other for other in one.rows if other.run_index == row.run_index
            )
            for one in boards
        }
        found = [own[id(one)].cells.get(task.name) for one, task in cells.values()]
        first = board.tasks[0]
        overall = None
        if row.overall is not None and board.has_overall:
            overall = {
                "name": "Overall",
                "bounded": first.bounded,
                "lowerIsBetter": first.lower_is_better,
                **estimate_json(row.overall),
            }
        rows.append(
            {
                "run": runs[row.run_index][0],
                "ranks": row.ranks,
                "overall": overall,
                "cells": [_metric(one) if one else None for one in found],
            }
        )
    # The page has no letters, and no intervals that hold for all runs at once.
    notes = dict.fromkeys(
        note
        for one in boards
        for note in one.notes
        if note not in (TIED_NOTE, SIMULTANEOUS_NOTE)
    )
    return {"columns": columns, "rows": rows, "notes": list(notes)}


# -- two runs --------------------------------------------------------------------------


def comparison_part(a: tuple[str, Run, Samples], b: tuple[str, Run, Samples]) -> bytes:
    """The part "compare/A/B", packed: what `evalwright compare A B` says, and which samples are one
    item; or why it refuses the two.
    """
    from evalwright.analysis.comparison import compare_runs
    from evalwright.reports.conclusions import worded_comparison

    try:
        found = worded_comparison(compare_runs(a[1], b[1], most_flips=0))
    except EvalwrightError as error:
        return array_part({"a": a[0], "b": b[0], "refused": str(error)}, [])
    overall = None
    if found.overall is not None:
        overall = {
            "difference": _difference(found.overall),
            "sentence": found.conclusion,
        }
    head = {
        "a": a[0],
        "b": b[0],
        "tasks": [_task_difference(task) for task in found.tasks],
        "overall": overall,
        "conclusion": found.conclusion,
        "notes": [
            found.estimand,
            *found.caveats,
            *found.differences,
            *_warnings(found.tasks),
        ],
    }
    scorers = {task.task: task.scorer for task in found.tasks}
    return array_part(head, paired_places((a[1], a[2]), (b[1], b[2]), scorers))


def _warnings(tasks: Iterable[TaskComparison]) -> Iterable[str]:
    for task in tasks:
        if task.other_questions:
            yield f"On {task.task}, {task.other_questions}."
        yield from (f"{task.task}: {warning}" for warning in task.warnings)


def _task_difference(task: TaskComparison) -> dict[str, Any]:
    found = task.result
    return {
        "task": task.task,
        "metric": task.metric,
        "bounded": task.bounded,
        "lowerIsBetter": task.lower_is_better,
        "paired": task.paired is not None,
        "a": number_json(found.mean_a),
        "b": number_json(found.mean_b),
        "difference": _difference(found),
        "pValue": number_json(found.p_value),
        "onlyA": task.only_a,
        "onlyB": task.only_b,
        "sentence": task.sentence,
    }


def _difference(
    found: PairedComparison | UnpairedComparison | MacroDifference,
) -> dict[str, Any]:
    n = getattr(found, "n", None)
    return {
        "value": number_json(found.difference),
        **interval_json(found.low, found.high),
        "n": n if n is not None else found.n_a + found.n_b,  # type: ignore[union-attr]
        "missing": found.n_missing if hasattr(found, "n_missing") else 0,
        "method": getattr(found, "test", "") or getattr(found, "interval_method", ""),
    }


# -- which samples of two runs are one item: paired as comparisons pair them, with both scores


Side = tuple["Run", "Samples"]


def paired_places(a: Side, b: Side, scorers: Mapping[str, str]) -> list[array[Any]]:
    """Places in A and in B, each as its difference from the one before, and mean scores over
    repeats, nan where there is none.

    The place is that of an item's first repeat. In the order of A. scorers: of the tasks that are
    compared.
    """
    scores = [item_scores(run, scorers) for run, _ in (a, b)]
    found: list[NDArray[np.float64]] = [np.zeros((4, 0))]
    for task in scorers:
        own = [one[task] for one in scores]
        pairing = pair_items(own)
        first, second = pairing.places
        _, in_a, in_b = np.intersect1d(
            first, second, assume_unique=True, return_indices=True
        )
        sides = []
        for (_, samples), one, rows in ((a, own[0], in_a), (b, own[1], in_b)):
            sides.append((_places(samples, task, one.keys[rows]), one.values[rows]))
        made = np.stack([sides[0][0], sides[1][0], sides[0][1], sides[1][1]])
        found.append(made[:, (made[0] >= 0) & (made[1] >= 0)])
    whole = np.concatenate(found, axis=1)
    whole = whole[:, np.argsort(whole[0], kind="stable")]
    steps = np.diff(whole[:2], axis=1, prepend=0).astype(np.int32)
    return [
        array("i", steps[0].tobytes()),
        array("i", steps[1].tobytes()),
        *(array("d", row.tobytes()) for row in whole[2:]),
    ]


def _places(
    samples: Samples, task: str, keys: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Where the first repeat of each item stands, -1 for one that is not there."""
    code = (samples.columns["task"].names or {}).get(task, -1)
    rows = np.flatnonzero(np.frombuffer(samples.tasks, np.int32) == code)
    if not len(rows):
        return np.full(len(keys), -1.0)
    own = np.frombuffer(samples.keys, np.int64)[rows]
    order = np.lexsort((np.frombuffer(samples.draws, np.int32)[rows], own))
    at = np.minimum(np.searchsorted(own, keys, sorter=order), len(own) - 1)
    return np.where(own[order[at]] == keys, rows[order[at]], -1).astype(float)
