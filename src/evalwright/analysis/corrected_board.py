"""Corrects a leaderboard by human labels: its headline scores, their ranks, the judge's errors.

A model's score is corrected by labels of its own answers (PPI++, as `judge calibrate` does), which
is valid whatever mistakes the judge makes. Labels of other models correct nothing: a judge that
favours a model would carry over. So a model with too few labels keeps the judge's number, has no
rank, and the board says why.

Labels belong to labelling sets (`judge_validation.drawing`), so the chance of every label is known.
Labels of answers that somebody picked are left out.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.board import Board, BoardRow
from evalwright.analysis.board_tree import BoardNode, reorder
from evalwright.analysis.corrected_tree import correct_tree
from evalwright.analysis.judge_validation.drawing import LabelSet
from evalwright.analysis.judge_validation.labels import (
    Evidence,
    LabelFile,
    find_sets,
    latest_first,
    make_evidence,
    read_label_files,
    unlabelled_evidence,
)
from evalwright.analysis.judge_validation.verdicts import Verdicts, read_verdicts
from evalwright.analysis.ranking import letter_groups
from evalwright.analysis.words import counted, listed
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.runs.reader import Run
from evalwright.runs.simulations import refuse_left_out
from evalwright.statistics import Estimate, rank_sets
from evalwright.statistics.corrected_ranks import (
    FEWEST_LABELS,
    CorrectedScore,
    CorrectedScores,
    LabelledModel,
    correct_scores,
)

FEWEST_OF_A_KIND = 10
"""Least labelled right, and wrong, answers of a model at which the judge's errors on its answers
are shown; below, an interval of a rate is half the range wide, and those of all models are shown.
"""
_SAME = 1e-6
"""Largest gap between the board's score and the mean of the verdicts."""
MOST_NAMES = 5
"""Most models named in one sentence."""


@dataclass(frozen=True, slots=True, eq=False)
class BoardEvidence:
    """The verdicts and labels behind the headline scores of a board.

    Args:
        models: one for each row of the board.
        clusters: (items,), of the items of all models; None where each item is independent.
        problems: by row, why its labels cannot be used; "" if they can.
        complement: whether the board shows 1 minus the mean of the verdicts.
        notes: what a reader must know about the labels, a sentence each.
        evidence: by row, the labels on the records of its set; None without one.
        positions: by row, each item's position among the records of its set, -1 without one.
        labels: number of labels, each counted once where models share it.
    """

    models: tuple[LabelledModel, ...]
    clusters: NDArray[np.int64] | None
    problems: tuple[str, ...]
    complement: bool
    notes: tuple[str, ...]
    evidence: tuple[Evidence | None, ...]
    positions: tuple[NDArray[np.int64], ...]
    labels: int


def correct_board(
    board: Board, runs: Sequence[Run], label_files: Sequence[str | Path]
) -> Board:
    """Correct the headline scores of a board by labels, and rank by the corrected scores.

    Args:
        board: the board.
        runs: the runs that it was made of.
        label_files: the tables of labels.

    Returns:
        The board with `corrected`, `judge_errors`, ranks and letters of its rows, sorted by the
        corrected scores; models without one are below, in the judge's order.

    Raises:
        ConfigurationError: labels cannot be read or matched (with file and line), or none of the
            models can be corrected.
    """
    refuse_left_out(runs, "correct")
    files = read_label_files(label_files)
    evidence = gather_board_evidence(board, runs, files)
    corrected = correct_scores(evidence.models, clusters=evidence.clusters)
    if not corrected.compared:
        reasons = [
            f"{row.label}: {_reason(problem, score)}"
            for row, problem, score in zip(
                board.rows, evidence.problems, corrected.scores, strict=True
            )
        ]
        raise ConfigurationError(
            "These labels correct no model of the board. "
            f"{listed(reasons, MOST_NAMES)}. Draw answers to label: `evalwright check judge"
            " sample RUN... --for-ranks`."
        )
    rows = _corrected_rows(board, evidence, corrected)
    order = _order_of(rows, board.headline)
    notes = [*_notes(board, evidence, corrected), *board.notes]
    tree = correct_tree(
        board.tree,
        board.headline,
        corrected=[row.corrected for row in rows],
        ranks=[row.ranks for row in rows],
        letters=[row.letters for row in rows],
        reasons={
            index: f"not corrected: {_reason(problem, score)}"
            for index, (problem, score) in enumerate(
                zip(evidence.problems, corrected.scores, strict=True)
            )
            if score.estimate is None
        },
    )
    return replace(
        board,
        rows=tuple(rows[index] for index in order),
        notes=tuple(notes),
        tree=tuple(reorder(root, order) for root in tree),
        judged_tree=tuple(reorder(root, order) for root in board.tree),
    )


