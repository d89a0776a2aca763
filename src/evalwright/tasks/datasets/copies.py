"""JSONL copies of data in other formats, made once under `$EVALWRIGHT_HOME/datasets`.

A file's copy is named by the hash of its content; the copy of a hub dataset by its id, revision,
configuration and split, so a later run needs neither the network nor the library. Which copies
count and how long they stay, says `kept_copies`.
"""

from __future__ import annotations

import filecmp
import hashlib
import json
import math
import os
import pkgutil
import re
import secrets
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.core.errors import (
    ConfigurationError,
    DatasetError,
    MissingExtra,
    OutOfReach,
    cause_of,
)
from evalwright.core.file_hashes import file_state, hash_file
from evalwright.core.private import (
    check_ordinary,
    home_folder,
    open_private,
    private_folder,
)
from evalwright.tasks.datasets.formats import read_lines
from evalwright.tasks.datasets.hub import hub_libraries, not_here
from evalwright.tasks.datasets.jsonl_rows import Row, as_json
from evalwright.tasks.datasets.kept_copies import (
    HUB_PREFIX,
    PARTIAL_PREFIX,
    is_own_copy,
    note_own_copy,
)
from evalwright.tasks.safe_files import failing_as, write_text
from evalwright.tasks.yaml_files import shown_path

_VERSION = 1
FIRST_FETCH = "first-fetch"
"""In place of a dataset's commit: the newest one when it is first fetched here, which is then kept.
"""

MOST_BYTES = 1 << 30
MOST_TIMES = 300
"""A copy larger than both `MOST_BYTES` and this many times its file is rejected.

It would be a decompression bomb.
"""


def copy_of_file(path: Path, kind: str, key: str | None) -> Path:
    """Return the JSONL copy of a file.

    Raises:
        DatasetError: the file is broken, and the message has the row; or it changed meanwhile.
    """
    label = shown_path(path)
    state = _state_of(path)
    name = f"{path.stem[:40]}-{_hash_of_file(path, kind, key or '')}.jsonl"

    def lines() -> Iterator[tuple[int, bytes]]:
        yield from read_lines(path, kind, key)
        # The copy would have other rows than its name says.
        if _state_of(path) != state:
            raise DatasetError(
                f"{label}: the file changed while it was read; run again."
            )

    return _make_copy(
        name,
        lines,
        lambda number: f"{label}, row {number:,}",
        max(MOST_BYTES, MOST_TIMES * path.stat().st_size),
    )


def copy_of_saved(folder: Path) -> Path:
    """Return the JSONL copy of a folder that `datasets.Dataset.save_to_disk` wrote.

    Raises:
        DatasetError: it cannot be read.
        MissingExtra: the library is not installed.
    """
    files = sorted(path for path in folder.iterdir() if path.is_file())
    digest = _hash_of_file(
        files[0], *(_hash_of_file(path, path.name) for path in files[1:])
    )
    most = max(MOST_BYTES, MOST_TIMES * sum(path.stat().st_size for path in files))
    return _copy_of_rows(
        f"{folder.name[:40]}-{digest}.jsonl", lambda: _saved_rows(folder), most
    )


def copy_of_hub(repository: str, revision: str, config: str | None, split: str) -> Path:
    """Return the JSONL copy of a hub dataset's split."""
    identity = (repository, revision, config or "", split, str(_VERSION))
    digest = hashlib.blake2b(json.dumps(identity).encode(), digest_size=8).hexdigest()
    name = re.sub(
        r"[^A-Za-z0-9_.-]+", "--", f"{repository}-{config or 'default'}-{split}"
    )[:80]
    return _copy_of_rows(
        f"{HUB_PREFIX}{name}-{digest}.jsonl",
        lambda: _hub_rows(repository, revision, config, split),
    )


