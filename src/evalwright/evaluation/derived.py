"""A run made from another run's records: its folder, and the parts of `run.json` it keeps."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.core.errors import ConfigurationError
from evalwright.models.model_interface import fingerprint_of
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.bucket_runs import require_local
from evalwright.runs.confirmed import remember_numbers
from evalwright.runs.grouping import group_records, groups_of
from evalwright.runs.reader import Run, as_recorded, open_run
from evalwright.runs.simulations import refuse_shards
from evalwright.runs.stopping import noted_groups, with_noted_intervals
from evalwright.runs.writer import (
    RUN_FILE,
    SCHEMA_VERSION,
    RunWriter,
    check_run_name,
    slug,
)


class Derived:
    """A new run from the records of `old`.

    Args:
        made_from: the key of `run.json` that says so ("scored_from").

    Raises:
        RunError: the old records were changed.
        ConfigurationError: the new folder is the old one or holds something else.
    """

    def __init__(
        self, old: Run | str | Path, name: str, out: str | Path | None, made_from: str
    ) -> None:
        self.old = old if isinstance(old, Run) else open_run(old, Path("runs"))
        refuse_shards([self.old])
        if out is None:
            require_local(self.old, "This")
        self.old.require_samples()
        self.old.verify()
        with as_recorded(self.old):
            groups_of(self.old.data["tasks"], self.old.data["configuration"])
        self.made_from = made_from
        self.folder = Path(out or self.old.folder.parent) / slug(
            check_run_name(name).replace("{}", self.old.id)
        )
        self._began = time.monotonic()
        self._started = datetime.now(UTC)
        if self.folder.resolve() == self.old.folder.resolve():
            raise ConfigurationError(
                "The new run needs a different name from the run that it is made from:"
                " use --name."
            )
        if (self.folder / RUN_FILE).exists():
            source = open_run(self.folder).data.get(made_from)
            if source is None or source["run"] != self.old.id:
                how = made_from.replace("_", " ")
                raise ConfigurationError(
                    f"'{self.folder}' holds a run that was not {how} '{self.old.id}':"
                    " choose another --name."
                )

    def finish(
        self,
        writer: RunWriter,
        tasks: Sequence[Mapping[str, Any]],
        tallies: Mapping[str, TaskTally],
        identity: Mapping[str, Any],
        *,
        asked_in: str = "",
        **fields: Any,
    ) -> Run:
        """Write `run.json`: the old one's content, with these tasks and fields.

        Args:
            tasks: the tasks' records.
            tallies: the tasks' scores, by task.
            identity: what the new run is made of.
            asked_in: the round in which judges were asked.
        """
        old = self.old
        digest = self.old.samples_sha256
        stopping = old.data.get("stopping")
        noted = [with_noted_intervals(task, stopping) for task in tasks]
        groups = group_records(
            noted, old.data["configuration"], lambda task: tallies[task].table()
        )
        writer.finish(
            {
                **{key: field for key, field in old.data.items() if key != "groups"},
                "schema": SCHEMA_VERSION,
                "evalwright": __version__,
                "id": self.folder.name,
                "identity": fingerprint_of(identity),
                self.made_from: {
                    "run": old.id,
                    "samples_sha256": digest,
                    "answered": answered_when(old),
                    **({"round": asked_in} if asked_in else {}),
                },
                "started": self._started.isoformat(timespec="seconds"),
                "seconds": round(time.monotonic() - self._began, 3),
                **fields,
                "tasks": noted,
                **({"groups": noted_groups(groups, stopping)} if groups else {}),
            }
        )
        run = open_run(self.folder)
        remember_numbers(run)
        return run


def answered_when(old: Run) -> str:
    """Return when the answers were given: the start of the run that sent the requests."""
    for key in ("scored_from", "aggregated_from"):
        source = old.data.get(key) or {}
        if "answered" in source:
            return str(source["answered"])
    return str(old.data["started"])
