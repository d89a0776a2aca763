"""The arithmetic of SEA-HELM's notebook over several runs, with its errors: the contrast to intervals over items."""

from __future__ import annotations

import statistics as standard
from collections.abc import Mapping, Sequence
from typing import Any

from evalwright.compat.sea_helm.aggregation import SEA, Results
from evalwright.compat.sea_helm.labels import label_scores
from evalwright.compat.sea_helm.scoring import normalised, standard_error


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
    names, found = sorted(set(labels)), []
    gold = [names.index(label) for label in labels]
    for row in scores.astype(int):
        said = [one if hit else -1 for one, hit in zip(gold, row, strict=True)]
        (recall,) = label_scores(gold, said, "balanced-accuracy")
        found.append(normalised(recall, 1 / len(names), 1) * 100)
    return found, len(runs) == len(there["scores"])


def _means(lists: Sequence[Sequence[float]]) -> list[float]:
    return [sum(values) / len(values) for values in zip(*lists, strict=True)]


def _spread(values: Sequence[float]) -> Results:
    return {"mean": standard.mean(values), "stderr": standard_error(values), "mean_list": list(values)}
