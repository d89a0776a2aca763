"""Several judges for the scorers of a task that ask one: who is in the panel, and its metrics.

A scorer is given the panel if it has an option `judges`, and the task names nobody but `judge` in
it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import MetricSpec, Scorer, Task

JUDGES_DIFFER = "judges-differ"
"""The metric that is the share of answers on which the judges of a panel differ."""
_SOLE_JUDGE = (None, "judge", ["judge"], ("judge",))
"""Values of the option `judges` that name nobody but the usual role."""
_OF_EACH_JUDGE = ("hallucination-rate", "accuracy", "exact-match", "mean")
"""Metrics that are also computed of each judge's own verdicts."""


@dataclass(frozen=True, slots=True)
class Panel:
    """The judges of a panel and how they decide.

    Attributes:
        names: a short name of each judge, by role.
        options: `combine` and `needs` of the scorers, where they are set.
    """

    names: Mapping[str, str]
    options: Mapping[str, Any]

    @property
    def roles(self) -> list[str]:
        """The roles, in order."""
        return list(self.names)


def with_panel(task: Task, panel: Panel) -> Task:
    """Return the task with a panel in place of its one judge, in its definition too.

    Metrics for the disagreement, and for each judge alone, are added.

    Raises:
        UsageError: a scorer cannot combine judges so.
    """
    scorers = panel_scorers(task.scorers, panel)
    metrics = with_panel_metrics(scorers, task.metrics, panel)
    definition = dict(task.definition)
    if recorded := definition.get("scorers"):
        options = {scorer.name: dict(scorer.options) for scorer in scorers}
        definition["scorers"] = [
            {**scorer, "options": options[scorer["name"]]} for scorer in recorded
        ]
    if recorded := definition.get("metrics"):
        by_label = {metric.label: metric for metric in task.metrics}
        recorded_by_label = dict(zip(by_label, recorded, strict=True))
        definition["metrics"] = [
            recorded_by_label.get(metric.label) or _definition_of(metric)
            for metric in metrics
        ]
    return replace(task, scorers=scorers, metrics=metrics, definition=definition)


def panel_scorers(scorers: Sequence[Scorer], panel: Panel) -> tuple[Scorer, ...]:
    """Return the scorers, those that ask the one judge bound to the panel instead.

    Raises:
        UsageError: a scorer cannot combine judges so.
    """
    return tuple(
        _with_roles(scorer, panel) if _asks_sole_judge(scorer) else scorer
        for scorer in scorers
    )


def _asks_sole_judge(scorer: Scorer) -> bool:
    from evalwright.scorers.registry import registry

    if scorer.kind not in registry.names():
        return False
    option = registry.options(scorer.kind).get("judges")
    return (
        option is not None
        and option.default == ("judge",)
        and scorer.options.get("judges") in _SOLE_JUDGE
    )


def _with_roles(scorer: Scorer, panel: Panel) -> Scorer:
    from evalwright.scorers.registry import bind, registry

    known = registry.options(scorer.kind)
    for name in panel.options:
        if name not in known:
            raise ConfigurationError(
                f"The scorer '{scorer.name}' has its own way to combine judges: leave"
                f" out '{name}' of the panel."
            )
    # What the task says of its own scorer counts more than what is said for all.
    options = {**panel.options, **scorer.options, "judges": panel.roles}
    return bind(scorer.kind, options, scorer.name)


def with_panel_metrics(
    scorers: Sequence[Scorer], metrics: Sequence[MetricSpec], panel: Panel
) -> tuple[MetricSpec, ...]:
    """Add the metrics of a panel to those of a task: each judge alone, and the disagreement.

    They follow the first metric of the scorer that the panel judges.

    Args:
        scorers: the scorers, bound to the panel.
        metrics: the task's metrics.
        panel: the panel.
    """
    ordered = list(metrics)
    first_scorer = metrics[0].scorer if metrics else ""
    for scorer in scorers:
        part_of = _PARTS_BY_KIND.get(scorer.kind)
        if part_of is None or list(scorer.options.get("judges") or ()) != panel.roles:
            continue
        prefix = "" if scorer.name == first_scorer else f"{scorer.name}-"
        main = next((metric for metric in metrics if _is_of(metric, scorer.name)), None)
        added = [] if main is None else list(_metrics_of_judges(main, part_of, panel))
        added.append(MetricSpec(f"{prefix}{JUDGES_DIFFER}", JUDGES_DIFFER, scorer.name))
        labels = {metric.label for metric in ordered}
        place = len(ordered) if main is None else ordered.index(main) + 1
        ordered[place:place] = [
            metric for metric in added if metric.label not in labels
        ]
    return tuple(ordered)


def _metrics_of_judges(
    main: MetricSpec, part_of: str, panel: Panel
) -> Iterator[MetricSpec]:
    """Make a copy of a metric for each judge, over that judge's own verdicts."""
    for role, name in panel.names.items():
        options = {**main.options, "part": part_of.format(role=role)}
        yield MetricSpec(f"{main.label}:{name}", main.kind, main.scorer, options)


_PARTS_BY_KIND = {
    "consistency": "{role} verdict",
    "judge-correct": "{role}",
    "judge-pair": "{role}",
    "judge-rating": "{role}",
    "judge-rubric": "{role}",
}
"""By kind of scorer: the part of a score that is one judge's own value."""


def part_of_judge(scorer_kind: str, role: str) -> str:
    """Return the part of a panel's scores that is one judge's own value; "" if there is none."""
    return _PARTS_BY_KIND.get(scorer_kind, "").format(role=role)


def _is_of(metric: MetricSpec, scorer: str) -> bool:
    return (
        metric.scorer == scorer
        and metric.kind in _OF_EACH_JUDGE
        and not metric.options.get("part")
    )


def _definition_of(metric: MetricSpec) -> dict[str, Any]:
    return {
        "name": metric.label,
        "use": metric.kind,
        "scorer": metric.scorer,
        "options": dict(metric.options),
    }


def without_panel(scorer: Scorer) -> Scorer:
    """Return a scorer that the setting `judge` gave a panel, bound to one judge again."""
    from evalwright.scorers.registry import bind

    roles = list(scorer.options.get("judges") or ())
    if len(roles) < 2 or roles != [
        "judge" if number == 1 else f"judge-{number}"
        for number in range(1, len(roles) + 1)
    ]:
        return scorer
    options = {
        name: option
        for name, option in scorer.options.items()
        if name not in ("judges", "combine", "needs")
    }
    return bind(scorer.kind, options, scorer.name)


def is_of_panel(metric: MetricSpec) -> bool:
    """Tell whether a panel added a metric (`with_panel_metrics`)."""
    return is_panel_metric(_definition_of(metric))


def is_panel_metric(metric: Mapping[str, Any]) -> bool:
    """Tell whether a panel added a metric of a task's definition."""
    part = str((metric.get("options") or {}).get("part", ""))
    is_of_judge = part.startswith("judge") and ":" in str(metric.get("name", ""))
    return metric.get("use") == JUDGES_DIFFER or is_of_judge
