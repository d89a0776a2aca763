"""Conclusions of comparisons, in sentences that a careful statistician would sign.

Comparisons come without words; `worded_comparison` and `worded_several` add them.
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
"""Most pairs, or tasks, that a sentence names one by one."""

Result = PairedComparison | UnpairedComparison


def worded_comparison(comparison: Comparison) -> Comparison:
    """Return the comparison with the sentence of each task and the conclusion filled in."""
    names = comparison.labels
    tasks = tuple(_word_task(task, *names) for task in comparison.tasks)
    steps = comparison.next_steps or (tasks[0].next_steps if len(tasks) == 1 else ())
    # A step that fills the gap already says how.
    how_to_fill = (
        "" if any(step.kind == "fill" for step in steps) else comparison.how_to_fill
    )
    if comparison.overall is not None:
        sentences = _over_all_tasks(comparison, tasks, how_to_fill)
    elif len(tasks) == 1:
        sentences = [tasks[0].sentence, *_caveats(tasks[0], names, how_to_fill)]
    else:
        sentences = _task_by_task(comparison, tasks)
    overall = comparison.overall_equivalence
    equivalences = [overall] if overall else [task.equivalence for task in tasks]
    sentences += [equivalence.sentence for equivalence in equivalences if equivalence]
    if steps:
        sentences.append(f"Next: {' Or: '.join(step.sentence for step in steps)}")
    return replace(comparison, tasks=tasks, conclusion=" ".join(sentences))


def _over_all_tasks(
    comparison: Comparison, tasks: Sequence[TaskComparison], how_to_fill: str
) -> list[str]:
    """Write sentences on the mean over all tasks, what it lacks, and tasks that differ from it."""
    assert comparison.overall is not None
    names = comparison.labels
    sentences = [
        conclusion(
            comparison.overall, {task.task: task.result for task in tasks}, *names
        )
    ]
    missing_tasks = next(
        (
            group.missing
            for group in comparison.groups
            if group.difference is comparison.overall
        ),
        (),
    )
    if missing_tasks:
        sentences.append(f"Not in this mean: {listed(missing_tasks, 5)}.")
    sentences += _caveats(comparison, names, how_to_fill)
    sentences += [
        f"On {task.task}, {task.other_questions}."
        for task in tasks
        if task.other_questions
    ]
    of_other_metrics = {
        task.task: _other_metrics_sentence(task, *names)
        for task in tasks
        if _other_metrics_sentence(task, *names)
    }
    if len(of_other_metrics) > MOST_NAMED:
        sentences.append(
            f"By other metrics they also differ significantly on {len(of_other_metrics)}"
            f" of {counted(len(tasks), 'task')}, each tested by itself."
        )
    else:
        sentences += [f"{name}: {also}" for name, also in of_other_metrics.items()]
    return sentences


def _task_by_task(comparison: Comparison, tasks: Sequence[TaskComparison]) -> list[str]:
    sentences = []
    for task in tasks:
        if not _untested(task.result):
            sentences += [
                f"{task.task}: {task.sentence}",
                *_caveats(task, comparison.labels, comparison.how_to_fill),
            ]
    if untested_tasks := [task.task for task in tasks if _untested(task.result)]:
        sentences.append(
            f"Nothing can be said of {listed(untested_tasks, 5)}: the numbers have no interval."
        )
    return sentences


def _caveats(
    verdict_on: Comparison | TaskComparison, names: tuple[str, str], how_to_fill: str
) -> list[str]:
    """List what limits a verdict: early stopping, missing answers with a remedy, and robustness."""
    difference = (
        verdict_on.overall if isinstance(verdict_on, Comparison) else verdict_on.result
    )
    if difference is None or math.isnan(difference.low):
        return []
    clauses = [verdict_on.stopped_early] if verdict_on.stopped_early else []
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
        clauses.append(f"Provisional{although}: {' '.join(filter(None, reasons))}")
    if robustness is not None:
        higher_first = names if difference.difference >= 0 else (names[1], names[0])
        clauses.append(robustness_sentence(robustness, *higher_first))
    return [clause for clause in clauses if clause]


def _holds_whatever_is_missing(robustness: Robustness) -> bool:
    return robustness.missing is not None and robustness.missing.fewest is None


def _whatever_is_missing(robustness: Robustness) -> str:
    assert robustness.missing is not None
    return f"whatever the {robustness.missing.n:,} missing would have scored"


def robustness_sentence(robustness: Robustness, higher: str, lower: str) -> str:
    """Say how far a verdict depends on missing and unsure answers; "" where there are none.

    Args:
        robustness: The robustness of the verdict.
        higher: The name of the run with the higher score.
        lower: The name of the other run.
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
        unsure_items = f"{counted(unsure.n, 'item')} with an unsure answer"
        if unsure.fewest is None:
            holds.append(
                f"even if the {unsure_items} {plural(unsure.n, 'was', 'were all')} misread"
            )
        else:
            direction = direction_words(high=higher, low=lower)
            falls.append(
                f"{unsure.fewest:,} of the {unsure_items} would have to be misread,"
                f" {direction}"
            )
    clauses = [f"It holds {listed(holds)}"] if holds else []
    clauses += (
        [f"{'to' if clauses else 'To'} overturn it, {listed(falls)}"] if falls else []
    )
    return f"{'; '.join(clauses)}." if clauses else ""


