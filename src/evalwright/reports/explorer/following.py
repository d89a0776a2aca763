"""Follows run folders: reads finished runs step by step, and growing ones to their end.

A run is read again from its first record, as another generation, whenever its records are another
file: when it has ended (its records are sorted then) and when it is resumed. The last line of a
growing file may be half written; it is held back until it is complete. Of a large finished run
that was read before, only the hash is computed again, and the rest comes from its index (`index`).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

from evalwright.analysis.run_checks import RecordFaults
from evalwright.core.errors import EvalwrightError, RunError, UsageError
from evalwright.core.private import check_ordinary
from evalwright.core.tasks import MetricSpec
from evalwright.reports.explorer.catalog import (
    board_of,
    catalog,
    comparison_part,
    run_info,
    task_info,
)
from evalwright.reports.explorer.index import (
    Findings,
    IndexDamaged,
    PartStore,
    RunIndex,
    damage_note,
    index_name,
    is_indexed,
    main_scorers,
    open_index,
    plots_part,
)
from evalwright.reports.explorer.page import WARNING
from evalwright.reports.explorer.parts import (
    FAST_LEVEL,
    RowKeys,
    Samples,
    json_part,
    served_block,
)
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.images import KeptImages
from evalwright.runs.open_trajectories import (
    LiveRun,
    OpenTrajectory,
    extras_of,
    text_of,
)
from evalwright.runs.reader import Run, open_run, row_of
from evalwright.runs.records import record_from
from evalwright.runs.writer import RUN_FILE, Growing, growing
from evalwright.tasks.safe_files import failing_as

READ_SECONDS = 0.2
"""The longest time for which one run is read before the next gets its turn."""
PAUSE_SECONDS = 0.25
"""The pause after a round in which no run's files changed."""
RECOMPUTE_FACTOR = 20
"""Metrics of a growing run are recomputed after this many times the time they took."""
STOPPED = "The process that wrote it ended; run the same command again to resume."
_READ_BYTES = 1 << 20
LONGEST_LINE_BYTES = 1 << 28
"""A run whose growing file has a line longer than this is not read any further."""
RESCAN_SECONDS = 1.0
"""How often a folder of runs is looked through for new ones."""
FIRST_RECORDS_SECONDS = 3.0
"""How long the first reader of a run's samples waits for some of them to be read."""
MOST_ON_A_BOARD = 200
MOST_OPEN = 200
"""Trajectories that are going on which the page lists."""
MOST_LAST_CHARS = 200
"""Characters of the last turn that the list shows."""

Line = tuple[bytes, dict[str, Any]]


