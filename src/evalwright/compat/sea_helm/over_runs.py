"""The numbers of SEA-HELM's notebook `results_aggregation.ipynb` over several runs, with its
arithmetic, and the file that it writes of them.

They are made from the samples' files of numbered runs, SEA-HELM's or an export of ours. Of each
question the score of one run is drawn, 30 times with the notebook's seed; a number is the mean of
the 30 means. Its "stderr" is no standard error of the score: intervals over items are.
"""

from __future__ import annotations

import math
import statistics as standard
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import yaml

from evalwright.compat.sea_helm.aggregation import SEA, Results
from evalwright.compat.sea_helm.published.labels import label_scores
from evalwright.compat.sea_helm.published.scoring import normalised, standard_error
from evalwright.compat.sea_helm.results import NumberedRun, check_one_scoring, there
from evalwright.extend import RunError, read_json_lines, write_text

_NOT_COUNTED = ("th", "my")
"""Languages in which the notebook leaves out instructions that count words."""
_COUNTS_WORDS = "length_constraints:number_words"


def write_over_runs(runs: Sequence[NumberedRun], path: Path) -> list[str]:
    """Write the notebook's numbers of a model's runs as it does, in YAML, and say the outermost of
    them. Raises RunError.
    """
    check_one_scoring(runs)
    config, results = _read(runs)
    _check_rows(runs, results)
    numbers_over_runs, incomplete = over_runs(config, results, needs_sea=False)
    path.parent.mkdir(parents=True, exist_ok=True)
    write_text(
        path, yaml.safe_dump(numbers_over_runs, allow_unicode=True, sort_keys=False)
    )
    printed = {
        "all languages": numbers_over_runs["mean"],
        **(
            {"SEA": numbers_over_runs["sea_mean"]}
            if "sea_mean" in numbers_over_runs
            else {}
        ),
    }
    printed |= {
        language: numbers_over_runs[language]["mean"]
        for language in results
        if "mean" in numbers_over_runs[language]
    }
    numbers = ", ".join(
        f"{name} {'n/a' if math.isnan(number) else f'{number:.2f}'}"
        for name, number in printed.items()
    )
    run_count = f"{len(runs)} run{'s' if len(runs) > 1 else ''}"
    lines = [
        f"{runs[0].model} over {run_count}, as SEA-HELM's notebook: {numbers}. Written:"
        f" {path}"
    ]
    if undefined := _without_number(numbers_over_runs, results):
        lines.append(
            f"{runs[0].model}: {', '.join(undefined)}"
            f" {'has' if len(undefined) == 1 else 'have'} one label in the data, where"
            " the notebook ends with ZeroDivisionError; no number, and none in the"
            " means over it."
        )
    if incomplete:
        named = ", ".join(f"{task}/{language}" for language, _, task in incomplete)
        lines.append(
            f"{runs[0].model}: a run lacks {named}; the numbers are over the others, as"
            " the notebook's."
        )
    if "sea_mean" not in numbers_over_runs:
        lines.append(
            f"{runs[0].model}: none of its languages is in the SEA average, and there"
            " the notebook ends with an error."
        )
    return lines


def _without_number(numbers_over_runs: Results, results: Results) -> list[str]:
    """The tasks whose number the notebook's arithmetic does not have."""
    names = []
    for language, competencies in results.items():
        for competency in competencies:
            tasks = numbers_over_runs[language][competency]["tasks"]
            names += [
                f"{task}/{language}"
                for task, task_numbers in tasks.items()
                if math.isnan(task_numbers["mean"])
            ]
    return names


def check_over_runs(runs: Sequence[NumberedRun]) -> None:
    """Raise RunError where the notebook's numbers cannot be made of these runs."""
    check_one_scoring(runs)
    _check_rows(runs, _read(runs)[1])


