"""Figures of finished runs: scores against cost, time, date or length, calibration, agreement.

Each is a bar picture of `plot`, or a `Chart` of numbered points, one for each model, or of
lines.
"""

from __future__ import annotations

import math
import statistics
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date, timedelta
from typing import Any

from evalwright.analysis.answers import analyse_run
from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.confidence import list_confidences
from evalwright.analysis.judge_validation.panels import measure_agreement
from evalwright.analysis.several import compare_several
from evalwright.core.errors import ConfigurationError, check_known
from evalwright.reports import numbers
from evalwright.reports.columns import score_columns
from evalwright.reports.documents.board import board_labels
from evalwright.reports.plot import (
    INK,
    LEADS,
    LINE,
    QUIET,
    WIDTH_INCHES,
    Fonts,
    draw_plot,
    fixed_settings,
    save_figure,
)
from evalwright.reports.plot_view import PlotView, direction, plot_view, score_bar
from evalwright.reports.text import inert
from evalwright.runs.confirmed import confirm_all
from evalwright.runs.reader import Run, called
from evalwright.statistics.intervals import wilson

BINS = 10
MOST_LINES = 8
"""Most lines of a chart; more could not be told apart."""
COLOURS = (
    "#0072b2",
    "#d55e00",
    "#009e73",
    "#cc79a7",
    "#e69f00",
    "#56b4e9",
    "#000000",
    "#8a6d00",
)
"""Colours that colour-blind readers can distinguish (Okabe and Ito); the markers differ too."""
_MARKS = "osD^vP*X"


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval, whose ends are nan where there is none."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """A named series of a chart: one point for a model, or several that are joined by a line."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """A chart of points or lines.

    Attributes:
        ticks: (position, label) pairs of the horizontal axis, if it does not show plain numbers.
        diagonal: Whether to draw the line on which x and y are equal.
    """

    subtitle: str
    x_title: str
    y_title: str
    series: tuple[Series, ...]
    notes: tuple[str, ...] = ()
    ticks: tuple[tuple[float, str], ...] = ()
    diagonal: bool = False
    title: str = ""


def figure(
    kind: str,
    runs: Sequence[Run],
    suffix: str,
    title: str = "",
    metric: str | None = None,
) -> bytes:
    """Draw a figure of runs and return it as a file.

    Args:
        kind: One of `KINDS`.
        runs: The runs to draw.
        suffix: The file's type, ".svg", ".png" or ".pdf".
        title: The title; by default it says what the figure shows.
        metric: The metric to draw, by default each task's main one.

    Raises:
        UnknownName: There is no such kind.
        ConfigurationError: The runs have nothing to draw.
        MissingExtra: matplotlib is not installed.
    """
    check_known("figure", [kind], KINDS)
    figure_kind = KINDS[kind]
    if metric and not figure_kind.by_metric:
        raise ConfigurationError(
            f"The figure '{kind}' is not drawn by a metric: leave out --metric."
        )
    view = figure_kind.view(confirm_all(runs), metric)
    view = replace(view, title=inert(title) or view.title or figure_kind.title)
    return (
        draw_plot(view, suffix)
        if isinstance(view, PlotView)
        else draw_chart(view, suffix)
    )


# -- the views


def _scores(runs: Sequence[Run], metric: str | None) -> PlotView:
    return plot_view(make_board(runs, metric), "", best=len(runs))


def _differences(runs: Sequence[Run], metric: str | None) -> PlotView:
    from evalwright.reports.results import picture

    if len(runs) < 2:
        raise ConfigurationError("A figure of differences needs two runs or more.")
    comparison = (
        compare_runs(*runs, metric=metric)
        if len(runs) == 2
        else compare_several(runs, metric=metric)
    )
    return picture(comparison).view


def _agreement(runs: Sequence[Run], metric: str | None) -> PlotView:
    """Make a bar for each pair of judges: how often their verdicts are the same."""
    agreement = measure_agreement(list(runs))
    rows = [
        score_bar(f"{pair.a} and {pair.b}", pair.raw, "points")
        for pair in agreement.pairs
    ]
    notes = (f"{numbers.counted(agreement.n, 'answer')} with two verdicts or more.",)
    return PlotView(
        "",
        "same verdict, % of the answers that both judged",
        tuple(rows),
        False,
        True,
        True,
        notes,
    )


def _headline(
    runs: Sequence[Run], metric: str | None
) -> tuple[str, list[tuple[Run, str, Any]], float]:
    """Return the title of the score axis, each run with its label and estimate, and the scale."""
    board = make_board(runs, metric)
    column = score_columns(board)[0]
    scale = 100.0 if column.unit == "points" else 1.0
    rows = zip(board.rows, board_labels(board), column.estimates, strict=True)
    estimates = [
        (runs[row.run_index], label, estimate)
        for row, label, estimate in rows
        if estimate and not math.isnan(estimate.value)
    ]
    unit = ", points of 100" if column.unit == "points" and not column.measure else ""
    return f"{inert(column.title)}{unit} ({direction(column)})", estimates, scale


def _point_chart(
    x_title: str, position_of: Callable[[Run], float | None], without: str
) -> Callable[..., Chart]:
    """Return a function that makes a chart with a point for each run.

    Args:
        x_title: The title of the horizontal axis.
        position_of: Returns a run's position on it, None where it has none.
        without: What runs without a position lack, for a note.
    """

    def view(runs: Sequence[Run], metric: str | None) -> Chart:
        y_title, estimates, scale = _headline(runs, metric)
        series = []
        unplaced_labels = []
        for run, label, estimate in estimates:
            position = position_of(run)
            if position is None or not math.isfinite(position):
                unplaced_labels.append(inert(label))
            else:
                ends = scale * estimate.low, scale * estimate.high
                series.append(
                    Series(
                        inert(label), (Point(position, scale * estimate.value, *ends),)
                    )
                )
        if not series:
            raise ConfigurationError(f"There is nothing to plot: no run has {without}.")
        notes = (
            [f"Without {without}: {', '.join(unplaced_labels)}."]
            if unplaced_labels
            else []
        )
        ticks = (
            _date_ticks([run_series.points[0].x for run_series in series])
            if position_of is _day
            else ()
        )
        return Chart(
            f"95% intervals; {x_title}",
            x_title,
            y_title,
            tuple(series),
            tuple(notes),
            ticks,
        )

    return view


def _cost(run: Run) -> float | None:
    n_items = sum(task.n_samples for task in run.tasks)
    return None if run.cost is None or not n_items else 1000 * run.cost / n_items


def _seconds(run: Run) -> float | None:
    latencies = [
        seconds
        for row in run.rows()
        for seconds in row.get("timing", {}).get("latency", ())
        if seconds > 0
    ]
    return statistics.median(latencies) if latencies else None


def _day(run: Run) -> float | None:
    try:
        return float(date.fromisoformat(str(run.data["started"])[:10]).toordinal())
    except ValueError:
        return None


def _date_ticks(places: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """Choose up to five dates as ticks."""
    first = int(min(places))
    last = int(max(places))
    step = max(1, math.ceil((last - first) / 4))
    days = range(first, last + 1, step)
    return tuple(
        (float(day), (date.min + timedelta(days=day - 1)).isoformat()) for day in days
    )


def _line_chart(
    runs: Sequence[Run],
    make_series: Callable[[Run, str], Iterator[Series]],
    **settings: Any,
) -> Chart:
    if len(runs) > MOST_LINES:
        raise ConfigurationError(
            f"At most {MOST_LINES} runs can be distinguished in this figure: name fewer"
            f" than {len(runs)}."
        )
    series = tuple(
        line
        for run, label in zip(runs, called(runs), strict=True)
        for line in make_series(run, inert(label))
    )
    if not series:
        raise ConfigurationError(
            "There is nothing to plot: the runs have no answers with a score."
        )
    return Chart(series=series, **settings)


def _length(runs: Sequence[Run], metric: str | None) -> Chart:
    """Make a line for each run and task: the mean score by length of the answer, in quarters."""

    def make_lines(run: Run, label: str) -> Iterator[Series]:
        tasks = analyse_run(run)
        for task in tasks:
            name = f"{label}: {inert(task.name)}" if len(tasks) > 1 else label
            bounded = 0 <= task.score.value <= 1 and task.threshold == 0.5
            scale = 100.0 if bounded else 1.0
            groups = [
                (quarter, group.score) for quarter, group in enumerate(task.lengths, 1)
            ]
            points = [
                Point(
                    quarter,
                    scale * estimate.value,
                    scale * estimate.low,
                    scale * estimate.high,
                )
                for quarter, estimate in groups
            ]
            if points := [point for point in points if math.isfinite(point.y)]:
                yield Series(name, tuple(points))

    ticks = ((1.0, "shortest"), (2.0, "second"), (3.0, "third"), (4.0, "longest"))
    words = {"x_title": "quarters of the answers, by length", "y_title": "mean score"}
    return _line_chart(
        runs,
        make_lines,
        subtitle="mean score with its 95% interval",
        ticks=ticks,
        **words,
    )


def _calibration(runs: Sequence[Run], metric: str | None) -> Chart:
    """Make a line for each run and task: how often answers are right, by the model's confidence."""

    def make_lines(run: Run, label: str) -> Iterator[Series]:
        task_confidences = list_confidences(run)
        for task, confidence, right in task_confidences:
            order = sorted(range(len(confidence)), key=lambda i: confidence[i])
            size = max(1, math.ceil(len(order) / BINS))
            points = []
            for start in range(0, len(order), size):
                bin_rows = order[start : start + size]
                k = sum(right[i] for i in bin_rows)
                n = len(bin_rows)
                low, high = wilson(k, n)
                points.append(
                    Point(
                        100 * sum(confidence[i] for i in bin_rows) / n,
                        100 * k / n,
                        100 * low,
                        100 * high,
                    )
                )
            yield Series(
                f"{label}: {inert(task)}" if len(task_confidences) > 1 else label,
                tuple(points),
            )

    notes = (
        (
            "On the diagonal a model is right as often as it is sure; below it, it is"
            " too sure."
        ),
    )
    words = {"x_title": "confidence, %", "y_title": "right, %"}
    subtitle = f"{BINS} groups of equal size, with 95% intervals"
    return _line_chart(
        runs, make_lines, subtitle=subtitle, notes=notes, diagonal=True, **words
    )


