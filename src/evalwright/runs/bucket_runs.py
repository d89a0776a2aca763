"""Runs in buckets: pushed when they are finished, pulled or opened by their address.

In a bucket a run is a folder `s3://BUCKET/FOLDER/NAME/` as it is on a disk, but for two names:
the samples are `samples.HASH.jsonl`, and the index of images `images/index.HASH.jsonl`. Objects are
never changed, only added, and `run.json`, which names them, is written last. So whoever reads,
reads either the old run or the new one, whenever an upload was interrupted.

Anybody may have written what is in a bucket, so its record is checked as every record is, the
names of what is downloaded come from it and never from a listing, and each file must have the
hash that the record says.
"""

from __future__ import annotations

import hashlib
import os
import re
import secrets
import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Literal

from evalwright.bounded import from_json
from evalwright.core.errors import ConfigurationError, RunError, UnknownName
from evalwright.core.private import (
    LARGEST_DOCUMENT,
    cache_folder,
    open_private,
    private_folder,
)
from evalwright.core.text import printable
from evalwright.runs.buckets import (
    Bucket,
    BucketAddress,
    ObjectChanged,
    ObjectMissing,
    parse_bucket_address,
)
from evalwright.runs.images import (
    IMAGES_FOLDER,
    INDEX_FILE,
    MOST_INDEX_BYTES,
    MOST_RUN_BYTES,
    MOST_RUN_PICTURES,
    WITHOUT_INDEX,
    KeptImages,
)
from evalwright.runs.pictures import MOST_PICTURE_BYTES
from evalwright.runs.reader import Run, open_run
from evalwright.runs.writer import (
    RUN_FILE,
    SAMPLES_FILE,
    check_run_name,
    growing,
    is_running,
    to_json,
)
from evalwright.tasks.safe_files import failing_as, place_of, write_bytes

CACHE_FOLDER = "bucket-runs"
"""The folder of the cache with runs that were opened by their address."""
MAX_SAMPLES_BYTES = 1 << 36
MAX_LISTED_RUNS = 10_000
DOWNLOAD_THREADS = 8
"""Threads for what is many small objects: pictures, and the records of a list of runs."""
READ_ATTEMPTS = 3
"""How often a run is read again that was replaced while it was read."""
_HASH_CHARS = 16
_SHA256 = re.compile(r"[0-9a-f]{64}")
_STALE_NAMES = re.compile(
    r"samples(\.[0-9a-f]{16})?\.jsonl"
    r"|images/index(\.[0-9a-f]{16})?\.jsonl"
    r"|images/[0-9a-f]{64}\.(png|jpg)"
)
"""What a push writes beside the record, and so what the next one may delete."""

Transfer = Literal["written", "replaced", "unchanged"]


@dataclass(frozen=True, slots=True)
class PulledRun:
    """A run that was pulled. transfer: what became of the local folder."""

    folder: Path
    transfer: Transfer


@dataclass(frozen=True, slots=True)
class _BucketRecord:
    """The record of a run in a bucket: the bytes of its `run.json`, and what they say."""

    content: bytes
    etag: str
    fields: Mapping[str, Any]


# -- writing ---------------------------------------------------------------------------


def push_run(
    run: Run, destination: BucketAddress, *, replace: bool = False
) -> Transfer:
    """Upload a finished run into a folder of a bucket.

    A run of that name that is there already is replaced if it is an earlier state of this one.

    Args:
        run: the run.
        destination: the folder; the run gets a folder of its name in it.
        replace: whether to replace whatever has that name.

    Returns:
        What became of the folder in the bucket.

    Raises:
        RunError: the run is not finished or damaged, or another one has its name there.
        BucketError: the bucket cannot be written.
    """
    _check_pushable(run)
    sha256 = run.verify()
    images = _checked_images(run)
    address = destination.child(_check_name(run.name))
    bucket = Bucket(address.bucket)

    record = _bucket_form(_record_fields(run), sha256)
    stored_record = _read_record(bucket, address)
    if stored_record is not None and stored_record.content != record and not replace:
        _check_replaceable(stored_record.fields, run.data, str(address))

    stored_sizes = bucket.sizes(address.key)
    named_keys = {address.child(RUN_FILE).key}
    files = {f"samples.{sha256[:_HASH_CHARS]}.jsonl": run.samples_file, **images}
    for name, path in files.items():
        key = address.child(name).key
        named_keys.add(key)
        if stored_sizes.get(key) != path.stat().st_size:
            with failing_as(RunError, f"'{path}' cannot be uploaded"):
                bucket.upload(key, path)
    if stored_record is not None and stored_record.content == record:
        return "unchanged"

    record_key = address.child(RUN_FILE).key
    try:
        bucket.put(
            record_key,
            record,
            if_etag=stored_record.etag if stored_record else "",
            if_absent=stored_record is None,
        )
    except ObjectChanged:
        raise RunError(
            f"{address} was written by another process meanwhile, and was left as it is:"
            " look at it, then push again."
        ) from None
    for key in stored_sizes.keys() - named_keys:
        if _STALE_NAMES.fullmatch(key.removeprefix(f"{address.key}/")):
            bucket.delete(key)
    return "written" if stored_record is None else "replaced"


