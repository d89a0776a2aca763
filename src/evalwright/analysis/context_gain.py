"""Context gain: a run's scores with passages minus its scores without them, paired by question.

A task NAME with passages has a twin NAME-closed-book without them, scored alike, so the difference
is due to the passages. It is shown over all questions, and separately for those that the passages
answer and those that they do not: a model that knows nothing and says so is right on the latter
either way.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.runs.reader import Run
from evalwright.runs.score_tables import item_scores
from evalwright.runs.scores import paired_scores
from evalwright.statistics import PairedComparison, compare_paired

TWIN = "-closed-book"
_SLICE = "answerable"
_PARTS = {"True": "answerable", "False": "not answerable"}


@dataclass(frozen=True, slots=True)
class ContextGain:
    """What passages add to one run on one task.

    Args:
        run: the run's id.
        task: the task's name.
        scorer: the column of scores.
        parts: scores with passages minus without, over all questions first, then by whether the
            passages answer them.
    """

    run: str
    task: str
    scorer: str
    parts: dict[str, PairedComparison]

    def as_dict(self) -> dict[str, Any]:
        """Return a plain mapping for JSON."""
        gains = [
            {"questions": name, **comparison.as_dict()}
            for name, comparison in self.parts.items()
        ]
        task = {"task": self.task, "without": self.task + TWIN}
        return {"run": self.run, **task, "scorer": self.scorer, "parts": gains}


def measure_context_gains(run: Run) -> tuple[ContextGain, ...]:
    """Measure the gain of each task whose twin the run has too, by the first scorer they share."""
    records = {
        record["name"]: [scorer["name"] for scorer in record["scorers"]]
        for record in run.data["tasks"]
    }
    gains = []
    for task, scorers in records.items():
        shared = [name for name in records.get(task + TWIN, ()) if name in scorers]
        if shared and (comparisons := _compare_with_twin(run, task, shared[0])):
            gains.append(ContextGain(run.id, task, shared[0], comparisons))
    return tuple(gains)


def _compare_with_twin(run: Run, task: str, scorer: str) -> dict[str, PairedComparison]:
    scores_by_task = item_scores(run, {task: scorer, task + TWIN: scorer}, [_SLICE])
    keys, values, missing, clusters = paired_scores(
        scores_by_task[task], scores_by_task[task + TWIN]
    )
    if not len(keys):
        return {}
    chosen = {"all": np.ones(len(keys), dtype=bool)}
    codes = scores_by_task[task].slices.get(_SLICE)
    if codes is not None:
        answerable = codes.codes[np.searchsorted(scores_by_task[task].keys, keys)]
        for name in sorted(codes.names, reverse=True):
            chosen[_PARTS.get(name, name)] = answerable == codes.names.index(name)

    def compare(mask: NDArray[np.bool_]) -> PairedComparison:
        groups = None if clusters is None else clusters[mask]
        return compare_paired(
            *values[:, mask], missing=missing[:, mask], clusters=groups
        )

    return {name: compare(mask) for name, mask in chosen.items() if mask.any()}
