"""The catalog that the explorer reads first: runs with their numbers, the board, comparisons.

All numbers are computed elsewhere.
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
from evalwright.reports.explorer.index import label_sets_part
from evalwright.reports.explorer.parts import MALFORMED, RowKeys, array_part
from evalwright.reports.explorer.plots import (
    estimate_json,
    interval_json,
    number_json,
)
from evalwright.reports.hardware_view import hardware_facts
from evalwright.reports.provenance import TEMPLATE, import_section, provenance_facts
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

MOST_TEMPLATES = 6
"""Most prompt templates among a run's facts."""
MOST_TEMPLATE_CHARS = 1_000
MOST_PAIRED = 8
"""Most runs for which a page includes the comparison of every pair."""


def catalog(
    runs: Sequence[Mapping[str, Any]],
    board: Mapping[str, Any] | None,
    *,
    title: str,
    live: bool = False,
    chosen_from_folder: bool = False,
    now: datetime | None = None,
) -> dict[str, Any]:
    """The part "catalog", which the page reads first.

    Args:
        runs: What `run_info` gives for each run.
        board: What `board_of` gives for the runs.
        title: The page's title.
        live: Whether the page is served, so that runs may grow.
        chosen_from_folder: Whether the page begins with a list of runs to choose from, and boards
            are made of the chosen ones.
        now: When the catalog is made; by default now.
    """
    return {
        "format": 1,
        "title": title,
        "made": (now or datetime.now(UTC)).isoformat(timespec="seconds"),
        "version": __version__,
        "live": live,
        "chosenFromFolder": chosen_from_folder,
        "runs": list(runs),
        "board": board,
    }


def run_info(key: str, run: Run, records: int) -> dict[str, Any]:
    """Build the catalog entry of a finished run. Raises RunError for a malformed record."""
    try:
        return _run_info(key, run, records)
    except MALFORMED as error:
        raise RunError(
            f"The record of '{run.name}' is not that of a run ({type(error).__name__}:"
            f" {error})."
        ) from error


def _run_info(key: str, run: Run, records: int) -> dict[str, Any]:
    usage = run.data["usage"].get("answers") or run.data["usage"].get("usage") or {}
    images = KeptImages(run.folder, run.data)
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
        "prompt": _prompt_text(run),
        "labelSets": label_sets_part(run),
        "hasImages": bool(images.entries),
        "imagesMissing": images.why_missing,
    }


MOST_PROMPT_CHARS = 4_000
"""Characters of a prompt's template that are shown in the head of a column."""


def _prompt_text(run: Run) -> str:
    """The template that a run was made with in place of its tasks' own; "" where there is none."""
    if not run.prompt or not run.tasks:
        return ""
    prompt = run.record(run.tasks[0].name).get("definition", {}).get("prompt") or {}
    parts = [prompt.get(part) for part in ("system", "user")]
    text = "\n\n".join(part for part in parts if isinstance(part, str) and part)
    return text[:MOST_PROMPT_CHARS]


def task_info(task: TaskResult, description: str) -> dict[str, Any]:
    """Describe a task of a run, with its numbers."""
    return {
        "name": task.name,
        "description": description,
        "samples": task.n_samples,
        "missing": _count_missing(task),
        "unsure": task.n_unsure,
        "outcomes": dict(task.outcomes),
        "failures": dict(task.failures),
        "metrics": [_metric(metric) for metric in task.metrics],
        "slices": [
            {
                "key": key,
                "parts": [
                    {"name": slice_name, "metric": _metric(metrics[0])}
                    for slice_name, metrics in by_value.items()
                    if metrics
                ],
            }
            for key, by_value in task.slices.items()
        ],
    }


def _count_missing(task: TaskResult) -> int:
    """Samples without a score; a task without metrics has none scored, and its failures count."""
    return task.n_missing if task.metrics else sum(task.failures.values())


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
        **({} if metric.has_direction else {"noDirection": True}),
        **estimate_json(metric.estimate),
    }