def _check_pushable(run: Run) -> None:
    unfinished = growing(run.folder)
    if unfinished is not None and unfinished.running:
        raise RunError(
            f"'{run.name}' is being made: push it when its process has ended."
        )
    if run.has_published_scores:
        raise RunError(
            f"'{run.name}' was published without its samples, whose hash is what tells"
            " that a run in a bucket is whole: push the run that has them."
        )
    if is_cached(run.folder):
        raise RunError(
            f"'{run.name}' is in a bucket already: pull it, then push it elsewhere."
        )


def _checked_images(run: Run) -> dict[str, Path]:
    """The files of a run's images by their names in a bucket. Raises RunError for changed ones."""
    images = KeptImages(run.folder, run.data)
    if not images.entries and images.problem in ("", WITHOUT_INDEX):
        return {}
    changed = [digest for digest in images.entries if images.read(digest) is None]
    if images.problem or changed:
        reason = images.problem or f"{len(changed):,} files are missing or were changed"
        raise RunError(
            f"The images of '{run.name}' are not those of its record: {reason}. Restore"
            f" the folder '{run.folder / IMAGES_FOLDER}'."
        )
    folder = run.folder / IMAGES_FOLDER
    names = sorted({str(entry["file"]) for entry in images.entries.values()})
    files = {f"{IMAGES_FOLDER}/{name}": folder / name for name in names}
    files[_index_name(run.data)] = folder / INDEX_FILE
    return files


def _index_name(record: Mapping[str, Any]) -> str:
    digest = str(record["images"].get("index_sha256", ""))
    return f"{IMAGES_FOLDER}/index.{digest[:_HASH_CHARS]}.jsonl"


def _record_fields(run: Run) -> dict[str, Any]:
    """The record as it is in the run's folder, without what reading adds to an older one."""
    with failing_as(RunError, f"'{run.folder / RUN_FILE}' cannot be read"):
        fields: dict[str, Any] = from_json((run.folder / RUN_FILE).read_bytes())
    return fields


def _bucket_form(fields: Mapping[str, Any], sha256: str) -> bytes:
    """The bytes of `run.json` in a bucket."""
    name = f"samples.{sha256[:_HASH_CHARS]}.jsonl"
    return _encode(fields, {"file": name, "sha256": sha256})


def _local_form(fields: Mapping[str, Any]) -> bytes:
    """The bytes of `run.json` in a local folder."""
    return _encode(fields, {"file": SAMPLES_FILE})


def _encode(fields: Mapping[str, Any], samples: Mapping[str, str]) -> bytes:
    record = {**fields, "samples": {**fields["samples"], **samples}}
    return (to_json(record, indent=2) + "\n").encode("utf-8", "backslashreplace")


def _check_replaceable(
    old: Mapping[str, Any], new: Mapping[str, Any], address: str
) -> None:
    """Raise RunError unless the new record is a later state of the same evaluation."""
    old_model = old.get("model")
    model = old_model.get("name") if isinstance(old_model, Mapping) else "?"
    described = printable(f"{old.get('id')} ({model}, started {old.get('started')})")
    if not old.get("identity") or old["identity"] != new.get("identity"):
        raise RunError(
            f"{address} holds another run, {described}: choose another folder or name, or"
            " replace it with --replace."
        )
    if str(new.get("started")) < str(old.get("started")):
        raise RunError(
            f"{address} holds a later state of this run, {described}: leave it, or"
            " replace it with --replace."
        )


# -- reading ---------------------------------------------------------------------------


