"""What goes on in a run: the trajectories of samples that are not done, from `live.jsonl`.

The file (see `live.py`) grows while the run goes on, is written anew without samples that are done,
and is removed at its end. Only the last turns of each trajectory are kept, and long texts are cut,
so memory stays flat however long a run goes on.
"""

from __future__ import annotations

import json
from collections import deque
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import IO, Any

from evalwright.core.private import check_ordinary
from evalwright.runs.live import LIVE_FILE, MAX_SHOWN_CHARS, cut_texts

MAX_KEPT_TURNS = 120
"""Last turns of a trajectory that are kept."""
MAX_TEXT_CHARS = MAX_SHOWN_CHARS + 100
"""Characters of a text that are kept: of those that `live.py` cut, with its line, all."""
MAX_OPEN = 1_000
"""Trajectories that are kept at a time; a run asks fewer at once."""
MAX_LINE_BYTES = 64 << 20
"""Longer lines are passed over."""
_READ_BYTES = 1 << 20
_MAX_READ_BYTES = 64 << 20
"""Bytes that one look reads; the rest is for the next."""

Turn = list[Any]
"""A role, a content and, where there is more, a mapping, as in records."""
Key = tuple[str, str, int]
"""The task, the sample's id and the draw."""


@dataclass(slots=True)
class OpenTrajectory:
    """A trajectory that is going on.

    Attributes:
        number: a number that no other trajectory of the file has.
        task: the task's name.
        id: the sample's id.
        draw: which draw of the sample, from 0.
        attempt: from 1; a trajectory that starts anew gets the next.
        turns: the last turns.
        n_turns: all turns so far.
        n_replies: those of them that are the model's.
    """

    number: int
    task: str
    id: str
    draw: int
    attempt: int = 1
    turns: deque[Turn] = field(default_factory=lambda: deque(maxlen=MAX_KEPT_TURNS))
    n_turns: int = 0
    n_replies: int = 0


@dataclass(frozen=True, slots=True)
class LiveEvent:
    """What was added to a trajectory.

    Attributes:
        trajectory: the trajectory, with the turns.
        turns: the turns that were added.
        starts_anew: whether the trajectory began again before them.
        ended: whether the sample is done.
    """

    trajectory: OpenTrajectory
    turns: tuple[Turn, ...]
    starts_anew: bool = False
    ended: bool = False