# -- verdicts and labels of all models -------------------------------------------------


def gather_board_evidence(
    board: Board,
    runs: Sequence[Run],
    files: Sequence[LabelFile],
    *,
    with_unlabelled: bool = False,
) -> BoardEvidence:
    """Read the verdicts behind a board's headline, and match them with labels.

    Args:
        board: the board.
        runs: the runs that it was made of.
        files: the tables of labels.
        with_unlabelled: whether to read the verdicts of models without usable labels too; then only
            labels of sets drawn from just the headline's tasks are used.

    Raises:
        ConfigurationError: the headline is no judge's score, or labels cannot be matched.
    """
    node = board.headline
    scorers = _scorers_of(board, node)
    drawn_files, by_hand = _without_chosen(files)
    sets = find_sets(drawn_files, runs) if drawn_files else {}
    labels = [label for file in drawn_files for label in file.labels]
    disputed = [name for name, drawn in sets.items() if drawn.only]
    usable = {name: drawn for name, drawn in sets.items() if not drawn.only}
    run_by_id = {run.id: run for run in runs}
    sources = list[_Source]()
    used = set[str]()
    matching = set[str]()
    for row in board.rows:
        run = run_by_id[row.run]
        tasks = tuple(
            task["name"] for task in run.data["tasks"] if task["name"] in node.tasks
        )
        source = _Source("it has no labels")
        candidates = [
            drawn
            for drawn in latest_first(usable, run)
            if not with_unlabelled or drawn.tasks == tasks
        ]
        for drawn, verdicts in _sets_of(run, candidates, scorers):
            matching |= {drawn.name, *drawn.earlier}
            evidence = make_evidence(verdicts, drawn, labels, sets)
            if source.evidence is None or (
                evidence.labelled.sum() > source.evidence.labelled.sum()
            ):
                source = _Source(evidence=evidence)
        if source.evidence is not None:
            used |= {source.evidence.drawn.name, *source.evidence.drawn.earlier}
        elif with_unlabelled:
            source = _unlabelled_source(run, tasks, scorers)
        sources.append(source)
    n_by_set = Counter(label.set for label in labels if label.set in usable)
    notes = _label_notes(
        by_hand=by_hand,
        disputed=sum(label.set in disputed for label in labels),
        other_sets=sum(n_by_set[name] for name in matching - used),
        strange=sum(n_by_set[name] for name in usable if name not in matching),
        sources=sources,
    )
    return _align(board, node, sources, notes)


@dataclass(frozen=True, slots=True, eq=False)
class _Source:
    """What is known of one model's verdicts and labels.

    Attributes:
        problem: why there is nothing.
        evidence: the labels on the records of its set.
    """

    problem: str = ""
    evidence: Evidence | None = None


def _scorers_of(board: Board, node: BoardNode) -> dict[str, str]:
    """The scorer of each task of the headline."""
    if node.kind == "slice":
        raise ConfigurationError(
            f"The board is ranked by the slice '{node.title}', and labels correct a task"
            " or an average of tasks. Leave out --rank-by, or name a task."
        )
    scorers = {}
    for task in node.tasks:
        cell = next((row.cells[task] for row in board.rows if task in row.cells), None)
        if cell is not None:
            scorers[task] = cell.scorer
    names = list(dict.fromkeys(scorers.values()))
    if len(names) > 1:
        raise ConfigurationError(
            f"The board is ranked by '{node.title}', an average of"
            f" {counted(len(scorers), 'task')} with {len(names)} scorers"
            f" ({listed(names, MOST_NAMES)}). Labels correct the verdicts of one scorer, so"
            " they cannot correct this average, but any of its tasks: name it with"
            f" `--rank-by TASK` (such as {next(iter(scorers))}) for `evalwright leaderboard"
            " --labels`, and with `--task TASK` for `evalwright check judge sample RUN..."
            " --for-ranks`."
        )
    return scorers


