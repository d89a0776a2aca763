"""A page of its own for each model of a board: static HTML under a name that every file system
takes.
"""

from __future__ import annotations

import hashlib
import os
import re
import unicodedata
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from urllib.parse import quote

from evalwright.analysis.board import Board
from evalwright.core.errors import ConfigurationError
from evalwright.reports.documents.board import board_labels
from evalwright.reports.documents.model import model_document
from evalwright.reports.html import to_html
from evalwright.runs.reader import Run
from evalwright.tasks.files import failing_as, write_file

EXAMPLES = 5
"""Examples on a page, for each task."""

_FIRST_META = '<meta charset="utf-8">'
_HEAD_BYTES = 1_000
"""Where the mark of a page is."""
_LONGEST = 80
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
"""Names that Windows keeps for devices, with any ending."""


def page_files(board: Board, folder: Path) -> list[Path]:
    """Where the page of each row goes, in the order of the rows."""
    names = page_names(board_labels(board), [row.run for row in board.rows])
    return [folder / name for name in names]


def write_pages(
    board: Board,
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str = "Leaderboard",
    board_page: Path | None = None,
    examples: int = EXAMPLES,
) -> list[Path]:
    """Write a page for each row into the folder, and return the files in the order of the rows.

    runs: those that the board was made of, in the same order. board_page: where the board's own
    page is, to link back. examples: samples with a low score that each page shows for a task; 0
    leaves out every text of the samples. Raises ConfigurationError where the folder cannot be
    written, RunError where samples cannot be read.
    """
    if examples < 0:
        raise ConfigurationError(f"--examples must be 0 or more, not {examples}.")
    files = page_files(board, folder)
    for place, file in enumerate(files):
        back = link_to(board_page, file) if board_page else ""
        document = model_document(
            board, place, runs[board.rows[place].run_index], title, back, examples
        )
        page = to_html(document).replace(
            _FIRST_META, f"{_FIRST_META}\n{_mark(board, title)}", 1
        )
        write_file(file, page)
    return files


def remove_stale_pages(
    board: Board, folder: Path, title: str = "Leaderboard"
) -> list[Path]:
    """Remove the pages of models that are no longer on the board, and return their files.

    Only pages that `write_pages` wrote for a board of this title and these tasks, by the mark in
    them.
    """
    current = {file.name for file in page_files(board, folder)}
    mark = _mark(board, title).encode()
    stale = []
    for file in sorted(folder.glob("*.html")):
        if file.name in current or file.is_symlink() or not file.is_file():
            continue
        with failing_as(ConfigurationError, f"'{file}' cannot be removed"):
            with file.open("rb") as page:
                is_ours = mark in page.read(_HEAD_BYTES)
            if is_ours:
                file.unlink()
                stale.append(file)
    return stale


def _mark(board: Board, title: str) -> str:
    """What says in a page that this package wrote it, and for which board."""
    columns = [
        (task.name, task.metric) for part in (board, *board.more) for task in part.tasks
    ]
    board_name = hashlib.sha256(
        repr((title, sorted(columns))).encode("utf-8", "surrogatepass")
    ).hexdigest()
    return f'<meta name="evalwright-model-page" content="{board_name[:16]}">'


def link_to(target: Path, page: Path) -> str:
    """The relative address of a file as a page beside it links to it; "" where there is none
    (another drive).
    """
    try:
        found = os.path.relpath(target.resolve(), page.resolve().parent)
    except ValueError:
        return ""
    return quote(found.replace(os.sep, "/"), safe="/")


def page_names(labels: Sequence[str], runs: Sequence[str]) -> list[str]:
    """A file name for each model: lower-case ASCII letters, digits, dots and dashes, ending in
    ".html".

    labels: what the models are called, from anybody; runs: their runs' names. The name of one model
    does not depend on the order of the board: those that would be equal get a mark made of label
    and run. Two equal ones of both are told apart by a number.
    """
    plain = [_plain(label) for label in labels]
    counts = Counter(plain)
    seen: Counter[str] = Counter()
    out = []
    for label, run, name in zip(labels, runs, plain, strict=True):
        unsure = (
            counts[name] > 1
            or not name
            or len(name) > _LONGEST
            or _DEVICES.fullmatch(name)
            or name == "index"
        )
        if unsure:
            mark = hashlib.sha256(
                f"{label}\0{run}".encode("utf-8", "surrogatepass")
            ).hexdigest()[:8]
            name = f"{name[:_LONGEST].strip('.-') or 'model'}-{mark}"
            name = f"model-{name}" if _DEVICES.fullmatch(name) else name
        seen[name] += 1
        out.append(f"{name}.html" if seen[name] == 1 else f"{name}-{seen[name]}.html")
    return out


def _plain(label: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    dashed = re.sub(r"[^a-z0-9.]+", "-", ascii_only.lower())
    return re.sub(r"\.{2,}", ".", dashed).strip(".-")
