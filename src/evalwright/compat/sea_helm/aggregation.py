"""SEA-HELM's tree of numbers: tasks, aggregation groups, competencies, languages, the SEA average,
all languages.

Corrected: the one tree of tasks (`metrics/tree.py`), each part of a node counting the same; a task
without a number is missing in all nodes above it and never 0. Published: the arithmetic of
SEA-HELM's `aggregate_metrics`, in which a failed task is 0 and linguistic diagnostics go by rules
of their own.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm.published.scoring import (
    INDIVIDUAL,
    as_published,
    normalised,
)
from evalwright.compat.sea_helm.sea_task import DIALECT
from evalwright.extend import BOUNDED_METRICS, GroupAverage, TaskGroup, TreeNode

if TYPE_CHECKING:
    from evalwright.statistics import Estimate

SEA = ("id", "vi", "th", "ta", "tl", "ms", "my")
"""The languages of the SEA average."""
ERROR = "Failed to run evaluation for task"
_DIAGNOSTICS = "linguistic-diagnostics"
_PHENOMENA = ("scalar_implicatures", "presuppositions")
_PROBABILITIES = "average_cumulative_probabilities"
_LINDSEA = {
    "mp-r": "normalized_accuracy",
    "mp-r-logprobs": _PROBABILITIES,
    "pragmatics": "normalized_accuracy",
    "pragmatics-logprobs": _PROBABILITIES,
}
"""The metric of each, whose mean is the total."""

Tasks = Sequence[Mapping[str, Any]]
"""Tasks as in `run.json`; their definitions have `task`, `language`, `scoring`, the task's
`config`, and what the set names that does not exist (`left_out`).
"""
Results = dict[str, Any]
"""language -> competency -> task -> the numbers of its result."""


# -- published -------------------------------------------------------------------------


def result_of(task: Mapping[str, Any]) -> Results:
    """A task's numbers as SEA-HELM's result file nests them; a failed task has the published 0 and
    an error.
    """
    numbers: Results = {}
    for metric in task["metrics"]:
        value = metric["value"]
        if value is None or math.isnan(value) or metric["label"] == INDIVIDUAL.label:
            continue
        value = value * 100 if metric["kind"] in BOUNDED_METRICS else value
        if metric["method"].startswith("failed"):
            numbers["error"] = ERROR
        head, _, path = metric["label"].partition(".")
        name, _, end = path.rpartition(".")
        if not path:
            numbers[head] = value
        elif name and end in ("correct", "total"):
            numbers.setdefault(head, {}).setdefault(name, [0, 0])[end == "total"] = (
                value
            )
        else:
            of_head = numbers.setdefault(head, {})
            (of_head.setdefault(name, {}) if name else of_head)[end] = value
    return numbers


def _facts(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a task's configuration and definition say."""
    return {**task["definition"]["config"], **task["definition"]}


def aggregated(
    results: Results,
    tasks: Mapping[str, Mapping[str, Any]],
    lines: Mapping[tuple[str, str], int] | None = None,
) -> Results:
    """Results with SEA-HELM's totals. tasks: `metric`, `aggregation_group`, `aggregation_type` by
    name; lines: of the data file of a task and language, the weights of a micro-average.

    Raises KeyError, ZeroDivisionError and TypeError where its own code does: a pragmatic task that
    is not there ends the whole.
    """
    with_totals: Results = copy.deepcopy(results)
    for language, competencies in with_totals.items():
        for competency, competency_results in competencies.items():
            if competency == _DIAGNOSTICS:
                _diagnostics(competency_results)
            else:
                _competency(
                    competency_results, tasks, partial(_line, lines or {}, language)
                )
        competencies["total"] = _mean(
            [
                competency_results["total"]
                for competency_results in competencies.values()
            ]
        )
    with_totals["total"] = _mean(
        [competencies["total"] for competencies in with_totals.values()]
    )
    return with_totals


