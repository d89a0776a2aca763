"""Helpers for importers and exporters: foreign files, run folders, run records."""

from __future__ import annotations

import hashlib
import math
import os
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, NamedTuple, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from evalwright._version import __version__
from evalwright.bounded import from_json
from evalwright.core.errors import RunError, UnknownName, closest
from evalwright.core.private import check_ordinary, lines_of
from evalwright.core.samples import SampleRecord
from evalwright.core.tasks import MetricSpec, Scorer
from evalwright.core.text import printable
from evalwright.engine.counts import Counts
from evalwright.models.base import fingerprint_of
from evalwright.runs.aggregation import rules_record
from evalwright.runs.reader import Run, open_run
from evalwright.runs.results import TaskResult
from evalwright.runs.writer import RUN_FILE, SCHEMA_VERSION, RunWriter, check_run_name
from evalwright.tasks.dialects import SCORINGS
from evalwright.tasks.safe_files import failing_as, place_of

UNKNOWN: dict[str, Any] = {
    "python": "unknown",
    "platform": "unknown",
    "processors": None,
    "libraries": {},
    "git_commit": None,
}
"""An environment of which nothing is known."""


# -- files -----------------------------------------------------------------------------


@contextmanager
def open_recorded(path: Path) -> Iterator[BufferedReader]:
    """Open a foreign file. Raises RunError if it cannot be read."""
    with (
        failing_as(RunError, f"{path} cannot be read"),
        check_ordinary(path).open("rb") as file,
    ):
        yield file


def writing(path: Path) -> AbstractContextManager[None]:
    """Raise RunError if the block cannot write to the path."""
    return failing_as(RunError, f"'{path}' cannot be written")


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A temporary file that replaces the path if the block succeeds, and is removed otherwise.

    Raises OSError.
    """
    place_of(path.parent).mkdir(parents=True, exist_ok=True)
    target = place_of(path)
    temporary = target.with_name(f".{target.name}.{os.getpid()}.tmp")
    try:
        yield temporary
        temporary.replace(target)
    finally:
        with suppress(OSError):
            temporary.unlink()


def read_whole(path: Path, max_bytes: int, hint: str = "") -> bytes:
    """Read a file of limited size. hint: what to do with a larger one. Raises RunError."""
    with open_recorded(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise RunError(
            f"{path} has more than the {max_bytes >> 20:,} MiB allowed{hint}."
        )
    return content


def read_rows(path: Path) -> Iterator[tuple[str, int, dict[str, Any]]]:
    """Yield (file and line, offset of the line, content) of each line that is not empty.

    Raises RunError naming the line.
    """
    start = 0
    with open_recorded(path) as lines:
        for number, line in enumerate(lines_of(lines), 1):
            text = line.removeprefix(b"\xef\xbb\xbf") if number == 1 else line
            if text.strip():
                where = f"{path}, line {number}"
                row = parse_json(text, where)
                if not isinstance(row, dict):
                    raise RunError(
                        f"{where} is not a record: {type(row).__name__} instead of a"
                        " mapping."
                    )
                yield where, start, row
            start += len(line)


def parse_json(text: bytes | str, where: str) -> Any:
    """Parse JSON. Raises RunError naming where it is broken."""
    from pydantic_core import from_json as fast

    # The fast parser takes numbers that no record of ours can hold, and no half of a surrogate
    # pair.
    endless = (
        re.search(r"\d{300}", text)
        if isinstance(text, str)
        else re.search(rb"\d{300}", text)
    )
    if not endless:
        with suppress(ValueError):
            return fast(text)
    try:
        return from_json(text)
    except ValueError as error:
        raise RunError(
            f"{where} is not valid JSON: {error}. Correct or remove it; nothing was"
            " imported."
        ) from error


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return a JSON object, or an empty one in place of anything else."""
    return value if isinstance(value, dict) else {}


def as_list(value: Any) -> list[Any]:
    """Return a JSON list, or an empty one in place of anything else."""
    return value if isinstance(value, list) else []


def check_depth(value: Any, where: str, levels_left: int = 100) -> None:
    """Raise RunError if lists and objects are nested too deeply to be written in a record."""
    if not levels_left:
        raise RunError(f"{where} is nested too deeply.")
    children = list(value.values()) if isinstance(value, dict) else as_list(value)
    for child in children:
        check_depth(child, where, levels_left - 1)


