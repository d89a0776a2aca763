"""A store as lines of JSON: for export, import, and answers that a server did not take.

The first line is `{"evalwright_store": 1}`; each other line is a response (`key`, `model`,
`request`, `response`, `created`), a request to which every reply was empty (`empty`,
`failure`), a row of the ledger (`ledger`), or the name of a model (`name`, `model`).
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import IO, Any

from evalwright.core.errors import ConfigurationError, Failure, StoreError
from evalwright.core.private import open_private, private_folder
from evalwright.core.responses import Response
from evalwright.core.secrets import mask
from evalwright.engine.database import LEDGER, Database
from evalwright.engine.store_rows import (
    MAX_CONTENT_BYTES,
    Group,
    Row,
    checksum_of,
    dump,
    is_readable,
    pack,
    storable_text,
    unpack,
)

FORMAT = 1
UNWRITTEN_FOLDER = "unwritten"
"""The folder in a home folder with paid answers that the store's server did not take."""
_MAX_LINE_BYTES = 2 * MAX_CONTENT_BYTES
_ROWS_AT_ONCE = 100
_encode = json.JSONEncoder(separators=(",", ":")).encode


@dataclass(slots=True)
class TransferCounts:
    """Counts of an export or a merge: responses, new ones, and damaged rows, which are left out."""

    responses: int = 0
    new: int = 0
    damaged: int = 0


def write_lines(
    file: IO[str],
    pages: Iterable[Sequence[Row]],
    empties: Sequence[tuple[bytes, str, int]],
    ledger: Sequence[dict[str, Any]],
    names: Sequence[tuple[str, str]],
) -> TransferCounts:
    """Write a store's rows as lines; damaged rows are counted and left out."""
    counts = TransferCounts()
    file.write(_encode({"evalwright_store": FORMAT}) + "\n")
    for page in pages:
        for stored_row in page:
            if not is_readable(stored_row):
                counts.damaged += 1
                continue
            key, model, request, response, created, _ = stored_row
            line = {
                "key": key.hex(),
                "model": model,
                "request": json.loads(unpack(request)),
                "response": json.loads(unpack(response)),
                "created": created,
            }
            file.write(_encode(line) + "\n")
            counts.responses += 1
    for key, failure, _ in empties:
        file.write(_encode({"empty": key.hex(), "failure": json.loads(failure)}) + "\n")
    for row in ledger:
        file.write(_encode({"ledger": row}) + "\n")
    for model, name in names:
        file.write(_encode({"name": name, "model": model}) + "\n")
    return counts


def read_lines(file: IO[bytes], name: str, database: Database) -> TransferCounts:
    """Add the lines of an export to a database.

    Raises:
        ConfigurationError: a line is invalid; the lines before it stay.
    """
    counts = TransferCounts()
    rows = []
    empties: list[tuple[bytes, str, int]] = []
    ledger: list[dict[str, Any]] = []
    names: list[tuple[str, str]] = []
    for number, line in enumerate(_lines(file), 1):
        try:
            fields = json.loads(line)
            if number == 1:
                if fields["evalwright_store"] != FORMAT:
                    raise ConfigurationError(
                        f"{name} was exported by a newer version of evalwright (its"
                        f" format is {fields['evalwright_store']}, this version knows"
                        f" {FORMAT}): upgrade evalwright."
                    )
            elif "name" in fields:
                names.append(
                    (
                        storable_text(mask(str(fields["model"]))),
                        storable_text(mask(str(fields["name"]))),
                    )
                )
            elif "ledger" in fields:
                ledger.append(_parse_ledger_row(fields["ledger"]))
            elif "empty" in fields:
                failure = storable_text(
                    mask(dump(Failure(**fields["failure"]).as_dict()))
                )
                key = bytes.fromhex(fields["empty"])
                empties.append((key, failure, checksum_of(key, failure)))
            else:
                rows.append(_parse_row(fields))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
            if number == 1:
                raise ConfigurationError(_not_exported_message(name)) from None
            counts.new += database.add(rows)
            raise ConfigurationError(
                f"Line {number} of {name} is not a line of an exported store"
                f" ('evalwright store export' writes them). {counts.new:,} new responses"
                " of the lines before it were imported."
            ) from None
        if len(rows) >= _ROWS_AT_ONCE:
            counts.responses = counts.responses + len(rows)
            counts.new = counts.new + database.add(rows)
            rows.clear()
    counts.responses = counts.responses + len(rows)
    counts.new = counts.new + database.add(rows)
    database.add_empties(empties)
    database.add_ledger(ledger)
    database.add_names(names)
    return counts


