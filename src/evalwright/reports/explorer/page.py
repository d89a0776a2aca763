"""The explorer's page: as one file with all its parts, or as a folder for a web server.

The script comes before the parts, so it paints while the browser still reads them. Parts are
base64 in elements that no browser runs; nothing in base64 can end an element. A
Content-Security-Policy allows the script and the style by their hashes and nothing else.
"""

from __future__ import annotations

import base64
import contextlib
import hashlib
import os
import re
import shutil
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from html import escape
from importlib.resources import files
from itertools import combinations
from pathlib import Path
from typing import IO, Any, Literal

from evalwright.analysis.run_checks import RecordFaults
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.private import open_private
from evalwright.reports.explorer.catalog import (
    MOST_PAIRED,
    board_of,
    catalog,
    comparison_part,
    run_info,
)
from evalwright.reports.explorer.index import (
    PROGRESS_EVERY,
    Findings,
    index_of,
    main_scorers,
    plots_part,
)
from evalwright.reports.explorer.parts import (
    MALFORMED,
    Put,
    RecordBlocks,
    RowKeys,
    Samples,
    json_part,
    pack_part,
    unpack_part,
)
from evalwright.reports.html import source_hash
from evalwright.reports.text import inert
from evalwright.runs.images import KeptImages
from evalwright.runs.reader import Run
from evalwright.tasks.safe_files import failing_as, place_of, read_file, write_bytes

Source = Literal["embedded", "fetched", "live"]
Progress = Callable[[str], None]
"""Receives a short description of what is being done now."""
PackedRun = tuple[str, Run, RowKeys]
"""A run with its key in the page and the keys of its rows."""

TYPE = "application/x-evalwright"
WARNING = "Warning"
"""The name of facts that say what is wrong with a run."""
PAGE = "index.html"
_PARTS_PREFIX = "evalwright-"
_GENERATOR_MARK = b'<meta name="generator" content="evalwright">'
WITHOUT_IMAGES = (
    "this page was written without images (view --html and export site take --images)"
)
_ORDER = {
    "catalog": 0,
    "index": 1,
    "columns": 2,
    "previews": 3,
    "compare": 4,
    "plots": 4,
    "block": 5,
    "image": 6,
}


def page_head(title: str, source: Source, root: str = "") -> str:
    """Return the page up to its parts.

    Args:
        title: The page's title.
        source: Where the parts come from: the page, files beside it, or a live server.
        root: The address of the parts' folder, relative to the page.
    """
    script, style = _assets()
    return (
        "<!doctype html>\n"
        '<html lang="en">\n'
        "<head>\n"
        '<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{page_policy(source)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="generator" content="evalwright">\n'
        '<meta name="color-scheme" content="light dark">\n'
        '<link rel="icon" href="data:,">\n'
        f"<title>{escape(inert(title))}</title>\n"
        f"<style>{style}</style>\n"
        "</head>\n"
        "<body>\n"
        f'<div id="app" data-source="{source}" data-root="{escape(root)}">'
        "Loading ...</div>\n"
        "<noscript>This page needs JavaScript; it loads nothing from elsewhere."
        "</noscript>\n"
        f"<script>{script}</script>\n"
    )


END = f'<script type="{TYPE}" id="end"></script>\n</body>\n</html>\n'


def page_policy(source: Source) -> str:
    """Return the Content-Security-Policy of the page."""
    script, style = map(source_hash, _assets())
    connect = "'none'" if source == "embedded" else "'self'"
    return (
        f"default-src 'none'; script-src {script}; style-src {style}; worker-src blob:;"
        f" img-src data: blob:; connect-src {connect}; base-uri 'none'; form-action"
        " 'none'"
    )


@cache
def _assets() -> tuple[str, str]:
    """Read the script and the style, changed so that no text in them ends their element."""
    folder = files("evalwright.reports.explorer") / "assets"
    script, style = (
        (
            file.read_text(encoding="utf-8").strip()
            if (file := folder / name).is_file()
            else ""
        )
        for name in ("explorer.js", "explorer.css")
    )
    return re.sub(r"<(?=/script|!--)", r"\\x3c", script, flags=re.IGNORECASE), style


# -- packing ---------------------------------------------------------------------------