@dataclass(frozen=True, slots=True)
class FigureKind:
    """A kind of figure.

    Attributes:
        title: The figure's title, unless the view or the user gives one.
        about: What it shows, for lists of the kinds.
        view: Makes the picture or chart from runs and a metric.
        by_metric: Whether a metric can be chosen.
    """

    title: str
    about: str
    view: Callable[[Sequence[Run], str | None], PlotView | Chart]
    by_metric: bool = True


KINDS: Mapping[str, FigureKind] = {
    "scores": FigureKind("Scores", "each run's score", _scores),
    "differences": FigureKind(
        "Differences", "paired differences of two runs, or of each pair", _differences
    ),
    "cost": FigureKind(
        "Score and cost",
        "score against cost",
        _point_chart("US dollars for 1,000 items", _cost, "a known cost"),
    ),
    "latency": FigureKind(
        "Score and time",
        "score against time",
        _point_chart("median seconds of an answer", _seconds, "measured times"),
    ),
    "date": FigureKind(
        "Scores over time",
        "score against the run's day",
        _point_chart("day of the run", _day, "a date"),
    ),
    "length": FigureKind(
        "Score and length", "score by the length of the answers", _length, False
    ),
    "calibration": FigureKind(
        "Calibration", "how often confident answers are right", _calibration, False
    ),
    "agreement": FigureKind(
        "Agreement of judges",
        "how often judges' verdicts are the same",
        _agreement,
        False,
    ),
}


