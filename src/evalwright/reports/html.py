"""Documents as self-contained HTML pages, for light and dark screens, readable without scripts.

A page carries its style and, where a table can be sorted, one small script, both allowed by their
hashes in a Content-Security-Policy that forbids everything else. The markup is in `templates/`; all
text that goes into it is made inert and escaped there.
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
"""A part of a name with the separators after it, or the end of the name."""


def to_html(document: doc.Document) -> str:
    """Render a document as a page. The same document gives the same bytes."""
    sortable = any(
        isinstance(block, doc.Table) and block.sortable for block in document.blocks
    )
    title = (
        f"{document.title} · {document.back[0]}" if document.back else document.title
    )
    return fill_page("page", title, document=document, sortable=sortable)


def to_notebook(document: doc.Document) -> str:
    """Render a document for a notebook, in the notebook's colours, without scripts."""
    from markupsafe import Markup

    style = Markup(read_asset("notebook.css"))
    return (
        _templates()
        .get_template("notebook.html")
        .render(style=style, document=document)
    )


def fill_page(
    template: str,
    title: str,
    *,
    styles: Sequence[str] = (),
    scripts: Sequence[str] = (),
    **values: Any,
) -> str:
    """Render one of our page templates, with its style and script.

    Args:
        template: The name of the template.
        title: The page's title.
        styles: The files of its style; the template's own if there are none.
        scripts: The files of its script; the template's own if there are none.
        values: Values for the template; their texts are made inert and escaped.
    """
    from markupsafe import Markup

    style = "".join(map(read_asset, styles or [f"{template}.css"]))
    script = "".join(map(read_asset, scripts or [f"{template}.js"]))
    policy = (
        f"default-src 'none'; style-src {source_hash(style)}; script-src"
        f" {source_hash(script)}; img-src data:; base-uri 'none'; form-action 'none'"
    )
    page_fields = {
        "title": title,
        "style": Markup(style),
        "script": Markup(script),
        "policy": Markup(policy),
    }
    return _templates().get_template(f"{template}.html").render(page_fields, **values)


def read_asset(name: str) -> str:
    """Read one of our styles, scripts or templates."""
    return (files("evalwright.reports") / "templates" / name).read_text(
        encoding="utf-8"
    )


@cache
def _templates() -> Environment:
    from jinja2 import Environment, FunctionLoader, StrictUndefined
    from markupsafe import Markup

    def make_inert(output: Any) -> Any:
        """Make every output text inert, unless it is our own markup."""
        return output if isinstance(output, Markup) else inert(output)

    def name(content: str) -> Markup:
        """Render a name that may be long.

        Its text direction does not affect the text around it, and it can be broken after
        separators.
        """
        return Markup(
            f"<bdi>{'<wbr>'.join(map(escape, _SEPARATED.findall(inert(content))))}</bdi>"
        )

    def prose(content: str) -> Markup:
        """Render a sentence, with the text between backticks as code."""
        return Markup(CODE_SPAN.sub(r"<code>\1</code>", escape(inert(content))))

    environment = Environment(
        loader=FunctionLoader(read_asset),
        autoescape=True,
        finalize=make_inert,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "name": name,
        "prose": prose,
        "lines": lambda content: Markup(escape(inert_lines(content))),
    }
    environment.globals |= {
        "bar_of": bar_of,
        "is_number": lambda cell: isinstance(cell.content, doc.Number),
        "kind_of": lambda block: type(block).__name__,
        "known": _has_number,
        "laid_out": _layout,
        "parts": _number_texts,
        "point_before": _point_before,
        "sort_key": _sort_key,
        "tables": _split_table,
        "upwards": _upwards,
    }
    return environment


