"""The rows of a store, their checksums, and batches of what one event loop wants."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from evalwright.core.errors import StoreError
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
"""Most bytes of a request or response; a stranger's row may decompress to any length."""

dump = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False).encode


@dataclass(slots=True)
class Batch:
    """What one event loop wants of the store.

    Attributes:
        done: called once in the writer's thread, with a StoreError if it failed.
        claims: keys to claim.
        puts: answers to store, which ends their claims.
        releases: keys whose claims end without an answer.
        damaged: key and content of unreadable rows to delete.
        empty: keys with the failure to remember, as JSON, and its checksum.
        bills: sendings, input and output tokens, and dollars to add to the ledger.
        names: of models, by their fingerprint.
        polls: keys that another owner claims.
        outcomes: afterwards, for each claim MINE, STORED or the other owner's id.
        changed: afterwards, the polled keys that are worth claiming again.
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


class Group:
    """Batches that a database processes together.

    `renew` says that the owner's lease is due, `first` that it is the first one.
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
        """Remove the bills from this group and its batches: they have been added up elsewhere."""
        self.bills = []
        for batch in self._batches:
            batch.bills.clear()

    @property
    def writes(self) -> bool:
        """Whether it changes anything other than claims and leases."""
        return bool(self.releases or self.damaged or self.bills or self.empty)


def row_of(key: bytes, fingerprint: str, payload: bytes, response: Response) -> Row:
    """The row to write: request and response as JSON, compressed where that pays."""
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
    """The response in a row. Raises ValueError if the row is damaged."""
    try:
        if checksum is not None and checksum != checksum_of(
            key, model, request, response
        ):
            raise ValueError("another checksum")
        return Response.from_dict(json.loads(unpack(response))).without_secrets()
    except (TypeError, AttributeError, RecursionError) as error:
        raise ValueError(str(error)) from error


def is_readable(row: Row) -> bool:
    """Whether a row's columns have the right types, which SQLite does not promise, and its checksum
    holds.
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
    """CRC-32 of a row's columns: against damage, not against forgery."""
    checksum = zlib.crc32(key + text.encode("utf-8", "surrogatepass"))
    for column in columns:
        checksum = zlib.crc32(column, checksum)
    return checksum


def storable_text(text: str) -> str:
    """The text without what no database accepts: lone surrogates and the character 0."""
    return text.encode("utf-8", "replace").decode().replace("\0", "\ufffd")


def pack(text: bytes) -> bytes:
    """JSON as it is, or compressed from 1 KB on.

    A small window costs a third of zlib's default time at this size.
    """
    if len(text) < _COMPRESS_FROM_BYTES:
        return text
    squeezer = zlib.compressobj(1, zlib.DEFLATED, 13, 6)
    return squeezer.compress(text) + squeezer.flush()


def unpack(packed: bytes) -> str:
    """The inverse of `pack`.

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
