"""The three numbers of a factual run: accuracy, share hallucinated and share refused.

A stress question rests on something false, so the right answer is no answer. Refused means that the
answer declines or corrects, hallucinated that it makes something up or goes along; anything else
(partial, empty, unreadable) is in neither share.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evalwright.metrics.registry import Column, compute
from evalwright.runs.measures import UNIT_RANGE
from evalwright.runs.reader import Run
from evalwright.runs.scores import cluster_code, hashed
from evalwright.statistics import Estimate, macro_average

ACCURACY = "accuracy"
HALLUCINATED = "hallucinated"
REFUSED = "refused"
SHARES = (ACCURACY, HALLUCINATED, REFUSED)
STRESS = "stress"
"""The scorer of stress questions."""

CLASSES: Mapping[str, frozenset[str]] = {
    REFUSED: frozenset({"refusal", "correction", "refusal_or_correction"}),
    HALLUCINATED: frozenset(
        {"fabricated", "premise accepted", "hallucination_candidate"}
    ),
}
"""Labels of the scorer, and the equivalents in imported runs, by share."""

_TAG = "factuality"


def is_factual(runs: Sequence[Run]) -> bool:
    """Whether all tasks of all runs are factual, with some stress questions among them."""
    tasks = [task for run in runs for task in run.data["tasks"]]
    metadata = [task.get("metadata") or {} for task in tasks]
    # Runs imported before the tag existed lack it; a stress scorer beside them shows what they are.
    of_facts = all(
        _TAG in (metadata_of_task.get("tags") or ()) or "imported" in metadata_of_task
        for metadata_of_task in metadata
    )
    return of_facts and any(map(_is_stress, tasks))


def _is_stress(task: Mapping[str, Any]) -> bool:
    return any(scorer["name"] == STRESS for scorer in task["scorers"])


def factual_shares(run: Run) -> dict[str, Estimate]:
    """Compute the factual numbers that a run has, by name.

    Accuracy is the mean over its tasks whose first metric is accuracy. A stress answer is one item
    (the mean of its draws) with the label that its scorer gave; missing and unsure ones are counted
    separately.

    Raises:
        RunError: records cannot be read.
    """
    stress = {task["name"] for task in run.data["tasks"] if _is_stress(task)}
    shares: dict[str, Estimate] = {}
    mains = [task.main for task in run.tasks if task.main and task.name not in stress]
    accuracies = [main.estimate for main in mains if main.kind == "accuracy"]
    if len(accuracies) == 1:
        shares[ACCURACY] = accuracies[0]
    elif accuracies:
        shares[ACCURACY] = macro_average(accuracies, value_range=UNIT_RANGE)
    labels = _read_stress_labels(run, stress) if stress else {}
    if any(labels_read for _, labels_read, _ in labels.values()):
        shares |= {
            name: _share_of_classes(labels, classes)
            for name, classes in CLASSES.items()
        }
    return shares


Labels = Mapping[tuple[str, str], tuple[str, Sequence[str], Sequence[str]]]
"""(task, id) -> cluster, the labels of its draws, and why scores are unsure.

There are no labels where all draws are missing.
"""


def _read_stress_labels(run: Run, tasks: set[str]) -> Labels:
    labels_by_item: dict[tuple[str, str], tuple[str, list[str], list[str]]] = {}
    for row in run.score_rows():
        if row["task"] in tasks:
            _, labels, unsure = labels_by_item.setdefault(
                (row["task"], row["id"]), (row.get("cluster", ""), [], [])
            )
            if (score := row["scores"].get(STRESS)) is not None:
                labels.append(str(score.get("label", "")))
                unsure += [reason] if (reason := score.get("unsure")) else []
    return labels_by_item


def _share_of_classes(labels: Labels, classes: frozenset[str]) -> Estimate:
    scored = {key: row for key, row in labels.items() if row[1]}
    values = np.array(
        [
            sum(label in classes for label in draw_labels) / len(draw_labels)
            for _, draw_labels, _ in scored.values()
        ]
    )
    codes = [
        cluster_code(cluster, hashed("\0".join(key)))
        for key, (cluster, _, _) in scored.items()
    ]
    column = Column(values, {}, np.array(codes, np.int64), len(labels) - len(scored))
    return replace(
        compute("accuracy", column),
        n_unsure=sum(bool(unsure) for _, _, unsure in scored.values()),
    )


def hardware_of(run: Run) -> str:
    """Return the hardware's label, from the run or the file it was imported from.

    "" without one.
    """
    configuration = run.data["configuration"]
    places = [(run.data.get("hardware"), "label")]
    places += [
        (configuration.get(section), "hardware")
        for section in ("imported", "submission")
    ]
    names = [holder.get(key) for holder, key in places if isinstance(holder, Mapping)]
    return next((label for label in names if isinstance(label, str) and label), "")