def verdict(comparison: Comparison) -> str:
    """Say who is better and by how much, over all tasks or on the only one, with the caveats.

    Returns "" where there are several tasks without a mean over them.
    """
    if comparison.overall is not None:
        return " ".join(
            [
                _overall_sentence(comparison.overall, *comparison.labels),
                *_caveats(comparison, comparison.labels, ""),
            ]
        )
    if len(comparison.tasks) == 1:
        task = comparison.tasks[0]
        return " ".join(
            [
                _task_sentence(task, *comparison.labels),
                *_caveats(task, comparison.labels, ""),
            ]
        )
    return ""


def headline(comparison: Comparison) -> str:
    """The verdict in one line: who is better and by how much, with the interval.

    It says where tasks disagree with the mean over them. It has at most 25 words beside the names
    of the runs and tasks.
    """
    name_a, name_b = comparison.labels
    difference: Result | MacroDifference
    if comparison.overall is not None:
        difference = comparison.overall
        bounded, remark = True, ""
        about: Comparison | TaskComparison = comparison
    elif len(comparison.tasks) == 1:
        about = comparison.tasks[0]
        difference = about.result
        bounded = about.bounded
        remark = " (lower is better)" if about.lower_is_better else ""
    else:
        return _tasks_headline(comparison)
    if math.isnan(difference.low) and math.isnan(difference.p_value):
        return f"{name_a} and {name_b} cannot be compared: there is no interval."
    opening = "Provisional: " if about.provisional else ""
    ending = "; stopped early, see below" if about.stopped_early else ""
    is_significant = _is_significant(difference)
    disagreement = _disagreement(comparison, difference if is_significant else None)
    if not is_significant:
        no = "no" if opening else "No"
        interval = _short_interval(difference, bounded)
        return (
            f"{opening}{no} significant difference between {name_a} and {name_b} was"
            f" found{interval}{remark}{disagreement}{ending}."
        )
    a_is_higher = difference.difference > 0
    higher, lower = (name_a, name_b) if a_is_higher else (name_b, name_a)
    size = _difference_size(difference, bounded)
    interval = _short_interval(difference, bounded, of_higher=True)
    return (
        f"{opening}{higher} scores {size} higher than"
        f" {lower}{interval}{remark}{disagreement}{ending}."
    )


def claimed_differences(comparison: Comparison) -> list[bool]:
    """Tell of each task whether the conclusion claims that the two runs differ on it.

    Beside a mean over several tasks they are tested at 5% after Holm's correction, else each by
    itself.
    """
    results = [task.result for task in comparison.tasks]
    if comparison.overall is None or len(results) == 1:
        return [_is_significant(result) for result in results]
    return _holm_significant(results)


