"""The cheapest next step where a comparison of two runs is open: fill a gap, label a few answers, or ask more items."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from evalwright.analysis.robustness import deciding_moves, how_to_fill
from evalwright.analysis.trees import Average
from evalwright.analysis.words import count, counted, plural
from evalwright.core.plain import Plain
from evalwright.runs.reader import Run
from evalwright.statistics import items_for_difference

MAX_LABELS = 200
"""Answers that somebody might label for a single verdict."""

MAX_TIMES_THE_ITEMS = 20
"""A difference that takes more than so many times the items that there are is better called small."""

StepKind = Literal["fill", "label", "items", "equivalence"]


@dataclass(frozen=True, slots=True)
class NextStep(Plain):
    """What to do next. n: answers to label, or items to add; cost: US dollars, None where no price is known or nothing is sent."""

    kind: StepKind
    n: int
    cost: float | None
    sentence: str


def next_steps(
    whole: Average,
    runs: tuple[Run, Run],
    *,
    difference: float,
    standard_error: float | None,
    n: int,
    shown: str,
    equivalent: float | None = None,
) -> tuple[NextStep, ...]:
    """What could settle an open comparison, the cheapest first; items are always last.

    Args:
        whole: the items of both runs, of a task or of several.
        difference, standard_error, n: of the comparison, on n items.
        shown: the difference in words, such as "1.2 points".
        equivalent: the margin of a test of equivalence that was made, None for none.
    """
    sign = 1 if difference >= 0 else -1
    steps = list[NextStep]()
    if (gap := deciding_moves(whole, sign, "missing")) is not None and gap.fewest is not None:
        steps.append(NextStep("fill", gap.n, None, how_to_fill(runs)))
    unsure = deciding_moves(whole, sign, "unsure")
    if unsure is not None and unsure.fewest is not None and unsure.n <= MAX_LABELS:
        steps.append(NextStep("label", unsure.n, None, _label_sentence(unsure.n, unsure.fewest, runs)))
    items = _more_items(runs, difference, standard_error, n, shown)
    if items is not None:
        steps.append(items)
    elif equivalent is None and not steps:
        steps.append(
            NextStep(
                "equivalence",
                0,
                None,
                f"To show a difference of {shown} would take far more items. If so small a difference does not matter, "
                "test whether the two are the same: --equivalent MARGIN.",
            )
        )
    return tuple(steps)


def _label_sentence(n: int, fewest: int, runs: tuple[Run, Run]) -> str:
    names = " ".join(run.name for run in runs)
    these = f"these {count(n)} answers" if n > 1 else "this answer"
    return (
        f"Label {these}, whose readings are unsure: a difference shows if {count(fewest)} of them "
        f"{plural(fewest, 'was', 'were')} read wrong in one direction "
        f"(`evalwright runs samples RUN --unsure` lists them, `evalwright judge sample {names}` makes a table to fill in)."
    )


def _more_items(
    runs: Sequence[Run], difference: float, standard_error: float | None, n: int, shown: str
) -> NextStep | None:
    """The items that would show a difference of the size seen, four times out of five; None where that is out of reach."""
    if not standard_error or not n or not math.isfinite(difference) or difference == 0:
        return None
    if standard_error / abs(difference) > math.sqrt(MAX_TIMES_THE_ITEMS) / 2.8:
        return None
    needed = int(items_for_difference(difference, standard_error**2 * n))
    more = needed - n
    if more <= 0:
        # The test is a little stricter than the formula where few items differ.
        more = max(1, n // 10)
    if more > MAX_TIMES_THE_ITEMS * n:
        return None
    more = _two_digits(more)
    cost = _price_of_items(runs, more)
    price = "" if cost is None else f", about {_dollars(cost)}"
    return NextStep(
        "items",
        more,
        cost,
        f"Ask {counted(more, 'more item')} of both{price}: a true difference of {shown} would then show four times out of five.",
    )


def _two_digits(n: int) -> int:
    """The number rounded up to two digits."""
    scale = int(10 ** max(0, len(str(n)) - 2))
    return -(-n // scale) * scale


def _price_of_items(runs: Sequence[Run], n: int) -> float | None:
    """What n more items of every run would cost at the price of those that were asked; None where it is not known."""
    total = 0.0
    for run in runs:
        asked = sum(task.n_samples for task in run.tasks)
        if run.cost is None or not asked:
            return None
        total += run.cost / asked * n
    return total if total > 0 else None


def _dollars(cost: float) -> str:
    return f"{cost:,.2f} USD" if cost >= 0.01 else "under 0.01 USD"
