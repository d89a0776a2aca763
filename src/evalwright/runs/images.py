"""The images of a run's prompts, as they are shown later: in `images/` beside the record, made anew from their pixels.

A record names an image by the SHA-256 of the bytes that were sent. What is kept is not these bytes: each image is decoded, turned
upright, made small enough for a page, and written again without a word of metadata, so a photograph's place and camera are not handed
on with a run. The index says which file shows which image; a file's name is the SHA-256 of what is in it.

| file | what it has |
|---|---|
| `images/index.jsonl` | a line for each image: `image` (as records name it), `file`, `width`, `height` (as sent) |
| `images/<sha256>.png`, `.jpg` | the picture |
| `run.json`, `images` | `kept` and `bytes` in all, `index_sha256`, and `left_out`: reasons with how many images each |
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import re
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass
from io import BytesIO
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from evalwright.bounded import from_json
from evalwright.core.errors import RunError
from evalwright.core.images import Image
from evalwright.core.private import open_private, private_folder
from evalwright.core.samples import SampleRecord

if TYPE_CHECKING:
    from evalwright.runs.reader import Run

IMAGES_FOLDER = "images"
INDEX_FILE = "index.jsonl"
LONGEST_EDGE_PIXELS = 1600
"""Of a kept picture: what fills a page."""
MOST_PICTURE_BYTES = 4 << 20
MOST_RUN_BYTES = 1 << 30
"""Of all pictures of a run together; further images are counted and not kept."""
MOST_RUN_PICTURES = 50_000
MOST_INDEX_BYTES = 64 << 20

_MOST_WAITING = 32
"""Images that wait for their turn to be decoded; who brings a further one waits for the first of them."""
_JPEG_QUALITY = 85
_LOSSLESS_BYTES = 1 << 20
"""A picture whose PNG is larger becomes a JPEG, unless it has transparent parts."""
_FORMATS = ("PNG", "JPEG", "WEBP", "GIF")
_FILE_NAME = re.compile(r"([0-9a-f]{64})\.(png|jpg)")
_DIGEST = re.compile(r"[0-9a-f]{64}")

TURNED_OFF = "store_images is false"
NO_PILLOW = "Pillow, which decodes them, is not installed: pip install 'evalwright[images]'"
TOO_MANY = f"the run has more than {MOST_RUN_PICTURES:,} of them, or {MOST_RUN_BYTES >> 30} GiB"
NOT_DECODED = "they could not be decoded"
TOO_LARGE = f"a picture of them has more than {MOST_PICTURE_BYTES >> 20} MiB"


@dataclass(frozen=True, slots=True)
class Picture:
    """An image as it is shown. width, height: of the image as sent, in pixels."""

    data: bytes
    ending: str
    width: int
    height: int

    @property
    def file(self) -> str:
        """Its name in the folder."""
        return f"{hashlib.sha256(self.data).hexdigest()}.{self.ending}"


def draw_anew(image: Image) -> Picture | str:
    """The picture of an image's pixels alone, or why there is none. The first frame of one that moves.

    Raises ImportError without Pillow.
    """
    import PIL.Image
    import PIL.ImageOps

    try:
        with PIL.Image.open(BytesIO(image.data), formats=_FORMATS) as source:
            width, height = source.size
            source.draft("RGB", (LONGEST_EDGE_PIXELS, LONGEST_EDGE_PIXELS))
            upright = PIL.ImageOps.exif_transpose(source)
            see_through = "A" in upright.getbands() or "transparency" in upright.info
            pixels = upright.convert("RGBA" if see_through else "RGB")
    except Exception:  # the decoder's word on a stranger's bytes, whatever it is
        return NOT_DECODED
    pixels.thumbnail((LONGEST_EDGE_PIXELS, LONGEST_EDGE_PIXELS))
    pixels.info.clear()
    out = BytesIO()
    ending = "png"
    pixels.save(out, "PNG")
    if out.tell() > _LOSSLESS_BYTES and not see_through:
        out = BytesIO()
        ending = "jpg"
        pixels.save(out, "JPEG", quality=_JPEG_QUALITY)
    if out.tell() > MOST_PICTURE_BYTES:
        return TOO_LARGE
    return Picture(out.getvalue(), ending, width, height)


def images_of_record(record: SampleRecord) -> Iterator[Image]:
    """The images of the prompt that a sample's answer is to."""
    prompt = record.answer.prompt if record.answer is not None else ""
    if isinstance(prompt, str):
        return
    for turn in prompt:
        yield from turn.images


