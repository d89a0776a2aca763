"""Documents on comparisons of two or more runs, and on the gates over them."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from evalwright.analysis.comparison import Comparison, Flip, TaskComparison
from evalwright.analysis.context_gain import ContextGain
from evalwright.analysis.gate import Gate
from evalwright.analysis.several import PairTable, SeveralComparison
from evalwright.analysis.words import merge_remarks, warn_few_clusters
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.conclusions import claimed_differences, gain_sentence, headline
from evalwright.reports.documents.run import FEW_ITEMS
from evalwright.reports.text import shorten
from evalwright.runs.slices import SliceComparison, SlicePart
from evalwright.statistics import Estimate, MacroDifference

PROVISIONAL = "provisional"
"""The note on a difference for which too many answers are missing."""

SKEWNESS_TEST = "skewness-adjusted t"

MOST_FLIPS = 5
"""Most flipped items shown per task and direction; the JSON form has more."""

MANY_TASKS = 8
"""With more tasks a comparison opens with its answer, and counts what `--details` lists."""

MOST_SETTINGS = 10
"""Most differing settings listed of a comparison of many tasks."""

QUESTION_CELLS = 60
"""Width of a question in the table of flipped items: enough to recognise it."""


def comparison_document(
    comparison: Comparison,
    gates: Sequence[Gate] = (),
    most_flips: int = MOST_FLIPS,
    *,
    all_slices: bool = False,
    details: bool = False,
) -> doc.Document:
    """Compare two runs: means, differences, tests, slices, flipped items, conclusion and gates.

    Slices that are too small to show anything are counted in one line, unless `all_slices`. Of
    many tasks, further metrics and flipped items are counted, unless `details`.
    """
    paired = all(task.paired for task in comparison.tasks)
    is_brief = len(comparison.tasks) > MANY_TASKS and not details
    answer = [doc.Conclusion(headline(comparison))] if is_brief else []
    blocks: list[doc.Block] = [
        doc.Facts([("A", comparison.a), ("B", comparison.b)]),
        *answer,
        *_differences(comparison),
        *_remarks(comparison.tasks),
        *(_count_others if is_brief else _others)(comparison.tasks),
        doc.Note(comparison.estimand, "quiet"),
        *_test_notes(comparison.tasks),
    ]
    for task in comparison.tasks:
        for sliced in task.slices:
            blocks += _slices(task, sliced, all_slices) if sliced.parts else []
    if is_brief:
        blocks += _count_flips(comparison.tasks)
    else:
        for task in comparison.tasks:
            blocks += _flips(task, most_flips)
    if comparison.differences:
        most = MOST_SETTINGS if is_brief else len(comparison.differences)
        blocks += [
            doc.Heading("Other differences between the runs"),
            *map(doc.Note, comparison.differences[:most]),
        ]
        n_more = len(comparison.differences) - most
        if n_more > 0:
            blocks.append(
                doc.Note(f"{numbers.count(n_more)} more: --details lists them.")
            )
    blocks += gain_blocks(comparison.context_gains)
    blocks += [doc.Note(caveat, "warn") for caveat in comparison.caveats]
    blocks.append(doc.Conclusion(comparison.conclusion))
    title = (
        "Comparison, paired by item"
        if paired
        else "Comparison, not all tasks paired by item"
    )
    return doc.Document(
        title, [*blocks, *(block for gate in gates for block in gate_blocks(gate))]
    )


def gains_document(run: str, gains: Sequence[ContextGain]) -> doc.Document:
    """Show what passages add to the scores of one run."""
    return doc.Document(f"Context gain of {run}", gain_blocks(gains))


def gain_blocks(gains: Sequence[ContextGain]) -> list[doc.Block]:
    """Build a table of what passages add, with a sentence for each run and task."""
    if not gains:
        return []
    columns = doc.columns(
        "Task*",
        "Run~",
        "Questions",
        "With passages>",
        "Without>",
        "Difference>",
        "p>",
        "Items>",
    )
    rows = [
        (
            gain.task,
            gain.run,
            name,
            _mean(paired.mean_a, True),
            _mean(paired.mean_b, True),
            numbers.gap(paired.difference, paired),
            numbers.p_value(paired.p_value),
            numbers.items(paired.n, paired.n_missing, paired.n_clusters),
        )
        for gain in gains
        for name, paired in gain.parts.items()
    ]
    notes = [doc.Note(gain_sentence(gain), "quiet") for gain in gains]
    head = doc.Heading("Context gain: answers with passages minus answers without")
    return [head, doc.Table(columns, rows), *notes]


def gate_blocks(gate: Gate) -> list[doc.Block]:
    """Show the rules of a gate, the outcome of each, and whether the gate failed."""
    columns = doc.columns("*", "Rule~", "Found~")
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell("FAILED", "bad") if outcome.failed else doc.Cell("passed", "good"),
            outcome.rule,
            outcome.sentence,
        )
        for outcome in gate.outcomes
    ]
    conclusion = doc.Conclusion(gate.conclusion, "bad" if gate.failed else "good")
    return [doc.Heading("Gate"), doc.Table(columns, rows, "Gate"), conclusion]


def detectable_text(least: float, bounded: bool) -> str:
    """Format the smallest difference that would be detected, or "none"."""
    return "none" if bounded and least >= 1.0 else _mean(least, bounded)


def direction_note(comparison: TaskComparison | PairTable) -> str:
    """Return the remark beside the name of a metric for which lower is better."""
    return ", lower is better" if comparison.lower_is_better else ""


_COLUMNS = (
    "Task*",
    "A>",
    "B>",
    "A - B>",
    "p>",
    "Test~",
    "Min. detectable>",
    "Wins A : B>",
    "Items>",
)


def _differences(comparison: Comparison) -> Iterator[doc.Table]:
    """Build one table for all tasks in points, and one for each metric in another unit."""
    units: dict[str, list[Sequence[doc.Content]]] = {}
    claimed = claimed_differences(comparison)
    for task, is_claimed in zip(comparison.tasks, claimed, strict=True):
        units.setdefault("" if task.bounded else task.metric, []).append(
            _difference(task, is_claimed)
        )
    for group in comparison.groups:
        units.setdefault("", []).append(
            _mean_row(
                f"{group.name}, {group.average}: {group.coverage}", group.difference
            )
        )
    if comparison.overall and all(
        group.difference is not comparison.overall for group in comparison.groups
    ):
        tasks = numbers.counted(comparison.overall.n_tasks, "task")
        units[""].append(_mean_row(f"mean of {tasks}", comparison.overall))
    for rows in units.values():
        yield doc.Table(doc.columns(*_COLUMNS), rows, "Differences")


def _others(tasks: Sequence[TaskComparison]) -> Iterator[doc.Block]:
    """Write a line for each of the other metrics."""
    for task in tasks:
        for metric_comparison in task.others:
            comparison = metric_comparison.result
            a, b = (
                _mean(mean, metric_comparison.bounded)
                for mean in (comparison.mean_a, comparison.mean_b)
            )
            gap = numbers.gap(
                comparison.difference, comparison, bounded=metric_comparison.bounded
            )
            text = f"A {a}, B {b}, A - B {gap}, p {numbers.p_value(comparison.p_value)}"
            if comparison.test.startswith("none"):
                text += comparison.test.replace("none", ", no test", 1)
            metric = f"{metric_comparison.metric}{direction_note(metric_comparison)}"
            yield doc.Note(f"{task.task}, also {metric}: {text}.", "quiet")

            new_warnings = [
                warning
                for warning in metric_comparison.warnings
                if warning not in task.warnings
            ]
            yield from (
                doc.Note(f"{task.task}: {warning}", "warn") for warning in new_warnings
            )


def _count_others(tasks: Sequence[TaskComparison]) -> Iterator[doc.Note]:
    """Say in a line on how many tasks each of the other metrics differs."""
    n_tasks: dict[str, int] = {}
    n_differing: dict[str, int] = {}
    for task in tasks:
        for comparison in task.others:
            name = comparison.metric
            is_apart = comparison.result.low > 0 or comparison.result.high < 0
            n_tasks[name] = n_tasks.get(name, 0) + 1
            n_differing[name] = n_differing.get(name, 0) + is_apart
    if not n_tasks:
        return
    counts = ", ".join(
        f"{name} on {numbers.count(n_differing[name])} of {numbers.counted(n, 'task')}"
        for name, n in n_tasks.items()
    )
    yield doc.Note(
        "Other metrics, on how many tasks the two differ significantly (each tested by"
        f" itself): {counts}. --details lists them.",
        "quiet",
    )


def _count_flips(tasks: Sequence[TaskComparison]) -> Iterator[doc.Note]:
    """Say in a line how many items the two runs score differently."""
    n_a = sum(task.n_a_higher for task in tasks)
    n_b = sum(task.n_b_higher for task in tasks)
    if n_a or n_b:
        yield doc.Note(
            f"Items that A and B score differently: {numbers.count(n_a)} higher in A,"
            f" {numbers.count(n_b)} higher in B. --details lists some of each task.",
            "quiet",
        )


def _mean_row(
    name: str, mean_difference: MacroDifference | None
) -> Sequence[doc.Content]:
    """Build the row of a mean over tasks; only its name where it has no number."""
    if mean_difference is None:
        return (name, "", "", numbers.NOTHING, "", "", "", "", "")

    test = "t" if mean_difference.n_tasks > 1 else ""
    if mean_difference.tasks_are == "sample":
        test = "t, tasks as a sample"
    return (
        name,
        "",
        "",
        numbers.gap(mean_difference.difference, mean_difference),
        numbers.p_value(mean_difference.p_value),
        test,
        detectable_text(mean_difference.smallest_visible_difference, True),
        "",
        numbers.items(mean_difference.n, mean_difference.n_missing),
    )


def _difference(task: TaskComparison, is_claimed: bool) -> Sequence[doc.Content]:
    comparison = task.result
    paired = task.paired
    if paired:
        detectable = detectable_text(paired.smallest_visible_difference, task.bounded)
        n_items = numbers.items(paired.n, paired.n_missing, paired.n_clusters)
    else:
        assert task.unpaired is not None
        detectable = ""
        n_items = (
            f"{numbers.count(task.unpaired.n_a)} and {numbers.count(task.unpaired.n_b)}"
        )
    difference = numbers.gap(comparison.difference, comparison, bounded=task.bounded)
    return (
        f"{task.task} ({task.metric}{direction_note(task)})",
        *(_mean(mean, task.bounded) for mean in (comparison.mean_a, comparison.mean_b)),
        doc.Cell(
            difference,
            "strong" if is_claimed else "",
            note=PROVISIONAL if task.provisional else "",
        ),
        numbers.p_value(comparison.p_value),
        comparison.test if paired else f"unpaired: {comparison.test}",
        detectable,
        _wins(task),
        n_items,
    )


def _wins(task: TaskComparison) -> str:
    """Count the items that A and B win; "" where it is not known which scores are better."""
    paired = task.paired
    if paired is None or paired.discordant is None or not task.has_direction:
        return ""
    higher_in_a, higher_in_b = paired.discordant
    if task.lower_is_better:
        return f"{higher_in_b} : {higher_in_a}"
    return f"{higher_in_a} : {higher_in_b}"


def _mean(mean: float, bounded: bool) -> str:
    return numbers.points(mean) if bounded else numbers.number(mean, "plain", 3)


def _test_notes(tasks: Sequence[TaskComparison]) -> Iterator[doc.Note]:
    """Say where a test that few readers know by name is described."""
    if any(SKEWNESS_TEST in task.result.test for task in tasks):
        yield doc.Note(
            f"'{SKEWNESS_TEST}': Student's t, corrected for a few large differences"
            " (docs/reference/paired-tests.md).",
            "quiet",
        )


def _remarks(tasks: Sequence[TaskComparison]) -> Iterator[doc.Note]:
    """Write remarks on the tasks, each once, with the names of the tasks it applies to."""
    for names, text in merge_remarks(
        (task.task, text) for task in tasks for text in _remarks_on(task)
    ):
        yield doc.Note(f"{names}: {text}", "warn")
    if any(task.paired and task.paired.n_missing for task in tasks):
        worst = any(task.result.missing_policy == "worst-case" for task in tasks)
        text = (
            "Missing answers are left out: differences are those of the items that both"
            " runs have a score for."
        )
        if worst:
            text = (
                "Intervals and p hold whatever the missing answers would have scored."
            )
        yield doc.Note(text, "quiet")


def _remarks_on(task: TaskComparison) -> Iterator[str]:
    if task.paired:
        counts = ((task.only_a, "only in A"), (task.only_b, "only in B"))
        left_out = [f"{numbers.counted(n, 'item')} {where}" for n, where in counts if n]
        if left_out:
            yield f"left out of the comparison: {', '.join(left_out)}."
        if task.paired.n_clusters:
            warning = warn_few_clusters(task.paired.effective_units)
            if warning:
                yield warning
    yield from task.warnings


def _is_finding(subset: SlicePart) -> bool:
    return subset.paired.verdict != "no difference seen"


def _is_too_small(subset: SlicePart) -> bool:
    """Whether a slice has so few items that it could hardly show a difference, and shows none."""
    if _is_finding(subset):
        return False
    return subset.paired.n < FEW_ITEMS or math.isnan(subset.paired.p_value)


def _slices(
    task: TaskComparison, sliced: SliceComparison, all_slices: bool
) -> Iterator[doc.Block]:
    """Show a comparison by slice: findings first, and slices that are too small as a count."""
    title = f"{task.task} by {sliced.key}"
    too_small = [
        subset for subset in sliced.parts if not all_slices and _is_too_small(subset)
    ]
    if len(too_small) < 2:
        too_small = []
    listed_slices = sorted(
        (subset for subset in sliced.parts if subset not in too_small),
        key=lambda subset: not _is_finding(subset),
    )
    yield doc.Heading(title)
    if listed_slices:
        yield _slice_table(task, sliced.key, listed_slices)
    if too_small:
        n_items = sum(subset.paired.n for subset in too_small)
        scope = "All" if not listed_slices else f"{len(too_small)} of the"
        yield doc.Note(
            f"{scope} {len(sliced.parts)} values of '{sliced.key}' have under"
            f" {FEW_ITEMS} items, or nothing to test, and no finding"
            f" ({numbers.counted(n_items, 'item')}): --all-slices shows them."
        )
    if not listed_slices:
        return
    level = sliced.parts[0].paired.level
    note = (
        f"Adjustment: {sliced.correction}. A slice differs where the adjusted p is"
        " below 0.05; intervals have the level that agrees with it"
        f" ({100 * level:.4g}%)."
    )
    if sliced.without:
        without = numbers.counted(sliced.without, "item")
        note += (
            f" {without} without a value {numbers.plural(sliced.without, 'is', 'are')}"
            " in no slice."
        )
    yield doc.Note(note, "quiet")


def _slice_table(
    task: TaskComparison, key: str, subsets: Sequence[SlicePart]
) -> doc.Table:
    columns = [
        doc.Column(key, folds=True, key=True),
        *doc.columns(
            "A>", "B>", "A - B>", "p>", "p adjusted>", "Min. detectable>", "Items>"
        ),
    ]
    rows: list[Sequence[doc.Content]] = []
    for subset in subsets:
        paired = subset.paired
        difference = numbers.gap(paired.difference, paired, bounded=task.bounded)
        rows.append(
            (
                subset.value,
                _mean(paired.mean_a, task.bounded),
                _mean(paired.mean_b, task.bounded),
                doc.Cell(
                    difference,
                    "strong" if _is_finding(subset) else "",
                ),
                numbers.p_value(paired.p_value),
                numbers.p_value(subset.p_adjusted),
                detectable_text(paired.smallest_visible_difference, task.bounded),
                numbers.items(paired.n, paired.n_missing, paired.n_clusters),
            )
        )
    return doc.Table(columns, rows, f"{task.task} by {key}")


def _flips(task: TaskComparison, most: int) -> Iterator[doc.Block]:
    flips: list[Flip] = []
    for a_higher in (True, False):
        flips += [flip for flip in task.flips if (flip.a > flip.b) == a_higher][:most]
    if not flips:
        return
    counts = (
        f"{numbers.count(task.n_a_higher)} higher in A,"
        f" {numbers.count(task.n_b_higher)} higher in B"
    )
    extent = f", the first {len(flips)}" if task.n_differing > len(flips) else ""
    yield doc.Heading(
        f"{task.task}: items that A and B score differently ({counts}){extent}"
    )
    has_questions = any(flip.question for flip in flips)
    rows = [
        (
            shorten(flip.id, 100),
            *([shorten(flip.question, QUESTION_CELLS)] if has_questions else []),
            *(_mean(score, task.bounded) for score in (flip.a, flip.b)),
        )
        for flip in flips
    ]
    question = ["Question~"] if has_questions else []
    columns = doc.columns("Item*", *question, "A>", "B>")
    yield doc.Table(columns, rows, "Items scored differently")


# -- three runs and more ---------------------------------------------------------------


MOST_PAIRS = 60
"""Most pairs shown in a table; the JSON form has all."""


def several_document(
    comparison: SeveralComparison, gates: Sequence[Gate] = ()
) -> doc.Document:
    """Compare three or more runs: scores, differences of pairs, conclusion and gates.

    All pairs are compared, or each run with the baseline where there is one.
    """
    count = numbers.counted(len(comparison.runs), "run")
    base = comparison.baseline
    against = "all pairs" if base is None else f"each against {comparison.labels[base]}"
    blocks: list[doc.Block] = []
    for table in [
        *([comparison.overall] if comparison.overall else []),
        *comparison.tasks,
    ]:
        name = table.task or "Over all tasks"
        blocks += [
            doc.Heading(f"{name} ({table.metric}{direction_note(table)})"),
            _runs(comparison, table),
            _pairs([table]),
            _correction_note([table]),
        ]
    for table in comparison.others:
        blocks += [
            doc.Heading(f"{table.task}, also {table.metric}{direction_note(table)}"),
            _runs(comparison, table),
        ]
    blocks += [doc.Note(warning, "warn") for warning in comparison.warnings]
    blocks.append(doc.Note(comparison.estimand, "quiet"))
    for task in comparison.tasks:
        tables = [table for table in comparison.slices if table.task == task.task]
        if tables:
            blocks += [
                doc.Heading(f"{task.task} by slice"),
                _pairs(tables),
                _correction_note(tables),
            ]
    if comparison.differences:
        blocks.append(
            doc.Heading(f"Other differences from {comparison.runs[base or 0]}")
        )
        blocks += _settings_notes(comparison)
    blocks += [doc.Note(caveat, "warn") for caveat in comparison.caveats]
    blocks.append(doc.Conclusion(comparison.conclusion))
    blocks += [block for gate in gates for block in gate_blocks(gate)]
    return doc.Document(f"Comparison of {count}, {against}, paired by item", blocks)


def _settings_notes(comparison: SeveralComparison) -> Iterator[doc.Note]:
    """Write a line for each difference in the settings, with the runs that have it."""
    runs_by_difference: dict[str, list[str]] = {}
    for run, lines in comparison.differences.items():
        for line in lines:
            runs_by_difference.setdefault(line, []).append(run)
    everywhere = len(comparison.runs) - 1
    for line, runs in runs_by_difference.items():
        yield doc.Note(
            f"{line} (in"
            f" {'all others' if len(runs) == everywhere > 1 else ', '.join(runs)})"
        )


def _correction_note(tables: Sequence[PairTable]) -> doc.Note:
    """Explain how intervals and p-values were adjusted."""
    text = f"Intervals of differences and adjusted p: {tables[0].correction}."
    if len(tables[0].pairs) > 1 and not tables[0].slice:
        text += (
            " Each interval has the level at which its pair was tested, so it agrees"
            " with the verdict."
        )
    n_hidden = sum(max(0, len(table.pairs) - MOST_PAIRS) for table in tables)
    if n_hidden:
        text += (
            f" {numbers.counted(n_hidden, 'more pair')} {numbers.plural(n_hidden, 'is', 'are')}"
            " in the JSON form."
        )
    return doc.Note(text, "quiet")


def _runs(comparison: SeveralComparison, table: PairTable) -> doc.Table:
    sign = 1 if table.lower_is_better else -1
    values = [mean.value for mean in table.means]
    order = sorted(
        range(len(values)), key=lambda i: (values[i] != values[i], sign * values[i], i)
    )
    number = doc.Column("#", right=True, key=True)
    columns = [number, *doc.columns("Model*", "Score", "Items>", "Rank>", "Tied")]
    unit: numbers.Unit = "points" if table.bounded else "plain"
    rows: list[Sequence[doc.Content]] = [
        (
            str(i + 1),
            doc.Cell(comparison.labels[i], "strong", name=True),
            doc.Number(table.means[i], unit),
            _item_count(table.means[i]),
            numbers.ranks(table.ranks[i]) if table.ranks else "",
            table.letters[i] if table.letters else "",
        )
        for i in order
    ]
    return doc.Table(columns, rows, "Scores")


def _item_count(mean: Estimate) -> str:
    """Format the number of scored items, out of all items if some have no score."""
    total = f" of {numbers.count(mean.n + mean.n_missing)}" if mean.n_missing else ""
    clusters = (
        ""
        if mean.n_clusters is None
        else f" in {numbers.counted(mean.n_clusters, 'cluster')}"
    )
    return f"{numbers.count(mean.n)}{total}{clusters}"


def _pairs(tables: Sequence[PairTable]) -> doc.Table:
    """Build a table of pairs, largest difference first, pairs without a difference last.

    Pairs are named by the numbers of their runs, the higher one first.
    """
    columns = [
        doc.Column("Slice", folds=True, key=any(table.slice for table in tables)),
        doc.Column("Pair", key=True),
        *doc.columns("Difference>", "p adjusted>", "Min. detectable>", "Items>"),
    ]
    rows: list[Sequence[doc.Content]] = []
    for table in tables:
        sorted_pairs = sorted(
            table.pairs,
            key=lambda pair: (math.isnan(pair.difference), -abs(pair.difference)),
        )
        for pair in sorted_pairs[:MOST_PAIRS]:
            a = pair.a
            b = pair.b
            gap = pair.difference
            low = pair.low
            high = pair.high
            if gap < 0:
                a, b, gap, low, high = b, a, -gap, -high, -low
            difference = numbers.difference(gap, low, high, bounded=table.bounded)
            rows.append(
                (
                    table.slice,
                    f"{a + 1} - {b + 1}",
                    doc.Cell(
                        difference,
                        "strong" if pair.verdict in ("better", "worse") else "",
                        note=PROVISIONAL if pair.provisional else "",
                    ),
                    numbers.p_value(pair.p_adjusted),
                    detectable_text(pair.visible, table.bounded),
                    (
                        numbers.items(pair.n, pair.n_missing)
                        if pair.n or pair.verdict == "not compared"
                        else "unpaired"
                    ),
                )
            )
    return doc.Table(columns, rows, "Pairs")
