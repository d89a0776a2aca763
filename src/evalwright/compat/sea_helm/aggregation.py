"""SEA-HELM's tree of numbers: tasks, aggregation groups, competencies, languages, the SEA average, all languages.

Corrected: the one tree of tasks (`metrics/tree.py`), each part of a node counting the same; a task without a number is missing in all nodes
above it and never 0. Published: the arithmetic of SEA-HELM's `aggregate_metrics`, in which a failed task is 0 and linguistic diagnostics go
by rules of their own, and of its notebook over several runs, with their errors.
"""

from __future__ import annotations

import copy
import math
import statistics as standard
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalwright.compat.sea_helm.labels import label_scores
from evalwright.compat.sea_helm.scoring import DIALECT, normalised, standard_error
from evalwright.metrics.registry import BOUNDED
from evalwright.metrics.tree import Node
from evalwright.tasks.dialects import Averaged, Group

if TYPE_CHECKING:
    from evalwright.statistics import Estimate

SEA = ("id", "vi", "th", "ta", "tl", "ms", "my")
"""The languages of the SEA average."""
ERROR = "Failed to run evaluation for task"
_DIAGNOSTICS = "linguistic-diagnostics"
_PHENOMENA = ("scalar_implicatures", "presuppositions")
_LINDSEA = ("mp-r", "mp-r-logprobs", "pragmatics", "pragmatics-logprobs")
_PROBABILITIES = "average_cumulative_probabilities"

Tasks = Sequence[Mapping[str, Any]]
"""Tasks as in `run.json`; their definitions have `task`, `language`, `scoring`, the task's `config`, and what the set names
that does not exist (`left_out`)."""
Results = dict[str, Any]
"""language -> competency -> task -> the numbers of its result."""


# -- published ----------------------------------------------------------------------------------------------------------


def result_of(task: Mapping[str, Any]) -> Results:
    """A task's numbers as SEA-HELM's result file nests them; a failed task has the published 0 and an error."""
    found: Results = {}
    for metric in task["metrics"]:
        value = metric["value"]
        if value is None or math.isnan(value):
            continue
        value = value * 100 if metric["kind"] in BOUNDED else value
        head, *middle = metric["label"].split(".", 1)
        if metric["method"].startswith("failed"):
            found["error"] = ERROR
        if not middle:
            found[head] = value
            continue
        name, _, end = middle[0].rpartition(".")
        own = found.setdefault(head, {})
        if end in ("correct", "total") and name:
            own.setdefault(name, [0, 0])[end == "total"] = value
        elif name:
            own.setdefault(name, {})[end] = value
        else:
            own[end] = value
    return found


