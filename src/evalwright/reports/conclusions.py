"""What a comparison of two or several runs means, in words: the sentences of its tasks and its conclusion.

Results come without words; `worded_comparison` and `worded_several` add them.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from evalwright.analysis.words import listed
from evalwright.reports.comparison_sentence import sentence
from evalwright.statistics import MacroDifference, PairedComparison, UnpairedComparison, holm

if TYPE_CHECKING:
    from evalwright.analysis.comparison import Comparison, TaskComparison
    from evalwright.analysis.context_gain import ContextGain
    from evalwright.analysis.ranking import Pair
    from evalwright.analysis.several import PairTable, SeveralComparison

MOST_NAMED = 6
"""Pairs that a sentence names one by one."""

Result = PairedComparison | UnpairedComparison


def worded_comparison(found: Comparison) -> Comparison:
    """The comparison with the sentence of each task and the conclusion filled in."""
    names = found.labels
    tasks = tuple(replace(task, sentence=_task(task, *names)) for task in found.tasks)
    if found.overall is not None:
        text = conclusion(found.overall, {task.task: task.result for task in tasks}, *names)
    elif len(tasks) > 1:
        text = " ".join(f"{task.task}: {task.sentence}" for task in tasks)
    else:
        text = tasks[0].sentence
    overall = found.overall_equivalence
    same = [overall] if overall else [task.equivalence for task in tasks]
    text = " ".join([text, *(one.sentence for one in same if one)])
    return replace(found, tasks=tasks, conclusion=text)


def gain_sentence(gain: ContextGain) -> str:
    """What passages add over all questions, in a sentence."""
    said = sentence(gain.parts["all"], "the model with passages", "the model without them")
    return f"{gain.run}, {gain.task}: {said}"


def worded_several(found: SeveralComparison) -> SeveralComparison:
    """The comparison with its conclusion: over all tasks where there is a mean over them, else task by task."""
    tables = [found.overall] if found.overall else found.tasks
    said = " ".join(several_conclusion(table, found.labels, found.baseline) for table in tables)
    return replace(found, conclusion=said)


def _task(task: TaskComparison, name_a: str, name_b: str) -> str:
    unit = "points" if task.bounded else "units"
    if task.paired is not None:
        text = sentence(task.paired, name_a, name_b, unit)
    else:
        assert task.unpaired is not None
        text = unpaired_sentence(task.unpaired, name_a, name_b, unit)
    return f"{text[:-1]}; lower is better." if task.lower_is_better else text


def conclusion(overall: MacroDifference, tasks: Mapping[str, Result], name_a: str, name_b: str) -> str:
    """One or two sentences: the mean over tasks, and the single tasks on which the two differ significantly.

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
        f"Over all tasks no significant difference between {name_a} and {name_b} was found "
        f"({difference:+.1f} points; {level} {low:.1f} to {high:.1f}, {basis}); differences under "
        f"{100 * overall.smallest_visible_difference:.1f} points would often go undetected."
    )


def _by_task(tasks: Mapping[str, Result], name_a: str, name_b: str) -> str:
    different = _significant(tasks)
    parts = []
    for name, sign in ((name_a, 1), (name_b, -1)):
        found = [
            f"{task} (by {100 * abs(tasks[task].difference):.1f})"
            for task in different
            if sign * tasks[task].difference > 0
        ]
        if found:
            parts.append(f"{name} scores higher on {listed(found)}")
    return f"By task (Holm-corrected, 5%), {listed(parts)}." if parts else ""


def _significant(tasks: Mapping[str, Result]) -> list[str]:
    """Tasks whose difference holds after Holm's correction, in their order."""
    adjusted = holm([found.p_value for found in tasks.values()])
    return [
        name
        for (name, found), p_value in zip(tasks.items(), adjusted, strict=True)
        if p_value < 0.05 and (found.low > 0 or found.high < 0)
    ]


def unpaired_sentence(found: UnpairedComparison, name_a: str, name_b: str, unit: str) -> str:
    """One sentence on two runs that share no item."""
    basis = f"different items: {found.n_a:,} and {found.n_b:,}"
    if math.isnan(found.low):
        return f"{name_a} and {name_b} cannot be compared: they share no item, and too few items have a score ({basis})."
    scale, decimals = (100.0, 1) if unit == "points" else (1.0, 3)
    gap, low, high = (
        f"{scale * part + 0.0:.{decimals}f}" for part in (found.difference, found.low, found.high)
    )
    details = (
        f"{100 * found.level:g}% interval {low} to {high}, {found.test}, p = {found.p_value:.2g}, {basis}"
    )
    if found.p_value < 1 - found.level and found.low * found.high > 0:
        side = "higher" if found.difference > 0 else "lower"
        return f"{name_a} scores {gap.removeprefix('-')} {unit} {side} than {name_b}, unpaired ({details})."
    return f"No significant difference between {name_a} and {name_b} was found, unpaired ({gap} {unit}; {details})."