def _without_chosen(
    files: Sequence[LabelFile],
) -> tuple[list[LabelFile], int]:
    """Leave out rows of answers chosen by hand, and count them."""
    drawn_files = []
    by_hand = 0
    for file in files:
        drawn = tuple(label for label in file.labels if label.answer is None)
        by_hand += len(file.labels) - len(drawn)
        if drawn:
            drawn_files.append(replace(file, labels=drawn))
    return drawn_files, by_hand


def _sets_of(
    run: Run, candidates: Sequence[LabelSet], scorers: Mapping[str, str]
) -> Iterator[tuple[LabelSet, Verdicts]]:
    """The sets with this run's answers, each with the verdicts on them.

    A set that another takes over is left out.
    """
    taken_over = set[str]()
    verdicts_by_tasks: dict[tuple[str, ...], Verdicts | None] = {}
    for drawn in candidates:
        if drawn.name in taken_over:
            continue
        if drawn.tasks not in verdicts_by_tasks:
            verdicts_by_tasks[drawn.tasks] = _matching_verdicts(
                run, drawn.tasks, scorers
            )
        verdicts = verdicts_by_tasks[drawn.tasks]
        if verdicts is None or verdicts.digest != drawn.answers:
            continue
        has_texts = not np.isnan(verdicts.lengths).all()
        if drawn.run == run.id or has_texts:
            drawn.check(len(verdicts.values))
            taken_over |= {*drawn.earlier}
            yield drawn, verdicts


def _matching_verdicts(
    run: Run, tasks: tuple[str, ...], scorers: Mapping[str, str]
) -> Verdicts | None:
    """The verdicts of the headline's scorer on the tasks of a set; None if there are none."""
    names = {task["name"] for task in run.data["tasks"]}
    scorer = next((scorers[task] for task in tasks if task in scorers), "")
    if not scorer or not set(tasks) <= names:
        return None
    try:
        verdicts = read_verdicts(run, scorer, tasks)
    except (ConfigurationError, RunError):
        return None
    return verdicts if verdicts.tasks == tasks else None


def _unlabelled_source(
    run: Run, tasks: tuple[str, ...], scorers: Mapping[str, str]
) -> _Source:
    """The verdicts of a run without labels, or why they cannot be used."""
    scorer = next((scorers[task] for task in tasks if task in scorers), "")
    try:
        verdicts = read_verdicts(run, scorer, tasks)
    except (ConfigurationError, RunError) as error:
        return _Source(str(error).rstrip("."))
    lacking = [task for task in tasks if task not in verdicts.tasks]
    if lacking:
        return _Source(f"its task {listed(lacking, 3)} has no score by '{scorer}'")
    return _Source(evidence=unlabelled_evidence(verdicts))


def _label_notes(
    *,
    by_hand: int,
    disputed: int,
    other_sets: int,
    strange: int,
    sources: Sequence[_Source],
) -> list[str]:
    reasons = {
        "are of answers chosen by hand: only answers drawn by chance represent a model": (
            by_hand
        ),
        "are of answers drawn from disputed ones alone, which do not represent a model": (
            disputed
        ),
        "are of further sets of models with a larger one: sets that were drawn"
        " independently cannot be combined (`judge sample --for-ranks --labels FILE` draws"
        " what can)": other_sets,
        "are of answers that are not on this board": strange,
    }
    notes = [
        f"Left out: {counted(n, 'row')} of the tables, which {reason}."
        for reason, n in reasons.items()
        if n
    ]
    people = set[str]()
    n_several = 0
    n_differing = 0
    for source in sources:
        if source.evidence is None:
            continue
        people |= {name for name in source.evidence.labellers if name}
        counts = (~np.isnan(source.evidence.people)).sum(axis=1)
        table = source.evidence.people[counts > 1]
        n_several += len(table)
        n_differing += int((np.nanmax(table, axis=1) > np.nanmin(table, axis=1)).sum())
    if n_several:
        notes.append(
            f"{counted(max(2, len(people)), 'person', 'people')} labelled;"
            f" {counted(n_several, 'answer')} have several labels, which differ on"
            f" {n_differing}. Their mean counts."
        )
    return notes