def _holm_significant(results: Sequence[Result]) -> list[bool]:
    adjusted = holm([result.p_value for result in results])
    return [
        bool(p_value < 0.05 and (result.low > 0 or result.high < 0))
        for result, p_value in zip(results, adjusted, strict=True)
    ]


def _disagreement(comparison: Comparison, mean: Result | MacroDifference | None) -> str:
    """Say on which tasks a mean over them misleads; "" if no task differs the other way.

    `mean` is the significant difference of the means, None where there is none.
    """
    if comparison.overall is None or len(comparison.tasks) < 2:
        return ""
    name_a, name_b = comparison.labels
    claims = zip(comparison.tasks, claimed_differences(comparison), strict=True)
    claimed_tasks = [task for task, is_claimed in claims if is_claimed]
    for_a = [task.task for task in claimed_tasks if task.result.difference > 0]
    for_b = [task.task for task in claimed_tasks if task.result.difference < 0]
    if mean is None:
        if not (for_a and for_b):
            return ""
        return (
            f"; tasks disagree: {name_a} is higher on {len(for_a)}, {name_b} on"
            f" {len(for_b)}"
        )
    against, lower = (for_b, name_b) if mean.difference > 0 else (for_a, name_a)
    if not against:
        return ""
    total = len(comparison.tasks)
    where = against[0] if len(against) == 1 else f"{len(against)} of {total}"
    return f", but tasks disagree: {lower} is higher on {where}"


def _short_interval(
    difference: Result | MacroDifference, bounded: bool, of_higher: bool = False
) -> str:
    """The interval of A minus B, or of the higher run minus the lower one, in brackets."""
    low, high = difference.low, difference.high
    if not math.isfinite(low):
        return ""
    if of_higher and difference.difference < 0:
        low, high = -high, -low
    ends = [
        f"{100 * end + 0.0:.1f}" if bounded else numbers.number(end, "plain", 3)
        for end in (low, high)
    ]
    return f" ({100 * difference.level:g}% interval {ends[0]} to {ends[1]})"


def _tasks_headline(comparison: Comparison) -> str:
    """The headline where there is no mean over tasks: on how many tasks each run is higher."""
    higher_counts = [0, 0]
    for task in comparison.tasks:
        if _is_significant(task.result):
            higher_counts[task.result.difference < 0] += 1
    total = counted(len(comparison.tasks), "task")
    if not any(higher_counts):
        return f"No significant difference was found on any of {total}."
    clauses = [
        f"{name} scores higher on {count}"
        for name, count in zip(comparison.labels, higher_counts, strict=True)
        if count
    ]
    return f"Of {total}, {listed(clauses)}, each tested by itself."


def _is_significant(difference: Result | MacroDifference) -> bool:
    """Whether the interval and the p-value agree that there is a difference."""
    return bool(
        difference.p_value < 1 - difference.level
        and difference.low * difference.high > 0
    )


def _difference_size(difference: Result | MacroDifference, bounded: bool) -> str:
    """The size of a difference, such as "3.2 points", with the decimals that it supports."""
    size = abs(difference.difference)
    if bounded:
        return f"{100 * size:.1f} points"
    return numbers.number(size, "plain", 3)


def _word_task(task: TaskComparison, name_a: str, name_b: str) -> TaskComparison:
    others = tuple(
        _word_task(metric_comparison, name_a, name_b)
        for metric_comparison in task.others
    )
    sentences = (
        _task_sentence(task, name_a, name_b),
        _other_metrics_sentence(task, name_a, name_b),
    )
    return replace(task, others=others, sentence=" ".join(filter(None, sentences)))


def _other_metrics_sentence(task: TaskComparison, name_a: str, name_b: str) -> str:
    """Name the other metrics by which two runs differ significantly, each tested by itself."""
    clauses = []
    for metric_comparison in task.others:
        comparison = metric_comparison.result
        if comparison.low > 0 or comparison.high < 0:
            a_is_higher = comparison.difference > 0
            # Of some classes of answers it is not known whether more of them is better.
            a_leads = a_is_higher != metric_comparison.lower_is_better
            leading_run = name_a if a_leads else name_b
            lead = "better" if metric_comparison.has_direction else "higher"
            p_text = _p_text(comparison.p_value)
            clauses.append(
                f"'{metric_comparison.metric}' (p {p_text}, {leading_run} is {lead})"
            )
    if not clauses:
        return ""
    return (
        f"They also differ significantly by {listed(clauses)}, each tested by itself."
    )


