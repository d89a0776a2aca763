"""What a comparison of two or several runs means: the sentences of its tasks and its conclusion,
that a careful statistician signs.

Results come without words; `worded_comparison` and `worded_several` add them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from evalwright.analysis.comparison import Comparison, TaskComparison
from evalwright.analysis.context_gain import ContextGain
from evalwright.analysis.ranking import Pair
from evalwright.analysis.robustness import Robustness, direction_words
from evalwright.analysis.several import PairTable, SeveralComparison
from evalwright.analysis.words import counted, listed, plural, points
from evalwright.reports import numbers
from evalwright.statistics import (
    MacroDifference,
    PairedComparison,
    UnpairedComparison,
    holm,
)

MOST_NAMED = 6
"""Pairs that a sentence names one by one."""

Result = PairedComparison | UnpairedComparison


def worded_comparison(found: Comparison) -> Comparison:
    """The comparison with the sentence of each task and the conclusion filled in."""
    names = found.labels
    tasks = tuple(_worded(task, *names) for task in found.tasks)
    steps = found.next_steps or (tasks[0].next_steps if len(tasks) == 1 else ())
    # A step that fills the gap says already how.
    how_to_fill = (
        "" if any(step.kind == "fill" for step in steps) else found.how_to_fill
    )
    if found.overall is not None:
        parts = _over_all_tasks(found, tasks, how_to_fill)
    elif len(tasks) == 1:
        parts = [tasks[0].sentence, *_standing(tasks[0], names, how_to_fill)]
    else:
        parts = _task_by_task(found, tasks)
    overall = found.overall_equivalence
    same = [overall] if overall else [task.equivalence for task in tasks]
    parts += [one.sentence for one in same if one]
    if steps:
        parts.append(f"Next: {' Or: '.join(step.sentence for step in steps)}")
    return replace(found, tasks=tasks, conclusion=" ".join(parts))


def _over_all_tasks(
    found: Comparison, tasks: Sequence[TaskComparison], how_to_fill: str
) -> list[str]:
    """The mean over tasks, what it lacks, and on which tasks something else is to be said."""
    assert found.overall is not None
    names = found.labels
    parts = [
        conclusion(found.overall, {task.task: task.result for task in tasks}, *names)
    ]
    lacks = next(
        (one.missing for one in found.groups if one.difference is found.overall), ()
    )
    if lacks:
        parts.append(f"Not in this mean: {listed(lacks, 5)}.")
    parts += _standing(found, names, how_to_fill)
    parts += [
        f"On {task.task}, {task.other_questions}."
        for task in tasks
        if task.other_questions
    ]
    parts += [f"{task.task}: {also}" for task in tasks if (also := _also(task, *names))]
    return parts


def _task_by_task(found: Comparison, tasks: Sequence[TaskComparison]) -> list[str]:
    parts = []
    for task in tasks:
        if not _untested(task.result):
            parts += [
                f"{task.task}: {task.sentence}",
                *_standing(task, found.labels, found.how_to_fill),
            ]
    if lost := [task.task for task in tasks if _untested(task.result)]:
        parts.append(
            f"Nothing can be said of {listed(lost, 5)}: the numbers have no interval."
        )
    return parts


def _standing(
    verdict_on: Comparison | TaskComparison, names: tuple[str, str], how_to_fill: str
) -> list[str]:
    """What a verdict does not allow for, whether it is provisional and what to do then, and how
    robust it is.
    """
    result = (
        verdict_on.overall if isinstance(verdict_on, Comparison) else verdict_on.result
    )
    if result is None or math.isnan(result.low):
        return []
    parts = [verdict_on.stopped_early] if verdict_on.stopped_early else []
    robustness = verdict_on.robustness
    if verdict_on.provisional:
        of_missing = verdict_on.provisional.removesuffix(
            verdict_on.one_sided_judge
        ).rstrip()
        although = ""
        if (
            of_missing
            and robustness is not None
            and _holds_whatever_is_missing(robustness)
        ):
            although = f", although it holds {_whatever_is_missing(robustness)}"
            robustness = replace(robustness, missing=None)
        reasons = [
            of_missing,
            how_to_fill if of_missing else "",
            verdict_on.one_sided_judge,
        ]
        parts.append(f"Provisional{although}: {' '.join(filter(None, reasons))}")
    if robustness is not None:
        ordered = names if result.difference >= 0 else (names[1], names[0])
        parts.append(robustness_sentence(robustness, *ordered))
    return [part for part in parts if part]


def _holds_whatever_is_missing(robustness: Robustness) -> bool:
    return robustness.missing is not None and robustness.missing.fewest is None


def _whatever_is_missing(robustness: Robustness) -> str:
    assert robustness.missing is not None
    return f"whatever the {robustness.missing.n:,} missing would have scored"


def robustness_sentence(robustness: Robustness, higher: str, lower: str) -> str:
    """How much of a verdict rests on missing and unsure answers; "" without a verdict, or without
    any of them.

    Args:
        robustness: of the verdict.
        higher, lower: what the run with the higher score and the other one are called.
    """
    holds = list[str]()
    falls = list[str]()
    if (missing := robustness.missing) is not None:
        if missing.fewest is None:
            holds.append(_whatever_is_missing(robustness))
        else:
            falls.append(
                f"{missing.fewest:,} of the {missing.n:,} missing would have to go"
                " against it"
            )
    if (unsure := robustness.unsure) is not None:
        answers = f"{unsure.n:,} unsure {plural(unsure.n, 'answer')}"
        if unsure.fewest is None:
            holds.append(
                f"even if the {answers} {plural(unsure.n, 'was', 'were all')} misread"
            )
        else:
            direction = direction_words(high=higher, low=lower)
            falls.append(
                f"{unsure.fewest:,} of the {answers} would have to be misread,"
                f" {direction}"
            )
    parts = [f"It holds {listed(holds)}"] if holds else []
    parts += (
        [f"{'to' if parts else 'To'} overturn it, {listed(falls)}"] if falls else []
    )
    return f"{'; '.join(parts)}." if parts else ""


def verdict(found: Comparison) -> str:
    """Who is better by how much over all tasks, or on the only one, and why it is provisional; ""
    where nothing is said over several.
    """
    if found.overall is not None:
        return " ".join(
            [
                _overall(found.overall, *found.labels),
                *_standing(found, found.labels, ""),
            ]
        )
    if len(found.tasks) == 1:
        task = found.tasks[0]
        return " ".join(
            [_task(task, *found.labels), *_standing(task, found.labels, "")]
        )
    return ""


def _worded(task: TaskComparison, name_a: str, name_b: str) -> TaskComparison:
    others = tuple(_worded(other, name_a, name_b) for other in task.others)
    parts = (_task(task, name_a, name_b), _also(task, name_a, name_b))
    return replace(task, others=others, sentence=" ".join(filter(None, parts)))


def _also(task: TaskComparison, name_a: str, name_b: str) -> str:
    """Other metrics by which the two differ significantly; each is judged by itself."""
    parts = []
    for other in task.others:
        found = other.result
        if found.low > 0 or found.high < 0:
            who = name_a if (found.difference > 0) != other.lower_is_better else name_b
            parts.append(
                f"'{other.metric}' (p {_p_text(found.p_value)}, {who} is better)"
            )
    return (
        f"They also differ significantly by {listed(parts)}, each tested by itself."
        if parts
        else ""
    )


def gain_sentence(gain: ContextGain) -> str:
    """What passages add over all questions."""
    said = sentence(
        gain.parts["all"], "the model with passages", "the model without them"
    )
    return f"{gain.run}, {gain.task}: {said}"


def worded_several(found: SeveralComparison) -> SeveralComparison:
    """The comparison with its conclusion: over all tasks where there is a mean over them, else task
    by task.
    """
    tables = [found.overall] if found.overall else found.tasks
    parts = [_several(table, found.labels, found.baseline) for table in tables]
    if any(
        pair.provisional and pair.n_missing for table in tables for pair in table.pairs
    ):
        parts.append(found.how_to_fill)
    return replace(
        found, conclusion=" ".join(filter(None, [*parts, *found.other_questions]))
    )


# -- two runs --------------------------------------------------------------------------


def sentence(
    comparison: PairedComparison, name_a: str, name_b: str, unit: str = "points"
) -> str:
    """One sentence that says who is better by how much, or what could not have been seen.

    With unit "points" scores from 0 to 1 are shown times 100; any other unit shows them as they
    are, "" without a word for it. Numbers get the decimals that the interval deserves.
    """
    if comparison.n == 0:
        return (
            f"{name_a} and {name_b} cannot be compared: no item has a score from both."
        )
    scale = 100.0 if unit == "points" else 1.0
    width = (comparison.high - comparison.low) * scale
    # Two digits of the interval count.
    decimals = (
        min(6, max(1, 1 - math.floor(math.log10(width))))
        if math.isfinite(width) and width > 0
        else 1
    )

    def show(x: float) -> str:
        return numbers.number(x * scale, "plain", decimals)

    word = f" {unit}" if unit else ""
    if comparison.verdict != "no difference seen":
        higher, lower = (
            (name_a, name_b) if comparison.difference > 0 else (name_b, name_a)
        )
        details = _details(comparison, _ends_of_higher(comparison), show)
        return (
            f"{higher} scores {show(abs(comparison.difference))}{word} higher than"
            f" {lower} ({details})."
        )
    details = _details(comparison, (comparison.low, comparison.high), show)
    gap = f"{name_a} minus {name_b}: {show(comparison.difference)}{word}"
    if _untested(comparison):
        if comparison.missing_policy == "worst-case" and comparison.n_missing:
            return (
                f"No verdict on {name_a} and {name_b} is possible in the worst case"
                f" ({gap}, {details}): what the missing answers could have scored has"
                " no known range."
            )
        return (
            f"{name_a} and {name_b} cannot be compared: there is no interval ({gap},"
            f" {details})."
        )
    seen = (
        f"No significant difference between {name_a} and {name_b} was found ({gap},"
        f" {details})"
    )
    visible = comparison.smallest_visible_difference
    most = 1.0 if unit == "points" else math.inf
    return f"{seen}; {_undetected(visible, most, lambda x: f'{show(x)}{word}')}."


def _ends_of_higher(found: Result) -> tuple[float, float]:
    """The interval of the higher one minus the lower one."""
    return (
        (found.low, found.high) if found.difference > 0 else (-found.high, -found.low)
    )


def _undetected(visible: float, most: float, show: Callable[[float], str]) -> str:
    """What would have been missed. visible: the smallest difference that would have been detected,
    most: that there can be.
    """
    if math.isnan(visible):
        return "how small a difference could have been detected is not known"
    if visible >= most:
        return "with so few items any difference would often go undetected"
    return f"differences under {show(visible)} would often go undetected"


def _interval_text(
    found: Result | MacroDifference,
    ends: tuple[float, float],
    show: Callable[[float], str],
) -> str:
    """ "95% interval 2.1 to 9.9"; in the worst case of missing answers it says so."""
    low, high = ends
    text = (
        f"interval {show(low)} to {show(high)}" if math.isfinite(low) else "no interval"
    )
    if found.missing_policy == "worst-case" and math.isfinite(found.worst_low):
        text += ", whatever the missing answers would have scored"
    return f"{100 * found.level:g}% {text}" if math.isfinite(low) else text


def _p_text(p: float) -> str:
    shown = numbers.p_value(p)
    return shown if shown.startswith("<") else f"= {shown}"


def _cases_disagree(found: Result | MacroDifference) -> bool:
    """Whether the worst case of the missing answers is on one side of 0 and the best on the other,
    so that there is no p-value.
    """
    return (
        found.missing_policy == "worst-case"
        and math.isfinite(found.worst_low)
        and found.p_value >= 1
    )


def _untested(found: Result) -> bool:
    """Whether nothing is known of a difference's error."""
    return math.isnan(found.low) and math.isnan(found.p_value)


