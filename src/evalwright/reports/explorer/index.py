"""The index of a finished run: what the page's lists need, made once and kept on this machine.

It holds the packed columns and previews of `parts.Samples` as they are sent, the place of each
block of records in `samples.jsonl`, and the findings of the check of the run's numbers. The
records themselves are read from the run when they are looked at.

An index is a sealed file (`core.sealed_files`) beside the tables of scores. Its name has the
SHA-256 of the samples, which is computed again before the index is used, and a hash of everything
else that it depends on. So an index of other samples, of a changed `run.json`, or of another
version is not opened, and one that somebody else made is not believed. Deleting it loses nothing.
"""

from __future__ import annotations

import hashlib
import json
import struct
import zlib
from array import array
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from evalwright._version import __version__
from evalwright.analysis.run_checks import RecordFaults
from evalwright.core.errors import RunError
from evalwright.core.sealed_files import SealBroken, SealedFile, SealedWriter
from evalwright.core.tasks import MetricSpec
from evalwright.metrics.registry import is_known
from evalwright.reports.explorer.parts import (
    FAST_LEVEL,
    MALFORMED,
    Blocks,
    RowKeys,
    Samples,
    json_part,
    pack_part,
    page_index,
    unpack_part,
)
from evalwright.reports.explorer.plots import (
    describe_label_sets,
    plots_of,
    read_label_sets,
)
from evalwright.runs.reader import Run
from evalwright.runs.sealed import SCORES
from evalwright.tasks.dialects import dialect_of
from evalwright.tasks.safe_files import failing_as

FORMAT = 1
"""Version of the index; those of another version are not opened."""
ENDING = ".explorer"
PLOTS_ENDING = ".plots"
LABELS_ENDING = ".labels"
PROGRESS_EVERY = 2000
LEAST_RECORD_BYTES = 4 << 20
"""Size of records from which on an index is kept; smaller ones are read again as quickly."""
MOST_INDEX_BYTES = 4 << 30
"""Size of all indexes together; the least recently used ones are removed first."""
_KEYS = "keys"
_TASKS = "tasks"
_DRAWS = "draws"
_TAIL = struct.Struct("<QQ")
"""The last bytes: where the directory begins, and its length."""


class IndexDamaged(Exception):
    """An index is not as it was written, or another user's."""


@dataclass(frozen=True, slots=True)
class Findings:
    """What a check of all records said of a run (`RecordFaults`).

    Attributes:
        warnings: Faults, as sentences.
        as_published: Which numbers were not computed here, as a sentence; "" for none.
    """

    warnings: tuple[str, ...] = ()
    as_published: str = ""


def index_name(run: Run, samples_sha256: str, ending: str = ENDING) -> str:
    """Return the name of a run's index, which has all that its content depends on."""
    tasks = run.data["tasks"]
    specs = [spec for task in tasks for spec in task.get("metric_specs") or ()]
    # Plug-ins decide which numbers can be computed again.
    known_metrics = [is_known(MetricSpec(**spec)) for spec in specs]
    dialects = [dialect_of(task["definition"]) is not None for task in tasks]
    parts = [FORMAT, __version__, run.name, run.data, known_metrics, dialects]
    identity = json.dumps(parts, sort_keys=True, default=str)
    identity_hash = hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()
    return f"{samples_sha256}.{identity_hash[:32]}{ending}"


def is_indexed(record_bytes: int) -> bool:
    """Whether an index is kept of records of this size."""
    return record_bytes >= LEAST_RECORD_BYTES


def _record_bytes(run: Run) -> int:
    """Return the size of a run's samples. Raises RunError where there are none."""
    run.require_samples()
    with failing_as(RunError, f"The samples of run '{run.id}' cannot be read"):
        return run.samples_file.stat().st_size


def main_scorers(run: Run) -> dict[str, str]:
    """Return the main scorer of each task that has one."""
    return {task.name: task.main.scorer for task in run.tasks if task.main}


