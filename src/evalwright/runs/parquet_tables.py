"""A run as two Parquet files, one of samples and one of scores, and back.

The samples' file holds `run.json` in its metadata; the scores are a long table. What people look
for has columns of its own; one more column holds each sample's record as JSON, from which an import
restores it.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from itertools import islice
from pathlib import Path
from typing import Any

from evalwright.bounded import from_json
from evalwright.core.errors import MissingExtra, RunError, closest
from evalwright.core.private import check_ordinary
from evalwright.runs.impossible import impossible_figure
from evalwright.runs.older_records import upgrade_row, upgrade_run
from evalwright.runs.reader import Run, open_run
from evalwright.runs.records import record_from, record_row
from evalwright.runs.writer import SCHEMA_VERSION, RunWriter, to_json
from evalwright.tasks.safe_files import failing_as, replacing

_KEY = b"evalwright.run"
_RECORD_COLUMN = "record"
_MAX_RUN_BYTES = 1 << 26
_MAX_RECORD_BYTES = 1 << 26
MAX_RECORDS_BYTES = 1 << 34
"""The most bytes that a file's records may unpack to."""
_ROWS = 256
"""Number of records written and read at a time."""
_SAMPLES = {
    "task": "string", "id": "string", "index": "int64", "draw": "int32",
    "outcome": "string", "input": "string", "target": "string", "answer": "string",
    "reasoning": "string", "failure": "string", "input_tokens": "int64",
    "output_tokens": "int64", "latency": "float64", "metadata": "string",
    _RECORD_COLUMN: "string",
}  # fmt: skip
_SCORES = {
    "task": "string", "id": "string", "draw": "int32", "scorer": "string",
    "value": "float64", "label": "string", "explanation": "string", "unsure": "string",
    "parts": "string", "failure": "string",
}  # fmt: skip


def write_tables(run: Run, folder: Path) -> list[Path]:
    """Write a run's samples and scores into a folder, and return the files.

    Raises RunError, and MissingExtra without pyarrow.
    """
    pa, pq = _arrow("Writing Parquet")
    facts = to_json(run.data).encode("utf-8", "replace")
    files = [folder / f"{run.name}.{table}.parquet" for table in ("samples", "scores")]
    with failing_as(RunError, f"'{folder}' cannot be written"):
        for file, columns, rows in zip(
            files, (_SAMPLES, _SCORES), (_sample_rows, _score_rows), strict=True
        ):
            schema = pa.schema(
                [
                    (name, getattr(pa, arrow_type)())
                    for name, arrow_type in columns.items()
                ]
            )
            facts_too = schema.with_metadata({_KEY: facts})
            with (
                replacing(file) as new,
                pq.ParquetWriter(new, facts_too, compression="zstd") as writer,
            ):
                table_rows = rows(run)
                size = _ROWS
                while size == _ROWS:
                    size = len(batch := list(islice(table_rows, _ROWS)))
                    writer.write_table(pa.Table.from_pylist(batch, schema=schema))
    return files


def restore_run(path: Path, choose_folder: Callable[[Mapping[str, Any]], Path]) -> Run:
    """Write the run in a file of samples as a run folder, and open it.

    Args:
        path: the file of samples.
        choose_folder: gives the run's folder for what its `run.json` says.

    Raises:
        RunError: the file cannot be read, or holds no run.
        MissingExtra: pyarrow is not installed.
    """
    pa, pq = _arrow("Reading Parquet")
    if not path.exists():
        raise _nothing_at(path)
    try:
        with pq.ParquetFile(check_ordinary(path)) as file:
            facts = (file.schema_arrow.metadata or {}).get(_KEY)
            if (
                facts is None
                or _RECORD_COLUMN not in file.schema_arrow.names
                or len(facts) > _MAX_RUN_BYTES
            ):
                raise RunError(
                    f"{path} was not written by `evalwright export parquet`: it lacks"
                    f" the run or the column '{_RECORD_COLUMN}'."
                )
            if _unpacked(file) > MAX_RECORDS_BYTES:
                raise RunError(
                    f"{path} unpacks to more than the {MAX_RECORDS_BYTES:,} bytes allowed."
                )
            run_record = _parsed(facts, f"{path}, the run")
            if (
                not isinstance(run_record, dict)
                or run_record.get("schema") not in range(1, SCHEMA_VERSION + 1)
                or not isinstance(run_record.get("id"), str)
            ):
                raise RunError(f"{path} has a run that this version does not read.")
            folder = choose_folder(run_record)
            with RunWriter(folder) as writer:
                for position, record in enumerate(_records(file, path)):
                    try:
                        writer.add(position, record_from(upgrade_row(dict(record))))
                    except (KeyError, TypeError, ValueError, AttributeError) as error:
                        problem = (
                            f"is not a record of a sample ({type(error).__name__}:"
                            f" {error})"
                        )
                        raise RunError(
                            f"{path}, row {position + 1} {problem}."
                        ) from error
                _check(Run(path, upgrade_run(dict(run_record))), path)
                writer.finish({**run_record, "id": folder.name})
    except (OSError, pa.ArrowException) as error:
        raise RunError(f"{path} cannot be read as Parquet: {error}.") from error
    return open_run(folder)