def _details(
    comparison: PairedComparison,
    ends: tuple[float, float],
    show: Callable[[float], str],
) -> str:
    parts = [_interval_text(comparison, ends, show)]
    if math.isfinite(comparison.p_value) and not _cases_disagree(comparison):
        parts.append(f"{comparison.test}, p {_p_text(comparison.p_value)}")
    clusters = comparison.n_clusters
    within = "" if clusters is None else f" in {counted(clusters, 'cluster')}"
    scored_in_both = " scored in both" if comparison.n_missing else ""
    parts.append(f"n = {comparison.n:,}{scored_in_both}{within}")
    if comparison.n_missing:
        parts.append(f"{comparison.n_missing:,} missing")
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
        return (
            f"{name_a} and {name_b} cannot be compared: they share no item, and too few"
            f" items have a score ({basis})."
        )
    scale, decimals = (100.0, 1) if unit == "points" else (1.0, 3)

    def show(x: float) -> str:
        return f"{scale * x + 0.0:.{decimals}f}"

    gap = show(found.difference)
    n_missing = found.n_missing_a + found.n_missing_b
    significant = found.p_value < 1 - found.level and found.low * found.high > 0
    ends = _ends_of_higher(found) if significant else (found.low, found.high)
    details = _interval_text(found, ends, show)
    details += (
        "" if _cases_disagree(found) else f", {found.test}, p {_p_text(found.p_value)}"
    )
    details += f", {basis}{f', {n_missing:,} missing' if n_missing else ''}"
    if significant:
        higher, lower = (name_a, name_b) if found.difference > 0 else (name_b, name_a)
        return (
            f"{higher} scores {gap.removeprefix('-')} {unit} higher than {lower},"
            f" unpaired ({details})."
        )
    return (
        f"No significant difference between {name_a} and {name_b} was found, unpaired"
        f" ({gap} {unit}; {details})."
    )


