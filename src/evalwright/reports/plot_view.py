"""The content of a leaderboard's picture: which models, in which order, with which notes."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from evalwright.analysis.board import Board, BoardRow
from evalwright.analysis.extra_columns import fact_text
from evalwright.analysis.words import listed
from evalwright.core.errors import ConfigurationError
from evalwright.reports import numbers
from evalwright.reports.columns import (
    ScoreColumn,
    as_of,
    is_hallucination_board,
    metric_of,
    score_columns,
)
from evalwright.reports.documents.board import board_labels
from evalwright.reports.text import inert
from evalwright.statistics import Estimate

MAX_GROUPS = 7
"""Most groups with a colour of their own: more cannot be told apart."""

OTHER_GROUP = "other"

DEFAULT_BEST = 25
"""The number of models that a picture shows by default."""


class NothingToPlot(ConfigurationError):
    """Raised if no model of a board has a number to draw."""


@dataclass(frozen=True, slots=True)
class PlotRow:
    """One bar of a picture, with its texts.

    Attributes:
        ends: The ends of its interval; None where there is none.
        value_text: The value as text.
        leads: Whether no other model is significantly better.
        group: What its colour stands for, one of the view's groups; "" where colours stand for
            `leads`.
    """

    ranks: str
    label: str
    value: float
    ends: tuple[float, float] | None
    value_text: str
    interval: str
    leads: bool
    group: str = ""


@dataclass(frozen=True, slots=True)
class PlotView:
    """A picture's bars and texts, with numbers as shown: points of 100 for bounded metrics.

    Attributes:
        ranked: Whether ranks are known.
        groups: What the colours stand for, in the order of the legend; () where they stand for
            whether a model may be the best.
    """

    title: str
    subtitle: str
    rows: tuple[PlotRow, ...]
    ranked: bool
    bounded: bool
    has_intervals: bool
    notes: tuple[str, ...]
    groups: tuple[str, ...] = ()


def plot_view(
    board: Board,
    title: str,
    best: int = DEFAULT_BEST,
    least_answered: float | None = None,
    colour_by: str = "",
    *,
    must_colour: bool = True,
) -> PlotView:
    """Select the best models by the board's first column for a picture.

    Args:
        board: The board.
        title: The picture's title.
        best: How many models to draw.
        least_answered: The least percentage of questions that a model must have answered to be
            drawn; a note names the others. None draws all.
        colour_by: The fact about the models that colours stand for, such as "family"; "" colours
            the models that may be the best.
        must_colour: Whether it is an error if no drawn model has this fact.

    Raises:
        ConfigurationError: No model is left, or no model has the fact.
    """
    if best < 1:
        raise ConfigurationError(f"--best must be at least 1, not {best}.")
    if least_answered is not None and not 0 <= least_answered <= 100:
        raise ConfigurationError(
            f"--least-answered must be between 0 and 100, not {least_answered:g}."
        )
    column = score_columns(board)[0]
    labels = [inert(label) for label in board_labels(board)]
    scored = [
        i
        for i, estimate in enumerate(column.estimates)
        if estimate and not math.isnan(estimate.value)
    ]
    rates = {i: round(100 * answer_rate(board, board.rows[i]), 9) for i in scored}
    excluded = [
        i for i in scored if least_answered is not None and rates[i] < least_answered
    ]
    eligible = [i for i in scored if i not in excluded]
    if not eligible:
        condition = "answered enough" if excluded else "has a score"
        raise NothingToPlot(f"There is nothing to plot: no model {condition}.")
    drawn_rows = eligible[:best]
    notes = []
    if excluded and least_answered is not None:
        names = [f"{labels[i]} ({rates[i]:.1f}%)" for i in excluded]
        notes.append(
            f"Left out because they answered less than {least_answered:g}%:"
            f" {listed(names, 6)}."
        )
    if len(drawn_rows) < len(eligible):
        notes.append(
            f"The best {len(drawn_rows)} of {numbers.counted(len(eligible), 'model')}."
        )
    ranked = sum(row.ranks is not None for row in board.rows) > 1
    rows = tuple(
        _row(board.rows[i], labels[i], column.estimates[i], column.unit, ranked)
        for i in drawn_rows
    )
    groups: tuple[str, ...] = ()
    has_fact = any(board.rows[i].facts.get(colour_by) for i in drawn_rows)
    if colour_by and (has_fact or must_colour):
        group_by_row, groups = _group_by_fact(
            [board.rows[i] for i in drawn_rows], colour_by
        )
        rows = tuple(
            replace(row, group=group)
            for row, group in zip(rows, group_by_row, strict=True)
        )
    return PlotView(
        title=inert(title),
        subtitle=_subtitle(column),
        rows=rows,
        ranked=ranked,
        bounded=column.unit == "points",
        has_intervals=any(row.ends for row in rows),
        notes=(*notes, f"Newest run: {inert(as_of(board))}."),
        groups=groups,
    )


def _group_by_fact(
    rows: Sequence[BoardRow], key: str
) -> tuple[list[str], tuple[str, ...]]:
    """Group rows by a fact about their models: the largest groups, and others together.

    Returns:
        The group of each row, and the groups in the order in which they first occur.

    Raises:
        ConfigurationError: No model has this fact.
    """
    texts = [inert(fact_text(key, row.facts.get(key))) for row in rows]
    counts = Counter(text for text in texts if text)
    if not counts:
        known_facts = sorted({name for row in rows for name in row.facts})
        raise ConfigurationError(
            f"The bars cannot be coloured by '{key}': no drawn model has this fact."
            f" Known facts: {', '.join(known_facts) or 'none'}. Name a table with --facts."
        )
    largest = {text for text, _ in counts.most_common(MAX_GROUPS)}
    groups = [text if text in largest else OTHER_GROUP for text in texts]
    named = dict.fromkeys(group for group in groups if group != OTHER_GROUP)
    others = [OTHER_GROUP] if OTHER_GROUP in groups else []
    return groups, (*named, *others)


def answer_rate(board: Board, row: BoardRow) -> float:
    """Return the share of questions that a model answered.

    It is the answer rate on a hallucination board, else the share of samples with a score.
    """
    if is_hallucination_board(board):
        metric = metric_of(row, board.tasks[0].name, "answer rate")
        if metric and not math.isnan(metric.estimate.value):
            return metric.estimate.value
    return row.n / row.n_asked if row.n_asked else 0.0


def bar(
    name: str,
    number: float,
    bounds: Any,
    unit: numbers.Unit,
    texts: tuple[str, str],
    *,
    leads: bool,
    ranks: str = "",
) -> PlotRow:
    """Make a bar, in the scale that is shown.

    Args:
        name: The bar's label.
        number: Its length, in the metric's own scale.
        bounds: An object with the ends of the interval, `low` and `high`.
        unit: The metric's unit.
        texts: The value and the interval as texts.
        leads: Whether no other model is significantly better.
        ranks: The range of ranks, as text.
    """
    scale = 100.0 if unit == "points" else 1.0
    finite = math.isfinite(bounds.low) and math.isfinite(bounds.high)
    ends = (scale * bounds.low, scale * bounds.high) if finite else None
    label = inert(name) if name.strip() else "(no name)"
    return PlotRow(ranks, label, scale * number, ends, *texts, leads)


def score_bar(
    name: str,
    estimate: Estimate,
    unit: numbers.Unit,
    *,
    leads: bool = True,
    ranks: str = "",
) -> PlotRow:
    """Make the bar of a score."""
    texts = numbers.value(estimate, unit), numbers.interval(estimate, unit, "")
    return bar(name, estimate.value, estimate, unit, texts, leads=leads, ranks=ranks)


def difference_bar(
    name: str, difference: Any, bounded: bool, *, leads: bool
) -> PlotRow:
    """Make the bar of a difference."""
    difference_text, _, ends = numbers.gap(
        difference.difference, difference, bounded=bounded
    ).partition(" ")
    return bar(
        name,
        difference.difference,
        difference,
        "points" if bounded else "plain",
        (difference_text, ends),
        leads=leads,
    )


def _row(
    row: BoardRow,
    label: str,
    estimate: Estimate | None,
    unit: numbers.Unit,
    ranked: bool,
) -> PlotRow:
    assert estimate is not None
    leads = bool(ranked and row.ranks and row.ranks[0] == 1)
    return score_bar(
        label,
        estimate,
        unit,
        leads=leads,
        ranks=numbers.ranks(row.ranks) if row.ranks else "",
    )


def _subtitle(column: ScoreColumn) -> str:
    if column.measure:
        subject = f"{column.title}, {column.measure}"
    elif not column.task:
        subject = "Mean over tasks, points of 100"
    else:
        metric = inert(column.metric)
        unit = ", points of 100" if column.unit == "points" else ""
        subject = f"{column.title}: {metric}{unit}"
    return f"{subject} · {direction(column)}"


def direction(column: ScoreColumn) -> str:
    """Say which direction is better."""
    return f"{'lower' if column.lower_is_better else 'higher'} is better"
