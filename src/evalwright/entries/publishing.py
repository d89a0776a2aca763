"""What a board publishes, as options of `evalwright leaderboard`: from its results alone.

The same results give the same bytes. Pages have no texts of samples, since results have none.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.entries.board_file import BoardFile
from evalwright.tasks.safe_files import failing_as

BOARD_PAGE = "index.html"
BOARD_JSON = "board.json"
BOARD_CSV = "board.csv"
BOARD_FEED = "feed.xml"
PAGES_FOLDER = "models"
KILOBYTE = 1_000
MEGABYTE = 1_000_000
_PAGE_MARK = b'<meta name="evalwright-model-page"'
_HEAD_BYTES = 1_000
"""Bytes of a page that are searched for the mark of a page of a model."""
_ONLY_WITH_PLOT = ("best", "colour_by", "least_answered")
_ONLY_WITH_PAGES = ("examples",)


@dataclass(frozen=True, slots=True)
class BoardOutputs:
    """Which files of a board are written; None leaves one out.

    Attributes:
        into: the Markdown file with the table between markers.
        html: the board's page.
        pages: the folder of the models' pages.
        plot: the picture.
        json_file: the board for programs.
        csv: the board for spreadsheets.
        feed: new models and results, as an Atom feed.
    """

    into: Path | None = None
    html: Path | None = None
    pages: Path | None = None
    plot: Path | None = None
    json_file: Path | None = None
    csv: Path | None = None
    feed: Path | None = None


def published_outputs(board: BoardFile) -> BoardOutputs:
    """Return the files that a board publishes, in its repository."""
    rules = board.publish
    site = board.folder / rules.site if rules.site else None
    return BoardOutputs(
        into=board.folder / rules.readme if rules.readme else None,
        html=site / BOARD_PAGE if site else None,
        pages=site / PAGES_FOLDER if site else None,
        plot=board.folder / rules.plot if rules.plot else None,
        json_file=site / BOARD_JSON if site else None,
        csv=site / BOARD_CSV if site else None,
        feed=site / BOARD_FEED if site else None,
    )


def leaderboard_arguments(
    board: BoardFile,
    run_folders: Sequence[Path],
    outputs: BoardOutputs,
    title: str,
    *,
    shows_texts: bool = False,
    only_history_has_baselines: bool = False,
) -> list[str]:
    """Return the arguments of `evalwright leaderboard` that write a board.

    Args:
        board: the board, whose preset and options apply.
        run_folders: the runs; of several of a model the newest is shown, with its history.
        outputs: the files, at least one.
        title: its title.
        shows_texts: whether pages of models show texts of samples, where runs have them.
        only_history_has_baselines: whether a baseline judged earlier results, but none that is
            ranked.
    """
    arguments = ["--newest", *map(str, run_folders)]
    files: Mapping[str, Path | None] = {
        "into": outputs.into,
        "html": outputs.html,
        "pages": outputs.pages,
        "plot": outputs.plot,
        "json-file": outputs.json_file,
        "csv": outputs.csv,
        "feed": outputs.feed,
    }
    arguments += [f"--{name}={file}" for name, file in files.items() if file]
    if board.drift_folder.is_dir():
        rounds = sorted(board.drift_folder.glob("*.jsonl"))
        arguments += [f"--drift={file}" for file in rounds]
    arguments += _option_arguments(board, outputs)
    if outputs.pages and "examples" not in board.board and not shows_texts:
        arguments.append("--examples=0")
    chosen_judges = [spec.model for spec in board.suite.roles.values()]
    if only_history_has_baselines or any(map(is_baseline, chosen_judges)):
        # Whoever wrote the board's file chose it; the board says so.
        arguments.append("--allow-baseline-judge")
    return [*arguments, f"--title={title}"]


def is_baseline(model: str) -> bool:
    """Tell whether a judge is a baseline, by its name."""
    return model.startswith("baseline/")


def _option_arguments(board: BoardFile, outputs: BoardOutputs) -> Iterator[str]:
    for name, setting in board.board.items():
        if name in _ONLY_WITH_PLOT and outputs.plot is None:
            continue
        if name in _ONLY_WITH_PAGES and outputs.pages is None:
            continue
        option = f"--{name.replace('_', '-')}"
        if setting is True:
            yield option
            continue
        if setting is False:
            continue
        if name == "facts":
            yield f"{option}={board.folder / str(setting)}"
            continue
        scalars = setting if isinstance(setting, list) else [setting]
        if name == "where":
            yield from (f"{option}={condition}" for condition in scalars)
        else:
            yield f"{option}={','.join(map(str, scalars))}"


def remove_other_pages(outputs: BoardOutputs) -> list[Path]:
    """Remove the models' pages that the board no longer links to, and return them.

    Pages of a board of an earlier title or of other tasks are among them. Files that are no page
    of a model stay.

    Raises:
        ConfigurationError: a file cannot be read or removed.
    """
    if outputs.pages is None or outputs.json_file is None:
        return []
    linked_names = set(_linked_pages(outputs.json_file))
    removed_files = []
    for file in sorted(outputs.pages.glob("*.html")):
        if file.name in linked_names or file.is_symlink() or not file.is_file():
            continue
        with failing_as(ConfigurationError, f"'{file}' cannot be removed"):
            with file.open("rb") as page:
                is_model_page = _PAGE_MARK in page.read(_HEAD_BYTES)
            if is_model_page:
                file.unlink()
                removed_files.append(file)
    return removed_files


def _linked_pages(board_json: Path) -> Iterator[str]:
    """Yield the names of the pages that a board links to."""
    with failing_as(ConfigurationError, f"'{board_json}' cannot be read"):
        record = json.loads(board_json.read_text(encoding="utf-8"))
    for row in record["models"]:
        if page := row.get("page"):
            yield str(page).rpartition("/")[2]


@dataclass(frozen=True, slots=True)
class FolderSize:
    """How large a folder or file is.

    Attributes:
        path: the folder or file.
        n_files: number of files in it.
        n_bytes: their bytes together.
    """

    path: Path
    n_files: int
    n_bytes: int

    def __str__(self) -> str:
        files = "1 file" if self.n_files == 1 else f"{self.n_files:,} files"
        size = f"{self.n_bytes / MEGABYTE:,.1f} MB"
        if self.n_bytes < MEGABYTE / 10:
            size = f"{self.n_bytes / KILOBYTE:,.0f} kB"
        return f"{self.path} {size} ({files})"


def measure_published(board: BoardFile) -> list[FolderSize]:
    """Measure what the board has in git: results, and what is made from them."""
    rules = board.publish
    places = [board.results_folder]
    places += [
        board.folder / name for name in (rules.site, rules.readme, rules.plot) if name
    ]
    sizes = []
    for path in places:
        if not path.exists():
            continue
        files = [path] if path.is_file() else [*path.rglob("*")]
        n_bytes = [file.stat().st_size for file in files if file.is_file()]
        sizes.append(FolderSize(path, len(n_bytes), sum(n_bytes)))
    return sizes
