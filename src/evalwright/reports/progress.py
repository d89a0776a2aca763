"""How far runs are, on standard error: a live line per run on a terminal, a plain line now and then elsewhere."""

from __future__ import annotations

import sys
import threading
from collections import deque
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self, TextIO

from evalwright.reports import numbers
from evalwright.reports.terminal import is_live_terminal, write_text
from evalwright.reports.text import cell_width, inert, pad, shorten

if TYPE_CHECKING:
    from rich.console import Console
    from rich.live import Live

    from evalwright.engine.counts import Counts
    from evalwright.runs.progress import Progress

PLAIN_EVERY = 10.0
"""Seconds between two plain lines of one run."""

_LEAST_STATE = 24
"""Cells under which it is not worth saying where a stopping rule stands."""

_WINDOW = 20.0
"""Seconds that a shown rate looks back: answers from the store at the start say nothing about the rest."""


class Pace:
    """The recent speed of one run and the time that is left at it."""

    def __init__(self) -> None:
        self._points: deque[tuple[float, int]] = deque([(0.0, 0)])

    def add(self, seconds: float, done: int) -> None:
        """Note how many were done by then."""
        self._points.append((seconds, done))
        while len(self._points) > 2 and self._points[1][0] <= seconds - _WINDOW:
            self._points.popleft()

    @property
    def per_second(self) -> float | None:
        """Samples per second over the last seconds; None before any time has passed."""
        (start, before), (now, done) = self._points[0], self._points[-1]
        return (done - before) / (now - start) if now > start else None

    def left(self, todo: int) -> float | None:
        """Seconds until `todo` more are done; None where nothing moves."""
        speed = self.per_second
        return todo / speed if speed else None


