"""Figures of finished runs beside the bars of `plot`: a score against cost, time, day or length of
the answers, and calibration.

Each is a `Chart`: points that stand alone, one for each model and numbered, or lines, one for each
model.
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
from evalwright.analysis.confidence import confidences
from evalwright.analysis.judge_validation.panels import judges_agreement
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
    WIDTH,
    Fonts,
    draw_plot,
    fixed_settings,
    written,
)
from evalwright.reports.plot_view import PlotView, direction, plot_view, score_bar
from evalwright.reports.text import inert
from evalwright.runs.confirmed import confirm_all
from evalwright.runs.reader import Run, called
from evalwright.statistics.intervals import wilson

BINS = 10
MOST_LINES = 8
"""Models of a chart of lines: with more they cannot be told apart."""
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
"""Apart for colour-blind eyes (Okabe and Ito); the marks differ too."""
_MARKS = "osD^vP*X"


@dataclass(frozen=True, slots=True)
class Point:
    """A value with its interval, nan where there is none."""

    x: float
    y: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Series:
    """A model and its points; one alone, or several that are joined."""

    label: str
    points: tuple[Point, ...]


@dataclass(frozen=True, slots=True)
class Chart:
    """ticks: (place, label) of the horizontal axis, where they are no plain numbers. diagonal: draw
    where x and y are the same.
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
    """The figure as a file of a kind: ".svg", ".png" or ".pdf".

    Raises UnknownName for a kind that there is not, ConfigurationError where the runs have nothing
    to draw, MissingExtra.
    """
    check_known("figure", [kind], KINDS)
    found = KINDS[kind]
    if metric and not found.by_metric:
        raise ConfigurationError(
            f"The figure '{kind}' is not drawn by a metric: leave out --metric."
        )
    view = found.view(confirm_all(runs), metric)
    view = replace(view, title=inert(title) or view.title or found.title)
    return (
        draw_plot(view, suffix)
        if isinstance(view, PlotView)
        else draw_chart(view, suffix)
    )


# -- what is drawn ---------------------------------------------------------------------


def _scores(runs: Sequence[Run], metric: str | None) -> PlotView:
    return plot_view(make_board(runs, metric), "", best=len(runs))


def _differences(runs: Sequence[Run], metric: str | None) -> PlotView:
    from evalwright.reports.results import picture

    if len(runs) < 2:
        raise ConfigurationError("A figure of differences needs two runs or more.")
    found = (
        compare_runs(*runs, metric=metric)
        if len(runs) == 2
        else compare_several(runs, metric=metric)
    )
    return picture(found).view


def _agreement(runs: Sequence[Run], metric: str | None) -> PlotView:
    """A bar for each pair of judges: how often their verdicts are the same."""
    found = judges_agreement(list(runs))
    rows = [score_bar(f"{one.a} and {one.b}", one.raw, "points") for one in found.pairs]
    notes = (f"{numbers.counted(found.n, 'answer')} with two verdicts or more.",)
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
    """What is scored, each run with its name and estimate, and how numbers are scaled."""
    board = make_board(runs, metric)
    column = score_columns(board)[0]
    scale = 100.0 if column.unit == "points" else 1.0
    rows = zip(board.rows, board_labels(board), column.estimates, strict=True)
    found = [
        (runs[row.run_index], label, one)
        for row, label, one in rows
        if one and not math.isnan(one.value)
    ]
    unit = ", points of 100" if column.unit == "points" and not column.measure else ""
    return f"{inert(column.title)}{unit} ({direction(column)})", found, scale


def _points(
    x_title: str, x: Callable[[Run], float | None], without: str
) -> Callable[..., Chart]:
    """A chart with a point for each run at what `x` says of it. without: what a run may lack, for a
    note.
    """

    def view(runs: Sequence[Run], metric: str | None) -> Chart:
        y_title, found, scale = _headline(runs, metric)
        series = []
        lacking = []
        for run, label, one in found:
            place = x(run)
            if place is None or not math.isfinite(place):
                lacking.append(inert(label))
            else:
                ends = scale * one.low, scale * one.high
                series.append(
                    Series(inert(label), (Point(place, scale * one.value, *ends),))
                )
        if not series:
            raise ConfigurationError(f"There is nothing to plot: no run has {without}.")
        notes = [f"Without {without}: {', '.join(lacking)}."] if lacking else []
        ticks = _days([one.points[0].x for one in series]) if x is _day else ()
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
    items = sum(task.n_samples for task in run.tasks)
    return None if run.cost is None or not items else 1000 * run.cost / items


def _seconds(run: Run) -> float | None:
    found = [
        seconds
        for row in run.rows()
        for seconds in row.get("timing", {}).get("latency", ())
        if seconds > 0
    ]
    return statistics.median(found) if found else None


