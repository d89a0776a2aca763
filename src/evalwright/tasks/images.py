"""The images of a row, named by `prompt.images`.

It is a template of one or several paths inside the folder of the task or of its data file, files of
the hub's dataset, data URLs, image columns of the hub, or addresses if the user allows them. An
image stands where the template of the user's turn puts it (`{{ images[0] }}`), else before the
text. What an untrusted row may name is limited: nothing outside the folder, no pipe, no more bytes
or pixels than an image may have.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import urllib.error
import urllib.request
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

from evalwright.core.errors import DatasetError
from evalwright.core.images import MOST_BYTES, Image
from evalwright.core.private import check_ordinary, home_folder, private_folder
from evalwright.core.requests import Part
from evalwright.core.secrets import without_login
from evalwright.tasks import templates
from evalwright.tasks.datasets.copies import file_of_hub
from evalwright.tasks.safe_files import is_within
from evalwright.tasks.samples import Placed, RowError
from evalwright.tasks.schema import Dataset
from evalwright.tasks.yaml_files import Document, kind_of

VARIABLE = "EVALWRIGHT_IMAGE_URLS"
"""Set to 1 if images may be fetched from the addresses that rows name.

`--image-urls` sets it for one command.
"""
BY_FLAG = "--image-urls"
_TIMEOUT = 60.0
_MOST_IMAGES = 100

# A mark stands for an image in a rendered text. No row can know it, and no filter that changes
# letters changes it.
_MARK = f"\ue000{secrets.randbits(64)}"
_MARKS = re.compile(f"{_MARK}:(\\d+)\ue001")


def urls_allowed() -> bool:
    """Return whether images may be fetched."""
    return os.environ.get(VARIABLE, "") not in ("", "0")


class RowImages:
    """Reads the images of rows.

    Relative paths start from one of `_folders`, or are files of the hub's dataset to which the rows
    belong. The template is `prompt.images`.
    """

    def __init__(self, template: Any, document: Document, dataset: Dataset) -> None:
        self._render = Placed(
            templates.structure,
            template,
            "prompt.images",
            document,
            ("prompt", "images"),
        )
        self._folders = _folders(document, dataset)
        self._dataset = dataset
        metadata = document.value.get("metadata") or {}
        is_data_file = (
            "columns" in metadata
        )  # `tasks.data_files` wrote it: only the column's name suggests images
        self._whose = "the data file's" if is_data_file else "the task's"
        self._advice = (
            ". `--column images=` leaves out the images of a data file"
            if is_data_file
            else ""
        )
        self._obtain = str(metadata.get("obtain") or "")

    def __call__(self, context: Mapping[str, Any]) -> tuple[Image, ...]:
        """Return the images of one row, in their order.

        Raises:
            RowError: an image cannot be used.
        """
        rendered = self._render(context)
        named = rendered if isinstance(rendered, list | tuple) else [rendered]
        if len(named) > _MOST_IMAGES:
            raise RowError(
                f"the row names {len(named)} images, and a prompt may have"
                f" {_MOST_IMAGES}"
            )
        return tuple(self._read(name) for name in named if name not in (None, ""))

    def _read(self, named: Any) -> Image:
        if isinstance(named, Mapping) and isinstance(data := named.get("bytes"), str):
            named = (  # a column of images of the hub, as rows are kept
                f"data:;base64,{data}"
            )
        if not isinstance(named, str):
            raise RowError(
                "an image is named by a path, a data URL or an address, not by"
                f" {kind_of(named)}"
            )
        try:
            if named.startswith("data:"):
                return Image.from_data_url(named)
            if re.match(r"[a-zA-Z][a-zA-Z0-9+.-]+://", named):
                return fetched(named)
            return self._file(named)
        except DatasetError as error:
            raise RowError(f"{str(error).rstrip('.')}{self._advice}") from None

    def _file(self, named: str) -> Image:
        data = self._dataset
        if data.hub is None:
            root = self._folder_with(named)
            path = root / named
        else:
            try:
                path = file_of_hub(data.hub, str(data.revision), named)
            except DatasetError as error:
                raise DatasetError(f"{error} {self._obtain}".rstrip()) from None
            root = next(
                (
                    parent.parent
                    for parent in path.parents
                    if parent.name == "snapshots"
                ),
                path.parent,
            )
        try:
            root = root.resolve()
            path = path.resolve()
            inside = path.is_relative_to(root)
        except (OSError, ValueError, RuntimeError):
            raise DatasetError(
                f"The image '{_short(named)}' cannot be found."
            ) from None
        if not inside:
            raise DatasetError(
                f"The image '{_short(named)}' is outside {self._whose} folder: images"
                " are read from inside it only."
            )
        return Image.read(
            _content(path, named),
            named if data.hub else path.relative_to(root).as_posix(),
        )

    def _folder_with(self, named: str) -> Path:
        """Return the first folder that has a file of this name, else the first of all."""
        for folder in self._folders:
            with suppress(OSError, ValueError):
                if (folder / named).exists():
                    return folder
        return self._folders[0]


def _folders(document: Document, dataset: Dataset) -> tuple[Path, ...]:
    """Return the folders from which a relative path may start, the likeliest first.

    A task file reads images in its own folder, and beside its data file if that is inside it. A
    data file that the user named has its images beside it, or under the working folder if it is
    there itself.
    """
    task_folder = document.folder(("dataset", "path"))
    paths = dataset.path or ()
    if len(paths) != 1:
        return (task_folder,)
    data_folder = (task_folder / paths[0]).parent
    within = is_within(data_folder, task_folder)
    if document.place(("dataset", "path")) is not None:
        return (task_folder, data_folder) if within else (task_folder,)
    return (data_folder, task_folder) if within else (data_folder,)


def marks_of(images: Sequence[Image]) -> tuple[str, ...]:
    """Return what templates see as `images`: a mark for each."""
    return tuple(f"{_MARK}:{position}\ue001" for position in range(len(images)))


def with_images(text: str, images: Sequence[Image]) -> str | tuple[Part, ...]:
    """Return the content of a turn: its text, with images in place of their marks.

    Images without a mark come first.
    """
    if not images:
        return text
    pieces = _MARKS.split(text)
    placed = [int(piece) for piece in pieces[1::2]]
    first = [image for position, image in enumerate(images) if position not in placed]
    content = [
        images[int(piece)] if position % 2 else piece
        for position, piece in enumerate(pieces)
    ]
    return tuple(piece for piece in (*first, *content) if piece != "")


def _content(path: Path, named: str) -> bytes:
    try:
        with check_ordinary(path).open("rb") as file:
            return file.read(MOST_BYTES + 1)
    except IsADirectoryError:
        reason = "it is a folder"
    except OSError as error:
        reason = (error.strerror or type(error).__name__).lower()
    raise DatasetError(f"The image '{_short(named)}' cannot be read: {reason}.")


def fetched(url: str) -> Image:
    """Fetch the image at an address; once fetched it is kept in the home folder.

    Args:
        url: an address that begins with http:// or https://.

    Returns:
        The image.

    Raises:
        DatasetError: the user does not allow images to be fetched (`--image-urls`), the address
            cannot be fetched, or what it gives is not an image that models take.
    """
    printed_url = without_login(url).partition("?")[0]
    if urlsplit(url).scheme not in ("http", "https"):
        raise DatasetError(
            f"The image '{_short(printed_url)}' has an address that is neither http nor"
            " https."
        )
    if not urls_allowed():
        raise DatasetError(
            f"The row names an image by its address ({_short(printed_url)}): add"
            f" --image-urls, or set {VARIABLE}=1, to allow that such images are"
            " fetched."
        )
    cached = (
        home_folder()
        / "images"
        / hashlib.sha256(url.encode("utf-8", "surrogatepass")).hexdigest()
    )
    with suppress(OSError):
        return Image.read(check_ordinary(cached).read_bytes(), printed_url)
    try:
        with _opener().open(url, timeout=_TIMEOUT) as reply:
            content = reply.read(MOST_BYTES + 1)
    except (OSError, ValueError, urllib.error.URLError) as error:
        if isinstance(error, urllib.error.HTTPError):
            error.close()  # it is the reply, too
        reason = getattr(error, "reason", None) or error
        raise DatasetError(
            f"The image {_short(printed_url)} cannot be fetched: {_short(str(reason), 200)}."
        ) from None
    image = Image.read(content, printed_url)
    private_folder(cached.parent)
    partial = cached.with_name(f"{cached.name}.{os.getpid()}")
    partial.write_bytes(content)
    partial.replace(cached)
    return image


def _opener() -> urllib.request.OpenerDirector:
    """Make an opener that only ever follows http and https."""
    opener = urllib.request.OpenerDirector()
    for handler in (
        urllib.request.ProxyHandler,
        urllib.request.HTTPHandler,
        urllib.request.HTTPSHandler,
        urllib.request.HTTPDefaultErrorHandler,
        urllib.request.HTTPRedirectHandler,
        urllib.request.HTTPErrorProcessor,
    ):
        opener.add_handler(handler())
    return opener


def _short(text: str, most: int = 80) -> str:
    printable = "".join(sign if sign.isprintable() else "?" for sign in text[:most])
    return printable if len(text) <= most else f"{printable}..."
