"""Panels of judges in finished runs: who judged, how often they differ, what each says alone."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from evalwright.analysis.words import count, counted, listed
from evalwright.core.secrets import without_address
from evalwright.runs.reader import Run
from evalwright.statistics import Estimate
from evalwright.tasks.panels import JUDGES_DIFFER, part_of_judge

_COMBINED = {
    "": "together",
    "mean": "by their mean",
    "majority": "by majority",
    "all": "if all agree that it is right",
    "any": "if any of them finds it right",
}


@dataclass(frozen=True, slots=True)
class PanelJudge:
    """One judge of a panel.

    Attributes:
        role: its role.
        name: its model.
        metric: label of the metric over its own verdicts, "" if there is none.
        alone: that metric's estimate.
    """

    role: str
    name: str
    metric: str
    alone: Estimate | None


@dataclass(frozen=True, slots=True)
class TaskPanel:
    """The panel of a scorer of a task.

    Attributes:
        task: the task.
        scorer: the scorer.
        combine: how the judges decide, "" for the scorer's usual way.
        judges: the judges.
        differ: the share of answers on which their verdicts differ.
    """

    task: str
    scorer: str
    combine: str
    judges: tuple[PanelJudge, ...]
    differ: Estimate | None

    @property
    def silent(self) -> list[tuple[PanelJudge, int]]:
        """Judges without a verdict on answers that the others scored, and on how many."""
        if self.differ is None:
            return []
        without = [
            (judge, judge.alone.n_missing - self.differ.n_missing)
            for judge in self.judges
            if judge.alone is not None
        ]
        return [(judge, n_answers) for judge, n_answers in without if n_answers > 0]


def list_panels(run: Run) -> list[TaskPanel]:
    """List the panels of a run's tasks."""
    return [
        panel
        for task in run.data["tasks"]
        for scorer in task["scorers"]
        if (panel := _panel_of(run, task, scorer)) is not None
    ]


def _panel_of(
    run: Run, task: Mapping[str, Any], scorer: Mapping[str, Any]
) -> TaskPanel | None:
    options = scorer.get("options") or {}
    judges = options.get("judges")
    if not isinstance(judges, list) or len(judges) < 2:
        return None
    specs = [
        spec
        for spec in task.get("metric_specs") or ()
        if spec["scorer"] == scorer["name"]
    ]
    metric_by_label = {
        metric.label: metric for metric in run.task(task["name"]).metrics
    }
    labels = {spec["kind"]: spec["label"] for spec in specs}
    differ = metric_by_label.get(labels.get(JUDGES_DIFFER, ""))
    if differ is None:
        return None
    label_by_part = {
        str(part): spec["label"]
        for spec in specs
        if (part := (spec.get("options") or {}).get("part"))
    }
    panel_judges = []
    for entry in judges:
        role = str(entry["role"] if isinstance(entry, Mapping) else entry)
        label = label_by_part.get(part_of_judge(scorer["kind"], role), "")
        alone = metric_by_label.get(label)
        panel_judges.append(
            PanelJudge(
                role,
                _name(run, role),
                label,
                None if alone is None else alone.estimate,
            )
        )
    return TaskPanel(
        task["name"],
        scorer["name"],
        str(options.get("combine", "")),
        tuple(panel_judges),
        differ.estimate,
    )


def _name(run: Run, role: str) -> str:
    model = (run.data.get("roles") or {}).get(role) or {}
    return str(model.get("label") or without_address(str(model.get("name", role))))


def panel_sentences(run: Run) -> Iterator[str]:
    """Say who the judges of each panel are, how often they differ, and who gave no verdict."""
    many = len(run.data["tasks"]) > 1
    for panel in list_panels(run):
        differ = panel.differ
        if differ is None or not differ.n:
            continue
        task = f" {panel.task}" if many else ""
        names = listed([f"{judge.name} ({judge.role})" for judge in panel.judges], 9)
        n_differ = round(differ.value * differ.n)
        yield (
            f"{len(panel.judges)} judges score{task}"
            f" {_COMBINED.get(panel.combine, 'together')}: {names}. They differ on"
            f" {count(n_differ)} of {counted(differ.n, 'answer')}: evalwright runs"
            f" samples {run.name} --where judges=differ"
        )
        for judge, n_answers in panel.silent:
            yield (
                f"{judge.name} ({judge.role}) gave no verdict on"
                f" {counted(n_answers, 'answer')} that the others scored."
            )


def panel_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Write what a board says of panels: how often judges differ, and what each says alone."""
    by_task: dict[tuple[str, tuple[str, ...]], list[TaskPanel]] = {}
    for run in runs:
        for panel in list_panels(run):
            names = tuple(judge.name for judge in panel.judges)
            by_task.setdefault((panel.task, names), []).append(panel)
    for (task, names), panels in by_task.items():
        shares = _points([panel.differ for panel in panels])
        if not shares:
            continue
        yield (
            f"'{task}' is judged by a panel of {len(names)}"
            f" {_COMBINED.get(panels[0].combine, 'together')} ({listed(names, 9)}); they"
            f" differ on {_range_text(shares)}% of a model's answers."
        )
        alone = [
            f"{names[index]} {_range_text(points)}"
            for index in range(len(names))
            if (points := _points([panel.judges[index].alone for panel in panels]))
        ]
        metric = panels[0].judges[0].metric
        if alone and metric:
            yield (
                f"What each judge says alone ({metric.partition(':')[0]} of the models):"
                f" {'; '.join(alone)}. To rank by one: --rank-by {task}.{metric}"
            )


def _points(estimates: Sequence[Estimate | None]) -> list[float]:
    return [
        100 * estimate.value
        for estimate in estimates
        if estimate is not None and not math.isnan(estimate.value)
    ]


def _range_text(points: Sequence[float]) -> str:
    low = f"{min(points):.1f}"
    high = f"{max(points):.1f}"
    return low if low == high else f"{low} to {high}"
