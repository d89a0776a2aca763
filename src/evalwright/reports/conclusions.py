"""What a comparison of two or several runs means: the sentences of its tasks and its conclusion, that a careful statistician signs.

Results come without words; `worded_comparison` and `worded_several` add them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evalwright.analysis.comparison import Comparison, TaskComparison
from evalwright.analysis.context_gain import ContextGain
from evalwright.analysis.ranking import Pair
from evalwright.analysis.several import PairTable, SeveralComparison
from evalwright.analysis.words import counted, listed, points
from evalwright.reports import numbers
from evalwright.statistics import MacroDifference, PairedComparison, UnpairedComparison, holm

MOST_NAMED = 6
"""Pairs that a sentence names one by one."""

Result = PairedComparison | UnpairedComparison


def worded_comparison(found: Comparison) -> Comparison:
    """The comparison with the sentence of each task and the conclusion filled in."""
    names = found.labels
    tasks = tuple(_worded(task, *names) for task in found.tasks)
    by_task = [f"{task.task}: {task.sentence}" for task in tasks if not _untested(task.result)]
    if len(by_task) < len(tasks) > 1:
        lost = listed([task.task for task in tasks if _untested(task.result)], 5)
        by_task.append(f"Nothing can be said of {lost}: the numbers have no interval.")
    text = " ".join(by_task) if len(tasks) > 1 else tasks[0].sentence
    if found.overall is not None:
        text = conclusion(found.overall, {task.task: task.result for task in tasks}, *names)
        lacks = next((one.missing for one in found.groups if one.difference is found.overall), ())
        text += f" Not in this mean: {listed(lacks, 5)}." if lacks else ""
        text += "".join(f" On {task.task}, {task.other_questions}." for task in tasks if task.other_questions)
        text = " ".join([text, *(f"{task.task}: {said}" for task in tasks if (said := _also(task, *names)))])
    overall = found.overall_equivalence
    same = [overall] if overall else [task.equivalence for task in tasks]
    text = " ".join([text, *(one.sentence for one in same if one)])
    return replace(found, tasks=tasks, conclusion=text)


def verdict(found: Comparison) -> str:
    """One sentence: who is better by how much over all tasks, or on the only one; "" where nothing is said over several."""
    if found.overall is not None:
        return _overall(found.overall, *found.labels)
    return _task(found.tasks[0], *found.labels) if len(found.tasks) == 1 else ""


def _worded(task: TaskComparison, name_a: str, name_b: str) -> TaskComparison:
    others = tuple(_worded(other, name_a, name_b) for other in task.others)
    said = " ".join(part for part in (_task(task, name_a, name_b), _also(task, name_a, name_b)) if part)
    return replace(task, others=others, sentence=said)


def _also(task: TaskComparison, name_a: str, name_b: str) -> str:
    """Other metrics by which the two differ significantly; each is judged by itself."""
    parts = []
    for other in task.others:
        found = other.result
        if found.low > 0 or found.high < 0:
            who = name_a if (found.difference > 0) != other.lower_is_better else name_b
            parts.append(f"'{other.metric}' (p {numbers.p_value(found.p_value)}, {who} is better)")
    return f"They also differ significantly by {listed(parts)}, each tested by itself." if parts else ""


def gain_sentence(gain: ContextGain) -> str:
    """What passages add over all questions."""
    said = sentence(gain.parts["all"], "the model with passages", "the model without them")
    return f"{gain.run}, {gain.task}: {said}"


def worded_several(found: SeveralComparison) -> SeveralComparison:
    """The comparison with its conclusion: over all tasks where there is a mean over them, else task by task."""
    tables = [found.overall] if found.overall else found.tasks
    said = [_several(table, found.labels, found.baseline) for table in tables]
    return replace(found, conclusion=" ".join([*said, *found.other_questions]))


# -- two runs -------------------------------------------------------------------------------------------------------------


def sentence(comparison: PairedComparison, name_a: str, name_b: str, unit: str = "points") -> str:
    """One sentence that says who is better by how much, or what could not have been seen.

    With unit "points" scores from 0 to 1 are shown times 100; any other unit shows them as they are, "" without a
    word for it. Numbers get the decimals that the interval deserves.
    """
    if comparison.n == 0:
        return f"{name_a} and {name_b} cannot be compared: no item has a score from both."
    scale = 100.0 if unit == "points" else 1.0
    width = (comparison.high - comparison.low) * scale
    # Two digits of the interval count.
    decimals = min(6, max(1, 1 - math.floor(math.log10(width)))) if math.isfinite(width) and width > 0 else 1

    def show(x: float) -> str:
        return numbers.number(x * scale, "plain", decimals)

    word = f" {unit}" if unit else ""
    details = _details(comparison, show)
    if comparison.verdict != "no difference seen":
        side = "higher" if comparison.verdict == "better" else "lower"
        return f"{name_a} scores {show(abs(comparison.difference))}{word} {side} than {name_b} ({details})."
    gap = f"{name_a} minus {name_b}: {show(comparison.difference)}{word}"
    lost = comparison.n_missing
    if _untested(comparison):
        return f"{name_a} and {name_b} cannot be compared: there is no interval ({gap}, {details})."
    if lost and math.isnan(comparison.low):
        what = f"{counted(lost, 'item')} without a score could have scored anything"
        return f"No verdict on {name_a} and {name_b} is possible ({gap}, {details}): {what}."
    seen = f"No significant difference between {name_a} and {name_b} was found ({gap}, {details})"
    visible = comparison.smallest_visible_difference
    most = 1.0 if unit == "points" else math.inf
    return f"{seen}; {_undetected(visible, most, lost, lambda x: f'{show(x)}{word}')}."


def _undetected(visible: float, most: float, lost: int, show: Callable[[float], str]) -> str:
    """What would have been missed. visible: the smallest difference that would have been detected, most: that there can be."""
    if math.isnan(visible):
        return "how small a difference could have been detected is not known"
    if visible >= most:
        return f"with so {'many items without a score' if lost else 'few items'} any difference would often go undetected"
    return f"differences under {show(visible)} would often go undetected"


def whatever(
    n_missing: int,
    low: float,
    high: float,
    scored: tuple[float, float],
    show: Callable[[float], str],
    on: str,
) -> str:
    """An interval, and where items have no score both: on the scored ones, and whatever the others would have been."""
    if not math.isfinite(scored[0]):
        scored = low, high
    inner = f"interval {show(scored[0])} to {show(scored[1])}" if math.isfinite(scored[0]) else "no interval"
    if not n_missing:
        return inner
    more = f" and {show(low)} to {show(high)} whatever the {n_missing:,} without a score would have been"
    return f"{inner} on the {on}{more if math.isfinite(low) else ''}"


def _untested(found: Result) -> bool:
    """Whether nothing is known of a difference's error, on the scored items either."""
    return math.isnan(found.low) and math.isnan(found.low) and math.isnan(found.p_value)


