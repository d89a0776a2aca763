"""Writes a run's folder.

Records are kept in a partial file as they finish and put in order at the end; every file appears
whole or not at all, and a run that is replaced stays whole until the new one is.

The partial file is no one's memory: answers are in the store. It only keeps records out of main
memory.
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
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, RunError
from evalwright.core.private import check_ordinary, open_private, private_folder
from evalwright.core.samples import SampleRecord
from evalwright.core.secrets import holds_secret, masked
from evalwright.runs.images import ImageKeeper, KeptImages, images_of_record
from evalwright.runs.records import record_row
from evalwright.tasks.safe_files import place_of, write_bytes

RUN_FILE = "run.json"
SAMPLES_FILE = "samples.jsonl"
PLAN_FILE = "plan.json"
"""Stopping rules, written before the first request."""

ABOUT = ".about"
"""The end of the name of what is known of a run while it is made."""

SCHEMA_VERSION = 2


class RunWriter:
    """Collects records for one run folder; `finish` writes `samples.jsonl` and `run.json`.

    about: what whoever follows the run meanwhile must know of it (`growing`); None where nobody
    can. images: keeps the images of its prompts (`runs.images`). Raises RunError with a sentence
    where the folder cannot be written, at once rather than after the work.
    """

    def __init__(
        self,
        folder: Path,
        about: Mapping[str, Any] | None = None,
        *,
        store_images: bool = True,
    ) -> None:
        self.folder = folder
        self.images = ImageKeeper(folder, keeps_images=store_images)
        # Two processes, or two threads of one, may make the same run at the same time.
        self._partial = (
            folder / f".{SAMPLES_FILE}.{os.getpid()}.{next(_writers)}.partial"
        )
        self._sorted = self._partial.with_suffix(".sorted")
        self._about = self._partial.with_suffix(ABOUT)
        self._keys: array[int] = array("q")
        self._starts: array[int] = array("q")
        self._position = 0
        self._file = self._open()
        if about is not None:
            try:
                write_json(
                    self._about, {**about, "host": platform.node()}, private=True
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
        """Keep a record. `position` is its place in the finished file."""
        self.add_line(position, _line(record_row(record)))
        try:
            self.images.add(images_of_record(record))
        except OSError as error:
            raise _unwritable(self.folder, error) from error

    def add_line(self, position: int, line: bytes) -> None:
        """Keep a record that is written already."""
        try:
            self._file.write(line)
        except OSError as error:
            raise _unwritable(self.folder, error) from error
        self._keys.append(position)
        self._starts.append(self._position)
        self._position += len(line)

    async def has_room(self) -> None:
        """Wait while more images of records wait to be drawn than memory should hold.

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
        """Let whoever follows the run see the records so far.

        What cannot be written now is tried again, and told, by `add` or `finish`.
        """
        with contextlib.suppress(OSError, ValueError):
            self._file.flush()

    def finish(self, run: Mapping[str, Any]) -> None:
        """Write `samples.jsonl` in the order of positions and then `run.json`, which completes the
        run.
        """
        try:
            run = _with_images(run, self.images.finish())
            samples = {
                "file": SAMPLES_FILE,
                "records": len(self._keys),
                "sha256": self._write_samples(),
            }
            if (self.folder / RUN_FILE).exists():
                # The old record speaks of the old samples, so the new ones stand beside them until
                # a record names them.
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
        self._file.flush()
        self._starts.append(self._position)
        import numpy as np

        # An array of places takes a fifth of the memory of a sorted list.
        order = np.argsort(np.frombuffer(self._keys, np.int64), kind="stable")
        digest = hashlib.sha256()
        with open_private(self._sorted, "xb", buffering=1 << 18) as file:
            for row in order:
                start = self._starts[row]
                self._file.seek(start)
                line = self._file.read(self._starts[row + 1] - start)
                digest.update(line)
                file.write(line)
            file.flush()
            os.fsync(file.fileno())
        return digest.hexdigest()

    def discard(self) -> None:
        """Drop what is partial."""
        self.images.close()
        with contextlib.suppress(OSError):
            self._file.close()
        for file in (self._partial, self._sorted, self._about):
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
    """What `run.json` says, with what was kept here in place of what the run that this one is made
    from had kept.
    """
    without = {key: part for key, part in run.items() if key != "images"}
    return without if images is None else {**without, "images": images}