class TerminalProgress:
    """Shows progress while `evaluate` runs; use it as a context manager, which puts the terminal back in any case.

    file: standard error by default. live: whether to redraw lines in place; None asks whether `file` is a terminal.
    Safe to call from several threads.
    """

    def __init__(self, file: TextIO | None = None, *, live: bool | None = None) -> None:
        self._file = file or sys.stderr
        self._wants_live = is_live_terminal(self._file) if live is None else live
        self._lock = threading.RLock()
        self._states: dict[str, Progress] = {}
        self._paces: dict[str, Pace] = {}
        self._spoken: dict[str, float] = {}
        self._ended: set[str] = set()
        self._console: Console | None = None
        self._live: Live | None = None

    def update(self, progress: Progress) -> None:
        """Take the state of one run. Its last one (finished) becomes a line that stays."""
        with self._lock:
            if progress.run in self._ended:
                return
            pace = self._paces.setdefault(progress.run, Pace())
            pace.add(progress.seconds, progress.done)
            if progress.finished:
                self._ended.add(progress.run)
                self._states.pop(progress.run, None)
                self._line(final_line(progress))
            elif self._live is not None:
                self._states[progress.run] = progress
            elif progress.seconds - self._spoken.get(progress.run, 0.0) >= PLAIN_EVERY:
                self._spoken[progress.run] = progress.seconds
                self._line(plain_line(progress, pace))

    def say(self, sentence: str) -> None:
        """Print a sentence that stays, above the live lines."""
        with self._lock:
            self._line(inert(sentence))

    def __enter__(self) -> Self:
        if self._wants_live:
            from rich.console import Console
            from rich.live import Live

            self._console = Console(file=self._file, markup=False, highlight=False, emoji=False)
            self._live = Live(
                console=self._console,
                refresh_per_second=4,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                get_renderable=self._render,
            )
            self._live.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        live, self._live = self._live, None
        if live is not None:
            live.stop()

    def _line(self, text: str) -> None:
        if self._live is not None and self._console is not None:
            self._console.print(text, soft_wrap=True)
        else:
            write_text(f"{text}\n", self._file)

    def _render(self) -> Any:
        """The live lines. Called by rich's own thread."""
        from rich.text import Text

        with self._lock:
            states = list(self._states.values())
            paces = [self._paces[state.run] for state in states]
        assert self._console is not None
        width, height = self._console.size
        shown = states[: max(1, height - 3)]
        name_width = min(
            32, max((cell_width(inert(state.label)) for state in shown), default=0), max(10, width // 4)
        )
        text = Text(no_wrap=True, overflow="ellipsis")
        for i, (state, pace) in enumerate(zip(shown, paces, strict=False)):
            if i:
                text.append("\n")
            for part, style in live_parts(state, pace, name_width, width):
                text.append(part, style)
        if len(states) > len(shown):
            text.append(f"\nand {numbers.counted(len(states) - len(shown), 'more run')}", "dim")
        return text


def plain_line(state: Progress, pace: Pace) -> str:
    """Where one run stands, in one line."""
    parts = [f"{numbers.count(state.done)} of {numbers.count(state.total)}"]
    if state.failed:
        parts.append(f"{numbers.count(state.failed)} failed")
    speed, left = pace.per_second, pace.left(state.total - state.done)
    if speed:
        parts.append(numbers.rate(speed))
    if left is not None:
        parts.append(f"{numbers.duration(left)} left")
    return f"{inert(state.label)}: {', '.join([*parts, *usage_parts(state.counts)])}{_rule(state)}"


def final_line(state: Progress) -> str:
    """How one run ended, in one line."""
    if state.done < state.total:
        head = f"stopped after {numbers.count(state.done)} of {numbers.count(state.total)}"
    else:
        head = f"{numbers.counted(state.done, 'answer')} in {numbers.duration(state.seconds)}"
    failed = [f"{numbers.count(state.failed)} failed"] if state.failed else []
    return f"{inert(state.label)}: {', '.join([head, *failed, *usage_parts(state.counts)])}{_rule(state)}"


def _rule(state: Progress) -> str:
    """Where stopping rules stand."""
    return f"; {inert(state.state)}" if state.state else ""


def usage_parts(counts: Counts) -> list[str]:
    """The cost where it is known, requests sent and answered from the store, and tokens."""
    parts = [] if counts.cost is None else [numbers.money(counts.cost)]
    parts.append(f"{numbers.count(counts.asked)} sent, {numbers.count(counts.stored)} from the store")
    used = counts.usage.input_tokens + counts.usage.output_tokens
    return [*parts, f"{numbers.tokens(used)} tokens"] if used else parts


def live_parts(state: Progress, pace: Pace, name_width: int, width: int) -> list[tuple[str, str]]:
    """One live line as (text, style): name, bar, counts, speed, time left, usage; what does not fit is left out."""
    share = state.done / state.total if state.total else 0.0
    bar = 10 if width < 100 else 20
    full = int(share * bar)
    done = f"{numbers.count(state.done):>{len(numbers.count(state.total))}}/{numbers.count(state.total)}"
    parts = [
        (pad(shorten(inert(state.label), name_width), name_width), "bold"),
        (" " + "━" * full, "cyan"),
        ("━" * (bar - full), "bright_black"),
        (f" {done}", ""),
    ]
    more = [(f"{numbers.count(state.failed)} failed", "yellow")] if state.failed else []
    speed, left = pace.per_second, pace.left(state.total - state.done)
    if speed:
        more.append((numbers.rate(speed), ""))
    if left is not None and state.done < state.total:
        more.append((f"{numbers.duration(left)} left", ""))
    more += [(part, "dim") for part in usage_parts(state.counts)]
    room = width - sum(cell_width(text) for text, _ in parts)
    if state.state and room > _LEAST_STATE:
        more.insert(0, (shorten(inert(state.state), room - 2), "green"))
    for text, style in more:
        if cell_width(text) + 2 <= room:
            parts.append((f"  {text}", style))
            room -= cell_width(text) + 2
    return parts
