"""The rows of a store, their checksums, and the batches in which one event loop sends its work."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evalwright.core.errors import StoreError
from evalwright.core.json_text import encode_function
from evalwright.core.responses import Response
from evalwright.core.secrets import mask_json

Row = tuple[bytes, str, bytes, bytes, float, int | None]
"""key, model fingerprint, request, response, seconds since 1970, checksum (None in old rows)."""

BillKey = tuple[str, str, bool]
"""model, outcome of a sending, whether its bill is an estimate."""

MINE: Final = "mine"
STORED: Final = "stored"

_COMPRESS_FROM_BYTES = 1024
MAX_CONTENT_BYTES = 1 << 28
"""Most bytes of a request or response; a row from elsewhere could decompress to any length."""

dump = encode_function(json.JSONEncoder(separators=(",", ":"), ensure_ascii=False))


@dataclass(slots=True)
class Batch:
    """What one event loop wants the writer to do.

    Attributes:
        done: called once in the writer's thread, with a StoreError if the batch failed.
        claims: keys to claim.
        puts: answers to store, which ends their claims.
        releases: keys whose claims end without an answer.
        damaged: key and content of unreadable rows to delete.
        empty: keys with the failure to remember, as JSON, and its checksum.
        bills: sendings, input and output tokens, and dollars to add to the ledger.
        names: names of models, by fingerprint.
        polls: keys that another owner claims.
        outcomes: set by the writer: for each claim MINE, STORED or the other owner's id.
        changed: set by the writer: the polled keys that are worth claiming again.
    """

    done: Callable[[Batch, StoreError | None], None]
    claims: list[bytes] = field(default_factory=list)
    puts: list[Row] = field(default_factory=list)
    releases: list[bytes] = field(default_factory=list)
    damaged: list[tuple[bytes, bytes]] = field(default_factory=list)
    empty: list[tuple[bytes, str, int]] = field(default_factory=list)
    bills: dict[BillKey, list[Any]] = field(default_factory=dict)
    names: dict[str, str] = field(default_factory=dict)
    polls: list[bytes] = field(default_factory=list)
    outcomes: list[str] = field(default_factory=list)
    changed: list[bytes] = field(default_factory=list)

    @property
    def stores(self) -> bool:
        """Whether it has anything that must survive a loss of power."""
        return bool(self.puts or self.empty)


class Group:
    """Batches that a database processes together.

    `renew` says that the owner's lease must be renewed, `first` that this is the first group.
    """

    def __init__(self, batches: Sequence[Batch]) -> None:
        self.renew = self.first = False
        self._batches = batches
        self.polls = [key for batch in batches for key in batch.polls]
        self.puts = [row for batch in batches for row in batch.puts]
        self.releases = [key for batch in batches for key in batch.releases]
        self.releases += [row[0] for row in self.puts]
        self.claims = [key for batch in batches for key in batch.claims]
        self.damaged = [pair for batch in batches for pair in batch.damaged]
        self.bills = [
            (*key, *sums) for batch in batches for key, sums in batch.bills.items()
        ]
        self.empty = [row for batch in batches for row in batch.empty]
        self.names = [pair for batch in batches for pair in batch.names.items()]

    def billed(self) -> None:
        """Remove the bills of this group and its batches, which have been added up elsewhere."""
        self.bills = []
        for batch in self._batches:
            batch.bills.clear()

    @property
    def writes(self) -> bool:
        """Whether the group changes anything other than claims and leases."""
        return bool(self.releases or self.damaged or self.bills or self.empty)


def row_of(key: bytes, fingerprint: str, payload: bytes, response: Response) -> Row:
    """Make the row to write: request and response as JSON, compressed where that pays."""
    answer = dump(response.as_dict()).encode("utf-8", "surrogatepass")
    request = pack(mask_json(payload))
    packed = pack(answer)
    return (
        key,
        fingerprint,
        request,
        packed,
        time.time(),
        checksum_of(key, fingerprint, request, packed),
    )


def response_of(
    key: bytes, model: str, request: bytes, response: bytes, checksum: int | None
) -> Response:
    """Decode the response in a row.

    Raises:
        ValueError: the row is damaged.
    """
    try:
        if checksum is not None and checksum != checksum_of(
            key, model, request, response
        ):
            raise ValueError("another checksum")
        return Response.from_dict(json.loads(unpack(response))).without_secrets()
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def is_readable(row: Row) -> bool:
    """Return whether a row is intact: its columns have the right types and its checksum matches.

    SQLite itself does not guarantee the types.
    """
    key, model, request, response, created, checksum = row
    try:
        response_of(key, model, request, response, checksum)
        is_object = isinstance(json.loads(unpack(request)), dict)
    except (ValueError, TypeError, RecursionError):
        return False
    return (
        is_object
        and isinstance(key, bytes)
        and isinstance(model, str)
        and type(created) is float
        and abs(created) < 1e11
    )


def checksum_of(key: bytes, text: str, *columns: bytes) -> int:
    """Compute the CRC-32 of a row's columns: against damage, not against forgery."""
    checksum = zlib.crc32(key + text.encode("utf-8", "surrogatepass"))
    for column in columns:
        checksum = zlib.crc32(column, checksum)
    return checksum


def storable_text(text: str) -> str:
    """Replace what no database accepts in a text: lone surrogates and the character 0."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def pack(text: bytes) -> bytes:
    """Compress JSON of 1 KB or more; leave shorter JSON as it is.

    A small window costs a third of zlib's default time at this size.
    """
    if len(text) < _COMPRESS_FROM_BYTES:
        return text
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 13, 6)
    return squeezer.compress(text) + squeezer.flush()


def unpack(packed: bytes) -> str:
    """Return the text that `pack` packed.

    Raises:
        ValueError: `pack` cannot have made it.
        TypeError: it is not bytes.
    """
    text = packed
    if packed[:1] != b"{":
        opened = zlib.decompressobj()
        try:
            text = opened.decompress(packed, MAX_CONTENT_BYTES)
        except zlib.error as error:
            raise ValueError(str(error)) from error
        if not opened.eof:
            raise ValueError("it has no end, or is longer than any response")
    return text.decode("utf-8", "surrogatepass")
