"""Numbers for the explorer's plots: scores by length, time, cost and confidence; label sets."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.confidence import ConfidenceRows
from evalwright.analysis.judge_validation.drawing import LabelSet, find_set
from evalwright.analysis.judge_validation.panels import measure_agreement
from evalwright.analysis.judge_validation.verdicts import shown_answer
from evalwright.core.errors import EvalwrightError
from evalwright.reports.explorer.parts import seconds_of, short_id
from evalwright.runs.reader import Run
from evalwright.runs.results import TaskResult
from evalwright.runs.scores import NAN, read_rows
from evalwright.statistics import Estimate, calibration_error, mean_interval

MOST_BINS = 10
LEAST_IN_BIN = 10
"""The least number of samples in a bin; with few samples, there are fewer bins."""

Array = NDArray[np.float64]


@dataclass(slots=True)
class _Rows(ConfidenceRows):
    """The scores of one task and the quantities that they are plotted against; nan for none."""

    length: list[float] = field(default_factory=list)
    latency: list[float] = field(default_factory=list)
    cost: list[float] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        ConfidenceRows.add(self, row)
        answer = shown_answer(row)
        costs = [response.get("cost") for response in row.get("responses", ())]
        self.length.append(NAN if answer is None else len(answer))
        self.latency.append(seconds_of(row) or NAN)
        self.cost.append(NAN if not costs or None in costs else float(sum(costs)))


def plots_of(run: Run) -> dict[str, Any]:
    """Compute the score curves of each task and the agreement of judges, as JSON.

    `Plots` in web/src/data/api.ts describes it. Raises RunError for records that cannot be read.
    """
    tasks = {task.name: _Rows(task.main.scorer) for task in run.tasks if task.main}
    read_rows(run, tasks)
    curves = [
        curve
        for task in run.tasks
        if task.main
        for curve in _curves(task, tasks[task.name])
    ]
    try:
        pairs = measure_agreement([run]).pairs
    except EvalwrightError:  # fewer than two judges, or no verdicts
        pairs = ()
    agreement = [
        {
            "a": pair.a,
            "b": pair.b,
            "raw": estimate_json(pair.raw),
            "kappa": estimate_json(pair.kappa),
            "onlyA": pair.only_a,
            "onlyB": pair.only_b,
        }
        for pair in pairs
    ]
    return {"curves": curves, "agreement": agreement}


def read_label_sets(run: Run) -> list[LabelSet]:
    """Read the label sets of a run, newest first.

    Sets that cannot be read, or are of other records, are left out.
    """
    files = sorted(
        run.folder.glob("labelling-*.json"), key=lambda path: -path.stat().st_mtime
    )
    sets = []
    for path in files:
        try:
            label_set = find_set(path.stem.removeprefix("labelling-"), [run.folder])
        except EvalwrightError:
            continue
        if label_set is not None and label_set.samples_sha256 == run.samples_sha256:
            sets.append(label_set)
    return sets


def describe_label_sets(run: Run, sets: Sequence[LabelSet]) -> list[dict[str, Any]]:
    """Describe label sets as JSON (`LabelSet` in web/src/data/api.ts).

    It reads all records, to know which ones are at the sets' positions.

    Args:
        run: the run.
        sets: its label sets; those with positions that it has not are left out.

    Raises:
        RunError: the records cannot be read, or are not those of the run.
    """
    of_task: dict[tuple[str, ...], list[tuple[str, str, int]]] = {
        label_set.tasks: [] for label_set in sets
    }
    for row in run.rows():
        for tasks, rows in of_task.items():
            if row["task"] in tasks:
                rows.append(
                    (str(row["task"]), short_id(str(row["id"])), int(row["draw"]))
                )
    return [
        {
            "name": label_set.name,
            "scorer": label_set.scorer,
            "graded": label_set.graded,
            "rows": [of_task[label_set.tasks][row] for row in label_set.rows],
        }
        for label_set in sets
        if max(label_set.rows) < len(of_task[label_set.tasks])
    ]


def _curves(task: TaskResult, rows: _Rows) -> list[dict[str, Any]]:
    assert task.main is not None
    scores = np.array(rows.right, dtype=np.float64)
    valid_scores = scores[~np.isnan(scores)]
    bounded = bool(len(valid_scores)) and bool(
        ((valid_scores >= 0) & (valid_scores <= 1)).all()
    )
    clusters = np.array(rows.keys, np.int64)
    source, confidence = rows.confidence()
    against = {
        "length": np.array(rows.length),
        "latency": np.array(rows.latency),
        "cost": np.array(rows.cost),
        "confidence": confidence,
    }
    curves = []
    for name, numbers in against.items():
        bins = _bins(numbers, scores, clusters, bounded)
        if len(bins) < 2:
            continue
        notes = []
        if name == "confidence":
            if not np.isin(valid_scores, (0.0, 1.0)).all():
                continue
            notes = [f"Confidence: {source}.", *_calibration(numbers, scores, clusters)]
        without = int((np.isnan(numbers) & ~np.isnan(scores)).sum())
        if without:
            notes.append(
                f"{without:,} scored samples have no such number and are left out."
            )
        curves.append(
            {
                "task": task.name,
                "metric": f"mean score of {task.main.scorer}",
                "bounded": bounded,
                "lowerIsBetter": False,
                "against": name,
                "bins": bins,
                "notes": notes,
            }
        )
    return curves


def _bins(
    numbers: Array, scores: Array, clusters: NDArray[np.int64], bounded: bool
) -> list[dict[str, Any]]:
    """Group samples that have a number and a score into bins of about equal size.

    Samples with the same number share a bin.
    """
    usable = ~np.isnan(numbers) & ~np.isnan(scores) & np.isfinite(numbers)
    positions = numbers[usable]
    y = scores[usable]
    groups = clusters[usable]
    n = min(MOST_BINS, len(positions) // LEAST_IN_BIN)
    if n < 2 or positions.min() == positions.max():
        return []
    edges = np.unique(
        np.quantile(positions, np.arange(1, n) / n, method="inverted_cdf")
    )
    codes = np.searchsorted(edges, positions, side="left")
    bins = []
    for code in range(len(edges) + 1):
        in_bin = codes == code
        if not in_bin.any():
            continue
        estimate = mean_interval(
            y[in_bin],
            clusters=groups[in_bin],
            value_range=(0.0, 1.0) if bounded else None,
        )
        low, mean, high = (
            float(f(positions[in_bin])) for f in (np.min, np.mean, np.max)
        )
        bins.append(
            {"low": low, "high": high, "mean": mean, "score": estimate_json(estimate)}
        )
    return bins


def _calibration(
    confidence: Array, right: Array, clusters: NDArray[np.int64]
) -> Sequence[str]:
    """Write the calibration error as a sentence; nothing where it cannot be computed."""
    try:
        error = calibration_error(confidence, right, clusters=clusters)
    except ValueError:
        return ()
    if math.isnan(error.value):
        return ()
    points = [f"{100 * number:.1f}" for number in (error.value, error.low, error.high)]
    interval = "" if math.isnan(error.low) else f" [{points[1]}, {points[2]}]"
    return (
        (
            f"Expected calibration error {points[0]}{interval} points of 100, over"
            f" {error.bins} bins."
        ),
    )


def estimate_json(estimate: Estimate) -> dict[str, Any]:
    """Convert an estimate to JSON (`Estimate` in web/src/data/api.ts)."""
    return {
        "value": number_json(estimate.value),
        **interval_json(estimate.low, estimate.high),
        "n": estimate.n,
        "missing": estimate.n_missing,
        "method": estimate.method,
    }


def interval_json(low: float, high: float) -> dict[str, float]:
    """Return both ends of an interval; {} where there is none."""
    return {} if math.isnan(low) or math.isnan(high) else {"low": low, "high": high}


def number_json(number: float) -> float | None:
    """Return the number, or None for nan, which JSON does not have."""
    return None if math.isnan(number) else number
