"""Imports recorded runs of the HHEM leaderboard engine: one for each model, date code and judgment.

Files are read twice, model by model: first to learn the length of the data set and whether rows are
in one order, then to write the runs. So memory does not grow with the tree.
"""

from __future__ import annotations

import json
import math
from array import array
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

from evalwright import Run
from evalwright.compat.hhem.engine_files import (
    SLICES,
    Folder,
    find_folders,
    read_articles,
)
from evalwright.compat.hhem.groups import (
    DataSet,
    Group,
    count_articles,
    measure_dataset,
    split_groups,
)
from evalwright.compat.hhem.numbers import (
    PUBLISHED_SPECS,
    SPECS,
    compute_result,
    differences,
    round_to_tenth,
)
from evalwright.compat.hhem.order import odd_orders
from evalwright.compat.hhem.summary_rows import (
    CONSISTENCY,
    RESPONSE,
    TASK,
    THRESHOLD,
    WORDS,
    Names,
    build_records,
    count_checks,
    name_rows,
)
from evalwright.compat.recording import (
    check_scoring,
    hash_files,
    start_time,
    task_record,
)
from evalwright.extend import (
    ImportDestination,
    ImportFolder,
    RunError,
    RunFacts,
    fingerprint_of,
)

FORMAT = "hhem-leaderboard"

_RATES = ("hallucination_rate", "answer_rate", "avg_word_count")
Articles = Mapping[str, Mapping[str, str]]


@dataclass(slots=True)
class _Plan:
    """A group as found in the first pass, then also where its run goes.

    length: number of articles. scores: the judge's, if only a row's position tells its article.
    lengths: of all groups in the tree. odd: see `order.odd_orders`.
    """

    folder: Folder
    group_index: int
    group: str
    date: str
    rows: int
    length: int
    scores: array[float] | None
    run: ImportFolder = field(init=False)
    lengths: Sequence[int] = ()
    odd: float | None = None


def import_hhem(
    path: Path,
    runs_folder: Path,
    name: str = "",
    *,
    scoring: str = "corrected",
    articles: Path | None = None,
    every: bool = False,
) -> tuple[list[Run], list[str]]:
    """Import every judged model in `path` as a run, and say which folders were left out.

    Args:
        path: the engine's output tree, a company's folder, or one model's.
        name: the run's name; with several runs, each model's name is added.
        scoring: "corrected" counts each judgment once, "published" counts as the engine does.
        articles: the data set's CSV, whose category, text_type and dataset become slices.
        every: also import judgments before the last one.

    Returns:
        The runs, and a sentence for each folder without one.

    Raises:
        RunError: a file is broken, or another run already has that name.
    """
    check_scoring(scoring)
    slices_by_article = read_articles(articles) if articles else None
    folders = find_folders(path)
    plans: list[_Plan] = []
    left_out = []
    for folder in folders:
        judged_groups = split_groups(folder, every=every)
        plans += [_plan(group, index) for index, group in enumerate(judged_groups)]
        if not judged_groups:
            left_out.append(
                f"{folder.path} has no judgment, so there is no run to import."
            )
    if not plans:
        raise RunError(f"Nothing in '{path}' was judged. {left_out[0]}")
    _complete(
        plans, ImportDestination(runs_folder, name, alone=len(plans) == 1), scoring
    )
    runs: list[Run] = []
    for folder, folder_plans in groupby(plans, key=lambda plan: plan.folder):
        groups = split_groups(folder, every=every)
        runs += [
            _import(groups[plan.group_index], plan, scoring, slices_by_article)
            for plan in folder_plans
        ]
    return runs, left_out


# -- first reading ---------------------------------------------------------------------


def _plan(group: Group, group_index: int) -> _Plan:
    scores = None
    if group.articles is None:
        judged = (
            (judgment.score if judgment and judgment.valid else None)
            for judgment in (row.judgment for row in group.rows)
        )
        scores = array("d", (math.nan if score is None else score for score in judged))
    size = len(group.rows)
    return _Plan(
        group.folder,
        group_index,
        group.name,
        group.judgment_date,
        size,
        count_articles(group),
        scores,
    )


def _complete(
    plans: Sequence[_Plan], destination: ImportDestination, scoring: str
) -> None:
    """Decide where each run goes, and collect what all groups of a tree share.

    Raises RunError if a folder holds another run.
    """
    lengths: dict[Path, list[int]] = {}
    alike: dict[tuple[Path, int], list[_Plan]] = {}
    for plan in plans:
        lengths.setdefault(plan.folder.tree, []).append(plan.length)
        if plan.scores is not None:
            alike.setdefault((plan.folder.tree, plan.rows), []).append(plan)
    for same_length in alike.values():
        for plan_index, correlation in odd_orders(
            [plan.scores or array("d") for plan in same_length]
        ).items():
            same_length[plan_index].odd = correlation
    for plan in plans:
        plan.lengths = lengths[plan.folder.tree]
        qualifiers = [plan.date, "published" if scoring == "published" else ""]
        # What else is in the tree is no part of it: a model imported alone may be imported again
        # with the others.
        facts = json.dumps([scoring, plan.group, plan.date, plan.group_index])
        made_from = {"imported": hash_files(plan.folder.files), "facts": facts}
        plan.run = destination.place(plan.group, qualifiers, made_from)


