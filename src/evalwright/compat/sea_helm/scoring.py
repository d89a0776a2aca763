"""What scores a task of SEA-HELM's: a definition of ours (`corrected`), or its own arithmetic
(`published`). Here alone it is chosen.

Corrected: the last claim of a response counts, labels and the chance of guessing them come from the
definition, all references and whole answers are compared, nothing raises, and every number has its
interval.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import replace
from pkgutil import resolve_name

from evalwright import UsageError
from evalwright.compat.recording import not_scored
from evalwright.compat.sea_helm.corrected.definitions import corrected_scoring
from evalwright.compat.sea_helm.metric_classes import METRICS
from evalwright.compat.sea_helm.published.scoring import (
    Made,
    PublishedScoring,
    SeaHelmRaised,
    failed_as_published,
    published_metrics,
)
from evalwright.compat.sea_helm.sea_task import DIALECT, SCORER, Row, SeaTask
from evalwright.extend import MetricSpec, Scorer, ScoringError, TaskError

_FOLDER_METRIC = {"published": {"family": "folder_metrics:FolderMetric"}}
"""What a class comes to that is not in the table: the folder's own Python, in either scoring."""


class NotScoredHere(UsageError):
    """A task whose metric is not here."""


def scoring_of(task: SeaTask, rows: Sequence[Row]) -> Made:
    """The scorers and metrics of a task, the metric that it stands for first. rows: all of the
    task.

    A sample has its row as metadata "row". Raises NotScoredHere for a metric class that is known
    and not here, UsageError for one that is not known and not trusted, or cannot be had.
    """
    entry = METRICS.get(task.scored_by, _FOLDER_METRIC)
    if "refused" in entry:
        raise NotScoredHere(f"The task '{task.name}' {entry['refused']}")
    try:
        if not task.published and "corrected" in entry:
            return corrected_scoring(task, rows, entry)
        family: type[PublishedScoring] = resolve_name(
            f"{__package__}.published.{entry['published']['family']}"
        )
        return family(task, rows, entry).scorers_and_metrics()
    except (
        LookupError,
        TypeError,
        ValueError,
        AttributeError,
        ScoringError,
        SeaHelmRaised,
    ) as error:
        why = f"it has no {error}" if isinstance(error, KeyError) else str(error)
        raise TaskError(
            f"The task '{task.name}' ({task.language}), or a row of it, is not what"
            f" {task.scored_by[1]} scores: {why}."
        ) from None


def scoring_without_data(task: SeaTask) -> Made:
    """The scorer and the metric of a task that is not asked: those of its other kind of run, so
    that it uses the same models.

    Its number is missing; as published it is 0, as that of every task that SEA-HELM's code fails
    on.
    """
    scorer = Scorer(SCORER, DIALECT, {"scoring": task.scoring}, not_scored)
    metrics = [MetricSpec(task.metric, "accuracy", SCORER)]
    with suppress(UsageError):
        (own_scorer,), published = scoring_of(task, ())
        scorer = replace(
            scorer,
            options=own_scorer.options,
            roles=own_scorer.roles,
            able=own_scorer.able,
        )
        metrics = published if task.published else metrics
    if task.published and metrics[0].function is None:
        metrics = published_metrics([task.metric], failed_as_published)
    return [scorer], metrics
