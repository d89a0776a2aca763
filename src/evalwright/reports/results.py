"""How results are looked at in Python: runs, comparisons and boards, each as a line, in a notebook,
as data, drawn, as a report, in a file.

`core/shown.py` gives them the methods; here is what stands behind those, a row of `FORMS` for each
kind of result.
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
from evalwright.runs.results import MetricResult
from evalwright.runs.writer import to_json
from evalwright.tasks.files import write_file

MOST_ROWS = 30
"""Rows that a notebook shows of a table; reports and frames have all."""
LINE = 180
"""Letters of a result's line."""


REPORTS: Mapping[str, Callable[[doc.Document], str | bytes]] = {
    ".html": to_html,
    ".md": to_markdown,
    ".tex": to_latex,
    ".pdf": to_pdf,
}
"""What a document is written as, by the ending of the file's name."""


@dataclass(frozen=True, slots=True)
class Form:
    """The ways to look at a kind of result: its line, the little that a notebook shows, its report,
    its rows, its picture and its JSON.
    """

    line: Callable[[Any], str]
    brief: Callable[[Any], doc.Document]
    whole: Callable[[Any], doc.Document]
    rows: Callable[[Any], Any]
    drawn: Callable[[Any], PlotView]
    data: Callable[[Any], Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Picture:
    """A drawing that a notebook shows. Its file may be SVG, PNG or PDF."""

    view: PlotView

    def save(self, file: str | Path) -> Path:
        """Write it, by the name's ending. Raises ConfigurationError."""
        return _written(file, draw_plot(self.view, check_plot(str(file))))

    def __str__(self) -> str:
        return (
            f"Picture: {self.view.title}, {numbers.counted(len(self.view.rows), 'row')}"
        )

    def _repr_html_(self) -> str:
        from base64 import b64encode
        from html import escape

        data = b64encode(draw_for_reader(self.view)).decode()
        shown = escape(inert(str(self)))
        return (
            f'<img alt="{shown}" style="max-width: 100%"'
            f' src="data:image/svg+xml;base64,{data}">'
        )

    __repr__ = __str__


@dataclass(frozen=True, slots=True, repr=False)
class Report:
    """A document that a notebook shows; as text it is Markdown.

    Its file may be HTML, Markdown, LaTeX or PDF.
    """

    document: doc.Document

    def save(self, file: str | Path) -> Path:
        """Write it, by the name's ending. Raises ConfigurationError."""
        form = REPORTS.get(Path(file).suffix.lower())
        if form is None:
            raise ConfigurationError(f"'{file}' must end with {', '.join(REPORTS)}.")
        return _written(file, form(self.document))

    def __str__(self) -> str:
        return to_markdown(self.document)

    def __repr__(self) -> str:
        return f"<Report: {shorten(inert(self.document.title), LINE - 20)}>"

    def _repr_html_(self) -> str:
        return to_notebook(self.document)


def line(result: Any) -> str:
    """The result in a line."""
    return shorten(inert(_form(result).line(result)), LINE)


def notebook_html(result: Any) -> str:
    """The little that a notebook shows."""
    return to_notebook(_form(result).brief(result))


def frame(result: Any, library: str | None) -> Any:
    """The result's rows as a data frame."""
    return frame_of(_form(result).rows(result), library)


def picture(result: Any) -> Picture:
    """The result drawn.

    Raises MissingExtra without matplotlib, ConfigurationError where there is nothing to draw.
    """
    check_plot("result.svg")
    return Picture(_form(result).drawn(result))


def report(result: Any) -> Report:
    """All that there is to say of the result."""
    return Report(_form(result).whole(result))


def save(result: Any, file: str | Path) -> Path:
    """Write the result, by the name's ending. Raises ConfigurationError."""
    form = _form(result)
    suffix = Path(file).suffix.lower()
    if suffix in (".svg", ".png"):
        return picture(result).save(file)
    if suffix in REPORTS:
        return report(result).save(file)
    if suffix == ".csv":
        return _written(file, csv_of(form.rows(result)))
    if suffix == ".json":
        return _written(file, to_json(form.data(result), indent=2) + "\n")
    raise ConfigurationError(
        f"'{file}' must end with {', '.join(REPORTS)}, .json, .csv, .svg or .png."
    )


def _form(result: Any) -> Form:
    return FORMS[type(result)]


def _written(file: str | Path, data: str | bytes) -> Path:
    write_file(Path(file), data)
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
    more = f"; {numbers.counted(len(tasks) - 1, 'more task')}" if len(tasks) > 1 else ""
    missing = f", {numbers.count(run.n_missing)} missing" if run.n_missing else ""
    items = numbers.counted(sum(task.n_samples for task in tasks), "sample")
    return f"Run {shorten(run.label, 40)} on {scores}{more}, {items}{missing}"


def _run_brief(run: Run) -> doc.Document:
    mains = [(task, task.main) for task in run.tasks]
    axis = axis_of(
        [one.estimate for _, one in mains if one and _in_points(one)],
        "points",
        whole=True,
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
    said = f"{str(run.data['started'])[:10]}{cost}. Folder: {run.folder}"
    blocks = [
        doc.Table(columns, rows, "Scores"),
        *_more(len(mains)),
        doc.Note(said, "quiet"),
    ]
    return doc.Document(run.label, blocks)


def _in_points(metric: MetricResult) -> bool:
    return numbers.unit_of(metric.kind) == "points"


def _more(count: int) -> list[doc.Block]:
    if count <= MOST_ROWS:
        return []
    return [
        doc.Note(f"{numbers.count(count - MOST_ROWS)} more: report() has all.", "quiet")
    ]


def _run_view(run: Run) -> PlotView:
    """A bar for each task; of a run with one task, for each value of its slices too."""
    shown = [(task.name, task.main) for task in run.tasks if task.main]
    title = f"{run.label}"
    if len(shown) == 1 and (slices := run.tasks[0].slices):
        label = shown[0][1].label
        shown += [
            (f"{key}: {value}", one)
            for key, by_value in slices.items()
            for value, metrics in by_value.items()
            for one in metrics
            if one.label == label
        ]
    first = shown[0][1] if shown else None
    alike = [(name, one) for name, one in shown if first and one.kind == first.kind]
    left_out = [name for name, one in shown if first and one.kind != first.kind]
    notes = (
        [f"Measured in another unit: {', '.join(map(inert, left_out[:6]))}."]
        if left_out
        else []
    )
    rows = [
        score_bar(name, one.estimate, numbers.unit_of(one.kind))
        for name, one in alike
        if math.isfinite(one.estimate.value)
    ]
    if first is None or not rows:
        raise ConfigurationError("There is nothing to plot: no task has a score.")
    direction = "lower" if first.less_is_better else "higher"
    return _view(
        title, f"{first.label} · {direction} is better", rows, _in_points(first), notes
    )


def _view(
    title: str,
    subtitle: str,
    rows: Sequence[PlotRow],
    bounded: bool,
    notes: Sequence[str],
) -> PlotView:
    kept = rows[:MOST_ROWS]
    notes = [
        *notes,
        *(
            [f"The first {MOST_ROWS} of {len(rows)} rows."]
            if len(rows) > MOST_ROWS
            else []
        ),
    ]
    has_ends = any(row.ends for row in kept)
    return PlotView(
        inert(title),
        inert(subtitle),
        tuple(kept),
        False,
        bounded,
        has_ends,
        tuple(notes),
    )


# -- comparisons -----------------------------------------------------------------------


def _comparison_line(found: Comparison) -> str:
    gaps = [f"{shorten(one.task, 30)} {_gap(one)}" for one in found.tasks[:2]]
    more = (
        f"; {numbers.counted(len(found.tasks) - 2, 'more task')}"
        if len(found.tasks) > 2
        else ""
    )
    names = " minus ".join(shorten(name, 36) for name in found.labels)
    return f"Comparison {names}: {'; '.join(gaps)}{more}"


def _gap(task: TaskComparison) -> str:
    return numbers.gap(task.result.difference, task.result, bounded=task.bounded)


def _comparison_brief(found: Comparison) -> doc.Document:
    whole = comparison_document(found, most_flips=0)
    first, *others = (block for block in whole.blocks if isinstance(block, doc.Table))
    tables = [
        replace(one, rows=one.rows[:MOST_ROWS])
        for one in (first, *others[: len(found.tasks)])
    ]
    title = f"{found.labels[0]} (A) and {found.labels[1]} (B)"
    return doc.Document(
        title, [doc.Conclusion(found.conclusion), *tables, *_more(len(first.rows))]
    )


def _comparison_rows(found: Comparison) -> Iterator[dict[str, Any]]:
    """A row per task and metric."""
    for task in found.tasks:
        for one in (task, *task.others):
            result = one.result
            yield {
                "task": one.task,
                "metric": one.metric,
                "a": found.labels[0],
                "b": found.labels[1],
                "mean_a": result.mean_a,
                "mean_b": result.mean_b,
                "difference": result.difference,
                "low": result.low,
                "high": result.high,
                "p_value": result.p_value,
                "test": result.test,
                "paired": one.paired is not None,
                "items": (
                    one.paired.n
                    if one.paired
                    else min(one.unpaired.n_a, one.unpaired.n_b)
                    if one.unpaired
                    else 0
                ),
                "lower_is_better": one.lower_is_better,
            }


def _comparison_view(found: Comparison) -> PlotView:
    """A bar for each task's difference, and of one task for each value of its slices."""
    bounded = found.tasks[0].bounded
    shown: list[tuple[str, Any]] = [
        (one.task, one.result) for one in found.tasks if one.bounded == bounded
    ]
    if len(found.tasks) == 1:
        slices = found.tasks[0].slices
        shown += [
            (f"{one.key}: {part.value}", part.paired)
            for one in slices
            for part in one.parts
        ]
    rows = [
        difference_bar(name, one, bounded, leads=one.low > 0 or one.high < 0)
        for name, one in shown
        if math.isfinite(one.difference)
    ]
    title = f"{found.labels[0]} minus {found.labels[1]}"
    note = (
        "Intervals of slices are adjusted for their number."
        if len(shown) > len(found.tasks)
        else ""
    )
    return _differences(title, found.tasks[0].metric, rows, bounded, note)


def _differences(
    title: str, metric: str, rows: Sequence[PlotRow], bounded: bool, more: str = ""
) -> PlotView:
    if not rows:
        raise ConfigurationError(
            "There is nothing to plot: no difference has a number."
        )
    unit = ", points of 100" if bounded else ""
    note = f"Dark bars: the interval excludes 0. {more}".rstrip()
    return _view(title, f"difference in {metric}{unit}", rows, bounded, [note])


def _several_line(found: SeveralComparison) -> str:
    return (
        f"Comparison of {numbers.counted(len(found.runs), 'run')}: {found.conclusion}"
    )


def _several_brief(found: SeveralComparison) -> doc.Document:
    whole = several_document(found)
    table = next(block for block in whole.blocks if isinstance(block, doc.Table))
    kept = replace(table, rows=table.rows[:MOST_ROWS])
    return doc.Document(
        whole.title, [doc.Conclusion(found.conclusion), kept, *_more(len(table.rows))]
    )


def _several_rows(found: SeveralComparison) -> Iterator[dict[str, Any]]:
    """A row per pair on each task, and over all tasks, where the task has no name."""
    for table in (*([found.overall] if found.overall else []), *found.tasks):
        for pair in table.pairs:
            yield {
                "task": table.task,
                "metric": table.metric,
                "a": found.labels[pair.a],
                "b": found.labels[pair.b],
                "difference": pair.difference,
                "low": pair.low,
                "high": pair.high,
                "p_adjusted": pair.p_adjusted,
                "verdict": pair.verdict,
                "items": pair.n,
                "lower_is_better": table.lower_is_better,
            }


def _several_view(found: SeveralComparison) -> PlotView:
    """A bar for each pair of the first table."""
    table = found.overall or found.tasks[0]
    rows = [
        difference_bar(
            f"{found.labels[pair.a]} - {found.labels[pair.b]}",
            pair,
            table.bounded,
            leads=pair.verdict in ("better", "worse"),
        )
        for pair in table.pairs
        if not math.isnan(pair.difference)
    ]
    note = "Intervals hold for all pairs at once."
    return _differences(
        table.task or "Mean over tasks", table.metric, rows, table.bounded, note
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
    whole = board_document(board)
    table = whole.blocks[0]
    notes = whole.blocks[1]
    assert isinstance(table, doc.Table)
    kept = replace(table, rows=table.rows[:MOST_ROWS], sortable=False)
    return doc.Document("Board", [kept, *_more(len(table.rows)), notes], whole.lede)


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