def pack(
    runs: Sequence[Run],
    put: Put,
    title: str,
    progress: Progress,
    *,
    with_images: bool = False,
) -> list[str]:
    """Pack all parts of the runs, the catalog last.

    Args:
        runs: The runs to pack.
        put: Receives each part's key and bytes.
        title: The page's title.
        progress: Receives a short description of what is being done now.
        with_images: Whether to include the images of prompts; they can be large or not for sharing.

    Returns:
        Warnings on the runs.

    Raises:
        RunError: Records cannot be read.
    """
    run_warnings: list[str] = []
    packed_runs: list[PackedRun] = []
    infos = []
    for number, run in enumerate(runs):
        key = str(number)
        try:
            packed_run, info, warnings = _pack_run(
                key, run, put, progress, run_warnings.append, with_images
            )
        except MALFORMED as error:
            raise RunError(
                f"'{run.folder}' is not as records of runs are ({type(error).__name__}:"
                f" {str(error)[:200]}). `evalwright runs check {run.name}` looks at it."
            ) from error
        packed_runs.append(packed_run)
        infos.append(info)
        run_warnings += [f"{run.name}: {warning}" for warning in warnings]
    progress("the board")
    board = board_of([(key, run) for key, run, _ in packed_runs])
    if len(runs) <= MOST_PAIRED:
        _pack_comparisons(packed_runs, board, put, progress)
    put("catalog", json_part(catalog(infos, board, title=title)))
    return run_warnings


def _pack_run(
    key: str,
    run: Run,
    put: Put,
    progress: Progress,
    report: Callable[[str], None],
    with_images: bool,
) -> tuple[PackedRun, dict[str, Any], Sequence[str]]:
    """Pack the samples, images and plots of a run.

    Returns:
        The run, its entry in the catalog, and warnings.
    """
    # The record of the run is checked here, before its samples are read.
    info = run_info(key, run, 0)
    row_keys, findings = _pack_samples(key, run, put, progress, report)
    packed_info = _packed_info(info, findings, len(row_keys.keys))
    if with_images:
        _put_images(key, run, put)
    elif info["hasImages"]:
        packed_info |= {"hasImages": False, "imagesMissing": WITHOUT_IMAGES}
    # The run's warnings say why it has no plots.
    tolerated = (RunError,) if findings.warnings else ()
    with contextlib.suppress(*tolerated):
        put(f"plots/{key}", plots_part(run))
    return (key, run, row_keys), packed_info, findings.warnings


def _pack_comparisons(
    packed_runs: Sequence[PackedRun],
    board: Mapping[str, Any] | None,
    put: Put,
    progress: Progress,
) -> None:
    """Pack the comparison of every two runs.

    The better ranked of two runs is A, as in the page's table, so that the sentences on their
    difference have the sign that the table shows.
    """
    ranked_keys = [row["run"] for row in board["rows"]] if board else []

    def rank(packed_run: PackedRun) -> int:
        key = packed_run[0]
        return ranked_keys.index(key) if key in ranked_keys else len(ranked_keys)

    for a, b in combinations(sorted(packed_runs, key=rank), 2):
        progress(f"{a[1].label} and {b[1].label} compared")
        put(f"compare/{a[0]}/{b[0]}", comparison_part(a, b))


def _packed_info(
    info: Mapping[str, Any], findings: Findings, size: int
) -> dict[str, Any]:
    """Add to a run's entry in the catalog what was found when its samples were read."""
    figure_facts = [("Figures", findings.as_published)] if findings.as_published else []
    warning_facts = [(WARNING, warning) for warning in findings.warnings]
    facts = [*warning_facts, *figure_facts, *info["facts"]]
    return {**info, "facts": facts, "records": size, "expected": size}


def _pack_samples(
    key: str, run: Run, put: Put, progress: Progress, report: Callable[[str], None]
) -> tuple[RowKeys, Findings]:
    """Pack the samples of a run, those of a large one by its index."""
    prefix = f"run/{key}/"
    index = index_of(
        run, lambda count: progress(f"{run.label}: {count:,} samples checked"), report
    )
    if index is not None:
        with contextlib.closing(index):
            _pack_records(run, prefix, put, progress)
            for part_key in index.page_parts():
                content = unpack_part(index.get(part_key) or b"")
                put(f"{prefix}{part_key}", pack_part(content))
            put(f"{prefix}index", json_part(index.index()))
            return index.row_keys(), index.findings
    samples = Samples(put, main_scorers(run), prefix=prefix)
    faults = RecordFaults(run)
    for line, row in run.lines():
        samples.add(line, row)
        faults.add(row)
        if samples.size % PROGRESS_EVERY == 0:
            progress(f"{run.label}: {samples.size:,} samples")
    samples.finish()
    findings = Findings(tuple(faults.sentences), faults.as_published)
    return samples.row_keys(), findings


def _pack_records(run: Run, prefix: str, put: Put, progress: Progress) -> None:
    """Pack the records of a run whose lists come from its index."""
    records = RecordBlocks(put, prefix)
    for line, row in run.lines():
        records.add(line, row)
        if records.size % PROGRESS_EVERY == 0:
            progress(f"{run.label}: {records.size:,} samples")
    records.finish()