def file_of_hub(repository: str, revision: str, name: str) -> Path:
    """Return the path of a single file of a hub dataset.

    The library's own folder for that commit is searched first: some datasets pack their files, and
    are unpacked there.

    Raises:
        DatasetError: the file cannot be fetched.
        MissingExtra: the library is not installed.
    """
    try:
        from huggingface_hub import hf_hub_download, try_to_load_from_cache
    except ImportError:
        raise MissingExtra(
            f"The dataset '{repository}'", "hub", "huggingface_hub"
        ) from None
    subject = f"The file '{name[:200]}' of the dataset '{repository}'"
    try:
        cached = try_to_load_from_cache(
            repository, name, repo_type="dataset", revision=revision
        )
        if not isinstance(cached, str):
            with hub_libraries(subject, repository, revision):
                cached = hf_hub_download(
                    repository, name, repo_type="dataset", revision=revision
                )
    except DatasetError:
        raise
    except Exception as error:
        raise OutOfReach(f"{subject} cannot be fetched: {cause_of(error)}.") from None
    return Path(cached)


def copy_of_made(
    kind: str, recipe: Any, rows: Callable[[], Iterable[tuple[str, Row]]]
) -> Path:
    """Return the JSONL file of generated rows, which `recipe` describes completely as JSON."""
    key = json.dumps([recipe, _VERSION, __version__], sort_keys=True).encode()
    return _copy_of_rows(
        f"{kind}-{hashlib.blake2b(key, digest_size=12).hexdigest()}.jsonl", rows
    )


def first_fetched(repository: str) -> str:
    """Return the commit of a hub dataset that was the newest at the first call.

    Raises:
        DatasetError: it cannot be found out.
        MissingExtra: the library is not installed.
    """
    revisions_file = home_folder() / "datasets" / "revisions.json"
    revisions: dict[str, str] = {}
    with suppress(OSError, ValueError, TypeError):
        revisions = dict(
            json.loads(check_ordinary(revisions_file).read_text(encoding="utf-8"))
        )
    if repository not in revisions:
        try:
            from huggingface_hub import HfApi
        except ImportError:
            raise MissingExtra(
                f"The dataset '{repository}'", "hub", "huggingface_hub"
            ) from None
        subject = f"The revision of the dataset '{repository}'"
        try:
            with hub_libraries(subject, repository):
                revisions[repository] = str(HfApi().dataset_info(repository).sha)
        except DatasetError:
            raise
        except Exception as error:
            raise OutOfReach(f"{subject} cannot be found: {cause_of(error)}.") from None
        private_folder(revisions_file.parent)
        write_text(
            revisions_file.resolve(), json.dumps(revisions, indent=1, sort_keys=True)
        )
    return str(revisions[repository])


def _copy_of_rows(
    name: str,
    rows: Callable[[], Iterable[tuple[str, Row]]],
    most_bytes: float = math.inf,
) -> Path:
    """Return the copy of rows that are yielded with the place that errors name."""
    place = ""

    def lines() -> Iterator[tuple[int, bytes]]:
        nonlocal place
        for number, (place, row) in enumerate(rows(), 1):
            yield number, as_json(row, place)

    return _make_copy(name, lines, lambda number: place, most_bytes)


def _make_copy(
    name: str,
    lines: Callable[[], Iterable[tuple[int, bytes]]],
    place: Callable[[int], str],
    most_bytes: float,
) -> Path:
    """Return the copy with a name; the first time, it is written.

    Args:
        name: name of the file.
        lines: yields its lines, each with the number of its row.
        place: returns where a row is, for errors.
        most_bytes: most bytes that it may have.
    """
    folder = home_folder() / "datasets"
    path = folder / name
    try:
        if path.exists() and (name.startswith(HUB_PREFIX) or is_own_copy(path)):
            return path
        if path.exists() and not os.access(folder, os.W_OK):
            # A home that was prepared by an administrator, and named by the user.
            return path
        private_folder(folder)
        partial = folder / f"{PARTIAL_PREFIX}{secrets.token_hex(4)}"
        file = open_private(partial, "xb")
    except OSError as error:
        raise ConfigurationError(
            f"The folder '{folder}' for copies of data cannot be written:"
            f" {error.strerror}. Set EVALWRIGHT_HOME to a folder that can."
        ) from None
    try:
        with file:
            written = 0
            for number, line in lines():
                written += file.write(line)
                if written > most_bytes:
                    raise DatasetError(
                        f"{place(number)}: the data so far are larger than"
                        f" {most_bytes:,} bytes, far more than their file."
                    )
        # Processes that read a right copy keep it.
        if not _are_equal(partial, path):
            partial.replace(path)
        note_own_copy(path)
    except OSError as error:
        raise ConfigurationError(
            f"Writing a copy of data to '{folder}' failed: {error.strerror}."
        ) from None
    finally:
        partial.unlink(missing_ok=True)
    return path


