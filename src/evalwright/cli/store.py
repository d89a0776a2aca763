"""`evalwright store`: what is stored, whether it is intact, and how it is moved."""

from __future__ import annotations

import gzip
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, cast

import click

from evalwright.analysis.words import counted
from evalwright.cli.groups import LazyGroup
from evalwright.cli.options import AS_JSON, HOME, Finite, PathOrAddress, flag, option
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError, EvalwrightError, UnknownName
from evalwright.core.private import home_folder, open_private
from evalwright.runs.buckets import is_bucket_address

if TYPE_CHECKING:
    from evalwright.engine.database import Database
    from evalwright.engine.exchange import TransferCounts
    from evalwright.runs.buckets import Bucket, BucketAddress

MAX_EXPORT_BYTES = 1 << 40
"""Largest export that is downloaded from a bucket."""

_BATCHES = {"batches": ("batches:batches", "List batch jobs at providers; forget one.")}


@click.group(cls=LazyGroup, table=_BATCHES)
def store() -> None:
    """Show, check, prune, export, import and merge stored responses.

    The store is the file in --home, or the PostgreSQL database that EVALWRIGHT_STORE names.
    """


@store.command()
@HOME
@AS_JSON
def info(home: str | None, as_json: bool) -> None:
    """Show where the store is, what it holds by model, and what was sent and paid."""
    from evalwright.engine.claims import process_of
    from evalwright.engine.sqlite import SqliteDatabase, network_warning
    from evalwright.sandboxes.kept_snapshots import kept_snapshots

    snapshots = kept_snapshots(home_folder(home))
    snapshot_bytes = sum(snapshot.n_bytes for snapshot in snapshots)
    with _opened(home) as database:
        models = database.summary()
        owners = [id for (id,) in database.rows("SELECT id FROM owners ORDER BY id")]
        living = database.living(owners)
        ledger = database.ledger()
        facts = {
            "store": database.place,
            "kind": database.kind,
            "bytes": database.size(),
            "responses": sum(row[2] for row in models),
            "models": [
                dict(
                    zip(
                        ("model", "fingerprint", "responses", "bytes", "first", "last"),
                        (row[1], row[0], *row[2:]),
                        strict=True,
                    )
                )
                for row in models
            ],
            "empty": len(database.empties()),
            "claims": int(database.rows("SELECT count(*) FROM claims")[0][0]),
            "in_use_by": [process_of(owner) for owner in sorted(living)],
            "sendings": sum(row["sendings"] for row in ledger),
            "dollars": sum(row["dollars"] or 0.0 for row in ledger),
            "warning": (
                network_warning(database.path)
                if isinstance(database, SqliteDatabase)
                else ""
            ),
        }
        if snapshots:
            facts["snapshots"] = {"files": len(snapshots), "bytes": snapshot_bytes}
        if as_json:
            print_json(facts)
            return
        echo(f"{facts['store']} ({facts['kind']}, {_format_size(facts['bytes'])})")
        if facts["warning"]:
            echo(f"Warning: {facts['warning']}")
        echo(
            f"{counted(facts['responses'], 'response')};"
            f" {counted(facts['sendings'], 'sending')}, ${facts['dollars']:,.4f}"
        )
        for model, name, n, size, first, last in models:
            echo(
                f"  {n:>9,}  {_format_size(size):>9}  {_format_day(first)} to {_format_day(last)} "
                f" {_model_label(model, name)}"
            )
        if snapshots:
            echo(
                f"{counted(len(snapshots), 'snapshot')} of sandboxes,"
                f" {_format_size(snapshot_bytes)}"
            )
        if users := ", ".join(facts["in_use_by"]):
            echo(
                f"In use by process {users}; {facts['claims']:,} requests are being"
                " sent."
            )


@store.command()
@HOME
@flag(
    "--delete",
    "Delete damaged responses; they are requested again when they are needed.",
)
@AS_JSON
def verify(home: str | None, delete: bool, as_json: bool) -> int:
    """Read every response and check its checksum. Exit code 1 where one is damaged."""
    from evalwright.engine.store_rows import is_readable

    with _opened(home) as database:
        structure = database.check()
        read = 0
        damaged = []
        for page in database.pages():
            read += len(page)
            damaged += [row[0] for row in page if not is_readable(row)]
        deleted = database.delete(damaged) if delete else 0
    if as_json:
        keys = [key.hex() for key in damaged]
        print_json(
            {
                "responses": read,
                "damaged": keys,
                "deleted": deleted,
                "structure": structure,
            }
        )
    else:
        for fault in structure:
            echo(f"The file's structure: {fault}")
        deletions = f", {deleted:,} deleted" if delete else ""
        echo(f"{counted(read, 'response')} read, {len(damaged):,} damaged{deletions}.")
        if damaged and not delete:
            echo(
                "Damaged responses are never used. 'evalwright store verify --delete'"
                " removes them."
            )
    return int(bool(damaged or structure))