def _day(run: Run) -> float | None:
    try:
        return float(date.fromisoformat(str(run.data["started"])[:10]).toordinal())
    except ValueError:
        return None


def _days(places: Sequence[float]) -> tuple[tuple[float, str], ...]:
    """Up to five days on the axis."""
    first = int(min(places))
    last = int(max(places))
    step = max(1, math.ceil((last - first) / 4))
    days = range(first, last + 1, step)
    return tuple(
        (float(day), (date.min + timedelta(days=day - 1)).isoformat()) for day in days
    )


def _lines(
    runs: Sequence[Run], made: Callable[[Run, str], Iterator[Series]], **more: Any
) -> Chart:
    if len(runs) > MOST_LINES:
        raise ConfigurationError(
            f"At most {MOST_LINES} runs can be distinguished in this figure: name fewer"
            f" than {len(runs)}."
        )
    series = tuple(
        one
        for run, label in zip(runs, called(runs), strict=True)
        for one in made(run, inert(label))
    )
    if not series:
        raise ConfigurationError(
            "There is nothing to plot: the runs have no answers with a score."
        )
    return Chart(series=series, **more)


def _length(runs: Sequence[Run], metric: str | None) -> Chart:
    """A line for each run and task: the mean score in each quarter of its answers, by length."""

    def made(run: Run, label: str) -> Iterator[Series]:
        tasks = analyse_run(run)
        for task in tasks:
            name = f"{label}: {inert(task.name)}" if len(tasks) > 1 else label
            bounded = 0 <= task.score.value <= 1 and task.threshold == 0.5
            scale = 100.0 if bounded else 1.0
            groups = [(place, one.score) for place, one in enumerate(task.lengths, 1)]
            points = [
                Point(place, scale * one.value, scale * one.low, scale * one.high)
                for place, one in groups
            ]
            if points := [one for one in points if math.isfinite(one.y)]:
                yield Series(name, tuple(points))

    ticks = ((1.0, "shortest"), (2.0, "second"), (3.0, "third"), (4.0, "longest"))
    words = {"x_title": "quarters of the answers, by length", "y_title": "mean score"}
    return _lines(
        runs, made, subtitle="mean score with its 95% interval", ticks=ticks, **words
    )


def _calibration(runs: Sequence[Run], metric: str | None) -> Chart:
    """A line for each run and task: how often answers are right, by how sure the model is of them."""

    def made(run: Run, label: str) -> Iterator[Series]:
        found = confidences(run)
        for task, sure, right in found:
            order = sorted(range(len(sure)), key=lambda i: sure[i])
            size = max(1, math.ceil(len(order) / BINS))
            points = []
            for start in range(0, len(order), size):
                mine = order[start : start + size]
                k = sum(right[i] for i in mine)
                n = len(mine)
                low, high = wilson(k, n)
                points.append(
                    Point(
                        100 * sum(sure[i] for i in mine) / n,
                        100 * k / n,
                        100 * low,
                        100 * high,
                    )
                )
            yield Series(
                f"{label}: {inert(task)}" if len(found) > 1 else label, tuple(points)
            )

    notes = (
        (
            "On the diagonal a model is right as often as it is sure; below it, it is"
            " too sure."
        ),
    )
    words = {"x_title": "confidence, %", "y_title": "right, %"}
    said = f"{BINS} groups of equal size, with 95% intervals"
    return _lines(runs, made, subtitle=said, notes=notes, diagonal=True, **words)


@dataclass(frozen=True, slots=True)
class Kind:
    """A kind of figure. about: what it shows, for lists; view: of runs and the metric that is
    shown, where it is drawn by one.

    title: where neither the view nor the person has another.
    """

    title: str
    about: str
    view: Callable[[Sequence[Run], str | None], PlotView | Chart]
    by_metric: bool = True


KINDS: Mapping[str, Kind] = {
    "scores": Kind("Scores", "each run's score", _scores),
    "differences": Kind(
        "Differences", "paired differences of two runs, or of each pair", _differences
    ),
    "cost": Kind(
        "Score and cost",
        "score against cost",
        _points("US dollars for 1,000 items", _cost, "a known cost"),
    ),
    "latency": Kind(
        "Score and time",
        "score against time",
        _points("median seconds of an answer", _seconds, "measured times"),
    ),
    "date": Kind(
        "Scores over time",
        "score against the run's day",
        _points("day of the run", _day, "a date"),
    ),
    "length": Kind(
        "Score and length", "score by the length of the answers", _length, False
    ),
    "calibration": Kind(
        "Calibration", "how often confident answers are right", _calibration, False
    ),
    "agreement": Kind(
        "Agreement of judges",
        "how often judges' verdicts are the same",
        _agreement,
        False,
    ),
}


# -- drawing ---------------------------------------------------------------------------