def several_conclusion(table: PairTable, labels: Sequence[str], baseline: int | None) -> str:
    """Which pairs differ significantly, which cannot be separated, and the smallest difference that would be detected."""
    where = f"On {table.task}" if table.task else "Over all tasks"
    different = [pair for pair in table.pairs if pair.verdict in ("better", "worse")]
    open_pairs = [pair for pair in table.pairs if pair.verdict == "no difference seen"]
    apart = [pair for pair in table.pairs if pair.verdict == "not compared"]
    among = f"{len(table.pairs)} pair{'s' if len(table.pairs) > 1 else ''}"
    level = f"{100 * table.level:.3g}%, simultaneous for {among if baseline is None else f'{among} with the baseline'}"
    said = [_different(where, different, labels, table, level)]
    if open_pairs:
        said.append(_open(open_pairs, labels, table, baseline))
    if apart:
        said.append(_not_compared(apart, table.pairs, labels))
    return " ".join(said)


def _different(
    where: str, different: Sequence[Pair], labels: Sequence[str], table: PairTable, level: str
) -> str:
    less = "; lower is better" if table.lower_is_better else ""
    if not different:
        return f"{where} no two models differ significantly ({level}{less})."
    if len(different) > MOST_NAMED:
        return f"{where} {len(different)} of {len(table.pairs)} pairs differ significantly ({level}{less})."
    parts = []
    for pair in sorted(different, key=lambda each: -abs(each.difference)):
        a, b, low, high = pair.a, pair.b, pair.low, pair.high
        if pair.difference < 0:
            a, b, low, high = b, a, -high, -low
        size = _size(abs(pair.difference), table)
        parts.append(
            f"{labels[a]} scores {size} higher than {labels[b]} ({_number(low, table)} to {_number(high, table)})"
        )
    return f"{where} {listed(parts)} ({level}{less})."


def _open(pairs: Sequence[Pair], labels: Sequence[str], table: PairTable, baseline: int | None) -> str:
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
        if named and len(named) <= MOST_NAMED:
            who = f"These cannot be separated: {'; '.join(named)}"
        else:
            who = f"{len(pairs)} pairs cannot be separated"
    seen = [pair.visible for pair in pairs if math.isfinite(pair.visible)]
    if len(seen) < len(pairs):
        return f"{who}; the smallest detectable difference is not known for all of them."
    least, most = min(seen), max(seen)
    if table.bounded and least >= 1:
        return f"{who}; with so few items no difference could be detected reliably."
    least_text, most_text = _number(least, table), _size(min(most, 1.0) if table.bounded else most, table)
    span = most_text if most_text.split()[0] == least_text else f"{least_text} to {most_text} (by pair)"
    return f"{who}; true differences under {span} would usually go undetected."


def _not_compared(apart: Sequence[Pair], every: Sequence[Pair], labels: Sequence[str]) -> str:
    """Runs without any answer by name, then the other pairs."""
    compared = {run for pair in every if pair.verdict != "not compared" for run in (pair.a, pair.b)}
    alone = sorted({run for pair in apart for run in (pair.a, pair.b)} - compared)
    rest = [pair for pair in apart if pair.a in compared and pair.b in compared]
    said = []
    if alone:
        said.append(
            f"{listed([labels[run] for run in alone], MOST_NAMED)} could not be compared with any other"
        )
    if rest:
        named = "; ".join(f"{labels[pair.a]} and {labels[pair.b]}" for pair in rest[:MOST_NAMED])
        more = f"; {len(rest) - MOST_NAMED} more" if len(rest) > MOST_NAMED else ""
        said.append(f"these pairs could not be compared: {named}{more}")
    text = "; ".join(said)
    return f"{text[0].upper()}{text[1:]}, because they have too few scored items in common." if not alone else (
        f"{text}, because they have too few scored items in common."
    )  # fmt: skip


def _number(x: float, table: PairTable) -> str:
    text = f"{100 * x:.1f}" if table.bounded else f"{x:.4g}"
    return "0.0" if text == "-0.0" else text


def _size(x: float, table: PairTable) -> str:
    return f"{_number(x, table)} {'points' if table.bounded else 'units'}"
