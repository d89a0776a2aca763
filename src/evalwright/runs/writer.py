"""Writes a run's folder.

Records are appended to a partial file as they finish and sorted at the end; every file appears
either complete or not at all, and a run that is replaced stays intact until the new one is
complete. The partial file is not needed to resume: answers are in the store. It only keeps
records out of main memory.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import math
import os
import platform
import re
import uuid
from array import array
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING, Any, Self

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.json_text import encode_function
from evalwright.core.private import check_ordinary, open_private, private_folder
from evalwright.core.samples import SampleRecord
from evalwright.core.secrets import holds_secret, masked
from evalwright.runs.images import ImageKeeper, KeptImages, images_of_record
from evalwright.runs.records import record_row
from evalwright.tasks.safe_files import place_of, write_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

RUN_FILE = "run.json"
SAMPLES_FILE = "samples.jsonl"
PLAN_FILE = "plan.json"
"""The file of stopping rules, written before the first request."""

ABOUT = ".about"
"""Suffix of the file that describes a run while it is in progress."""

SCHEMA_VERSION = 2

_BLOCK_BYTES = 1 << 20
"""Bytes of records that are brought into order and written together."""
_READ_AHEAD = 8
"""Most times the size of a block's records that is read to get them in one piece."""


class RunWriter:
    """Collects records for one run folder; `finish` writes `samples.jsonl` and `run.json`.

    Args:
        folder: the run's folder.
        description: of the run, for those who follow it meanwhile (`growing`); None if nobody can.
        store_images: whether the images of its prompts are kept (`runs.images`).

    Raises:
        RunError: the folder cannot be written; raised at once rather than after the work.
    """

    def __init__(
        self,
        folder: Path,
        description: Mapping[str, Any] | None = None,
        *,
        store_images: bool = True,
    ) -> None:
        self.folder = folder
        self.images = ImageKeeper(folder, keeps_images=store_images)
        # Two processes, or two threads of one, may write the same run at the same time.
        self._partial = (
            folder / f".{SAMPLES_FILE}.{os.getpid()}.{next(_writers)}.partial"
        )
        self._sorted = self._partial.with_suffix(".sorted")
        self._description_file = self._partial.with_suffix(ABOUT)
        self._keys: array[int] = array("q")
        self._starts: array[int] = array("q")
        self._position = 0
        self._file = self._open()
        if description is not None:
            try:
                write_json(
                    self._description_file,
                    {**description, "host": platform.node()},
                    private=True,
                )
            except OSError as error:
                raise _unwritable(self.folder, error) from error

    def _open(self) -> IO[bytes]:
        try:
            private_folder(place_of(self.folder))
            _sweep(self.folder)
            self._partial.unlink(missing_ok=True)
            self._sorted.unlink(missing_ok=True)
            return open_private(self._partial, "x+b", buffering=1 << 18)
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def add(self, position: int, record: SampleRecord) -> None:
        """Append a record. `position` is its position in the finished file."""
        self.add_line(position, _line(record_row(record)))
        try:
            self.images.add(images_of_record(record))
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def add_line(self, position: int, line: bytes) -> None:
        """Append a record that is serialised already."""
        try:
            self._file.write(line)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self._keys.append(position)
        self._starts.append(self._position)
        self._position += len(line)

    async def has_room(self) -> None:
        """Wait until few images are waiting to be drawn.

        Raises RunError.
        """
        try:
            await self.images.has_room()
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def keep_images(self, images: KeptImages) -> None:
        """Take over the images that another run kept. Raises RunError."""
        try:
            self.images.add_kept(images)
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def show(self) -> None:
        """Flush the file so that others can see the records so far.

        Errors are ignored here: `add` or `finish` tries again, and reports them.
        """
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()

    def finish(self, run: Mapping[str, Any]) -> None:
        """Write `samples.jsonl` sorted by position and then `run.json`, which completes the run."""
        try:
            run = _with_images(run, self.images.finish())
            samples = {
                "file": SAMPLES_FILE,
                "records": len(self._keys),
                "sha256": self._write_samples(),
            }
            if (self.folder / RUN_FILE).exists():
                # The old record describes the old samples, so the new ones stay beside them until a
                # record names them.
                beside = self._sorted.replace(
                    self.folder / f"samples.{os.getpid()}.jsonl"
                )
                write_json(
                    self.folder / RUN_FILE,
                    {**run, "samples": {**samples, "file": beside.name}},
                    private=True,
                )
                beside.replace(self.folder / SAMPLES_FILE)
            else:
                self._sorted.replace(self.folder / SAMPLES_FILE)
            write_json(
                self.folder / RUN_FILE, {**run, "samples": samples}, private=True
            )
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self.images.sweep(is_running)
        self.discard()

    def _write_samples(self) -> str:
        import numpy as np

        self._file.flush()
        self._starts.append(self._position)

        # Arrays of positions take a fifth of the memory of a sorted list.
        starts = np.frombuffer(self._starts, np.int64)
        order = np.argsort(np.frombuffer(self._keys, np.int64), kind="stable")
        sizes = np.diff(starts)[order]
        block_numbers = np.cumsum(sizes) // _BLOCK_BYTES
        block_starts = np.flatnonzero(np.diff(block_numbers)) + 1
        digest = hashlib.sha256()
        with open_private(self._sorted, "xb") as file:
            for rows in np.split(order, block_starts):
                block = b"".join(self._read_records(starts[rows], starts[rows + 1]))
                digest.update(block)
                file.write(block)
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()

    def _read_records(
        self, starts: NDArray[np.int64], ends: NDArray[np.int64]
    ) -> Iterator[bytes]:
        """Yield the records of the partial file between these positions.

        Records finish nearly in order, so those of a block mostly lie close together, and one read
        gets them all.
        """
        if not len(starts):
            return
        base = int(starts.min())
        span = int(ends.max()) - base
        is_close = span <= _READ_AHEAD * int((ends - starts).sum())
        if is_close:
            self._file.seek(base)
            content = self._file.read(span)
        for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
            if is_close:
                yield content[start - base : end - base]
            else:
                self._file.seek(start)
                yield self._file.read(end - start)

    def discard(self) -> None:
        """Delete the partial files."""
        self.images.close()
        with contextlib.suppress(OSError):
            self._file.close()
        for file in (self._partial, self._sorted, self._description_file):
            with contextlib.suppress(OSError):
                file.unlink(missing_ok=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.discard()


def _with_images(
    run: Mapping[str, Any], images: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Set the entry about images in `run.json` to what this run kept.

    It replaces the entry of the run that this one was made from.
    """
    without = {key: part for key, part in run.items() if key != "images"}
    return without if images is None else {**without, "images": images}


def slug(text: str) -> str:
    """Convert a text to a file name of letters, digits, dot, dash, plus and underscore.

    It is never empty or hidden, and never leads to another folder.
    """
    safe = "".join(char if char.isalnum() or char in "._+-" else "-" for char in text)
    return safe.strip(".-") or "run"


_writers = count()
_LONGEST_NAME = 200
"""Limit in bytes: file systems allow 255, and a model, shard or process may be appended."""


def check_run_name(name: str) -> str:
    """Check that a name can be that of a run, and return it.

    Raises ConfigurationError for one that leads out of the folder of runs, or is too long.
    """
    if re.search(r"[/\\\0]", name) or (name and not name.strip(".- ")):
        raise ConfigurationError(
            f"'{name}' cannot be the name of a run, because it is the name of its"
            " folder: use letters, digits, '.', '-' and '_'. Runs are written"
            " elsewhere with --out."
        )
    if len(name.encode(errors="replace")) > _LONGEST_NAME:
        raise ConfigurationError(
            f"A run's name can have at most {_LONGEST_NAME} bytes, because it is the"
            f" name of its folder; this one has {len(name.encode(errors='replace'))}."
        )
    return name


def write_plan(folder: Path, plan: Mapping[str, Any]) -> None:
    """Write the rules of a run that is about to begin, unless those of the same run are there."""
    if read_plan(folder).get("identity") == plan["identity"]:
        return
    try:
        write_json(folder / PLAN_FILE, plan, private=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def drop_plan(folder: Path) -> None:
    """Remove the rules of an earlier run from a folder that now holds a complete one."""
    with contextlib.suppress(OSError):
        (folder / PLAN_FILE).unlink(missing_ok=True)


def read_plan(folder: Path) -> dict[str, Any]:
    """Read the rules with which a run was begun; empty where there are none."""
    return _read_json(folder / PLAN_FILE)


def _read_json(file: Path) -> dict[str, Any]:
    """Read a JSON file of ours; empty where it cannot be read."""
    try:
        content = from_json(check_ordinary(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True, slots=True)
class Growing:
    """A run in progress, or one whose process ended before it was complete.

    Attributes:
        records: its partial file, whose last line may be incomplete.
        description: what the writer recorded for followers.
        running: whether its process is alive.
    """

    records: Path
    description: Mapping[str, Any]
    running: bool


def growing(folder: Path) -> Growing | None:
    """Find the run in progress in a folder; None without one.

    The latest one whose process is alive, else the latest one that was interrupted.
    """
    partials = []
    for file in folder.glob(f".{SAMPLES_FILE}.*.partial"):
        with contextlib.suppress(OSError):
            number = _process_of(file)
            if number is not None and not file.is_symlink():
                partials.append(
                    (is_running(number), check_ordinary(file).stat().st_mtime_ns, file)
                )
    if not partials:
        return None
    running, _, file = max(partials)
    return Growing(file, _read_json(file.with_suffix(ABOUT)), running)


def _sweep(folder: Path) -> None:
    """Remove the partial files of killed processes."""
    for file in folder.glob(f".{SAMPLES_FILE}.*"):
        number = _process_of(file)
        if number is not None and os.name == "posix" and not is_running(number):
            file.unlink(missing_ok=True)


def _process_of(file: Path) -> int | None:
    """Extract the id of the process that writes a partial file."""
    number = file.name.removeprefix(f".{SAMPLES_FILE}.").partition(".")[0]
    return int(number) if number.isdecimal() and len(number) < 12 else None


def is_running(process: int) -> bool:
    """Tell whether a process with that id exists, or that cannot be determined."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def write_json(path: Path, data: Mapping[str, Any], *, private: bool = False) -> None:
    """Write JSON atomically: the file has either the old or the new content."""
    write_bytes(
        path,
        (to_json(data, indent=2) + "\n").encode("utf-8", "backslashreplace"),
        private=private,
    )


def to_json(data: Any, **options: Any) -> str:
    """Serialise to standard JSON, without any secret that this process has read.

    Args:
        data: plain values; nan becomes null, an infinity the number 1e999, which parsers read as
            one, and dates and the like become text.
        options: those of `json.dumps`, such as `indent`.

    Returns:
        The text.
    """
    encode = _encode_function(*options.items())
    text = _json(data, encode)
    return _json(masked(data), encode) if holds_secret(text) else text


def _json(data: Any, encode: Callable[[Any], str]) -> str:
    try:
        return encode(data)
    except ValueError:
        mark = uuid.uuid4().hex
        text = encode(_marked(data, mark))
        return text.replace(f'"{mark}+"', "1e999").replace(f'"{mark}-"', "-1e999")


@lru_cache(maxsize=8)
def _encode_function(*options: tuple[str, Any]) -> Callable[[Any], str]:
    settings: dict[str, Any] = {
        "ensure_ascii": False,
        "allow_nan": False,
        "default": str,
        **dict(options),
    }
    return encode_function(json.JSONEncoder(**settings))


def _marked(value: Any, mark: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _marked(member, mark) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(element, mark) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else mark + ("+" if value > 0 else "-")
    return value


def _line(record: Mapping[str, Any]) -> bytes:
    # A lone surrogate in an answer has no UTF-8 form; escaped, as JSON does too, it survives
    # writing and reading.
    return (
        to_json(record, separators=(",", ":")).encode("utf-8", "backslashreplace")
        + b"\n"
    )


def _unwritable(folder: Path, error: OSError) -> RunError:
    reason = error.strerror or str(error)
    if error.errno == errno.ELOOP:
        real = Path(os.path.realpath(folder)).parent
        return RunError(
            f"The run folder '{folder}' is not written: {reason}: --out '{real}'."
        )
    advice = (
        "free some space or " if error.errno in (errno.ENOSPC, errno.EDQUOT) else ""
    )
    return RunError(
        f"The run folder '{folder}' cannot be written: {reason}. Answers received so"
        f" far are kept; {advice}choose another folder with --out, and run again."
    )