def conclusion(
    overall: MacroDifference, tasks: Mapping[str, Result], name_a: str, name_b: str
) -> str:
    """One or two sentences: the mean over tasks, and the single tasks on which the two differ
    significantly.

    overall and tasks: differences a - b of scores between 0 and 1, shown in points of 100. Single
    tasks are judged at 5% after Holm's correction over all of them.
    """
    adjusted = holm([found.p_value for found in tasks.values()])
    higher: dict[str, list[str]] = {name_a: [], name_b: []}
    for (task, found), p_value in zip(tasks.items(), adjusted, strict=True):
        if p_value < 0.05 and (found.low > 0 or found.high < 0):
            size = f"{task} (by {100 * abs(found.difference):.1f})"
            higher[name_a if found.difference > 0 else name_b].append(size)
    parts = [
        f"{name} scores higher on {listed(own)}" for name, own in higher.items() if own
    ]
    by_task = f" By task (Holm-corrected, 5%), {listed(parts)}." if parts else ""
    return _overall(overall, name_a, name_b) + by_task


def _overall(overall: MacroDifference, name_a: str, name_b: str) -> str:
    sample = overall.tasks_are == "sample"
    where = "Over tasks like these" if sample else "Over all tasks"
    if (
        math.isnan(overall.low)
        and overall.missing_policy == "worst-case"
        and overall.n_missing
    ):
        return (
            f"{where} no verdict on {name_a} and {name_b} is possible in the worst"
            f" case: what the {counted(overall.n_missing, 'missing answer')} could have"
            " scored has no known range."
        )
    if math.isnan(overall.low):
        return (
            f"{where} {name_a} and {name_b} cannot be compared: at least one of the"
            " tasks has too few items with a score from both, or no interval."
        )
    difference = overall.difference
    ends = (overall.low, overall.high)
    significant = overall.p_value < 1 - overall.level and overall.low * overall.high > 0
    if significant and difference < 0:
        name_a, name_b, difference = name_b, name_a, -difference
        ends = (-overall.high, -overall.low)
    mean = (
        f"{overall.n_tasks} tasks as a sample"
        if sample
        else f"these {overall.n_tasks} tasks"
    )
    parts = [_interval_text(overall, ends, lambda x: f"{100 * x:.1f}")]
    parts += [f"mean of {mean}"] if overall.n_tasks > 1 else []
    scored_in_both = " scored in both" if overall.n_missing else ""
    parts += [f"{counted(overall.n, 'item')}{scored_in_both}"]
    parts += [f"{overall.n_missing:,} missing"] if overall.n_missing else []
    basis = ", ".join(parts)
    if significant:
        return (
            f"{where} {name_a} scores {100 * difference:.1f} points higher than"
            f" {name_b} ({basis})."
        )
    return (
        f"{where} no significant difference between {name_a} and {name_b} was found "
        f"({name_a} minus {name_b}: {100 * difference:+.1f} points; {basis}); "
        f"{_undetected(overall.smallest_visible_difference, 1.0, lambda x: f'{100 * x:.1f} points')}."
    )


