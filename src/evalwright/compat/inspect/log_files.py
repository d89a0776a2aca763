"""Reads logs of inspect_ai sample by sample, as `.eval` (a zip archive of JSON) or JSON.

Archives are compressed with deflate or zstandard. They are foreign files: names in an archive are
never used as paths, nothing is unpacked to disk, and unpacked sizes are limited, of each member and
in total.
"""

from __future__ import annotations

import zipfile
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

from evalwright.compat.recording import (
    Recorded,
    as_list,
    as_mapping,
    check_depth,
    field,
    nothing_at,
    open_recorded,
    read_whole,
)
from evalwright.extend import (
    MissingExtra,
    RunError,
    parse_json,
    printable,
    regular_file,
)

ADVICE = "Name a log of inspect_ai (.eval or .json), or a folder with some."
MAX_PART_BYTES = 1 << 28
MAX_LOG_BYTES = 1 << 30
MAX_UNPACK_RATIO = 200
"""Limits of unpacked size: of one member, of a log, and of a log relative to its file's size."""
_ZSTANDARD = 93
_ATTACHED = "attachment://"
_RESOLVED_FIELDS = (
    "input",
    "target",
    "choices",
    "messages",
    "output",
    "scores",
    "score",
    "metadata",
    "error",
    "limit",
    "model_usage",
)
_UNREADABLE = (
    OSError,
    zipfile.BadZipFile,
    zlib.error,
    EOFError,
    ValueError,
    RuntimeError,
)


class LoggedSample(Recorded):
    """A sample of a log, in one epoch."""

    id: int | str = field("id", must="text or a whole number")
    epoch: int = field(
        "epoch", must="a whole number from 1 to 1,000,000", ge=1, le=10**6
    )
    input: str | list[Any] = field("input", must="text or a list of messages")
    target: str | list[str] = field(
        "target", must="text or a list of texts", default=""
    )
    choices: list[str] = field("choices", must="a list of texts", default=[])
    messages: list[Any] = field("messages", must="a list", default=[])
    output: dict[str, Any] = field("output", must="an object", default={})
    scores: dict[str, Any] = field("scores", must="an object", default={})
    score: dict[str, Any] | None = field("score", must="an object", default=None)
    metadata: dict[str, Any] = field("metadata", must="an object", default={})
    error: dict[str, Any] | None = field("error", must="an object", default=None)
    limit: dict[str, Any] | None = field("limit", must="an object", default=None)
    model_usage: dict[str, Any] = field("model_usage", must="an object", default={})
    total_time: float = field("total_time", must="a number", default=0.0)
    error_retries: list[Any] = field("error_retries", must="a list", default=[])
    events: list[Any] = field("events", must="a list", default=[])
    uuid: str = field("uuid", default="")
    attachments: dict[str, str] = field(
        "attachments", must="an object of texts", default={}
    )


@dataclass(frozen=True, slots=True)
class Log:
    """One log. header: everything except samples and reductions."""

    path: Path
    header: Mapping[str, Any]
    document: Mapping[str, Any] | None = None
    """The whole document, of a JSON log."""

    @property
    def spec(self) -> Mapping[str, Any]:
        """The header's `eval`."""
        return as_mapping(self.header.get("eval"))

    def samples(self) -> Iterator[tuple[str, LoggedSample]]:
        """Yield (location, sample) in file order. Raises RunError."""
        for where, row in self._rows():
            sample = LoggedSample.of(row, where)
            check_depth([getattr(sample, name) for name in _RESOLVED_FIELDS], where)
            yield (
                where,
                (
                    sample
                    if not sample.attachments
                    else _with_attachments(sample, where)
                ),
            )

    def reductions(self) -> list[Any]:
        """Scores of samples over their epochs, as reducers made them."""
        if self.document is not None:
            log_results = as_mapping(self.document.get("results"))
            reductions = self.document.get("reductions") or log_results.get(
                "sample_reductions"
            )
        else:
            with _Archive(self.path) as archive:
                reductions = (
                    archive.read("reductions.json")
                    if "reductions.json" in archive.names
                    else []
                )
        return as_list(reductions)

    def _rows(self) -> Iterator[tuple[str, Any]]:
        if self.document is not None:
            rows = self.document.get("samples") or []
            if not isinstance(rows, list):
                raise RunError(f"{self.path}: 'samples' must be a list.")
            for index, row in enumerate(rows):
                yield f"{self.path}, sample {index + 1}", row
            return
        with _Archive(self.path) as archive:
            sample_names = [
                name
                for name in archive.names
                if name.startswith("samples/") and name.endswith(".json")
            ]
            if any(name.endswith("/sample.json") for name in sample_names):
                raise RunError(
                    f"{self.path} has samples in parts, which are not read: write it as"
                    " JSON with `inspect log dump`."
                )
            for name in sample_names:
                yield archive.where(name), archive.read(name)


def read_log(path: Path) -> Log:
    """Read a log. Raises RunError if it is not one."""
    with open_recorded(path) as file:
        packed = file.read(2) == b"PK"
    document = None
    if packed:
        with _Archive(path) as archive:
            # A log that was not ended has only what was written at its start.
            name = next(
                (
                    candidate
                    for candidate in ("header.json", "_journal/start.json")
                    if candidate in archive.names
                ),
                "",
            )
            if not name:
                raise RunError(
                    f"{path} is an archive, but no log of inspect_ai: it has no header."
                    f" {ADVICE}"
                )
            header = archive.read(name)
    else:
        hint = ": write it as .eval with `inspect log convert`"
        header = document = parse_json(read_whole(path, MAX_LOG_BYTES, hint), str(path))
    spec = header.get("eval") if isinstance(header, dict) else None
    if not isinstance(spec, dict) or not all(
        isinstance(spec.get(key), str) and spec[key] for key in ("task", "model")
    ):
        raise RunError(
            f"{path} is no log of inspect_ai: it has no 'eval' that names a task and a"
            f" model. {ADVICE}"
        )
    header_fields = {
        key: value
        for key, value in header.items()
        if key not in ("samples", "reductions")
    }
    check_depth(header_fields, str(path))
    return Log(path, header_fields, document)