def _details(comparison: PairedComparison, show: Callable[[float], str]) -> str:
    found = whatever(
        comparison.n_missing, comparison.low, comparison.high, (comparison.low, comparison.high), show,
        f"{counted(comparison.n, 'item')} scored in both",
    )  # fmt: skip
    parts = [found if found == "no interval" else f"{100 * comparison.level:g}% {found}"]
    if math.isfinite(comparison.p_value):
        test, p = comparison.test, numbers.p_value(comparison.p_value)
        parts.append(f"{test if test.endswith('p') else f'{test}, p'} {p if p.startswith('<') else f'= {p}'}")
    clusters = comparison.n_clusters
    within = "" if clusters is None else f" in {counted(clusters, 'cluster')}"
    parts.append(f"n = {comparison.n:,}{within}")
    return ", ".join(parts)


def _task(task: TaskComparison, name_a: str, name_b: str) -> str:
    unit = "points" if task.bounded else "units"
    if task.paired is not None:
        text = sentence(task.paired, name_a, name_b, unit)
    else:
        assert task.unpaired is not None
        text = _unpaired(task.unpaired, name_a, name_b, unit)
    more = ["lower is better"] if task.lower_is_better else []
    more += [task.other_questions] if task.other_questions else []
    return "; ".join([text.removesuffix("."), *more]) + "."