def _put_images(key: str, run: Run, put: Put) -> None:
    images = KeptImages(run.folder, run.data)
    for digest in images.entries:
        picture = images.read(digest)
        if picture is not None:
            put(f"image/{key}/{digest}", picture)


def write_page(
    runs: Sequence[Run],
    file: Path,
    *,
    title: str,
    progress: Progress,
    with_images: bool = False,
) -> list[str]:
    """Write the explorer as one file, whole or not at all, and return warnings on the runs.

    Raises ConfigurationError where it cannot be written, and RunError as `pack` does.
    """
    with failing_as(ConfigurationError, f"'{file}' cannot be written"):
        target = place_of(file)
        target.parent.mkdir(parents=True, exist_ok=True)
        with (
            _temporary(target, "parts", private=True) as (parts_file, _),
            _temporary(target, "tmp") as (page_file, temporary),
        ):
            places: dict[str, tuple[int, int]] = {}

            def put(key: str, content: bytes) -> None:
                places[key] = (parts_file.tell(), len(content))
                parts_file.write(content)

            run_warnings = pack(runs, put, title, progress, with_images=with_images)
            progress("writing the file")
            page_file.write(
                page_head(title, "embedded").encode("utf-8", "backslashreplace")
            )
            for key in sorted(places, key=_part_order):
                start, length = places[key]
                parts_file.seek(start)
                page_file.write(f'<script type="{TYPE}" id="{key}">'.encode())
                page_file.write(base64.b64encode(parts_file.read(length)))
                page_file.write(b"</script>\n")
            page_file.write(END.encode())
            page_file.flush()
            os.fsync(page_file.fileno())
            temporary.replace(target)
            return run_warnings


def _part_order(key: str) -> tuple[int, list[int]]:
    """Sort key of a part: the parts that the page needs first come first."""
    words = key.split("/")
    return max(_ORDER.get(word, 0) for word in words), [
        int(word) for word in words if word.isdigit()
    ]


@contextmanager
def _temporary(
    target: Path, ending: str, *, private: bool = False
) -> Iterator[tuple[IO[bytes], Path]]:
    """Open a temporary file beside the target and remove it at the end, unless it was renamed."""
    path = target.with_name(f".{target.name}.{os.getpid()}.{ending}")
    path.unlink(missing_ok=True)
    try:
        with open_private(path, "x+b") if private else path.open("x+b") as file:
            yield file, path
    finally:
        path.unlink(missing_ok=True)


def write_site(
    runs: Sequence[Run],
    folder: Path,
    *,
    title: str,
    progress: Progress,
    with_images: bool = False,
) -> tuple[Path, list[str]]:
    """Write the explorer as a page and a folder of parts, which it loads when they are needed.

    Parts go into a new folder named by their hash, and the page is replaced last, so that a visitor
    sees either the old or the new state. Earlier parts that evalwright wrote are then removed;
    nothing else in the folder is touched.

    Returns:
        The page's file, and warnings on the runs.

    Raises:
        ConfigurationError: The folder cannot be written, or has a page of another program.
        RunError: Records cannot be read.
    """
    page = folder / PAGE
    if page.exists() and _GENERATOR_MARK not in read_file(page)[:4096]:
        raise ConfigurationError(
            f"'{page}' is not a page of evalwright: name another folder with --into."
        )
    temporary = folder / f".{_PARTS_PREFIX}{os.getpid()}"
    try:
        place_of(folder).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(temporary, ignore_errors=True)
        digest = hashlib.sha256()

        def put(key: str, content: bytes) -> None:
            if key != "catalog":  # the catalog holds the time at which it was made
                digest.update(key.encode() + content)
            file = temporary / f"{key}.bin"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(content)

        run_warnings = pack(runs, put, title, progress, with_images=with_images)
        root = f"{_PARTS_PREFIX}{digest.hexdigest()[:12]}"
        shutil.rmtree(folder / root, ignore_errors=True)
        temporary.replace(folder / root)
        write_bytes(
            page,
            (page_head(title, "fetched", f"{root}/") + END).encode(
                "utf-8", "backslashreplace"
            ),
        )
        for stale_folder in folder.glob(f"{_PARTS_PREFIX}????????????"):
            if (
                stale_folder.name != root
                and stale_folder.is_dir()
                and not stale_folder.is_symlink()
            ):
                shutil.rmtree(stale_folder, ignore_errors=True)
    except (OSError, shutil.Error) as error:
        raise ConfigurationError(
            f"'{folder}' cannot be written: {getattr(error, 'strerror', '') or error}."
        ) from error
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return page, run_warnings