def count_of(value: Any) -> int:
    """Return a number of tokens or items, or 0 if it cannot be one."""
    return value if isinstance(value, int) and 0 <= value < 1 << 53 else 0


def file_name(text: str, fallback: str, max_chars: int = 100) -> str:
    """Turn a text into part of a file name: letters, digits, '.', '_' and '-'.

    fallback: used if the text is empty.
    """
    return (
        "".join(sign if sign.isalnum() or sign in "._-" else "-" for sign in text)[
            :max_chars
        ]
        or fallback
    )


def number(value: Any) -> float | None:
    """Return a finite number; None for anything else."""
    if not isinstance(value, (int, float)) or isinstance(value, bool):
        return None
    try:
        as_float = float(value)
    except OverflowError:
        return None
    return as_float if math.isfinite(as_float) else None


def nothing_at(path: Path, advice: str) -> RunError:
    """The error for a path that does not exist. advice: what to name instead."""
    try:
        sibling_names = [sibling.name for sibling in path.parent.iterdir()]
    except OSError:
        sibling_names = []
    similar_names = closest(path.name, sibling_names)
    meant = (
        f" Did you mean '{path.parent / similar_names[0]}'?" if similar_names else ""
    )
    return RunError(f"'{path}' does not exist.{meant} {advice}")


def hash_files(files: Sequence[Path]) -> str:
    """Hash the contents of files. Raises RunError."""
    digest = hashlib.sha256()
    for path in files:
        with open_recorded(path) as file:
            digest.update(hashlib.file_digest(file, "sha256").digest())
    return digest.hexdigest()


def start_time(stamps: Sequence[str], files: Sequence[Path]) -> str:
    """The first valid time, in UTC if it has no zone; else the time of the oldest file."""
    for stamp in stamps:
        try:
            time = datetime.fromisoformat(stamp)
        except ValueError:
            continue
        return (time if time.tzinfo else time.replace(tzinfo=UTC)).isoformat()
    changed = min(path.stat().st_mtime for path in files)
    return datetime.fromtimestamp(int(changed), UTC).isoformat()


class Recorded(BaseModel):
    """A row of a foreign file; undeclared fields are dropped, and null counts as missing."""

    model_config = ConfigDict(frozen=True, strict=True)

    @classmethod
    def of(cls, row: Any, where: str) -> Self:
        """Validate a row. Raises RunError that says where it is and what is wrong with it."""
        try:
            if isinstance(row, dict):
                row = {key: value for key, value in row.items() if value is not None}
            return cls.model_validate(row)
        except ValidationError as error:
            first = error.errors(include_url=False)[0]
        if not first["loc"]:
            raise RunError(f"{where} is not an object.")
        name = str(first["loc"][0])
        must = next(
            model_field.description
            for key, model_field in cls.model_fields.items()
            if name in (key, model_field.title)
        )
        received = (
            "missing"
            if first["type"] == "missing"
            else printable(repr(first["input"])[:60])
        )
        raise RunError(f"{where}: '{name}' must be {must}, not {received}.")


def field(*names: str, must: str = "text", **options: Any) -> Any:
    """Declare a field of a Recorded, under the first of several names that a row has.

    must: what it must be, for errors.
    """
    return Field(
        validation_alias=AliasChoices(*names),
        title=names[0],
        description=must,
        **options,
    )


Clean = Annotated[
    str,
    BeforeValidator(
        lambda value: printable(value if isinstance(value, str) else str(value)[:200])
    ),
]
"""Any value as text that is safe to show."""


# -- runs ------------------------------------------------------------------------------


def check_scoring(scoring: str) -> None:
    """Raise UnknownName for an unknown scoring."""
    if scoring not in SCORINGS:
        raise UnknownName(
            "scoring",
            scoring,
            SCORINGS,
            f"There are '{SCORINGS[0]}' and '{SCORINGS[1]}'.",
        )


