"""The section of a model's page about its history: a chart over time, and a table of changes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise

from evalwright.analysis.history import (
    CONFOUNDING,
    JUDGE,
    MODEL,
    VERSION,
    EarlierVerdict,
    HistoryEntry,
    ScoreChange,
)
from evalwright.analysis.words import listed
from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import axis_of
from evalwright.statistics import Estimate

MOST_DATES = 3
"""Most dates below a chart, so that they fit on a phone."""
MARGIN_SHARE = 0.02
"""Room at the left and right end of a chart, as a share of its width."""
MARKED = (MODEL, *CONFOUNDING)
"""Changes that a chart marks."""


def history_blocks(history: Sequence[HistoryEntry]) -> Iterator[doc.Block]:
    """Show the results of a model over time; nothing where there is only one.

    Args:
        history: the results, the oldest first.
    """
    if not history or (len(history) == 1 and not history[0].earlier_verdicts):
        return
    yield doc.Heading("History", anchor="history")
    yield doc.Note(_summary(history))
    chart = _chart(history)
    if chart is not None:
        yield chart
    yield _table(history)
    yield doc.Notes(_notes(history))


def _unit(entry: HistoryEntry) -> numbers.Unit:
    return "points" if entry.bounded else "plain"


def _has_value(estimate: Estimate | None) -> bool:
    return estimate is not None and math.isfinite(estimate.value)


# -- the chart -------------------------------------------------------------------------


def _chart(history: Sequence[HistoryEntry]) -> doc.TimeChart | None:
    """Draw the scores by the days of the answers; None where there are no two."""
    scored_entries = [entry for entry in history if _has_value(entry.score)]
    if len(scored_entries) < 2:
        return None
    unit = _unit(scored_entries[-1])
    verdicts = [
        (entry, verdict)
        for entry in scored_entries
        for verdict in entry.earlier_verdicts
        if _has_value(verdict.score)
    ]
    estimates = [entry.score for entry in scored_entries] + [
        verdict.score for _, verdict in verdicts
    ]
    places = _Places([entry.date for entry in scored_entries])
    points: list[doc.TimePoint] = []
    for index, entry in enumerate(scored_entries):
        points += [
            doc.TimePoint(
                places.of(entry.date), doc.Number(verdict.score, unit), is_faint=True
            )
            for owner, verdict in verdicts
            if owner is entry
        ]
        points.append(
            doc.TimePoint(
                places.of(entry.date),
                doc.Number(entry.score, unit),
                is_joined=index > 0
                and _are_comparable(scored_entries[index - 1], entry),
            )
        )
    measure = scored_entries[-1].measure
    faint = "; hollow: by earlier verdicts on the same answers" if verdicts else ""
    return doc.TimeChart(
        caption=f"{measure}, with 95% intervals, by the day of the answers{faint}",
        points=points,
        marks=_marks(scored_entries, places),
        axis=axis_of([estimate for estimate in estimates if estimate], unit),
        dates=places.ticks(),
    )


class _Places:
    """Positions of days between the first and the last one."""

    def __init__(self, days: Sequence[str]) -> None:
        self._days = sorted(set(days))
        self._first = date.fromisoformat(self._days[0]).toordinal()
        self._last = date.fromisoformat(self._days[-1]).toordinal()

    def of(self, day: str) -> str:
        """Return the position of a day."""
        return self._text(date.fromisoformat(day).toordinal())

    def between(self, before: str, day: str) -> str:
        """Return the position in the middle of two days."""
        ordinals = [date.fromisoformat(text).toordinal() for text in (before, day)]
        return self._text(sum(ordinals) / 2)

    def _text(self, ordinal: float) -> str:
        span = self._last - self._first
        share = (ordinal - self._first) / span if span else 0.5
        return f"{100 * (MARGIN_SHARE + (1 - 2 * MARGIN_SHARE) * share):.2f}%"

    def ticks(self) -> list[tuple[str, str]]:
        """Return positions and texts of a few evenly spread days."""
        span = self._last - self._first
        n_dates = min(MOST_DATES, len(self._days))
        if n_dates < 2:
            return [(self.of(self._days[0]), self._days[0])]
        ordinals = [
            self._first + round(span * index / (n_dates - 1))
            for index in range(n_dates)
        ]
        return [
            (self._text(ordinal), date.fromordinal(ordinal).isoformat())
            for ordinal in ordinals
        ]


def _marked_changes(entry: HistoryEntry) -> list[str]:
    return [
        f"{change.what}: {change.text}"
        for change in entry.changes
        if change.what in MARKED
    ]


def _are_comparable(before: HistoryEntry, entry: HistoryEntry) -> bool:
    return before.judge == entry.judge and not _marked_changes(entry)


def _marks(
    scored_entries: Sequence[HistoryEntry], places: _Places
) -> list[doc.TimeMark]:
    """Mark where something else than chance can have changed the score."""
    marks: list[doc.TimeMark] = []
    for before, entry in pairwise(scored_entries):
        if texts := _marked_changes(entry):
            marks.append(
                doc.TimeMark(
                    places.between(before.date, entry.date),
                    str(len(marks) + 1),
                    f"{entry.date}: {'; '.join(texts)}",
                )
            )
    return marks


# -- the table -------------------------------------------------------------------------


def _table(history: Sequence[HistoryEntry]) -> doc.Table:
    columns = [
        doc.Column("Run", folds=True, key=True),
        doc.Column("Date"),
        doc.Column("Score"),
        doc.Column("Items", right=True),
        doc.Column("Change", "from the result before", right=True),
        doc.Column("Judge", folds=True),
        doc.Column("What changed", folds=True),
    ]
    rows: list[Sequence[doc.Content]] = []
    for entry in reversed(history):
        unit = _unit(entry)
        rows.append(
            (
                doc.Cell(entry.run, name=True),
                entry.date,
                doc.Cell(doc.Number(entry.score, unit), "strong"),
                numbers.count(entry.score.n) if entry.score else "",
                change_text(entry.score_change, bounded=entry.bounded),
                doc.Cell(entry.judge, name=True),
                doc.Cell(_what_changed(entry), _tone(entry)),
            )
        )
        rows += [
            _verdict_row(entry, verdict) for verdict in reversed(entry.earlier_verdicts)
        ]
    return doc.Table(columns, rows, "Results by date, the newest first")


def _verdict_row(entry: HistoryEntry, verdict: EarlierVerdict) -> Sequence[doc.Content]:
    return (
        doc.Cell(verdict.run, name=True),
        doc.Cell(entry.date, "quiet"),
        doc.Cell(doc.Number(verdict.score, _unit(entry)), "quiet"),
        numbers.count(verdict.score.n) if verdict.score else "",
        "",
        doc.Cell(verdict.judge, name=True),
        doc.Cell(f"the same answers, as scored on {verdict.date}", "quiet"),
    )


def _tone(entry: HistoryEntry) -> doc.Tone:
    return "warn" if entry.confounded_by or entry.may_be_silent else ""


def change_text(change: ScoreChange | None, *, bounded: bool) -> str:
    """Format a change of the score with its interval; "" where there is none."""
    if change is None:
        return ""
    text = numbers.difference(
        change.difference, change.low, change.high, bounded=bounded
    )
    return text if change.paired else f"{text}, other items"


def _what_changed(entry: HistoryEntry) -> str:
    texts = [f"{change.what}: {change.text}" for change in entry.changes]
    if entry.confounded_by and entry.score_change is not None:
        texts.append(f"not a change of the model alone ({listed(entry.confounded_by)})")
    if entry.may_be_silent:
        texts.append("the score changed, and nothing in the records did")
    if entry.reason:
        texts.append(f"no change of the score: {entry.reason.rstrip('.')}")
    if entry.scored:
        texts.append(f"scored on {entry.scored}")
    return "; ".join(texts)


# -- sentences -------------------------------------------------------------------------


def _summary(history: Sequence[HistoryEntry]) -> str:
    first, last = history[0], history[-1]
    n_results = numbers.counted(len(history), "result")
    sentence = f"{n_results} from {first.date} to {last.date}."
    kinds = {
        change.what
        for entry in history
        for change in entry.changes
        if change.what != VERSION
    }
    named = [kind for kind in (*MARKED,) if kind in kinds]
    if not named:
        return f"{sentence} By their records, nothing changed but the date."
    return f"{sentence} Between them changed: {listed(named)}."


def _notes(history: Sequence[HistoryEntry]) -> list[str]:
    notes = [
        "A change is the score minus that of the result before, with its 95% interval, on the"
        " items that both have. Where judge, data, prompt, settings or scorers differ, it is"
        " not a change of the model alone.",
    ]
    if any(entry.earlier_verdicts for entry in history):
        notes.append(
            "Answers that were scored again are shown by the newest verdicts; the earlier ones"
            " are below them."
        )
    if any(entry.may_be_silent for entry in history):
        notes.append(
            "Where the score changed and nothing in the records did, the model may have"
            " changed under its name: `evalwright check drift` tells, with rounds of a fixed"
            " sample."
        )
    if any(JUDGE in entry.confounded_by for entry in history):
        notes.append(
            "`evalwright score RUN... --judge NAME --plan` says what it costs to have all"
            " answers scored by one judge."
        )
    return notes
