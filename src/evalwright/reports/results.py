"""How runs, comparisons and boards are shown in Python.

Each has a line of text, a notebook view, a data frame, a picture, a report and files.
`core/shown.py` defines the results' methods, which call the functions here; `FORMS` has a row
for each kind of result.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

from evalwright.analysis.board import Board
from evalwright.analysis.comparison import Comparison, TaskComparison
from evalwright.analysis.several import SeveralComparison
from evalwright.core.errors import ConfigurationError
from evalwright.core.plain import plain
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.reports.board_files import board_json, board_rows
from evalwright.reports.board_page import leaderboard_page
from evalwright.reports.conclusions import claimed_differences
from evalwright.reports.documents.analysis import run_report
from evalwright.reports.documents.board import board_document, board_labels
from evalwright.reports.documents.comparison import (
    comparison_document,
    several_document,
)
from evalwright.reports.documents.run import missing_cell
from evalwright.reports.frames import csv_of, frame_of, run_rows
from evalwright.reports.html import to_html, to_notebook
from evalwright.reports.latex import to_latex
from evalwright.reports.markdown import to_markdown
from evalwright.reports.paper_tables import board_latex
from evalwright.reports.pdf import to_pdf
from evalwright.reports.plot import check_plot, draw_for_reader, draw_plot
from evalwright.reports.plot_view import (
    PlotRow,
    PlotView,
    difference_bar,
    plot_view,
    score_bar,
)
from evalwright.reports.text import inert, shorten
from evalwright.runs.reader import Run
from evalwright.runs.results import MetricResult, TaskResult
from evalwright.runs.writer import to_json
from evalwright.tasks.safe_files import write_file

MOST_ROWS = 30
"""Most rows of a table in a notebook; reports and frames have all."""
LONGEST_LINE_CHARS = 180
"""Most characters of the line that describes a result."""


REPORTS: Mapping[str, Callable[[doc.Document], str | bytes]] = {
    ".html": to_html,
    ".md": to_markdown,
    ".tex": to_latex,
    ".pdf": to_pdf,
}
"""Renderers of a document, by the suffix of the file."""


@dataclass(frozen=True, slots=True)
class Form:
    """The ways to show one kind of result.

    Attributes:
        line: Describes the result in a line.
        brief: Makes the document that a notebook shows.
        full_report: Makes the full report.
        rows: Yields the rows of its data frame.
        plot_view: Makes its picture.
        data: Converts the result to JSON.
    """

    line: Callable[[Any], str]
    brief: Callable[[Any], doc.Document]
    full_report: Callable[[Any], doc.Document]
    rows: Callable[[Any], Any]
    plot_view: Callable[[Any], PlotView]
    data: Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing that a notebook shows. It can be saved as SVG, PNG or PDF."""

    view: PlotView

    def save(self, file: str | Path) -> Path:
        """Write the picture in the format of the file name's suffix. Raises ConfigurationError."""
        return _write(file, draw_plot(self.view, check_plot(str(file))))

    def __str__(self) -> str:
        return (
            f"Picture: {self.view.title}, {numbers.counted(len(self.view.rows), 'row')}"
        )

    def _repr_html_(self) -> str:
        from base64 import b64encode
        from html import escape

        encoded = b64encode(draw_for_reader(self.view)).decode()
        alt_text = escape(inert(str(self)))
        return (
            f'<img alt="{alt_text}" style="max-width: 100%"'
            f' src="data:image/svg+xml;base64,{encoded}">'
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A document that a notebook shows; as text it is Markdown.

    It can be saved as HTML, Markdown, LaTeX or PDF.
    """

    document: doc.Document

    def save(self, file: str | Path) -> Path:
        """Write the report in the format of the file name's suffix. Raises ConfigurationError."""
        form = REPORTS.get(Path(file).suffix.lower())
        if form is None:
            raise ConfigurationError(f"'{file}' must end with {', '.join(REPORTS)}.")
        return _write(file, form(self.document))

    def __str__(self) -> str:
        return to_markdown(self.document)

    def __repr__(self) -> str:
        return (
            f"<Report: {shorten(inert(self.document.title), LONGEST_LINE_CHARS - 20)}>"
        )

    def _repr_html_(self) -> str:
        return to_notebook(self.document)


def line(result: Any) -> str:
    """Describe the result in a line."""
    return shorten(inert(_form(result).line(result)), LONGEST_LINE_CHARS)


def notebook_html(result: Any) -> str:
    """Render the short form that a notebook shows."""
    return to_notebook(_form(result).brief(result))


def frame(result: Any, library: str | None) -> Any:
    """Convert the result's rows to a data frame."""
    return frame_of(_form(result).rows(result), library)


def picture(result: Any) -> Picture:
    """Draw the result.

    Raises MissingExtra without matplotlib, ConfigurationError where there is nothing to draw.
    """
    check_plot("result.svg")
    return Picture(_form(result).plot_view(result))


def report(result: Any) -> Report:
    """Make the full report on the result."""
    return Report(_form(result).full_report(result))


def save(result: Any, file: str | Path) -> Path:
    """Write the result in the format of the file name's suffix. Raises ConfigurationError."""
    form = _form(result)
    suffix = Path(file).suffix.lower()
    if suffix in (".svg", ".png"):
        return picture(result).save(file)
    if suffix == ".tex" and isinstance(result, Board):
        return _write(file, board_latex(result))
    if suffix == ".html" and isinstance(result, Board):
        return _write(file, leaderboard_page(result))
    if suffix in REPORTS:
        return report(result).save(file)
    if suffix == ".csv":
        return _write(file, csv_of(form.rows(result)))
    if suffix == ".json":
        return _write(file, to_json(form.data(result), indent=2) + "\n")
    raise ConfigurationError(
        f"'{file}' must end with {', '.join(REPORTS)}, .json, .csv, .svg or .png."
    )


def _form(result: Any) -> Form:
    return FORMS[type(result)]


def _write(file: str | Path, content: str | bytes) -> Path:
    write_file(Path(file), content)
    return Path(file)


# -- a run -----------------------------------------------------------------------------


def _named_score(task: str, metric: MetricResult | None) -> str:
    name = shorten(task, 40)
    if metric is None:
        return f"{name}, no metric"
    return (
        f"{name}, {shorten(metric.label, 30)}"
        f" {numbers.score(metric.estimate, numbers.unit_of(metric.kind))}"
    )


def _run_line(run: Run) -> str:
    tasks = run.tasks
    scores = "; ".join(_named_score(task.name, task.main) for task in tasks[:1])
    further = (
        f"; {numbers.counted(len(tasks) - 1, 'more task')}" if len(tasks) > 1 else ""
    )
    missing = f", {numbers.count(run.n_missing)} missing" if run.n_missing else ""
    n_samples = numbers.counted(sum(task.n_samples for task in tasks), "sample")
    return f"Run {shorten(run.label, 40)} on {scores}{further}, {n_samples}{missing}"


def _run_brief(run: Run) -> doc.Document:
    mains = [(task, task.main) for task in run.tasks]
    axis = axis_of(
        [metric.estimate for _, metric in mains if metric and _in_points(metric)],
        "points",
        full_range=True,
    )
    columns = [
        *doc.columns("Task*", "Metric"),
        doc.Column("Value [95% interval]", axis=axis),
    ]
    columns += doc.columns("Items>", "Missing>", "Unsure>")
    rows: list[Sequence[doc.Content]] = []
    for task, main in mains[:MOST_ROWS]:
        number = (
            doc.Number(main.estimate, numbers.unit_of(main.kind))
            if main
            else numbers.NOTHING
        )
        metric = main.label if main else ""
        missing = missing_cell(task.n_missing)
        unsure = numbers.count(task.n_unsure)
        rows.append(
            (task.name, metric, number, numbers.count(task.n_samples), missing, unsure)
        )
    cost = f", {numbers.money(run.cost)}" if run.cost else ""
    note = f"{str(run.data['started'])[:10]}{cost}. Folder: {run.folder}"
    blocks = [
        doc.Table(columns, rows, "Scores"),
        *_more_note(len(mains)),
        doc.Note(note, "quiet"),
    ]
    return doc.Document(run.label, blocks)


def _in_points(metric: MetricResult) -> bool:
    return numbers.unit_of(metric.kind) == "points"


def _more_note(count: int) -> list[doc.Block]:
    if count <= MOST_ROWS:
        return []
    return [
        doc.Note(f"{numbers.count(count - MOST_ROWS)} more: report() has all.", "quiet")
    ]


def _run_view(run: Run) -> PlotView:
    """Make a bar for each task; for a run with one task, also for each slice."""
    scores = [(task.name, task.main) for task in run.tasks if task.main]
    title = f"{run.label}"
    if len(scores) == 1:
        scores += _slice_scores(run.tasks[0], scores[0][1].label)
    first = scores[0][1] if scores else None
    comparable_scores = [
        (name, metric) for name, metric in scores if first and metric.kind == first.kind
    ]
    left_out = [name for name, metric in scores if first and metric.kind != first.kind]
    notes = (
        [f"Measured in another unit: {', '.join(map(inert, left_out[:6]))}."]
        if left_out
        else []
    )
    rows = [
        score_bar(name, metric.estimate, numbers.unit_of(metric.kind))
        for name, metric in comparable_scores
        if math.isfinite(metric.estimate.value)
    ]
    if first is None or not rows:
        raise ConfigurationError("There is nothing to plot: no task has a score.")
    subject = first.label
    if first.has_direction:
        direction = "lower" if first.less_is_better else "higher"
        subject += f" · {direction} is better"
    return _view(title, subject, rows, _in_points(first), notes)


def _slice_scores(task: TaskResult, label: str) -> Iterator[tuple[str, MetricResult]]:
    """Yield each slice of a task with its metric of this label."""
    for key, by_value in task.slices.items():
        for slice_value, metrics in by_value.items():
            for metric in metrics:
                if metric.label == label:
                    yield f"{key}: {slice_value}", metric


def _view(
    title: str,
    subtitle: str,
    rows: Sequence[PlotRow],
    bounded: bool,
    notes: Sequence[str],
) -> PlotView:
    shown_rows = rows[:MOST_ROWS]
    notes = [
        *notes,
        *(
            [f"The first {MOST_ROWS} of {len(rows)} rows."]
            if len(rows) > MOST_ROWS
            else []
        ),
    ]
    has_ends = any(row.ends for row in shown_rows)
    return PlotView(
        inert(title),
        inert(subtitle),
        tuple(shown_rows),
        False,
        bounded,
        has_ends,
        tuple(notes),
    )


# -- comparisons -----------------------------------------------------------------------


def _comparison_line(comparison: Comparison) -> str:
    gaps = [f"{shorten(task.task, 30)} {_gap(task)}" for task in comparison.tasks[:2]]
    further = (
        f"; {numbers.counted(len(comparison.tasks) - 2, 'more task')}"
        if len(comparison.tasks) > 2
        else ""
    )
    names = " minus ".join(shorten(name, 36) for name in comparison.labels)
    return f"Comparison {names}: {'; '.join(gaps)}{further}"


def _gap(task: TaskComparison) -> str:
    return numbers.gap(task.result.difference, task.result, bounded=task.bounded)


def _comparison_brief(comparison: Comparison) -> doc.Document:
    full = comparison_document(comparison, most_flips=0)
    first, *others = (block for block in full.blocks if isinstance(block, doc.Table))
    tables = [
        replace(table, rows=table.rows[:MOST_ROWS])
        for table in (first, *others[: len(comparison.tasks)])
    ]
    title = f"{comparison.labels[0]} (A) and {comparison.labels[1]} (B)"
    return doc.Document(
        title,
        [doc.Conclusion(comparison.conclusion), *tables, *_more_note(len(first.rows))],
    )


def _comparison_rows(comparison: Comparison) -> Iterator[dict[str, Any]]:
    """Yield a row per task and metric."""
    for task in comparison.tasks:
        for metric_comparison in (task, *task.others):
            difference = metric_comparison.result
            n_items = 0
            if metric_comparison.paired:
                n_items = metric_comparison.paired.n
            elif metric_comparison.unpaired:
                unpaired = metric_comparison.unpaired
                n_items = min(unpaired.n_a, unpaired.n_b)
            yield {
                "task": metric_comparison.task,
                "metric": metric_comparison.metric,
                "a": comparison.labels[0],
                "b": comparison.labels[1],
                "mean_a": difference.mean_a,
                "mean_b": difference.mean_b,
                "difference": difference.difference,
                "low": difference.low,
                "high": difference.high,
                "p_value": difference.p_value,
                "test": difference.test,
                "paired": metric_comparison.paired is not None,
                "items": n_items,
                "lower_is_better": metric_comparison.lower_is_better,
            }


def _comparison_view(comparison: Comparison) -> PlotView:
    """Make a bar for each task's difference; for a single task, also for each slice."""
    bounded = comparison.tasks[0].bounded
    shown_tasks = [task for task in comparison.tasks if task.bounded == bounded]
    claims = zip(comparison.tasks, claimed_differences(comparison), strict=True)
    claimed_tasks = {task.task for task, is_claimed in claims if is_claimed}
    differences: list[tuple[str, Any, bool]] = [
        (task.task, task.result, task.task in claimed_tasks) for task in shown_tasks
    ]
    overall = comparison.overall
    if overall is not None and bounded and overall.n_tasks > 1:
        differs = overall.p_value < 1 - overall.level and overall.low * overall.high > 0
        differences.append((f"Mean of {overall.n_tasks} tasks", overall, differs))
    has_slices = len(comparison.tasks) == 1 and bool(comparison.tasks[0].slices)
    if has_slices:
        differences += [
            (
                f"{sliced.key}: {subset.value}",
                subset.paired,
                subset.paired.verdict != "no difference seen",
            )
            for sliced in comparison.tasks[0].slices
            for subset in sliced.parts
        ]
    rows = [
        difference_bar(name, difference, bounded, leads=is_claimed)
        for name, difference, is_claimed in differences
        if math.isfinite(difference.difference)
    ]
    title = f"{comparison.labels[0]} minus {comparison.labels[1]}"
    remarks = ["Dark bars: the runs differ significantly."]
    if overall is not None and len(comparison.tasks) > 1:
        remarks = [
            "Dark bars: the runs differ significantly, on tasks after Holm's correction."
        ]
    if has_slices:
        remarks.append("Intervals of slices are adjusted for their number.")
    metrics = [*dict.fromkeys(task.metric for task in shown_tasks)]
    return _differences(title, metrics, rows, bounded, " ".join(remarks))


MOST_NAMED_METRICS = 3
"""So many metrics are named on an axis; more are "the tasks' metrics"."""


def _differences(
    title: str,
    metrics: Sequence[str],
    rows: Sequence[PlotRow],
    bounded: bool,
    note: str,
) -> PlotView:
    if not rows:
        raise ConfigurationError(
            "There is nothing to plot: no difference has a number."
        )
    unit = ", points of 100" if bounded else ""
    subject = " or ".join(metrics)
    if len(metrics) > MOST_NAMED_METRICS:
        subject = "the tasks' metrics"
    return _view(title, f"difference in {subject}{unit}", rows, bounded, [note])


def _several_line(comparison: SeveralComparison) -> str:
    return f"Comparison of {numbers.counted(len(comparison.runs), 'run')}: {comparison.conclusion}"


def _several_brief(comparison: SeveralComparison) -> doc.Document:
    full = several_document(comparison)
    table = next(block for block in full.blocks if isinstance(block, doc.Table))
    shown_table = replace(table, rows=table.rows[:MOST_ROWS])
    return doc.Document(
        full.title,
        [
            doc.Conclusion(comparison.conclusion),
            shown_table,
            *_more_note(len(table.rows)),
        ],
    )


def _several_rows(comparison: SeveralComparison) -> Iterator[dict[str, Any]]:
    """Yield a row per pair and task; rows of the mean over all tasks have no task."""
    for table in (
        *([comparison.overall] if comparison.overall else []),
        *comparison.tasks,
    ):
        for pair in table.pairs:
            yield {
                "task": table.task,
                "metric": table.metric,
                "a": comparison.labels[pair.a],
                "b": comparison.labels[pair.b],
                "difference": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "p_adjusted": pair.p_adjusted,
                "verdict": pair.verdict,
                "items": pair.n,
                "lower_is_better": table.lower_is_better,
            }


def _several_view(comparison: SeveralComparison) -> PlotView:
    """Make a bar for each pair of the first table."""
    table = comparison.overall or comparison.tasks[0]
    rows = [
        difference_bar(
            f"{comparison.labels[pair.a]} - {comparison.labels[pair.b]}",
            pair,
            table.bounded,
            leads=pair.verdict in ("better", "worse"),
        )
        for pair in table.pairs
        if not math.isnan(pair.difference)
    ]
    note = "Dark bars: the interval excludes 0. Intervals hold for all pairs at once."
    return _differences(
        table.task or "Mean over tasks", [table.metric], rows, table.bounded, note
    )


# -- a board ---------------------------------------------------------------------------


def _board_line(board: Board) -> str:
    leading = [
        label
        for row, label in zip(board.rows, board_labels(board), strict=True)
        if row.ranks and row.ranks[0] == 1
    ]
    tasks = ", ".join(task.name for task in board.tasks)
    first = f"; may be the best: {', '.join(leading)}" if leading else ""
    return (
        f"Board of {numbers.counted(len(board.rows), 'model')} on"
        f" {shorten(tasks, 60)}{first}"
    )


def _board_brief(board: Board) -> doc.Document:
    full = board_document(board)
    table = full.blocks[0]
    notes = full.blocks[1]
    assert isinstance(table, doc.Table)
    shown_table = replace(table, rows=table.rows[:MOST_ROWS], sortable=False)
    return doc.Document(
        "Board", [shown_table, *_more_note(len(table.rows)), notes], full.lede
    )


FORMS: Mapping[type, Form] = {
    Run: Form(
        _run_line, _run_brief, run_report, run_rows, _run_view, lambda run: run.data
    ),
    Comparison: Form(
        _comparison_line,
        _comparison_brief,
        comparison_document,
        _comparison_rows,
        _comparison_view,
        Comparison.as_dict,
    ),
    SeveralComparison: Form(
        _several_line,
        _several_brief,
        several_document,
        _several_rows,
        _several_view,
        SeveralComparison.as_dict,
    ),
    Board: Form(
        _board_line,
        _board_brief,
        board_document,
        board_rows,
        partial(plot_view, title="Leaderboard"),
        lambda board: plain(board_json(board, "Leaderboard")),
    ),
}