_LEFT = 0.75
_PLOT = 5.1
_TALL = 3.9
_TOP = 0.95
_KEY = 0.2
"""Inches: the left margin, width and height of the plot, what is above it, and a line of the key.
"""


def draw_chart(chart: Chart, suffix: str) -> bytes:
    """The chart as a file.

    The same chart gives the same bytes. Raises MissingExtra without matplotlib.
    """
    with fixed_settings(suffix):
        return written(_drawn(chart), suffix, chart.title)


def _drawn(chart: Chart) -> Any:
    from matplotlib.figure import Figure

    fonts = Fonts()
    notes = [
        line for note in chart.notes for line in fonts.wrapped(note, 8, WIDTH - 0.5)
    ]
    names = [
        fonts.broken(one.label, 8.5, WIDTH - _LEFT - _PLOT - 0.75)
        for one in chart.series
    ]
    body = max(_TALL, _KEY * sum(map(len, names)))
    height = _TOP + body + 0.75 + 0.17 * len(notes)
    figure = Figure(figsize=(WIDTH, height), facecolor="white")

    def text(
        x: float, y: float, content: str, size: float, colour: str, bold: bool = False
    ) -> None:
        font, shown = fonts.of(content, size, bold=bold)
        figure.text(
            x / WIDTH,
            1 - y / height,
            shown,
            fontproperties=font,
            color=colour,
            parse_math=False,
        )

    text(
        0.25,
        0.36,
        fonts.fitted(chart.title, 15, WIDTH - 0.5, bold=True),
        15,
        INK,
        bold=True,
    )
    text(0.25, 0.67, fonts.fitted(chart.subtitle, 10.5, WIDTH - 0.5), 10.5, QUIET)
    place = (_LEFT / WIDTH, 1 - (_TOP + _TALL) / height, _PLOT / WIDTH, _TALL / height)
    axes = figure.add_axes(place)
    joined = any(len(one.points) > 1 for one in chart.series)
    y = _TOP
    for number, (one, lines) in enumerate(zip(chart.series, names, strict=True)):
        shift = (
            0.06 * (number - (len(chart.series) - 1) / 2)
            if chart.ticks and joined
            else 0.0
        )
        _series(axes, one, number, joined, shift)
        middle = 1 - (y + 0.5 * _KEY * len(lines)) / height
        x = (_LEFT + _PLOT + 0.3) / WIDTH
        figure.add_artist(_marker([x], [middle], number, joined))
        if not joined:
            figure.text(
                x,
                middle,
                str(number + 1),
                color="white",
                size=6.5,
                weight="bold",
                ha="center",
                va="center",
            )
        for line in lines:
            text(_LEFT + _PLOT + 0.5, y + 0.75 * _KEY, line, 8.5, INK)
            y += _KEY
    _axes(axes, chart, fonts)
    for i, note in enumerate(reversed(notes)):
        text(0.25, height - 0.15 - 0.17 * i, note, 8, QUIET)
    return figure


def _marker(x: Sequence[float], y: Sequence[float], number: int, joined: bool) -> Any:
    from matplotlib.lines import Line2D

    kind, colour = (
        (_MARKS[number % len(_MARKS)], COLOURS[number % len(COLOURS)])
        if joined
        else ("o", LEADS)
    )
    return Line2D(
        x,
        y,
        marker=kind,
        color=colour,
        markersize=6.5 if joined else 10,
        markeredgewidth=0,
        linestyle="",
    )


def _series(axes: Any, one: Series, number: int, joined: bool, shift: float) -> None:
    """Draw a series. shift: to the right, so that intervals of several stand beside each other."""
    xs = [point.x + shift for point in one.points]
    ys = [point.y for point in one.points]
    colour = COLOURS[number % len(COLOURS)] if joined else LEADS
    for point in one.points:
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
    """Titles, ticks and lines of both axes."""
    from matplotlib.ticker import FuncFormatter

    places = [point.x for one in chart.series for point in one.points]
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
            [x for x, _ in chart.ticks], [label for _, label in chart.ticks]
        )
        axes.margins(x=0.12)
    elif min(places) > 0 and max(places) > 20 * min(places):
        axes.set_xscale("log")
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))
        axes.xaxis.set_minor_formatter("")
    axes.set_axisbelow(True)
    axes.grid(color=LINE, linewidth=0.7)
    axes.tick_params(labelsize=8.5, colors=QUIET, length=0)
    for side in axes.spines.values():
        side.set_visible(False)
    for name, title in (("x", chart.x_title), ("y", chart.y_title)):
        font, shown = fonts.of(
            fonts.fitted(title, 9, _PLOT if name == "x" else _TALL), 9
        )
        getattr(axes, f"set_{name}label")(
            shown, fontproperties=font, color=INK, parse_math=False
        )