def _read(runs: Sequence[NumberedRun]) -> tuple[Mapping[str, Any], Results]:
    """The configuration of the first run, and what the notebook reads of all of them: see
    `over_runs`. Raises RunError.
    """
    results: Results = {}
    for run in runs:
        for task, facts in run.latest["tasks"].items():
            for language in facts["languages"]:
                scores, labels = _scores_and_labels(run, task, language)
                of_competency = results.setdefault(language, {}).setdefault(
                    facts["competency"], {}
                )
                of_task = of_competency.setdefault(
                    task, {"scores": [], "length": [], "labels": []}
                )
                for name, part in (
                    ("scores", scores),
                    ("length", len(scores)),
                    ("labels", labels),
                ):
                    of_task[name].append(part)
    skipped = runs[0].arguments.get("skip_task")
    first = {
        **runs[0].latest,
        "run_args": {"skip_task": skipped if isinstance(skipped, list) else []},
    }
    return first, results


def _check_rows(runs: Sequence[NumberedRun], results: Results) -> None:
    """Raise RunError where the runs that have a task's file have not as many rows of it: the
    notebook draws one run's score for each row.
    """
    for language, competencies in results.items():
        for tasks in competencies.values():
            for task, task_data in tasks.items():
                having = [run for run in runs if (task, language) in set(_pairs(run))]
                counts = {
                    f"run_{run.number}": n
                    for run, n in zip(having, task_data["length"], strict=True)
                    if n
                }
                if len(set(counts.values())) > 1:
                    which = ", ".join(f"{name} has {n:,}" for name, n in counts.items())
                    raise RunError(
                        f"The numbers over runs of '{runs[0].model}' cannot be made: of"
                        f" {task}/{language} {which} rows. Complete the run that lacks"
                        " rows, leave it out, or leave out --over-runs."
                    )


def _pairs(run: NumberedRun) -> Iterator[tuple[str, str]]:
    """The tasks and languages of its latest configuration."""
    for task, facts in run.latest["tasks"].items():
        yield from ((task, language) for language in facts["languages"])


def _scores_and_labels(
    run: NumberedRun, task: str, language: str
) -> tuple[list[float], list[Any]]:
    """Each question's score in a run, 0 where it has none, and its label; nothing where the run has
    no file of the task.
    """
    scores: list[float] = []
    labels: list[Any] = []
    path = run.file(task, language)
    if not there(path):
        return scores, labels
    name: str | None = None
    for index, (_, _, row) in enumerate(read_json_lines(path)):
        row_scores = row.get("individual_scores")
        if index == 0 and isinstance(row_scores, Mapping):
            name = str(next(iter(row_scores), ""))
        about = row.get("metadata")
        kind = about.get("subcategory") if isinstance(about, Mapping) else ""
        if task == "if-eval" and language in _NOT_COUNTED and kind == _COUNTS_WORDS:
            continue
        score = (
            row_scores.get(name)
            if name is not None and isinstance(row_scores, Mapping)
            else row_scores
        )
        scores += [
            _as_number(row_score)
            for row_score in (score if isinstance(score, list) else [score])
        ]
        if "label" in row:
            labels.append(row["label"])
    return scores, labels


def _as_number(score: Any) -> float:
    return float(score) if isinstance(score, int | float) and score == score else 0.0


