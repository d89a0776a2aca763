"""Anthropic's message batches: requests in the body, answers as a file of lines.

Documented at https://docs.anthropic.com/en/api/creating-message-batches.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import BadReply, RequestError, TimedOut
from evalwright.models.remote.batch.interface import Answer, Item, State
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.http_faults import bad_reply, error_for, server_message
from evalwright.models.remote.wire.anthropic import STATUS
from evalwright.models.remote.wire.format import Settings, count

_PATH = "/messages/batches"


class AnthropicBatches:
    """The limits are those of the documentation: 100,000 requests and 256 MB a batch."""

    most_items = 100_000
    most_bytes = 240 * 10**6

    def __init__(self, path: str) -> None:
        """path: not needed, because only messages can be batched."""

    async def submit(self, client: HttpClient, items: Sequence[Item], mark: str, settings: Settings) -> str:
        """All requests in one body; there is no place for the mark."""
        requests = [{"custom_id": item.id, "params": item.body} for item in items]
        made = await client.send(Call(_PATH, {"requests": requests}))
        return str(_batch(made.data, settings)["id"])

    async def find(
        self,
        client: HttpClient,
        mark: str,
        since: float,
        total: int,
        known: Collection[str],
        settings: Settings,
    ) -> str | None:
        """By its time and size: of the batches of so many requests that are no others, the one made next to that moment."""
        found: dict[str, float] = {}
        after = ""
        while True:
            reply = await client.send(Call(f"{_PATH}?limit=100{after}", method="GET"))
            data = reply.data if isinstance(reply.data, Mapping) else {}
            rows = [_batch(row, settings) for row in data.get("data") or ()]
            # Clocks may differ by some minutes.
            recent = [row for row in rows if _seconds(row.get("created_at")) >= since - 600]
            for row in recent:
                if _total(row) == total and row["id"] not in known:
                    found[str(row["id"])] = abs(_seconds(row.get("created_at")) - since)
            if len(recent) < len(rows) or not rows or not data.get("has_more"):
                return min(found, key=found.__getitem__, default=None)
            after = f"&after_id={quote(str(rows[-1]['id']), safe='')}"

    async def state(self, client: HttpClient, batch: str, settings: Settings) -> State:
        """How far it is; requests are counted as done only when all are."""
        data = _batch(
            (await client.send(Call(f"{_PATH}/{quote(batch, safe='')}", method="GET"))).data, settings
        )
        status = str(data.get("processing_status", ""))
        counts = data.get("request_counts")
        left = count(counts.get("processing")) if isinstance(counts, Mapping) else 0
        total = _total(data)
        return State(status == "ended", total - left, total, status)

    async def answers(
        self, client: HttpClient, batch: str, items: Sequence[str], settings: Settings
    ) -> AsyncIterator[Answer]:
        """From the file of results."""
        async for line in client.lines(f"{_PATH}/{quote(batch, safe='')}/results"):
            if line.strip():
                yield _answer(line, settings)


def _answer(line: bytes, settings: Settings) -> Answer:
    try:
        row = json.loads(line)
        item, result = row["custom_id"], row["result"]
        kind = result["type"]
        if not isinstance(item, str):
            raise TypeError
    except (ValueError, TypeError, KeyError):
        raise bad_reply(settings.where, "a line of a batch's results", line) from None
    if kind == "succeeded":
        return item, result.get("message")
    return item, _error(kind, result.get("error"), settings)


def _error(kind: Any, error: Any, settings: Settings) -> RequestError:
    if kind in ("expired", "canceled"):
        return TimedOut(f"{settings.where} ended the batch before this was answered ({kind}).")
    inner = error.get("error") if isinstance(error, Mapping) else None
    if kind == "errored" and isinstance(inner, Mapping):
        status = STATUS.get(str(inner.get("type")), 500)
        return error_for(settings.where, status, server_message(error))
    return BadReply(f"{settings.where} gave neither an answer nor a known error in a batch.")


def _batch(data: Any, settings: Settings) -> Mapping[str, Any]:
    if not isinstance(data, Mapping) or not isinstance(data.get("id"), str):
        raise bad_reply(settings.where, "a message batch", json.dumps(data))
    return data


def _total(data: Mapping[str, Any]) -> int:
    counts = data.get("request_counts")
    return sum(count(value) for value in counts.values()) if isinstance(counts, Mapping) else 0


def _seconds(value: Any) -> float:
    try:
        return datetime.fromisoformat(str(value)).timestamp()
    except ValueError:
        return 0.0
