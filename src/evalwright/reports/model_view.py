"""What a model's own page shows, as plain records that its template walks through."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evalwright.reports import numbers
from evalwright.reports.advice import FailureNote, failure_notes
from evalwright.reports.axis import axis_of
from evalwright.reports.columns import (
    HALLUCINATION,
    HALLUCINATION_COLUMNS,
    ScoreColumn,
    find_metric,
    normal,
    score_columns,
)
from evalwright.reports.examples import Example, Outcomes, read_samples
from evalwright.reports.html_view import MetricRow, ScoreCell, facts_of, metric_row, score_cell
from evalwright.reports.pages import board_labels, coverage

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.runs.reader import Run
    from evalwright.runs.results import MetricResult, TaskResult

MOST_COLUMNS = 4
MOST_VALUES = 200
"""Rows of a table of slices; `run.json` has all."""


@dataclass(frozen=True, slots=True)
class KeyNumber:
    """A headline number. others: where the other models of the board stand on the axis of its bar, in percent."""

    title: str
    measure: str
    cell: ScoreCell
    others: tuple[str, ...]
    ticks: tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class SlicePart:
    """One value of a slice key."""

    value: str
    cells: tuple[ScoreCell, ...]
    items: str
    failed: str


@dataclass(frozen=True, slots=True)
class SlicesBy:
    """One slice key of one task: a column per metric, a row per value."""

    task: str
    key: str
    heads: tuple[str, ...]
    rows: tuple[SlicePart, ...]
    left_out: str


@dataclass(frozen=True, slots=True)
class OutcomeRow:
    """One class: its count, its share of all as text, and as the length of a bar."""

    label: str
    count: str
    share: str
    width: str


@dataclass(frozen=True, slots=True)
class OutcomeTable:
    """The classes of one scorer on one task."""

    task: str
    scorer: str
    rows: tuple[OutcomeRow, ...]


@dataclass(frozen=True, slots=True)
class ModelPage:
    """One model's page. hallucination: whether its examples are of what was judged inconsistent with its source; textless: those
    of which the record has nothing to read."""

    title: str
    board: str
    back: str
    lede: str
    keys: tuple[KeyNumber, ...]
    metrics: tuple[MetricRow, ...]
    outcomes: tuple[OutcomeTable, ...]
    slices: tuple[SlicesBy, ...]
    examples: tuple[Example, ...]
    textless: tuple[Example, ...]
    hallucination: bool
    failures: tuple[FailureNote, ...]
    settings: tuple[tuple[str, str], ...]
    prompts: tuple[tuple[str, str], ...]
    facts: tuple[tuple[str, str], ...]
    notes: tuple[str, ...]


def model_page(
    board: Board, place: int, run: Run, title: str, back: str = "", examples: int = 5
) -> ModelPage:
    """The view of one row. place: of the row on the board; run: the one it was made of; back: the board's address."""
    outcomes, worst = read_samples(run, examples)
    row = board.rows[place]
    columns = score_columns(board)
    several = len(board.tasks) > 1
    return ModelPage(
        title=board_labels(board)[place],
        board=title,
        back=back,
        lede=_lede(board, place),
        keys=tuple(_key(column, place) for column in columns[:MOST_COLUMNS]),
        metrics=tuple(metric_row(task, metric) for task in run.tasks for metric in task.metrics),
        outcomes=tuple(_outcomes(each, run) for each in outcomes if len(each.counts) > 1 or several),
        slices=tuple(table for task in run.tasks for table in _slices(task)),
        examples=tuple(example for example in worst if example.texts),
        textless=tuple(example for example in worst if not example.texts),
        hallucination=any(cell.kind == HALLUCINATION for cell in row.cells.values()),
        failures=tuple(failure_notes(run)),
        settings=tuple(_settings(run)),
        prompts=tuple(_prompts(run)),
        facts=tuple(facts_of(run)),
        notes=tuple(str(note) for note in _imported(run).get("notes", ())),
    )


def _lede(board: Board, place: int) -> str:
    row = board.rows[place]
    total = sum(each.ranks is not None for each in board.rows)
    parts = []
    if row.ranks and total > 1:
        parts.append(f"rank {numbers.ranks(row.ranks)} of {total}")
    parts += [f"{coverage(board)[place]} items scored", row.date]
    return ", ".join(parts)


def _key(column: ScoreColumn, place: int) -> KeyNumber:
    axis = axis_of([estimate for estimate in column.estimates if estimate], column.unit)
    others = [
        axis.place(estimate.value)
        for i, estimate in enumerate(column.estimates)
        if estimate and i != place and estimate.value == estimate.value
    ]
    parts = [column.measure or ("" if column.metric == "accuracy" else column.metric)]
    parts += ["less is better"] if column.lower_is_better else []
    return KeyNumber(
        title=column.title,
        measure=", ".join(part for part in parts if part),
        cell=score_cell(column.estimates[place], column.unit, axis),
        others=tuple(others),
        ticks=(axis.ticks[0], axis.ticks[-1]),
    )