def over_runs(
    config: Mapping[str, Any],
    results: Results,
    *,
    bootstraps: int = 30,
    languages: Sequence[str] = SEA,
    seed: int = 94370244,
    needs_sea: bool = True,
) -> tuple[Results, list[tuple[str, str, str]]]:
    """The notebook's numbers over several runs, and the (language, competency, task) that lack a
    run.

    config: `run_args` and `tasks` of the first run. results: language -> competency -> task ->
    "scores", "length" and "labels", a list for each run. Of each question one run's score is drawn,
    `bootstraps` times; "stderr" is the spread of these means over the root of their number, no
    standard error of the score. Where no language is one of `languages` it raises TypeError, as the
    notebook does, or has no such numbers without `needs_sea`.
    """
    import numpy as np

    draws = np.random.default_rng(seed)
    over_runs_by_language: Results = {language: {} for language in results}
    incomplete = []
    for task, facts in config["tasks"].items():
        if task in config["run_args"]["skip_task"]:
            continue
        competency = facts["competency"]
        group = facts.get("aggregation_group")
        for language in facts["languages"]:
            task_results = results[language][competency][task]
            means, is_complete = _bootstrapped(facts, task_results, draws, bootstraps)
            place = over_runs_by_language[language].setdefault(
                competency, {"tasks": {}, "aggregation_groups": {}}
            )
            task_numbers = place["tasks"][task] = (
                {"mean": 0, "stderr": 0, "mean_list": means}
                if is_complete is None
                else _spread(means)
            )
            if is_complete is False:
                incomplete.append((language, competency, task))
                task_numbers["is_incomplete"] = True
            if group:
                group = group.replace("-logprobs", "")
                remark = (
                    f"Using scores for aggregation group {group.upper()} instead of"
                    " individual task scores."
                )
                task_numbers |= {
                    "remarks": remark,
                    "ignore": True,
                    "aggregation_group": group,
                }
                place["aggregation_groups"].setdefault(group, []).append(means)
    over = [_totals(competencies) for competencies in over_runs_by_language.values()]
    sea = [
        language_means
        for language, language_means in zip(over_runs_by_language, over, strict=True)
        if language in languages
    ]
    over_runs_by_language |= _spread(_means(over))
    if not sea and needs_sea:
        raise TypeError("'float' object is not iterable")
    if sea:
        over_runs_by_language |= {
            f"sea_{name}": value for name, value in _spread(_means(sea)).items()
        }
    return (
        over_runs_by_language | {"is_incomplete": True}
        if incomplete
        else over_runs_by_language
    ), incomplete


def _totals(competencies: Results) -> list[float]:
    """The means of one language, which are put into it."""
    all_numbers = []
    for of_competency in competencies.values():
        lists = [
            task_numbers["mean_list"]
            for task_numbers in of_competency["tasks"].values()
            if "ignore" not in task_numbers
        ]
        for group, parts in of_competency["aggregation_groups"].items():
            lists.append(_means(parts))
            of_competency["aggregation_groups"][group] = _spread(lists[-1])
        all_numbers.append(_means(lists))
        of_competency |= _spread(all_numbers[-1])
    means = _means(all_numbers)
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
        scores = (
            draws.random(size=(times, len(there["scores"][0]))) > there["scores"][0]
        )
        chosen = True
    else:
        index = draws.integers(0, len(runs), size=(times, len(runs[0])))
        scores = np.array(runs)[index, np.arange(len(runs[0]))]
        plain = all(isinstance(label, str | int | float) for label in labels)
        chosen = plain and len(set(labels)) != len(labels)
    if not chosen:
        means = scores.mean(axis=1)
        scale = (
            100 if max(score for run in there["scores"] for score in run) <= 1 else 1
        )
        return [float(mean) * scale for mean in means], len(runs) == len(
            there["scores"]
        )
    names = sorted(set(labels))
    recalls = []
    if len(names) == 1:  # chance is 1, so the notebook divides by 0
        return [math.nan] * times, len(runs) == len(there["scores"])
    gold = [names.index(label) for label in labels]
    for row in scores.astype(int):
        # A label times its score is what was said there: 100 times a label is none of them.
        predicted = [
            gold_index if hit == 1 or not names[gold_index] else -1
            for gold_index, hit in zip(gold, row, strict=True)
        ]
        (recall,) = label_scores(gold, predicted, "balanced-accuracy")
        recalls.append(normalised(recall, 1 / len(names), 1) * 100)
    return recalls, len(runs) == len(there["scores"])


def _means(lists: Sequence[Sequence[float]]) -> list[float]:
    return [sum(values) / len(values) for values in zip(*lists, strict=True)]


def _spread(values: Sequence[float]) -> Results:
    return {
        "mean": standard.mean(values),
        "stderr": standard_error(values),
        "mean_list": list(values),
    }
