"""How robust a verdict on two runs is, and whether it is provisional: what missing answers and
unsure answers could change.

The verdict comes from the items that both runs have a score for. Beside it stands how many of the
missing answers would have to go against it before it falls, and how many of the unsure answers
would have to be misread in one direction (`statistics/tipping`). It is provisional where more than
5% of either run's answers are missing, or the two runs lack answers to different degrees, which is
no accident then.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

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
    """What stands behind a verdict on runs a and b, of the items that both were asked.

    Args:
        n_asked: items that both runs were asked.
        n_missing_a, n_missing_b: answers that each lacks.
        n_unsure_a, n_unsure_b: readings of each with which a careful reader might argue.
        missing: how many of the items that lack an answer would have to go against the verdict;
        None without a verdict, without
            such items, or where the range of a score is not known.
        unsure: how many of the unsure answers would have to be misread in one direction; None
        likewise.
    """

    n_asked: int
    n_missing_a: int
    n_missing_b: int
    n_unsure_a: int
    n_unsure_b: int
    missing: TippingPoint | None = None
    unsure: TippingPoint | None = None


def verdict_sign(low: float, high: float) -> int:
    """1 where the first run is higher, -1 where the second one is, 0 where no difference is seen."""
    return int(low > 0) - int(high < 0)


def robustness_of(whole: Average, sign: int) -> Robustness:
    """How robust the verdict on the first two runs is. sign: as of `verdict_sign`, of the verdict
    on all samples together.
    """
    asked = missing = unsure = np.zeros(2, np.int64)
    for sample in whole.samples:
        items = sample.of_items
        both = items.was_asked[0] & items.was_asked[1]
        asked = asked + int(both.sum())
        missing = missing + (items.missing[:2] & both).sum(axis=1)
        unsure = unsure + (items.unsure[:2] & both).sum(axis=1)
    counts = Robustness(
        n_asked=int(asked[0]),
        n_missing_a=int(missing[0]),
        n_missing_b=int(missing[1]),
        n_unsure_a=int(unsure[0]),
        n_unsure_b=int(unsure[1]),
    )
    if sign == 0 or not _is_bounded(whole):
        return counts
    # With the policy "worst-case" the verdict holds whatever the missing answers are.
    worst = whole.samples[0].missing_policy == "worst-case"
    of_missing = (
        None
        if worst
        else _tipping(
            whole, _moves(whole, sign, "missing"), lambda moved: _sign_of(moved) == sign
        )
    )
    of_unsure = _tipping(
        whole, _moves(whole, sign, "unsure"), lambda moved: _sign_of(moved) == sign
    )
    return replace(counts, missing=of_missing, unsure=of_unsure)


def deciding_moves(whole: Average, sign: int, what: str) -> TippingPoint | None:
    """How many missing answers or unsure answers, all in favour of one run, would make a verdict
    where there is none.

    sign: 1 where they would favour the first run; what: "missing" or "unsure". None where there are
    none or their range is not known.
    """
    if not _is_bounded(whole):
        return None
    return _tipping(
        whole, _moves(whole, -sign, what), lambda moved: _sign_of(moved) != sign
    )


def tipping_point(
    whole: Average, sign: int, what: str, holds: Callable[[Average], bool]
) -> TippingPoint | None:
    """How many missing answers or unsure readings, moved one after the other, overturn a claim
    about the first two runs.

    Args:
        sign: 1 where a lower difference speaks against the claim, -1 where a higher one does.
        what: "missing" or "unsure".
        holds: whether the claim holds on these samples.

    Returns:
        None where there are none, where their range is not known, or where the claim is about the
        worst case already.
    """
    if not _is_bounded(whole):
        return None
    if what == "missing" and whole.samples[0].missing_policy == "worst-case":
        return None
    return _tipping(whole, _moves(whole, sign, what), holds)


def provisional_reason(
    whole: Average, names: tuple[str, str], rows: tuple[int, int] = (0, 1)
) -> str:
    """Why a verdict on two runs is provisional, in a sentence; "" where it is not. names: what the
    two are called.
    """
    if whole.samples[0].missing_policy == "worst-case":
        return ""  # it holds whatever they would have scored
    shares = np.zeros(2)
    counts = np.zeros(2, np.int64)
    n_asked = 0
    lost = list[np.ndarray[tuple[int, int], np.dtype[np.bool_]]]()
    for sample, weight in zip(whole.samples, _weights(whole), strict=True):
        items = sample.of_items
        both = items.was_asked[rows[0]] & items.was_asked[rows[1]]
        if not both.any():
            continue
        missing = items.missing[list(rows)][:, both]
        lost.append(missing)
        shares += weight * missing.mean(axis=1)
        counts += missing.sum(axis=1)
        n_asked += int(both.sum())
    if not lost:
        return ""
    high = [
        f"{count(int(counts[run]))} of {count(n_asked)} answers of {names[run]} are"
        f" missing ({100 * shares[run]:.1f}%, more than 5%)"
        for run in (0, 1)
        if shares[run] > MAX_MISSING_SHARE
    ]
    if high:
        return f"{listed(high)}."
    if shares_differ_p(np.concatenate(lost, axis=1)) < SHARES_DIFFER_P:
        return (
            f"{count(int(counts[0]))} answers of {names[0]} and {count(int(counts[1]))}"
            f" of {names[1]} are missing of {count(n_asked)}, which differs by more"
            " than chance."
        )
    return ""


def direction_words(*, high: str, low: str) -> str:
    """In which direction unsure answers would have to be misread. high: whose scores are too high;
    low: whose are too low.
    """
    return f"with {high} scored too high or {low} too low"


def one_sided_judge(
    runs: tuple[Run, Run], tasks: Sequence[str], names: tuple[str, str]
) -> str:
    """Why a verdict is provisional where a judge gave scores of one run only, and what to do; ""
    elsewhere.

    Args:
        tasks: that the verdict is about.
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
    return " ".join(sentences)