def gain_sentence(gain: ContextGain) -> str:
    """Say what passages add, over all questions."""
    difference = sentence(
        gain.parts["all"], "the model with passages", "the model without them"
    )
    return f"{gain.run}, {gain.task}: {difference}"


def worded_several(comparison: SeveralComparison) -> SeveralComparison:
    """Return the comparison with its conclusion: over all tasks if there is a mean, or by task."""
    tables = [comparison.overall] if comparison.overall else comparison.tasks
    sentences = [
        _pair_table_sentence(table, comparison.labels, comparison.baseline)
        for table in tables
    ]
    if any(
        pair.provisional and pair.n_missing for table in tables for pair in table.pairs
    ):
        sentences.append(comparison.how_to_fill)
    return replace(
        comparison,
        conclusion=" ".join(filter(None, [*sentences, *comparison.other_questions])),
    )


# -- two runs --------------------------------------------------------------------------


def sentence(
    comparison: PairedComparison, name_a: str, name_b: str, unit: str = "points"
) -> str:
    """Say who is better and by how much, or which differences would have gone undetected.

    Args:
        comparison: The comparison of two runs.
        name_a: The name of run A.
        name_b: The name of run B.
        unit: "points" shows scores from 0 to 1 times 100. Any other unit is appended to the
            unscaled numbers; "" is no unit. Numbers get the decimals that the interval supports.
    """
    if comparison.n == 0:
        return (
            f"{name_a} and {name_b} cannot be compared: no item has a score from both."
        )
    scale = 100.0 if unit == "points" else 1.0
    width = (comparison.high - comparison.low) * scale
    # Show the interval's width with two significant digits.
    decimals = (
        min(6, max(1, 1 - math.floor(math.log10(width))))
        if math.isfinite(width) and width > 0
        else 1
    )

    def show(number: float) -> str:
        return numbers.number(number * scale, "plain", decimals)

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
    no_difference = (
        f"No significant difference between {name_a} and {name_b} was found ({gap},"
        f" {details})"
    )
    visible = comparison.smallest_visible_difference
    missed = _missed_differences(
        visible,
        most=1.0 if unit == "points" else math.inf,
        show=lambda number: f"{show(number)}{word}",
    )
    return f"{no_difference}; {missed}."


def _ends_of_higher(comparison: Result) -> tuple[float, float]:
    """Return the interval of the higher score minus the lower one."""
    return (
        (comparison.low, comparison.high)
        if comparison.difference > 0
        else (-comparison.high, -comparison.low)
    )


def _missed_differences(
    visible: float, most: float, show: Callable[[float], str]
) -> str:
    """Say which differences would have gone undetected.

    Args:
        visible: The smallest difference that would have been detected.
        most: The largest difference that is possible.
        show: Formats a difference.
    """
    if math.isnan(visible):
        return "how small a difference could have been detected is not known"
    if visible >= most:
        return "with so few items any difference would often go undetected"
    return f"differences under {show(visible)} would often go undetected"


def _interval_text(
    difference: Result | MacroDifference,
    ends: tuple[float, float],
    show: Callable[[float], str],
) -> str:
    """Describe an interval, such as "95% interval 2.1 to 9.9", and what it takes into account."""
    low, high = ends
    text = (
        f"interval {show(low)} to {show(high)}" if math.isfinite(low) else "no interval"
    )
    if difference.missing_policy == "worst-case" and math.isfinite(
        difference.worst_low
    ):
        text += ", whatever the missing answers would have scored"
    return f"{100 * difference.level:g}% {text}" if math.isfinite(low) else text


def _p_text(p: float) -> str:
    text = numbers.p_value(p)
    return text if text.startswith("<") else f"= {text}"