def source_hash(content: str) -> str:
    """Return a style or script's hash, as a Content-Security-Policy names it."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()}'"


ROOM_REM = 74.0
"""The width, in rem, that a page of 1,280 pixels leaves for a table; a wider one is split."""
_WIDTHS = {"key": 13.0, "drawn": 15.5, "folds": 9.0, "right": 4.6, "": 6.6}


def _split_table(table: doc.Table) -> list[doc.Table]:
    """Split a table so that each piece fits a common screen.

    On narrower screens, the page puts the cells of a row below each other.
    """
    columns, rows = table.cells(drawn=True)
    table = replace(table, columns=columns, rows=rows)
    widths = [_width(column) for column in columns]
    first, *others = table.split_to_fit(widths, ROOM_REM)
    return [
        first,
        *(
            replace(split_table, caption=_column_span(split_table))
            for split_table in others
        ),
    ]


def _column_span(table: doc.Table) -> str:
    """Name the first and last column of a split table, for its caption."""
    titles = [
        column.title for column in table.columns if not (column.key or column.under)
    ]
    return " to ".join(dict.fromkeys((titles[0], titles[-1])))


def _width(column: doc.Column) -> float:
    if column.under:
        return 0.0
    if column.axis is not None:
        return _WIDTHS["drawn"]
    if column.right:
        return _WIDTHS["right"]
    if column.key:
        return _WIDTHS["key"]
    return _WIDTHS["folds" if column.folds else ""]


Under = Sequence[tuple[str, doc.Cell]]


def _layout(
    table: doc.Table,
) -> tuple[
    str,
    list[tuple[doc.Column, str]],
    list[list[tuple[doc.Cell, doc.Column, str, Under]]],
]:
    """Return the caption, the visible columns with their style, and their cells.

    Each cell comes with the cells of the columns that are printed below it.
    """
    columns, rows = table.cells(drawn=True)
    visible = [i for i, column in enumerate(columns) if not column.under]
    head = next(
        (i for i in visible if columns[i].key and not columns[i].right), visible[0]
    )
    styles = {
        i: _column_style(columns[i], [row[i] for row in rows], i == head)
        for i in visible
    }
    ends = dict(zip(visible, [*visible[1:], len(columns)], strict=True))
    cells: list[list[tuple[doc.Cell, doc.Column, str, Under]]] = [
        [
            (
                row[i],
                columns[i],
                styles[i],
                [(columns[j].title, row[j]) for j in range(i + 1, ends[i])],
            )
            for i in visible
        ]
        for row in rows
    ]
    return (
        table.caption or columns[head].heading or "Table",
        [(columns[i], styles[i]) for i in visible],
        cells,
    )


def _column_style(column: doc.Column, cells: Sequence[doc.Cell], head: bool) -> str:
    """Name the style of a column."""
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
    """Return the text by which a cell sorts; "" where there is no number."""
    content = cell.content
    if cell.sort is not None:
        return repr(cell.sort)
    if isinstance(content, doc.Number):
        return (
            repr(content.estimate.value)
            if _has_number(content) and content.estimate
            else ""
        )
    return "" if content == numbers.NOTHING else content


def _upwards(place: str) -> str:
    """Return a position from the bottom as one from the top: "20.00%" is "80.00%"."""
    return f"{100 - float(place.removesuffix('%')):.2f}%"


def _point_before(chart: doc.TimeChart, point: doc.TimePoint) -> int:
    """Return the index of the emphasised point before a point."""
    index = next(i for i, candidate in enumerate(chart.points) if candidate is point)
    return max(i for i in range(index) if not chart.points[i].is_faint)


def _has_number(number: doc.Number) -> bool:
    return number.estimate is not None and not math.isnan(number.estimate.value)


def _number_texts(number: doc.Number) -> tuple[str, str]:
    """Format the value and its interval; the latter is empty where there is none."""
    if number.estimate is None or math.isnan(number.estimate.value):
        return numbers.NOTHING, ""
    estimate = number.estimate
    unit = number.unit
    return numbers.value(estimate, unit), numbers.interval(estimate, unit, "")
