"""What the terminal shows of one run: metrics, slices, failures and what to do, usage, hardware, and where its files are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evalwright.reports import numbers
from evalwright.reports.advice import failure_notes
from evalwright.reports.hardware_view import hardware_facts
from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table
from evalwright.reports.stopping_sentences import stopping_sentences
from evalwright.reports.text import inert, shorten
from evalwright.runs.stopping import ended_early
from evalwright.runs.writer import RUN_FILE

if TYPE_CHECKING:
    from evalwright.runs.reader import Run
    from evalwright.runs.results import MetricResult, TaskResult

MOST_SLICES = 12
"""Values of a slice key that the terminal shows, the largest ones; `run.json` has all."""


def run_blocks(run: Run, *, slices: bool = True) -> list[Block]:
    """The page of one run, with or without its scores by slice."""
    blocks: list[Block] = [Heading(f"Run {inert(run.id)}"), _facts(run)]
    for task in run.tasks:
        blocks += _task(task, slices)
    blocks += _groups(run)
    blocks += _stopping(run)
    blocks += _failures(run)
    blocks += _usage(run.data)
    blocks += _hardware(run.data)
    return blocks


def _pairs(rows: list[tuple[str, str]]) -> Table:
    return Table((Column(""), Column("", folds=True)), tuple(rows), {}, indent=2)


def _facts(run: Run) -> Table:
    data = run.data
    model = inert(run.model) if run.model == run.label else f"{inert(run.label)} ({inert(run.model)})"
    rows = [
        ("Model", model),
        ("Fingerprint", inert(data["model"].get("fingerprint", numbers.NOTHING))),
    ]
    rows += [
        (f"Role {inert(role)}", inert(other.get("name", ""))) for role, other in data.get("roles", {}).items()
    ]
    return _pairs([*rows, ("Made", made(data))])


def made(data: Mapping[str, Any]) -> str:
    """When and how a run was made, in one line."""
    configuration = data["configuration"]
    limit = configuration.get("limit")
    parts = [
        inert(data["started"])[:16].replace("T", " "),
        f"in {numbers.duration(float(data['seconds']))}",
        f"evalwright {inert(data['evalwright'])}",
        f"seed {inert(configuration.get('seed'))}",
    ]
    if limit is not None:
        parts.append(f"limit {inert(limit)}")
    return ", ".join(parts)


def _task(task: TaskResult, slices: bool) -> list[Block]:
    samples = numbers.counted(task.n_samples, "sample")
    failed = f", {numbers.count(task.n_failed)} failed" if task.n_failed else ""
    failed += f", {numbers.count(task.n_undecided)} undecided" if task.n_undecided else ""
    blocks: list[Block] = [Heading(f"{inert(task.name)} (version {inert(task.version)}): {samples}{failed}")]
    if not task.metrics:
        return [*blocks, Line("No metric.", "quiet", indent=2)]
    blocks.append(_metrics(task.metrics))
    for metric in task.metrics[:1]:
        ends = numbers.bounds(metric.estimate, numbers.unit_of(metric.kind))
        if ends:
            n, undecided = metric.estimate.n_missing, metric.estimate.n_undecided
            what = "failed" if not undecided else "undecided" if n == undecided else "failed or undecided"
            text = (
                f"{numbers.counted(n, f'{what} item')} {numbers.plural(n, 'is', 'are')} not in "
                f"{inert(metric.label)}: it would be {ends[0]} with {numbers.plural(n, 'it', 'all of them')} wrong, "
                f"{ends[1]} with {numbers.plural(n, 'it', 'all of them')} right."
            )
            blocks.append(Line(text, "warn", indent=2, hang=2))
    for key, by_value in task.slices.items() if slices else ():
        blocks += [Gap(), *_slices(key, by_value)]
    if task.slices_left_out and slices:
        keys = ", ".join(inert(key) for key in task.slices_left_out)
        blocks.append(Line(f"Too many values to slice by: {keys}.", "quiet", indent=2))
    return blocks


def _groups(run: Run) -> list[Block]:
    """Averages over groups of tasks, a table for each group."""
    blocks: list[Block] = []
    for group in run.groups:
        shown = group.name if group.name.endswith(group.label) else f"{group.label} ({group.name})"
        title = f"Group {inert(shown)}: {numbers.counted(len(group.tasks), 'task')}"
        blocks += [Heading(title), _metrics(group.metrics)]
    return blocks


def _metrics(metrics: Sequence[MetricResult]) -> Table:
    columns = (
        Column("Metric", folds=True, key=True),
        Column("Value [interval]"),
        Column("Items", right=True),
        Column("Interval by", folds=True),
    )
    rows = tuple(_metric(metric) for metric in metrics)
    return Table(columns, rows, {(i, 1): "strong" for i in range(len(rows))}, indent=2)


def _metric(metric: MetricResult) -> tuple[str, ...]:
    estimate = metric.estimate
    return (
        inert(metric.label),
        numbers.score(estimate, numbers.unit_of(metric.kind)),
        numbers.items(estimate.n, estimate.n_failed, estimate.n_clusters),
        inert(estimate.method)
        if math.isnan(estimate.value)
        else f"{100 * estimate.level:g}% {inert(estimate.method)}",
    )


def _slices(key: str, by_value: Mapping[str, tuple[MetricResult, ...]]) -> list[Block]:
    """The main metric by slice; slices are read in the order of the record, largest ones first where there are many."""
    mains = {value: metrics[0] for value, metrics in by_value.items() if metrics}
    if not mains:
        return []
    largest = sorted(mains, key=lambda value: -mains[value].estimate.n)[:MOST_SLICES]
    shown = [value for value in mains if value in largest]
    first = mains[shown[0]]
    estimates = [mains[value].estimate for value in shown]
    scores = numbers.aligned_scores(estimates, numbers.unit_of(first.kind))
    rows = tuple(
        (shorten(inert(value), 60), score, numbers.count(estimate.n), _failed(estimate.n_failed))
        for value, score, estimate in zip(shown, scores, estimates, strict=True)
    )
    columns = (
        Column(f"By {inert(key)}", folds=True, key=True),
        Column(inert(first.label)),
        Column("Items", right=True),
        Column("Failed" if any(estimate.n_failed for estimate in estimates) else "", right=True),
    )
    blocks: list[Block] = [Table(columns, rows, {}, indent=2)]
    if len(mains) > len(shown):
        text = f"The {len(shown)} largest of {len(mains)}; {RUN_FILE} has all."
        blocks.append(Line(text, "quiet", indent=2))
    return blocks


def _stopping(run: Run) -> list[Block]:
    """What stopping rules and the budget said."""
    said = stopping_sentences(run)
    if not said:
        return []
    title = Heading("Stopped early" if ended_early(run) else "Stopping rules")
    return [title, *(Line(inert(text), indent=2, hang=2) for text in said)]


def _failed(n: int) -> str:
    return numbers.count(n) if n else ""


def _failures(run: Run) -> list[Block]:
    notes = failure_notes(run)
    if not notes:
        return []
    blocks: list[Block] = [Heading("Failures (counted apart, not scored as wrong)")]
    for note in notes:
        blocks.append(
            Line(f"{numbers.count(note.count)} × {inert(note.kind)}: {note.advice}", indent=2, hang=2)
        )
        if note.example:
            blocks.append(Line(f"First: {shorten(inert(note.example), 300)}", "quiet", indent=4, hang=2))
    return blocks


def _usage(data: Mapping[str, Any]) -> list[Block]:
    usage = data["usage"]
    rows = [("Requests", requests(usage)), ("Tokens", token_counts(usage.get("usage", {})))]
    if usage.get("cost") is not None:
        rows.append(("Cost", numbers.money(usage["cost"])))
    return [Heading("Usage"), _pairs(rows)]


def _hardware(data: Mapping[str, Any]) -> list[Block]:
    rows = [(name, inert(words)) for name, words in hardware_facts(data)]
    return [Heading("Hardware"), _pairs(rows)] if rows else []


def requests(usage: Mapping[str, Any]) -> str:
    """How the requests ended: asked, from the store, joined, failed; and how many were sent again."""
    parts = [
        f"{numbers.count(usage.get('asked', 0))} asked",
        f"{numbers.count(usage.get('stored', 0))} from the store",
    ]
    for key, words in (("joined", "joined"), ("failed", "failed")):
        if usage.get(key):
            parts.append(f"{numbers.count(usage[key])} {words}")
    if usage.get("retries"):
        parts.append(f"{numbers.count(usage['retries'])} sent again")
    return ", ".join(parts)


def token_counts(usage: Mapping[str, int]) -> str:
    """Tokens of what was asked, in and out, with the parts that were cached or reasoning."""
    if not usage:
        return "none counted"
    into, out = (
        f"{numbers.count(usage.get('input_tokens', 0))} in",
        f"{numbers.count(usage.get('output_tokens', 0))} out",
    )
    if usage.get("cached_tokens"):
        into += f" ({numbers.count(usage['cached_tokens'])} cached)"
    if usage.get("reasoning_tokens"):
        out += f" ({numbers.count(usage['reasoning_tokens'])} reasoning)"
    return f"{into}, {out}"
