"""The last line of a comparison over several tasks: what a careful reader may conclude, in words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from evalwright.statistics import MacroDifference, PairedComparison


def conclusion(
    overall: MacroDifference, tasks: Mapping[str, PairedComparison], name_a: str, name_b: str
) -> str:
    """One or two sentences: the mean over tasks, and the single tasks on which the two surely differ.

    overall and tasks: differences a - b of scores between 0 and 1, shown in points of 100. Single tasks are judged at 5%
    after Holm's correction over all of them.
    """
    sentences = [_overall(overall, name_a, name_b), _by_task(tasks, name_a, name_b)]
    return " ".join(sentence for sentence in sentences if sentence)


def _overall(overall: MacroDifference, name_a: str, name_b: str) -> str:
    if math.isnan(overall.low):
        return (
            f"Over all tasks {name_a} and {name_b} cannot be compared: at least one of the {overall.n_tasks} tasks "
            f"has too few items with a score from both."
        )
    difference, low, high = (100 * part for part in (overall.difference, overall.low, overall.high))
    basis = f"mean of {overall.n_tasks} tasks, {overall.n} items"
    level = f"{100 * overall.level:g}% interval"
    if overall.p_value < 1 - overall.level and low * high > 0:
        if difference < 0:
            name_a, name_b, difference, low, high = name_b, name_a, -difference, -high, -low
        return (
            f"Over all tasks {name_a} scores {difference:.1f} points higher than {name_b} "
            f"({level} {low:.1f} to {high:.1f}, {basis})."
        )
    return (
        f"Over all tasks no difference between {name_a} and {name_b} was seen "
        f"({difference:+.1f} points; {level} {low:.1f} to {high:.1f}, {basis}); differences under "
        f"{100 * overall.smallest_visible_difference:.1f} points could not have been seen reliably."
    )


def _by_task(tasks: Mapping[str, PairedComparison], name_a: str, name_b: str) -> str:
    sure = _surely_different(tasks)
    parts = []
    for name, sign in ((name_a, 1), (name_b, -1)):
        found = [
            f"{task} (by {100 * abs(tasks[task].difference):.1f})"
            for task in sure
            if sign * tasks[task].difference > 0
        ]
        if found:
            parts.append(f"{name} scores higher on {_and(found)}")
    return f"By task (Holm-corrected, 5%), {_and(parts)}." if parts else ""


def _surely_different(tasks: Mapping[str, PairedComparison]) -> list[str]:
    """Tasks whose difference holds after Holm's correction, in their order."""
    known = sorted((task.p_value, name) for name, task in tasks.items() if not math.isnan(task.p_value))
    sure = set()
    for rank, (p_value, name) in enumerate(known):
        if p_value * (len(known) - rank) >= 0.05 or tasks[name].verdict == "no difference seen":
            break
        sure.add(name)
    return [name for name in tasks if name in sure]


def _and(parts: Sequence[str]) -> str:
    return parts[0] if len(parts) == 1 else f"{', '.join(parts[:-1])} and {parts[-1]}"
