"""Writes another system's results as runs: the run's folder, its facts and its records.

An importer reads its files, makes a `SampleRecord` for each sample and draw, and passes them to
`write_run`. If the system's numbers are not our metrics, it makes the tasks' records itself and
calls `ImportFolder.write`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from evalwright._version import __version__
from evalwright.core.errors import RunError
from evalwright.core.responses import Usage
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.core.text import printable
from evalwright.engine.counts import Counts
from evalwright.models.model_interface import fingerprint_of
from evalwright.runs.aggregation import TaskTally, rules_record
from evalwright.runs.reader import Run, open_run
from evalwright.runs.results import TaskResult
from evalwright.runs.writer import RUN_FILE, SCHEMA_VERSION, RunWriter, check_run_name
from evalwright.tasks.safe_files import failing_as

UNKNOWN_ENVIRONMENT: Mapping[str, Any] = {
    "python": "unknown",
    "platform": "unknown",
    "processors": None,
    "libraries": {},
    "git_commit": None,
}
MAX_NAMED_IDS = 5
"""Ids of repeated items that a note names."""
MAX_NAME_BYTES = 100
"""Most bytes of a folder's name; 100 characters could be too many bytes for a file system."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportedTask:
    """A task of another system's results, as the record describes it.

    Args:
        name: the task's name; a record belongs to the task that it names.
        metrics: metrics over the columns of scores; the first is the main one.
        version: the task's version.
        description: one line for lists.
        definition: the system's own definition of the task, as plain JSON. If a dialect has the
            system's name, its `rules` gets this when the run is scored again.
        scorers: by column of scores, the scorer's kind and options; by default a column is of the
            system's own kind.
        slices: metadata keys by whose values the metrics are also shown.
        metadata: facts about the task, as plain JSON.
    """

    name: str
    metrics: Sequence[MetricSpec]
    version: str = "1"
    description: str = ""
    definition: Mapping[str, Any] = field(default_factory=dict)
    scorers: Mapping[str, tuple[str, Mapping[str, Any]]] = field(default_factory=dict)
    slices: Sequence[str] = ()
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def as_dict(
        self, task_result: TaskResult, *, system: str, content_hash: str, draws: int = 1
    ) -> dict[str, Any]:
        """Return the task's part of `run.json`.

        Args:
            task_result: the task's numbers.
            system: the system that the results come from.
            content_hash: a hash that changes when any sample changes.
            draws: answers per sample.

        Returns:
            A plain mapping for JSON.
        """
        scorers = [
            Scorer(column, kind, options, _refuse_to_score)
            for column, (kind, options) in self.scorers_by_column(system).items()
        ]
        return {
            **task_result.as_dict(),
            "description": self.description,
            "metadata": {"imported": system, **self.metadata},
            "definition": {"dialect": system, **self.definition},
            "content_hash": content_hash,
            "draws": draws,
            "slice_keys": list(self.slices),
            **rules_record(scorers, self.metrics),
        }

    def scorers_by_column(
        self, system: str
    ) -> Mapping[str, tuple[str, Mapping[str, Any]]]:
        """Return the kind and options of each column's scorer."""
        if self.scorers:
            return self.scorers
        return {spec.scorer: (system, {}) for spec in self.metrics}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What `run.json` says about an imported run.

    Args:
        started: when the run began, in ISO 8601.
        model: the model's name.
        code: what identifies the model, as plain JSON; equal models have equal fingerprints.
        tasks: each task's part, as `ImportedTask.as_dict` returns it.
        configuration: how it was run, as plain JSON; its key `imported` has the system's own facts.
        seconds: how long it took.
        facts: further facts about the model.
        environment: the machine and its libraries, if known.
        groups: averages over groups of tasks, as `run.json` has them.
        usage: tokens and requests that the run used, if known.
        tallies: the tasks' tallies by name; without `groups`, the averages of the tasks' dialect
            are computed from them.
    """

    started: str
    model: str
    code: Mapping[str, Any]
    tasks: Sequence[Mapping[str, Any]]
    configuration: Mapping[str, Any]
    seconds: float = 0.0
    facts: Mapping[str, Any] = field(default_factory=dict)
    environment: Mapping[str, Any] = field(default_factory=dict)
    groups: Sequence[Mapping[str, Any]] = ()
    usage: Usage | None = None
    tallies: Mapping[str, TaskTally] = field(default_factory=dict)

    def _averages(self) -> list[dict[str, Any]]:
        """The averages of the groups that the tasks' dialect makes of them."""
        if not self.tallies:
            return []
        from evalwright.runs.grouping import group_records

        return group_records(
            list(self.tasks), {}, lambda name: self.tallies[name].table()
        )

    def as_dict(self, folder: ImportFolder) -> dict[str, Any]:
        """Return the content of `run.json`."""
        name = folder.path.name
        counts = Counts() if self.usage is None else Counts(usage=self.usage)
        averages = list(self.groups) or self._averages()
        groups = {"groups": averages} if averages else {}
        return {
            "schema": SCHEMA_VERSION,
            "evalwright": __version__,
            "id": name,
            "identity": folder.identity,
            "started": self.started,
            "seconds": self.seconds,
            "model": {
                "name": self.model,
                "abilities": [],
                "fingerprint": fingerprint_of(self.code),
                **self.facts,
            },
            "roles": {},
            "configuration": {
                "tasks": [task["name"] for task in self.tasks],
                "limit": None,
                "seed": None,
                "name": name,
                **self.configuration,
            },
            "environment": {**UNKNOWN_ENVIRONMENT, **self.environment},
            "usage": counts.as_dict(),
            "tasks": list(self.tasks),
            **groups,
        }


