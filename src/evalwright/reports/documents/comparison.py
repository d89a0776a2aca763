"""A comparison of two runs, and a gate over it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from evalwright.analysis.comparison import Comparison, Flip, TaskComparison
from evalwright.analysis.context_gain import ContextGain
from evalwright.analysis.gate import Gate
from evalwright.analysis.several import PairTable
from evalwright.analysis.words import said_once
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.conclusions import gain_sentence
from evalwright.reports.text import shorten
from evalwright.runs.slices import SliceComparison
from evalwright.statistics import MacroDifference

MOST_FLIPS = 5
"""Flipped items shown per task and direction; the JSON form has more."""


def comparison_document(
    comparison: Comparison, gates: Sequence[Gate] = (), most_flips: int = MOST_FLIPS
) -> doc.Document:
    """Two runs side by side: means, differences, tests, slices, flipped items, the conclusion, and the gates below it."""
    paired = all(task.paired for task in comparison.tasks)
    blocks: list[doc.Block] = [
        doc.Facts([("A", comparison.a), ("B", comparison.b)]),
        *_differences(comparison),
        *_remarks(comparison.tasks),
        *_others(comparison.tasks),
        doc.Note(comparison.estimand, "quiet"),
    ]
    for task in comparison.tasks:
        for sliced in task.slices:
            blocks += _slices(task, sliced) if sliced.parts else []
    for task in comparison.tasks:
        blocks += _flips(task, most_flips)
    if comparison.differences:
        blocks += [doc.Heading("Other differences between the runs"), *map(doc.Note, comparison.differences)]
    blocks += gain_blocks(comparison.context_gains)
    blocks.append(doc.Conclusion(comparison.conclusion))
    title = "Comparison, paired by item" if paired else "Comparison, not all tasks paired by item"
    return doc.Document(title, [*blocks, *(block for gate in gates for block in gate_blocks(gate))])


def gains_document(run: str, gains: Sequence[ContextGain]) -> doc.Document:
    """What passages add to one run."""
    return doc.Document(f"Context gain of {run}", gain_blocks(gains))


def gain_blocks(gains: Sequence[ContextGain]) -> list[doc.Block]:
    """What passages add: a row for each run, task and part of the questions, and a sentence over all questions of each."""
    if not gains:
        return []
    columns = doc.columns(
        "Task*", "Run~", "Questions", "With passages>", "Without>", "Difference>", "p>", "Items>"
    )
    rows = [
        (
            gain.task,
            gain.run,
            name,
            _mean(part.mean_a, True),
            _mean(part.mean_b, True),
            numbers.gap(part.difference, part),
            numbers.p_value(part.p_value),
            numbers.items(part.n, part.n_missing, part.n_clusters, failed="unscored"),
        )
        for gain in gains
        for name, part in gain.parts.items()
    ]
    notes = [doc.Note(gain_sentence(gain), "quiet") for gain in gains]
    head = doc.Heading("Context gain: answers with passages minus answers without")
    return [head, doc.Table(columns, rows), *notes]


def gate_blocks(gate: Gate) -> list[doc.Block]:
    """The rules of a gate, what was found of each, and whether it failed."""
    columns = doc.columns("*", "Rule~", "Found~")
    rows: list[Sequence[doc.Content]] = [
        (
            doc.Cell("FAILED", "bad") if outcome.failed else doc.Cell("passed", "good"),
            outcome.rule,
            outcome.sentence,
        )
        for outcome in gate.outcomes
    ]
    said = doc.Conclusion(gate.conclusion, "bad" if gate.failed else "good")
    return [doc.Heading("Gate"), doc.Table(columns, rows, "Gate"), said]


def visible(least: float, bounded: bool) -> str:
    """The smallest difference that would be detected; "none" where none would."""
    return "none" if bounded and least >= 1.0 else _mean(least, bounded)


def less(one: TaskComparison | PairTable) -> str:
    """What stands beside the name of a metric of which lower is better."""
    return ", lower is better" if one.lower_is_better else ""


_COLUMNS = "Task*", "A>", "B>", "A - B>", "p>", "Test~", "Min. detectable>", "Wins A : B>", "Items>"


def _differences(comparison: Comparison) -> Iterator[doc.Table]:
    """A table for the tasks in points, and one for each metric in another unit."""
    units: dict[str, list[Sequence[doc.Content]]] = {}
    for task in comparison.tasks:
        units.setdefault("" if task.bounded else task.metric, []).append(_difference(task))
    for one in comparison.groups:
        units.setdefault("", []).append(
            _mean_row(f"{one.name}, {one.average}: {one.coverage}", one.difference)
        )
    if comparison.overall and all(one.difference is not comparison.overall for one in comparison.groups):
        tasks = numbers.counted(comparison.overall.n_tasks, "task")
        units[""].append(_mean_row(f"mean of {tasks}", comparison.overall))
    for rows in units.values():
        yield doc.Table(doc.columns(*_COLUMNS), rows, "Differences")


def _others(tasks: Sequence[TaskComparison]) -> Iterator[doc.Block]:
    """The other metrics, a line each."""
    for task in tasks:
        for other in task.others:
            found = other.result
            a, b = (_mean(mean, other.bounded) for mean in (found.mean_a, found.mean_b))
            gap = numbers.gap(found.difference, found, bounded=other.bounded)
            said = f"A {a}, B {b}, A - B {gap}, p {numbers.p_value(found.p_value)}"
            said += found.test.replace("none", ", no test", 1) if found.test.startswith("none") else ""
            yield doc.Note(f"{task.task}, also {other.metric}{less(other)}: {said}.", "quiet")
            more = [one for one in other.warnings if one not in task.warnings]
            yield from (doc.Note(f"{task.task}: {one}", "warn") for one in more)


def _mean_row(name: str, whole: MacroDifference | None) -> Sequence[doc.Content]:
    """A mean over tasks; nothing but its name where it has no number."""
    if whole is None:
        return (name, "", "", numbers.NOTHING, "", "", "", "", "")
    return (
        name,
        "",
        "",
        numbers.gap(whole.difference, whole),
        numbers.p_value(whole.p_value),
        "t, tasks as a sample" if whole.tasks_are == "sample" else "t" if whole.n_tasks > 1 else "",
        visible(whole.smallest_visible_difference, True),
        "",
        numbers.items(whole.n, whole.n_missing, failed="unscored"),
    )


def _difference(task: TaskComparison) -> Sequence[doc.Content]:
    result, paired = task.result, task.paired
    discordant = f"{paired.discordant[0]} : {paired.discordant[1]}" if paired and paired.discordant else ""
    if paired:
        least = visible(paired.smallest_visible_difference, task.bounded)
        items = numbers.items(paired.n, paired.n_missing, paired.n_clusters, failed="unscored")
    else:
        assert task.unpaired is not None
        least, items = "", f"{numbers.count(task.unpaired.n_a)} and {numbers.count(task.unpaired.n_b)}"
    significant = result.p_value < 1 - result.level and (result.low > 0 or result.high < 0)
    difference = numbers.gap(result.difference, result, bounded=task.bounded)
    return (
        f"{task.task} ({task.metric}{less(task)})",
        *(_mean(mean, task.bounded) for mean in (result.mean_a, result.mean_b)),
        doc.Cell(difference, "strong" if significant else ""),
        numbers.p_value(result.p_value),
        result.test if paired else f"unpaired: {result.test}",
        least,
        discordant,
        items,
    )


def _mean(mean: float, bounded: bool) -> str:
    return numbers.points(mean) if bounded else numbers.number(mean, "plain", 3)


def _remarks(tasks: Sequence[TaskComparison]) -> Iterator[doc.Note]:
    """What to know of the tasks, each remark once with the names of all that it is true of."""
    for names, text in said_once((task.task, text) for task in tasks for text in _remarks_on(task)):
        yield doc.Note(f"{names}: {text}", "warn")
    if any(task.paired and task.paired.n_missing for task in tasks):
        yield doc.Note("Intervals and p hold whatever the unscored items would have scored.", "quiet")


def _remarks_on(task: TaskComparison) -> Iterator[str]:
    counts = (task.only_a, "only in A"), (task.only_b, "only in B")
    parts = [f"{numbers.counted(n, 'item')} {what}" for n, what in counts if n and task.paired]
    if parts:
        yield f"left out of the comparison: {', '.join(parts)}."
    if task.paired and task.paired.n_clusters and (few := numbers.few_clusters(task.paired.effective_units)):
        yield few
    yield from task.warnings


def _slices(task: TaskComparison, sliced: SliceComparison) -> Iterator[doc.Block]:
    columns = [
        doc.Column(sliced.key, folds=True, key=True),
        *doc.columns("A>", "B>", "A - B>", "p>", "p adjusted>", "Min. detectable>", "Items>"),
    ]
    rows: list[Sequence[doc.Content]] = []
    for part in sliced.parts:
        paired = part.paired
        difference = numbers.gap(paired.difference, paired, bounded=task.bounded)
        rows.append(
            (
                part.value,
                _mean(paired.mean_a, task.bounded),
                _mean(paired.mean_b, task.bounded),
                doc.Cell(difference, "" if paired.verdict == "no difference seen" else "strong"),
                numbers.p_value(paired.p_value),
                numbers.p_value(part.p_adjusted),
                visible(paired.smallest_visible_difference, task.bounded),
                numbers.items(paired.n, paired.n_missing, paired.n_clusters, failed="unscored"),
            )
        )
    level = sliced.parts[0].paired.level
    note = (
        f"Adjustment: {sliced.correction}. A slice differs where the adjusted p is below 0.05; "
        f"intervals have the level that agrees with it ({100 * level:.4g}%)."
    )
    if sliced.without:
        without = numbers.counted(sliced.without, "item")
        note += f" {without} without a value {numbers.plural(sliced.without, 'is', 'are')} in no slice."
    yield doc.Heading(f"{task.task} by {sliced.key}")
    yield doc.Table(columns, rows, f"{task.task} by {sliced.key}")
    yield doc.Note(note, "quiet")


def _flips(task: TaskComparison, most: int) -> Iterator[doc.Block]:
    shown: list[Flip] = []
    for a_higher in (True, False):
        shown += [flip for flip in task.flips if (flip.a > flip.b) == a_higher][:most]
    if not shown:
        return
    counts = f"{numbers.count(task.n_a_higher)} higher in A, {numbers.count(task.n_b_higher)} higher in B"
    more = f", the first {len(shown)}" if task.n_differing > len(shown) else ""
    yield doc.Heading(f"{task.task}: items that A and B score differently ({counts}){more}")
    rows = [
        (shorten(flip.id, 100), *(_mean(score, task.bounded) for score in (flip.a, flip.b))) for flip in shown
    ]
    yield doc.Table(doc.columns("Item*", "A>", "B>"), rows, "Items scored differently")