class FollowedRun:
    """One run folder. Several threads call the public methods, but only one thread calls `look`.

    Args:
        key: The run's key in addresses.
        folder: The folder of the run.
        wanted: Whether to read its samples at once; otherwise they are read after `want`. The
            samples of a run that is still going are always read.
    """

    def __init__(self, key: str, folder: Path, *, wanted: bool = True) -> None:
        self.key = key
        self.folder = folder
        self.wanted = wanted
        self.lock = threading.RLock()
        self.generation = 0
        self.trouble = ""
        """Why the records cannot be read to their end."""
        self.notes: list[str] = []
        """What was done about an index, as sentences."""
        self.run: Run | None = None
        self._file_mark: object = None
        self._growing: Growing | None = None
        self._store = PartStore()
        self._index: RunIndex | None = None
        self._index_found: RunIndex | None = None
        """An index that is used if the samples still have the hash in its name."""
        self._run_entry: dict[str, Any] = {}
        self._numbers = Numbers({})
        self._file: IO[bytes] | None = None
        self._images: tuple[Run, KeptImages] | None = None
        self._live = LiveRun(folder)
        self._restart(None)

    def _restart(self, file: IO[bytes] | None) -> None:
        """Start a new generation: read the records from their beginning.

        Args:
            file: The open file of records; None where there is none.
        """
        self._close_files()
        self.generation += 1
        self._file = file
        self._lines: Iterator[Line] | None = None
        self._hashing: Iterator[None] | None = None
        self._faults: RecordFaults | None = None
        self._begin_samples(None)
        self.findings = Findings()
        self.complete = False
        self.trouble = ""

    def _begin_samples(self, name: str | None) -> None:
        """Begin to read the samples, and to write the index of that name, if any."""
        scorers = main_scorers(self.run) if self.run else {}
        if not scorers and self._growing:
            scorers = _main_scorers(self._growing.description)
        self._store.close()
        self._store = PartStore(name)
        self._read_samples = Samples(
            self._store.put, scorers, with_records=False, level=FAST_LEVEL
        )
        self._index = None

    @property
    def samples(self) -> Samples | RunIndex:
        """The samples, as they are known now: read so far, or from an index."""
        return self._index or self._read_samples

    def row_keys(self) -> RowKeys:
        """Return which sample each row is. Raises RunError."""
        with (
            self.lock,
            failing_as(RunError, f"The index of '{self.folder.name}' cannot be read"),
        ):
            return self.samples.row_keys()

    def _close_files(self) -> None:
        if self._file is not None:
            self._file.close()
        self._file = None
        self._store.close()
        for index in (self._index, self._index_found):
            if index is not None:
                index.close()
        self._index = None
        self._index_found = None

    def close(self) -> None:
        """Close the records; nothing is read any more."""
        with self.lock:
            self._close_files()
            self._lines = None
            self._hashing = None
            self._live.close()

    # -- the thread that looks

    def look(self) -> bool:
        """Look for new records and read for a moment; return whether anything changed."""
        state = self.state
        changed = self._find_records()
        with self.lock:
            self._live.look()
        if self.run is not None and self.wanted and self._file is None:
            self._open_samples(self.run)
        if self._hashing is not None:
            changed |= self._hash()
        elif self._file is not None and not self.complete and not self.trouble:
            changed |= self._read()
        if self._growing is not None and self._numbers.due(
            self.samples.size, not self._growing.running
        ):
            self._numbers.compute()
            changed = True
        return changed or self.state != state

    def _find_records(self) -> bool:
        """Find the file that has the records now; return whether it is another one."""
        growing_run = growing(self.folder)
        record = self.folder / RUN_FILE
        mark: object
        if growing_run is not None and (growing_run.running or not record.is_file()):
            with contextlib.suppress(OSError):
                file_stat = growing_run.records.stat()
                mark = (growing_run.records, file_stat.st_ino)
                if mark == self._file_mark:
                    self._growing = growing_run
                    return False
                file = check_ordinary(growing_run.records).open("rb", buffering=0)
                with self.lock:
                    self.run = None
                    self._growing = growing_run
                    self._file_mark = mark
                    self._restart(file)
                    self._numbers = Numbers(growing_run.description)
                return True
            return False
        if record.is_file():
            try:
                file_stat = record.stat()
                mark = (
                    RUN_FILE,
                    file_stat.st_ino,
                    file_stat.st_mtime_ns,
                    file_stat.st_size,
                )
                if mark == self._file_mark:
                    return False
                self._file_mark = mark
                run = open_run(self.folder)
                run_facts = run_info(self.key, run, 0)
            except (OSError, UsageError) as error:
                self.trouble = str(error)
                return True
            with self.lock:
                self.run = run
                self._growing = None
                self._run_entry = run_facts
                self._restart(None)
            return True
        # The run was interrupted and its records were removed; we still have the file open.
        if self._growing is not None and self._growing.running:
            self._growing = Growing(
                self._growing.records, self._growing.description, running=False
            )
        return False

    def _open_samples(self, run: Run) -> None:
        """Open the samples of a finished run: from its index, or to be read from the first one."""
        if self.trouble:
            return
        try:
            file = check_ordinary(run.samples_file).open("rb", buffering=0)
            is_large = is_indexed(os.fstat(file.fileno()).st_size)
        except (OSError, UsageError) as error:
            self.trouble = str(error)
            return
        recorded = run.data["samples"].get("sha256")
        index = None
        if is_large and recorded:
            index = self._find_index(index_name(run, str(recorded)))
        with self.lock:
            self._file = file
            self._index_found = index
            if index is not None or (is_large and not recorded):
                self._hashing = run.verify_in_steps()
            else:
                name = index_name(run, str(recorded)) if is_large else None
                self._begin_reading(run, name)

    def _find_index(self, name: str) -> RunIndex | None:
        """Open an index; one that is damaged is reported, and counts for none."""
        try:
            return open_index(name)
        except IndexDamaged:
            self.notes.append(damage_note(self.folder.resolve().name))
            return None

    def _begin_reading(self, run: Run, name: str | None) -> None:
        """Begin to read all records, and to write the index of that name, if any."""
        self._hashing = None
        self._begin_samples(name)
        self._faults = RecordFaults(run)
        self._lines = run.lines()

    def _hash(self) -> bool:
        """Hash the samples for READ_SECONDS at most, and then use their index."""
        run = self.run
        assert run is not None and self._hashing is not None
        until = time.monotonic() + READ_SECONDS
        try:
            while time.monotonic() < until:
                next(self._hashing)
            return False
        except StopIteration:
            pass
        except EvalwrightError:  # reading says why, after its last record
            with self.lock:
                self._begin_reading(run, None)
            return True
        with self.lock:
            digest = run.verified_digest(self._file) if self._file else None
            if digest is None:  # it was replaced or changed meanwhile
                self._restart(None)
                return True
            name = index_name(run, digest)
            index = self._index_found or self._find_index(name)
            self._index_found = None
            if index is None:
                self._begin_reading(run, name)
                return True
            self._hashing = None
            self._index = index
            self.findings = index.findings
            self.complete = True
        return True

    def _read(self) -> bool:
        """Read new records for READ_SECONDS at most.

        Return whether anything was read or went wrong.
        """
        until = time.monotonic() + READ_SECONDS
        samples = self._read_samples
        size = samples.size
        lines = self._lines if self._lines is not None else self._new_lines()
        try:
            while time.monotonic() < until:
                line_and_row = next(lines, None)
                if line_and_row is None:
                    if self.run is not None:
                        self._finish(self.run)
                    break
                line, row = line_and_row
                with self.lock:
                    samples.add(line, row)
                if self._faults is not None:
                    self._faults.add(row)
                elif self._growing is not None:
                    self._numbers.add(row)
        except EvalwrightError as error:
            self.trouble = str(error)
            return True
        return samples.size > size or self.complete

    def _finish(self, run: Run) -> None:
        """Keep what was computed from the records of a finished run."""
        findings = Findings()
        if self._faults is not None:
            findings = Findings(
                tuple(self._faults.sentences), self._faults.as_published
            )
            self._faults.keep_numbers()
            self._faults = None
        with self.lock:
            self._read_samples.finish()
            is_same_file = self._file and run.verified_digest(self._file)
            if is_same_file:
                self._store.keep(self._read_samples, findings)
            self.findings = findings
            self.complete = True

    def _new_lines(self) -> Iterator[Line]:
        """Yield complete lines that were not read before, with their parsed records.

        Raises RunError for a malformed record or one of more than LONGEST_LINE_BYTES.
        """
        start = self._read_samples.blocks.offsets[-1]
        unfinished = b""
        while block := self._bytes(start + len(unfinished), _READ_BYTES):
            *lines, unfinished = (unfinished + block).split(b"\n")
            for line in lines:
                start += len(line) + 1
                number = self._read_samples.size + 1
                yield (
                    line + b"\n",
                    row_of(line, f"{self.folder.name}, record {number:,}"),
                )
            if len(unfinished) > LONGEST_LINE_BYTES:
                raise RunError(
                    f"A record of '{self.folder.name}' has more than {LONGEST_LINE_BYTES:,}"
                    " bytes."
                )

    def _bytes(self, start: int, length: int) -> bytes:
        """Read bytes of the records; works even if the file was removed after it was opened."""
        with self.lock:
            if self._file is None:
                return b""
            with failing_as(
                RunError, f"The records of '{self.folder.name}' cannot be read"
            ):
                self._file.seek(start)
                return self._file.read(length)

    # -- read by requests

    def want(self, stopped: threading.Event) -> None:
        """Have the samples read from now on, and wait a moment for the first of them."""
        if self.wanted:
            return
        self.wanted = True
        deadline = time.monotonic() + FIRST_RECORDS_SECONDS
        while (
            not self.samples.size
            and not self.complete
            and not self.trouble
            and time.monotonic() < deadline
        ):
            if stopped.wait(0.02):
                return

    @property
    def state(self) -> str:
        """Whether the run is "running", "finished" or "stopped"."""
        if self._growing is None:
            return "finished"
        return "running" if self._growing.running else "stopped"

    @property
    def step(self) -> str:
        """Which samples of a finished run are being read, in words; "" where none are."""
        if self.run is None or self._file is None or self.complete or self.trouble:
            return ""
        name = self.folder.resolve().name
        n_records = self.run.data["samples"].get("records")
        if self._hashing is not None or not isinstance(n_records, int):
            return f"{name}: reading samples"
        return f"{name}: {self.samples.size:,} of {n_records:,} samples read"

    @property
    def stamp(self) -> str:
        """A text that changes whenever there are new records or a new generation."""
        return f"{self.generation}.{self.samples.size}"

    def info(self) -> dict[str, Any]:
        """Return the run's entry in the catalog."""
        with self.lock:
            size = self.samples.size
            trouble = self.trouble
            if self.run is not None:
                recorded = self.run.data["samples"].get("records")
                expected = recorded if isinstance(recorded, int) else size
                info = {
                    **self._run_entry,
                    "records": size if self.wanted else expected,
                    "facts": [*self._run_entry["facts"]],
                    "expected": expected,
                }
            else:
                info = self._growing_info(size)
            figure_facts = (
                [("Figures", self.findings.as_published)]
                if self.findings.as_published
                else []
            )
            info["facts"][:0] = [
                *((WARNING, warning) for warning in self.findings.warnings),
                *figure_facts,
            ]
            if trouble:
                info["facts"].insert(0, ("Cannot be read", trouble))
            return info

    def _growing_info(self, size: int) -> dict[str, Any]:
        description: Mapping[str, Any] = (
            self._growing.description if self._growing else {}
        )
        totals = self._read_samples.totals
        facts = [("State", STOPPED)] if self.state == "stopped" else []
        roles = description.get("roles", {})
        facts += (
            [(f"Role {role}", str(name)) for role, name in roles.items()]
            if isinstance(roles, dict)
            else []
        )
        expected = description.get("expected")
        return {
            "key": self.key,
            "name": self.folder.resolve().name,
            "label": str(description.get("label", "") or self.folder.resolve().name),
            "model": str(description.get("model", "")),
            "started": str(description.get("started", "")),
            "seconds": None,
            "state": self.state,
            "records": size,
            "expected": expected if isinstance(expected, int) else None,
            "tasks": self._numbers.tasks,
            "groups": [],
            "labelSets": [],
            "cost": totals.get("cost") if not totals.get("unpriced") else None,
            "inputTokens": int(totals.get("input_tokens", 0)),
            "outputTokens": int(totals.get("tokens", 0)),
            "facts": facts,
            "hasImages": False,
            "imagesMissing": "images are shown once the run has ended",
        }

    @property
    def live_stamp(self) -> str:
        """A text that changes with what goes on; "" where nothing can."""
        return str(self._live.version) if self._live.exists else ""

    def live_part(self, number: int | None) -> bytes | None:
        """Return the trajectories that go on, or the last turns of one of them.

        Returns None where that one has ended.
        """
        with self.lock:
            trajectories = [*self._live.open.values()]
            if number is None:
                shown = [_open_entry(open_one) for open_one in trajectories[:MOST_OPEN]]
                n_more = len(trajectories) - len(shown)
                return json_part({"open": shown, "more": n_more})
            for trajectory in trajectories:
                if trajectory.number == number:
                    return json_part(_open_turns(trajectory))
            return None

    def picture(self, digest: str) -> bytes | None:
        """Return an image of a finished run, as stored in its folder.

        Returns b"" where none is stored, and None before the run has ended.
        """
        run = self.run
        if run is None:
            return None
        if self._images is None or self._images[0] is not run:
            self._images = run, KeptImages(run.folder, run.data)
        return self._images[1].read(digest) or b""

    def part(
        self, name: str, number: int | None, generation: int | None
    ) -> bytes | None:
        """Return a part of the samples; None if it does not exist or is of another generation."""
        with self.lock:
            if name == "index":
                return json_part(self.samples.index(self.generation))
            if number is None or generation not in (None, self.generation):
                return None
            if name == "block":
                return self._block(number)
            with failing_as(
                RunError, f"The index of '{self.folder.name}' cannot be read"
            ):
                full = (self._index or self._store).get(f"{name}/{number}")
            if full is not None or self._index is not None:
                return full
            if number != self._read_samples.chunks or self.complete:
                return None
            return (
                self._read_samples.columns_part()
                if name == "columns"
                else self._read_samples.previews_part()
            )

    def _block(self, number: int) -> bytes | None:
        blocks = self.samples.blocks
        if number >= len(blocks.starts):
            return None
        offset = blocks.offsets[number]
        block = self._bytes(offset, blocks.offsets[number + 1] - offset)
        if zlib.crc32(block) != blocks.checksums[number]:
            self.trouble = (
                f"The records of '{self.folder.resolve().name}' were changed while they"
                " were shown: reload the page after the run is restored, or start this"
                " command again."
            )
            return None
        return served_block(block, blocks.starts[number])


