"""Documents as Markdown that reads the same in every renderer and never runs what a name contains.

Names are code spans, in which Markdown, HTML, links, mentions and images are plain characters.
The bytes depend on the document alone.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from evalwright.reports import document as doc
from evalwright.reports import numbers
from evalwright.reports.text import CODE_SPAN, inert

_SPECIAL = re.compile(r"[\\`*_{}\[\]<>#|~&!@$]|:(?=//)|(?<=www)\.", re.IGNORECASE)

_NUMBERS = re.compile(r"(?!\s*$)[-\d.,+%:–<\[\]na/ ]+")
"""Numbers that we formatted, with intervals and "n/a".

None of these characters is active in Markdown.
"""


def to_markdown(document: doc.Document, level: int = 1) -> str:
    """Render a document as Markdown.

    Args:
        document: The document.
        level: The level of its title's heading; 0 leaves out the title and the lede.
    """
    texts = []
    if level:
        texts = [f"{'#' * level} {escape(document.title)}"]
        texts += [escape(document.lede)] if document.lede else []
    texts += [
        text for block in document.blocks for text in _block(block, max(0, level - 1))
    ]
    return "\n\n".join(text for text in texts if text) + "\n"


def _block(block: doc.Block, level: int) -> Iterator[str]:
    match block:
        case doc.Heading():
            yield f"{'#' * (level + block.level)} {escape(block.text)}"
        case doc.Note():
            yield _prose(block.text)
        case doc.Conclusion():
            yield f"**{_prose(block.text)}**"
        case doc.Notes():
            yield "\n".join(f"- {_prose(text)}" for text in block.texts)
        case doc.Facts():
            yield "\n".join(
                f"- {escape(name)}: {escape(content)}" for name, content in block.rows
            )
        case doc.Table():
            yield _table(block)
        case doc.Text():
            yield escape(block.title)
            yield _fenced(block.text)
        case doc.Link():
            yield f"[{escape(block.text)}]({block.address})"
        case doc.Picture():
            yield f"![{escape(block.caption)}]({block.address})"
        case doc.Cards():
            yield _table(
                doc.Table(
                    doc.columns("", ""),
                    [(card.title, card.number) for card in block.cards],
                )
            )
        case doc.Fold():
            yield f"{'#' * (level + 2)} {escape(block.title)}"
            for inner_block in block.blocks:
                yield from _block(inner_block, level + 1)


def _table(table: doc.Table) -> str:
    columns, cells = table.cells()
    header = [_title(column) for column in columns]
    right = [
        column.right or any(isinstance(row[i].content, doc.Number) for row in cells)
        for i, column in enumerate(columns)
    ]
    rule = ["--:" if is_right else ":--" for is_right in right]
    rows = [[_cell(cell) for cell in row] for row in cells]
    return "\n".join(f"| {' | '.join(row)} |" for row in (header, rule, *rows))


def _title(column: doc.Column) -> str:
    title = escape(column.title) if column.title else " "
    if column.name:
        title = code(column.title)
    return f"{title} ({escape(column.note)})" if column.note else title


def _cell(cell: doc.Cell) -> str:
    if isinstance(cell.content, doc.Number):
        text = cell_text(cell)
    elif _NUMBERS.fullmatch(cell.content):
        text = cell.content
    else:
        text = code(cell.content) if cell.name else escape(cell.content)
    if cell.tone == "strong" and not cell.name and text != numbers.NOTHING:
        text = f"**{text}**"
    return f"[{text}]({cell.link})" if cell.link else text


def cell_text(cell: doc.Cell) -> str:
    """Return the text of a cell on one line: a number with its interval, or the text made inert."""
    if not isinstance(cell.content, doc.Number):
        return inert(cell.content)
    number = cell.content
    text = numbers.score(number.estimate, number.unit, number.decimals)
    return (
        text[text.index("[") :] if cell.content.interval_only and "[" in text else text
    )


def _fenced(text: str) -> str:
    """Write text as a fenced block that nothing in the text can end."""
    fence = "`" * max(
        3, 1 + max((len(run) for run in re.findall("`+", text)), default=0)
    )
    lines = [inert(line) for line in re.split(r"\r\n|\r|\n", text)]
    return "\n".join([fence, *lines, fence])


def code(text: str) -> str:
    """Write untrusted text as a code span in a table cell.

    Escape it if a code span cannot hold it.
    """
    content = inert(text)
    if "\\|" in content or not content.strip():
        return escape(content)
    content = content.replace(
        "|", "\\|"
    )  # a pipe ends the cell even inside a code span
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", content)), default=0))
    space = (
        " " if content.startswith(("`", " ")) or content.endswith(("`", " ")) else ""
    )
    return f"{fence}{space}{content}{space}{fence}"


def _prose(text: str) -> str:
    """Write a sentence as plain text, with its backticked parts as code."""
    texts = []
    for i, piece in enumerate(CODE_SPAN.split(inert(text))):
        is_code = i % 2 == 1
        if is_code:
            texts.append(code(piece))
        elif piece:
            texts.append(escape(piece))
    return "".join(texts) or "&nbsp;"


def escape(text: str) -> str:
    """Escape untrusted text for a table cell: active characters become character references.

    References cannot begin markup in any renderer.
    """
    return (
        _SPECIAL.sub(lambda match: f"&#{ord(match.group())};", inert(text)) or "&nbsp;"
    )