def _are_equal(partial: Path, copy: Path) -> bool:
    """Tell whether a copy is there, can be read, and equals one that was just written."""
    with suppress(OSError):  # of another user
        return copy.is_file() and filecmp.cmp(partial, copy, shallow=False)
    return False


def _state_of(path: Path) -> list[int]:
    with failing_as(DatasetError, f"The data file '{shown_path(path)}' cannot be read"):
        return file_state(path)


def _hash_of_file(path: Path, *blocks: str) -> str:
    unread = failing_as(
        DatasetError, f"The data file '{shown_path(path)}' cannot be read"
    )
    with unread:
        prefix = json.dumps([*blocks, _VERSION])
        return hash_file(path, prefix=prefix, digest_size=12)


def _is_here(repository: str) -> bool:
    return Path(repository).exists()


def _hub_rows(
    repository: str, revision: str, config: str | None, split: str
) -> Iterator[tuple[str, Row]]:
    try:
        import datasets
    except ImportError:
        raise MissingExtra(f"The dataset '{repository}'", "hub", "datasets") from None
    # A local folder of the same name is not the intended dataset, and the library's own builders
    # are not datasets either.
    address = f"hf://datasets/{repository}" if _is_here(repository) else repository
    if any(
        module.name == repository
        for module in pkgutil.iter_modules(datasets.packaged_modules.__path__)
    ):
        raise DatasetError(
            f"'{repository}' is a format and no data set of the hub; name the files"
            " with `path`."
        )
    subject = (
        f"The dataset '{repository}' (configuration {config or 'default'}, split"
        f" {split}, revision {revision})"
    )
    try:
        with hub_libraries(subject, repository, revision) as unreachable:
            dataset = datasets.load_dataset(
                address, config, split=split, revision=revision
            )
        if unreachable and (other_revision := _other_commit(dataset, revision)):
            raise not_here(
                f"{subject} (there is that of revision {other_revision})", unreachable
            )
        dataset = _with_images_as_bytes(dataset)
    except DatasetError:
        raise
    except Exception as error:
        raise OutOfReach(f"{subject} cannot be loaded: {cause_of(error)}.") from None
    for number, row in enumerate(dataset, 1):
        yield f"{repository} ({split}), row {number:,}", dict(row)


def _with_images_as_bytes(dataset: Any) -> Any:
    """Return a data set of the library `datasets` whose images are not decoded."""
    import datasets

    for name, feature in dataset.features.items():
        many = getattr(feature, "feature", None)
        if isinstance(many or feature, datasets.Image):
            image = datasets.Image(decode=False)
            dataset = dataset.cast_column(name, type(feature)(image) if many else image)
    return dataset


def _saved_rows(folder: Path) -> Iterator[tuple[str, Row]]:
    label = shown_path(folder)
    try:
        import datasets
    except ImportError:
        raise MissingExtra(f"Reading '{label}'", "hub", "datasets") from None
    try:
        state = json.loads((folder / "state.json").read_text(encoding="utf-8"))
        names = [str(file["filename"]) for file in state["_data_files"]]
        if any(Path(name).name != name for name in names):
            raise ValueError("it names files outside of the folder")
        dataset = _with_images_as_bytes(datasets.load_from_disk(str(folder)))
    except Exception as error:  # the library raises errors of many kinds
        raise DatasetError(
            f"The data set saved in '{label}' cannot be read: {cause_of(error)}."
        ) from None
    for number, row in enumerate(dataset, 1):
        yield f"{label}, row {number:,}", dict(row)


_COMMIT = re.compile(r"[0-9a-f]{40}")


def _other_commit(dataset: Any, revision: str) -> str:
    """Return the commit of cached data if it is not the requested one, "" otherwise.

    Without the hub the library takes the newest commit that it has, whatever revision is requested.
    """
    folders = [Path(file["filename"]).parent.name for file in dataset.cache_files]
    commits = [name for name in folders if _COMMIT.fullmatch(name)]
    if _COMMIT.fullmatch(revision) and commits and commits[0] != revision:
        return commits[0]
    return ""
