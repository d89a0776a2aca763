"""The limits of a program that asks a model: what it has used, and when it is over one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Literal

from evalwright.core.responses import Response
from evalwright.strategies.limits import Limits

LimitName = Literal["messages", "tokens", "dollars", "seconds"]
PROGRAM_SECONDS = 3_600.0
"""Most seconds of a program itself, where the task has no limit of seconds."""


class ProgramMeter:
    """Counts what a program uses. Belongs to one event loop.

    A program's own seconds are those in which none of its requests is open: what a reply took is
    counted as the reply says it, so that waiting for a rate limit is not counted, and stored
    replies count as they did the first time.

    Args:
        limits: what it may use.
        on_over: called once, with the limit's name, when it is over one.
    """

    def __init__(self, limits: Limits, on_over: Callable[[LimitName], None]) -> None:
        self.model_seconds = 0.0
        self.n_replies = 0
        self._limits = limits
        self._on_over = on_over
        self._tokens = 0
        self._dollars = 0.0
        self._program_seconds = 0.0
        self._n_open = 0
        self._is_running = False
        self._since = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self.over: LimitName | None = None

    @property
    def program_seconds(self) -> float:
        """How long the program has run itself."""
        passed = self._now() - self._since if self._runs_itself else 0.0
        return self._program_seconds + passed

    @property
    def _runs_itself(self) -> bool:
        return self._is_running and not self._n_open

    def start(self) -> None:
        """Note that the program starts."""
        self._is_running = True
        self._go_on()

    def end(self) -> None:
        """Note that it has ended."""
        self._pause()
        self._is_running = False

    def open(self) -> LimitName | None:
        """Note that a request begins; return the limit that forbids it, None if none does."""
        if self.over is None:
            self.over = self._reached()
            if self.over is not None:
                self._on_over(self.over)
        if self.over is not None:
            return self.over
        self._pause()
        self._n_open += 1
        return None

    def close(self, response: Response | None) -> None:
        """Note that a request has ended, with its reply if there is one."""
        self._n_open -= 1
        if response is not None:
            used = response.usage
            self.n_replies += 1
            self.model_seconds += response.latency
            self._tokens += used.input_tokens + used.output_tokens
            self._dollars += response.cost or 0.0
            self._limits.warn_of_unknown([response])
        if not self._n_open:
            self._go_on()

    def _reached(self) -> LimitName | None:
        limits = self._limits
        used_by_name: dict[LimitName, float] = {
            "messages": self.n_replies + self._n_open,
            "tokens": self._tokens,
            "dollars": self._dollars,
            "seconds": self.model_seconds + self.program_seconds,
        }
        for name, used in used_by_name.items():
            most = getattr(limits, name)
            if most is not None and used >= most:
                return name
        return None

    def _pause(self) -> None:
        """Stop counting the program's own seconds."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._program_seconds = self.program_seconds
        self._since = self._now()

    def _go_on(self) -> None:
        if not self._runs_itself:
            return
        self._since = self._now()
        left = PROGRAM_SECONDS - self._program_seconds
        if self._limits.seconds is not None:
            left = self._limits.seconds - self._program_seconds - self.model_seconds
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(max(0.0, left), self._out_of_time)

    def _out_of_time(self) -> None:
        self._timer = None
        if self.over is None:
            self.over = "seconds"
            self._on_over("seconds")

    def _now(self) -> float:
        return asyncio.get_running_loop().time()