@store.command()
@HOME
@option(
    "--model",
    "TEXT",
    "Only responses of the model with this name, or whose fingerprint begins so, as"
    " 'store info' shows them.",
)
@option(
    "--older-than",
    "DAYS",
    "Only responses older than so many days.",
    type=Finite(min=0),
)
@flag("--yes", "Delete them. Without this flag, only say what would be deleted.")
def prune(
    home: str | None, model: str | None, older_than: float | None, yes: bool
) -> None:
    """Delete responses by model or age. What was sent and paid stays in the ledger.

    Results of tools belong to the model that called them. By age alone, snapshots of sandboxes are
    deleted, too.
    """
    if model is None and older_than is None:
        raise click.UsageError(
            "Say which responses to delete: --model, --older-than, or both."
        )
    with _opened(home) as database:
        before = (database.now() if older_than else time.time() + 1e9) - 86400 * (
            older_than or 0.0
        )
        n_found = 0
        stored = database.summary()
        names_by_model = [*database.names(), *(row[:2] for row in stored)]

        def is_meant(key: str, name: str) -> bool:
            return model is None or model == name or key.startswith(model or " ")

        if (
            not any(is_meant(*key_and_name) for key_and_name in names_by_model)
            and model is not None
        ):
            hint = "'evalwright store info' shows those with responses."
            raise UnknownName(
                "model", model, [name for _, name in names_by_model], hint
            )
        for row in stored:
            if not is_meant(*row[:2]):
                continue
            row_key = (row[0], before)
            n = int(
                database.rows(
                    "SELECT count(*) FROM responses WHERE model=? AND created<?",
                    row_key,
                )[0][0]
            )
            if n and yes:
                database.change(
                    "DELETE FROM responses WHERE model=? AND created<?", [row_key]
                )
            if n:
                echo(f"  {n:>9,}  {_model_label(row[0], row[1])}")
            n_found += n
        if yes and n_found:
            # other processes use it: the space stays in the file and is reused
            with suppress(Exception):
                database.shrink()
    if model is None:
        _prune_snapshots(home_folder(home), before, yes=yes)
    if not n_found:
        echo(
            "No stored response is that old."
            if older_than
            else "Nothing is stored of it."
        )
    elif yes:
        echo(f"{counted(n_found, 'response')} deleted.")
    else:
        consequence = "would be deleted, and requested again when needed"
        echo(
            f"{counted(n_found, 'response')} {consequence}. To delete them, add --yes."
        )


def _prune_snapshots(home: Path, before: float, *, yes: bool) -> None:
    """Delete snapshots of sandboxes that are older; without `yes`, only say how many there are."""
    from evalwright.sandboxes.kept_snapshots import kept_snapshots

    old = [snapshot for snapshot in kept_snapshots(home) if snapshot.modified < before]
    if not old:
        return
    size = _format_size(sum(snapshot.n_bytes for snapshot in old))
    consequence = "deleted" if yes else "would be deleted (add --yes)"
    echo(f"{counted(len(old), 'snapshot')} of sandboxes {consequence}, {size}.")
    if yes:
        for snapshot in old:
            snapshot.delete()


@store.command()
@click.argument("file", type=PathOrAddress())
@HOME
def export(file: str, home: str | None) -> int:
    """Write all responses to FILE as lines of JSON; compressed where its name ends with .gz.

    FILE may be an address in a bucket: s3://BUCKET/NAME.jsonl.gz
    """
    if not is_bucket_address(file):
        moved = _export(Path(file), home)
    else:
        from evalwright.engine.exchange import unreadable
        from evalwright.runs.buckets import ObjectChanged

        address, bucket = _open_object(file)
        if bucket.exists(address.key):
            raise _taken(str(address))
        with _scratch_file(home, address.name) as scratch:
            moved = _export(scratch, home)
            try:
                bucket.upload(address.key, scratch, if_absent=True)
            except ObjectChanged:
                raise _taken(str(address)) from None
            except OSError as error:
                raise unreadable(error, str(scratch)) from error
    echo(
        f"{counted(moved.responses, 'response')} written to {file}.{_damage_note(moved)}"
    )
    return int(bool(moved.damaged))


def _taken(place: str) -> ConfigurationError:
    return ConfigurationError(
        f"{place} exists already: choose another name, or remove it."
    )


def _export(file: Path, home: str | None) -> TransferCounts:
    from evalwright.engine.exchange import unreadable, write_lines

    if file.is_dir():
        raise click.UsageError(f"'{file}' is a folder: name a file.")
    if file.exists():
        raise _taken(str(file))
    partial = file.with_name(f"{file.name}.partial")
    with _opened(home) as database:
        try:
            with open_private(partial) as raw, _text_writer(raw, file) as lines:
                tables = (
                    database.pages(),
                    database.empties(),
                    database.ledger(),
                    database.names(),
                )
                moved = write_lines(lines, *tables)
            partial.replace(file)
        except OSError as error:
            raise unreadable(error, str(file)) from error
        finally:
            partial.unlink(missing_ok=True)
    return moved


