"""The progress of a run, as the runner reports it and a display shows it."""

from __future__ import annotations

import logging
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from evalwright.engine.counts import Counts


@dataclass(frozen=True, slots=True)
class Progress:
    """The progress of one run.

    Attributes:
        run: the run's name.
        label: the model's label.
        total: answers needed, samples times draws.
        done: samples times draws that are finished.
        failed: those without an answer or score.
        seconds: time since the run began.
        counts: requests so far.
        finished: whether the run has ended.
        state: the state of stopping rules and replicas, in a few words.
        loading: the model that is being loaded, and for how many seconds.
    """

    run: str
    label: str
    total: int
    done: int
    failed: int
    seconds: float
    counts: Counts
    finished: bool = False
    state: str = ""
    loading: tuple[str, float] | None = None


class ProgressReporter(Protocol):
    """Receives progress a few times a second, and sentences that the user should see."""

    def update(self, progress: Progress) -> None: ...

    def say(self, sentence: str) -> None: ...


def notebook_progress() -> ProgressReporter | None:
    """Create the progress display below a notebook's cell; None where no notebook is running.

    Reports are imported by name (`core/shown.py`).
    """
    shell = getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()
    if not hasattr(shell, "kernel"):
        return None
    reporter: ProgressReporter = resolve_name(
        "evalwright.reports.progress:TerminalProgress"
    )(sys.stdout, live=False)
    return reporter


class Unfailing:
    """A reporter whose errors do not reach the run: after the first one, it is no longer called.

    That error is logged.
    """

    def __init__(self, reporter: ProgressReporter) -> None:
        self._reporter: ProgressReporter | None = reporter

    def update(self, progress: Progress) -> None:
        self._tell(lambda reporter: reporter.update(progress))

    def say(self, sentence: str) -> None:
        self._tell(lambda reporter: reporter.say(sentence))

    def _tell(self, report: Callable[[ProgressReporter], None]) -> None:
        if self._reporter is None:
            return
        try:
            report(self._reporter)
        except Exception as error:
            self._reporter = None
            logging.getLogger("evalwright").warning(
                "Progress is not shown: %s: %s", type(error).__name__, error
            )