def _line(lines: Mapping[tuple[str, str], int], language: str, task: str) -> int:
    return lines[task, language]


def _mean(values: Collection[float]) -> float:
    return sum(values) / len(values)  # of nothing it raises what SEA-HELM's code raises


def _competency(
    competency_results: Results,
    tasks: Mapping[str, Mapping[str, Any]],
    size: Callable[[str], int],
) -> None:
    groups: dict[str, list[float]] = {}
    scores: dict[str, float] = {}
    for task, numbers in list(competency_results.items()):
        config = tasks[task]
        score = numbers[config["metric"]]
        group = config.get("aggregation_group")
        if not group:
            scores[task] = score
            continue
        times = size(task) if config.get("aggregation_type") == "micro-average" else 1
        groups.setdefault(group, []).extend([score] * times)
        competency_results[group] = scores[group] = _mean(groups[group])
    competency_results["total"] = _mean(scores.values())


def _diagnostics(competency_results: Results) -> None:
    """Pragmatics over both of its tasks, counted by phenomenon, then the mean with minimal pairs.

    The first task decides which kind it is.
    """
    logs = "logprobs" in next(iter(competency_results))
    ending = "-logprobs" if logs else ""
    tasks = [
        competency_results[f"pragmatic-{form}{ending}"]["subcategories"]
        for form in ("single", "pair")
    ]
    by_phenomenon: Results = {}
    for phenomenon in _PHENOMENA:
        parts = [
            subcategories[phenomenon]
            for subcategories in tasks
            if phenomenon in subcategories
        ]
        if logs:
            by_phenomenon[phenomenon] = {
                _PROBABILITIES: _mean([numbers[_PROBABILITIES] for numbers in parts])
            }
        else:
            right, total = (sum(counts[place] for counts in parts) for place in (0, 1))
            by_phenomenon[phenomenon] = {
                "accuracy": right / total,
                "correct_count": right,
                "total_count": total,
            }
    mean = _mean([next(iter(numbers.values())) for numbers in by_phenomenon.values()])
    scaled = {
        "accuracy": mean * 100,
        "normalized_accuracy": 100 * normalised(mean, 0.5, 1),
    }
    competency_results[f"pragmatics{ending}"] = {
        "subcategories": by_phenomenon,
        **({_PROBABILITIES: mean} if logs else scaled),
    }
    competency_results["total"] = _mean(
        [
            competency_results[name][metric]
            for name, metric in _LINDSEA.items()
            if metric in competency_results.get(name, ())
        ]
    )
    competency_results["lindsea"] = {
        "normalized_score": competency_results["total"],
        "subcategories": {},
    }


# -- the tree of a run -----------------------------------------------------------------


def dialect_groups(tasks: Tasks) -> list[TaskGroup]:
    """The nodes of the tree over a run's tasks, inner ones first; published ones with SEA-HELM's
    own number.
    """
    published = bool(tasks) and all(
        task["definition"].get("scoring") == "published" for task in tasks
    )
    main_metrics = {
        str(task["name"]): task["metrics"][0] for task in tasks if task["metrics"]
    }
    totals, why = _published_totals(tasks) if published else ({}, "")
    groups = []
    for path, node in _nodes(tasks):
        if metric_by_task := {
            name: main_metrics[name] for name in node.tasks if name in main_metrics
        }:
            published_estimate = (
                _estimate(_total_at(totals, path), why, list(metric_by_task.values()))
                if published
                else None
            )
            label = " ".join(path) or "all languages"
            averages = (
                GroupAverage("score", node, metric_by_task, published_estimate),
            )
            groups.append(TaskGroup(node.name, label, averages, _left_out(tasks, path)))
    return groups


