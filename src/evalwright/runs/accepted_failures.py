"""Samples that a run may lack: a share or number per task, and those that a person gave up on.

A request may fail for good: a provider's filter stops one article of thousands, for one model.
Such an article is missing like any other, and is left out and counted; accepting it only means
that the run is complete without it.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from evalwright.core.errors import ConfigurationError
from evalwright.core.private import check_ordinary, no_file
from evalwright.runs.reader import Run

_LIMIT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(%?)\s*")
_MAX_FILE_BYTES = 16 << 20


@dataclass(frozen=True, slots=True)
class Limit:
    """How many samples of a task may be missing: a share of them, or a number."""

    share: float = 0.0
    number: int = 0

    def of(self, n_samples: int) -> int:
        """Return the limit as a number out of `n_samples` samples."""
        return max(self.number, math.floor(self.share * n_samples + 1e-9))


@dataclass(frozen=True, slots=True)
class MissingSamples:
    """The samples that a run lacks of one task.

    Attributes:
        task: the task's name.
        n_samples: number of samples of the task.
        ids: samples without an answer or a score.
        given_up: those of `ids` that a person gave up on.
        n_allowed: how many others may be missing.
    """

    task: str
    n_samples: int
    ids: tuple[str, ...]
    given_up: tuple[str, ...]
    n_allowed: int

    @property
    def is_accepted(self) -> bool:
        """Whether no more samples are missing than allowed."""
        return len(self.ids) - len(self.given_up) <= self.n_allowed


def read_limit(text: str, where: str = "") -> Limit:
    """Parse a limit such as "2%", "0.02" or "3"; "" allows none.

    Args:
        text: the limit as written.
        where: what the error message begins with.

    Raises:
        ConfigurationError: anything else.
    """
    if not text:
        return Limit()
    form = _LIMIT.fullmatch(text)
    amount = float(form[1]) if form else math.nan
    if form and form[2] and amount < 100:
        return Limit(share=amount / 100)
    if form and not form[2] and 0 < amount < 1:
        return Limit(share=amount)
    if form and not form[2] and amount == int(amount):
        return Limit(number=int(amount))
    raise ConfigurationError(
        f"{where}What failures are accepted is a share or a number of samples, such as"
        f" 2%, 0.02 or 3, not '{text}'."
    )


def is_id_file(text: str) -> bool:
    """Tell whether an entry of `give_up` names a file of ids rather than one id."""
    return text.endswith(".txt")


def read_given_up(entries: Iterable[str]) -> tuple[str, ...]:
    """Collect the ids of given-up samples, including those in files.

    A file has one id per line; `#` begins a comment line.

    Raises:
        ConfigurationError: a file cannot be read.
    """
    ids: list[str] = []
    for entry in entries:
        ids += _ids_in(Path(entry)) if is_id_file(entry) else [entry]
    return tuple(dict.fromkeys(ids))


def _ids_in(path: Path) -> list[str]:
    if not path.is_file():
        raise ConfigurationError(
            f"The file of given-up samples '{path}' {no_file(path)}."
        )
    try:
        with check_ordinary(path).open("rb") as file:
            text = file.read(_MAX_FILE_BYTES).decode("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigurationError(
            f"The file of given-up samples '{path}' cannot be read: {error}."
        ) from None
    lines = (line.strip() for line in text.splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def accepts_failures(run: Run) -> bool:
    """Tell whether a run was configured to accept missing samples."""
    configuration = run.data["configuration"]
    return bool(configuration.get("accept_failures") or configuration.get("give_up"))


def missing_samples(run: Run) -> list[MissingSamples]:
    """List what a run lacks, for the tasks that lack something.

    Raises:
        RunError: the record of samples cannot be read.
    """
    if not any(task.failures or task.n_missing for task in run.tasks):
        return []
    ids: dict[str, dict[str, None]] = {}
    for row in run.rows():
        if row.get("failure") or row.get("score_failures"):
            ids.setdefault(str(row["task"]), {})[str(row["id"])] = None
    configuration = run.data["configuration"]
    limit = read_limit(str(configuration.get("accept_failures", "")))
    listed = configuration.get("give_up", ())
    given_up = set(map(str, listed)) if isinstance(listed, list | tuple) else set()
    return [
        _missing_of(task.name, task.n_samples, tuple(ids[task.name]), limit, given_up)
        for task in run.tasks
        if task.name in ids
    ]


def _missing_of(
    task: str, n_samples: int, ids: Sequence[str], limit: Limit, given_up: set[str]
) -> MissingSamples:
    listed = tuple(name for name in ids if name in given_up)
    return MissingSamples(task, n_samples, tuple(ids), listed, limit.of(n_samples))


def has_acceptable_failures(run: Run) -> bool:
    """Tell whether a run lacks samples, but of no task more than was accepted."""
    if not accepts_failures(run):
        return False
    missing = missing_samples(run)
    return bool(missing) and all(task.is_accepted for task in missing)
