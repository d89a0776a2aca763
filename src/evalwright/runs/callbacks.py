"""Callbacks that follow runs and samples as they happen, and the guard around them.

A failing callback never costs a sample. Its error is kept as a sentence in `Callbacks.faults`,
and it is not called again: after the evaluation the sentences are shown, and the command exits
with 1.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable
from inspect import iscoroutinefunction
from typing import TYPE_CHECKING, Any, Protocol

from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import mask
from evalwright.core.text import printable

if TYPE_CHECKING:
    from pathlib import Path

    from evalwright.core.samples import SampleRecord
    from evalwright.runs.reader import Run


METHODS = ("run_started", "sample_finished", "run_finished")


class RunStarted(Protocol):
    """A run that is starting. total: number of answers needed, samples times draws."""

    @property
    def id(self) -> str: ...

    @property
    def folder(self) -> Path: ...

    @property
    def total(self) -> int: ...


class Callback:
    """Is called when runs and samples start and finish.

    Derive from it, or implement one of its methods. `sample_finished` is called on the event loop
    and blocks all requests while it works; the other two are called in a thread. A callback that
    raises an error costs no sample: it is not called again, and the error is reported at the end.
    """

    def run_started(self, run: RunStarted) -> None:
        """Called before a run's first request.

        Args:
            run: the run that starts: its `id`, `folder` and `total`, the number of answers it
                needs.
        """

    def sample_finished(self, run_id: str, record: SampleRecord) -> None:
        """Called after a sample was answered, scored and recorded, in the order of completion.

        Args:
            run_id: the run's name.
            record: the sample with its answer and scores.
        """

    def run_finished(self, run: Run) -> None:
        """Called after a run was written.

        Args:
            run: the finished run.
        """


def check_callbacks(callbacks: Any) -> list[Any]:
    """Normalise one callback or several to a list.

    Raises ConfigurationError for an object that has none of the methods, is a class, or has one
    that is `async`.
    """
    listeners = list(callbacks) if isinstance(callbacks, Iterable) else [callbacks]
    for listener in listeners:
        methods = [
            method
            for name in METHODS
            if (method := getattr(listener, name, None)) is not None
        ]
        if isinstance(listener, type):
            raise ConfigurationError(
                f"A callback is an object: write {listener.__name__}(), not {listener.__name__}."
            )
        if not methods:
            raise ConfigurationError(
                f"A callback has one of the methods {', '.join(METHODS)};"
                f" {type(listener).__name__} has none."
            )
        for method in filter(iscoroutinefunction, methods):
            raise ConfigurationError(
                f"The callback's method {method.__name__} is `async def`, but is"
                " called, not awaited: write `def`."
            )
    return listeners


class Callbacks:
    """The callbacks of one evaluation.

    Attributes:
        faults: the errors that they raised, one sentence each.
    """

    def __init__(self, callbacks: Iterable[Any] = ()) -> None:
        self._callbacks = list(callbacks)
        self.faults: list[str] = []

    async def started(self, run: RunStarted) -> None:
        """Announce that a run begins."""
        await self._in_thread("run_started", run)

    def sample(self, run_id: str, record: SampleRecord) -> None:
        """Announce that a sample was recorded."""
        for callback in self._callbacks:
            self._tell(callback, "sample_finished", run_id, record)

    async def finished(self, run: Run) -> None:
        """Announce that a run was written."""
        await self._in_thread("run_finished", run)

    def warn(self) -> None:
        """Log what failed, for programs that do not read `faults`."""
        for fault in self.faults:
            logging.getLogger("evalwright").warning("%s", fault)

    async def _in_thread(self, method_name: str, *arguments: Any) -> None:
        for callback in list(self._callbacks):
            await asyncio.to_thread(self._tell, callback, method_name, *arguments)

    def _tell(self, callback: Any, method_name: str, *arguments: Any) -> None:
        method: Callable[..., Any] | None = getattr(callback, method_name, None)
        if method is None or callback not in self._callbacks:
            return
        try:
            method(*arguments)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # also what would stop the event loop
            self._callbacks = [
                remaining for remaining in self._callbacks if remaining is not callback
            ]
            name = printable(
                str(getattr(callback, "name", "") or type(callback).__name__)
            )
            why = printable(mask(f"{type(error).__name__}: {error}"))
            self.faults.append(
                f"The callback '{name}' failed in {method_name} and was told no more: {why}."
                " No sample is lost."
            )