def _facts(run: Run) -> list[tuple[str, str]]:
    """List further facts about a run, as (name, text) pairs."""
    record = run.data
    configuration = record["configuration"]
    facts = [
        ("Model", run.model),
        ("Prompt", run.prompt.get("name", "")),
        ("SHA-256 of the prompt", run.prompt.get("hash", "")),
        ("Fingerprint", str(record["model"].get("fingerprint", ""))),
        *(
            (f"Role {role}", str(model.get("name", "")))
            for role, model in record.get("roles", {}).items()
        ),
        *reply_name_facts(record),
        *(
            (key.capitalize(), str(configuration[key]))
            for key in ("seed", "limit", "where", "format")
            if configuration.get(key) is not None
        ),
        (
            "Imported by" if import_section(run) else "Made with",
            f"Evalwright {record.get('evalwright', '')}",
        ),
        *_shortened_templates(provenance_facts(run)),
        *usage_facts(record),
        *hardware_facts(record),
        *((f"Version of {task.name}", task.version) for task in run.tasks),
        *(("Ended", sentence) for sentence in stopping_sentences(run)),
        *_import_notes(run),
        ("Images", images_sentence(run.folder, run.data)),
        ("Folder", run.name),
        ("SHA-256 of the samples", str(record["samples"].get("sha256", ""))),
    ]
    return [(name, text) for name, text in facts if text]