class ImageKeeper:
    """Keeps the images of one run in its folder while records come in. Decoding is done by a thread of its own.

    wanted: whether images are kept at all.
    """

    def __init__(self, run_folder: Path, *, wanted: bool = True) -> None:
        self._folder = run_folder / IMAGES_FOLDER
        self._wanted = wanted
        self._seen: set[str] = set()
        self._index: dict[str, dict[str, Any]] = {}
        self._left_out: Counter[str] = Counter()
        self._n_bytes = 0
        self._pool: ThreadPoolExecutor | None = None
        self._waiting: deque[tuple[str, Future[Picture | str]]] = deque()

    def add(self, images: Iterable[Image]) -> None:
        """Keep images that are not kept yet. One without its bytes, read from a record, is passed over. Raises OSError."""
        for image in images:
            if image.digest in self._seen or not image.data:
                continue
            self._seen.add(image.digest)
            if not self._wanted:
                self._left_out[TURNED_OFF] += 1
                continue
            if self._pool is None:
                self._pool = ThreadPoolExecutor(1, "evalwright-images")
            self._waiting.append((image.digest, self._pool.submit(draw_anew, image)))
            while self._waiting and (self._waiting[0][1].done() or len(self._waiting) > _MOST_WAITING):
                self._take(*self._waiting.popleft())

    def add_kept(self, kept: KeptImages) -> None:
        """Take over what another run kept: of a shard, or of the run whose answers are scored again. Raises OSError."""
        for digest, entry in kept.entries.items():
            if digest in self._seen:
                continue
            data = kept.read(digest)
            if data is None:
                continue
            self._seen.add(digest)
            ending = str(entry["file"]).rpartition(".")[2]
            self._write(digest, Picture(data, ending, entry["width"], entry["height"]))
        for reason, count in kept.left_out.items():
            self._left_out[reason] += count

    def finish(self) -> dict[str, Any] | None:
        """Write the index and drop files that no record of the run names; what `run.json` says. None for a run without images.

        Raises OSError.
        """
        while self._waiting:
            self._take(*self._waiting.popleft())
        self.close()
        if not self._seen and not self._left_out:
            return None
        lines = [json.dumps(entry) + "\n" for entry in self._index.values()]
        data = "".join(lines).encode()
        if self._index:
            with _writing(self._folder / INDEX_FILE) as file:
                file.write(data)
        record: dict[str, Any] = {"kept": len(self._index), "bytes": self._n_bytes}
        if self._index:
            record["index_sha256"] = hashlib.sha256(data).hexdigest()
        if self._left_out:
            record["left_out"] = dict(self._left_out)
        return record

    def sweep(self) -> None:
        """Remove pictures that the finished run does not name: of the run that it replaced, or of one that was ended."""
        named = {str(entry["file"]) for entry in self._index.values()}
        if self._folder.is_symlink() or not self._folder.is_dir():
            return
        with contextlib.suppress(OSError):
            for file in self._folder.iterdir():
                if file.name not in named and (_FILE_NAME.fullmatch(file.name) or file.suffix == ".partial"):
                    file.unlink(missing_ok=True)
            if not named:
                (self._folder / INDEX_FILE).unlink(missing_ok=True)
                self._folder.rmdir()

    def close(self) -> None:
        """End the thread; what it had not begun is dropped."""
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None

    def _take(self, digest: str, decoding: Future[Picture | str]) -> None:
        try:
            picture = decoding.result()
        except ImportError:
            picture = NO_PILLOW
        if isinstance(picture, str):
            self._left_out[picture] += 1
            return
        self._write(digest, picture)

    def _write(self, digest: str, picture: Picture) -> None:
        if len(self._index) >= MOST_RUN_PICTURES or self._n_bytes + len(picture.data) > MOST_RUN_BYTES:
            self._left_out[TOO_MANY] += 1
            return
        if self._folder.is_symlink():
            raise NotADirectoryError(f"'{self._folder}' is a link, and images are not written through one")
        private_folder(self._folder)
        path = self._folder / picture.file
        # A file of that name holds these very bytes, unless somebody changed it.
        if path.is_symlink() or not path.is_file() or path.stat().st_size != len(picture.data):
            with _writing(path) as file:
                file.write(picture.data)
        self._n_bytes += len(picture.data)
        size = {"width": picture.width, "height": picture.height}
        self._index[digest] = {"image": digest, "file": picture.file, **size}


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[IO[bytes]]:
    """A file that appears whole or not at all."""
    partial = path.with_name(f".{path.name}.{os.getpid()}.partial")
    partial.unlink(missing_ok=True)
    try:
        with open_private(partial, "xb") as file:
            yield file
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