def _cases_disagree(difference: Result | MacroDifference) -> bool:
    """Tell whether the best and the worst case of the missing answers are on different sides of 0.

    There is no p-value then.
    """
    return (
        difference.missing_policy == "worst-case"
        and math.isfinite(difference.worst_low)
        and difference.p_value >= 1
    )


def _untested(comparison: Result) -> bool:
    """Tell whether a difference has neither an interval nor a p-value."""
    return math.isnan(comparison.low) and math.isnan(comparison.p_value)


def _details(
    comparison: PairedComparison,
    ends: tuple[float, float],
    show: Callable[[float], str],
) -> str:
    details = [_interval_text(comparison, ends, show)]
    if math.isfinite(comparison.p_value) and not _cases_disagree(comparison):
        details.append(f"{comparison.test}, p {_p_text(comparison.p_value)}")
    clusters = comparison.n_clusters
    within = "" if clusters is None else f" in {counted(clusters, 'cluster')}"
    scored_in_both = " scored in both" if comparison.n_missing else ""
    details.append(f"n = {comparison.n:,}{scored_in_both}{within}")
    if comparison.n_missing:
        details.append(f"{comparison.n_missing:,} missing")
    return ", ".join(details)


def _task_sentence(task: TaskComparison, name_a: str, name_b: str) -> str:
    unit = "points" if task.bounded else "units"
    if task.paired is not None:
        text = sentence(task.paired, name_a, name_b, unit)
    else:
        assert task.unpaired is not None
        text = _unpaired_sentence(task.unpaired, name_a, name_b, unit)
    remarks = ["lower is better"] if task.lower_is_better else []
    if task.paired is not None and task.paired.n and (task.only_a or task.only_b):
        remarks.append(f"on the {counted(task.paired.n, 'item')} that both have")
    remarks += [task.other_questions] if task.other_questions else []
    return "; ".join([text.removesuffix("."), *remarks]) + "."


def _unpaired_sentence(
    comparison: UnpairedComparison, name_a: str, name_b: str, unit: str
) -> str:
    """Compare two runs that share no items, in one sentence."""
    basis = f"different items: {comparison.n_a:,} and {comparison.n_b:,}"
    if math.isnan(comparison.low):
        return (
            f"{name_a} and {name_b} cannot be compared: they share no item, and too few"
            f" items have a score ({basis})."
        )
    scale, decimals = (100.0, 1) if unit == "points" else (1.0, 3)

    def show(number: float) -> str:
        return f"{scale * number + 0.0:.{decimals}f}"

    gap = show(comparison.difference)
    n_missing = comparison.n_missing_a + comparison.n_missing_b
    significant = (
        comparison.p_value < 1 - comparison.level
        and comparison.low * comparison.high > 0
    )
    ends = (
        _ends_of_higher(comparison)
        if significant
        else (comparison.low, comparison.high)
    )
    details = _interval_text(comparison, ends, show)
    details += (
        ""
        if _cases_disagree(comparison)
        else f", {comparison.test}, p {_p_text(comparison.p_value)}"
    )
    details += f", {basis}{f', {n_missing:,} missing' if n_missing else ''}"
    if significant:
        higher, lower = (
            (name_a, name_b) if comparison.difference > 0 else (name_b, name_a)
        )
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
    """Summarise a comparison over several tasks in one or two sentences.

    Differences are a - b of scores from 0 to 1, and are shown in points of 100.

    Args:
        overall: The difference of the means over tasks.
        tasks: The comparison on each task, by its name; tasks are tested at 5% after Holm's
            correction over all of them.
        name_a: The name of run A.
        name_b: The name of run B.
    """
    claimed = _holm_significant([*tasks.values()])
    higher: dict[str, list[str]] = {name_a: [], name_b: []}
    for (task, comparison), is_claimed in zip(tasks.items(), claimed, strict=True):
        if is_claimed:
            size = f"{task} (by {100 * abs(comparison.difference):.1f})"
            higher[name_a if comparison.difference > 0 else name_b].append(size)
    clauses = [
        f"{name} scores higher on {listed(sizes)}"
        for name, sizes in higher.items()
        if sizes
    ]
    by_task = f" By task (Holm-corrected, 5%), {listed(clauses)}." if clauses else ""
    return _overall_sentence(overall, name_a, name_b) + by_task