class PartStore:
    """Receives the packed parts of a run while it is read.

    Args:
        name: The name of the index that is written meanwhile (`index_name`); None keeps the parts
            in memory. They are kept there too where the index cannot be written.
    """

    def __init__(self, name: str | None = None) -> None:
        self._memory: dict[str, bytes] = {}
        self._places: dict[str, tuple[int, int]] = {}
        self._writer: SealedWriter | None = None
        if name is not None:
            with suppress(OSError, RuntimeError):
                self._writer = SealedWriter(SCORES, name)

    @property
    def is_written(self) -> bool:
        """Whether an index is written."""
        return self._writer is not None

    def put(self, key: str, content: bytes) -> None:
        """Store a part."""
        if self._writer is not None:
            try:
                self._places[key] = (self._writer.write(content), len(content))
                return
            except OSError:  # the disk is full
                self._move_to_memory()
        self._memory[key] = content

    def get(self, key: str) -> bytes | None:
        """Return a part; None if it was not stored."""
        if key in self._places and self._writer is not None:
            return self._writer.read(*self._places[key])
        return self._memory.get(key)

    def keep(self, samples: Samples, findings: Findings) -> None:
        """Write the rest of the index and keep it, if it can be written."""
        rows = samples.row_keys()
        blocks = samples.blocks
        for name, column in (
            (_KEYS, rows.keys),
            (_TASKS, rows.tasks),
            (_DRAWS, rows.draws),
        ):
            if self._writer is not None:
                self.put(name, pack_part(column.tobytes(), FAST_LEVEL))
        if self._writer is None:
            return
        directory = {
            "format": FORMAT,
            "size": samples.size,
            "columns": samples.column_heads(),
            "tasks": list(rows.task_codes),
            "blocks": [*map(list, (blocks.starts, blocks.offsets, blocks.checksums))],
            "warnings": findings.warnings,
            "as_published": findings.as_published,
            "parts": self._places,
        }
        try:
            packed = json_part(directory, FAST_LEVEL)
            self._writer.write(packed + _TAIL.pack(self._writer.size, len(packed)))
            self._writer.commit()
        except OSError:
            self._move_to_memory()
        else:
            SCORES.trim(ENDING, MOST_INDEX_BYTES)

    def close(self) -> None:
        """Close the index, and remove it if it was not kept."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _move_to_memory(self) -> None:
        """Hold all parts in memory, and give the room on the disk back."""
        assert self._writer is not None
        for key, place in self._places.items():
            self._memory[key] = self._writer.read(*place)
        self._places = {}
        self.close()


class RunIndex:
    """The samples of a run, opened from its index.

    Attributes:
        size: How many samples there are.
        blocks: Where the blocks of records are in `samples.jsonl`.
        findings: What the check of the records said.
    """

    def __init__(self, file: SealedFile) -> None:
        self._file = file
        place, length = _TAIL.unpack(file.read(file.size - _TAIL.size, _TAIL.size))
        directory = json.loads(unpack_part(file.read(place, length)))
        if directory["format"] != FORMAT:
            raise ValueError("it is of another version")
        self.size = int(directory["size"])
        starts, offsets, checksums = directory["blocks"]
        self.blocks = Blocks(
            array("i", starts), array("q", offsets), array("q", checksums)
        )
        self.findings = Findings(
            tuple(directory["warnings"]), str(directory["as_published"])
        )
        self._columns: Sequence[Mapping[str, Any]] = directory["columns"]
        self._tasks: Sequence[str] = directory["tasks"]
        self._places: Mapping[str, Sequence[int]] = directory["parts"]

    def get(self, key: str) -> bytes | None:
        """Return a part; None if there is none. Raises OSError."""
        if key not in self._places:
            return None
        offset, length = self._places[key]
        return self._file.read(offset, length)

    def page_parts(self) -> list[str]:
        """Return the keys of the columns and previews."""
        return [key for key in self._places if "/" in key]

    def index(self, generation: int = 0) -> dict[str, Any]:
        """Return the index of the samples, which the page reads first."""
        return page_index(generation, self.size, self._columns, self.blocks)

    def row_keys(self) -> RowKeys:
        """Return which sample each row is. Raises OSError."""
        columns = [
            array(typecode, unpack_part(self.get(name) or b""))
            for name, typecode in ((_KEYS, "q"), (_TASKS, "i"), (_DRAWS, "i"))
        ]
        task_codes = {name: code for code, name in enumerate(self._tasks)}
        return RowKeys(task_codes, *columns)

    def close(self) -> None:
        """Close the file."""
        self._file.close()


def damage_note(run_name: str) -> str:
    """Say that the index of a run cannot be used."""
    return (
        f"The index of '{run_name}' is damaged or belongs to another user; it is made"
        " again."
    )


def open_index(name: str) -> RunIndex | None:
    """Open the index of a run; None where there is none.

    Args:
        name: Its name (`index_name`).

    Raises:
        IndexDamaged: There is one, but it is not as it was written, or another user's.
    """
    try:
        file = SCORES.open(name)
    except SealBroken as error:
        raise IndexDamaged(name) from error
    if file is None:
        return None
    try:
        return RunIndex(file)
    except (*MALFORMED, OSError, OverflowError, struct.error, zlib.error) as error:
        file.close()
        raise IndexDamaged(name) from error


def index_of(
    run: Run, progress: Callable[[int], None], report: Callable[[str], None]
) -> RunIndex | None:
    """Open a run's index, which is made first where there is none.

    It belongs to the samples that `run.json` records; whether the file has these, shows whoever
    reads it to its end.

    Args:
        run: A finished run.
        progress: Receives the number of samples that were read.
        report: Receives a sentence if there was an index that could not be used.

    Returns:
        None for a small run, one whose record has no hash, or where no index can be kept.

    Raises:
        RunError: The records cannot be read, or are not those of the run.
    """
    recorded = run.data["samples"].get("sha256")
    if not recorded or not is_indexed(_record_bytes(run)):
        return None
    name = index_name(run, str(recorded))
    try:
        index = open_index(name)
        if index is not None:
            return index
    except IndexDamaged:
        report(damage_note(run.name))
    store = PartStore(name)
    try:
        if not store.is_written:
            return None
        _read_all(run, store, progress)
    finally:
        store.close()
    return open_index(name)


def _read_all(run: Run, store: PartStore, progress: Callable[[int], None]) -> None:
    """Read all records of a run once, and keep what follows from them."""
    samples = Samples(
        store.put, main_scorers(run), with_records=False, level=FAST_LEVEL
    )
    faults = RecordFaults(run)
    for line, row in run.lines():
        samples.add(line, row)
        faults.add(row)
        if samples.size % PROGRESS_EVERY == 0:
            progress(samples.size)
    samples.finish()
    findings = Findings(tuple(faults.sentences), faults.as_published)
    faults.keep_numbers()
    store.keep(samples, findings)


def plots_part(run: Run) -> bytes:
    """Return the part "plots" of a run; of a large one it is kept, because it takes all records.

    Raises:
        RunError: The records cannot be read.
    """
    if not is_indexed(_record_bytes(run)):
        return json_part(plots_of(run))
    name = index_name(run, run.verify(), PLOTS_ENDING)
    content = SCORES.read(name)
    if content is None:
        content = json_part(plots_of(run))
        SCORES.write(name, content)
    return content


def label_sets_part(run: Run) -> list[dict[str, Any]]:
    """Return the label sets of a run as JSON; of a large one, what the records say of them is kept.

    Raises:
        RunError: The records cannot be read, or are not those of the run.
    """
    sets = read_label_sets(run)
    if not sets:
        return []
    if not is_indexed(_record_bytes(run)):
        return describe_label_sets(run, sets)
    encoded_sets = json.dumps([label_set.as_dict() for label_set in sets])
    sets_hash = hashlib.sha256(encoded_sets.encode()).hexdigest()[:16]
    name = index_name(run, run.samples_sha256, f".{sets_hash}{LABELS_ENDING}")
    content = SCORES.read(name)
    if content is None:
        content = json.dumps(describe_label_sets(run, sets)).encode()
        SCORES.write(name, content)
    described: list[dict[str, Any]] = json.loads(content)
    return described