class ImportDestination:
    """Chooses the folders of the runs of one import.

    Args:
        folder: the folder that holds runs, `--out`.
        name: the name that the user gave, "" for none.
        alone: whether there is only one run; with several, the model is added to the name.
    """

    def __init__(self, folder: Path, name: str, *, alone: bool) -> None:
        self.out = folder
        self.name = name
        self.alone = alone
        self._taken: set[str] = set()

    def place(
        self, model: str, qualifiers: Sequence[str], made_from: Mapping[str, Any] | str
    ) -> ImportFolder:
        """Choose the folder of a run. Names that differ only in case count as equal.

        Args:
            model: the model's name.
            qualifiers: what follows the model in the run's name if the user gave no name.
            made_from: facts that identify the run, such as a hash of its files; or its identity.

        Returns:
            The folder, which is not created yet.

        Raises:
            RunError: the folder holds a run that was made from something else.
        """
        run_name = self._run_name(model, qualifiers)
        folder = self.out / run_name
        count = 2
        while str(folder).lower() in self._taken:
            folder = self.out / f"{run_name}-{count}"
            count += 1
        self._taken.add(str(folder).lower())
        identity = (
            made_from if isinstance(made_from, str) else fingerprint_of(made_from)
        )
        has_run = (folder / RUN_FILE).exists()
        if has_run and open_run(folder).data.get("identity") != identity:
            raise RunError(
                f"'{folder}' already has another run: choose another --name or --out,"
                " or remove it first."
            )
        return ImportFolder(folder, identity)

    def _run_name(self, model: str, qualifiers: Sequence[str]) -> str:
        if self.name:
            run_name = _slug(check_run_name(self.name)) or "run"
            return run_name if self.alone else f"{run_name}-{_slug(model) or 'model'}"
        segments = [_slug(model) or "model", *map(_slug, qualifiers)]
        return "--".join(filter(None, segments))


def _slug(text: str) -> str:
    cleaned = "".join(
        char if char.isalnum() or char in "._+-" else "-" for char in text
    )
    shortened = cleaned.strip(".-").encode()[:MAX_NAME_BYTES]
    return shortened.decode(errors="ignore").strip(".-")


@dataclass(frozen=True, slots=True)
class ImportFolder:
    """The folder of an imported run, as `ImportDestination.place` chose it.

    Args:
        path: the folder.
        identity: identifies the run.
    """

    path: Path
    identity: str

    def write(
        self,
        records: Iterable[SampleRecord],
        facts: Callable[[], RunFacts],
        draws: int | None = None,
    ) -> Run:
        """Write the run and open it.

        Args:
            records: each sample's and draw's record.
            facts: returns what `run.json` says; called after the last record.
            draws: answers per sample, if the records are not in the order of samples and draws.

        Returns:
            The run.

        Raises:
            RunError: the folder cannot be written.
        """
        answered = _AnsweredItems()
        with RunWriter(self.path) as writer:
            for position, record in enumerate(records):
                if draws is not None:
                    position = record.index * draws + record.draw
                answered.add(record)
                writer.add(position, record)
            content = facts().as_dict(self)
            if note := answered.describe_repeated():
                _add_note(content, note)
            writer.finish(content)
        return open_run(self.path)