# -- drawing ---------------------------------------------------------------------------

_LEFT_INCHES = 0.75
_PLOT_WIDTH_INCHES = 5.1
_PLOT_HEIGHT_INCHES = 3.9
_TOP_INCHES = 0.95
_KEY_LINE_INCHES = 0.2
"""The left margin, the plot's size, the space above it, and the height of a line in the key."""


def draw_chart(chart: Chart, suffix: str) -> bytes:
    """Draw a chart and return it as a file.

    The same chart gives the same bytes. Raises MissingExtra without matplotlib.
    """
    with fixed_settings(suffix):
        return save_figure(_draw_chart(chart), suffix, chart.title)


def _draw_chart(chart: Chart) -> Any:
    from matplotlib.figure import Figure

    fonts = Fonts()
    notes = [
        line
        for note in chart.notes
        for line in fonts.wrap_words(note, 8, WIDTH_INCHES - 0.5)
    ]
    names = [
        fonts.break_lines(
            series.label, 8.5, WIDTH_INCHES - _LEFT_INCHES - _PLOT_WIDTH_INCHES - 0.75
        )
        for series in chart.series
    ]
    body = max(_PLOT_HEIGHT_INCHES, _KEY_LINE_INCHES * sum(map(len, names)))
    height = _TOP_INCHES + body + 0.75 + 0.17 * len(notes)
    figure = Figure(figsize=(WIDTH_INCHES, height), facecolor="white")

    def text(
        left: float,
        y: float,
        content: str,
        size: float,
        colour: str,
        bold: bool = False,
    ) -> None:
        font, glyphs = fonts.font_for(content, size, bold=bold)
        figure.text(
            left / WIDTH_INCHES,
            1 - y / height,
            glyphs,
            fontproperties=font,
            color=colour,
            parse_math=False,
        )

    text(
        0.25,
        0.36,
        fonts.shorten_to_fit(chart.title, 15, WIDTH_INCHES - 0.5, bold=True),
        15,
        INK,
        bold=True,
    )
    text(
        0.25,
        0.67,
        fonts.shorten_to_fit(chart.subtitle, 10.5, WIDTH_INCHES - 0.5),
        10.5,
        QUIET,
    )
    frame = (
        _LEFT_INCHES / WIDTH_INCHES,
        1 - (_TOP_INCHES + _PLOT_HEIGHT_INCHES) / height,
        _PLOT_WIDTH_INCHES / WIDTH_INCHES,
        _PLOT_HEIGHT_INCHES / height,
    )
    axes = figure.add_axes(frame)
    joined = any(len(series.points) > 1 for series in chart.series)
    y = _TOP_INCHES
    for number, (series, lines) in enumerate(zip(chart.series, names, strict=True)):
        shift = (
            0.06 * (number - (len(chart.series) - 1) / 2)
            if chart.ticks and joined
            else 0.0
        )
        _series(axes, series, number, joined, shift)
        middle = 1 - (y + 0.5 * _KEY_LINE_INCHES * len(lines)) / height
        marker_x = (_LEFT_INCHES + _PLOT_WIDTH_INCHES + 0.3) / WIDTH_INCHES
        figure.add_artist(_marker([marker_x], [middle], number, joined))
        if not joined:
            figure.text(
                marker_x,
                middle,
                str(number + 1),
                color="white",
                size=6.5,
                weight="bold",
                ha="center",
                va="center",
            )
        for line in lines:
            text(
                _LEFT_INCHES + _PLOT_WIDTH_INCHES + 0.5,
                y + 0.75 * _KEY_LINE_INCHES,
                line,
                8.5,
                INK,
            )
            y += _KEY_LINE_INCHES
    _axes(axes, chart, fonts)
    for i, note in enumerate(reversed(notes)):
        text(0.25, height - 0.15 - 0.17 * i, note, 8, QUIET)
    return figure