def _check(run: Run, path: Path) -> None:
    """Raise RunError if parts of a run have the wrong type, before anything is written."""
    try:
        _ = (
            run.label,
            run.tasks,
            run.groups,
            run.n_missing,
            run.cost,
            run.data["started"],
        )
    except (AttributeError, LookupError, TypeError, ValueError) as error:
        problem = f"{type(error).__name__}: {error}"
        raise RunError(
            f"{path} has a run whose parts cannot be read ({problem})."
        ) from error
    if fault := impossible_figure(run.data):
        raise RunError(f"{path} has a run with a figure that cannot be: {fault}.")


def _nothing_at(path: Path) -> RunError:
    """The error for a file that does not exist, with the name of the most similar one."""
    try:
        sibling_names = [sibling.name for sibling in path.parent.iterdir()]
    except OSError:
        sibling_names = []
    similar_names = closest(path.name, sibling_names)
    meant = (
        f" Did you mean '{path.parent / similar_names[0]}'?" if similar_names else ""
    )
    return RunError(
        f"'{path}' does not exist.{meant} Name a file that `evalwright export parquet`"
        " wrote."
    )


def _parsed(text: bytes | str, where: str) -> Any:
    try:
        return from_json(text)
    except ValueError as error:
        raise RunError(
            f"{where} is not valid JSON: {error}. Correct or remove it; nothing was"
            " imported."
        ) from error


def _unpacked(file: Any) -> int:
    """The unpacked size of the column of records, according to the file."""
    column_index = file.schema_arrow.names.index(_RECORD_COLUMN)
    groups = range(file.metadata.num_row_groups)
    return sum(
        int(file.metadata.row_group(group).column(column_index).total_uncompressed_size)
        for group in groups
    )


def _records(file: Any, path: Path) -> Iterator[Mapping[str, Any]]:
    row_number = 0
    for batch in file.iter_batches(_ROWS, columns=[_RECORD_COLUMN]):
        for text in batch.column(0).to_pylist():
            row_number += 1
            if not isinstance(text, str) or len(text) > _MAX_RECORD_BYTES:
                raise RunError(
                    f"{path}, row {row_number} has no record, or one that is too long."
                )
            yield _parsed(text, f"{path}, row {row_number}")


def _sample_rows(run: Run) -> Iterator[dict[str, Any]]:
    for record in run.samples():
        answer = record.answer
        sample = record.sample
        yield {
            "task": record.task,
            "id": sample.id,
            "index": record.index,
            "draw": record.draw,
            "outcome": record.outcome,
            "input": _valid_utf8(sample.input),
            "target": _valid_utf8(sample.target),
            "answer": _valid_utf8(answer.text) if answer else None,
            "reasoning": _valid_utf8(answer.reasoning) if answer else None,
            "failure": (
                _valid_utf8(f"{record.failure.kind}: {record.failure.message}")
                if record.failure
                else None
            ),
            "input_tokens": answer.usage.input_tokens if answer else None,
            "output_tokens": answer.usage.output_tokens if answer else None,
            "latency": sum(response.latency for response in answer.responses)
            if answer
            else None,
            "metadata": _valid_utf8(to_json(dict(sample.metadata))),
            _RECORD_COLUMN: _escaped(record_row(record)),
        }


def _score_rows(run: Run) -> Iterator[dict[str, Any]]:
    for record in run.samples():
        base = {"task": record.task, "id": record.sample.id, "draw": record.draw}
        for name, score in record.scores.items():
            parts = to_json(dict(score.parts)) if score.parts else None
            texts = {
                "label": score.label or None,
                "explanation": _valid_utf8(score.explanation) or None,
            }
            texts["unsure"] = _valid_utf8(score.unsure) or None
            yield {
                **base,
                "scorer": name,
                "value": score.value,
                **texts,
                "parts": parts,
            }
        for name, failure in record.score_failures.items():
            yield {
                **base,
                "scorer": name,
                "failure": _valid_utf8(f"{failure.kind}: {failure.message}"),
            }


def _valid_utf8(text: str) -> str:
    """Replace half surrogate pairs, which UTF-8 cannot encode."""
    return text.encode("utf-8", "replace").decode()


def _escaped(row: Mapping[str, Any]) -> str:
    """Write JSON in ASCII, so that half surrogate pairs survive."""
    return json.dumps(json.loads(to_json(row)))


def _arrow(purpose: str) -> tuple[Any, Any]:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtra(purpose, "parquet", "pyarrow") from error
    return pa, pq
