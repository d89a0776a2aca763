"""Whether a model knows when it is right: calibration and risk-coverage of a finished run.

An answer's confidence is the one it states ("Confidence: 80%") or, where the model chose by
log-probabilities, the chosen option's share of the options' probability. Answers without a
confidence are counted, never guessed.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.core.errors import RunError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.runs.scores import NAN, cluster_code, hashed, read_rows
from evalwright.scorers.text.confidence import stated_confidence
from evalwright.statistics import (
    BrierScore,
    CalibrationError,
    Estimate,
    RiskCoverage,
    SelectiveAccuracy,
    accuracy_at_coverage,
    auroc,
    brier_score,
    calibration_error,
    risk_coverage,
)

STATED = "stated in the answer"
OPTIONS = "log-probabilities of the options"
COVERAGES = (0.25, 0.5, 0.75, 1.0)


@dataclass(frozen=True, slots=True)
class TaskConfidence(Plain):
    """How well confidence predicts correctness on one task.

    Args:
        task: the task's name.
        scorer: the column of scores.
        source: where confidences come from.
        answers: number of answers.
        without: how many answers have no confidence.
        failed: how many answers have no score.
        brier: the Brier score and its parts.
        calibration: the calibration error.
        auroc: the chance that a right answer has a higher confidence than a wrong one.
        risk_coverage: the error rate by the share of questions answered.
        at_coverage: accuracy if only the most confident share is answered.
    """

    task: str
    scorer: str
    source: str
    answers: int
    without: int
    failed: int
    brier: BrierScore
    calibration: CalibrationError
    auroc: Estimate
    risk_coverage: RiskCoverage
    at_coverage: tuple[SelectiveAccuracy, ...]


@dataclass(slots=True)
class ConfidenceRows:
    """The records of one task as columns.

    Args:
        scorer: the column of scores.
        stated: confidences stated in the answers, nan if there is none.
        options: confidences from the options' log-probabilities, nan if there is none.
        right: scores, nan if there is none.
        keys: hashes of items, or of their clusters.
    """

    scorer: str
    stated: list[float] = field(default_factory=list)
    options: list[float] = field(default_factory=list)
    right: list[float] = field(default_factory=list)
    keys: list[int] = field(default_factory=list)

    def add(self, row: Mapping[str, Any]) -> None:
        """Add a record."""
        score = row["scores"].get(self.scorer, {}).get("value")
        stated = (
            None
            if "failure" in row
            else stated_confidence(str(row.get("answer") or ""))
        )
        self.stated.append(NAN if stated is None else stated)
        self.options.append(_option_confidence(row))
        self.right.append(NAN if score is None else float(score))
        # Draws of an item are one unit, and so are items of a cluster.
        self.keys.append(cluster_code(row.get("cluster"), hashed(str(row["id"]))))

    def confidence(self) -> tuple[str, NDArray[np.float64]]:
        """Choose the source with more confidences; returns its name and one value per record.

        The values have the shape (records,), nan without a confidence.
        """
        stated = np.array(self.stated)
        options = np.array(self.options)
        of_options = (~np.isnan(stated)).sum() < (~np.isnan(options)).sum()
        return (OPTIONS, options) if of_options else (STATED, stated)


def measure_confidence(run: Run) -> tuple[TaskConfidence, ...]:
    """Measure the confidence of a run's answers, for each task whose answers have one.

    Raises:
        RunError: no task has any, scores are not 0 and 1, or records cannot be read.
    """
    measured_tasks = tuple(
        measured
        for name, rows in _read_confidence_rows(run).items()
        if (measured := _measure_task(name, rows)) is not None
    )
    if not measured_tasks:
        raise RunError(
            f"No answer of '{run.id}' has a confidence: none is stated, and no option"
            " was chosen by log-probabilities. Ask for one in the prompt, on a line of"
            " its own after an empty line: Confidence: 80%."
        )
    return measured_tasks


def list_confidences(run: Run) -> list[tuple[str, list[float], list[int]]]:
    """List each task's confidences from 0 to 1, and whether those answers were right.

    Answers without confidence or score are left out. Raises RunError as `measure_confidence`.
    """
    tasks = _read_confidence_rows(run)
    pairs_by_task = []
    for task in measure_confidence(run):
        rows = tasks[task.task]
        right = np.array(rows.right)
        _, confidence = rows.confidence()
        has_both = ~(np.isnan(confidence) | np.isnan(right))
        pairs_by_task.append(
            (
                task.task,
                confidence[has_both].tolist(),
                right[has_both].astype(int).tolist(),
            )
        )
    return pairs_by_task


def _read_confidence_rows(run: Run) -> dict[str, ConfidenceRows]:
    tasks = {
        task.name: ConfidenceRows(task.main.scorer) for task in run.tasks if task.main
    }
    read_rows(run, tasks)
    return tasks


def _measure_task(task: str, rows: ConfidenceRows) -> TaskConfidence | None:
    right = np.array(rows.right)
    source, confidence = rows.confidence()
    has_confidence = ~np.isnan(confidence)
    if not has_confidence.any():
        return None
    if not np.isin(right[~np.isnan(right)], (0.0, 1.0)).all():
        scores = f"The scores of '{task}' ({rows.scorer})"
        raise RunError(
            f"{scores} are not all right or wrong (1 or 0), so confidence cannot be"
            " compared with them."
        )
    keys = np.array(rows.keys, np.int64)
    scored = int((~np.isnan(right)).sum())
    return TaskConfidence(
        task=task,
        scorer=rows.scorer,
        source=source,
        answers=len(right),
        without=scored - int((has_confidence & ~np.isnan(right)).sum()),
        failed=len(right) - scored,
        brier=brier_score(confidence, right, clusters=keys),
        calibration=calibration_error(confidence, right, clusters=keys),
        auroc=auroc(confidence, right, clusters=keys),
        risk_coverage=risk_coverage(confidence, right, clusters=keys),
        at_coverage=tuple(
            accuracy_at_coverage(confidence, right, share, clusters=keys)
            for share in COVERAGES
        ),
    )


def _option_confidence(row: Mapping[str, Any]) -> float:
    """The chosen option's share of all options' probability; nan if none was chosen that way."""
    values = row.get("log_likelihoods") or ()
    choice = row.get("choice")
    if choice is None or len(values) < 2 or not 0 <= choice < len(values):
        return NAN
    most = max(values)
    if not math.isfinite(most):
        return NAN
    weights = [math.exp(log_likelihood - most) for log_likelihood in values]
    return float(weights[choice] / math.fsum(weights))