def pull_run(
    address: BucketAddress, runs_folder: Path, *, replace: bool = False
) -> PulledRun:
    """Download a run into a folder of runs.

    Args:
        address: the run's folder in the bucket.
        runs_folder: the local folder of runs.
        replace: whether to replace another run of that name.

    Returns:
        Its folder, and whether it was written.

    Raises:
        UnknownName: there is no such run.
        RunError: it is damaged or not whole, or another run has its name here.
        BucketError: the bucket cannot be read.
    """
    bucket = Bucket(address.bucket)
    name = _check_name(address.name)
    target = runs_folder / name
    record = _require_record(bucket, address)
    transfer = _check_target(target, record, replace=replace)
    if transfer == "unchanged":
        return PulledRun(target, transfer)

    with (
        failing_as(RunError, f"The run folder '{target}' cannot be written"),
        temporary_folder(runs_folder, ".pull-") as temporary,
    ):
        run = _download_run(bucket, address, temporary / name)
        if transfer == "replaced" and not replace:
            # The run in the bucket may have been replaced by another one since the first look.
            _check_replaceable(open_run(target).data, run.data, f"'{target}'")
        _move_into(run.folder, target)
    return PulledRun(target, transfer)


def _check_target(target: Path, record: _BucketRecord, *, replace: bool) -> Transfer:
    """Say what pulling does to a local folder. Raises RunError where it may not be replaced."""
    unfinished = growing(target)
    if unfinished is not None and unfinished.running:
        raise RunError(f"'{target}' is being made: pull when its process has ended.")
    if target.is_symlink():
        raise RunError(f"'{target}' is a link: remove it, or pull to another --out.")
    if not (target / RUN_FILE).is_file():
        return "written"
    try:
        local = open_run(target)
        if _record_fields(local) == from_json(_local_form(record.fields)):
            local.verify()
            return "unchanged"
    except RunError as error:
        if replace:
            return "replaced"
        raise RunError(f"{error} --replace puts the pulled run in its place.") from None
    if not replace:
        _check_replaceable(local.data, record.fields, f"'{target}'")
    return "replaced"


def _move_into(source: Path, target: Path) -> None:
    """Move a run's files into a folder; files that no run wrote stay. Raises OSError."""
    private_folder(target)
    images = target / IMAGES_FOLDER
    if images.is_symlink():
        raise NotADirectoryError(f"'{images}' is a link: remove it")
    # Between the two records the folder is no run: never one with samples of another.
    (target / RUN_FILE).unlink(missing_ok=True)
    (source / SAMPLES_FILE).replace(target / SAMPLES_FILE)
    if images.is_dir():
        shutil.rmtree(images)
    if (source / IMAGES_FOLDER).is_dir():
        (source / IMAGES_FOLDER).replace(images)
    (source / RUN_FILE).replace(target / RUN_FILE)


def open_bucket_run(text: str) -> Run:
    """Open the run at an address in a bucket.

    It is downloaded into the cache, once for each content: later only its record is read again.

    Raises:
        ConfigurationError: the address cannot be one.
        UnknownName: there is no such run.
        RunError: it is damaged or not whole.
        BucketError: the bucket cannot be read.
    """
    address = parse_bucket_address(text)
    name = _check_name(address.name)
    bucket = Bucket(address.bucket)
    record = _require_record(bucket, address)
    cache = cache_folder() / CACHE_FOLDER
    cached = _cached_run(cache, name, _local_form(record.fields))
    if cached is not None:
        return cached

    with (
        failing_as(RunError, f"'{cache}' cannot be written"),
        temporary_folder(cache, ".") as temporary,
    ):
        run = _download_run(bucket, address, temporary / name)
        # It may have been replaced since its record was read: the folder is that of what came.
        local_record = (run.folder / RUN_FILE).read_bytes()
        cached = _cached_run(cache, name, local_record)
        if cached is not None:  # another process was faster
            return cached
        cached_folder = cache / _digest(local_record) / name
        private_folder(cached_folder.parent)
        shutil.rmtree(cached_folder, ignore_errors=True)
        run.folder.replace(cached_folder)
    return open_run(cached_folder)


def _cached_run(cache: Path, name: str, local_record: bytes) -> Run | None:
    """The run with this record in the cache; None where it is not there whole.

    Somebody else may have made the cache's folder, so nothing in it is believed: its record must be
    the one of the bucket, and its samples have the hash in it.
    """
    folder = cache / _digest(local_record) / name
    try:
        if (folder / RUN_FILE).read_bytes() != local_record:
            return None
        run = open_run(folder)
        run.verify()
    except (OSError, RunError):
        return None
    return run


def _digest(record: bytes) -> str:
    return hashlib.sha256(record).hexdigest()[:32]


