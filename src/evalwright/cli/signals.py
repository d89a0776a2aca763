"""Handles Ctrl-C, SIGTERM and SIGHUP while a command runs.

The first signal waits for requests that were sent, a second one ends the process at once. Work in
`run_blocking` is cancelled, so that it can clean up; elsewhere KeyboardInterrupt is raised.
"""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Any

_SAME_HANGUP_SECONDS = 0.5
"""Seconds in which several SIGHUPs count as one.

A terminal that closes signals its processes, and so does its shell.
"""


class ServingEnded(Exception):
    """A signal ended a server: nothing was interrupted, and there is nothing to report."""


class StopSignals:
    """The signals so far.

    `exit_code` is 128 plus the number of the first one (130 for Ctrl-C).
    """

    def __init__(self) -> None:
        self.exit_code = 128 + signal.SIGINT
        self._first_signal_at = 0.0
        self._process = os.getpid()

    def handle(self, number: int, frame: FrameType | None) -> None:
        """Handle a signal."""
        from evalwright.evaluation import interruption

        now = time.monotonic()
        if (
            os.getpid() != self._process
        ):  # a fork of this process ends as it would have without this handler
            os._exit(128 + number)
        if not self._first_signal_at:
            self._first_signal_at = now
            self.exit_code = 128 + number
            if not interruption.cancel():
                raise KeyboardInterrupt
        elif (
            number != getattr(signal, "SIGHUP", None)
            or now - self._first_signal_at > _SAME_HANGUP_SECONDS
        ):
            os._exit(self.exit_code)


@contextmanager
def stop_signals() -> Iterator[StopSignals]:
    """Handle the signals in the main thread, except those that were ignored before (`nohup`)."""
    stop = StopSignals()
    before: dict[int, Any] = {}
    if threading.current_thread() is threading.main_thread():
        for name in ("SIGINT", "SIGTERM", "SIGHUP"):
            number = getattr(signal, name, None)
            if number is not None and signal.getsignal(number) in (
                signal.SIG_DFL,
                signal.default_int_handler,
            ):
                before[number] = signal.signal(number, stop.handle)
    try:
        yield stop
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