def _outcomes(found: Outcomes, run: Run) -> OutcomeTable:
    failed = next((task.n_failed for task in run.tasks if task.name == found.task), 0)
    counts = list(found.counts)
    asked = next((task.n_samples for task in run.tasks if task.name == found.task), 0)
    # What has no label at all failed before the scorer saw it.
    missing = min(failed, asked - sum(count for _, count in counts))
    if missing > 0:
        counts.append(("no answer or no score", missing))
    total = sum(count for _, count in counts)
    rows = tuple(
        OutcomeRow(label, numbers.count(count), f"{100 * count / total:.1f}%", f"{100 * count / total:.2f}%")
        for label, count in counts
    )
    return OutcomeTable(found.task, found.scorer, rows)


def _slices(task: TaskResult) -> Iterator[SlicesBy]:
    for key, by_value in task.slices.items():
        first = next((metrics for metrics in by_value.values() if metrics), ())
        shown = _shown(first)
        if not shown:
            continue
        largest = sorted(by_value, key=lambda value: -max((m.estimate.n for m in by_value[value]), default=0))
        kept = set(largest[:MOST_VALUES])
        rows = tuple(_part(value, by_value[value], shown, by_value) for value in by_value if value in kept)
        left = f"The {len(rows)} largest of {len(by_value)}." if len(rows) < len(by_value) else ""
        yield SlicesBy(task.name, key, tuple(_head(metric) for metric in shown), rows, left)


def _shown(metrics: Sequence[MetricResult]) -> list[MetricResult]:
    """The metrics that slices are shown by: the four of a hallucination board, else the first ones."""
    if metrics and metrics[0].kind == HALLUCINATION:
        named = [find_metric(tuple(metrics), column.label) for column in HALLUCINATION_COLUMNS[1:]]
        return [metrics[0], *(metric for metric in named if metric)]
    return list(metrics[:MOST_COLUMNS])


def _head(metric: MetricResult) -> str:
    known = next((each for each in HALLUCINATION_COLUMNS if each.label == normal(metric.label)), None)
    return f"{known.title}, {known.measure}" if known else metric.label


def _part(
    value: str,
    metrics: Sequence[MetricResult],
    shown: Sequence[MetricResult],
    by_value: Mapping[str, Sequence[MetricResult]],
) -> SlicePart:
    own = {metric.label: metric for metric in metrics}
    cells = []
    for i, metric in enumerate(shown):
        found = own.get(metric.label)
        unit = numbers.unit_of(metric.kind)
        axis = None
        if i == 0:
            every = [m.estimate for each in by_value.values() for m in each if m.label == metric.label]
            axis = axis_of(every, unit)
        cells.append(score_cell(found.estimate if found else None, unit, axis))
    main = own.get(shown[0].label)
    n, failed = (main.estimate.n, main.estimate.n_failed) if main else (0, 0)
    return SlicePart(value, tuple(cells), numbers.count(n), numbers.count(failed))


# -- how it was asked ---------------------------------------------------------------------------------------------------


def _imported(run: Run) -> Mapping[str, Any]:
    found = run.data["configuration"].get("imported", {})
    return found if isinstance(found, Mapping) else {}


def _settings(run: Run) -> Iterator[tuple[str, str]]:
    """What the model was asked with: its arguments, and how each task draws answers."""
    for key, value in _imported(run).get("settings", {}).items():
        if key != "prompt" and value is not None:
            yield key, str(value)
    for model in run.data["configuration"].get("models", ()):
        if isinstance(model, Mapping):
            for key, value in model.get("arguments", {}).items():
                yield key, str(value)
    several = len(run.data["tasks"]) > 1
    for task in run.data["tasks"]:
        definition = task.get("definition", {})
        answer = definition.get("answer")
        for key, value in answer.items() if isinstance(answer, Mapping) else ():
            yield (f"{task['name']}: {key}" if several else key), str(value)
        for key in ("judge", "threshold"):
            if key in definition:
                yield key, str(definition[key])


def _prompts(run: Run) -> Iterator[tuple[str, str]]:
    several = len(run.data["tasks"]) > 1
    for task in run.data["tasks"]:
        definition = task.get("definition", {})
        prompt = definition.get("prompt")
        parts = prompt if isinstance(prompt, Mapping) else {}
        texts = [("System", parts.get("system")), ("User", parts.get("user"))]
        texts.append(("Prompt", definition.get("summary_prompt")))
        for name, text in texts:
            if isinstance(text, str) and text.strip():
                yield (f"{task['name']}, {name.lower()}" if several else name), text.strip()