# -- several runs ----------------------------------------------------------------------


def _several(table: PairTable, labels: Sequence[str], baseline: int | None) -> str:
    """Which pairs differ significantly, which cannot be separated, and the smallest difference that
    would be detected.
    """
    whole = (
        "Over tasks like these"
        if table.metric == "mean over tasks like these"
        else "Over all tasks"
    )
    where = f"On {table.task}" if table.task else whole
    different = [pair for pair in table.pairs if pair.verdict in ("better", "worse")]
    open_pairs = [pair for pair in table.pairs if pair.verdict == "no difference seen"]
    apart = [
        pair
        for pair in table.pairs
        if pair.verdict == "not compared" and not math.isfinite(pair.low)
    ]
    among = counted(len(table.pairs), "pair") + (
        "" if baseline is None else " with the baseline"
    )
    less = "; lower is better" if table.lower_is_better else ""
    level = f"Holm-adjusted at {100 * (1 - table.level):.2g}% for {among}{less}"
    none = "no two models differ significantly"
    none = (
        none
        if baseline is None
        else f"no model differs significantly from {labels[baseline]}"
    )
    said = [f"{where} {_different(different, labels, table) or none} ({level})."]
    if open_pairs:
        said.append(_open(open_pairs, labels, table, baseline))
    if apart:
        said.append(_not_compared(apart, table.pairs, labels))
    if provisional := _provisional_pairs(table, labels):
        said.append(provisional)
    return " ".join(said)


