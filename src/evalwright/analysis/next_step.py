"""Recommends the cheapest next step for an open comparison: fill gaps, label answers, add items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

from evalwright.analysis.robustness import (
    direction_words,
    find_deciding_moves,
    how_to_fill,
)
from evalwright.analysis.trees import Average
from evalwright.analysis.words import count, counted
from evalwright.core.plain import Plain
from evalwright.runs.measures import Matrix
from evalwright.runs.reader import Run
from evalwright.statistics import PairedComparison, items_for_difference
from evalwright.statistics.designs import Design
from evalwright.statistics.paired import paired_differences

MAX_LABELS = 200
"""Most answers that somebody would label for a single verdict."""

MAX_TIMES_THE_ITEMS = 20
"""If a difference needs more than so many times the existing items, no step is recommended."""

EQUIVALENCE_STRETCH = 1.779
"""Margin over half the width of the 90% interval at which an equivalence test has 80% power.

It is (1.645 + 1.282) / 1.645 if there is no difference.
"""

StepKind = Literal["fill", "label", "items", "equivalence"]


@dataclass(frozen=True, slots=True)
class NextStep(Plain):
    """What to do next.

    Args:
        kind: the kind of step.
        n: answers to label, or items to add.
        cost: in US dollars; None if no price is known or nothing is sent.
        sentence: the step in words.
    """

    kind: StepKind
    n: int
    cost: float | None
    sentence: str


@dataclass(frozen=True, slots=True)
class OpenComparison:
    """A comparison that shows no difference.

    Args:
        difference: the observed difference.
        standard_error: its standard error.
        n: number of items.
        visible: the smallest difference that it would have shown four times out of five.
        difference_text: the difference in words, such as "1.2 points".
        design: predicts the comparison with more items, as in `evalwright plan`; None if unknown.
        margin: of the test of equivalence; None without a test.
        margin_text: the margin in words.
        half_width_90: half the width of the interval of that test.
    """

    difference: float
    standard_error: float | None
    n: int
    visible: float
    difference_text: str
    design: Design | None = None
    margin: float | None = None
    margin_text: str = ""
    half_width_90: float = math.nan


def make_design(matrix: Matrix, paired: PairedComparison) -> Design | None:
    """Make a design that predicts the comparison of two runs with other items; None if unknown.

    Args:
        matrix: the scores of one task.
        paired: the comparison of the matrix, whose level and power the design keeps.
    """
    if (
        paired.n < 2
        or math.isnan(paired.smallest_visible_difference)
        or matrix.scores is not None
    ):
        return None
    common_items = matrix.part(matrix.common())
    pairs = paired_differences(
        common_items.values[0],
        common_items.values[1],
        clusters=common_items.clusters,
        value_range=matrix.measure.value_range,
    )
    design = Design(pairs, len(common_items.keys), paired.level, paired.power)
    return replace(
        design,
        added_visible=paired.smallest_visible_difference - design.visible(design.asked),
        added_half_width=max(
            0.0, (paired.high - paired.low) / 2 - design.half_width(design.asked)
        ),
    )


def find_next_steps(
    average: Average, runs: tuple[Run, Run], comparison: OpenComparison
) -> tuple[NextStep, ...]:
    """List what could settle an open comparison, the cheapest first.

    Adding items always comes last.

    Args:
        average: the items of both runs, of one task or several.
        runs: the two runs.
        comparison: what was measured on them.
    """
    if comparison.margin is not None:
        equivalence = _plan_items_for_equivalence(average, runs, comparison)
        return () if equivalence is None else (equivalence,)

    sign = 1 if comparison.difference >= 0 else -1
    steps = list[NextStep]()
    n_missing = _count_missing_in_worst_case(average)
    gap = find_deciding_moves(average, sign, "missing")
    if n_missing:
        steps.append(NextStep("fill", n_missing, None, how_to_fill(runs)))
    elif gap is not None and gap.fewest is not None:
        steps.append(NextStep("fill", gap.n, None, how_to_fill(runs)))

    unsure = find_deciding_moves(average, sign, "unsure")
    if unsure is not None and unsure.fewest is not None and unsure.n <= MAX_LABELS:
        steps.append(
            NextStep(
                "label",
                unsure.n,
                None,
                _describe_labelling(unsure.n, unsure.fewest, runs, sign),
            )
        )

    items_step = (
        None if n_missing else _plan_items_for_difference(average, runs, comparison)
    )
    if items_step is not None:
        steps.append(items_step)
    elif not steps and not _has_spread(comparison):
        return ()
    elif not steps:
        if float(comparison.difference_text.split()[0].replace(",", "")) == 0:
            reason = (
                "The two score the same here, and more items may never tell them apart."
            )
        else:
            reason = (
                f"To show a difference of {comparison.difference_text} would take far"
                " more items."
            )
        sentence = (
            f"{reason} If so small a difference does not matter, test whether the two are"
            " the same: --equivalent MARGIN."
        )
        steps.append(NextStep("equivalence", 0, None, sentence))
    return tuple(steps)


def _has_spread(comparison: OpenComparison) -> bool:
    """Whether there is a standard error to plan by.

    A mean has none if all answers of one of its tasks score the same.
    """
    error = comparison.standard_error
    return error is None or math.isfinite(error)


def _count_missing_in_worst_case(average: Average) -> int:
    """Count items without an answer if the verdict is that of the worst case, else return 0.

    More items do not help such a verdict.
    """
    if average.samples[0].missing_policy != "worst-case":
        return 0
    n_missing = 0
    for sample in average.samples:
        of_items = sample.of_items
        both_asked = of_items.was_asked[0] & of_items.was_asked[1]
        n_missing += int((of_items.missing[:2].any(axis=0) & both_asked).sum())
    return n_missing


def _describe_labelling(n: int, fewest: int, runs: tuple[Run, Run], sign: int) -> str:
    names = " ".join(run.name for run in runs)
    these = f"these {count(n)} unsure answers" if n > 1 else "this unsure answer"
    labels = (
        [run.label for run in runs]
        if runs[0].label != runs[1].label
        else [run.id for run in runs]
    )
    higher, lower = labels if sign > 0 else reversed(labels)
    misread = "was misread" if fewest == 1 else "were misread"
    return (
        f"Label {these}: a difference shows if {count(fewest)} of them {misread},"
        f" {direction_words(high=lower, low=higher)} (`evalwright runs samples RUN"
        f" --unsure` lists them, `evalwright check judge sample {names}` makes a table to"
        " fill in)."
    )


def _plan_items_for_difference(
    average: Average, runs: tuple[Run, Run], comparison: OpenComparison
) -> NextStep | None:
    """The step of adding items until the observed difference would show; None if out of reach."""
    difference = abs(comparison.difference)
    if not comparison.n or not math.isfinite(difference) or difference == 0:
        return None
    needed = _count_needed_items(comparison, difference)
    if needed is None:
        return None
    n_asked = comparison.n if comparison.design is None else comparison.design.asked
    goal = (
        f"a true difference of {comparison.difference_text} would then show four times out of"
        " five"
    )
    return _make_items_step(average, runs, n_asked, needed, goal)


def _count_needed_items(comparison: OpenComparison, difference: float) -> int | None:
    """Count the items that show a difference four times out of five, as `evalwright plan` does."""
    if comparison.design is not None:
        return comparison.design.items_for(difference)
    standard_error = comparison.standard_error
    if not standard_error or not _has_spread(comparison):
        return None
    variance = standard_error**2 * comparison.n
    if variance > comparison.n * MAX_TIMES_THE_ITEMS * difference**2:
        return None
    needed = int(items_for_difference(difference, variance))
    if math.isfinite(comparison.visible):
        # The detectable difference shrinks with the square root of the number of items.
        needed = max(
            needed, math.ceil(comparison.n * (comparison.visible / difference) ** 2)
        )
    return needed


def _plan_items_for_equivalence(
    average: Average, runs: tuple[Run, Run], comparison: OpenComparison
) -> NextStep | None:
    """The step of adding items until equivalence would show if two models were equal."""
    margin = comparison.margin
    half_width = comparison.half_width_90
    if margin is None or not math.isfinite(half_width) or not comparison.n:
        return None
    needed = math.ceil(comparison.n * (EQUIVALENCE_STRETCH * half_width / margin) ** 2)
    goal = (
        f"if the two are the same, equivalence within {comparison.margin_text} would"
        " then show four times out of five"
    )
    return _make_items_step(average, runs, comparison.n, needed, goal)


def _make_items_step(
    average: Average, runs: tuple[Run, Run], n_asked: int, needed: int, goal: str
) -> NextStep | None:
    """The step of adding items until there are `needed`, or of using a larger set.

    Args:
        average: the items of both runs.
        runs: the two runs.
        n_asked: number of items so far.
        needed: number of items needed.
        goal: what these items would achieve, as a clause.
    """
    n_more = needed - n_asked
    if n_more <= 0 or n_more > MAX_TIMES_THE_ITEMS * n_asked:
        return None
    n_available = _count_available_items(average, runs)
    if n_available is not None and needed > n_available:
        sentence = (
            f"Use a larger set of questions, of about {counted(needed, 'item')} (there"
            f" are {count(n_available)}): {goal}."
        )
        return NextStep("items", n_more, None, sentence)
    cost = _estimate_cost(runs, n_more)
    price = "" if cost is None else f", about {_dollars(cost)}"
    unknown = "" if n_available is not None else ", if there are as many"
    sentence = (
        f"Evaluate both on {counted(n_more, 'more item')} ({count(needed)} in"
        f" all{unknown}){price}: {goal}."
    )
    return NextStep("items", n_more, cost, sentence)


def _count_available_items(average: Average, runs: Sequence[Run]) -> int | None:
    """Count the items that the tasks have, the fewest of the runs.

    None if the records do not say.
    """
    totals = []
    for run in runs:
        configuration = run.data["configuration"]
        if configuration.get("limit") is not None or "imported" in configuration:
            return None
        n_planned = {
            record["task"]: record["of"]
            for record in (run.data.get("stopping") or {}).get("tasks", ())
        }
        total = 0
        for sample in average.samples:
            record = run.record(sample.measure.task)
            total += max(
                record["n_samples"],
                n_planned.get(record["name"], 0) // max(1, record.get("draws", 1)),
            )
        totals.append(total)
    return min(totals)


def _estimate_cost(runs: Sequence[Run], n: int) -> float | None:
    """Estimate the cost of n more items for every run at the price so far; None if unknown."""
    total = 0.0
    for run in runs:
        n_asked = sum(task.n_samples for task in run.tasks)
        if run.cost is None or not n_asked:
            return None
        total += run.cost / n_asked * n
    return total if total > 0 else None


def _dollars(cost: float) -> str:
    return f"{cost:,.2f} USD" if cost >= 0.01 else "under 0.01 USD"
