"""A page for each model of a board: static HTML, with a file name that suits every file system."""

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
from evalwright.reports.documents.model_page import board_context, model_document
from evalwright.reports.html import to_html
from evalwright.runs.reader import Run
from evalwright.tasks.safe_files import failing_as, write_file

DEFAULT_EXAMPLES = 5
"""Examples of each task that a page shows by default."""

_FIRST_META = '<meta charset="utf-8">'
_HEAD_BYTES = 1_000
"""Bytes of a page that are searched for its mark."""
_LONGEST = 80
_DEVICES = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
"""Names that Windows reserves for devices, with any suffix."""


def page_files(board: Board, folder: Path) -> list[Path]:
    """Return the file of each row's page, in the order of the rows."""
    names = page_names(board_labels(board), [row.run for row in board.rows])
    return [folder / name for name in names]


def write_pages(
    board: Board,
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str = "Leaderboard",
    board_page: Path | None = None,
    examples: int = DEFAULT_EXAMPLES,
) -> list[Path]:
    """Write a page for each row of a board, and return the files in the order of the rows.

    Args:
        board: The board.
        runs: The runs of the board, in the same order.
        folder: The folder to write into.
        title: The board's title.
        board_page: The board's own page, to link back to.
        examples: How many low-scored samples of each task a page shows; 0 leaves out all texts of
            samples.

    Raises:
        ConfigurationError: The folder cannot be written.
        RunError: Samples cannot be read.
    """
    if examples < 0:
        raise ConfigurationError(f"--examples must be 0 or more, not {examples}.")
    files = page_files(board, folder)
    context = board_context(board, title)
    for index, file in enumerate(files):
        back = link_to(board_page, file) if board_page else ""
        run = runs[board.rows[index].run_index]
        neighbours = _neighbours(context.labels, files, index)
        document = model_document(context, index, run, back, examples, neighbours)
        page = to_html(document).replace(
            _FIRST_META, f"{_FIRST_META}\n{_mark(board, title)}", 1
        )
        write_file(file, page)
    return files


def _neighbours(
    labels: Sequence[str], files: Sequence[Path], index: int
) -> list[tuple[str, str]]:
    """Return titles and addresses of the pages before and after a page, in the board's order."""
    neighbours = []
    if index > 0:
        address = link_to(files[index - 1], files[index])
        neighbours.append((f"Above: {labels[index - 1]}", address))
    if index + 1 < len(files):
        address = link_to(files[index + 1], files[index])
        neighbours.append((f"Below: {labels[index + 1]}", address))
    return neighbours


def remove_stale_pages(
    board: Board, folder: Path, title: str = "Leaderboard"
) -> list[Path]:
    """Remove the pages of models that are no longer on the board, and return their files.

    Only pages with the mark that `write_pages` gives those of a board with this title and these
    tasks are removed.
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
    """Return the mark of a page, which says that evalwright wrote it for this board."""
    columns = [
        (task.name, task.metric)
        for unit_board in (board, *board.more)
        for task in unit_board.tasks
    ]
    board_name = hashlib.sha256(
        repr((title, sorted(columns))).encode("utf-8", "surrogatepass")
    ).hexdigest()
    return f'<meta name="evalwright-model-page" content="{board_name[:16]}">'


def link_to(target: Path, page: Path) -> str:
    """Return the address of a file relative to a page; "" on another drive, where there is none."""
    try:
        relative = os.path.relpath(target.resolve(), page.resolve().parent)
    except ValueError:
        return ""
    return quote(relative.replace(os.sep, "/"), safe="/")


def page_names(labels: Sequence[str], runs: Sequence[str]) -> list[str]:
    """Choose a file name for each model, of lower-case ASCII letters, digits, dots and dashes.

    A model's name does not depend on the order of the board. Models whose names would be equal get
    a mark made of label and run, and if these are equal too, a number.

    Args:
        labels: The models' labels, which are untrusted.
        runs: The names of their runs.
    """
    plain = [_plain(label) for label in labels]
    counts = Counter(plain)
    n_by_name: Counter[str] = Counter()
    file_names = []
    for label, run, name in zip(labels, runs, plain, strict=True):
        needs_mark = (
            counts[name] > 1
            or not name
            or len(name) > _LONGEST
            or _DEVICES.fullmatch(name)
            or name == "index"
        )
        if needs_mark:
            mark = hashlib.sha256(
                f"{label}\0{run}".encode("utf-8", "surrogatepass")
            ).hexdigest()[:8]
            name = f"{name[:_LONGEST].strip('.-') or 'model'}-{mark}"
            name = f"model-{name}" if _DEVICES.fullmatch(name) else name
        n_by_name[name] += 1
        file_names.append(
            f"{name}.html" if n_by_name[name] == 1 else f"{name}-{n_by_name[name]}.html"
        )
    return file_names


def _plain(label: str) -> str:
    ascii_only = unicodedata.normalize("NFKD", label).encode("ascii", "ignore").decode()
    dashed = re.sub(r"[^a-z0-9.]+", "-", ascii_only.lower())
    return re.sub(r"\.{2,}", ".", dashed).strip(".-")
