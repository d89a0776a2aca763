"""Finished runs in an experiment tracker: MLflow, Weights & Biases, trackio, TensorBoard, or one of
your own.

A tracker is one function, `log(run: TrackedRun, where: str, before: str) -> str`: it writes the run
there, under the id `before` where it was logged already, and gives the id. Servers and keys are in
trackers' own environment variables. One that fails costs no run, and a run that is made again is
logged once. Packages offer more by the entry point group `evalwright.trackers`.
"""

from __future__ import annotations

import os
import sys
import uuid
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, MissingExtra
from evalwright.core.private import ordinary
from evalwright.core.registry import Registry, positional_count
from evalwright.core.secrets import (
    masked_arguments,
    remember_environment,
    remember_within,
)
from evalwright.models.base import fingerprint_of
from evalwright.runs.reader import Run
from evalwright.runs.writer import write_json
from evalwright.trackers.facts import TrackedRun, tracked

Log = Callable[[TrackedRun, str, str], str]

FILE = "trackers.json"
"""In a run's folder: where it was logged, under which id, and which numbers."""
BUILT_IN = ("mlflow", "tensorboard", "trackio", "wandb")
"""Each has the name of its library and of its extra."""
QUIET = (
    "MLFLOW_DISABLE_TELEMETRY=true WANDB_ERROR_REPORTING=false"
    " HF_HUB_DISABLE_TELEMETRY=1"
)
"""What keeps libraries from reporting to their makers, unless the person has set it."""


def _check(name: str, log: Log) -> None:
    if positional_count(log) != 3:
        raise ConfigurationError(
            f"The tracker '{name}' must be `def log(run, where, before) -> str`."
        )


_MODULES = {name: f"evalwright.trackers.{name}:log" for name in BUILT_IN}
_TRACKERS: Registry[Log] = Registry("tracker", _MODULES, _check)


def open_trackers(names: Sequence[str]) -> list[Tracker]:
    """The trackers named "NAME" or "NAME=WHERE", checked before any request is sent.

    Raises UnknownName, MissingExtra with the command that installs it, or ConfigurationError where
    it could only ask for a key.
    """
    return [
        Tracker(*(part.strip() for part in name.partition("=")[::2])) for name in names
    ]


class Tracker:
    """A callback that logs every run when it is finished."""

    def __init__(self, name: str, where: str = "") -> None:
        remember_environment()
        remember_within(where)
        os.environ.update(
            {**dict(pair.split("=") for pair in QUIET.split()), **os.environ}
        )
        if name in BUILT_IN and name not in sys.modules and find_spec(name) is None:
            raise MissingExtra(f"Tracking with {name}", name, name)
        self.name = name
        self.where = where
        self._log = _TRACKERS.get(name)
        getattr(self._log, "check", bool)()

    def run_finished(self, run: Run) -> None:
        """Log it, unless an earlier command has logged the same numbers."""
        known = _read(run.folder / FILE)
        identity = str(run.data.get("identity", run.id))
        if (
            known.get("identity") != identity
        ):  # the first time, or another run had that name
            known = {"identity": identity, "key": uuid.uuid4().hex, "logged": {}}
            write_json(run.folder / FILE, known, private=True)
        place = (
            f"{self.name}={masked_arguments(self.where)}" if self.where else self.name
        )
        found = tracked(run, str(known["key"]))
        numbers = fingerprint_of(found.numbers)
        before = known["logged"].get(place, {})
        if before.get("numbers") == numbers:
            return
        with redirect_stdout(sys.stderr):  # what libraries print is no result of ours
            made = self._log(found, self.where, str(before.get("id", "")))
        logged = {**known["logged"], place: {"id": made, "numbers": numbers}}
        write_json(run.folder / FILE, {**known, "logged": logged}, private=True)


def _read(file: Path) -> dict[str, Any]:
    try:
        found = from_json(ordinary(file).read_text(encoding="utf-8"))
        own = {
            place: entry
            for place, entry in found["logged"].items()
            if isinstance(entry, dict)
        }
        return {**found, "logged": own} if str(found["key"]).isalnum() else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