@store.command("import")
@click.argument("files", nargs=-1, required=True, type=PathOrAddress())
@HOME
def import_(files: tuple[str, ...], home: str | None) -> None:
    """Add the responses of exported FILES. What is stored already stays as it is.

    FILES may be addresses in buckets: s3://BUCKET/NAME.jsonl.gz
    """
    with _opened(home, new=True) as database:
        for file in files:
            if is_bucket_address(file):
                moved = _import_object(file, database, home)
            else:
                moved = _import(Path(file), file, database)
            echo(
                f"{file}: {counted(moved.responses, 'response')}, {moved.new:,} of them"
                " new."
            )


def _import(file: Path, name: str, database: Database) -> TransferCounts:
    from evalwright.engine.exchange import read_lines, unreadable

    if file.is_file() and not file.stat().st_size:
        raise ConfigurationError(f"{name} is not an exported store: it is empty.")
    try:
        with gzip.open(file) if file.suffix == ".gz" else file.open("rb") as lines:
            return read_lines(cast("IO[bytes]", lines), name, database)
    except (OSError, EOFError) as error:
        raise unreadable(error, name) from error


def _import_object(text: str, database: Database, home: str | None) -> TransferCounts:
    from evalwright.engine.exchange import unreadable

    address, bucket = _open_object(text)
    with _scratch_file(home, address.name) as scratch:
        try:
            bucket.download(address.key, scratch, MAX_EXPORT_BYTES)
        except OSError as error:
            raise unreadable(error, str(scratch)) from error
        return _import(scratch, str(address), database)


def _open_object(text: str) -> tuple[BucketAddress, Bucket]:
    from evalwright.runs.buckets import Bucket, parse_bucket_address

    address = parse_bucket_address(text)
    if not address.key:
        raise ConfigurationError(
            f"{address} names no file: write s3://BUCKET/NAME.jsonl.gz."
        )
    return address, Bucket(address.bucket)


@contextmanager
def _scratch_file(home: str | None, name: str) -> Iterator[Path]:
    """A place for a file that is on its way to or from a bucket; removed at the end."""
    from evalwright.engine.exchange import unreadable
    from evalwright.runs.bucket_runs import temporary_folder

    folder = home_folder(home)
    try:
        with temporary_folder(folder, ".transfer-") as temporary:
            yield temporary / (
                "export.jsonl.gz" if name.endswith(".gz") else "export.jsonl"
            )
    except OSError as error:
        raise unreadable(error, str(folder)) from error


@store.command()
@click.argument("places", nargs=-1, required=True)
@HOME
def merge(places: tuple[str, ...], home: str | None) -> int:
    """Add the responses of other stores: folders (--home of other runs), store files, or addresses
    of PostgreSQL databases.

    What is stored already stays as it is, and a merge may be repeated.
    """
    from evalwright.engine.exchange import merge as merge_stores
    from evalwright.engine.opening import store_name

    damaged = 0
    with _opened(home, new=True) as target:
        for store_place in places:
            with _database(store_place, new=False) as source:
                moved = merge_stores(source, target)
            damaged += moved.damaged
            summary = (
                f"{counted(moved.responses, 'response')}, {moved.new:,} of them"
                f" new.{_damage_note(moved)}"
            )
            echo(f"{store_name(store_place)}: {summary}")
    return int(bool(damaged))


@contextmanager
def _opened(home: str | None, *, new: bool = False) -> Iterator[Database]:
    """Open the command's store; `new` says whether it may be created."""
    from evalwright.engine.opening import store_location

    with _database(store_location(home_folder(home)), new=new) as database:
        yield database


@contextmanager
def _database(location: str | Path, *, new: bool) -> Iterator[Database]:
    from evalwright.engine.opening import open_database

    database = open_database(location, new=new)
    try:
        yield database
    except (EvalwrightError, click.ClickException):
        raise
    except Exception as error:
        raise database.error(error) from error
    finally:
        database.close()


def _text_writer(raw: IO[bytes], file: Path) -> Any:
    import io

    binary = (
        gzip.GzipFile(fileobj=raw, mode="wb", compresslevel=6)
        if file.suffix == ".gz"
        else raw
    )
    return io.TextIOWrapper(binary, encoding="utf-8", newline="\n")


def _damage_note(moved: TransferCounts) -> str:
    return f" {moved.damaged:,} damaged ones were left out." if moved.damaged else ""


def _format_size(n: int) -> str:
    for unit in ("B", "KB", "MB"):
        if n < 1000:
            return f"{n:.0f} {unit}" if unit == "B" else f"{n:.1f} {unit}"
        n = n / 1000  # type: ignore[assignment]
    return f"{n:,.1f} GB"


def _format_day(seconds: float) -> str:
    return datetime.fromtimestamp(seconds, UTC).date().isoformat()


def _model_label(model: str, name: str) -> str:
    return f"{name or 'unnamed model'} ({model[:12]})"