class LiveRun:
    """Reads `live.jsonl` of a run, step by step.

    Args:
        folder: the folder of the run.
    """

    def __init__(self, folder: Path) -> None:
        self._path = folder / LIVE_FILE
        self._file: IO[bytes] | None = None
        self._inode = 0
        self._offset = 0
        self._unfinished = b""
        self._is_passing_over = False
        self._numbers = count()
        self.open: dict[Key, OpenTrajectory] = {}
        """The trajectories that are going on, in the order in which they began."""
        self.version = 0
        """Rises whenever anything changed."""

    @property
    def exists(self) -> bool:
        """Whether the run has such a file now."""
        return self._file is not None

    def close(self) -> None:
        """Close the file; nothing is open any more."""
        if self._file is not None:
            self._file.close()
            self.version += 1
        self._file = None
        self.open = {}

    def look(self) -> list[LiveEvent]:
        """Read what was added since the last look; [] where nothing was.

        A file that is gone ends what was open. A file that was written anew is read from its
        beginning, and gives the events that the one before had not.
        """
        before = self.open
        if not self._find():
            return []
        is_anew = self.open is not before
        events = [
            event for line in self._lines() if (event := self._event(line)) is not None
        ]
        if is_anew and before:
            events = self._changes_since(before)
        self.version += bool(events)
        return events

    def _changes_since(self, before: Mapping[Key, OpenTrajectory]) -> list[LiveEvent]:
        """Return what a file that was written anew has beyond the one before.

        Trajectories keep their numbers, by which they are asked for.
        """
        events = []
        for key, trajectory in self.open.items():
            earlier = before.get(key)
            n_known = 0
            starts_anew = False
            if earlier is not None:
                trajectory.number = earlier.number
                starts_anew = trajectory.attempt > earlier.attempt
                n_known = 0 if starts_anew else earlier.n_turns
            n_new = min(max(0, trajectory.n_turns - n_known), len(trajectory.turns))
            if n_new:
                new_turns = tuple([*trajectory.turns][-n_new:])
                events.append(LiveEvent(trajectory, new_turns, starts_anew))
        for key, earlier in before.items():
            if key not in self.open:
                events.append(LiveEvent(earlier, (), ended=True))
        return events

    def _find(self) -> bool:
        try:
            if self._path.is_symlink():
                raise ValueError("another file")
            stat = check_ordinary(self._path).stat()
            is_same = stat.st_ino == self._inode and stat.st_size >= self._offset
            if self._file is not None and is_same:
                return True
            self.close()
            self._file = self._path.open("rb", buffering=0)
        except (OSError, ValueError):
            self.close()
            return False
        self._inode = stat.st_ino
        self._offset = 0
        self._unfinished = b""
        self._is_passing_over = False
        self.version += 1
        return True

    def _lines(self) -> Iterator[bytes]:
        """Yield the complete lines that were not read before."""
        assert self._file is not None
        n_left = _MAX_READ_BYTES
        while n_left > 0 and (block := self._file.read(_READ_BYTES)):
            n_left -= len(block)
            self._offset += len(block)
            *lines, unfinished = (self._unfinished + block).split(b"\n")
            for line in lines:
                if not self._is_passing_over:
                    yield line
                self._is_passing_over = False
            # The end of a line that is too long is not kept either.
            self._is_passing_over |= len(unfinished) > MAX_LINE_BYTES
            self._unfinished = b"" if self._is_passing_over else unfinished

    def _event(self, line: bytes) -> LiveEvent | None:
        """Take in an event; None for a line that is none."""
        try:
            event = json.loads(line)
            key = (str(event["task"]), str(event["id"]), int(event["draw"]))
            attempt = int(event.get("attempt", 1))
            turns = [
                cut_texts(_as_turn(turn), MAX_TEXT_CHARS)
                for turn in event.get("turns") or ()
            ]
            ended = bool(event.get("ended"))
        except (KeyError, TypeError, ValueError, AttributeError, RecursionError):
            return None
        trajectory = self.open.get(key)
        if trajectory is None:
            trajectory = OpenTrajectory(next(self._numbers), *key, attempt=attempt)
            if not ended and len(self.open) < MAX_OPEN:
                self.open[key] = trajectory
        starts_anew = attempt > trajectory.attempt
        if starts_anew:
            trajectory.turns.clear()
            trajectory.n_turns = 0
            trajectory.n_replies = 0
            trajectory.attempt = attempt
        trajectory.turns.extend(turns)
        trajectory.n_turns += len(turns)
        trajectory.n_replies += sum(turn[0] == "assistant" for turn in turns)
        if ended:
            self.open.pop(key, None)
        return LiveEvent(trajectory, tuple(turns), starts_anew, ended)


def _as_turn(turn: Any) -> Turn:
    """Return a turn as records have it: [role, content, extras].

    Raises TypeError or KeyError for what is no turn.
    """
    if isinstance(turn, list) and turn:
        return turn
    if isinstance(turn, Mapping):
        extras = {
            name: turn[name]
            for name in turn
            if name not in ("role", "content") and turn[name]
        }
        return [turn["role"], turn.get("content", ""), extras]
    raise TypeError("not a turn")


def text_of(turn: Turn) -> str:
    """Return the texts of a turn, without its images."""
    content = turn[1] if len(turn) > 1 else ""
    if isinstance(content, str):
        return content
    parts = content if isinstance(content, list) else ()
    return "\n".join(part for part in parts if isinstance(part, str))


def extras_of(turn: Turn) -> Mapping[str, Any]:
    """Return what a turn has beside its content, such as its calls."""
    extras = turn[2] if len(turn) > 2 else None
    return extras if isinstance(extras, Mapping) else {}