def merge(source: Database, target: Database) -> TransferCounts:
    """Add everything in one database to another; where both have a row, the target's stays.

    Merging again changes nothing.
    """
    counts = TransferCounts()
    for page in source.pages():
        readable = [row for row in page if is_readable(row)]
        counts.damaged += len(page) - len(readable)
        counts.responses += len(readable)
        counts.new += target.add(readable)
    target.add_empties(source.empties())
    target.add_ledger(source.ledger())
    target.add_names(source.names())
    return counts


def save_unwritten(
    home: Path, command: str, group: Group, ledger: Sequence[dict[str, Any]]
) -> str:
    """Save answers, failures and a ledger in a file of the home folder.

    Returns:
        A sentence that says so; "" if there was nothing to save.
    """
    folder = home / UNWRITTEN_FOLDER
    if not (group.puts or group.empty or ledger):
        return ""
    path = (
        folder / f"{command}-{sum(1 for _ in folder.glob(f'{command}-*.jsonl'))}.jsonl"
    )
    temporary = path.with_suffix(".partial")
    try:
        private_folder(folder)
        with open_private(temporary, "w", encoding="utf-8") as file:
            write_lines(file, [group.puts], group.empty, ledger, group.names)
        temporary.replace(path)
    except OSError as error:
        with suppress(OSError):
            temporary.unlink()
        return (
            f"What was received meanwhile could not be kept in {folder} either:"
            f" {error.strerror or error}."
        )
    return (
        f"Responses that were received meanwhile are kept in {folder}, and the next run"
        " with this --home stores them."
    )


def restore_unwritten(home: Path, database: Database) -> str:
    """Store what `save_unwritten` saved; return a sentence about it, "" if there was nothing."""
    new = 0
    folder = home / UNWRITTEN_FOLDER
    for path in sorted(folder.glob("*.jsonl")):
        with suppress(
            FileNotFoundError
        ):  # another process was faster, and has removed the file
            with path.open("rb") as file:
                new += read_lines(file, str(path), database).new
            path.unlink()
    with suppress(OSError):
        folder.rmdir()
    return (
        f"{new:,} responses that an earlier run could not store are stored now."
        if new
        else ""
    )


def _lines(file: IO[bytes]) -> Iterator[bytes]:
    while line := file.readline(_MAX_LINE_BYTES):
        yield line


def _not_exported_message(name: str) -> str:
    return (
        f"{name} is not an exported store: its first line is not"
        f" {_encode({'evalwright_store': FORMAT})}."
    )


def _parse_row(fields: dict[str, Any]) -> Row:
    key = bytes.fromhex(fields["key"])
    model = storable_text(mask(str(fields["model"])))
    response = Response.from_dict(fields["response"]).without_secrets()
    request = pack(mask(dump(dict(fields["request"]))).encode("utf-8", "surrogatepass"))
    packed = pack(dump(response.as_dict()).encode("utf-8", "surrogatepass"))
    row = (
        key,
        model,
        request,
        packed,
        float(fields["created"]),
        checksum_of(key, model, request, packed),
    )
    if not is_readable(row):
        raise ValueError
    return row


def _parse_ledger_row(fields: dict[str, Any]) -> dict[str, Any]:
    texts = {name: storable_text(mask(str(fields[name]))) for name in LEDGER[:3]}
    counts = {name: int(fields[name]) for name in LEDGER[3:7]}
    dollars = fields["dollars"]
    times = {name: float(fields[name]) for name in LEDGER[8:]}
    if (
        not all(map(isfinite, (*times.values(), dollars or 0.0)))
        or max(map(abs, counts.values())) > 1 << 53
    ):
        raise ValueError
    return {
        **texts,
        **counts,
        "dollars": None if dollars is None else float(dollars),
        **times,
    }


def unreadable(error: Exception, name: str) -> StoreError:
    """Make the StoreError for a file that cannot be read or written."""
    return StoreError(
        f"{name} cannot be used: {getattr(error, 'strerror', None) or error}."
    )