def is_cached(folder: Path) -> bool:
    """Whether a run's folder is in the cache of runs that were opened by their address."""
    return folder.parent.parent.name == CACHE_FOLDER


def require_local(run: Run, action: str) -> None:
    """Raise RunError for a run that was opened by its address, beside which nothing is written.

    Args:
        run: the run.
        action: what writes beside it, as the beginning of the message.
    """
    if is_cached(run.folder):
        raise RunError(
            f"{action} writes beside the run, which is in a bucket: bring it here with"
            " `evalwright runs pull ADDRESS`, and name it by its name."
        )


def list_bucket_runs(
    folder: BucketAddress, damaged: dict[BucketAddress, str]
) -> list[Run]:
    """Read the records of all runs directly in a folder of a bucket, oldest first.

    Args:
        folder: the folder.
        damaged: receives the runs that cannot be read, each with the reason.

    Returns:
        The runs, without their samples.
    """
    bucket = Bucket(folder.bucket)
    names = _list_names(bucket, folder)
    runs = []
    with (
        TemporaryDirectory(prefix="evalwright-") as temporary,
        ThreadPoolExecutor(DOWNLOAD_THREADS) as pool,
    ):

        def read(name: str) -> bytes | RunError | None:
            try:
                stored_record = _read_record(bucket, folder.child(_check_name(name)))
            except (RunError, ConfigurationError) as error:
                return RunError(str(error))
            return None if stored_record is None else stored_record.content

        for name, content in zip(names, pool.map(read, names), strict=True):
            if content is None:
                continue
            try:
                if isinstance(content, RunError):
                    raise content
                runs.append(
                    _open_record(Path(temporary) / name, folder.child(name), content)
                )
            except RunError as error:
                damaged[folder.child(printable(name))] = str(error)
    return sorted(runs, key=lambda run: (str(run.data["started"]), run.id))


def _list_names(bucket: Bucket, folder: BucketAddress) -> list[str]:
    names = bucket.folders(folder.key)
    if len(names) > MAX_LISTED_RUNS:
        raise RunError(
            f"{folder} has {len(names):,} folders, and at most {MAX_LISTED_RUNS:,} are"
            " listed: name a run, or a folder in it."
        )
    return names


def _check_name(name: str) -> str:
    """Return a name that is safe as that of a folder. Raises ConfigurationError."""
    if not name or name.startswith(".") or not name.isprintable():
        raise ConfigurationError(
            f"'{printable(name)}' cannot be the name of a run: name one as"
            " s3://BUCKET/FOLDER/NAME."
        )
    return check_run_name(name)


def _require_record(bucket: Bucket, address: BucketAddress) -> _BucketRecord:
    record = _read_record(bucket, address)
    if record is not None:
        return record
    siblings = [
        str(address.parent.child(name)) for name in _list_names(bucket, address.parent)
    ]
    contained = _list_names(bucket, address)
    if contained:
        raise RunError(
            f"{address} is a folder with {printable(', '.join(contained))}, not a run:"
            " name one of them, as in"
            f" {address.child(printable(contained[0]))}."
        )
    raise UnknownName(
        "run",
        str(address),
        map(printable, siblings),
        f"`evalwright runs list --out {address.parent}` shows what is there.",
    )


def _read_record(bucket: Bucket, address: BucketAddress) -> _BucketRecord | None:
    """Read the record of a run; None where there is none. Raises RunError for what is no record."""
    stored = bucket.read(address.child(RUN_FILE).key, LARGEST_DOCUMENT)
    if stored is None:
        return None
    try:
        fields = from_json(stored.content.decode("utf-8-sig"))
    except ValueError as error:
        raise RunError(f"{address}/{RUN_FILE} is not valid JSON: {error}.") from None
    if not isinstance(fields, dict) or not isinstance(fields.get("samples"), dict):
        raise RunError(f"{address}/{RUN_FILE} is not the record of an Evalwright run.")
    return _BucketRecord(stored.content, stored.etag, fields)


def _open_record(folder: Path, address: BucketAddress, content: bytes) -> Run:
    """Write a record into a new folder and open it, checked as every record is."""
    private_folder(folder)
    write_bytes(folder / RUN_FILE, content, private=True)
    try:
        return open_run(folder)
    except RunError as error:
        raise RunError(str(error).replace(str(folder), str(address))) from None