@dataclass(frozen=True, slots=True)
class LogFolder:
    """The logs at a path.

    Attributes:
        logs: those to import.
        left_out: a sentence for each file that is left out of a folder, as it is no log or an
            earlier try.
        failed: a sentence for each log of a folder that cannot be read.
    """

    logs: tuple[Log, ...]
    left_out: tuple[str, ...] = ()
    failed: tuple[str, ...] = ()


def find_logs(path: Path) -> LogFolder:
    """Find the logs at a path.

    Of several attempts at one task, the last counts. In a folder, logs that cannot be read do not
    keep others from being imported.

    Raises:
        RunError: there is no log, or none can be read.
        MissingExtra: none can be read without an optional library.
    """
    if not path.exists():
        raise nothing_at(path, ADVICE)
    if not path.is_dir():
        return LogFolder((read_log(path),))
    logs: list[Log] = []
    left_out = []
    failed = []
    first_error: RunError | MissingExtra | None = None
    for file in sorted(
        child
        for child in path.rglob("*")
        if child.suffix in (".eval", ".json") and child.is_file()
    ):
        try:
            logs.append(read_log(file))
        except (RunError, MissingExtra) as error:
            if file.suffix == ".eval":
                first_error = first_error or error
                failed.append(str(error))
            else:
                left_out.append(f"{file.name} ({printable(str(error))})")
    last: dict[str, Log] = {}
    for log in sorted(logs, key=lambda log: str(log.spec.get("created", ""))):
        task_id = str(log.spec.get("task_id") or log.path)
        if task_id in last:
            left_out.append(
                f"{last[task_id].path.name}, a try of the task that {log.path.name}"
                " repeats."
            )
        last[task_id] = log
    if not last and first_error is not None:
        raise first_error
    if not last:
        raise RunError(f"'{path}' has no logs of inspect_ai. {ADVICE}")
    return LogFolder(tuple(last.values()), tuple(left_out), tuple(failed))


class _Archive:
    """Reads a zip archive member by member."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self._zip = zipfile.ZipFile(regular_file(path))
        except _UNREADABLE as error:
            raise RunError(f"{path} cannot be read as an archive: {error}.") from error
        self.names = list(self._zip.NameToInfo)
        self._left = max(MAX_LOG_BYTES, MAX_UNPACK_RATIO * path.stat().st_size)

    def __enter__(self) -> _Archive:
        return self

    def __exit__(self, *_: object) -> None:
        self._zip.close()

    def where(self, name: str) -> str:
        """Describe a member in messages."""
        return f"{self.path}, {printable(name)}"

    def read(self, name: str) -> Any:
        """Parse a member's JSON. Raises RunError."""
        info = self._zip.NameToInfo[name]
        max_bytes = min(MAX_PART_BYTES, self._left)
        try:
            with _open_member(self._zip, info, str(self.path)) as file:
                content = file.read(max_bytes + 1)
        except _UNREADABLE as error:
            raise RunError(
                f"{self.where(name)} cannot be unpacked: {error}."
            ) from error
        self._left -= len(content)
        if len(content) > max_bytes:
            raise RunError(
                f"{self.where(name)} unpacks to more than the {max_bytes >> 20:,} MB"
                " allowed."
            )
        return parse_json(content, self.where(name))


def _open_member(
    archive: zipfile.ZipFile, info: zipfile.ZipInfo, where: str
) -> IO[bytes]:
    """Open a member for reading. Python's own zipfile supports zstandard from 3.14 on."""
    if info.compress_type != _ZSTANDARD or hasattr(zipfile, "ZIP_ZSTANDARD"):
        return archive.open(info)
    try:
        import pyarrow as pa
    except ImportError as error:
        raise MissingExtra(
            f"Reading {where}, which is compressed with zstandard,",
            "parquet",
            "pyarrow",
        ) from error
    packed = archive.fp
    assert packed is not None
    packed.seek(info.header_offset)
    head = packed.read(30)
    if head[:4] != b"PK\x03\x04" or info.compress_size > MAX_PART_BYTES:
        raise zipfile.BadZipFile("its header is broken")
    # The lengths of the name and of the extra field stand in the part's own header.
    packed.seek(
        int.from_bytes(head[26:28], "little") + int.from_bytes(head[28:30], "little"), 1
    )
    stream: IO[bytes] = pa.CompressedInputStream(
        pa.BufferReader(packed.read(info.compress_size)), "zstd"
    )
    return stream


def _with_attachments(sample: LoggedSample, where: str) -> LoggedSample:
    """Resolve attachments: long texts and images that the log stores separately."""
    remaining_bytes = MAX_PART_BYTES

    def put(value: Any) -> Any:
        nonlocal remaining_bytes
        if isinstance(value, str):
            if not value.startswith(_ATTACHED):
                return value
            attachment = sample.attachments.get(value[len(_ATTACHED) :], value)
            remaining_bytes -= len(attachment)
            if remaining_bytes < 0:
                raise RunError(
                    f"{where}: its attachments are more than the {MAX_PART_BYTES >> 20:,} MB"
                    " allowed."
                )
            return attachment
        if isinstance(value, dict):
            return {key: put(child) for key, child in value.items()}
        return [put(child) for child in value] if isinstance(value, list) else value

    return sample.model_copy(
        update={name: put(getattr(sample, name)) for name in _RESOLVED_FIELDS}
    )
