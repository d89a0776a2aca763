"""Helpers for importers and exporters: foreign files, run folders, run records."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import UTC, datetime
from io import BufferedReader
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import (
    AliasChoices,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
)

from evalwright.extend import (
    SCORINGS,
    ImportedTask,
    MetricSpec,
    RunError,
    TaskResult,
    UnknownName,
    closest_names,
    printable,
    regular_file,
    reraise_as,
)

# -- files -----------------------------------------------------------------------------


@contextmanager
def open_recorded(path: Path) -> Iterator[BufferedReader]:
    """Open a foreign file. Raises RunError if it cannot be read."""
    with (
        reraise_as(RunError, f"{path} cannot be read"),
        regular_file(path).open("rb") as file,
    ):
        yield file


def writing(path: Path) -> AbstractContextManager[None]:
    """Raise RunError if the block cannot write to the path."""
    return reraise_as(RunError, f"'{path}' cannot be written")


def read_whole(path: Path, max_bytes: int, hint: str = "") -> bytes:
    """Read a file of limited size. hint: what to do with a larger one. Raises RunError."""
    with open_recorded(path) as file:
        content = file.read(max_bytes + 1)
    if len(content) > max_bytes:
        raise RunError(
            f"{path} has more than the {max_bytes >> 20:,} MiB allowed{hint}."
        )
    return content


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
    similar_names = closest_names(path.name, sibling_names)
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
    task = ImportedTask(
        name=task_result.name,
        metrics=metrics,
        version=task_result.version,
        description=description,
        definition=definition,
        scorers={column: (kind, options) for column, kind, options in scorers},
        slices=slice_keys,
        metadata=metadata or {},
    )
    return task.as_dict(
        task_result, system=source, content_hash=content_hash, draws=draws
    )


def not_scored(*_: Any) -> Any:
    """Placeholder for the function of a scorer whose scores are imported."""
    raise RuntimeError("what was imported is not scored again")