def _overall_sentence(overall: MacroDifference, name_a: str, name_b: str) -> str:
    sample = overall.tasks_are == "sample"
    scope = "Over tasks like these" if sample else "Over all tasks"
    if (
        math.isnan(overall.low)
        and overall.missing_policy == "worst-case"
        and overall.n_missing
    ):
        return (
            f"{scope} no verdict on {name_a} and {name_b} is possible in the worst"
            f" case: what the {counted(overall.n_missing, 'missing answer')} could have"
            " scored has no known range."
        )
    if math.isnan(overall.low):
        return (
            f"{scope} {name_a} and {name_b} cannot be compared: at least one of the"
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
    details = [_interval_text(overall, ends, lambda number: f"{100 * number:.1f}")]
    details += [f"mean of {mean}"] if overall.n_tasks > 1 else []
    scored_in_both = " scored in both" if overall.n_missing else ""
    details += [f"{counted(overall.n, 'item')}{scored_in_both}"]
    details += [f"{overall.n_missing:,} missing"] if overall.n_missing else []
    basis = ", ".join(details)
    if significant:
        return (
            f"{scope} {name_a} scores {100 * difference:.1f} points higher than"
            f" {name_b} ({basis})."
        )
    missed = _missed_differences(
        overall.smallest_visible_difference,
        most=1.0,
        show=lambda number: f"{100 * number:.1f} points",
    )
    return (
        f"{scope} no significant difference between {name_a} and {name_b} was found"
        f" ({name_a} minus {name_b}: {100 * difference:+.1f} points; {basis});"
        f" {missed}."
    )


# -- several runs ----------------------------------------------------------------------


def _pair_table_sentence(
    table: PairTable, labels: Sequence[str], baseline: int | None
) -> str:
    """Say which pairs differ, which do not, and how large a difference would have been detected."""
    mean_scope = (
        "Over tasks like these"
        if table.metric == "mean over tasks like these"
        else "Over all tasks"
    )
    scope = f"On {table.task}" if table.task else mean_scope
    different = [pair for pair in table.pairs if pair.verdict in ("better", "worse")]
    open_pairs = [pair for pair in table.pairs if pair.verdict == "no difference seen"]
    uncompared = [
        pair
        for pair in table.pairs
        if pair.verdict == "not compared" and not math.isfinite(pair.low)
    ]
    n_pairs = counted(len(table.pairs), "pair") + (
        "" if baseline is None else " with the baseline"
    )
    less = "; lower is better" if table.lower_is_better else ""
    level = f"Holm-adjusted at {100 * (1 - table.level):.2g}% for {n_pairs}{less}"
    no_difference = "no two models differ significantly"
    no_difference = (
        no_difference
        if baseline is None
        else f"no model differs significantly from {labels[baseline]}"
    )
    sentences = [
        f"{scope} {_differing_pairs(different, labels, table) or no_difference} ({level})."
    ]
    if open_pairs:
        sentences.append(_inseparable_pairs(open_pairs, labels, table, baseline))
    if uncompared:
        sentences.append(_not_compared(uncompared, table.pairs, labels))
    if provisional := _provisional_pairs(table, labels):
        sentences.append(provisional)
    return " ".join(sentences)


def _differing_pairs(
    different: Sequence[Pair], labels: Sequence[str], table: PairTable
) -> str:
    if len(different) > MOST_NAMED:
        return f"{len(different)} of {len(table.pairs)} pairs differ significantly"
    clauses = []
    for pair in sorted(different, key=lambda pair: -abs(pair.difference)):
        a = pair.a
        b = pair.b
        low = pair.low
        high = pair.high
        if pair.difference < 0:
            a, b, low, high = b, a, -high, -low
        ends = f"{points(low, table.bounded)} to {points(high, table.bounded)}"
        size = _size(abs(pair.difference), table)
        clauses.append(f"{labels[a]} scores {size} higher than {labels[b]} ({ends})")
    return listed(clauses)


def _inseparable_pairs(
    pairs: Sequence[Pair], labels: Sequence[str], table: PairTable, baseline: int | None
) -> str:
    subject = f"{len(pairs)} pairs cannot be separated"
    if baseline is not None:
        names = [labels[pair.a if pair.b == baseline else pair.b] for pair in pairs]
        subject = (
            f"{listed(names, MOST_NAMED)} cannot be separated from {labels[baseline]}"
        )
    else:
        letters = sorted(
            {letter for model_letters in table.letters for letter in model_letters}
        )
        groups = [
            [
                labels[i]
                for i, model_letters in enumerate(table.letters)
                if letter in model_letters
            ]
            for letter in letters
        ]
        group_names = [
            (
                listed(group)
                if len(group) < 8
                else f"{len(group)} models from {group[0]} on"
            )
            for group in groups
            if len(group) > 1
        ]
        if 0 < len(group_names) <= MOST_NAMED:
            subject = f"These cannot be separated: {'; '.join(group_names)}"
    detectable = [pair.visible for pair in pairs if math.isfinite(pair.visible)]
    if len(detectable) < len(pairs):
        return f"{subject}; the smallest detectable difference is not known for all of them."
    smallest = min(detectable)
    largest = max(detectable)
    if table.bounded and smallest >= 1:
        return f"{subject}; with so few items no difference could be detected reliably."
    least_text = points(smallest, table.bounded)
    most_text = _size(min(largest, 1.0) if table.bounded else largest, table)
    span = (
        most_text
        if most_text.split()[0] == least_text
        else f"{least_text} to {most_text} (by pair)"
    )
    return f"{subject}; true differences under {span} would usually go undetected."


def _provisional_pairs(table: PairTable, labels: Sequence[str]) -> str:
    """Say which verdicts are provisional, and why; "" where none is."""
    pairs = [
        pair
        for pair in table.pairs
        if pair.provisional and pair.verdict in ("better", "worse")
    ]
    if not pairs:
        return ""
    reasons = list(dict.fromkeys(pair.provisional.removesuffix(".") for pair in pairs))
    names = [f"{labels[pair.a]} against {labels[pair.b]}" for pair in pairs]
    subject = f"{len(pairs)} verdicts are provisional"
    if len(pairs) <= MOST_NAMED:
        subject = f"Provisional {plural(len(pairs), 'is', 'are')} {listed(names)}"
    remaining = f"; {len(reasons) - 2} more reasons" if len(reasons) > 2 else ""
    return f"{subject}: {'; '.join(reasons[:2])}{remaining}."


def _not_compared(
    apart: Sequence[Pair], every: Sequence[Pair], labels: Sequence[str]
) -> str:
    """Name the runs that share no answers with any other run, then the remaining pairs."""
    compared_runs = {
        run
        for pair in every
        if pair.verdict != "not compared"
        for run in (pair.a, pair.b)
    }
    isolated_runs = sorted(
        {run for pair in apart for run in (pair.a, pair.b)} - compared_runs
    )
    uncompared = [
        f"{labels[pair.a]} and {labels[pair.b]}"
        for pair in apart
        if {pair.a, pair.b} <= compared_runs
    ]
    clauses = []
    if isolated_runs:
        names = listed([labels[run] for run in isolated_runs], MOST_NAMED)
        clauses.append(f"{names} could not be compared with any other")
    if uncompared:
        remaining = (
            f"; {len(uncompared) - MOST_NAMED} more"
            if len(uncompared) > MOST_NAMED
            else ""
        )
        these = "these" if isolated_runs else "These"
        clauses.append(
            f"{these} pairs could not be compared: {'; '.join(uncompared[:MOST_NAMED])}{remaining}"
        )
    if any(pair.units > 1 for pair in apart):
        return (
            f"{'; '.join(clauses)}, because this number has no intervals, as of published"
            " ones: compare a metric that has, by --metric."
        )
    return f"{'; '.join(clauses)}, because they have too few scored items in common."


def _size(number: float, table: PairTable) -> str:
    return f"{points(number, table.bounded)} {'points' if table.bounded else 'units'}"