def _download_run(bucket: Bucket, address: BucketAddress, folder: Path) -> Run:
    """Download a run into a new folder, and check each file by its hash.

    Raises:
        RunError: it is damaged or not whole.
        BucketError: the bucket cannot be read.
        OSError: the folder cannot be written.
    """
    last_content = b""
    for _ in range(READ_ATTEMPTS):
        record = _require_record(bucket, address)
        try:
            return _download_files(bucket, address, record, folder)
        except ObjectMissing:
            # Replaced while it was read: what the old record names is gone.
            if record.content == last_content:
                raise RunError(
                    f"{address} is not whole: a file that its record names is missing."
                    " Push the run again."
                ) from None
            last_content = record.content
            shutil.rmtree(folder)
    raise RunError(f"{address} is being replaced: run the same command again later.")


def _download_files(
    bucket: Bucket, address: BucketAddress, record: _BucketRecord, folder: Path
) -> Run:
    run = _open_record(folder, address, record.content)
    samples = run.data["samples"]
    if not samples.get("sha256"):
        raise RunError(
            f"{address}/{RUN_FILE} has no hash of its samples, so they cannot be"
            " checked: push the run with `evalwright runs push`."
        )
    source = address.child(str(samples["file"]))
    partial = folder / f".{SAMPLES_FILE}.download"
    sha256 = bucket.download(source.key, partial, MAX_SAMPLES_BYTES)
    if sha256 != samples["sha256"]:
        raise RunError(
            f"{source} was changed after the run: its SHA-256 is not the one in"
            f" {RUN_FILE}. Push the run again."
        )
    partial.replace(folder / SAMPLES_FILE)
    _download_images(bucket, address, run)
    write_bytes(folder / RUN_FILE, _local_form(record.fields), private=True)
    return open_run(folder)


def _download_images(bucket: Bucket, address: BucketAddress, run: Run) -> None:
    """Download the pictures that the index names; the index is the one that the record names."""
    recorded = run.data.get("images")
    if not isinstance(recorded, dict) or not recorded.get("index_sha256"):
        return
    if not _SHA256.fullmatch(str(recorded["index_sha256"])):
        raise RunError(
            f"{address} is damaged: the hash of its index of images is none."
        )
    index = bucket.read(
        address.child(_index_name(run.data)).key, MOST_INDEX_BYTES
    ) or bucket.read(
        address.child(f"{IMAGES_FOLDER}/{INDEX_FILE}").key, MOST_INDEX_BYTES
    )
    if index is None:
        return  # a copy without its pictures; who looks at a sample is told
    folder = run.folder / IMAGES_FOLDER
    private_folder(folder)
    with open_private(folder / INDEX_FILE, "xb") as file:
        file.write(index.content)
    images = KeptImages(run.folder, run.data)
    if images.problem:
        raise RunError(f"{address} is damaged: {images.problem}. Push the run again.")
    names = sorted({str(entry["file"]) for entry in images.entries.values()})
    if len(names) > MOST_RUN_PICTURES:
        raise RunError(f"{address} names more than {MOST_RUN_PICTURES:,} pictures.")

    n_bytes = 0
    with ThreadPoolExecutor(DOWNLOAD_THREADS) as pool:

        def download(name: str) -> int:
            image_address = address.child(f"{IMAGES_FOLDER}/{name}")
            sha256 = bucket.download(
                image_address.key, folder / name, MOST_PICTURE_BYTES
            )
            if sha256 != name.partition(".")[0]:
                raise RunError(f"{image_address} was changed. Push the run again.")
            return (folder / name).stat().st_size

        # In portions, so that a hostile run is refused before all of it has come.
        for start in range(0, len(names), 10 * DOWNLOAD_THREADS):
            portion = names[start : start + 10 * DOWNLOAD_THREADS]
            n_bytes += sum(pool.map(download, portion))
            if n_bytes > MOST_RUN_BYTES:
                raise RunError(
                    f"The pictures of {address} have more than"
                    f" {MOST_RUN_BYTES >> 30} GiB."
                )


@contextmanager
def temporary_folder(parent: Path, beginning: str) -> Iterator[Path]:
    """A new folder in a folder, removed at the end, with those that killed processes left."""
    parent = place_of(parent)
    private_folder(parent)
    for left in parent.glob(f"{beginning}[0-9]*-*"):
        process = left.name.removeprefix(beginning).partition("-")[0]
        if process.isdecimal() and len(process) < 12 and not is_running(int(process)):
            shutil.rmtree(left, ignore_errors=True)
    folder = parent / f"{beginning}{os.getpid()}-{secrets.token_hex(4)}"
    folder.mkdir(mode=0o700)
    try:
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
