"""A tracker logs each run when it has finished, once.

It is one function, `log(run: TrackedRun, where: str, before: str) -> str`: it writes the run to
`where`, under the id `before` if it was logged already, and returns its id. Packages add trackers
by the entry point group `evalwright.trackers`.
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
from evalwright.core.private import check_ordinary
from evalwright.core.registry import Registry, positional_count
from evalwright.core.secrets import (
    masked_arguments,
    remember_environment,
    remember_within,
)
from evalwright.models.model_interface import fingerprint_of
from evalwright.runs.reader import Run
from evalwright.runs.writer import write_json
from evalwright.trackers.facts import TrackedRun, describe_run

Log = Callable[[TrackedRun, str, str], str]

FILE = "trackers.json"
"""A file in the run folder: where the run was logged, under which id and with which numbers."""
BUILT_IN = ("mlflow", "otlp", "tensorboard", "trackio", "wandb")
"""Built-in trackers; each is also the name of the extra to install."""
_LIBRARIES = {"otlp": "opentelemetry.exporter.otlp.proto.http"}
"""The libraries that are not called as their tracker is."""
QUIET = (
    "MLFLOW_DISABLE_TELEMETRY=true WANDB_ERROR_REPORTING=false"
    " HF_HUB_DISABLE_TELEMETRY=1"
)
"""Environment variables that switch off the libraries' telemetry, unless the user has set them."""


def _check(name: str, log: Log) -> None:
    if positional_count(log) != 3:
        raise ConfigurationError(
            f"The tracker '{name}' must be `def log(run, where, before) -> str`."
        )


_MODULES = {name: f"evalwright.trackers.{name}:log" for name in BUILT_IN}
_TRACKERS: Registry[Log] = Registry("tracker", _MODULES, _check)


def _is_installed(library: str) -> bool:
    try:
        return library in sys.modules or find_spec(library) is not None
    except ModuleNotFoundError:  # a package around it is missing
        return False


def open_trackers(names: Sequence[str]) -> list[Tracker]:
    """Open experiment trackers by name, and check that each can be used.

    They are callbacks: each logs every run when it has finished.

    Args:
        names: "NAME" or "NAME=WHERE", such as "mlflow" or "mlflow=http://localhost:5000".

    Returns:
        A tracker for each name, in order.

    Raises:
        UnknownName: there is no such tracker.
        MissingExtra: its library is not installed.
        ConfigurationError: it has no API key and could only prompt for one.
    """
    return [
        Tracker(*(text.strip() for text in name.partition("=")[::2])) for name in names
    ]


class Tracker:
    """A callback that logs every run when it has finished."""

    def __init__(self, name: str, where: str = "") -> None:
        remember_environment()
        remember_within(where)
        os.environ.update(
            {**dict(pair.split("=") for pair in QUIET.split()), **os.environ}
        )
        if name in BUILT_IN and not _is_installed(_LIBRARIES.get(name, name)):
            raise MissingExtra(f"Tracking with {name}", name, name)
        self.name = name
        self.where = where
        self._log = _TRACKERS.get(name)
        getattr(self._log, "check", bool)()

    def run_finished(self, run: Run) -> None:
        """Log the run, unless an earlier command has already logged the same numbers."""
        state = _read(run.folder / FILE)
        identity = str(run.data.get("identity", run.id))
        if (
            state.get("identity") != identity
        ):  # the first time, or another run had that name
            state = {"identity": identity, "key": uuid.uuid4().hex, "logged": {}}
            write_json(run.folder / FILE, state, private=True)
        target = (
            f"{self.name}={masked_arguments(self.where)}" if self.where else self.name
        )
        facts = describe_run(run, str(state["key"]))
        numbers = fingerprint_of(facts.numbers)
        before = state["logged"].get(target, {})
        if before.get("numbers") == numbers:
            return
        with redirect_stdout(sys.stderr):  # what libraries print is no result of ours
            run_id = self._log(facts, self.where, str(before.get("id", "")))
        logged = {**state["logged"], target: {"id": run_id, "numbers": numbers}}
        write_json(run.folder / FILE, {**state, "logged": logged}, private=True)


def _read(file: Path) -> dict[str, Any]:
    try:
        state = from_json(check_ordinary(file).read_text(encoding="utf-8"))
        logged = {
            target: logged_run
            for target, logged_run in state["logged"].items()
            if isinstance(logged_run, dict)
        }
        return {**state, "logged": logged} if str(state["key"]).isalnum() else {}
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return {}
