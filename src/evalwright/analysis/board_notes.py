"""Notes of a leaderboard: what a reader of it must know, a sentence each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from evalwright.analysis.board_rows import ANSWER_RATE, BoardRow, count_lost_rows
from evalwright.analysis.board_tree import BoardNode
from evalwright.analysis.comparison import caveats
from evalwright.analysis.differing import describe_task_differences
from evalwright.analysis.judge_panels import panel_notes
from evalwright.analysis.judges_used import published_judges, scoring_roles
from evalwright.analysis.node_ranks import NodeRanks
from evalwright.analysis.pairs import note_other_questions_by_pair, pairing_notes
from evalwright.analysis.robustness import how_to_fill
from evalwright.analysis.words import (
    count,
    counted,
    listed,
    merge_remarks,
    plural,
    warn_few_clusters,
)
from evalwright.metrics.registry import (
    CHANCE_NORMALISED,
    RATES_OF_ALL,
    RATES_OF_ALL_NOTE,
)
from evalwright.runs.accepted_failures import accepts_failures, missing_samples
from evalwright.runs.measures import Matrix, common_counts, group_notes
from evalwright.runs.reader import Run, called
from evalwright.runs.results import MetricResult
from evalwright.runs.stopping import early_notes
from evalwright.statistics.macro import TasksAre

SPLIT_NOTE = (
    "The tasks have different units or directions, so each unit has a table of its own,"
    " and there is no overall score."
)
RANK_NOTE = (
    "A rank is a range: the best and the worst rank that the model can have."
    " All ranges hold simultaneously at 95% confidence (paired differences,"
    " Holm-adjusted over all pairs); models whose ranges do not overlap are"
    " significantly different."
)
UNRANKED_NOTE = "Models without a rank have no score on at least one of the tasks."
TIED_NOTE = "Models that share a letter are tied: the data cannot separate them."
SIMULTANEOUS_NOTE = (
    "A score's interval is its own; the simultaneous ones hold for all models at once."
)
SHARES_NOTE = (
    "Hallucinated and 'refused or corrected' are shares of the stress questions,"
    " which have no answer: refusing or correcting is right."
)
ACCURACY_NOTE = (
    "Accuracy is over the questions that have an answer; the overall score is the"
    " mean over all tasks, those with stress questions included."
)

MOST_ALIKE = 3
"""Most notes that say the same of different models, each with its own numbers."""

MOST_NAMED = 8
"""Most models, samples or tasks that a note names."""


def list_notes(
    runs: Sequence[Run], rows: Sequence[BoardRow], *arguments: Any, **settings: Any
) -> list[str]:
    """Write the notes of a board, a sentence each; arguments as of `_all_notes`."""
    names = {name for row in rows for name in (row.label, row.run)}
    return bound_notes(_all_notes(runs, rows, *arguments, **settings), names)


def bound_notes(notes: Iterable[str], names: Collection[str]) -> list[str]:
    """Leave out notes that say of further models what others say already, and count them.

    Notes say the same if only names and numbers differ.

    Args:
        notes: the notes.
        names: labels and runs that they may name.
    """
    longest_first = sorted(filter(None, names), key=len, reverse=True)
    pattern = "|".join([*map(re.escape, longest_first), r"\d[\d.,]*"])
    notes_by_form: dict[str, list[str]] = {}
    for note in notes:
        form = re.sub(pattern, "#", note)
        notes_by_form.setdefault(form, []).append(note)
    bounded = []
    for similar_notes in notes_by_form.values():
        bounded += similar_notes[:MOST_ALIKE]
        if len(similar_notes) > MOST_ALIKE:
            further = len(similar_notes) - MOST_ALIKE
            bounded.append(
                f"{counted(further, 'more note')} of this kind {plural(further, 'is', 'are')}"
                " left out."
            )
    return bounded


def _all_notes(
    runs: Sequence[Run],
    rows: Sequence[BoardRow],
    mixed: bool,
    split: bool,
    task_matrices: Sequence[Matrix],
    ranking: NodeRanks | None,
    isolated_runs: Sequence[tuple[str, bool]],
    names: Sequence[str],
    tasks_are: TasksAre,
    is_unranked: bool = False,
) -> Iterator[str]:
    """Write the notes of a board, a sentence each.

    Args:
        runs: the runs.
        rows: their rows.
        mixed: whether the tasks have metrics that cannot be averaged.
        split: whether there are tasks with another unit.
        task_matrices: the item scores of the ranked runs.
        ranking: their ranking, if any.
        isolated_runs: the names of runs that cannot be compared with any other, and whether each
            shares items with one.
        names: the runs of `task_matrices`.
        tasks_are: as in `make_board`.
        is_unranked: whether no model is ranked, for a reason that another note says.
    """
    yield (
        "Intervals are 95% and cover the choice of questions: they say what a new set of"
        " similar questions would show."
    )
    if tasks_are == "sample":
        yield (
            "Overall scores and ranks are about tasks like these: their intervals include the"
            " spread between tasks."
        )
    unsure_counts = [row.n_unsure for row in rows]
    if sum(unsure_counts):
        answers = counted(sum(unsure_counts), "unsure answer")
        yield (
            f"{answers}{_spread_over_runs(unsure_counts)}: scored, but a careful reader might score"
            f" {plural(sum(unsure_counts), 'it', 'them')} otherwise. `evalwright runs samples"
            " RUN --unsure` lists them; a judge can read them (`evalwright score RUN"
            " --judge provider/name`)."
        )
    yield from _below_chance_notes(rows)
    if split:
        yield SPLIT_NOTE
    if mixed:
        yield (
            "Scores in this unit are not averaged over tasks, so there is no overall"
            " score and no rank."
        )
    elif ranking is not None:
        yield from _ranking_notes(ranking, rows, task_matrices, isolated_runs, names)

    few = []
    for task in dict.fromkeys(name for row in rows for name in row.cells):
        cells = [
            row.cells[task].estimate.effective_clusters
            for row in rows
            if task in row.cells
        ]
        few.append(
            (f"'{task}'", warn_few_clusters(min(filter(None, cells), default=None)))
        )
    yield from (f"On {tasks} {note}" for tasks, note in merge_remarks(few) if note)
    shown_tasks = {name for row in rows for name in row.cells}
    yield from _differing_notes(runs, called(runs), shown_tasks)
    yield from _order_notes(rows)
    yield from early_notes(runs)
    if any(row.shares for row in rows):
        yield SHARES_NOTE
        if any(row.overall for row in rows):
            yield ACCURACY_NOTE
    if any(row.n_missing for row in rows):
        rank_clause = (
            "; ranks come from the items that two models both have"
            if ranking is not None
            else ""
        )
        yield f"Missing answers are left out and counted{rank_clause}."
        shown_metrics = [
            metric for row in rows for task in row.cells for metric in row.metrics[task]
        ]
        if any(
            metric.kind in RATES_OF_ALL and metric.estimate.n_missing
            for metric in shown_metrics
        ):
            yield RATES_OF_ALL_NOTE
        yield from _recorded_rate_notes(rows)
        yield from _lost_rows_notes(runs, called(runs))
    yield from _given_up_notes(runs, called(runs))
    if unanswered := [row.label for row in rows if row.provisional and not row.n]:
        yield f"All answers of {listed(unanswered, MOST_NAMED)} are missing. {how_to_fill(runs)}"
    if provisional := [
        f"{row.label} ({_missing_percent(row)})"
        for row in rows
        if row.provisional and row.n
    ]:
        their = (
            "their scores and ranks are"
            if len(provisional) > 1
            else "its score and rank are"
        )
        yield (
            f"More than 5% of the answers of {listed(provisional, MOST_NAMED)} are missing, so"
            f" {their} provisional (marked *). {how_to_fill(runs)}"
        )
    yield from _not_asked_notes(runs, rows)
    yield from _submitted_notes(runs, called(runs))
    n_silent = [(row.label, row.n_asked - row.n - row.n_missing) for row in rows]
    silent = [f"{label}: {count(n)}" for label, n in n_silent if n > 0]
    if silent:
        yield (
            "Answers without a score in this column, such as refusals and replies that are"
            f" too short: {listed(silent, MOST_NAMED)}."
        )
    yield from caveats(runs, task_matrices)
    if any(row.ranks is None for row in rows) and not (mixed or is_unranked):
        yield UNRANKED_NOTE


def _below_chance_notes(rows: Sequence[BoardRow]) -> Iterator[str]:
    """Say which scores are 0.0 [0.0, 0.0] because all of their interval is below chance."""
    tasks_below_chance = [
        (row.label, sum(_is_below_chance(cell) for cell in row.cells.values()))
        for row in rows
    ]
    models = [
        f"{label} on {counted(n, 'task')}" for label, n in tasks_below_chance if n
    ]
    if models:
        yield (
            "0.0 [0.0, 0.0] is a score that is below chance with its whole interval, and counts as"
            f" 0: {listed(models, MOST_NAMED)}."
        )


def _is_below_chance(metric: MetricResult) -> bool:
    estimate = metric.estimate
    return metric.kind == CHANCE_NORMALISED and estimate.low == estimate.high == 0


def _recorded_rate_notes(rows: Sequence[BoardRow]) -> Iterator[str]:
    """Say that imported answer rates leave out missing answers, unlike those measured here."""
    n_by_label = {
        row.label: max(
            (
                metric.estimate.n_missing
                for task in row.cells
                for metric in row.metrics[task]
                if metric.label == ANSWER_RATE and metric.kind not in RATES_OF_ALL
            ),
            default=0,
        )
        for row in rows
    }
    incomplete = sorted(
        (label for label, n in n_by_label.items() if n),
        key=lambda label: -n_by_label[label],
    )
    if incomplete:
        which = listed(
            [f"{label}: {count(n_by_label[label])}" for label in incomplete], 5
        )
        yield (
            "The answer rate of imported runs is over the answers in their records, not"
            f" over the missing ones ({which}), of which it says nothing."
        )


def _lost_rows_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """Say whose answer rate counts rows that the files of an imported run lack."""
    n_by_label = {
        label: sum(count_lost_rows(task.metrics) for task in run.tasks)
        for label, run in zip(labels, runs, strict=True)
    }
    lost = sorted(
        ((label, n) for label, n in n_by_label.items() if n), key=lambda pair: -pair[1]
    )
    if lost:
        which = listed([f"{label}: {count(n)}" for label, n in lost], 5)
        yield (
            "The answer rate is over all items: rows that an imported run has lost count as not"
            f" answered ({which}). The published rate leaves them out."
        )


def _ranking_notes(
    ranking: NodeRanks,
    rows: Sequence[BoardRow],
    task_matrices: Sequence[Matrix],
    isolated_runs: Sequence[tuple[str, bool]],
    names: Sequence[str],
) -> Iterator[str]:
    """Write notes on how to read the ranks; arguments as of `list_notes`."""
    yield RANK_NOTE
    if ranking.letters and any(
        row.ranks and row.ranks[0] != row.ranks[1] for row in rows
    ):
        yield TIED_NOTE
    if any(row.together for row in rows):
        yield SIMULTANEOUS_NOTE
    for common in (False, True):
        isolated_names = [
            name for name, has_common in isolated_runs if has_common == common
        ]
        if not isolated_names:
            continue
        them = "it" if len(isolated_names) == 1 else "them"
        reason = "No other model has enough items in common with {}"
        if common:
            reason = (
                "The differences between {} and the others have no interval (they are"
                " the same on every item, and the range of a score is not known)"
            )
        yield (
            f"{reason.format(listed(isolated_names, MOST_NAMED))}: every rank is possible"
            f" for {them}, whatever the score."
        )
    yield from _common_notes(task_matrices)
    rounded = [
        f"'{matrix.measure.task}'"
        for matrix in task_matrices
        if matrix.measure.rounding
    ]
    if rounded:
        yield (
            f"Scores on {listed(rounded, MOST_NAMED)} are rounded, as they were published;"
            " ranks come from the items' own scores, which are not rounded."
        )
    for matrix in task_matrices:
        yield from filter(
            None,
            (
                note_other_questions_by_pair(matrix, names),
                *pairing_notes(matrix, names),
            ),
        )


def weight_notes(roots: Sequence[BoardNode]) -> Iterator[str]:
    """Say which parts of the overall score count several times, being of several tasks."""
    for root in roots[:1]:
        part_of_several_tasks = [part for part in root.parts if len(part.tasks) > 1]
        are_all_alike = len({len(part.tasks) for part in root.parts}) == 1
        if root.metric != f"mean of {len(root.tasks)} tasks" or are_all_alike:
            continue
        if sum(len(part.tasks) for part in root.parts) != len(root.tasks):
            continue
        times = [f"{part.title} as {len(part.tasks)}" for part in part_of_several_tasks]
        yield (
            f"The overall score is the mean of {len(root.tasks)} tasks, which count the same:"
            f" {listed(times, MOST_NAMED)} of them."
        )


def price_notes(labels: Sequence[str]) -> Iterator[str]:
    """Say whose cost comes from prices among the facts, as their runs know none."""
    if labels:
        yield (
            f"The cost of {listed(labels, MOST_NAMED)} is that of the tokens in the record, at the"
            " prices in the table of facts."
        )


def _given_up_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """Say how many samples were given up by model, for runs that accept a share of failures."""
    by_model = []
    for run, label in zip(runs, labels, strict=True):
        if not accepts_failures(run):
            continue
        task_gaps = missing_samples(run)
        ids = dict.fromkeys(name for task in task_gaps for name in task.ids)
        too_many = (
            ""
            if all(task.is_accepted for task in task_gaps)
            else ", more than accepted"
        )
        which = f" ({listed(list(ids), 5)}{too_many})" if ids else ""
        by_model.append(f"{label} {sum(len(task.ids) for task in task_gaps):,}{which}")
    if by_model:
        limits = [
            str(run.data["configuration"].get("accept_failures") or "") for run in runs
        ]
        accepted = listed(list(dict.fromkeys(filter(None, limits))))
        limit_clause = (
            f", where up to {accepted} of a task are accepted" if accepted else ""
        )
        yield f"Samples given up after their requests failed{limit_clause}: {'; '.join(by_model)}."


def _missing_percent(row: BoardRow) -> str:
    return f"{100 * row.n_missing / max(1, row.n_asked):.1f}%"


def _not_asked_notes(runs: Sequence[Run], rows: Sequence[BoardRow]) -> Iterator[str]:
    """Say which runs used only part of the items because of a limit."""
    limits = {run.id: run.data["configuration"].get("limit") for run in runs}
    limited = [
        f"{row.label} ({limits[row.run]:g})"
        for row in rows
        if limits.get(row.run) is not None
    ]
    if limited:
        yield f"Limited to part of the items (--limit): {listed(limited, MOST_NAMED)}."


def _submitted_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """Say which results are of files that others sent: their answers were not asked for here."""
    submitted = [
        label
        for run, label in zip(runs, labels, strict=True)
        if run.data["configuration"].get("submission") is not None
    ]
    if submitted:
        yield (
            "Submitted by others, who say whose answers they are, and when:"
            f" {listed(submitted, MOST_NAMED)}."
        )


def _common_notes(task_matrices: Sequence[Matrix]) -> Iterator[str]:
    """Write notes on the items that pairs of runs share, and on jackknifed metrics."""
    without = (
        "are compared as independent samples"
        if len(task_matrices) == 1
        else "cannot be separated"
    )
    remarks = [
        (f"'{matrix.measure.task}'", note)
        for matrix in task_matrices
        for note in group_notes(matrix)
    ]
    yield from (f"On {tasks} {note}" for tasks, note in merge_remarks(remarks))
    for matrix in task_matrices:
        counts = common_counts(matrix)
        n_scored = np.diag(counts)
        few = (counts > 0) & (
            2 * counts < np.maximum(n_scored[:, None], n_scored[None, :])
        )
        for pairs, problem in (
            (few, "under half of the items in common, and can hardly be separated"),
            (counts == 0, f"no item in common, and {without}"),
        ):
            if number := int(np.triu(pairs, 1).sum()):
                have = counted(number, "pair of models has", "pairs of models have")
                yield f"On '{matrix.measure.task}' {have} {problem}."


def _order_notes(rows: Sequence[BoardRow]) -> Iterator[str]:
    """Write a note on rows whose position is none of their possible ranks."""
    ranked_rows = [row for row in rows if row.ranks]
    odd = []
    for position, row in enumerate(ranked_rows, 1):
        assert row.ranks is not None
        low, high = row.ranks
        if not low <= position <= high:
            odd.append(f"{row.label} (row {position}, rank {low} to {high})")
    if not odd:
        return
    has_gaps = len({row.n for row in ranked_rows}) > 1 or any(
        row.n_missing for row in ranked_rows
    )
    order = "Rows are ordered by their scores; ranks follow from paired differences."
    if has_gaps:
        order = (
            "Rows are ordered by their scores, each over the items that the model"
            " answered; ranks follow from differences on the items that two models"
            " both answered."
        )
    yield (f"{order} So order and rank disagree for {listed(odd, 5)}: trust the rank.")


def _differing_notes(
    runs: Sequence[Run], labels: Sequence[str], shown_tasks: Collection[str]
) -> Iterator[str]:
    """Write what differed between the runs, by task, and which models scored answers."""
    task_names = dict.fromkeys(
        task["name"]
        for run in runs
        for task in run.data["tasks"]
        if task["name"] in shown_tasks
    )
    differences = (
        (f"'{name}'", describe_task_differences(runs, labels, name))
        for name in task_names
    )
    for tasks, difference in merge_remarks(
        (name, difference) for name, difference in differences if difference
    ):
        yield f"Settings differ between the runs on {tasks}: {difference}."
    yield from _judge_notes(runs, labels)
    yield from _published_judge_notes(runs)
    yield from panel_notes(runs)


def _judge_notes(runs: Sequence[Run], labels: Sequence[str]) -> Iterator[str]:
    """Name the models that scored answers; where they differ, the runs of each."""
    labels_by_role: dict[str, dict[tuple[str, str], list[str]]] = {}
    for run, label in zip(runs, labels, strict=True):
        for role, model in scoring_roles(run).items():
            labels_by_role.setdefault(role, {}).setdefault(model, []).append(label)
    for role, labels_by_model in labels_by_role.items():
        if len(labels_by_model) == 1:
            ((_, name),) = labels_by_model
            yield f"Scored with {name} in the role '{role}'."
            continue
        of_each = [
            f"{name} for {listed(scored, 5)}"
            for (_, name), scored in labels_by_model.items()
        ]
        yield (
            f"Different models played the role '{role}' ({'; '.join(of_each)}): scores"
            " that they gave are not comparable, and neither are the ranks marked †. Score"
            " all alike: `evalwright score RUN --judge provider/name`."
        )


def _published_judge_notes(runs: Sequence[Run]) -> Iterator[str]:
    """Name the judges by which another program scored the runs, and how many each scored."""
    n_models: dict[str, int] = {}
    for run in runs:
        for _, name in published_judges(run).values():
            n_models[name] = n_models.get(name, 0) + 1
    if not n_models:
        return
    if len(n_models) == 1:
        yield f"Judge: {listed([*n_models])}."
        return
    by_count = sorted(n_models.items(), key=lambda pair: -pair[1])
    counts = [f"{name} for {counted(n, 'model')}" for name, n in by_count]
    yield (
        f"Judges: {listed(counts)}. Scores by different judges are not strictly"
        " comparable: models that a rarer judge scored are marked †."
    )


def missing_notes(
    runs: Sequence[Run], labels: Sequence[str], nodes: Sequence[str]
) -> Iterator[str]:
    """Write a sentence for each node of the tree that lacks tasks in some runs."""
    for name in nodes:
        labels_by_coverage: dict[str, list[str]] = {}
        for run, label in zip(runs, labels, strict=True):
            for group in run.groups:
                if group.name == name and group.missing:
                    labels_by_coverage.setdefault(group.coverage, []).append(label)
        for coverage, labels_of_coverage in labels_by_coverage.items():
            yield f"'{name}' has {coverage} ({listed(labels_of_coverage, 5)})."


def _spread_over_runs(counts: Sequence[int]) -> str:
    """How a total is spread over the runs, in brackets; "" for a single run."""
    low = min(counts)
    high = max(counts)
    if len(counts) == 1:
        return ""
    if low == high:
        return f" ({high:,} in each run)"
    if len(counts) == 2:
        return f" ({counts[0]:,} and {counts[1]:,})"
    return f" (from {low:,} to {high:,} a run)"
