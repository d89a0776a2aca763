"""Shows how far a proxy is: a live line on a terminal, plain ones elsewhere, and a summary."""

from __future__ import annotations

import logging
import sys
import time
from typing import TYPE_CHECKING, Self

from evalwright.reports import numbers
from evalwright.reports.terminal import is_live_terminal, write_text
from evalwright.reports.text import inert

if TYPE_CHECKING:
    from evalwright.proxy.serving import State

PLAIN_LINE_SECONDS = 10.0

_log = logging.getLogger("evalwright.progress")


class ProxyProgress:
    """Shows the state of a proxy on standard error. Use it as a context manager.

    Args:
        quiet: whether to show sentences alone.
        shares_terminal: whether a program of the user's writes to the same terminal, so that only
            the summary is shown.
    """

    def __init__(self, *, quiet: bool = False, shares_terminal: bool = False) -> None:
        self._file = sys.stderr
        self._is_live = not (quiet or shares_terminal) and is_live_terminal(self._file)
        self._is_plain = not (quiet or shares_terminal or self._is_live)
        self._quiet = quiet
        self._width = 0
        self._shown = ""
        self._spoken_at = time.monotonic()
        self._state: State | None = None

    def say(self, sentence: str) -> None:
        """Print a sentence that stays."""
        text = inert(sentence)
        _log.info("%s", text)
        self._clear()
        write_text(f"{text}\n", self._file)
        self._shown = ""

    def show(self, state: State) -> None:
        """Show the state if it has changed."""
        self._state = state
        line = state_line(state)
        if line == self._shown or not state.counts.requested + state.refused:
            return
        if self._is_live:
            self._clear()
            self._file.write("\r" + line)
            self._width = len(line)
            self._shown = line
        elif (
            self._is_plain and time.monotonic() - self._spoken_at >= PLAIN_LINE_SECONDS
        ):
            self._spoken_at = time.monotonic()
            self.say(line)
            self._shown = line

    def _clear(self) -> None:
        if self._width:
            self._file.write("\r" + " " * self._width)
            self._file.write("\r")
            self._width = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._clear()
        if self._state is not None and not self._quiet:
            self.say(summary(self._state))


def _count(number: int) -> str:
    return f"{number:,}"


def state_line(state: State) -> str:
    """Describe the state in one line."""
    counts = state.counts
    phrases = [
        f"{_count(counts.requested)} requests",
        f"{_count(counts.stored + counts.joined)} from the store",
        f"{_count(state.in_flight)} in flight",
    ]
    if counts.failed:
        phrases.append(f"{_count(counts.failed)} failed")
    if state.refused:
        phrases.append(f"{_count(state.refused)} refused")
    if state.over_budget:
        phrases.append(f"{_count(state.over_budget)} over budget")
    if counts.cost is not None:
        phrases.append(numbers.money(counts.cost))
    return ", ".join(phrases)


def summary(state: State) -> str:
    """Say at the end what was asked, answered from the store, paid, and what failed."""
    counts = state.counts
    if not counts.requested and not state.refused and not state.over_budget:
        return "No request came."
    sentences = [
        f"{_count(counts.requested)} requests:"
        f" {_count(counts.stored + counts.joined)} answered from the store,"
        f" {_count(counts.asked)} by models."
    ]
    if counts.cost is not None:
        sentences.append(f"Cost: {numbers.money(counts.cost)}.")
    if counts.failed:
        kinds = ", ".join(
            f"{kind} {_count(count)}" for kind, count in sorted(counts.failures.items())
        )
        sentences.append(f"{_count(counts.failed)} failed: {kinds}.")
    if state.refused:
        sentences.append(f"{_count(state.refused)} refused before a model was asked.")
    if state.over_budget:
        sentences.append(
            f"{_count(state.over_budget)} not sent: the budget is spent. Run the same again"
            " with another --budget; what is stored costs nothing."
        )
    return " ".join(sentences)