# -- second reading --------------------------------------------------------------------


def _import(
    group: Group, plan: _Plan, scoring: str, slices_by_article: Articles | None
) -> Run:
    dataset = measure_dataset(group, plan.lengths, slices_by_article)
    names = name_rows(group, dataset, plan.odd)
    n_lost = _lost(group, names, dataset)
    records = list(build_records(group, names, dataset))
    task_result = compute_result(group, names, dataset, records, n_lost, scoring)
    outcomes = Counter(record.scores[RESPONSE].label for record in records)
    imported = _imported(group, names, dataset, scoring) | {
        "lost": n_lost,
        "differences": differences(group, task_result.metrics),
        "outcomes": dict(sorted(outcomes.items())),
        "checks": dict(count_checks(group)),
        "notes": _notes(group, names, dataset, n_lost, task_result.metrics),
    }
    settings = imported["settings"]
    judge = {"judge": group.version, "threshold": THRESHOLD}
    # Runs that differ in the judge, the prompt or the articles must not look alike.
    prompt = {"summary_prompt": settings["prompt"]} if "prompt" in settings else {}
    articles = sorted(set(names.articles)) if names.articles else len(names.ids)
    task = task_record(
        task_result,
        FORMAT,
        description=(
            "summaries of articles, judged for consistency with them; imported from the"
            " HHEM leaderboard engine"
        ),
        definition={"task": TASK, "scoring": scoring, **judge, **prompt},
        content_hash=fingerprint_of({"articles": articles}),
        scorers=[
            (CONSISTENCY, FORMAT, judge),
            (RESPONSE, FORMAT, {}),
            (WORDS, FORMAT, {}),
        ],
        metrics=PUBLISHED_SPECS if scoring == "published" else SPECS,
        slice_keys=[
            key
            for key in SLICES
            if any(key in slices for slices in (dataset.articles or {}).values())
        ],
    )
    run_fields = RunFacts(
        started=start_time(
            [group.judgment_date, group.summary_date], group.folder.files
        ),
        model=group.name,
        code={"imported": FORMAT, "name": group.name, "settings": settings},
        tasks=[task],
        configuration={"scoring": scoring, "imported": imported},
    )
    return plan.run.write(records, lambda: run_fields)


def _lost(group: Group, names: Names, dataset: DataSet) -> int:
    """The number of articles in the data set that have no row."""
    if dataset.articles is not None and names.articles is not None:
        return len(dataset.articles.keys() - set(names.articles))
    return max(0, dataset.size - count_articles(group))


def _imported(
    group: Group, names: Names, dataset: DataSet, scoring: str
) -> dict[str, Any]:
    published = group.published
    judged = sum(row.judgment is not None for row in group.rows)
    return {
        "format": FORMAT,
        "files": [path.name for path in group.folder.files],
        "folder": f"{group.folder.company}/{group.folder.name}",
        "company": group.folder.company,
        "model_name": group.model or group.folder.name,
        "date_code": group.date_code,
        "summary_date": group.summary_date or None,
        "judgment_date": group.judgment_date,
        "judge": group.version,
        "scoring": scoring,
        "pairing": names.how,
        "dataset": {"size": dataset.size, "known_from": dataset.size_source},
        "rows": {
            "judged": judged,
            "joined_by_the_engine": sum(count for _, count in group.joined),
        },
        "published": {key: getattr(published, key) for key in _RATES}
        if published
        else None,
        "settings": dict(published.settings) if published else {},
        "fields_left_out": list(published.left_out) if published else [],
        "older_judgments_left_out": group.older,
    }


def _notes(
    group: Group, names: Names, dataset: DataSet, n_lost: int, metrics: Sequence[Any]
) -> list[str]:
    notes = list(group.notes)
    if n_lost:
        dataset_rate = next(
            (metric for metric in metrics if metric.label == "answer-rate-of-dataset"),
            None,
        )
        rate = (
            round_to_tenth(dataset_rate.estimate.value, 100.0) if dataset_rate else None
        )
        whole_rate = (
            f"; over all of them the answer rate is {rate}" if rate is not None else ""
        )
        notes.append(
            f"{n_lost:,} of the data set's {dataset.size:,} rows are lost (size from"
            f" {dataset.size_source}){whole_rate}"
        )
    if names.articles is None and dataset.articles is not None:
        notes.append(
            "it is unknown which articles its rows are about, so there are no slices"
        )
    elif names.articles is not None and dataset.articles is not None:
        strange = len(set(names.articles) - dataset.articles.keys())
        if strange:
            notes.append(f"articles that are not in the CSV: {strange:,}")
    if names.articles is None and names.how.startswith("with no other run"):
        notes.append(f"paired {names.how}")
    return notes
