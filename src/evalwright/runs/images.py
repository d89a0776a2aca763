"""The images of a run's prompts, kept for later viewing in `images/` beside the record.

A record names an image by the SHA-256 of the bytes that were sent. What is kept is not these
bytes but a picture redrawn from the pixels (`runs.pictures`), so a photograph's place and
camera are not passed on with a run. The index says which file shows which image; a file's name
is the SHA-256 of its content.

- `images/index.jsonl`: a line for each image: `image` (as records name it), `file`, `width`,
  `height` (as sent)
- `images/<sha256>.png`, `.jpg`: the picture
- `run.json`, `images`: `kept` and `bytes` in all, `index_sha256`, and `left_out`: reasons with how
  many images each
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import IO, Any

from evalwright.bounded import from_json
from evalwright.core.images import Image
from evalwright.core.private import open_private, private_folder
from evalwright.core.samples import SampleRecord
from evalwright.core.text import printable
from evalwright.runs.pictures import (
    MOST_PICTURE_BYTES,
    NO_PILLOW,
    Picture,
    draw,
    is_picture,
)

IMAGES_FOLDER = "images"
INDEX_FILE = "index.jsonl"
MOST_RUN_BYTES = 1 << 30
"""Limit for all pictures of a run together; further images are counted but not kept."""
MOST_RUN_PICTURES = 50_000
MOST_INDEX_BYTES = 64 << 20

TURNED_OFF = "store_images is false"
TOO_MANY = (
    f"a run keeps at most {MOST_RUN_PICTURES:,} of them, in {MOST_RUN_BYTES >> 30} GiB"
)
NOT_BY_THAT_VERSION = "not kept by that version"
NOT_IN_SOURCE = "what the run was made from has no bytes of them"
EXPECTED = frozenset({TURNED_OFF, NOT_BY_THAT_VERSION, NOT_IN_SOURCE})
"""Reasons that need no attention: the user knows them, or can do nothing about them."""
CHANGED = "their files are missing or were changed"
CHANGED_FILE = "its file is missing or was changed"
WITHOUT_INDEX = (
    f"there is no {IMAGES_FOLDER}/{INDEX_FILE} in the run's folder, which was copied"
    " without them"
)

_DRAWING_THREADS = 2
_MOST_WAITING = 32
_MOST_WAITING_BYTES = 64 << 20
"""Number and bytes of images waiting to be drawn above which `has_room` waits."""
_MOST_AHEAD = 8
"""Multiple of these limits above which `add` itself waits, in case nobody called `has_room`."""
_MOST_REASONS = 20
_LONGEST_REASON = 200
_PARTIAL = re.compile(r"\.[0-9a-z.]+\.([0-9]{1,11})\.partial")
_FILE_NAME = re.compile(r"([0-9a-f]{64})\.(png|jpg)")
_DIGEST = re.compile(r"[0-9a-f]{64}")


def images_of_record(record: SampleRecord) -> Iterator[Image]:
    """Iterate over the images in the prompt of a sample's answer."""
    prompt = record.answer.prompt if record.answer is not None else ""
    if isinstance(prompt, str):
        return
    for turn in prompt:
        if not isinstance(turn.content, str):
            yield from turn.images


