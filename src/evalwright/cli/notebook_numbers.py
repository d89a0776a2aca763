"""The numbers of SEA-HELM's notebook as columns of a board: means over runs, by its arithmetic."""

from __future__ import annotations

import math
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

from evalwright.analysis.extra_columns import ExtraColumn, column_of_estimates
from evalwright.cli.foreign import NOTEBOOKS
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.statistics import Estimate

if TYPE_CHECKING:
    from evalwright.runs.reader import Run

NUMBERS_FILE = "*_scores.yaml"

NOTE = (
    "Columns 'over runs' are the numbers of SEA-HELM's notebook, 0 to 100: of each question one"
    " run's score is drawn, 30 times. Its 'stderr' is no standard error of the score, so they"
    " have no interval; the others have."
)

OF_ALL = {"sea_mean": ("sea", "SEA"), "mean": ("all", "All")}
"""Key in the notebook's file, name and title of the numbers that are not of one language."""


def notebook_columns(runs: Sequence[Run]) -> tuple[ExtraColumn, ...]:
    """Make the columns of the notebook's numbers, for runs with several answers to a question.

    Args:
        runs: the board's runs in the order of its rows.

    Returns:
        The SEA average, the mean of all languages, and each language; nothing if no run has the
        tasks of SEA-HELM with several answers to each question.
    """
    numbers_by_run = [_numbers_of(run) for run in runs]
    if all(isinstance(numbers, str) for numbers in numbers_by_run):
        return ()
    languages = dict.fromkeys(
        key
        for numbers in numbers_by_run
        if not isinstance(numbers, str)
        for key, entry in numbers.items()
        if isinstance(entry, Mapping)
    )
    columns = {
        **OF_ALL,
        **{language: (language, language) for language in languages},
    }
    return tuple(
        column_of_estimates(
            [
                _estimate(run, numbers, key)
                for run, numbers in zip(runs, numbers_by_run, strict=True)
            ],
            name=f"over_runs.{name}",
            title=f"{title} over runs",
            measure="0 to 100",
            lower_is_better=False,
            note=NOTE,
        )
        for key, (name, title) in columns.items()
    )


def _numbers_of(run: Run) -> Mapping[str, Any] | str:
    """Return the content of the notebook's file for a run, or why there is none."""
    import yaml

    draws = {int(task.get("draws", 1)) for task in run.data["tasks"]}
    if max(draws) < 2:
        return "one answer to each question"
    dialects = {
        (task.get("definition") or {}).get("dialect") for task in run.data["tasks"]
    }
    exports = [NOTEBOOKS[dialect] for dialect in dialects if dialect in NOTEBOOKS]
    if not exports:
        return "no task of SEA-HELM"
    if run.has_published_scores:
        return "the run was published without its samples"
    export = resolve_name(exports[0])
    with tempfile.TemporaryDirectory() as folder:
        try:
            export([run], Path(folder), over_runs=True)
        except (RunError, ConfigurationError) as error:
            return str(error)
        files = sorted(Path(folder).rglob(NUMBERS_FILE))
        if len(files) != 1:
            return "the notebook has no numbers of it"
        numbers: Mapping[str, Any] = yaml.safe_load(files[0].read_text("utf-8"))
        return numbers


def _estimate(run: Run, numbers: Mapping[str, Any] | str, key: str) -> Estimate | str:
    if isinstance(numbers, str):
        return numbers
    entry = numbers.get(key)
    mean = entry.get("mean") if isinstance(entry, Mapping) else entry
    if not isinstance(mean, int | float) or math.isnan(mean):
        return "the notebook has no such number"
    n_runs = max(int(task.get("draws", 1)) for task in run.data["tasks"])
    method = f"no interval: SEA-HELM's notebook over {n_runs} runs"
    n = sum(int(task["n_samples"]) for task in run.data["tasks"])
    return Estimate(float(mean), math.nan, math.nan, 0.95, n, 0, None, None, method)