class KeptImages:
    """What a finished run kept. entries: by the digest that records name. left_out: reasons, with how many images each.

    Somebody else may have made the folder, so nothing outside it is read, no link is followed, and a file is shown only where it has the
    digest of its name and is a picture of the size that this module writes.
    """

    def __init__(self, run: Run) -> None:
        self._folder = run.folder / IMAGES_FOLDER
        said = run.data.get("images")
        self.said: Mapping[str, Any] = said if isinstance(said, dict) else {}
        left_out = self.said.get("left_out")
        counts = left_out.items() if isinstance(left_out, dict) else ()
        self.left_out = {str(reason): count for reason, count in counts if isinstance(count, int)}
        self.entries: dict[str, dict[str, Any]] = {}
        if self.said.get("index_sha256"):
            self.entries = self._read_index()

    def _read_index(self) -> dict[str, dict[str, Any]]:
        """Raises RunError where the index is not the one that `run.json` names."""
        path = self._folder / INDEX_FILE
        data = _bytes_of(self._folder, INDEX_FILE, MOST_INDEX_BYTES)
        if data is None:
            raise RunError(f"{path}, which {self._folder.parent.name}'s run.json names, cannot be read.")
        if hashlib.sha256(data).hexdigest() != self.said["index_sha256"]:
            raise RunError(f"{path} was changed after the run, so no image is taken from it.")
        entries: dict[str, dict[str, Any]] = {}
        for number, line in enumerate(data.decode("utf-8", "replace").splitlines(), 1):
            try:
                entry = from_json(line)
                digest, file = entry["image"], entry["file"]
                sizes = [entry["width"], entry["height"]]
                is_named = bool(_DIGEST.fullmatch(digest) and _FILE_NAME.fullmatch(file))
                is_sized = all(isinstance(size, int) and size > 0 for size in sizes)
            except (ValueError, KeyError, TypeError):
                is_named = is_sized = False
            if not (is_named and is_sized):
                raise RunError(f"{path}, line {number} names no image.")
            entries[digest] = entry
        return entries

    def read(self, digest: str) -> bytes | None:
        """The picture of an image; None where it was not kept, or is not what was kept."""
        entry = self.entries.get(digest)
        if entry is None:
            return None
        named = str(entry["file"])
        data = _bytes_of(self._folder, named, MOST_PICTURE_BYTES)
        if data is None or hashlib.sha256(data).hexdigest() != named.partition(".")[0]:
            return None
        return data if _is_picture(data) else None

    def media_type(self, digest: str) -> str:
        """That of the picture, which is not always the image's."""
        return "image/png" if str(self.entries[digest]["file"]).endswith(".png") else "image/jpeg"


def _is_picture(data: bytes) -> bool:
    """Whether these bytes are a PNG or a JPEG that unpacks to no more than a page's picture."""
    from evalwright.core.images import size_of

    media_type, width, height = size_of(data)
    right_kind = media_type in ("image/png", "image/jpeg")
    return right_kind and 0 < max(width, height) <= LONGEST_EDGE_PIXELS


def _bytes_of(folder: Path, name: str, most_bytes: int) -> bytes | None:
    """A file's bytes; None for a link, a pipe, a folder behind a link, or more than `most_bytes`."""
    if folder.is_symlink():
        return None
    flags = os.O_RDONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0)
    path = folder / name
    try:
        if path.is_symlink() or not path.is_file():
            return None
        with os.fdopen(os.open(path, flags), "rb") as file:
            data = file.read(most_bytes + 1)
    except OSError:
        return None
    return data if len(data) <= most_bytes else None