def _facts(task: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a task's configuration and definition say."""
    return {**task["definition"]["config"], **task["definition"]}


def results_of(tasks: Tasks) -> Results:
    """The results of a run's tasks."""
    out: Results = {}
    for task in tasks:
        facts = _facts(task)
        own = out.setdefault(facts["language"], {}).setdefault(facts["competency"], {})
        own[facts["task"]] = result_of(task)
    return out


def aggregated(
    results: Results,
    tasks: Mapping[str, Mapping[str, Any]],
    lines: Mapping[tuple[str, str], int] | None = None,
) -> Results:
    """Results with SEA-HELM's totals. tasks: `metric`, `aggregation_group`, `aggregation_type` by name; lines: of the data file of a task and
    language, the weights of a micro-average.

    Raises KeyError, ZeroDivisionError and TypeError where its own code does: a pragmatic task that is not there ends the whole.
    """
    out: Results = copy.deepcopy(results)
    for language, competencies in out.items():
        totals = []
        for competency, own in competencies.items():
            if competency == _DIAGNOSTICS:
                _diagnostics(own)
            else:
                _competency(own, tasks, lambda task, at=language: (lines or {})[task, at])
            totals.append(own["total"])
        competencies["total"] = sum(totals) / len(totals)
    every = [competencies["total"] for competencies in out.values()]
    out["total"] = sum(every) / len(every)
    return out


def _competency(own: Results, tasks: Mapping[str, Mapping[str, Any]], size: Any) -> None:
    groups: dict[str, list[float]] = {}
    scores: dict[str, float] = {}
    for task, numbers in list(own.items()):
        config = tasks[task]
        score, group = numbers[config["metric"]], config.get("aggregation_group")
        if not group:
            scores[task] = score
            continue
        times = size(task) if config.get("aggregation_type") == "micro-average" else 1
        groups.setdefault(group, []).extend([score] * times)
        own[group] = scores[group] = sum(groups[group]) / len(groups[group])
    own["total"] = sum(scores.values()) / len(scores)


def _diagnostics(own: Results) -> None:
    """Pragmatics over both of its tasks, counted by phenomenon, then the mean with minimal pairs. The first task decides which kind it is."""
    ending = "-logprobs" if "logprobs" in next(iter(own)) else ""
    tasks = [f"pragmatic-single{ending}", f"pragmatic-pair{ending}"]
    found = own[f"pragmatics{ending}"] = {"subcategories": {}}
    shares = []
    for phenomenon in _PHENOMENA:
        parts = [
            own[task]["subcategories"][phenomenon]
            for task in tasks
            if phenomenon in own[task]["subcategories"]
        ]
        if ending:
            share = sum(part[_PROBABILITIES] for part in parts) / len(parts)
            found["subcategories"][phenomenon] = {_PROBABILITIES: share}
        else:
            right, total = (sum(part[place] for part in parts) for place in (0, 1))
            share = right / total
            found["subcategories"][phenomenon] = {
                "accuracy": share,
                "correct_count": right,
                "total_count": total,
            }
        shares.append(share)
    mean = sum(shares) / len(shares)
    found |= (
        {_PROBABILITIES: mean}
        if ending
        else {"accuracy": mean * 100, "normalized_accuracy": 100 * normalised(mean, 0.5, 1)}
    )
    names = {name: _PROBABILITIES if "logprob" in name else "normalized_accuracy" for name in _LINDSEA}
    scores = [own[name][metric] for name, metric in names.items() if name in own and metric in own[name]]
    own["total"] = sum(scores) / len(scores)
    own["lindsea"] = {"normalized_score": own["total"], "subcategories": {}}


def over_runs(
    config: Mapping[str, Any],
    data: Results,
    *,
    bootstraps: int = 30,
    languages: Sequence[str] = SEA,
    seed: int = 94370244,
) -> tuple[Results, list[tuple[str, str, str]]]:
    """The notebook's numbers over several runs, and the (language, competency, task) that lack a run.

    config: `run_args` and `tasks` of the first run. data: language -> competency -> task -> "scores", "length" and "labels", a list for each
    run. Of each question one run's score is drawn, `bootstraps` times; "stderr" is the spread of these means over the root of their number,
    no standard error of the score. Raises TypeError where no language is one of `languages`, as the notebook does.
    """
    import numpy as np

    draws = np.random.default_rng(seed)
    out: Results = {language: {} for language in data}
    incomplete = []
    for task, facts in config["tasks"].items():
        if task in config["run_args"]["skip_task"]:
            continue
        competency, group = facts["competency"], facts.get("aggregation_group")
        for language in facts["languages"]:
            there = data[language][competency][task]
            means, whole = _bootstrapped(facts, there, draws, bootstraps)
            place = out[language].setdefault(competency, {"tasks": {}, "aggregation_groups": {}})
            own = place["tasks"][task] = (
                {"mean": 0, "stderr": 0, "mean_list": means} if whole is None else _spread(means)
            )
            if whole is False:
                incomplete.append((language, competency, task))
                own["is_incomplete"] = True
            if group:
                group = group.replace("-logprobs", "")
                said = (
                    f"Using scores for aggregation group {group.upper()} instead of individual task scores."
                )
                own |= {"remarks": said, "ignore": True, "aggregation_group": group}
                place["aggregation_groups"].setdefault(group, []).append(means)
    over = [_totals(competencies) for competencies in out.values()]
    sea = [own for language, own in zip(out, over, strict=True) if language in languages]
    out |= _spread(_means(over))
    if not sea:
        raise TypeError("'float' object is not iterable")
    out |= {f"sea_{name}": value for name, value in _spread(_means(sea)).items()}
    return (out | {"is_incomplete": True} if incomplete else out), incomplete


def _totals(competencies: Results) -> list[float]:
    """The means of one language, which are put into it."""
    every = []
    for own in competencies.values():
        lists = [one["mean_list"] for one in own["tasks"].values() if "ignore" not in one]
        for group, parts in own["aggregation_groups"].items():
            lists.append(_means(parts))
            own["aggregation_groups"][group] = _spread(lists[-1])
        every.append(_means(lists))
        own |= _spread(every[-1])
    means = _means(every)
    competencies |= _spread(means)
    return means


def _bootstrapped(
    facts: Mapping[str, Any], there: Mapping[str, Any], draws: Any, times: int
) -> tuple[list[float], bool | None]:
    """A task's score in each bootstrap, and whether every run has it; None where none has."""
    import numpy as np

    runs = [run for run in there["scores"] if run]
    if not runs:
        return [0] * times, None
    labels = there["labels"][0]
    if facts.get("use_logprobs", True) and facts.get("max_n_runs") == 1:
        scores, chosen = draws.random(size=(times, len(there["scores"][0]))) > there["scores"][0], True
    else:
        index = draws.integers(0, len(runs), size=(times, len(runs[0])))
        scores = np.array(runs)[index, np.arange(len(runs[0]))]
        plain = all(isinstance(label, str | int | float) for label in labels)
        chosen = plain and len(set(labels)) != len(labels)
    if not chosen:
        means = scores.mean(axis=1)
        scale = 100 if max(score for run in there["scores"] for score in run) <= 1 else 1
        return [float(mean) * scale for mean in means], len(runs) == len(there["scores"])
    found = []
    for row in scores.astype(int):
        names = sorted(set(labels))
        gold = [names.index(label) for label in labels]
        (recall,) = label_scores(
            gold, [one if hit else -1 for one, hit in zip(gold, row, strict=True)], "balanced-accuracy"
        )
        found.append(normalised(recall, 1 / len(set(labels)), 1) * 100)
    return found, len(runs) == len(there["scores"])


def _means(lists: Sequence[Sequence[float]]) -> list[float]:
    return [sum(values) / len(values) for values in zip(*lists, strict=True)]


def _spread(values: Sequence[float]) -> Results:
    return {"mean": standard.mean(values), "stderr": standard_error(values), "mean_list": list(values)}


# -- the tree of a run --------------------------------------------------------------------------------------------------


def dialect_groups(tasks: Tasks) -> list[Group]:
    """The nodes of the tree over a run's tasks, inner ones first; published ones with SEA-HELM's own number."""
    published = bool(tasks) and all(task["definition"].get("scoring") == "published" for task in tasks)
    known = {str(task["name"]): task["metrics"][0] for task in tasks if task["metrics"]}
    totals, why = _published_totals(tasks) if published else ({}, "")
    out = []
    for path, node in _nodes(tasks):
        found = {name: known[name] for name in node.tasks if name in known}
        if found:
            own = _estimate(totals.get(path), why, list(found.values())) if published else None
            label = " ".join(path) or "all languages"
            out.append(
                Group(node.name, label, (Averaged("score", node, found, own),), _left_out(tasks, path))
            )
    return out


def _left_out(tasks: Tasks, path: tuple[str, ...]) -> tuple[str, ...]:
    """What the set of the run names below a node and the folder does not have."""
    every = [one for task in tasks for one in task["definition"].get("left_out", ())]
    places = {
        one["name"]: (one["language"], one.get("competency"), one.get("aggregation_group")) for one in every
    }
    if path == ("SEA",):
        return tuple(sorted(name for name, place in places.items() if place[0] in SEA))
    return tuple(sorted(name for name, place in places.items() if place[: len(path)] == path))


def _nodes(tasks: Tasks) -> Iterator[tuple[tuple[str, ...], Node]]:
    """Each node with its path: (language, competency, group), (language, competency), (language,), ("SEA",) and (), inner ones first."""
    tree: dict[str, dict[str, dict[str, list[str]]]] = {}
    for name, facts in ((str(task["name"]), _facts(task)) for task in tasks):
        group = str(facts.get("aggregation_group") or "")
        own = tree.setdefault(facts["language"], {}).setdefault(facts["competency"], {})
        own.setdefault(group or name, []).append(name)
    languages: dict[str, Node] = {}
    for language, competencies in tree.items():
        parts = []
        for competency, own in competencies.items():
            inner: list[str | Node] = []
            for group, names in own.items():
                if names == [group]:
                    inner.append(group)
                    continue
                inner.append(Node(f"{DIALECT}:{language}/{competency}/{group}", tuple(names)))
                yield (language, competency, group), inner[-1]  # type: ignore[misc]
            parts.append(Node(f"{DIALECT}:{language}/{competency}", tuple(inner)))
            yield (language, competency), parts[-1]
        languages[language] = Node(f"{DIALECT}:{language}", tuple(parts))
        yield (language,), languages[language]
    if len(languages) > 1:
        if any(language in SEA for language in languages):
            # Languages that the run does not have are missing in it.
            yield (
                ("SEA",),
                Node(
                    f"{DIALECT}:SEA", tuple(languages.get(one, f"{DIALECT}:{one} (no task)") for one in SEA)
                ),
            )
        yield (), Node(f"{DIALECT}:all", tuple(languages.values()))


def _published_totals(tasks: Tasks) -> tuple[dict[tuple[str, ...], float], str]:
    """SEA-HELM's number of each node, and why there are none."""
    facts = {task["definition"]["task"]: _facts(task) for task in tasks}
    sizes = {
        (task["definition"]["task"], task["definition"]["language"]): int(task["n_samples"]) for task in tasks
    }
    try:
        whole = aggregated(results_of(tasks), facts, sizes)
    except (KeyError, ZeroDivisionError, TypeError) as error:
        return {}, f"SEA-HELM's aggregation raises {type(error).__name__}: {error}"
    found: dict[tuple[str, ...], float] = {(): whole.pop("total")}
    for language, competencies in whole.items():
        found[language,] = competencies.pop("total")
        for competency, own in competencies.items():
            found[language, competency] = own.pop("total")
            pooled = {"pragmatics": "normalized_accuracy", "pragmatics-logprobs": _PROBABILITIES}
            for group, value in own.items():
                if group in pooled:
                    value = value[pooled[group]]
                if isinstance(value, int | float):
                    found[language, competency, group] = value
    there = [found[language,] for language in SEA if (language,) in found]
    return found | ({("SEA",): sum(there) / len(there)} if there else {}), ""


def _estimate(value: float | None, why: str, parts: Sequence[Mapping[str, Any]]) -> Estimate:
    from evalwright.statistics import Estimate

    n, lost = (sum(int(part.get(key) or 0) for part in parts) for key in ("n", "n_failed"))
    method = f"no number: {why or 'it has none'}" if value is None else "no interval (as published)"
    return Estimate(
        math.nan if value is None else value, math.nan, math.nan, 0.95, n, lost, None, None, method
    )