class Destination:
    """Chooses the folders of imported runs, by their name, or else by model and qualifiers.

    alone: there is only one run; otherwise the model is added to the name.
    """

    def __init__(self, folder: Path, name: str, *, alone: bool) -> None:
        self.out = folder
        self.name = name
        self.alone = alone
        self._taken: set[Path] = set()

    def place(
        self, model: str, qualifiers: Sequence[str], made_from: Mapping[str, Any] | str
    ) -> RunFolder:
        """Choose the folder of a run.

        Raises RunError if it holds a run that was made from something else.

        qualifiers: added to the model's name if the runs have no name. made_from: facts that
        identify the run, or its identity. Names that differ only in case count as equal.
        """
        if self.name:
            run_name = _slug(check_run_name(self.name)) or "run"
            run_name = (
                run_name if self.alone else f"{run_name}-{_slug(model) or 'model'}"
            )
        else:
            run_name = "--".join(
                segment
                for segment in (_slug(model) or "model", *map(_slug, qualifiers))
                if segment
            )
        folder = self.out / run_name
        count = 2
        while Path(str(folder).lower()) in self._taken:
            folder = self.out / f"{run_name}-{count}"
            count += 1
        self._taken.add(Path(str(folder).lower()))
        identity = (
            made_from if isinstance(made_from, str) else fingerprint_of(made_from)
        )
        if (folder / RUN_FILE).exists() and open_run(folder).data.get(
            "identity"
        ) != identity:
            raise RunError(
                f"'{folder}' already has another run: choose another --name or --out,"
                " or remove it first."
            )
        return RunFolder(folder, identity)


def _slug(text: str) -> str:
    cleaned = "".join(
        char if char.isalnum() or char in "._+-" else "-" for char in text
    )
    # Bytes count: a name of 100 characters may be too long for a folder.
    return cleaned.strip(".-").encode()[:100].decode(errors="ignore").strip(".-")


class RunFolder(NamedTuple):
    """The folder of an imported run, and its identity."""

    folder: Path
    identity: str

    def write(
        self,
        records: Iterable[SampleRecord],
        finished: Callable[[], Mapping[str, Any]],
        draws: int | None = None,
    ) -> Run:
        """Write the run and open it.

        finished: returns the arguments of `run_record`, called after the last record. draws: of
        each sample, if the records are not in the order of samples and draws.
        """
        with RunWriter(self.folder) as writer:
            for position, record in enumerate(records):
                writer.add(
                    position if draws is None else record.index * draws + record.draw,
                    record,
                )
            writer.finish(run_record(self, **finished()))
        return open_run(self.folder)


def task_record(
    task_result: TaskResult,
    source: str,
    *,
    description: str,
    definition: Mapping[str, Any],
    content_hash: str,
    scorers: Sequence[tuple[str, str, Mapping[str, Any]]],
    metrics: Sequence[MetricSpec],
    slice_keys: Sequence[str] = (),
    metadata: Mapping[str, Any] | None = None,
    draws: int = 1,
) -> dict[str, Any]:
    """A task's record in `run.json`.

    source: the system that it comes from. scorers: names, kinds and options.
    """
    return {
        **task_result.as_dict(),
        "description": description,
        "metadata": {"imported": source, **(metadata or {})},
        "definition": {"dialect": source, **definition},
        "content_hash": content_hash,
        "draws": draws,
        "slice_keys": list(slice_keys),
        **rules_record([Scorer(*scorer, not_scored) for scorer in scorers], metrics),
    }


def not_scored(*_: Any) -> Any:
    """Placeholder for the function of a scorer whose scores are imported."""
    raise RuntimeError("what was imported is not scored again")


def run_record(
    run_folder: RunFolder,
    *,
    started: str,
    model: str,
    code: Mapping[str, Any],
    tasks: Sequence[Mapping[str, Any]],
    configuration: Mapping[str, Any],
    seconds: float = 0.0,
    facts: Mapping[str, Any] | None = None,
    environment: Mapping[str, Any] | None = None,
    **sections: Any,
) -> dict[str, Any]:
    """A run's `run.json`.

    code: what identifies the model. facts: what else is known of the model. sections: further
    top-level keys.
    """
    name = run_folder.folder.name
    return {
        "schema": SCHEMA_VERSION,
        "evalwright": __version__,
        "id": name,
        "identity": run_folder.identity,
        "started": started,
        "seconds": seconds,
        "model": {
            "name": model,
            "abilities": [],
            "fingerprint": fingerprint_of(code),
            **(facts or {}),
        },
        "roles": {},
        "configuration": {
            "tasks": [task["name"] for task in tasks],
            "limit": None,
            "seed": None,
            "name": name,
            **configuration,
        },
        "environment": dict(environment or UNKNOWN),
        "usage": Counts().as_dict(),
        "tasks": list(tasks),
        **sections,
    }