def how_to_fill(runs: Sequence[Run]) -> str:
    """What fills the gap of missing answers, in a sentence; "" where nothing is missing."""
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
        kind
        for run in lacking
        for task in run.tasks
        for kind, n in task.failures.items()
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


def _is_bounded(whole: Average) -> bool:
    return all(sample.measure.value_range is not None for sample in whole.samples)


def _weights(whole: Average) -> F64:
    weights = (
        np.ones(len(whole.samples))
        if whole.weights is None
        else np.asarray(whole.weights)
    )
    shares: F64 = weights / weights.sum()
    return shares


def _moves(whole: Average, sign: int, what: str) -> list[tuple[Matrix, Moves]]:
    """The samples on the items that both runs were asked, with the moves against a verdict of that
    sign.
    """
    out = []
    for sample in whole.samples:
        part = sample.part(sample.was_asked[0] & sample.was_asked[1])
        assert sample.measure.value_range is not None
        values = part.values[:2]
        span = sample.measure.value_range
        moves = (
            moves_of_missing(values, part.missing[:2], span, sign)
            if what == "missing"
            else moves_of_unsure(values, part.unsure[:2], span, sign)
        )
        # What stays missing is left out, as if it had not been asked.
        none = np.zeros(values.shape, bool)
        scored = replace(
            part,
            values=values,
            was_asked=part.was_asked[:2],
            missing=none,
            unsure=part.unsure[:2],
            missing_policy="scored",
        )
        out.append((scored, moves))
    return out


def _tipping(
    whole: Average,
    parts: Sequence[tuple[Matrix, Moves]],
    holds: Callable[[Average], bool],
) -> TippingPoint | None:
    """The fewest moves after which a claim about the samples no longer holds."""
    n_moves = sum(len(moves) for _, moves in parts)
    if n_moves == 0:
        return None
    owners, order = _common_order(whole, parts)

    def holds_after(count: int) -> bool:
        per_task = np.bincount(owners[order[:count]], minlength=len(parts))
        samples = tuple(
            replace(part, values=moves.applied(part.values, int(n)))
            for (part, moves), n in zip(parts, per_task, strict=True)
        )
        return holds(replace(whole, samples=samples))

    n_harmful = sum(int(np.count_nonzero(moves.harm > 0)) for _, moves in parts)
    return TippingPoint(n_moves, fewest_overturning(n_moves, n_harmful, holds_after))


def _common_order(
    whole: Average, parts: Sequence[tuple[Matrix, Moves]]
) -> tuple[
    np.ndarray[tuple[int], np.dtype[np.intp]], np.ndarray[tuple[int], np.dtype[np.intp]]
]:
    """Which task each move is of, and all moves in the order of what they do to the mean over
    tasks.
    """
    owners = np.repeat(np.arange(len(parts)), [len(moves) for _, moves in parts])
    weights = [
        weight / max(1, len(part.keys))
        for weight, (part, _) in zip(_weights(whole), parts, strict=True)
    ]
    harm = np.concatenate([moves.harm for _, moves in parts])
    effects = np.concatenate(
        [
            weight * (moves.harm + 1e-9)
            for weight, (_, moves) in zip(weights, parts, strict=True)
        ]
    )
    return owners, np.lexsort((-effects, harm == 0))


def _sign_of(whole: Average) -> int:
    if len(whole.samples) == 1:
        paired = paired_of(whole.samples[0])
        return verdict_sign(paired.low, paired.high)
    overall = whole.difference()
    return verdict_sign(overall.low, overall.high)