def _different(
    different: Sequence[Pair], labels: Sequence[str], table: PairTable
) -> str:
    if len(different) > MOST_NAMED:
        return f"{len(different)} of {len(table.pairs)} pairs differ significantly"
    parts = []
    for pair in sorted(different, key=lambda each: -abs(each.difference)):
        a = pair.a
        b = pair.b
        low = pair.low
        high = pair.high
        if pair.difference < 0:
            a, b, low, high = b, a, -high, -low
        ends = f"{points(low, table.bounded)} to {points(high, table.bounded)}"
        more = _size(abs(pair.difference), table)
        parts.append(f"{labels[a]} scores {more} higher than {labels[b]} ({ends})")
    return listed(parts)


def _open(
    pairs: Sequence[Pair], labels: Sequence[str], table: PairTable, baseline: int | None
) -> str:
    who = f"{len(pairs)} pairs cannot be separated"
    if baseline is not None:
        names = [labels[pair.a if pair.b == baseline else pair.b] for pair in pairs]
        who = f"{listed(names, MOST_NAMED)} cannot be separated from {labels[baseline]}"
    else:
        letters = sorted({letter for own in table.letters for letter in own})
        groups = [
            [labels[i] for i, own in enumerate(table.letters) if letter in own]
            for letter in letters
        ]
        named = [
            (
                listed(group)
                if len(group) < 8
                else f"{len(group)} models from {group[0]} on"
            )
            for group in groups
            if len(group) > 1
        ]
        if 0 < len(named) <= MOST_NAMED:
            who = f"These cannot be separated: {'; '.join(named)}"
    seen = [pair.visible for pair in pairs if math.isfinite(pair.visible)]
    if len(seen) < len(pairs):
        return (
            f"{who}; the smallest detectable difference is not known for all of them."
        )
    least = min(seen)
    most = max(seen)
    if table.bounded and least >= 1:
        return f"{who}; with so few items no difference could be detected reliably."
    least_text = points(least, table.bounded)
    most_text = _size(min(most, 1.0) if table.bounded else most, table)
    span = (
        most_text
        if most_text.split()[0] == least_text
        else f"{least_text} to {most_text} (by pair)"
    )
    return f"{who}; true differences under {span} would usually go undetected."


def _provisional_pairs(table: PairTable, labels: Sequence[str]) -> str:
    """Which verdicts are provisional, and why; "" where none is."""
    pairs = [
        pair
        for pair in table.pairs
        if pair.provisional and pair.verdict in ("better", "worse")
    ]
    if not pairs:
        return ""
    reasons = list(dict.fromkeys(pair.provisional.removesuffix(".") for pair in pairs))
    names = [f"{labels[pair.a]} against {labels[pair.b]}" for pair in pairs]
    which = f"{len(pairs)} verdicts are provisional"
    if len(pairs) <= MOST_NAMED:
        which = f"Provisional {plural(len(pairs), 'is', 'are')} {listed(names)}"
    more = f"; {len(reasons) - 2} more reasons" if len(reasons) > 2 else ""
    return f"{which}: {'; '.join(reasons[:2])}{more}."


def _not_compared(
    apart: Sequence[Pair], every: Sequence[Pair], labels: Sequence[str]
) -> str:
    """Runs without any answer by name, then the other pairs."""
    compared = {
        run
        for pair in every
        if pair.verdict != "not compared"
        for run in (pair.a, pair.b)
    }
    alone = sorted({run for pair in apart for run in (pair.a, pair.b)} - compared)
    rest = [
        f"{labels[pair.a]} and {labels[pair.b]}"
        for pair in apart
        if {pair.a, pair.b} <= compared
    ]
    said = []
    if alone:
        names = listed([labels[run] for run in alone], MOST_NAMED)
        said.append(f"{names} could not be compared with any other")
    if rest:
        more = f"; {len(rest) - MOST_NAMED} more" if len(rest) > MOST_NAMED else ""
        these = "these" if alone else "These"
        said.append(
            f"{these} pairs could not be compared: {'; '.join(rest[:MOST_NAMED])}{more}"
        )
    if any(pair.units > 1 for pair in apart):
        return (
            f"{'; '.join(said)}, because this number has no intervals, as of published"
            " ones: compare a metric that has, by --metric."
        )
    return f"{'; '.join(said)}, because they have too few scored items in common."


def _size(x: float, table: PairTable) -> str:
    return f"{points(x, table.bounded)} {'points' if table.bounded else 'units'}"
