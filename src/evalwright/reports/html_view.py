"""What the HTML leaderboard shows, as plain records that its template walks through: words, numbers and positions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.reports import numbers
from evalwright.reports.advice import FailureNote, failure_notes
from evalwright.reports.axis import Axis, Bar, axis_of, bar_of
from evalwright.reports.columns import ScoreColumn, score_columns
from evalwright.reports.hardware_view import hardware_facts
from evalwright.reports.pages import board_labels, has_ties
from evalwright.reports.run_page import requests, token_counts
from evalwright.reports.stopping_sentences import stopping_sentences

if TYPE_CHECKING:
    from evalwright.analysis.board import Board, BoardRow, BoardTask
    from evalwright.runs.reader import Run
    from evalwright.runs.results import MetricResult, TaskResult
    from evalwright.statistics import Estimate

MOST_SLICE_ROWS = 3000
"""Rows of slices on a whole page; past that each table shows its largest slices only, and under LEAST_SLICES none."""

LEAST_SLICES = 5


@dataclass(frozen=True, slots=True)
class ScoreCell:
    """A number with its interval. sort: what the column is sorted by, "" where there is nothing to sort."""

    value: str
    interval: str
    sort: str
    bar: Bar | None = None


@dataclass(frozen=True, slots=True)
class Head:
    """A score column. downwards: whether the first click sorts from high to low."""

    name: str
    metric: str
    less_is_better: bool


@dataclass(frozen=True, slots=True)
class ModelRow:
    """A row of the headline table. strip: the range of ranks as (start, width) in percent of all ranks.

    letters: rows that share one are tied. together: the headline's interval that holds with those of all rows. link: the
    address of the model's own page, "" where it has none.
    """

    number: int
    ranks: str
    best: str
    tied: bool
    strip: tuple[str, str] | None
    letters: str
    label: str
    model: str
    headline: ScoreCell
    together: str
    cells: tuple[ScoreCell, ...]
    items: str
    asked: str
    n: int
    failed: str
    n_failed: int
    hardware: str
    date: str
    link: str


@dataclass(frozen=True, slots=True)
class MetricRow:
    """One metric of one task. bounds: what failed items could have changed, as a sentence."""

    task: str
    metric: str
    cell: ScoreCell
    items: str
    method: str
    bounds: str


@dataclass(frozen=True, slots=True)
class SliceTable:
    """One slice key of one task: rows of (value, score, n, failed)."""

    task: str
    key: str
    metric: str
    rows: tuple[tuple[str, ScoreCell, str, str], ...]
    left_out: str


@dataclass(frozen=True, slots=True)
class RunView:
    """Everything about one run that is not in the headline table."""

    number: int
    label: str
    ranks: str
    headline: str
    facts: tuple[tuple[str, str], ...]
    metrics: tuple[MetricRow, ...]
    slices: tuple[SliceTable, ...]
    left_out: str
    failures: tuple[FailureNote, ...]
    link: str


@dataclass(frozen=True, slots=True)
class Asked:
    """A task as it was asked. warning: said where not all runs asked the same."""

    name: str
    version: str
    metric: str
    samples: str
    draws: str
    description: str
    content: str
    warning: str


@dataclass(frozen=True, slots=True)
class Page:
    """The whole page."""

    title: str
    lede: str
    headline: Head
    axis: Axis
    heads: tuple[Head, ...]
    rows: tuple[ModelRow, ...]
    has_ties: bool
    has_together: bool
    has_hardware: bool
    asked: tuple[Asked, ...]
    runs: tuple[RunView, ...]
    notes: tuple[str, ...]
    versions: str


def make_page(board: Board, runs: Sequence[Run], title: str, links: Sequence[str] = ()) -> Page:
    """The view of a board. `runs` adds what is known of each run; a run that is not on the board is not shown."""
    by_id = {run.id: run for run in runs}
    shown = [by_id[row.run] for row in board.rows if row.run in by_id]
    first, *others = score_columns(board)
    axis = axis_of([estimate for estimate in first.estimates if estimate], first.unit)
    labels = board_labels(board)
    pages = links or [""] * len(board.rows)
    rows = tuple(
        _model_row(i, row, labels[i], board, (first, *others), axis, pages[i])
        for i, row in enumerate(board.rows)
    )
    most = _slices_each(shown)
    return Page(
        title=title,
        lede=_lede(board),
        headline=_head(first),
        axis=axis,
        heads=tuple(_head(column) for column in others),
        rows=rows,
        has_ties=has_ties(board),
        has_together=any(row.together for row in board.rows),
        has_hardware=any(row.hardware for row in board.rows),
        asked=tuple(_asked(task, shown) for task in board.tasks) if shown else (),
        runs=tuple(
            _run_view(row, by_id[found.run], most)
            for row, found in zip(rows, board.rows, strict=True)
            if found.run in by_id
        ),
        notes=board.notes,
        versions=", ".join(sorted({str(run.data["evalwright"]) for run in shown})),
    )


def _head(column: ScoreColumn) -> Head:
    return Head(column.title, column.measure or column.metric, bool(column.lower_is_better))


def _lede(board: Board) -> str:
    dates = sorted({row.date for row in board.rows})
    when = dates[0] if len(dates) == 1 else f"{dates[0]} to {dates[-1]}"
    models, tasks = numbers.counted(len(board.rows), "model"), numbers.counted(len(board.tasks), "task")
    return f"{models}, {tasks}, {when}"


def _model_row(
    place: int,
    row: BoardRow,
    label: str,
    board: Board,
    columns: Sequence[ScoreColumn],
    axis: Axis,
    link: str,
) -> ModelRow:
    total = sum(each.ranks is not None for each in board.rows)
    strip = None
    if row.ranks and total > 1:
        best, worst = row.ranks
        strip = f"{100 * (best - 1) / total:.2f}%", f"{100 * (worst - best + 1) / total:.2f}%"
    first, *others = columns
    return ModelRow(
        number=place + 1,
        ranks=numbers.ranks(row.ranks),
        best=str(row.ranks[0] + row.ranks[1] / 10000) if row.ranks else "",
        tied=bool(row.ranks and row.ranks[0] != row.ranks[1]),
        strip=strip,
        letters=row.letters,
        label=label,
        model=row.model if row.model != row.label else "",
        headline=score_cell(first.estimates[place], first.unit, axis),
        together=numbers.interval(row.together, first.unit) if row.together else "",
        cells=tuple(score_cell(column.estimates[place], column.unit) for column in others),
        items=numbers.count(row.n),
        asked="" if row.n == row.n_asked else f"of {numbers.count(row.n_asked)}",
        n=row.n,
        failed=numbers.count(row.n_failed),
        n_failed=row.n_failed,
        hardware=row.hardware,
        date=row.date,
        link=link,
    )


def score_cell(estimate: Estimate | None, unit: numbers.Unit, axis: Axis | None = None) -> ScoreCell:
    """The cell of an estimate, with a bar where there is an axis."""
    if estimate is None or math.isnan(estimate.value):
        return ScoreCell(numbers.NOTHING, "", "")
    bar = bar_of(estimate, axis) if axis else None
    interval = numbers.interval(estimate, unit) if numbers.limits(estimate, unit) else ""
    return ScoreCell(numbers.value(estimate, unit), interval, repr(estimate.value), bar)


def _slices_each(runs: Iterable[Run]) -> int:
    """How many rows each slice table may have; 0 leaves them out."""
    sizes = [len(by_value) for run in runs for task in run.tasks for by_value in task.slices.values()]
    if sum(sizes) <= MOST_SLICE_ROWS:
        return max(sizes, default=0)
    most = MOST_SLICE_ROWS // len(sizes)
    return most if most >= LEAST_SLICES else 0


def _run_view(row: ModelRow, run: Run, most: int) -> RunView:
    interval = f" {row.headline.interval}" if row.headline.interval else ""
    tables = [
        _slice_table(task.name, key, by_value, most)
        for task in run.tasks
        for key, by_value in task.slices.items()
        if most
    ]
    return RunView(
        number=row.number,
        label=row.label,
        ranks=row.ranks,
        headline=f"{row.headline.value}{interval}",
        facts=tuple(facts_of(run)),
        metrics=tuple(metric_row(task, metric) for task in run.tasks for metric in task.metrics),
        slices=tuple(table for table in tables if table.rows),
        left_out=_slices_left_out(run, most),
        failures=tuple(failure_notes(run)),
        link=row.link,
    )


def _slices_left_out(run: Run, most: int) -> str:
    if not most and any(task.slices for task in run.tasks):
        return "Slices are left out of a page with so many tables; run.json has them."
    keys = [f"{task.name} by {key}" for task in run.tasks for key in task.slices_left_out]
    return f"Too many values to show: {', '.join(keys)}." if keys else ""


def facts_of(run: Run) -> list[tuple[str, str]]:
    """How a run was made, as (name, value)."""
    data = run.data
    configuration = data["configuration"]
    limit = configuration.get("limit")
    usage = data["usage"]
    facts = [
        ("Model", run.model),
        ("Model fingerprint", str(data["model"].get("fingerprint", numbers.NOTHING))),
        *((f"Role {role}", str(other.get("name", ""))) for role, other in data.get("roles", {}).items()),
        ("Run", run.id),
        ("Started", str(data["started"])),
        ("Took", numbers.duration(float(data["seconds"]))),
        ("evalwright", str(data["evalwright"])),
        ("Seed", str(configuration.get("seed"))),
        ("Samples per task", "all" if limit is None else f"at most {limit}"),
        ("Requests", requests(usage)),
        ("Tokens", token_counts(usage.get("usage", {}))),
    ]
    if usage.get("cost") is not None:
        facts.append(("Cost", numbers.money(usage["cost"])))
    return [*facts, *hardware_facts(data), *(("Stopping", said) for said in stopping_sentences(run))]


def metric_row(task: TaskResult, metric: MetricResult) -> MetricRow:
    """One metric with how its interval was made."""
    estimate, unit = metric.estimate, numbers.unit_of(metric.kind)
    return MetricRow(
        task=task.name,
        metric=metric.label,
        cell=score_cell(estimate, unit),
        items=numbers.items(estimate.n, estimate.n_failed, estimate.n_clusters),
        method=f"{100 * estimate.level:g}% {estimate.method}",
        bounds=_bounds(metric),
    )


def _bounds(metric: MetricResult) -> str:
    ends = numbers.bounds(metric.estimate, numbers.unit_of(metric.kind))
    if ends is None:
        return ""
    n = metric.estimate.n_missing
    return f"{ends[0]} if {numbers.plural(n, 'it', 'all')} had been wrong, {ends[1]} if right"


def _slice_table(
    task: str, key: str, by_value: Mapping[str, tuple[MetricResult, ...]], most: int
) -> SliceTable:
    mains = {value: metrics[0] for value, metrics in by_value.items() if metrics}
    largest = set(sorted(mains, key=lambda value: (-mains[value].estimate.n, value))[:most])
    rows = []
    for value, metric in mains.items():
        if value in largest:
            unit = numbers.unit_of(metric.kind)
            estimate = metric.estimate
            axis = axis_of([estimate], unit, whole=True) if unit == "points" else None
            cell = score_cell(estimate, unit, axis)
            rows.append((value, cell, numbers.count(estimate.n), numbers.count(estimate.n_failed)))
    label = next((metric.label for metric in mains.values()), "")
    left_out = f"The {len(rows)} largest of {len(mains)}; run.json has all." if len(rows) < len(mains) else ""
    return SliceTable(task, key, label, tuple(rows), left_out)


def _asked(task: BoardTask, runs: Sequence[Run]) -> Asked:
    records: list[Mapping[str, Any]] = [
        record for run in runs for record in run.data["tasks"] if record["name"] == task.name
    ]
    if not records:
        return Asked(task.name, "", task.metric, "", "", "", "", "")

    def every(field: str) -> list[str]:
        return sorted({str(record.get(field, "")) for record in records})

    differing = [
        words
        for field, words in (
            ("version", "versions"),
            ("content_hash", "data"),
            ("definition", "prompts or settings"),
        )
        if len(every(field)) > 1
    ]
    samples = sorted({int(record["n_samples"]) for record in records})
    return Asked(
        name=task.name,
        version=", ".join(every("version")),
        metric=task.metric,
        samples=" to ".join(dict.fromkeys((numbers.count(samples[0]), numbers.count(samples[-1])))),
        draws=", ".join(every("draws")),
        description=str(records[0].get("description", "")),
        content=", ".join(text[:12] for text in every("content_hash")),
        warning=f"Not all runs asked the same: {' and '.join(differing)} differ." if differing else "",
    )