def _unpaired(found: UnpairedComparison, name_a: str, name_b: str, unit: str) -> str:
    """One sentence on two runs that share no item."""
    basis = f"different items: {found.n_a:,} and {found.n_b:,}"
    if math.isnan(found.low):
        return f"{name_a} and {name_b} cannot be compared: they share no item, and too few items have a score ({basis})."
    scale, decimals = (100.0, 1) if unit == "points" else (1.0, 3)

    def show(x: float) -> str:
        return f"{scale * x + 0.0:.{decimals}f}"

    gap, lost = show(found.difference), found.n_missing_a + found.n_missing_b
    ends = whatever(lost, found.low, found.high, (found.low, found.high), show, "scored items")
    details = f"{100 * found.level:g}% {ends}, {found.test}, p = {found.p_value:.2g}, {basis}"
    if found.p_value < 1 - found.level and found.low * found.high > 0:
        side = "higher" if found.difference > 0 else "lower"
        return f"{name_a} scores {gap.removeprefix('-')} {unit} {side} than {name_b}, unpaired ({details})."
    return f"No significant difference between {name_a} and {name_b} was found, unpaired ({gap} {unit}; {details})."


def conclusion(overall: MacroDifference, tasks: Mapping[str, Result], name_a: str, name_b: str) -> str:
    """One or two sentences: the mean over tasks, and the single tasks on which the two differ significantly.

    overall and tasks: differences a - b of scores between 0 and 1, shown in points of 100. Single tasks are judged at 5%
    after Holm's correction over all of them.
    """
    adjusted = holm([found.p_value for found in tasks.values()])
    higher: dict[str, list[str]] = {name_a: [], name_b: []}
    for (task, found), p_value in zip(tasks.items(), adjusted, strict=True):
        if p_value < 0.05 and (found.low > 0 or found.high < 0):
            size = f"{task} (by {100 * abs(found.difference):.1f})"
            higher[name_a if found.difference > 0 else name_b].append(size)
    parts = [f"{name} scores higher on {listed(own)}" for name, own in higher.items() if own]
    by_task = f" By task (Holm-corrected, 5%), {listed(parts)}." if parts else ""
    return _overall(overall, name_a, name_b) + by_task


def _overall(overall: MacroDifference, name_a: str, name_b: str) -> str:
    sample = overall.tasks_are == "sample"
    where = "Over tasks like these" if sample else "Over all tasks"
    if math.isnan(overall.low) and not math.isnan(overall.low):
        return (
            f"{where} no verdict on {name_a} and {name_b} is possible: {counted(overall.n_missing, 'item')} without a score "
            "could have scored anything."
        )
    if math.isnan(overall.low):
        return (
            f"{where} {name_a} and {name_b} cannot be compared: at least one of the tasks has too few items with a score from both, or "
            "no interval."
        )
    difference, ends = overall.difference, (overall.low, overall.high)
    scored = overall.low, overall.high
    significant = overall.p_value < 1 - overall.level and overall.low * overall.high > 0
    if significant and difference < 0:
        name_a, name_b, difference = name_b, name_a, -difference
        ends, scored = ((-high, -low) for low, high in (ends, scored))
    interval = whatever(
        overall.n_missing, *ends, scored, lambda x: f"{100 * x:.1f}", f"{overall.n:,} items scored in both"
    )
    mean = f"{overall.n_tasks} tasks as a sample" if sample else f"these {overall.n_tasks} tasks"
    basis = f"{100 * overall.level:g}% {interval}{f', mean of {mean}' if overall.n_tasks > 1 else ''}"
    basis += "" if overall.n_missing else f", {counted(overall.n, 'item')}"
    if significant:
        return f"{where} {name_a} scores {100 * difference:.1f} points higher than {name_b} ({basis})."
    return (
        f"{where} no significant difference between {name_a} and {name_b} was found "
        f"({name_a} minus {name_b}: {100 * difference:+.1f} points; {basis}); "
        f"{_undetected(overall.smallest_visible_difference, 1.0, overall.n_missing, lambda x: f'{100 * x:.1f} points')}."
    )


# -- several runs ---------------------------------------------------------------------------------------------------------


def _several(table: PairTable, labels: Sequence[str], baseline: int | None) -> str:
    """Which pairs differ significantly, which cannot be separated, and the smallest difference that would be detected."""
    whole = "Over tasks like these" if table.metric == "mean over tasks like these" else "Over all tasks"
    where = f"On {table.task}" if table.task else whole
    different = [pair for pair in table.pairs if pair.verdict in ("better", "worse")]
    open_pairs = [pair for pair in table.pairs if pair.verdict == "no difference seen"]
    apart = [
        pair for pair in table.pairs if pair.verdict == "not compared" and not math.isfinite(pair.low)
    ]
    among = counted(len(table.pairs), "pair") + ("" if baseline is None else " with the baseline")
    less = "; lower is better" if table.lower_is_better else ""
    level = f"{100 * table.level:.3g}%, simultaneous for {among}{less}"
    none = "no two models differ significantly"
    none = none if baseline is None else f"no model differs significantly from {labels[baseline]}"
    said = [f"{where} {_different(different, labels, table) or none} ({level})."]
    if open_pairs:
        said.append(_open(open_pairs, labels, table, baseline))
    if apart:
        said.append(_not_compared(apart, table.pairs, labels))
    if most := max((pair.n_missing for pair in table.pairs if pair.n), default=0):
        said.append(_unscored(table, most))
    return " ".join(said)


