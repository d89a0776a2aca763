"""Draws the answers whose labels could settle or overturn a rank of a board.

Each model's set is drawn by strata of verdicts, with recorded probabilities, from the answers that
its earlier sets left. It takes over the labels of those sets, so the correction uses all of them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evalwright.analysis.board import make_board
from evalwright.analysis.corrected_board import BoardEvidence, gather_board_evidence
from evalwright.analysis.judge_validation.drawing import USUAL_SIZE, LabelSet
from evalwright.analysis.judge_validation.labels import (
    Evidence,
    find_sets,
    read_label_files,
)
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.runs.simulations import refuse_left_out
from evalwright.statistics.labels_for_ranks import PlannedLabels, plan_labels
from evalwright.tasks.safe_files import failing_as


@dataclass(frozen=True, slots=True)
class DrawnForRanks(Plain):
    """What the new labels of one model are worth.

    Args:
        run: the run's id.
        label: the model's label.
        labels: its labels so far.
        drawn: answers to label.
        half_width: half the width of its interval so far, from 0 to 1; nan without labels.
        expected_half_width: with the new labels.
    """

    run: str
    label: str
    labels: int
    drawn: int
    half_width: float
    expected_half_width: float


@dataclass(frozen=True, slots=True)
class NeighbourNeed(Plain):
    """How many labels should settle the ranks of two neighbours.

    Args:
        better: the label of the one that is ahead so far.
        worse: that of the other.
        gap: how far they are expected to be apart, from 0 to 1.
        labels: labels of each of the two, those so far included; None if all answers are too few.
    """

    better: str
    worse: str
    gap: float
    labels: int | None


@dataclass(frozen=True, slots=True)
class RankDraw:
    """The sets drawn, and what they are worth.

    Args:
        sets: each run with its new set; runs of which no answer was drawn are left out.
        models: what the labels of each model are worth, in the board's order.
        open_pairs: pairs of models that the labels so far leave open.
        expected_settled: how many of them the new labels should settle.
        needs: open neighbours with what they need, those with the fewest labels first.
    """

    sets: tuple[tuple[Run, LabelSet], ...]
    models: tuple[DrawnForRanks, ...]
    open_pairs: int
    expected_settled: float
    needs: tuple[NeighbourNeed, ...]


def draw_for_ranks(
    runs: Sequence[Run],
    label_files: Sequence[str | Path] = (),
    *,
    size: int | None = None,
    metric: str | None = None,
    task: str = "",
    top: int | None = None,
    seed: int = 0,
) -> RankDraw:
    """Draw the answers of several runs whose labels could settle a rank of their board.

    Args:
        runs: the runs.
        label_files: tables of the labels so far.
        size: number of answers over all runs; None for 200.
        metric: the metric that the board shows, None for each task's main one.
        task: the task by which the board ranks, "" for its headline score.
        top: settle only the ranks among this many of the best models; None for all.
        seed: seeds the draw.

    Raises:
        ConfigurationError: labels cannot be used, no rank is open, or the size is too small.
    """
    if len(runs) < 2:
        raise ConfigurationError(
            "--for-ranks needs at least two runs, whose ranks labels could settle."
        )
    refuse_left_out(runs, "draw from")
    board = make_board(runs, metric, rank_by=task)
    files = read_label_files(label_files)
    gathered = gather_board_evidence(board, runs, files, with_unlabelled=True)
    unusable = [
        f"{row.label} ({problem})"
        for row, problem in zip(board.rows, gathered.problems, strict=True)
        if problem
    ]
    if unusable:
        raise ConfigurationError(
            f"No labels can be drawn for this board: {'; '.join(unusable)}."
        )
    sets = find_sets(files, runs) if files else {}
    drawn = [
        _drawn_before(evidence, sets, positions)
        for evidence, positions in zip(
            gathered.evidence, gathered.positions, strict=True
        )
    ]
    with failing_as(ConfigurationError, "No labels can be drawn", ValueError):
        plan = plan_labels(
            gathered.models,
            USUAL_SIZE if size is None else size,
            clusters=gathered.clusters,
            drawn=drawn,
            seed=seed,
            top=top,
            lower_is_better=bool(board.headline.lower_is_better) != gathered.complement,
        )
    run_by_id = {run.id: run for run in runs}
    facts = [[file.sha256 for file in files], [run.id for run in runs], size, seed]
    new_sets = []
    worth = []
    for index, (row, planned) in enumerate(zip(board.rows, plan.models, strict=True)):
        worth.append(
            DrawnForRanks(
                run=row.run,
                label=row.label,
                labels=planned.labels,
                drawn=len(planned.indices),
                half_width=planned.half_width,
                expected_half_width=planned.expected_half_width,
            )
        )
        if planned.indices:
            label_set = _make_set(gathered, index, planned, drawn[index], seed, facts)
            new_sets.append((run_by_id[row.run], label_set))
    needs = tuple(
        NeighbourNeed(
            board.rows[need.models[0]].label,
            board.rows[need.models[1]].label,
            need.gap,
            need.labels,
        )
        for need in plan.needs
    )
    return RankDraw(
        tuple(new_sets), tuple(worth), plan.open_pairs, plan.expected_settled, needs
    )


def _drawn_before(
    evidence: Evidence | None,
    sets: dict[str, LabelSet],
    positions: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Which items are in the model's earlier sets, labelled or not."""
    assert evidence is not None
    names = (evidence.drawn.name, *evidence.drawn.earlier)
    rows = [row for name in names if name in sets for row in sets[name].rows]
    drawn: NDArray[np.bool_] = np.isin(positions, rows) & (positions >= 0)
    return drawn


def _make_set(
    gathered: BoardEvidence,
    index: int,
    planned: PlannedLabels,
    drawn: NDArray[np.bool_],
    seed: int,
    facts: Sequence[object],
) -> LabelSet:
    """Make the set of one model from the items that were drawn."""
    evidence = gathered.evidence[index]
    assert evidence is not None
    positions = gathered.positions[index]
    verdicts = evidence.verdicts
    strata = np.full(len(verdicts.values), -1, dtype=np.int64)
    is_known = positions >= 0
    strata[positions[is_known]] = planned.strata[is_known]
    chosen = np.array(planned.indices)
    of_chosen = planned.strata[chosen]
    free = np.bincount(planned.strata[(planned.strata >= 0) & ~drawn])
    chances = np.bincount(of_chosen, minlength=len(free)) / np.maximum(free, 1)
    rows = tuple(positions[chosen].tolist())
    text = json.dumps([*facts, verdicts.run.id, verdicts.scorer, verdicts.digest, rows])
    earlier = (evidence.drawn.name, *evidence.drawn.earlier)
    return LabelSet(
        name="s"
        + blake2b(text.encode(errors="surrogatepass"), digest_size=4).hexdigest(),
        run=verdicts.run.id,
        scorer=verdicts.scorer,
        tasks=verdicts.tasks,
        samples_sha256=verdicts.run.samples_sha256,
        answers=verdicts.digest,
        graded=verdicts.graded,
        design="stratified",
        seed=seed,
        rows=rows,
        probabilities=tuple(chances[of_chosen].tolist()),
        strata=tuple(strata.tolist()),
        left_out=tuple(np.flatnonzero(strata < 0).tolist()),
        earlier=earlier if earlier[0] else (),
    )