def _align(
    board: Board, node: BoardNode, sources: Sequence[_Source], notes: Sequence[str]
) -> BoardEvidence:
    """Give the items of all models the same positions."""
    masks = list[NDArray[np.bool_]]()
    problems = [source.problem for source in sources]
    for index, source in enumerate(sources):
        if source.evidence is None:
            masks.append(np.zeros(0, dtype=np.bool_))
            continue
        verdicts = source.evidence.verdicts
        lacking = [task for task in node.tasks if task not in verdicts.tasks]
        if lacking:
            problems[index] = f"its labels lack the task {listed(lacking, 3)}"
        codes = [code for code, task in enumerate(verdicts.tasks) if task in node.tasks]
        masks.append(np.isin(verdicts.task_codes, codes))
    keys = [
        np.zeros(0, np.int64)
        if source.evidence is None
        else source.evidence.verdicts.keys[mask]
        for source, mask in zip(sources, masks, strict=True)
    ]
    names = np.unique(np.concatenate(keys))
    clusters = np.zeros(len(names), dtype=np.int64)
    models = []
    positions = []
    complement = _is_complement(board, node, sources, masks)
    for index, (source, mask, own_keys) in enumerate(
        zip(sources, masks, keys, strict=True)
    ):
        places = np.searchsorted(names, own_keys)
        judge = np.full(len(names), np.nan)
        human = np.full(len(names), np.nan)
        position = np.full(len(names), -1, dtype=np.int64)
        strata = None
        scale = None
        if source.evidence is not None and not problems[index]:
            evidence = source.evidence
            clusters[places] = evidence.verdicts.clusters[mask]
            scale, problems[index] = _scale_of(
                board, node, index, evidence, mask, complement
            )
            if not problems[index]:
                judge[places] = evidence.judge[mask]
                human[places] = evidence.human[mask]
                position[places] = np.flatnonzero(mask)
            if evidence.strata is not None:
                strata = np.full(len(names), -1, dtype=np.int64)
                strata[places] = evidence.strata[mask]
            if scale is not None:
                scale, own_scale = np.ones(len(names)), scale
                scale[places] = own_scale
        models.append(LabelledModel(judge, human, strata, scale))
        positions.append(position)
    shared = len(np.unique(clusters)) < len(names)
    return BoardEvidence(
        models=tuple(models),
        clusters=clusters if shared else None,
        problems=tuple(problems),
        complement=complement,
        notes=tuple(notes),
        evidence=tuple(source.evidence for source in sources),
        positions=tuple(positions),
        labels=_count_labels(models, sources),
    )


def _count_labels(models: Sequence[LabelledModel], sources: Sequence[_Source]) -> int:
    """Count the labels of corrected models; those of a set that models share count once."""
    labels_by_set: dict[str, int] = {}
    for model, source in zip(models, sources, strict=True):
        if source.evidence is None:
            continue
        is_labelled = ~np.isnan(model.judge) & ~np.isnan(model.human)
        name = source.evidence.drawn.name
        count = int(np.count_nonzero(is_labelled))
        labels_by_set[name] = max(count, labels_by_set.get(name, 0))
    return sum(labels_by_set.values())


def _shared_answers(board: Board, evidence: BoardEvidence) -> list[str]:
    """Say which models have the same answers as another, and so its labels."""
    labels_by_set: dict[str, list[str]] = {}
    for row, row_evidence in zip(board.rows, evidence.evidence, strict=True):
        if row_evidence is not None and row_evidence.drawn.name:
            labels_by_set.setdefault(row_evidence.drawn.name, []).append(row.label)
    return [
        f"{listed(labels, MOST_NAMES)} gave the same answers, so they share their"
        " labels, which are counted once."
        for labels in labels_by_set.values()
        if len(labels) > 1
    ]


def _shares_of_tasks(node: BoardNode) -> dict[str, float]:
    """The weight of each task where every part of a node counts the same."""
    if node.kind == "task":
        return {node.tasks[0]: 1.0}
    parts = [part for part in node.parts if part.kind != "slice"]
    shares = dict.fromkeys(node.tasks, 0.0)
    for part in parts:
        for task, share in _shares_of_tasks(part).items():
            shares[task] = shares.get(task, 0.0) + share / len(parts)
    if not parts:
        return dict.fromkeys(node.tasks, 1 / len(node.tasks))
    return shares


