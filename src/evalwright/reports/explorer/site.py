"""The explorer of many runs as a folder of files, for any web server: a page, and parts that it loads when they are wanted."""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.reports.explorer.page import END, Progress, head_of, pack
from evalwright.runs.reader import Run
from evalwright.tasks.files import place_of, read_file, write_bytes

PAGE = "index.html"
_DATA = "evalwright-"
_OURS = b'<meta name="generator" content="evalwright">'


def write_site(
    runs: Sequence[Run], folder: Path, *, title: str, progress: Progress
) -> tuple[Path, list[str]]:
    """Write the files; return the page, and what is wrong with the runs. Parts go into a folder of their own, named by what they hold, and the page names it last.

    So a visitor sees either the old or the new one. Earlier parts of ours are removed, and nothing else in the folder is touched. Raises
    ConfigurationError where it cannot be written or has another page.
    """
    page = folder / PAGE
    if page.exists() and _OURS not in read_file(page)[:4096]:
        raise ConfigurationError(f"'{page}' is not a page of evalwright: name another folder with --into.")
    made = folder / f".{_DATA}{os.getpid()}"
    try:
        place_of(folder).mkdir(parents=True, exist_ok=True)
        shutil.rmtree(made, ignore_errors=True)
        digest = hashlib.sha256()

        def put(key: str, data: bytes) -> None:
            if key != "catalog":  # which says when it was made
                digest.update(key.encode() + data)
            file = made / f"{key}.bin"
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_bytes(data)

        said = pack(runs, put, title, progress)
        root = f"{_DATA}{digest.hexdigest()[:12]}"
        shutil.rmtree(folder / root, ignore_errors=True)
        made.replace(folder / root)
        write_bytes(page, (head_of(title, "fetched", f"{root}/") + END).encode("utf-8", "backslashreplace"))
        for old in folder.glob(f"{_DATA}????????????"):
            if old.name != root and old.is_dir() and not old.is_symlink():
                shutil.rmtree(old, ignore_errors=True)
    except (OSError, shutil.Error) as error:
        raise ConfigurationError(
            f"'{folder}' cannot be written: {getattr(error, 'strerror', '') or error}."
        ) from error
    finally:
        shutil.rmtree(made, ignore_errors=True)
    return page, said
