"""How robust a verdict on two runs is: what missing and unsure answers could change.

The verdict comes from the items that both runs have a score for. Beside it is reported how many
of the missing answers would have to go against it before it falls, and how many of the unsure
ones would have to be wrong in one direction (`statistics/tipping`). It is provisional if more
than 5% of either run's answers are missing, or if the two runs lack answers to a significantly
different degree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from evalwright.analysis.judges_used import differing_roles_of, scoring_roles
from evalwright.analysis.trees import Average
from evalwright.analysis.words import count, counted, listed
from evalwright.core.outcomes import FILTERED
from evalwright.core.plain import Plain
from evalwright.runs.measures import Matrix, paired_of
from evalwright.runs.reader import Run
from evalwright.statistics.tipping import (
    MAX_MISSING_SHARE,
    SHARES_DIFFER_P,
    Moves,
    TippingPoint,
    fewest_overturning,
    moves_of_missing,
    moves_of_unsure,
    shares_differ_p,
)
from evalwright.statistics.units import F64


@dataclass(frozen=True, slots=True)
class Robustness(Plain):
    """How robust a verdict on runs a and b is, on the items that both were asked.

    Args:
        n_asked: items that both runs were asked.
        n_missing_a: answers that a lacks.
        n_missing_b: answers that b lacks.
        n_unsure_a: scores of a that a careful reader might dispute.
        n_unsure_b: the same of b.
        missing: how many items without an answer would have to go against the verdict; None without
            a verdict, without such items, or if the range of a score is unknown.
        unsure: how many unsure answers would have to be wrong in one direction; None likewise.
    """

    n_asked: int
    n_missing_a: int
    n_missing_b: int
    n_unsure_a: int
    n_unsure_b: int
    missing: TippingPoint | None = None
    unsure: TippingPoint | None = None


def verdict_sign(low: float, high: float) -> int:
    """Return 1 if the first run is higher, -1 if the second is, 0 if no difference is seen."""
    return int(low > 0) - int(high < 0)


def measure_robustness(average: Average, sign: int) -> Robustness:
    """Measure how robust the verdict on the first two runs is.

    Args:
        average: the samples.
        sign: of the verdict on all samples together, as in `verdict_sign`.
    """
    n_asked = missing = unsure = np.zeros(2, np.int64)
    for sample in average.samples:
        of_items = sample.of_items
        both_asked = of_items.was_asked[0] & of_items.was_asked[1]
        n_asked = n_asked + int(both_asked.sum())
        missing = missing + (of_items.missing[:2] & both_asked).sum(axis=1)
        unsure = unsure + (of_items.unsure[:2] & both_asked).sum(axis=1)
    counts = Robustness(
        n_asked=int(n_asked[0]),
        n_missing_a=int(missing[0]),
        n_missing_b=int(missing[1]),
        n_unsure_a=int(unsure[0]),
        n_unsure_b=int(unsure[1]),
    )
    if sign == 0 or not _is_bounded(average):
        return counts
    # With the policy "worst-case" the verdict holds whatever the missing answers are.
    worst = average.samples[0].missing_policy == "worst-case"
    of_missing = (
        None
        if worst
        else _find_tipping_point(
            average,
            _moves_by_sample(average, sign, "missing"),
            lambda moved: _sign_of(moved) == sign,
        )
    )
    of_unsure = _find_tipping_point(
        average,
        _moves_by_sample(average, sign, "unsure"),
        lambda moved: _sign_of(moved) == sign,
    )
    return replace(counts, missing=of_missing, unsure=of_unsure)


def find_deciding_moves(
    average: Average, sign: int, status: str
) -> TippingPoint | None:
    """Find how many answers, all favouring one run, would turn an open comparison into a verdict.

    Args:
        average: the samples.
        sign: 1 if they would favour the first run.
        status: "missing" or "unsure", the answers in question.

    Returns:
        None if there are no such answers or their range is unknown.
    """
    if not _is_bounded(average):
        return None
    return _find_tipping_point(
        average,
        _moves_by_sample(average, -sign, status),
        lambda moved: _sign_of(moved) != sign,
    )


def find_tipping_point(
    average: Average, sign: int, status: str, holds: Callable[[Average], bool]
) -> TippingPoint | None:
    """Find how many answers, moved one after the other, overturn a claim about the first two runs.

    Args:
        average: the samples.
        sign: 1 if a lower difference contradicts the claim, -1 if a higher one does.
        status: "missing" or "unsure", the answers that move.
        holds: tells whether the claim holds for given samples.

    Returns:
        None if there are no such answers, if their range is unknown, or if the claim is about the
        worst case already.
    """
    if not _is_bounded(average):
        return None
    if status == "missing" and average.samples[0].missing_policy == "worst-case":
        return None
    return _find_tipping_point(average, _moves_by_sample(average, sign, status), holds)


def explain_provisional(
    average: Average, names: tuple[str, str], rows: tuple[int, int] = (0, 1)
) -> str:
    """Explain why a verdict on two runs is provisional, in a sentence; "" if it is not.

    Args:
        average: the samples.
        names: what the two runs are called.
        rows: the two runs' rows.
    """
    if average.samples[0].missing_policy == "worst-case":
        return ""  # a worst-case verdict holds whatever they would have scored
    shares = np.zeros(2)
    counts = np.zeros(2, np.int64)
    n_asked = 0
    missing_by_task = list[np.ndarray[tuple[int, int], np.dtype[np.bool_]]]()
    for sample, weight in zip(average.samples, _weights(average), strict=True):
        of_items = sample.of_items
        both_asked = of_items.was_asked[rows[0]] & of_items.was_asked[rows[1]]
        if not both_asked.any():
            continue
        missing = of_items.missing[list(rows)][:, both_asked]
        missing_by_task.append(missing)
        shares += weight * missing.mean(axis=1)
        counts += missing.sum(axis=1)
        n_asked += int(both_asked.sum())
    if not missing_by_task:
        return ""
    high = [
        f"{count(int(counts[run]))} of {count(n_asked)} answers of {names[run]} are"
        f" missing ({100 * shares[run]:.1f}%, more than 5%)"
        for run in (0, 1)
        if shares[run] > MAX_MISSING_SHARE
    ]
    if high:
        return f"{listed(high)}."
    if shares_differ_p(np.concatenate(missing_by_task, axis=1)) < SHARES_DIFFER_P:
        return (
            f"{count(int(counts[0]))} answers of {names[0]} and {count(int(counts[1]))}"
            f" of {names[1]} are missing of {count(n_asked)}, which differs by more"
            " than chance."
        )
    return ""


def direction_words(*, high: str, low: str) -> str:
    """Describe in which direction unsure answers would have to be wrong.

    Args:
        high: the run whose scores would be too high.
        low: the run whose scores would be too low.
    """
    return f"with {high} scored too high or {low} too low"


def explain_one_sided_judge(
    runs: tuple[Run, Run], tasks: Sequence[str], names: tuple[str, str]
) -> str:
    """Explain why a verdict is provisional if one judge did not score both runs, with the remedy.

    Else "".

    Args:
        runs: the two runs.
        tasks: the tasks that the verdict is about.
        names: what the runs are called.
    """
    sentences = []
    for judged, unjudged in ((0, 1), (1, 0)):
        n_judged = n_unsure = 0
        for task in tasks:
            of_judged = runs[judged].task(task)
            of_unjudged = runs[unjudged].task(task)
            if of_judged.n_judged and of_unjudged.n_unsure and not of_unjudged.n_judged:
                n_judged += of_judged.n_judged
                n_unsure += of_unjudged.n_unsure
        if n_judged:
            sentences.append(
                f"A judge read {counted(n_judged, 'unsure answer')} of {names[judged]},"
                f" but none of the {count(n_unsure)} of {names[unjudged]}, so part of"
                " the difference may be the judge's; score both alike: `evalwright"
                f" score {runs[unjudged].name} --judge provider/name`."
            )
    for role in sorted(differing_roles_of(runs)):
        judges = [scoring_roles(run)[role][1] for run in runs]
        sentences.append(
            f"Different judges scored the runs ({judges[0]} for {names[0]}, {judges[1]} for"
            f" {names[1]}), so part of the difference may be theirs; score both alike:"
            " `evalwright score RUN --judge provider/name`."
        )
    return " ".join(sentences)


def how_to_fill(runs: Sequence[Run]) -> str:
    """Explain how to fill the gap of missing answers, in a sentence; "" if nothing is missing."""
    lacking = [run for run in runs if run.n_missing]
    if older := [run for run in lacking if run.n_left_out]:
        return (
            f"{listed([f'`evalwright score {run.name}`' for run in older])} fills the"
            " gap from the record, without a request."
        )
    if not lacking:
        return ""
    if all("imported" in run.data["configuration"] for run in lacking):
        return "Only the program that made them can send these requests again."
    kinds = {
        failure
        for run in lacking
        for task in run.tasks
        for failure, n in task.failures.items()
        if n
    }
    if kinds and kinds <= {FILTERED}:
        return (
            "The provider's filter stopped these prompts; its settings, or another"
            " provider, would fill the gap."
        )
    if kinds and kinds <= {"scorer error"}:
        names = listed([f"`evalwright score {run.name}`" for run in lacking])
        return (
            f"The scorer raised errors: fix it, then {names} fills the gap without a"
            " request."
        )
    imported = [run for run in lacking if "imported" in run.data["configuration"]]
    names = listed([f"'{run.name}'" for run in lacking if run not in imported])
    if imported:
        theirs = listed([f"'{run.name}'" for run in imported])
        return (
            f"Repeat the `evalwright run` command that made {names} to fill its gap;"
            f" only the program that made {theirs} can send these requests again."
        )
    return (
        f"Repeat the `evalwright run` command that made {names} to fill the gap: only"
        " what is missing is sent."
    )


def _is_bounded(average: Average) -> bool:
    return all(sample.measure.value_range is not None for sample in average.samples)


def _weights(average: Average) -> F64:
    weights = (
        np.ones(len(average.samples))
        if average.weights is None
        else np.asarray(average.weights)
    )
    shares: F64 = weights / weights.sum()
    return shares


def _moves_by_sample(
    average: Average, sign: int, status: str
) -> list[tuple[Matrix, Moves]]:
    """Select each sample's items that both runs were asked, with its moves against a verdict.

    A move is a change of one item's scores (`statistics.tipping`).
    """
    moves_by_sample = []
    for sample in average.samples:
        asked_sample = sample.part(sample.was_asked[0] & sample.was_asked[1])
        assert sample.measure.value_range is not None
        values = asked_sample.values[:2]
        span = sample.measure.value_range
        moves = (
            moves_of_missing(values, asked_sample.missing[:2], span, sign)
            if status == "missing"
            else moves_of_unsure(values, asked_sample.unsure[:2], span, sign)
        )
        # What stays missing is left out, as if it had not been requested.
        none = np.zeros(values.shape, bool)
        scored = replace(
            asked_sample,
            values=values,
            was_asked=asked_sample.was_asked[:2],
            missing=none,
            unsure=asked_sample.unsure[:2],
            missing_policy="scored",
        )
        moves_by_sample.append((scored, moves))
    return moves_by_sample


def _find_tipping_point(
    average: Average,
    moves_by_sample: Sequence[tuple[Matrix, Moves]],
    holds: Callable[[Average], bool],
) -> TippingPoint | None:
    """Find the fewest moves after which a claim about the samples no longer holds."""
    n_moves = sum(len(moves) for _, moves in moves_by_sample)
    if n_moves == 0:
        return None
    owners, order = _order_moves(average, moves_by_sample)

    def holds_after(count: int) -> bool:
        per_task = np.bincount(owners[order[:count]], minlength=len(moves_by_sample))
        samples = tuple(
            replace(matrix, values=moves.applied(matrix.values, int(n)))
            for (matrix, moves), n in zip(moves_by_sample, per_task, strict=True)
        )
        return holds(replace(average, samples=samples))

    n_harmful = sum(
        int(np.count_nonzero(moves.harm > 0)) for _, moves in moves_by_sample
    )
    return TippingPoint(n_moves, fewest_overturning(n_moves, n_harmful, holds_after))


def _order_moves(
    average: Average, moves_by_sample: Sequence[tuple[Matrix, Moves]]
) -> tuple[
    np.ndarray[tuple[int], np.dtype[np.intp]], np.ndarray[tuple[int], np.dtype[np.intp]]
]:
    """Return the task of each move, and the order of all moves by effect on the mean over tasks."""
    owners = np.repeat(
        np.arange(len(moves_by_sample)), [len(moves) for _, moves in moves_by_sample]
    )
    weights = [
        weight / max(1, len(matrix.keys))
        for weight, (matrix, _) in zip(_weights(average), moves_by_sample, strict=True)
    ]
    harm = np.concatenate([moves.harm for _, moves in moves_by_sample])
    effects = np.concatenate(
        [
            weight * (moves.harm + 1e-9)
            for weight, (_, moves) in zip(weights, moves_by_sample, strict=True)
        ]
    )
    return owners, np.lexsort((-effects, harm == 0))


def _sign_of(average: Average) -> int:
    if len(average.samples) == 1:
        paired = paired_of(average.samples[0])
        return verdict_sign(paired.low, paired.high)
    overall = average.difference()
    return verdict_sign(overall.low, overall.high)
