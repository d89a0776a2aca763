"""Progress of runs on standard error: live lines on a terminal, else a plain line now and then."""

from __future__ import annotations

import logging
import sys
import threading
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from evalwright.reports import numbers
from evalwright.reports.terminal import is_live_terminal, write_text
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from rich.progress import Progress as Bars
    from rich.progress import TaskID

    from evalwright.engine.counts import Counts
    from evalwright.runs.progress import Progress

PLAIN_LINE_SECONDS = 10.0
"""The time between two plain lines of a run."""

_WINDOW_SECONDS = 20.0
"""The time over which the shown rate is measured."""
_ENOUGH_SAMPLES = 10
"""New samples that a rate needs.

With fewer, it is measured over a longer time, and no time left is shown.
"""

_log = logging.getLogger("evalwright.progress")


class Pace:
    """The recent speed of one run, and the time left at that speed.

    Only new samples count, because stored responses arrive at once.
    """

    def __init__(self) -> None:
        self._points: deque[tuple[float, float, float]] = deque([(0.0, 0.0, 0.0)])
        """Points of (seconds, new samples done by then, all samples done by then)."""

    def take(self, state: Progress) -> None:
        """Record the state of a run.

        The clock starts when the first request is sent and no model is being loaded.
        """
        counts = state.counts
        n_new = counts.asked + counts.failed
        stored = counts.stored + counts.joined
        if state.loading is not None or (stored and not counts.sent):
            self._points.clear()
        # Samples from the store before the first new one say nothing about the remaining ones.
        if not n_new:
            self._points = deque(
                (seconds, done, state.done) for seconds, done, _ in self._points
            )
        # A sample may be several requests, of which some are stored: count the share of the work
        # that was new.
        done = state.done * n_new / (n_new + stored) if n_new + stored else state.done
        self.add(
            state.seconds,
            max([done, *(before for _, before, _ in self._points)]),
            state.done,
        )

    def add(self, seconds: float, done: float, in_all: float | None = None) -> None:
        """Record how many new samples are done.

        Args:
            seconds: Seconds since the start.
            done: New samples that are done by then.
            in_all: All samples that are done, those from the store included.
        """
        if len(self._points) > 2 and self._points[-1][1] == self._points[-2][1] == done:
            # Nothing was done in between, so the first and last point of the pause are enough.
            self._points.pop()
        self._points.append((seconds, done, done if in_all is None else in_all))
        while len(self._points) > 2 and self._points[1][0] <= seconds - _WINDOW_SECONDS:
            if done - self._points[1][1] < _ENOUGH_SAMPLES:
                break  # slow runs are measured over a longer time
            self._points.popleft()

    @property
    def per_second(self) -> float | None:
        """New samples per second over the last seconds; None before any time has passed."""
        (start, before, _), (now, done, _) = self._points[0], self._points[-1]
        return (done - before) / (now - start) if now > start else None

    def left(self, todo: int) -> float | None:
        """Return the seconds until `todo` more samples are done.

        None where too few are done to tell. The share of stored samples among them is assumed to be
        that among the last ones.
        """
        speed = self.per_second
        (_, before, all_before), (_, done, all_done) = self._points[0], self._points[-1]
        n_new = done - before
        in_all = max(all_done - all_before, done - before)
        if not speed or not in_all:
            return None
        new_todo = todo * n_new / in_all
        return new_todo / speed if n_new >= min(_ENOUGH_SAMPLES, new_todo) else None