def _open_entry(trajectory: OpenTrajectory) -> dict[str, Any]:
    """Return a trajectory as the page lists it (`OpenTrajectory` in web/src/data/api.ts)."""
    last = trajectory.turns[-1] if trajectory.turns else [""]
    calls = extras_of(last).get("tool_calls") or ()
    named = [call for call in calls if isinstance(call, Mapping)]
    text = text_of(last) or ", ".join(str(call.get("name", "")) for call in named)
    return {
        "number": trajectory.number,
        "task": trajectory.task,
        "id": trajectory.id,
        "draw": trajectory.draw,
        "attempt": trajectory.attempt,
        "turns": trajectory.n_turns,
        "last": f"{last[0]}: {' '.join(text[:MOST_LAST_CHARS].split())}",
    }


def _open_turns(trajectory: OpenTrajectory) -> dict[str, Any]:
    """Return the last turns of a trajectory (`OpenTurns` in web/src/data/api.ts)."""
    n_kept_replies = sum(turn[0] == "assistant" for turn in trajectory.turns)
    return {
        **_open_entry(trajectory),
        "dropped": trajectory.n_turns - len(trajectory.turns),
        "droppedReplies": trajectory.n_replies - n_kept_replies,
        "tail": [*trajectory.turns],
    }


class Numbers:
    """The metrics that a growing run would have if it ended now."""

    def __init__(self, description: Mapping[str, Any]) -> None:
        self.tasks: list[dict[str, Any]] = []
        self._tallies: dict[str, TaskTally] = {}
        self._task_descriptions: dict[str, Mapping[str, Any]] = {}
        self._specs: dict[str, list[MetricSpec]] = {}
        self._done = -1
        self._next = 0.0
        self._rows = 0
        try:
            for task in description.get("tasks", ()):
                name = str(task["name"])
                self._specs[name] = [
                    MetricSpec(**spec) for spec in task["metric_specs"]
                ]
                self._tallies[name] = TaskTally(
                    [scorer["name"] for scorer in task["scorers"]], task["slice_keys"]
                )
                self._task_descriptions[name] = task
        except (KeyError, TypeError, AttributeError):
            # The description is malformed or of another version: show the samples without metrics.
            self._tallies = {}

    def add(self, row: Mapping[str, Any]) -> None:
        """Count a record; a task with a malformed record gets no metrics any more."""
        self._rows += 1
        task = str(row["task"])
        tally = self._tallies.get(task)
        if tally is None:
            return
        try:
            tally.add(record_from(row))
        except (KeyError, TypeError, ValueError, AttributeError):
            del self._tallies[task]

    def due(self, size: int, ended: bool) -> bool:
        """Whether there are new records and enough time has passed since the last computation."""
        return (
            bool(size and self._tallies)
            and size != self._done
            and (ended or time.monotonic() >= self._next)
        )

    def compute(self) -> None:
        """Compute the metrics of all tasks that have records."""
        began = time.monotonic()
        self._done = self._rows
        self.tasks = [
            task_info(
                tally.result(
                    name,
                    str(self._task_descriptions[name].get("version", "")),
                    self._specs[name],
                ),
                str(self._task_descriptions[name].get("description", "")),
            )
            for name, tally in self._tallies.items()
            if len(tally.indices)
        ]
        self._next = time.monotonic() + max(
            1.0, RECOMPUTE_FACTOR * (time.monotonic() - began)
        )


