"""What the terminal and a Markdown file show of the agreement of several judges."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from evalwright.reports import numbers
from evalwright.reports.layout import Block, Column, Heading, Line, Table
from evalwright.reports.markdown import code
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.analysis.judge_validation.panels import PanelAgreement
    from evalwright.statistics import Estimate

_TITLES = ("Judge", "Passes [interval]", "Answers")
_PAIR_TITLES = (
    "Judges",
    "Same verdict",
    "Cohen's kappa",
    "Gwet's AC1",
    "Only first : only second",
    "Answers",
)


def agreement_blocks(found: PanelAgreement) -> list[Block]:
    """The page: what each judge passes, each pair, all together, and the answers that they differ on most."""
    raters = tuple((inert(one.name), _points(one.share), numbers.count(one.share.n)) for one in found.raters)
    pairs = tuple(_pair(found, place) for place in range(len(found.pairs)))
    blocks: list[Block] = [
        Heading("Judges"),
        Table(_columns(_TITLES), raters, {}, indent=2),
        Heading("Agreement"),
        Table(_columns(_PAIR_TITLES), pairs, {}, indent=2),
    ]
    blocks += [Line(text, "quiet", indent=2, hang=2) for text in notes(found)]
    if found.disputed:
        columns = (
            Column("Answer", folds=True, key=True),
            *(Column(inert(one.name), right=True) for one in found.raters),
        )
        rows = tuple((inert(f"{one.task} {one.id}"), *map(_value, one.values)) for one in found.disputed)
        blocks += [Heading("Furthest apart"), Table(columns, rows, {}, indent=2)]
    return blocks


def notes(found: PanelAgreement) -> list[str]:
    """What the numbers rest on, in sentences."""
    out = []
    if len(found.raters) > 2:
        out.append(
            f"All {len(found.raters)} together: same verdict {_points(found.raw)}, Gwet's AC1 {_plain(found.ac1)}, "
            f"n = {numbers.count(found.n)}."
        )
    for one in found.raters:
        if one.share.value in (0.0, 1.0):
            verdict = "passes all" if one.share.value else "passes none"
            out.append(
                f"{inert(one.name)} {verdict} of these answers, so Cohen's kappa with it is 0 whatever the other judge says, "
                f"and its interval means nothing; Gwet's AC1 is the one to read."
            )
    if found.n_left_out:
        out.append(f"{numbers.counted(found.n_left_out, 'answer')} without two verdicts left out.")
    if found.n_other:
        out.append(
            f"{numbers.counted(found.n_other, 'answer')} of further runs left out: not those of the first run."
        )
    out.append(f"Intervals are {found.raw.level:.0%}, over answers like these; the judges are fixed.")
    return out


def agreement_markdown(found: PanelAgreement) -> str:
    """The same as Markdown tables; names stand in code spans."""
    raters = [(code(one.name), _points(one.share), numbers.count(one.share.n)) for one in found.raters]
    pairs = []
    for place, one in enumerate(found.pairs):
        _, *cells = _pair(found, place)
        pairs.append((f"{code(one.a)}, {code(one.b)}", *cells))
    parts = [
        _table(_TITLES, raters),
        _table(_PAIR_TITLES, pairs),
        "\n".join(f"- {note}" for note in notes(found)),
    ]
    if found.disputed:
        titles = ("Answer", *(code(one.name) for one in found.raters))
        rows = [(code(f"{one.task} {one.id}"), *map(_value, one.values)) for one in found.disputed]
        parts.append(_table(titles, rows))
    return "\n\n".join(parts) + "\n"


def _table(titles: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    rule = [":--", *["--:"] * (len(titles) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (titles, rule, *rows))


def _columns(titles: tuple[str, ...]) -> tuple[Column, ...]:
    first, *others = titles
    return (Column(first, folds=True, key=True), *(Column(title, right=True) for title in others))


def _pair(found: PanelAgreement, place: int) -> tuple[str, ...]:
    one = found.pairs[place]
    return (
        f"{inert(one.a)}, {inert(one.b)}",
        _points(one.raw),
        _plain(one.kappa),
        _plain(one.ac1),
        f"{numbers.count(one.only_a)} : {numbers.count(one.only_b)}",
        numbers.count(one.raw.n),
    )


def _points(estimate: Estimate) -> str:
    return numbers.score(estimate, "points")


def _plain(estimate: Estimate) -> str:
    if math.isnan(estimate.value):
        return numbers.NOTHING
    if math.isnan(estimate.low) or math.isnan(estimate.high):
        return f"{estimate.value:.2f} [{numbers.NOTHING}]"
    return f"{estimate.value:.2f} [{estimate.low:.2f}, {estimate.high:.2f}]"


def _value(value: float) -> str:
    return numbers.NOTHING if math.isnan(value) else f"{value:.2f}"