def slug(text: str) -> str:
    """A text as a file name: letters, digits, dot, dash, plus and underscore; never empty, hidden
    or a way out.
    """
    safe = "".join(char if char.isalnum() or char in "._+-" else "-" for char in text)
    return safe.strip(".-") or "run"


_writers = count()
_LONGEST_NAME = 200
"""Bytes: file systems end at 255, and a model's name, a shard's number or a process's may follow.
"""


def check_run_name(name: str) -> str:
    """The name, if it can be one of a run.

    Raises ConfigurationError for one that leads out of the folder of runs.
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
    """Write down the rules of a run that is about to begin; those of the same run that were written
    before stay.
    """
    if read_plan(folder).get("identity") == plan["identity"]:
        return
    try:
        write_json(folder / PLAN_FILE, plan, private=True)
    except OSError as error:
        raise _unwritable(folder, error) from error


def drop_plan(folder: Path) -> None:
    """Remove the rules of an earlier run from a folder that now holds a whole one."""
    with contextlib.suppress(OSError):
        (folder / PLAN_FILE).unlink(missing_ok=True)


def read_plan(folder: Path) -> dict[str, Any]:
    """The rules with which a run was begun; empty where there are none."""
    return _read_json(folder / PLAN_FILE)


def _read_json(file: Path) -> dict[str, Any]:
    """A file of ours; empty where it cannot be read."""
    try:
        content = from_json(check_ordinary(file).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return content if isinstance(content, dict) else {}


@dataclass(frozen=True, slots=True)
class Growing:
    """A run that is being made, or was until its process ended. records: its file, whose last line
    may be half written.
    """

    records: Path
    about: Mapping[str, Any]
    running: bool


def growing(folder: Path) -> Growing | None:
    """The run that is being made in a folder, the latest one whose process runs; else the latest
    that ended before its end.
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
    """Remove what a killed process left behind."""
    for file in folder.glob(f".{SAMPLES_FILE}.*"):
        number = _process_of(file)
        if number is not None and os.name == "posix" and not is_running(number):
            file.unlink(missing_ok=True)


def _process_of(file: Path) -> int | None:
    """The number of the process that writes a partial file."""
    number = file.name.removeprefix(f".{SAMPLES_FILE}.").partition(".")[0]
    return int(number) if number.isdecimal() and len(number) < 12 else None


def is_running(process: int) -> bool:
    """Whether there is a process of that number, or it cannot be known."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True


def write_json(path: Path, data: Mapping[str, Any], *, private: bool = False) -> None:
    """Write JSON so that the file is either the old or the new one, whole."""
    write_bytes(
        path,
        (to_json(data, indent=2) + "\n").encode("utf-8", "backslashreplace"),
        private=private,
    )


def to_json(data: Any, **options: Any) -> str:
    """JSON that every reader takes, without any secret that this process has read.

    Args:
        data: plain values; nan becomes null, an infinity the number 1e999, which reads as one, and
            dates and the like become text.
        options: those of `json.dumps`, such as `indent`.

    Returns:
        The text.
    """
    settings: dict[str, Any] = {
        "ensure_ascii": False,
        "allow_nan": False,
        "default": str,
        **options,
    }
    text = _json(data, settings)
    return _json(masked(data), settings) if holds_secret(text) else text


def _json(data: Any, settings: Mapping[str, Any]) -> str:
    try:
        return _encoder(*settings.items()).encode(data)
    except ValueError:
        mark = uuid.uuid4().hex
        text = json.dumps(_marked(data, mark), **settings)
        return text.replace(f'"{mark}+"', "1e999").replace(f'"{mark}-"', "-1e999")


@lru_cache(maxsize=8)
def _encoder(*settings: tuple[str, Any]) -> json.JSONEncoder:
    return json.JSONEncoder(**dict(settings))


def _marked(value: Any, mark: str) -> Any:
    if isinstance(value, Mapping):
        return {key: _marked(member, mark) for key, member in value.items()}
    if isinstance(value, (list, tuple)):
        return [_marked(element, mark) for element in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else mark + ("+" if value > 0 else "-")
    return value


def _line(record: Mapping[str, Any]) -> bytes:
    # A lone surrogate in an answer has no UTF-8 form; escaped (as JSON does too) it survives
    # reading and writing.
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