def _left_out(tasks: Tasks, path: tuple[str, ...]) -> tuple[str, ...]:
    """What the set of the run names below a node and the folder does not have."""
    names = set()
    for facts in (
        facts for task in tasks for facts in task["definition"].get("left_out", ())
    ):
        place = (
            facts["language"],
            facts.get("competency"),
            facts.get("aggregation_group"),
        )
        if place[: len(path)] == path or (path == ("SEA",) and place[0] in SEA):
            names.add(str(facts["name"]))
    return tuple(sorted(names))


def _nodes(tasks: Tasks) -> Iterator[tuple[tuple[str, ...], TreeNode]]:
    """Each node with its path: (language, competency, group), (language, competency), (language,),
    ("SEA",) and (), inner ones first.
    """
    tree: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name, facts in ((str(task["name"]), _facts(task)) for task in tasks):
        groups = tree.setdefault(facts["language"], {}).setdefault(
            facts["competency"], {}
        )
        groups.setdefault(str(facts.get("aggregation_group") or name), []).append(name)
    nodes: dict[tuple[str, ...], TreeNode] = {}

    def node(path: tuple[str, ...], below: Any) -> str | TreeNode:
        if below == [path[-1]]:  # a task of no group
            return path[-1]
        parts = (
            below
            if isinstance(below, list)
            else [
                node((*path, child), grandchildren)
                for child, grandchildren in below.items()
            ]
        )
        return nodes.setdefault(
            path, TreeNode(f"{DIALECT}:{'/'.join(path)}", tuple(parts))
        )

    languages = {
        language: node((language,), competencies)
        for language, competencies in tree.items()
    }
    yield from nodes.items()
    if len(languages) > 1:
        if any(language in SEA for language in languages):
            # Languages that the run does not have are missing in it.
            parts = tuple(
                languages.get(language, f"{DIALECT}:{language} (no task)")
                for language in SEA
            )
            yield ("SEA",), TreeNode(f"{DIALECT}:SEA", parts)
        yield (), TreeNode(f"{DIALECT}:all", tuple(languages.values()))


def with_totals(results: Results, tasks: Tasks) -> tuple[Results, str]:
    """The results of a run's tasks with SEA-HELM's totals; where its code raises as they are, and
    what it raises.
    """
    facts = [{**_facts(task), "size": int(task["n_samples"])} for task in tasks]
    sizes = {
        (task_facts["task"], task_facts["language"]): task_facts["size"]
        for task_facts in facts
    }
    try:
        return aggregated(
            results, {task_facts["task"]: task_facts for task_facts in facts}, sizes
        ), ""
    except (KeyError, ZeroDivisionError, TypeError) as error:
        return results, f"{type(error).__name__}: {error}"


def _published_totals(tasks: Tasks) -> tuple[Results, str]:
    """SEA-HELM's numbers with its totals, and why there are none."""
    results: Results = {}
    for task in tasks:
        facts = _facts(task)
        competency_results = results.setdefault(facts["language"], {}).setdefault(
            facts["competency"], {}
        )
        competency_results[facts["task"]] = result_of(task)
    totals, raised = with_totals(results, tasks)
    if raised:
        return {}, f"SEA-HELM's aggregation raises {raised}"
    totals_of_sea = [
        totals[language]["total"] for language in SEA if language in totals
    ]
    return totals | ({"SEA": _mean(totals_of_sea)} if totals_of_sea else {}), ""


def _total_at(totals: Results, path: tuple[str, ...]) -> float | None:
    """The number of a node, None where there is none."""
    subtree: Any = totals
    for name in path:
        subtree = subtree.get(name, {})
    if not isinstance(subtree, dict):
        return subtree  # type: ignore[no-any-return]
    return subtree.get("total", subtree.get(_LINDSEA.get("".join(path[-1:]))))


def _estimate(
    value: float | None, why: str, parts: Sequence[Mapping[str, Any]]
) -> Estimate:
    n, lost = (
        sum(int(part.get(key) or 0) for part in parts) for key in ("n", "n_missing")
    )
    if value is None:
        return as_published(math.nan, n, lost, f"no number: {why or 'it has none'}")
    return as_published(value, n, lost)