def _main_scorers(description: Mapping[str, Any]) -> dict[str, str]:
    try:
        return {
            task["name"]: task["metric_specs"][0]["scorer"]
            for task in description["tasks"]
            if task["metric_specs"]
        }
    except (KeyError, TypeError, IndexError):
        return {}


def _number_in(keys: Sequence[str]) -> int | None:
    """Return the number that a part's key ends with; None without one."""
    if len(keys) == 2 and keys[1].isdecimal() and len(keys[1]) < 10:
        return int(keys[1])
    return None


def run_folders(folder: Path) -> list[Path]:
    """The folders directly under `folder` that hold a run, finished or not, by name."""
    try:
        children = sorted(folder.iterdir())
    except OSError:
        return []
    return [
        child
        for child in children
        if child.is_dir() and ((child / RUN_FILE).is_file() or growing(child))
    ]


class Follower:
    """Follows several runs: a thread reads them until `stop`, and requests use what it has read.

    Args:
        folders: The folders of the runs.
        title: The title of the page.
        say: Receives warnings on runs that cannot be read as they should.
        runs_folder: A folder all of whose runs are followed, also those that begin later. Their
            samples are read when they are looked at, and boards are made of chosen runs.
    """

    def __init__(
        self,
        folders: Sequence[Path],
        title: str,
        say: Callable[[str], None] | None = None,
        *,
        runs_folder: Path | None = None,
    ) -> None:
        self.title = title
        self._say = say
        self._reported: set[str] = set()
        self.runs_folder = runs_folder
        self._last_key = -1
        self._next_scan = 0.0
        self.runs: dict[str, FollowedRun] = {}
        """By key. A thread that reads it takes a copy first."""
        for folder in folders:
            self._follow_folder(folder, wanted=True)
        self.version = 0
        self._board: dict[str, Any] | None = None
        self._board_of: object = ()
        self._computed_parts: dict[tuple[str, ...], bytes] = {}
        self._compute_lock = threading.Lock()
        self._stopped = threading.Event()
        self._ranked = threading.Event()
        self._ranking = threading.Thread()
        self._scan()
        for followed in self.runs.values():
            followed.look()
        self._thread = threading.Thread(
            target=self._follow, name="evalwright-view", daemon=True
        )

    def start(self) -> None:
        """Start the thread."""
        self._thread.start()

    def stop(self) -> None:
        """Stop the thread and close all files."""
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join(5)
        for followed in self.runs.values():
            followed.close()

    def _follow_folder(self, folder: Path, *, wanted: bool) -> None:
        """Follow another run, under the next key."""
        self._last_key += 1
        key = str(self._last_key)
        self.runs = {**self.runs, key: FollowedRun(key, folder, wanted=wanted)}

    def _scan(self) -> bool:
        """Look for runs that were added to the folder or removed; return whether there were any."""
        self._next_scan = time.monotonic() + RESCAN_SECONDS
        if self.runs_folder is None:
            return False
        present = set(run_folders(self.runs_folder))
        followed_folders = {followed.folder for followed in self.runs.values()}
        removed = {
            key for key, followed in self.runs.items() if followed.folder not in present
        }
        added = sorted(present - followed_folders)
        for key in removed:
            self.runs[key].close()
        if removed:
            self.runs = {
                key: followed
                for key, followed in self.runs.items()
                if key not in removed
            }
        for folder in added:
            self._follow_folder(folder, wanted=False)
        return bool(added or removed)

    def _follow(self) -> None:
        while not self._stopped.is_set():
            due = time.monotonic() >= self._next_scan
            changed = due and self._scan()
            for followed in self.runs.values():
                # a finished run that nobody reads changes seldom
                if not (due or followed.wanted or followed.run is None):
                    continue
                try:
                    changed |= followed.look()
                except Exception as error:  # one run's faults must not stop the others
                    followed.trouble = f"{type(error).__name__}: {error}"
                self._report_warnings(followed)
            finished = [
                (key, followed.run)
                for key, followed in self.runs.items()
                if self.runs_folder is None
                and followed.run is not None
                and followed.complete
            ]
            mark = [(key, self.runs[key].generation) for key, _ in finished]
            if mark != self._board_of and not self._ranking.is_alive():
                self._board_of = mark
                self._ranking = threading.Thread(
                    target=self._rank, args=(finished,), daemon=True
                )
                self._ranking.start()
            changed |= self._ranked.is_set()
            self._ranked.clear()
            self.version += changed
            if not changed:
                self._stopped.wait(PAUSE_SECONDS)

    def _report_warnings(self, followed: FollowedRun) -> None:
        """Report a run's warnings, each once."""
        for note in followed.notes:
            self._report(note)
        for warning in (*followed.findings.warnings, followed.trouble):
            if warning:
                self._report(f"Warning: {followed.folder.resolve().name}: {warning}")

    def _report(self, sentence: str) -> None:
        if self._say is not None and sentence not in self._reported:
            self._reported.add(sentence)
            self._say(sentence)

    @property
    def step(self) -> str:
        """What is being read at the moment, in words; "" for nothing."""
        steps = (followed.step for followed in self.runs.values())
        return next(filter(None, steps), "")

    def _rank(self, runs: Sequence[tuple[str, Run]]) -> None:
        """Compute the board of the finished runs, which may take a while."""
        self._board = board_of(runs)
        self._ranked.set()

    def part(self, key: str, generation: int | None) -> bytes | None:
        """Return a part by its key; None if there is none."""
        part_type, *keys = key.split("/")
        if key == "state":
            return json_part(
                {
                    "version": self.version,
                    "runs": {
                        name: followed.stamp for name, followed in self.runs.items()
                    },
                    "live": {
                        name: followed.live_stamp
                        for name, followed in self.runs.items()
                        if followed.live_stamp
                    },
                }
            )
        if key == "catalog":
            infos = [followed.info() for followed in self.runs.values()]
            document = catalog(
                infos,
                self._board,
                title=self.title,
                live=True,
                chosen_from_folder=self.runs_folder is not None,
            )
            return json_part(document)
        if part_type == "board" and len(keys) <= MOST_ON_A_BOARD:
            return self._board_of_chosen(keys)
        if (part_type, len(keys)) in (("compare", 2), ("plots", 1)):
            return self._of_finished(part_type, keys)
        if part_type == "live" and len(keys) in (1, 2):
            live_run = self.runs.get(keys[0])
            return None if live_run is None else live_run.live_part(_number_in(keys))
        if part_type == "image" and len(keys) == 2:
            image_run = self.runs.get(keys[0])
            return None if image_run is None else image_run.picture(keys[1])
        run = (
            self.runs.get(keys[0])
            if part_type == "run" and len(keys) in (2, 3)
            else None
        )
        if run is None or keys[1] not in ("index", "columns", "previews", "block"):
            return None
        run.want(self._stopped)
        number = _number_in(keys[1:])
        return run.part(keys[1], number, generation)

    def _board_of_chosen(self, keys: Sequence[str]) -> bytes | None:
        """The board of chosen runs, as JSON; null for fewer than two that are finished.

        Returns None where there is no such run.
        """
        runs = self.runs
        if len({*keys} & {*runs}) < len(keys):
            return None
        finished = [(key, run) for key in keys if (run := runs[key].run) is not None]
        stamps = (str(runs[key].generation) for key, _ in finished)
        name = ("board", *(key for key, _ in finished), *stamps)
        with self._compute_lock:
            if name not in self._computed_parts:
                self._computed_parts[name] = json_part(board_of(finished))
            return self._computed_parts[name]

    def _of_finished(self, part_type: str, keys: Sequence[str]) -> bytes | None:
        """Return the comparison of two finished runs, or the plots of one, after reading all.

        Returns None where a run is not finished or cannot be read.
        """
        if len({*keys} & {*self.runs}) < len(keys):
            return None
        runs = [self.runs[key] for key in keys]
        for followed in runs:
            followed.want(self._stopped)
        while not all(followed.complete for followed in runs):
            if any(
                followed.run is None or followed.trouble for followed in runs
            ) or self._stopped.wait(0.05):
                return None
        with self._compute_lock:
            name = (part_type, *keys, *(followed.stamp for followed in runs))
            shown_runs = [
                (followed, followed.run)
                for followed in runs
                if followed.run is not None
            ]
            if name not in self._computed_parts and len(shown_runs) == len(runs):
                try:
                    if part_type == "plots":
                        content = plots_part(shown_runs[0][1])
                    else:
                        a, b = (
                            (followed.key, run, followed.row_keys())
                            for followed, run in shown_runs
                        )
                        content = comparison_part(a, b)
                    self._computed_parts[name] = content
                except EvalwrightError:
                    return None
            return self._computed_parts.get(name)