class TerminalProgress:
    """Shows progress while `evaluate` runs. Use it as a context manager, to restore the terminal.

    It is safe to call from several threads.

    Args:
        file: Where to write; standard error by default.
        live: Whether to redraw lines in place; by default, if `file` is a terminal.
    """

    def __init__(self, file: TextIO | None = None, *, live: bool | None = None) -> None:
        self._file = file or sys.stderr
        self._wants_live = is_live_terminal(self._file) if live is None else live
        self._lock = threading.RLock()
        self._paces: dict[str, Pace] = {}
        self._spoken: dict[str, float] = {}
        self._ended: set[str] = set()
        self._bars: Bars | None = None
        self._tasks: dict[str, TaskID] = {}

    def update(self, progress: Progress) -> None:
        """Show the state of one run; a finished run becomes a line that stays."""
        with self._lock:
            if progress.run in self._ended:
                return
            pace = self._paces.setdefault(progress.run, Pace())
            pace.take(progress)
            if progress.finished:
                self._ended.add(progress.run)
                if self._bars is not None and progress.run in self._tasks:
                    self._bars.remove_task(self._tasks.pop(progress.run))
                self._line(final_line(progress))
            elif self._bars is not None:
                fields: dict[str, Any] = {
                    "label": inert(progress.label),
                    "said": _state(progress, pace),
                }
                if progress.run not in self._tasks:
                    self._tasks[progress.run] = self._bars.add_task(
                        "", total=progress.total, **fields
                    )
                self._bars.update(
                    self._tasks[progress.run], completed=progress.done, **fields
                )
            elif (
                progress.seconds - self._spoken.get(progress.run, 0.0)
                >= PLAIN_LINE_SECONDS
            ):
                self._spoken[progress.run] = progress.seconds
                self._line(plain_line(progress, pace))

    def say(self, sentence: str) -> None:
        """Print a sentence that stays, above the live lines, and log it."""
        with self._lock:
            self._line(inert(sentence))

    def show(self, sentence: str) -> None:
        """Print a sentence that stays without logging it, because it is logged already."""
        with self._lock:
            self._print(inert(sentence))

    def __enter__(self) -> Self:
        if self._wants_live:
            self._bars = _bars(self._file)
            self._bars.start()
        return self

    def __exit__(
        self,
        error_type: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        bars = self._bars
        self._bars = None
        if bars is not None:
            bars.stop()

    def _line(self, text: str) -> None:
        _log.info("%s", text)
        self._print(text)

    def _print(self, text: str) -> None:
        if self._bars is not None:
            self._bars.console.print(text, soft_wrap=True)
        else:
            write_text(f"{text}\n", self._file)


def _bars(file: TextIO) -> Bars:
    """Make the live display: for each run its name, a bar and its state; long texts are cut."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    def text(field: str, style: str, ratio: int) -> TextColumn:
        column = Column(no_wrap=True, overflow="ellipsis", ratio=ratio)
        return TextColumn(
            f"{{task.fields[{field}]}}", style, markup=False, table_column=column
        )

    console = Console(
        file=getattr(file, "styled", file), markup=False, highlight=False, emoji=False
    )
    columns = (
        text("label", "bold", 1),
        BarColumn(20, table_column=Column(width=20)),
        text("said", "", 3),
    )
    return Bars(
        *columns,
        console=console,
        refresh_per_second=4,
        transient=True,
        expand=True,
        redirect_stdout=False,
        redirect_stderr=False,
    )


def plain_line(state: Progress, pace: Pace) -> str:
    """Describe the state of one run in one line."""
    if state.loading is not None and not state.done:
        return _loading(state)
    return f"{inert(state.label)}: {_state(state, pace)}"


def _loading(state: Progress) -> str:
    """Say which model is being loaded, and for how long; "" where none is."""
    if state.loading is None:
        return ""
    name, seconds = state.loading
    return f"Loading {inert(name)}, {numbers.duration(seconds)}"


def _state(state: Progress, pace: Pace) -> str:
    """Say how many samples are done and failed, with speed, time left, usage and stopping rules."""
    if state.loading is not None and not state.done:
        return _loading(state)
    phrases = [
        f"{numbers.count(state.done)} of {numbers.count(state.total)}",
        *filter(None, [_loading(state)]),
    ]
    if state.failed:
        phrases.append(f"{numbers.count(state.failed)} failed")
    speed = pace.per_second
    seconds_left = pace.left(state.total - state.done)
    if speed:
        phrases.append(numbers.rate(speed))
    if seconds_left is not None:
        phrases.append(f"{numbers.duration(seconds_left)} left")
    # Requests to a local model count as sent when they begin to wait for it, so how many are sent
    # says nothing about how far the run is.
    answered = f"{numbers.counted(state.counts.asked, 'request')} answered"
    return ", ".join([*phrases, *usage_parts(state.counts, answered)]) + _rule(state)


def final_line(state: Progress) -> str:
    """Say how one run ended, in one line."""
    if state.done < state.total:
        head = (
            f"stopped after {numbers.count(state.done)} of {numbers.count(state.total)}"
        )
    elif state.failed:
        right = numbers.count(state.done - state.failed)
        head = (
            f"{right} of {numbers.count(state.total)} completed in"
            f" {numbers.duration(state.seconds)}"
        )
    else:
        head = (
            f"{numbers.counted(state.done, 'answer')} in"
            f" {numbers.duration(state.seconds)}"
        )
    failed_text = [f"{numbers.count(state.failed)} failed"] if state.failed else []
    return (
        f"{inert(state.label)}:"
        f" {', '.join([head, *failed_text, *usage_parts(state.counts)])}{_rule(state)}"
    )


def _rule(state: Progress) -> str:
    """Return the state of stopping rules, after a semicolon."""
    return f"; {inert(state.state)}" if state.state else ""


def usage_parts(counts: Counts, requests_text: str = "") -> list[str]:
    """List the cost where it is known, the requests sent and read from the store, and tokens.

    `requests_text` stands in place of the number of requests sent.
    """
    phrases = [] if counts.cost is None else [f"{numbers.money(counts.cost)} paid"]
    phrases.append(requests_text or f"{numbers.count(counts.sent)} sent")
    phrases.append(f"{numbers.count(counts.stored)} from the store")
    if counts.retries:
        phrases.append(numbers.counted(counts.retries, "retry", "retries"))
    n_tokens = counts.usage.input_tokens + counts.usage.output_tokens
    return [*phrases, f"{numbers.tokens(n_tokens)} tokens"] if n_tokens else phrases