def _shortened_templates(facts: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    """Shorten the prompts' templates: the catalog has the facts of every run of a folder."""
    n_templates = 0
    kept_facts = []
    for name, text in facts:
        if name.startswith(TEMPLATE):
            n_templates += 1
            if n_templates > MOST_TEMPLATES:
                continue
            if len(text) > MOST_TEMPLATE_CHARS:
                text = f"{text[:MOST_TEMPLATE_CHARS]}\n… (run.json has all of it)"
        kept_facts.append((name, text))
    return kept_facts


def _import_notes(run: Run) -> list[tuple[str, str]]:
    """List what a run's import noticed."""
    notes = import_section(run).get("notes")
    if not isinstance(notes, list):
        return []
    return [("Noted at import", str(note)) for note in notes]


def board_of(runs: Sequence[tuple[str, Run]]) -> dict[str, Any] | None:
    """Build the board of some runs, each passed with its key; None for fewer than two.

    Where no board can be made, its notes say why, and each run has its own scores without ranks.
    """
    if len(runs) < 2:
        return None
    from evalwright.analysis.board import make_board
    from evalwright.analysis.board_notes import (
        RANK_NOTE,
        SIMULTANEOUS_NOTE,
        SPLIT_NOTE,
        TIED_NOTE,
        UNRANKED_NOTE,
    )
    from evalwright.analysis.words import listed

    try:
        board = make_board([run for _, run in runs])
    except EvalwrightError as error:
        return _unranked_board(runs, f"There is no board of these runs: {error}")
    boards = [board, *board.more]
    # One table shows all units: ranks are those of the first, and say nothing of a run without it.
    is_ranked = len(boards) == 1 or all(row.ranks is not None for row in board.rows)
    cells = {
        id(task): (unit_board, task)
        for unit_board in boards
        for task in unit_board.tasks
    }
    columns = [
        {
            "name": task.name,
            "note": task.metric + (", less is better" if task.lower_is_better else ""),
        }
        for _, task in cells.values()
    ]
    rows = []
    for row in board.rows:
        row_by_board = {
            id(unit_board): next(
                other_row
                for other_row in unit_board.rows
                if other_row.run_index == row.run_index
            )
            for unit_board in boards
        }
        metrics = [
            row_by_board[id(unit_board)].cells.get(task.name)
            for unit_board, task in cells.values()
        ]
        first = board.tasks[0]
        overall = None
        if row.overall is not None and board.has_overall and is_ranked:
            overall = {
                "name": "Overall",
                "bounded": first.bounded,
                "lowerIsBetter": first.lower_is_better,
                **estimate_json(row.overall),
            }
        rows.append(
            {
                "run": runs[row.run_index][0],
                "ranks": row.ranks if is_ranked else None,
                "overall": overall,
                "cells": [_metric(metric) if metric else None for metric in metrics],
            }
        )
    # The page shows neither letters nor simultaneous intervals, and all units in one table.
    left_out = {TIED_NOTE, SIMULTANEOUS_NOTE, SPLIT_NOTE}
    if not is_ranked:
        left_out |= {RANK_NOTE, UNRANKED_NOTE}
    notes = dict.fromkeys(
        note
        for unit_board in boards
        for note in unit_board.notes
        if note not in left_out
    )
    if len(boards) > 1:
        note = (
            f"Ranks are by {listed([task.name for task in board.tasks])}."
            if is_ranked
            else "There are no ranks, as some runs have no task of the same unit."
        )
        notes = dict.fromkeys(
            [f"The tasks have different units or directions. {note}", *notes]
        )
    return {"columns": columns, "rows": rows, "notes": list(notes)}


def _unranked_board(runs: Sequence[tuple[str, Run]], note: str) -> dict[str, Any]:
    """The main scores of each run, with a column for each metric of a task and no ranks."""
    columns: dict[tuple[str, str, bool], None] = {}
    scores_by_run: dict[str, dict[tuple[str, str, bool], MetricResult]] = {}
    for key, run in runs:
        scores = scores_by_run.setdefault(key, {})
        for task in run.tasks:
            if task.metrics:
                metric = task.metrics[0]
                column = (task.name, metric.label, metric.less_is_better)
                columns.setdefault(column)
                scores[column] = metric
    rows = [
        {
            "run": key,
            "ranks": None,
            "overall": None,
            "cells": [
                _metric(scores[column]) if column in scores else None
                for column in columns
            ],
        }
        for key, scores in scores_by_run.items()
    ]
    heads = [
        {"name": task, "note": metric + (", less is better" if less_is_better else "")}
        for task, metric, less_is_better in columns
    ]
    return {"columns": heads, "rows": rows, "notes": [note]}


# -- two runs --------------------------------------------------------------------------


def comparison_part(a: tuple[str, Run, RowKeys], b: tuple[str, Run, RowKeys]) -> bytes:
    """Build the part "compare/A/B", packed: the comparison of two runs and their paired samples.

    Where the runs cannot be compared, it says why.
    """
    from evalwright.analysis.comparison import compare_runs
    from evalwright.reports.conclusions import (
        claimed_differences,
        headline,
        worded_comparison,
    )

    try:
        comparison = worded_comparison(compare_runs(a[1], b[1], most_flips=0))
    except EvalwrightError as error:
        return array_part({"a": a[0], "b": b[0], "refused": str(error)}, [])
    overall = None
    if comparison.overall is not None:
        overall = {
            "difference": _difference(comparison.overall),
            "pValue": number_json(comparison.overall.p_value),
        }
    head = {
        "a": a[0],
        "b": b[0],
        "tasks": [
            _task_difference(task, is_claimed)
            for task, is_claimed in zip(
                comparison.tasks, claimed_differences(comparison), strict=True
            )
        ],
        "overall": overall,
        "headline": headline(comparison),
        "conclusion": comparison.conclusion,
        "notes": [
            comparison.estimand,
            *comparison.caveats,
            *comparison.differences,
            *_warnings(comparison.tasks),
        ],
    }
    scorers = {task.task: task.scorer for task in comparison.tasks}
    return array_part(head, paired_places((a[1], a[2]), (b[1], b[2]), scorers))


def _warnings(tasks: Iterable[TaskComparison]) -> Iterable[str]:
    for task in tasks:
        if task.other_questions:
            yield f"On {task.task}, {task.other_questions}."
        yield from (f"{task.task}: {warning}" for warning in task.warnings)


def _task_difference(task: TaskComparison, is_claimed: bool) -> dict[str, Any]:
    comparison = task.result
    return {
        "task": task.task,
        "metric": task.metric,
        "bounded": task.bounded,
        "lowerIsBetter": task.lower_is_better,
        "paired": task.paired is not None,
        "a": number_json(comparison.mean_a),
        "b": number_json(comparison.mean_b),
        "difference": _difference(comparison),
        "pValue": number_json(comparison.p_value),
        "claimed": is_claimed,
        "onlyA": task.only_a,
        "onlyB": task.only_b,
        "sentence": task.sentence,
    }


def _difference(
    difference: PairedComparison | UnpairedComparison | MacroDifference,
) -> dict[str, Any]:
    n = getattr(difference, "n", None)
    return {
        "value": number_json(difference.difference),
        **interval_json(difference.low, difference.high),
        "n": n if n is not None else difference.n_a + difference.n_b,  # type: ignore[union-attr]
        "missing": difference.n_missing if hasattr(difference, "n_missing") else 0,
        "method": getattr(difference, "test", "")
        or getattr(difference, "interval_method", ""),
    }


# -- matching samples of two runs, as in comparisons, with both scores ---------------------


Side = tuple[Run, RowKeys]


def paired_places(a: Side, b: Side, scorers: Mapping[str, str]) -> list[array[Any]]:
    """Pair the samples of two runs, in the order of A.

    Args:
        a: The first run, and which sample each of its rows is.
        b: The second run, likewise.
        scorers: The scorer of each task that is compared.

    Returns:
        The rows of the first repeat of each item in A and in B, each as the difference from the row
        before, and its mean scores over repeats in A and in B (nan where there is none).
    """
    scores = [item_scores(run, scorers) for run, _ in (a, b)]
    joined: list[NDArray[np.float64]] = [np.zeros((4, 0))]
    for task in scorers:
        task_scores = [run_scores[task] for run_scores in scores]
        pairing = pair_items(task_scores)
        first, second = pairing.places
        _, in_a, in_b = np.intersect1d(
            first, second, assume_unique=True, return_indices=True
        )
        side_columns = []
        for (_, row_keys), side_scores, rows in (
            (a, task_scores[0], in_a),
            (b, task_scores[1], in_b),
        ):
            side_columns.append(
                (
                    _places(row_keys, task, side_scores.keys[rows]),
                    side_scores.values[rows],
                )
            )
        side_stack = np.stack(
            [
                side_columns[0][0],
                side_columns[1][0],
                side_columns[0][1],
                side_columns[1][1],
            ]
        )
        joined.append(side_stack[:, (side_stack[0] >= 0) & (side_stack[1] >= 0)])
    pairs = np.concatenate(joined, axis=1)
    pairs = pairs[:, np.argsort(pairs[0], kind="stable")]
    steps = np.diff(pairs[:2], axis=1, prepend=0).astype(np.int32)
    return [
        array("i", steps[0].tobytes()),
        array("i", steps[1].tobytes()),
        *(array("d", row.tobytes()) for row in pairs[2:]),
    ]


def _places(
    samples: RowKeys, task: str, keys: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Find the row of each item's first repeat; -1 for items that are missing."""
    code = samples.task_codes.get(task, -1)
    rows = np.flatnonzero(np.frombuffer(samples.tasks, np.int32) == code)
    if not len(rows):
        return np.full(len(keys), -1.0)
    item_keys = np.frombuffer(samples.keys, np.int64)[rows]
    order = np.lexsort((np.frombuffer(samples.draws, np.int32)[rows], item_keys))
    positions = np.minimum(
        np.searchsorted(item_keys, keys, sorter=order), len(item_keys) - 1
    )
    return np.where(
        item_keys[order[positions]] == keys, rows[order[positions]], -1
    ).astype(float)