class _AnsweredItems:
    """Finds items that are in results more than once, by a short key of each."""

    def __init__(self) -> None:
        self._keys: set[int] = set()
        self._first_ids: list[str] = []
        self._n_repeated = 0
        self._has_more_ids = False

    def add(self, record: SampleRecord) -> None:
        """Count a record in."""
        text = f"{record.task}\0{record.sample.id}\0{record.draw}"
        digest = hashlib.blake2b(
            text.encode("utf-8", "backslashreplace"), digest_size=8
        )
        key = int.from_bytes(digest.digest())
        if key not in self._keys:
            self._keys.add(key)
            return
        self._n_repeated += 1
        sample_id = record.sample.id
        if sample_id in self._first_ids:
            return
        if len(self._first_ids) < MAX_NAMED_IDS:
            self._first_ids.append(sample_id)
        else:
            self._has_more_ids = True

    def describe_repeated(self) -> str:
        """Say how many records are of an item that had one; "" if there are none."""
        if not self._n_repeated:
            return ""
        named = ", ".join(f"'{printable(sample_id)}'" for sample_id in self._first_ids)
        more = " and others" if self._has_more_ids else ""
        phrase = "record repeats" if self._n_repeated == 1 else "records repeat"
        return (
            f"{self._n_repeated:,} {phrase} an item of these results (the same task,"
            f" id and draw), and each counts: {named}{more}."
        )


def _add_note(content: dict[str, Any], note: str) -> None:
    """Add a note to those of an imported run, in the content of `run.json`."""
    configuration = dict(content["configuration"])
    imported = dict(configuration.get("imported") or {})
    imported["notes"] = [*imported.get("notes", ()), note]
    configuration["imported"] = imported
    content["configuration"] = configuration


def write_run(
    folder: ImportFolder,
    records: Iterable[SampleRecord],
    tasks: Sequence[ImportedTask],
    *,
    system: str,
    model: str,
    files: Sequence[Path],
    started: str = "",
    seconds: float = 0.0,
    settings: Mapping[str, Any] | None = None,
    notes: Sequence[str] = (),
) -> Run:
    """Write another system's results as a run, with our metrics over its scores.

    Args:
        folder: the run's folder, from `ImportDestination.place`.
        records: each sample's and draw's record, in the order of tasks, samples and draws. They are
            taken one by one, and memory holds a few numbers of each.
        tasks: the tasks that the records name.
        system: the system's name, as the importer and its dialect are called.
        model: the model's name.
        files: the files that the results come from.
        started: when the run began, in ISO 8601; by default the time of the oldest file.
        seconds: how long it took.
        settings: further facts of how the system ran it, as plain JSON.
        notes: sentences for people about what is special in these results.

    Returns:
        The run.

    Raises:
        RunError: a record names none of the tasks, or the folder cannot be written.
    """
    tallies = {task.name: _Tally(task, system) for task in tasks}

    def count_in() -> Iterator[SampleRecord]:
        for record in records:
            if record.task not in tallies:
                raise RunError(
                    f"The record of '{record.sample.id}' names the task"
                    f" '{record.task}', which is none of {', '.join(tallies)}."
                )
            tallies[record.task].add(record)
            yield record

    def facts() -> RunFacts:
        imported = {
            "format": system,
            "files": [path.name for path in files],
            "settings": dict(settings or {}),
            "notes": list(notes),
        }
        return RunFacts(
            started=started or _time_of_oldest(files),
            model=model,
            code={"imported": system, "name": model, "settings": dict(settings or {})},
            tasks=[tally.as_dict() for tally in tallies.values()],
            configuration={"imported": imported},
            seconds=seconds,
        )

    return folder.write(count_in(), facts)


class _Tally:
    """Collects a task's scores and the hash of its samples while its records are written."""

    def __init__(self, task: ImportedTask, system: str) -> None:
        self.task = task
        self.system = system
        self.columns = TaskTally(list(task.scorers_by_column(system)), task.slices)
        self.digest = hashlib.sha256()
        self.draws = 1

    def add(self, record: SampleRecord) -> None:
        self.columns.add(record)
        self.draws = max(self.draws, record.draw + 1)
        if not record.draw:
            sample = record.sample
            text = f"{sample.id}\0{sample.input}\0{list(sample.targets)}\n"
            self.digest.update(text.encode("utf-8", "backslashreplace"))

    def as_dict(self) -> dict[str, Any]:
        task = self.task
        return task.as_dict(
            self.columns.result(task.name, task.version, task.metrics),
            system=self.system,
            content_hash=self.digest.hexdigest(),
            draws=self.draws,
        )


def _time_of_oldest(files: Sequence[Path]) -> str:
    with failing_as(RunError, "A file of the results cannot be read"):
        oldest = min(path.stat().st_mtime for path in files)
    return datetime.fromtimestamp(int(oldest), UTC).isoformat()


def _refuse_to_score(*_: Any) -> Any:
    """Stand in for the function of a scorer whose scores are imported."""
    raise RuntimeError("imported scores are not computed here")