def _different(different: Sequence[Pair], labels: Sequence[str], table: PairTable) -> str:
    if len(different) > MOST_NAMED:
        return f"{len(different)} of {len(table.pairs)} pairs differ significantly"
    parts = []
    for pair in sorted(different, key=lambda each: -abs(each.difference)):
        a, b, low, high = pair.a, pair.b, pair.low, pair.high
        if pair.difference < 0:
            a, b, low, high = b, a, -high, -low
        ends = f"{points(low, table.bounded)} to {points(high, table.bounded)}"
        more = _size(abs(pair.difference), table)
        parts.append(f"{labels[a]} scores {more} higher than {labels[b]} ({ends})")
    return listed(parts)


def _open(pairs: Sequence[Pair], labels: Sequence[str], table: PairTable, baseline: int | None) -> str:
    who = f"{len(pairs)} pairs cannot be separated"
    if baseline is not None:
        names = [labels[pair.a if pair.b == baseline else pair.b] for pair in pairs]
        who = f"{listed(names, MOST_NAMED)} cannot be separated from {labels[baseline]}"
    else:
        letters = sorted({letter for own in table.letters for letter in own})
        groups = [[labels[i] for i, own in enumerate(table.letters) if letter in own] for letter in letters]
        named = [
            listed(group) if len(group) < 8 else f"{len(group)} models from {group[0]} on"
            for group in groups
            if len(group) > 1
        ]
        if 0 < len(named) <= MOST_NAMED:
            who = f"These cannot be separated: {'; '.join(named)}"
    seen = [pair.visible for pair in pairs if math.isfinite(pair.visible)]
    if len(seen) < len(pairs):
        return f"{who}; the smallest detectable difference is not known for all of them."
    least, most = min(seen), max(seen)
    if table.bounded and least >= 1:
        return f"{who}; with so few items no difference could be detected reliably."
    least_text = points(least, table.bounded)
    most_text = _size(min(most, 1.0) if table.bounded else most, table)
    span = most_text if most_text.split()[0] == least_text else f"{least_text} to {most_text} (by pair)"
    return f"{who}; true differences under {span} would usually go undetected."


def _unscored(table: PairTable, most: int) -> str:
    """What items without a score do to the pairs. most: of them in one pair."""
    many = f"up to {counted(most, 'item')} of a pair"
    if not all(math.isfinite(pair.low) for pair in table.pairs if pair.n and pair.n_missing):
        return f"Where items have no score ({many}) they could have scored anything, so there is no verdict."
    alone = sum(
        pair.verdict == "no difference seen" and pair.low * pair.high > 0
        for pair in table.pairs
    )
    said = f"All of this holds whatever the items without a score ({many}) would have been"
    more = f"; on scored items alone {counted(alone, 'more pair')} would differ" if alone else ""
    return f"{said}{more}."


def _not_compared(apart: Sequence[Pair], every: Sequence[Pair], labels: Sequence[str]) -> str:
    """Runs without any answer by name, then the other pairs."""
    compared = {run for pair in every if pair.verdict != "not compared" for run in (pair.a, pair.b)}
    alone = sorted({run for pair in apart for run in (pair.a, pair.b)} - compared)
    rest = [f"{labels[pair.a]} and {labels[pair.b]}" for pair in apart if {pair.a, pair.b} <= compared]
    said = []
    if alone:
        names = listed([labels[run] for run in alone], MOST_NAMED)
        said.append(f"{names} could not be compared with any other")
    if rest:
        more = f"; {len(rest) - MOST_NAMED} more" if len(rest) > MOST_NAMED else ""
        these = "these" if alone else "These"
        said.append(f"{these} pairs could not be compared: {'; '.join(rest[:MOST_NAMED])}{more}")
    return f"{'; '.join(said)}, because they have too few scored items in common."


def _size(x: float, table: PairTable) -> str:
    return f"{points(x, table.bounded)} {'points' if table.bounded else 'units'}"
