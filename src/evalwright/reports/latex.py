r"""Documents as LaTeX for a paper: booktabs tables with captions, fully escaped, for any engine.

The result is a fragment for \input. Tables that are too wide are split, and one with many rows is a
longtable. Letters that pdfLaTeX cannot set are written for LuaLaTeX and XeLaTeX, with their code
points for pdfLaTeX, so that no name stops a build.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence

from evalwright.reports import document as doc
from evalwright.reports.markdown import cell_text
from evalwright.reports.text import inert

ROOM = 96
"""Characters of small print that fit on a line of an A4 page."""
PAPER_ROOM = 76
"""Characters in \\small that fit on a line of a paper."""
SHRUNK_ROOM = 130
"""Characters of a table that is shrunk to the line; with more it is set in several parts."""
_LONGEST_NAME = 34
_LONGEST_TITLE = 14
_MOST_ROWS = 45
_HEAD = r"""% Made with evalwright. In the preamble: \usepackage{booktabs,longtable}
\providecommand{\evalwrightletters}[2]{\ifdefined\Umathcode#1\else#2\fi}
"""
_PAPER_HEAD = r"""% Made with evalwright. In the preamble: \usepackage{booktabs,longtable,graphicx}
\providecommand{\evalwrightletters}[2]{\ifdefined\Umathcode#1\else#2\fi}
\providecommand{\evalwrightfit}[1]{\ifdefined\resizebox\resizebox{\linewidth}{!}{#1}\else#1\fi}
"""
_ESCAPES = {
    "\\": r"\textbackslash{}", "{": r"\{", "}": r"\}", "$": r"\$", "&": r"\&", "#": r"\#",
    "%": r"\%", "_": r"\_\allowbreak{}",
    "^": r"\textasciicircum{}", "~": r"\textasciitilde{}", "<": r"\textless{}",
    ">": r"\textgreater{}", "|": r"\textbar{}",
    '"': r"\symbol{34}", "'": r"\symbol{39}", "`": r"\symbol{96}",
    "[": "{[}", "]": "{]}", "*": "{*}", "/": r"/\allowbreak{}",
    "–": "--", "…": r"\ldots{}", "×": r"$\times$", "·": r"$\cdot$",
}  # fmt: skip
_LIGATURES = re.compile("(?<=[-,?!])(?=[-,?!])")
"""Positions between characters that a font would join, such as two hyphens to a dash."""
_LONG_WORD = re.compile("[A-Za-z0-9.]{30}(?=[A-Za-z0-9.])")
_SETTABLE_LETTERS = frozenset("øØæÆœŒßłŁåÅ")
"""Letters that do not decompose into a base letter and an accent, but that every engine can set."""
_ACCENTS = frozenset(
    "\u0300\u0301\u0302\u0303\u0304\u0306\u0307\u0308\u030a\u030b\u030c\u0327"
)


def to_latex(document: doc.Document) -> str:
    """Render a document as a LaTeX fragment. The same document gives the same bytes."""
    blocks = [
        text for block in document.blocks for text in _block(block, document.title)
    ]
    return "\n".join([_HEAD, *blocks])


def escape(text: str) -> str:
    """Escape untrusted text for a paragraph or a cell: it runs no command and ends no argument."""
    pieces = []
    for plain, letters in re.findall(
        r"([\x20-\x7e–…×·]+)|([^\x20-\x7e–…×·]+)", inert(text)
    ):
        if plain:
            stretches = _LIGATURES.split(plain)
            signs = [
                "".join(_ESCAPES.get(char, char) for char in stretch)
                for stretch in stretches
            ]
            pieces.append(_LONG_WORD.sub(r"\g<0>\\allowbreak{}", "{}".join(signs)))
        elif all(map(_is_set, letters)):
            pieces.append(letters)
        else:
            points = " ".join(f"U+{ord(char):04X}" for char in letters)
            pieces.append(rf"\evalwrightletters{{{letters}}}{{{points}}}")
    return "".join(pieces)


def _is_set(char: str) -> bool:
    decomposed = unicodedata.normalize("NFD", char)
    return char in _SETTABLE_LETTERS or (
        len(decomposed) == 2
        and decomposed[0].isascii()
        and decomposed[0].isalpha()
        and decomposed[1] in _ACCENTS
    )


def _block(block: doc.Block, title: str) -> Iterator[str]:
    match block:
        case doc.Heading():
            yield rf"\paragraph*{{{escape(block.text)}}}"
        case doc.Note() | doc.Conclusion():
            yield f"{escape(block.text)}\n"
        case doc.Notes() if block.texts:
            listing = "\n".join(rf"\item {escape(text)}" for text in block.texts)
            yield f"{{\\footnotesize\\begin{{itemize}}\n{listing}\n\\end{{itemize}}}}\n"
        case doc.Facts() if block.rows:
            listing = "\n".join(
                rf"\item[{{{escape(name)}}}] {escape(content)}"
                for name, content in block.rows
            )
            yield f"\\begin{{description}}\n{listing}\n\\end{{description}}\n"
        case doc.Text():
            yield rf"\paragraph*{{{escape(block.title)}}}"
            yield (
                "\\par\n".join(escape(line) for line in block.text.splitlines()) + "\n"
            )
        case doc.Table():
            yield from _tables(block, title)
        case doc.Cards():
            rows = [(card.title, card.number) for card in block.cards]
            yield from _tables(
                doc.Table(doc.columns("Score*", "Value"), rows, title), title
            )
        case doc.Fold():
            yield rf"\paragraph*{{{escape(block.title)}}}"
            for inner_block in block.blocks:
                yield from _block(inner_block, block.title)


def _tables(table: doc.Table, title: str) -> Iterator[str]:
    columns, cells = table.cells()
    if not columns:
        return
    texts = [[cell_text(cell) for cell in row] for row in cells]
    widths = [
        _width(column, [row[i] for row in texts]) for i, column in enumerate(columns)
    ]
    full_table = doc.Table(columns, cells, table.caption or title)
    spaced = [width + 2 for width in widths]
    places, left_out = doc.places_that_fit(columns, spaced, ROOM)
    shown_table = full_table.with_columns(places) if left_out else full_table
    for part_index, split_table in enumerate(
        shown_table.split_to_fit([spaced[i] for i in places], ROOM)
    ):
        yield _table(
            split_table, part_index, title if table.sortable else table.caption or title
        )
    if left_out:
        sentence = doc.left_out_sentence([columns[i].title for i in left_out])
        yield f"{escape(sentence)}\n"


def table_latex(table: doc.Table, notes: Sequence[str], label: str) -> str:
    r"""Render one table for a paper: a single float whose caption explains it.

    A wide table is shrunk to the line; one that would become too small to read is set in several
    parts, one below the other, in the same float. One with more rows than a page holds is a
    longtable, or several.

    Args:
        table: the table; its caption is the first sentence of the caption.
        notes: further sentences of the caption.
        label: what \ref refers to, such as "tab:board". No user's text.
    """
    columns, cells = table.cells()
    texts = [[cell_text(cell) for cell in row] for row in cells]
    widths = [
        _width(column, [row[i] for row in texts]) + 2
        for i, column in enumerate(columns)
    ]
    is_long = len(cells) > _MOST_ROWS
    room = PAPER_ROOM if is_long else SHRUNK_ROOM
    places, left_out = doc.places_that_fit(columns, widths, room)
    shown_table = doc.Table(columns, cells, table.caption).with_columns(places)
    widths = [widths[i] for i in places]
    parts = list(shown_table.split_to_fit(widths, room))
    short_title = escape(table.caption)
    no_room = doc.left_out_sentence([columns[i].title for i in left_out])
    sentences = [
        f"{table.caption.rstrip('.')}.",
        *notes,
        *([no_room] if no_room else []),
    ]
    caption = rf"\caption[{{{short_title}}}]{{{escape(' '.join(sentences))}}}"
    caption += rf"\label{{{label}}}"
    if is_long:
        return "\n".join(
            _longtable(
                part, rf"\caption[]{{{short_title} (continued)}}" if i else caption
            )
            for i, part in enumerate(parts)
        )
    tabulars = "\n\n\\medskip\n".join(_tabular(part) for part in parts)
    if sum(widths) > PAPER_ROOM:
        tabulars = "\n\n\\medskip\n".join(
            f"\\evalwrightfit{{%\n{_tabular(part)}}}" for part in parts
        )
    return (
        f"\\begin{{table}}[htbp]\n\\centering\\small\n{caption}\n{tabulars}\n"
        "\\end{table}\n"
    )


def paper_latex(tables: Sequence[str]) -> str:
    """Put tables of `table_latex` together as a fragment for \\input."""
    return "\n".join([_PAPER_HEAD, *tables])


def _width(column: doc.Column, cells: Sequence[str]) -> int:
    longest = max(map(len, cells), default=0)
    return max(min(longest, _LONGEST_NAME), min(len(column.heading), _LONGEST_TITLE))


def _table(table: doc.Table, part_index: int, caption: str) -> str:
    caption_line = (
        rf"\caption{{{escape(caption)}{' (continued)' if part_index else ''}}}"
    )
    if len(table.rows) > _MOST_ROWS:
        return _longtable(table, caption_line)
    inner = _tabular(table)
    return f"\\begin{{table}}[htbp]\n\\centering\\small\n{caption_line}\n{inner}\n\\end{{table}}\n"


def _longtable(table: doc.Table, caption_line: str) -> str:
    spec, head, body = _table_lines(table)
    return (
        f"{{\\small\\begin{{longtable}}{spec}\n{caption_line}"
        f" \\\\\n{head}\n\\endhead\n{body}\n\\bottomrule\n\\end{{longtable}}}}\n"
    )


def _tabular(table: doc.Table) -> str:
    spec, head, body = _table_lines(table)
    return f"\\begin{{tabular}}{spec}\n{head}\n{body}\n\\bottomrule\n\\end{{tabular}}"


def _table_lines(table: doc.Table) -> tuple[str, str, str]:
    """Return the specification of a table's columns, its head and its rows."""
    columns, cells = table.cells()
    alignments = []
    heads = []
    for i, column in enumerate(columns):
        right = column.right or any(
            isinstance(row[i].content, doc.Number) for row in cells
        )
        longest = max((len(cell_text(row[i])) for row in cells), default=0)
        left = r"p{5.5cm}" if longest > _LONGEST_NAME else "l"
        alignments.append("r" if right else left)
        heads.append(_heading(column.heading, "r" if right else "l"))
    rows = [
        " & ".join(map(_cell, row, alignments)) + r" \tabularnewline" for row in cells
    ]
    head = "\n".join([r"\toprule", " & ".join(heads) + r" \\", r"\midrule"])
    spec = f"{{@{{}}{''.join(alignments)}@{{}}}}"
    return spec, head, "\n".join(rows)


def _heading(title: str, side: str) -> str:
    """Break a title into as many lines as it needs to be no wider than its numbers."""
    lines = [""]
    for chunk in re.findall(r"[^\s/_@:+-]*[\s/_@:+-]+|.+", inert(title)):
        if lines[-1] and len(lines[-1] + chunk.rstrip()) > _LONGEST_TITLE:
            lines.append(chunk)
        else:
            lines[-1] += chunk
    escaped_lines = [escape(line.strip()) for line in lines if line.strip()]
    joined = r" \\ ".join(escaped_lines)
    return rf"\shortstack[{side}]{{{joined}}}" if len(escaped_lines) > 1 else joined


def _cell(cell: doc.Cell, alignment: str) -> str:
    text = escape(cell_text(cell))
    text = rf"\textbf{{{text}}}" if cell.tone == "strong" and text else text
    return rf"\raggedright {text}" if alignment.startswith("p") else text
