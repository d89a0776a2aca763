"""Documents as self-contained HTML pages: no network, no foreign code, readable without scripts, in
light and dark.

A page carries its style and, where a table can be sorted, one small script, both allowed by their
hashes in a Content-Security-Policy that forbids everything else. The markup stands in `templates/`;
whatever text is put into it is made inert and escaped there and then.
"""

from __future__ import annotations

import base64
import hashlib
import math
import re
from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from html import escape
from importlib.resources import files
from typing import TYPE_CHECKING, Any

from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.axis import bar_of
from evalwright.reports.text import CODE_SPAN, inert, inert_lines

if TYPE_CHECKING:
    from jinja2 import Environment

_SEPARATED = re.compile(r"[^/_@:+-]*[/_@:+-]+(?=.)|.+")
"""A part of a name up to and with its separators, or the rest."""


def to_html(document: doc.Document) -> str:
    """The page of a document. The same document gives the same bytes."""
    sortable = any(
        isinstance(block, doc.Table) and block.sortable for block in document.blocks
    )
    title = (
        f"{document.title} · {document.back[0]}" if document.back else document.title
    )
    return fill_page("page", title, document=document, sortable=sortable)


def to_notebook(document: doc.Document) -> str:
    """The document as a part of a notebook, in the notebook's own colours: no script, nothing
    loaded.
    """
    from markupsafe import Markup

    style = Markup(read_asset("notebook.css"))
    return (
        _templates()
        .get_template("notebook.html")
        .render(style=style, document=document)
    )


def fill_page(kind: str, title: str, **values: Any) -> str:
    """A page of our own template, style and script of that name; values are put into it as inert,
    escaped text.
    """
    from markupsafe import Markup

    style = read_asset(f"{kind}.css")
    script = read_asset(f"{kind}.js")
    policy = (
        f"default-src 'none'; style-src {source_hash(style)}; script-src"
        f" {source_hash(script)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    own = {
        "title": title,
        "style": Markup(style),
        "script": Markup(script),
        "policy": Markup(policy),
    }
    return _templates().get_template(f"{kind}.html").render(own, **values)


def read_asset(name: str) -> str:
    """A style, script or template of ours."""
    return (files("evalwright.reports") / "templates" / name).read_text(
        encoding="utf-8"
    )


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    def shown(value: Any) -> Any:
        """Every text that is put out, unless it is markup of ours."""
        return value if isinstance(value, Markup) else inert(value)

    def name(content: str) -> Markup:
        """A name that may be long: kept apart from the direction of what surrounds it, and broken
        after separators.
        """
        return Markup(
            f"<bdi>{'<wbr>'.join(map(escape, _SEPARATED.findall(inert(content))))}</bdi>"
        )

    def prose(content: str) -> Markup:
        """A sentence, with what stands between backticks as code."""
        return Markup(CODE_SPAN.sub(r"<code>\1</code>", escape(inert(content))))

    made = Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        finalize=shown,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= {
        "name": name,
        "prose": prose,
        "lines": lambda content: Markup(escape(inert_lines(content))),
    }
    made.globals |= {
        "bar_of": bar_of,
        "is_number": lambda cell: isinstance(cell.content, doc.Number),
        "kind_of": lambda block: type(block).__name__,
        "known": _known,
        "laid_out": _laid_out,
        "parts": _parts,
        "sort_key": _sort_key,
        "tables": _tables,
    }
    return made


def source_hash(content: str) -> str:
    """A style or script as a Content-Security-Policy allows it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


ROOM = 74.0
"""Characters' heights (rem) that a page of 1,280 pixels leaves to a table; what is wider falls into
parts.
"""
_WIDTHS = {"key": 13.0, "drawn": 15.5, "folds": 9.0, "right": 4.6, "": 6.6}


def _tables(table: doc.Table) -> list[doc.Table]:
    """The table in parts that fit a common screen; on a narrower one the page puts the cells of a
    row below each other.
    """
    columns, rows = table.cells(drawn=True)
    table = replace(table, columns=columns, rows=rows)
    widths = [_width(column) for column in columns]
    first, *others = table.parts(widths, ROOM)
    return [first, *(replace(part, caption=_stretch(part)) for part in others)]


def _stretch(part: doc.Table) -> str:
    """From which column to which a part goes."""
    titles = [
        column.title for column in part.columns if not (column.key or column.under)
    ]
    return " to ".join(dict.fromkeys((titles[0], titles[-1])))


def _width(column: doc.Column) -> float:
    if column.under:
        return 0.0
    if column.axis is not None:
        return _WIDTHS["drawn"]
    kind = (
        "right"
        if column.right
        else "key"
        if column.key
        else "folds"
        if column.folds
        else ""
    )
    return _WIDTHS[kind]


Under = Sequence[tuple[str, doc.Cell]]


def _laid_out(
    table: doc.Table,
) -> tuple[
    str,
    list[tuple[doc.Column, str]],
    list[list[tuple[doc.Cell, doc.Column, str, Under]]],
]:
    """Its caption; the columns that stand in their own right, with how each is styled; and their
    cells, with those below.
    """
    columns, rows = table.cells(drawn=True)
    shown = [i for i, column in enumerate(columns) if not column.under]
    head = next((i for i in shown if columns[i].key and not columns[i].right), shown[0])
    kinds = {i: _kind(columns[i], [row[i] for row in rows], i == head) for i in shown}
    ends = dict(zip(shown, [*shown[1:], len(columns)], strict=True))
    cells: list[list[tuple[doc.Cell, doc.Column, str, Under]]] = [
        [
            (
                row[i],
                columns[i],
                kinds[i],
                [(columns[j].title, row[j]) for j in range(i + 1, ends[i])],
            )
            for i in shown
        ]
        for row in rows
    ]
    return (
        table.caption or columns[head].heading or "Table",
        [(columns[i], kinds[i]) for i in shown],
        cells,
    )


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


def _sort_key(cell: doc.Cell) -> str:
    """What the column is sorted by; nothing where there is no number."""
    content = cell.content
    if cell.sort is not None:
        return repr(cell.sort)
    if isinstance(content, doc.Number):
        return (
            repr(content.estimate.value) if _known(content) and content.estimate else ""
        )
    return "" if content == numbers.NOTHING else content


def _known(number: doc.Number) -> bool:
    return number.estimate is not None and not math.isnan(number.estimate.value)


def _parts(number: doc.Number) -> tuple[str, str]:
    """The value and the interval; the latter empty where there is none."""
    if number.estimate is None or math.isnan(number.estimate.value):
        return numbers.NOTHING, ""
    found = number.estimate
    unit = number.unit
    return numbers.value(found, unit), numbers.interval(found, unit, "")