def _means_of(
    node: BoardNode, evidence: Evidence, mask: NDArray[np.bool_]
) -> tuple[float, float, NDArray[np.float64]]:
    """The mean over verdicts, the mean over tasks, and the factors of the latter (records,)."""
    verdicts = evidence.verdicts
    judged = mask & ~np.isnan(verdicts.values)
    total = max(1, int(np.count_nonzero(judged)))
    pooled = float(verdicts.values[judged].mean()) if judged.any() else math.nan
    shares = _shares_of_tasks(node)
    factors = np.ones(len(verdicts.values))
    mean = 0.0
    for code, task in enumerate(verdicts.tasks):
        of_task = judged & (verdicts.task_codes == code)
        count = int(np.count_nonzero(of_task))
        if task not in node.tasks:
            continue
        if not count:
            return pooled, math.nan, factors
        share = shares.get(task, 0.0)
        factors[verdicts.task_codes == code] = share * total / count
        mean += share * float(verdicts.values[of_task].mean())
    return pooled, mean, factors


def _is_complement(
    board: Board,
    node: BoardNode,
    sources: Sequence[_Source],
    masks: Sequence[NDArray[np.bool_]],
) -> bool:
    """Tell whether the board shows 1 minus the mean of the verdicts, as a hallucination rate."""
    gaps = [0.0, 0.0]
    for estimate, source, mask in zip(node.estimates, sources, masks, strict=True):
        if source.evidence is None or estimate is None:
            continue
        pooled, mean, _ = _means_of(node, source.evidence, mask)
        for form, board_score in enumerate((estimate.value, 1 - estimate.value)):
            gaps[form] += min(
                abs(board_score - candidate)
                for candidate in (pooled, mean)
                if not math.isnan(candidate)
            )
    return gaps[1] < gaps[0]


def _scale_of(
    board: Board,
    node: BoardNode,
    index: int,
    evidence: Evidence,
    mask: NDArray[np.bool_],
    complement: bool,
) -> tuple[NDArray[np.float64] | None, str]:
    """The factors with which the mean of the verdicts is the board's score.

    Returns:
        Factors (kept records,), None for the plain mean; and why there is none, or "".
    """
    estimate = node.estimates[index]
    if estimate is None or math.isnan(estimate.value):
        return None, "it has no score"
    board_score = 1 - estimate.value if complement else estimate.value
    pooled, mean, factors = _means_of(node, evidence, mask)
    if abs(board_score - pooled) < _SAME:
        return None, ""
    if abs(board_score - mean) < _SAME:
        return factors[mask], ""
    return None, "its score is not a mean of the judge's verdicts"


# -- rows and notes --------------------------------------------------------------------


def _reason(problem: str, score: CorrectedScore) -> str:
    return problem or score.reason


def _corrected_rows(
    board: Board, evidence: BoardEvidence, corrected: CorrectedScores
) -> list[BoardRow]:
    """The rows in the board's order, with corrected scores, errors and ranks."""
    ranks: dict[int, tuple[tuple[int, int], tuple[int, int], str]] = {}
    if corrected.differences is not None:
        together = rank_sets(corrected.differences)
        separately = rank_sets(corrected.differences, simultaneous=False)
        letters = letter_groups(
            corrected.differences.differs,
            corrected.differences.difference,
            np.asarray(~np.isnan(corrected.differences.low).all(axis=1)),
            lower_is_better=False,
        )
        for position, index in enumerate(corrected.compared):
            ranks[index] = (
                (int(together.low[position]), int(together.high[position])),
                (int(separately.low[position]), int(separately.high[position])),
                letters[position] if letters else "",
            )
    else:
        ranks = dict.fromkeys(corrected.compared, ((1, 1), (1, 1), ""))
    rows = []
    for index, (row, score) in enumerate(
        zip(board.rows, corrected.scores, strict=True)
    ):
        rank, own_rank, letter = ranks.get(index, (None, None, ""))
        rows.append(
            replace(
                row,
                ranks=rank,
                own_ranks=own_rank,
                letters=letter,
                together=None,
                corrected=_shown(score.estimate, evidence.complement),
                judge_errors=_errors_of(score, corrected),
            )
        )
    return rows