def _marker(xs: Sequence[float], ys: Sequence[float], number: int, joined: bool) -> Any:
    from matplotlib.lines import Line2D

    marker, colour = (
        (_MARKS[number % len(_MARKS)], COLOURS[number % len(COLOURS)])
        if joined
        else ("o", LEADS)
    )
    return Line2D(
        xs,
        ys,
        marker=marker,
        color=colour,
        markersize=6.5 if joined else 10,
        markeredgewidth=0,
        linestyle="",
    )


def _series(axes: Any, series: Series, number: int, joined: bool, shift: float) -> None:
    """Draw a series.

    Args:
        axes: The axes to draw on.
        series: The series.
        number: The number of the series, which selects its colour and marker.
        joined: Whether its points are joined by a line.
        shift: How far to move it to the right, so that intervals of several series do not overlap.
    """
    xs = [point.x + shift for point in series.points]
    ys = [point.y for point in series.points]
    colour = COLOURS[number % len(COLOURS)] if joined else LEADS
    for point in series.points:
        if math.isfinite(point.low) and math.isfinite(point.high):
            axes.plot(
                [point.x + shift] * 2,
                [point.low, point.high],
                color=colour,
                linewidth=1.4,
                alpha=0.45,
                zorder=2,
            )
    if joined:
        axes.plot(xs, ys, color=colour, linewidth=1.4, zorder=3)
    axes.add_line(_marker(xs, ys, number, joined)).set_zorder(4)
    if not joined:
        axes.annotate(
            str(number + 1),
            (xs[0], ys[0]),
            color="white",
            size=6.5,
            weight="bold",
            ha="center",
            va="center",
            zorder=5,
        )


def _axes(axes: Any, chart: Chart, fonts: Fonts) -> None:
    """Draw the titles, ticks and grid of both axes."""
    from matplotlib.ticker import FuncFormatter

    places = [point.x for series in chart.series for point in series.points]
    if chart.diagonal:
        axes.plot(
            [0, 100],
            [0, 100],
            color=QUIET,
            linewidth=0.8,
            linestyle=(0, (4, 3)),
            zorder=1,
        )
        axes.set(xlim=(0, 100), ylim=(0, 100))
    elif chart.ticks:
        axes.set_xticks(
            [position for position, _ in chart.ticks],
            [label for _, label in chart.ticks],
        )
        axes.margins(x=0.12)
    elif min(places) > 0 and max(places) > 20 * min(places):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda number, _: f"{number:g}"))
        axes.xaxis.set_minor_formatter("")
    axes.set_axisbelow(True)
    axes.grid(color=LINE, linewidth=0.7)
    axes.tick_params(labelsize=8.5, colors=QUIET, length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for name, title in (("x", chart.x_title), ("y", chart.y_title)):
        font, glyphs = fonts.font_for(
            fonts.shorten_to_fit(
                title, 9, _PLOT_WIDTH_INCHES if name == "x" else _PLOT_HEIGHT_INCHES
            ),
            9,
        )
        getattr(axes, f"set_{name}label")(
            glyphs, fontproperties=font, color=INK, parse_math=False
        )
