"""Documents as self-contained HTML pages: no network, no foreign code, readable without scripts, in light and dark.

A page carries its style and, where a table can be sorted, one small script, both allowed by their hashes in a
Content-Security-Policy that forbids everything else. Text is made inert and escaped wherever it is put out.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Iterator, Sequence
from html import escape
from importlib.resources import files

from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import Axis, bar_of
from evalwright.reports.text import inert

_SEPARATED = re.compile(r"[^/_@:+-]*[/_@:+-]+(?=.)|.+")
"""A part of a name up to and with its separators, or the rest."""

FOOTER = "Made with evalwright. This page is one file: it loads nothing and sends nothing."


def to_html(document: doc.Document) -> str:
    """The page of a document. The same document gives the same bytes."""
    sortable = any(isinstance(block, doc.Table) and block.sortable for block in document.blocks)
    style, script = read_asset("page.css"), read_asset("page.js") if sortable else ""
    title = f"{document.title} · {document.back[0]}" if document.back else document.title
    body = [*_header(document, sortable), "<main>"]
    for block in document.blocks:
        body += _block(block, 0)
    body += ["</main>", f"<footer><p>{FOOTER}</p></footer>", f"<script>{script}</script>" if script else ""]
    return page(title, style, "\n".join(line for line in body if line), script)


def page(title: str, style: str, body: str, script: str = "", attributes: str = "") -> str:
    """A whole page around a body, which holds the script if there is one. attributes: of the body."""
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{content_policy(style, script)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n<meta name="color-scheme" content="light dark">\n'
        f'<link rel="icon" href="data:,">\n<title>{text(title)}</title>\n<style>{style}</style>\n</head>\n'
        f"<body{attributes}>\n{body}\n</body>\n</html>\n"
    )


def content_policy(style: str, script: str = "") -> str:
    """The Content-Security-Policy of a page: its own style and script by their hashes, and nothing else."""
    scripts = f"'{_hash(script)}'" if script else "'none'"
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src {scripts}; img-src data:; base-uri 'none'; "
        "form-action 'none'"
    )


def read_asset(name: str) -> str:
    """A style, script or template of ours."""
    return (files("evalwright.reports") / "templates" / name).read_text(encoding="utf-8")


def _hash(content: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}"


def text(content: str) -> str:
    """Untrusted text on one line, inert and escaped."""
    return escape(inert(content))


def name(content: str) -> str:
    """A name that may be long: kept apart from the direction of what surrounds it, and broken after separators."""
    return f"<bdi>{'<wbr>'.join(map(escape, _SEPARATED.findall(inert(content))))}</bdi>"


def lines(content: str) -> str:
    """A text of several lines: each is inert and escaped, and the breaks between them stay."""
    return "\n".join(map(text, re.split(r"\r\n|\r|\n", content)))


def _header(document: doc.Document, sortable: bool) -> Iterator[str]:
    if sortable:
        yield '<a class="skip" href="#board">Skip to the table</a>'
    yield "<header>"
    if document.back:
        title, address = document.back
        yield f'<p class="back">{_link(name(title), address)}</p>'
    yield f"<h1>{name(document.title)}</h1>"
    if document.lede:
        yield f'<p class="lede">{text(document.lede)}</p>'
    yield "</header>"


def _link(content: str, address: str) -> str:
    return f'<a href="{escape(address)}">{content}</a>' if address else content


# -- blocks ---------------------------------------------------------------------------------------------------------------


def _block(block: doc.Block, deeper: int) -> Iterator[str]:
    match block:
        case doc.Heading():
            yield f"<h{block.level + deeper}>{name(block.text)}</h{block.level + deeper}>"
        case doc.Note():
            yield f'<p class="note {block.tone}">{text(block.text)}</p>'
        case doc.Conclusion():
            yield f'<p class="conclusion {block.tone}">{text(block.text)}</p>'
        case doc.Notes():
            yield f'<ul class="notes">{"".join(f"<li>{text(one)}</li>" for one in block.texts)}</ul>'
        case doc.Facts():
            rows = (f"<div><dt>{text(what)}</dt><dd>{name(value)}</dd></div>" for what, value in block.rows)
            yield f'<dl class="facts">{"".join(rows)}</dl>'
        case doc.Table():
            yield from _table(block)
        case doc.Text():
            yield f'<dl class="text"><dt>{text(block.title)}</dt><dd><bdi>{lines(block.text)}</bdi></dd></dl>'
        case doc.Link():
            yield f"<p>{_link(text(block.text), block.address)}</p>"
        case doc.Picture():
            yield f'<p><img src="{escape(block.address)}" alt="{text(block.caption)}"></p>'
        case doc.Cards():
            yield f'<ul class="cards">{"".join(map(_card, block.cards))}</ul>'
            if any(card.others for card in block.cards):
                others = (
                    "The dot is this model with its interval; the strokes are the other models of the board."
                )
                yield f'<p class="note quiet">{others}</p>'
        case doc.Fold():
            before, after = (f'<span class="mark">{text(mark)}</span>' for mark in block.marks)
            yield f'<details id="run-{block.number}">'
            yield f'<summary>{before} <span class="who">{name(block.title)}</span> {after}</summary>'
            for one in block.blocks:
                yield from _block(one, deeper + 1)
            yield "</details>"


def _card(card: doc.Card) -> str:
    value, interval = _parts(card.number)
    measure = f' <span class="measure">{text(card.measure)}</span>' if card.measure else ""
    said = f"95% interval {interval}" if interval else "no interval"
    drawn = ""
    if _known(card.number):
        strokes = (card.axis.place(other) for other in card.others)
        ticks = card.axis.ticks
        drawn = (
            '<svg aria-hidden="true" focusable="false"><line class="base" x1="0" x2="100%" y1="12" y2="12"/>'
            + "".join(f'<line class="other" x1="{x}" x2="{x}" y1="6" y2="18"/>' for x in strokes)
            + _marks(card.number, card.axis, "12", "4")
            + f'<text x="0" y="32">{ticks[0][1]}</text><text x="100%" y="32" text-anchor="end">{ticks[-1][1]}</text></svg>'
        )
    return (
        f'<li><p class="what">{name(card.title)}</p><p class="number">{value}{measure}</p>'
        f'<span class="interval">{said}</span>{drawn}</li>'
    )


# -- tables ---------------------------------------------------------------------------------------------------------------


def _table(table: doc.Table) -> Iterator[str]:
    columns, rows = table.cells(drawn=True)
    shown = [i for i, column in enumerate(columns) if not column.under]
    head = next((i for i in shown if columns[i].key and not columns[i].right), shown[0])
    kinds = {i: _kind(columns[i], [row[i] for row in rows], i == head) for i in shown}
    caption = text(table.caption or columns[head].heading or "Table")
    yield f'<div class="scroll" role="region" aria-label="{caption}" tabindex="0">'
    yield '<table id="board" class="board">' if table.sortable else '<table class="plain">'
    yield (
        f"<caption>{caption}</caption>" if table.sortable else f'<caption class="unseen">{caption}</caption>'
    )
    yield "<thead><tr>"
    for place, i in enumerate(shown):
        yield _title(columns[i], kinds[i], table.sortable, first=place == 0)
    yield "</tr></thead><tbody>"
    for row in rows:
        parts = []
        for place, i in enumerate(shown):
            following = shown[place + 1] if place + 1 < len(shown) else len(columns)
            under = [(columns[j].title, row[j]) for j in range(i + 1, following)]
            parts.append(_cell(row[i], columns[i], kinds[i], under, i == head, table.sortable))
        yield f"<tr>{''.join(parts)}</tr>"
    yield "</tbody></table></div>"
    if table.sortable:
        yield '<p id="said" class="unseen" role="status" aria-live="polite"></p>'


def _kind(column: doc.Column, cells: Sequence[doc.Cell], head: bool) -> str:
    """How a column is styled."""
    if head:
        return "head"
    if column.axis is not None:
        return "drawn"
    if any(isinstance(cell.content, doc.Number) for cell in cells):
        return "number"
    if any(cell.stretch for cell in cells):
        return "rank" if column.key else "line"
    return "count" if column.right else "words"


def _title(column: doc.Column, kind: str, sortable: bool, *, first: bool) -> str:
    note = f' <span class="small">{text(column.note)}</span>' if column.note else ""
    title = name(column.title) if column.name else text(column.title)
    if not sortable:
        start, end = ('th scope="col"', "th") if column.title else ("td", "td")
        return f'<{start} class="{kind}">{title}{note}</{end}>'
    upwards = column.ascending or kind == "head" or (kind == "words" and column.folds)
    words = " data-text" if kind in ("head", "words") else ""
    ticks = ""
    if column.axis and column.ticks:
        marks = (
            f'<text x="{place}" y="11" text-anchor="middle">{label}</text>'
            for place, label in column.axis.ticks
        )
        ticks = f'<svg class="axis" aria-hidden="true" focusable="false">{"".join(marks)}</svg>'
    order, sorted_by = "ascending" if upwards else "descending", ' aria-sort="ascending"' if first else ""
    return (
        f'<th scope="col" class="{kind}" data-first="{order}"{words}{sorted_by}>'
        f'<span class="name">{title}</span>{note}{ticks}</th>'
    )


def _cell(
    cell: doc.Cell,
    column: doc.Column,
    kind: str,
    under: Sequence[tuple[str, doc.Cell]],
    head: bool,
    sortable: bool,
) -> str:
    tag, scope = ("th", ' scope="row"') if head else ("td", "")
    tone = f" {cell.tone}" if cell.tone and not head else ""
    key = f' data-sort="{_sort_key(cell)}"' if sortable else ""
    small = "".join(
        f'<span class="under {text(title).lower()}"><span class="unseen">, {text(title).lower()} </span>{_under(one)}</span>'
        for title, one in under
        if one.content
    )
    if isinstance(cell.content, doc.Number):
        value, interval = _parts(cell.content)
        shown = f'<span class="value">{value}</span>'
        shown += f' <span class="interval">{interval}</span>' if interval else ""
        shown += small
        if column.axis is not None:
            ticks = column.axis.ticks if column.ticks else ()
            shown = f'<div class="pair"><span class="numbers">{shown}</span>{_bar(cell.content, column.axis, ticks)}</div>'
    else:
        shown = name(cell.content) if cell.name or head else text(cell.content)
        shown = _link(shown, cell.link) + small + _stretch(cell.stretch)
        shown += f' <span class="small">{name(cell.note)}</span>' if cell.note else ""
        shown = f'<div class="who">{shown}</div>' if head else shown
    return f'<{tag}{scope} class="{kind}{tone}"{key}>{shown}</{tag}>'


def _under(cell: doc.Cell) -> str:
    if not isinstance(cell.content, doc.Number):
        return text(cell.content)
    value, interval = _parts(cell.content)
    return interval if cell.content.interval_only else f"{value} {interval}"


def _sort_key(cell: doc.Cell) -> str:
    """What the column is sorted by; nothing where there is no number."""
    content = cell.content
    if cell.sort is None and isinstance(content, doc.Number):
        return repr(content.estimate.value) if _known(content) and content.estimate else ""
    return (
        repr(cell.sort) if cell.sort is not None else "" if content == numbers.NOTHING else text(str(content))
    )


def _known(number: doc.Number) -> bool:
    return number.estimate is not None and not math.isnan(number.estimate.value)


def _parts(number: doc.Number) -> tuple[str, str]:
    """The value and the interval; the latter empty where there is none."""
    if number.estimate is None or math.isnan(number.estimate.value):
        return numbers.NOTHING, ""
    limits = numbers.limits(number.estimate, number.unit)
    return numbers.value(number.estimate, number.unit), f"[{limits[0]}, {limits[1]}]" if limits else ""


def _bar(number: doc.Number, axis: Axis, ticks: Sequence[tuple[str, str]]) -> str:
    if not _known(number):
        return ""
    lines = (f'<line class="tick" x1="{x}" x2="{x}" y1="0" y2="100%"/>' for x, _ in ticks)
    kind = "bar" if ticks else "bar lined"
    return f'<svg class="{kind}" aria-hidden="true" focusable="false">{"".join(lines)}{_marks(number, axis, "50%", "3.5")}</svg>'


def _marks(number: doc.Number, axis: Axis, y: str, radius: str) -> str:
    """An interval and its value on an axis."""
    assert number.estimate is not None
    bar = bar_of(number.estimate, axis)
    return (
        f'<line class="range" x1="{bar.low}" x2="{bar.high}" y1="{y}" y2="{y}"/>'
        f'<circle class="point" cx="{bar.value}" cy="{y}" r="{radius}"/>'
    )


def _stretch(part: tuple[float, float] | None) -> str:
    if part is None:
        return ""
    x, width = (f"{100 * share:.2f}%" for share in part)
    return (
        '<svg class="strip" aria-hidden="true" focusable="false"><rect class="all" width="100%" height="100%" rx="1.5"/>'
        f'<rect class="own" x="{x}" width="{width}" height="100%" rx="1.5"/></svg>'
    )