def _shown(estimate: Estimate | None, complement: bool) -> Estimate | None:
    """The corrected score in the direction of the board, within 0 and 1."""
    if estimate is None:
        return None
    value, low, high = (
        min(1.0, max(0.0, number))
        for number in (estimate.value, estimate.low, estimate.high)
    )
    if complement:
        value, low, high = 1 - value, 1 - high, 1 - low
    return replace(estimate, value=value, low=low, high=high)


def _errors_of(score: CorrectedScore, corrected: CorrectedScores) -> dict[str, Any]:
    """The judge's errors on a model's answers, or on those of all models where it has too few."""
    rates: dict[str, Estimate | None] = {}
    pooled_rates = []
    for name in ("false_alarm", "miss"):
        rate: Estimate | None = getattr(score, name)
        pooled = getattr(corrected, name)
        if rate is not None and rate.n >= FEWEST_OF_A_KIND:
            rates[name] = rate
        elif pooled is not None:
            rates[name] = pooled.estimate
            pooled_rates.append(name)
        else:
            rates[name] = None
    if not any(rates.values()):
        return {}
    return {
        **rates,
        "labels": score.labels,
        "pooled": bool(pooled_rates),
        "pooled_rates": pooled_rates,
    }


def _order_of(rows: Sequence[BoardRow], node: BoardNode) -> list[int]:
    """The positions of the rows, best corrected score first; others below, by the judge's."""
    sign = 1.0 if node.lower_is_better else -1.0

    def key(index: int) -> tuple[bool, float, int]:
        estimate = rows[index].corrected
        if estimate is None:
            return True, 0.0, index
        return False, sign * estimate.value, index

    return sorted(range(len(rows)), key=key)


def _notes(
    board: Board, evidence: BoardEvidence, corrected: CorrectedScores
) -> list[str]:
    compared = set(corrected.compared)
    notes = [
        f"Scores are corrected by people's labels ({counted(evidence.labels, 'label')} of"
        f" {counted(len(compared), 'model')}; PPI++): they are what these people would"
        " give to all answers. The judge's own number is beside them. Ranks go by"
        " corrected scores. All further scores, as those of slices, are the judge's."
    ]
    reasons: dict[str, list[str]] = {}
    for index, row in enumerate(board.rows):
        if index not in compared:
            reason = _reason(evidence.problems[index], corrected.scores[index])
            reasons.setdefault(reason, []).append(row.label)
    if reasons:
        named = "; ".join(
            f"{listed(models, MOST_NAMES)} ({reason})"
            for reason, models in reasons.items()
        )
        notes.append(
            f"Not corrected, and therefore not ranked: {named}. A model needs"
            f" {FEWEST_LABELS} labels of its own answers. Those of other answers do not"
            " correct it, because the judge may favour it or be harder on it than on other"
            " models."
        )
    notes += _shared_answers(board, evidence)
    notes += _error_notes(corrected)
    return [*notes, *evidence.notes]


def _error_notes(corrected: CorrectedScores) -> list[str]:
    rates = {"false alarms": corrected.false_alarm, "misses": corrected.miss}
    if all(rate is None for rate in rates.values()):
        return [
            "The labels are grades, so the judge has no rate of false alarms or misses."
        ]
    notes = [
        "A false alarm calls a right answer wrong, a miss passes a wrong one. A rate is the"
        f" model's own where it has at least {FEWEST_OF_A_KIND} labelled answers of the kind,"
        " else that of all models' labels together, which is its own only if the judge errs"
        " alike on all models."
    ]
    tested = {
        name: rate
        for name, rate in rates.items()
        if rate is not None and rate.models > 1
    }
    differing = [
        f"{name}: p = {rate.p_equal:.2g}"
        for name, rate in tested.items()
        if rate.p_equal < 0.05 / len(tested)
    ]
    if differing:
        notes.append(
            f"The judge does not err alike on all models ({listed(differing, 2)}): rates of"
            " all models together say little of a single model."
        )
    elif tested:
        notes.append(
            "The labels show no difference between the judge's errors on different models,"
            " which does not prove that there is none."
        )
    return notes