class ImageKeeper:
    """Keeps the images of one run in its folder while records come in.

    Its own threads redraw them.

    Args:
        run_folder: the run's folder.
        keeps_images: whether images are kept at all.
    """

    def __init__(self, run_folder: Path, *, keeps_images: bool = True) -> None:
        self._folder = run_folder / IMAGES_FOLDER
        self._wanted = keeps_images
        self._seen: set[bytes] = set()
        self._index: dict[str, dict[str, Any]] = {}
        self._left_out: Counter[str] = Counter()
        self._why_no_bytes = NOT_IN_SOURCE
        self._n_bytes = 0
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[Image, Future[Picture | str]]] = deque()
        self._waiting_bytes = 0

    def add(self, images: Iterable[Image]) -> None:
        """Keep images that are not kept yet. Raises OSError."""
        for image in images:
            digest = bytes.fromhex(image.digest)
            if digest in self._seen:
                continue
            self._seen.add(digest)
            if not image.data:  # a record has no bytes
                self._left_out[self._why_no_bytes] += 1
                continue
            if not self._wanted or TOO_MANY in self._left_out:
                self._left_out[TOO_MANY if self._wanted else TURNED_OFF] += 1
                continue
            if self._pool is None:
                self._pool = ThreadPoolExecutor(_DRAWING_THREADS, "evalwright-images")
            self._waiting.append((image, self._pool.submit(draw, image)))
            self._waiting_bytes += len(image.data)
            self._take_done()
            while self._is_full(_MOST_AHEAD):
                self._take_first()

    async def has_room(self) -> None:
        """Wait until few images are waiting to be drawn, without blocking the event loop.

        Raises OSError.
        """
        self._take_done()
        if not self._is_full():
            return
        import asyncio  # reading finished runs does not need asyncio

        while self._is_full():
            # The waiting task may be cancelled; the image is drawn all the same, and errors are
            # reported where the result is taken.
            with contextlib.suppress(Exception):
                await asyncio.shield(asyncio.wrap_future(self._waiting[0][1]))
            self._take_done()

    def _is_full(self, times: int = 1) -> bool:
        if not self._waiting:
            return False
        return (
            len(self._waiting) > times * _MOST_WAITING
            or self._waiting_bytes > times * _MOST_WAITING_BYTES
        )

    def _take_done(self) -> None:
        while self._waiting and self._waiting[0][1].done():
            self._take_first()

    def add_kept(self, source: KeptImages) -> None:
        """Take over the images that another run kept. Raises OSError.

        The other run is a shard, or the run whose answers are scored again.
        """
        for digest, entry in source.entries.items():
            if bytes.fromhex(digest) in self._seen:
                continue
            self._seen.add(bytes.fromhex(digest))
            picture = source.read(digest)
            if picture is None:
                self._left_out[CHANGED] += 1
                continue
            suffix = str(entry["file"]).rpartition(".")[2]
            self._write(
                digest, Picture(picture, suffix, entry["width"], entry["height"])
            )
        self._left_out.update(source.left_out)
        if source.problem:
            self._left_out[source.problem] += source.n_recorded
        # Images counted here already have a reason, so their records must not add another.
        is_counted = bool(source.left_out or source.problem)
        self._why_no_bytes = "" if is_counted else source.why_missing

    def finish(self) -> dict[str, Any] | None:
        """Write the index, and return the entry for `run.json`; None without images.

        Raises OSError.
        """
        while self._waiting:
            self._take_first()
        self.close()
        if not self._seen and not self._left_out:
            return None
        lines = [json.dumps(entry) + "\n" for entry in self._index.values()]
        index = "".join(lines).encode()
        if self._index:
            with _writing(self._folder / INDEX_FILE) as file:
                file.write(index)
        facts: dict[str, Any] = {"kept": len(self._index), "bytes": self._n_bytes}
        if self._index:
            facts["index_sha256"] = hashlib.sha256(index).hexdigest()
        left_out = {reason: count for reason, count in self._left_out.items() if reason}
        return {**facts, "left_out": left_out} if left_out else facts

    def sweep(self, is_running: Callable[[int], bool]) -> None:
        """Remove pictures that the finished run does not use, left by a replaced or aborted run.

        Args:
            is_running: tells whether a process id is alive; files that such a process is writing
                stay.
        """
        named = {str(entry["file"]) for entry in self._index.values()}
        if self._folder.is_symlink() or not self._folder.is_dir():
            return
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if file.name in named:
                    continue
                partial = _PARTIAL.fullmatch(file.name)
                is_left_behind = partial is not None and not is_running(int(partial[1]))
                if _FILE_NAME.fullmatch(file.name) or is_left_behind:
                    file.unlink(missing_ok=True)
            if not named:
                (self._folder / INDEX_FILE).unlink(missing_ok=True)
                self._folder.rmdir()

    def close(self) -> None:
        """End the threads; drawings that have not begun are dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _take_first(self) -> None:
        image, drawing = self._waiting.popleft()
        self._waiting_bytes -= len(image.data)
        try:
            picture = drawing.result()
        except ImportError:
            picture = NO_PILLOW
        if isinstance(picture, str):
            self._left_out[picture] += 1
            return
        self._write(image.digest, picture)

    def _write(self, digest: str, picture: Picture) -> None:
        if (
            len(self._index) >= MOST_RUN_PICTURES
            or self._n_bytes + len(picture.data) > MOST_RUN_BYTES
        ):
            self._left_out[TOO_MANY] += 1
            return
        if self._folder.is_symlink():
            raise NotADirectoryError(
                f"'{self._folder}' is a link, and images are not written through one"
            )
        private_folder(self._folder)
        path = self._folder / picture.file
        if _bytes_of(self._folder, picture.file) != picture.data:
            with _writing(path) as file:
                file.write(picture.data)
        self._n_bytes += len(picture.data)
        size = {"width": picture.width, "height": picture.height}
        self._index[digest] = {"image": digest, "file": picture.file, **size}


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[IO[bytes]]:
    """Open a file that appears either complete or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    try:
        with open_private(partial, "xb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class KeptImages:
    """What a finished run kept, by its folder and the content of its `run.json`.

    entries: by the digest that records name. left_out: reasons, with how many images each.
    problem: what is wrong with the index, "" for nothing. n_recorded: pictures, as `run.json`
    says. why_missing: why an image that cannot be read is not shown.

    Somebody else may have created the folder, so nothing outside it is read, no link is followed,
    and a file is shown only if its name is its digest and it is a picture as `runs.pictures` writes
    it.

    Attributes:
        entries: of the index, by the digest that records name.
        left_out: reasons, with how many images each.
        problem: what is wrong with the index, "" for nothing.
        n_recorded: number of pictures according to `run.json`.
        why_missing: why an image that cannot be read is not shown.
    """

    def __init__(self, run_folder: Path, run: Mapping[str, Any]) -> None:
        self._folder = run_folder / IMAGES_FOLDER
        self.left_out: dict[str, int] = {}
        self.entries: dict[str, dict[str, Any]] = {}
        self.problem = ""
        self.n_recorded = 0
        recorded = run.get("images")
        if not isinstance(recorded, dict):
            self.why_missing = NOT_BY_THAT_VERSION
            return
        self.left_out = _counts(recorded.get("left_out"))
        n_kept = recorded.get("kept")
        self.n_recorded = n_kept if type(n_kept) is int and n_kept > 0 else 0
        if self.n_recorded:
            index_digest = str(recorded.get("index_sha256", ""))
            self.entries, self.problem = _read_index(self._folder, index_digest)
        self.why_missing = self.problem or "; ".join(self.left_out) or CHANGED

    def read(self, digest: str) -> bytes | None:
        """Read the picture of an image; None where it was not kept, or was changed since."""
        entry = self.entries.get(digest)
        if entry is None:
            return None
        name = str(entry["file"])
        picture = _bytes_of(self._folder, name)
        if (
            picture is None
            or hashlib.sha256(picture).hexdigest() != name.partition(".")[0]
        ):
            return None
        return picture if is_picture(picture) else None


def images_sentence(run_folder: Path, run: Mapping[str, Any]) -> str:
    """Say how many images of a run are kept beside its record, and why others are not.

    "" for a run without images.
    """
    recorded = run.get("images")
    if not isinstance(recorded, dict):
        return ""
    images = KeptImages(run_folder, run)
    n_left_out = sum(images.left_out.values())
    sentence = f"{images.n_recorded:,} kept in {IMAGES_FOLDER}/"
    if not n_left_out:
        return sentence
    reasons = "; ".join(
        f"{count:,}: {reason}" for reason, count in images.left_out.items()
    )
    return f"{sentence}, {n_left_out:,} not kept ({reasons})"


def image_faults(
    run_folder: Path, run: Mapping[str, Any]
) -> tuple[dict[str, str], list[str]]:
    """Find the pictures of a run that were changed, and what could not be checked."""
    images = KeptImages(run_folder, run)
    if images.problem == WITHOUT_INDEX:
        return {}, [f"Its images: {images.problem}."]
    if images.problem:
        return {images.problem: ""}, []
    return {
        digest[:16]: CHANGED_FILE
        for digest in images.entries
        if images.read(digest) is None
    }, []


def _counts(left_out: object) -> dict[str, int]:
    """Return how many images were left out for each reason, without implausible entries."""
    if not isinstance(left_out, dict):
        return {}
    return {
        printable(str(reason))[:_LONGEST_REASON]: count
        for reason, count in list(left_out.items())[:_MOST_REASONS]
        if type(count) is int and count > 0
    }


def _read_index(
    folder: Path, index_digest: str
) -> tuple[dict[str, dict[str, Any]], str]:
    """Read the entries of an index by image, and what is wrong with it ("" for nothing)."""
    index = _bytes_of(folder, INDEX_FILE, MOST_INDEX_BYTES)
    if index is None:
        return {}, WITHOUT_INDEX
    if hashlib.sha256(index).hexdigest() != index_digest:
        return {}, f"{IMAGES_FOLDER}/{INDEX_FILE} was changed after the run"
    entries: dict[str, dict[str, Any]] = {}
    for number, line in enumerate(index.decode("utf-8", "replace").splitlines(), 1):
        entry = _entry_of(line)
        if entry is None:
            return {}, f"{IMAGES_FOLDER}/{INDEX_FILE}, line {number} names no image"
        entries[entry["image"]] = entry
    return entries, ""


def _entry_of(line: str) -> dict[str, Any] | None:
    try:
        entry = from_json(line)
        names = _DIGEST.fullmatch(entry["image"]) and _FILE_NAME.fullmatch(
            entry["file"]
        )
        sizes = entry["width"], entry["height"]
    except (ValueError, KeyError, TypeError):
        return None
    has_sizes = all(type(size) is int and size > 0 for size in sizes)
    return entry if names and has_sizes else None


def _bytes_of(
    folder: Path, name: str, most_bytes: int = MOST_PICTURE_BYTES
) -> bytes | None:
    """Read a file; None for a link, a pipe, a linked folder, or more than `most_bytes`."""
    path = folder / name
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    try:
        if folder.is_symlink() or path.is_symlink() or not path.is_file():
            return None
        with os.fdopen(os.open(path, flags), "rb") as file:
            content = file.read(most_bytes + 1)
    except OSError:
        return None
    return content if len(content) <= most_bytes else None
