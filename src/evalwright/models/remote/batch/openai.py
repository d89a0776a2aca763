"""OpenAI's batches: a file of requests goes up, a file of answers and one of errors come down.

Documented at https://platform.openai.com/docs/api-reference/batch. Other providers offer the same interface.
"""

from __future__ import annotations

import json
import secrets
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from evalwright.core.errors import BadReply, Rejected, RequestError, TimedOut
from evalwright.models.remote.batch.interface import Answer, Item, State
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import HttpClient, encode
from evalwright.models.remote.http_faults import bad_reply, clean, error_for, server_message
from evalwright.models.remote.wire.format import Settings, count

_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_MARK = "evalwright"


class OpenAIBatches:
    """The limits are those of the documentation: 50,000 requests and 200 MB a file."""

    most_items = 50_000
    most_bytes = 190 * 10**6

    def __init__(self, path: str) -> None:
        self._path = path

    async def submit(self, client: HttpClient, items: Sequence[Item], mark: str, settings: Settings) -> str:
        """Upload the file, then make the batch of it."""
        # The documentation gives endpoints with their version, as they stand in the base URL.
        version = urlsplit(client.base_url).path.rpartition("/")[2]
        endpoint = f"/{version}{self._path}" if version else self._path
        lines = [
            encode({"custom_id": item.id, "method": "POST", "url": endpoint, "body": item.body})
            for item in items
        ]
        body, kind = _form(b"\n".join(lines) + b"\n")
        uploaded = await client.send(Call("/files", body, headers={"Content-Type": kind}))
        batch = {
            "input_file_id": _text(uploaded.data, "id", settings),
            "endpoint": endpoint,
            "completion_window": "24h",
            "metadata": {_MARK: mark},
        }
        made = await client.send(Call("/batches", batch))
        return _text(made.data, "id", settings)

    async def find(
        self,
        client: HttpClient,
        mark: str,
        since: float,
        total: int,
        known: Collection[str],
        settings: Settings,
    ) -> str | None:
        """By the mark in its metadata, among the batches made since."""
        after = ""
        while True:
            reply = await client.send(Call(f"/batches?limit=100{after}", method="GET"))
            data = reply.data if isinstance(reply.data, Mapping) else {}
            rows = [row for row in data.get("data") or () if isinstance(row, Mapping)]
            for row in rows:
                marks = row.get("metadata")
                if isinstance(marks, Mapping) and marks.get(_MARK) == mark:
                    return _text(row, "id", settings)
            # The newest come first; clocks may differ by some minutes.
            older = any(count(row.get("created_at")) < since - 600 for row in rows)
            if not rows or older or not data.get("has_more"):
                return None
            after = f"&after={quote(_text(rows[-1], 'id', settings), safe='')}"

    async def state(self, client: HttpClient, batch: str, settings: Settings) -> State:
        """How far it is; a file that was refused as a whole has an error."""
        data = await self._batch(client, batch, settings)
        status = str(data.get("status", ""))
        counts = data.get("request_counts")
        counts = counts if isinstance(counts, Mapping) else {}
        error = None
        if status == "failed":
            told = data.get("errors")
            rows = told.get("data") if isinstance(told, Mapping) else None
            words = "; ".join(server_message(row) for row in rows or () if isinstance(row, Mapping))
            error = Rejected(
                f"{settings.where} refused the batch: {clean(words, 300) or 'it gave no reason'}."
            )
        done = count(counts.get("completed")) + count(counts.get("failed"))
        return State(status in _ENDED, done, count(counts.get("total")), status, error)

    async def answers(
        self, client: HttpClient, batch: str, items: Sequence[str], settings: Settings
    ) -> AsyncIterator[Answer]:
        """From the file of answers, then from that of errors."""
        data = await self._batch(client, batch, settings)
        for name in ("output_file_id", "error_file_id"):
            file = data.get(name)
            if not isinstance(file, str) or not file:
                continue
            async for line in client.lines(f"/files/{quote(file, safe='')}/content"):
                if line.strip():
                    yield _answer(line, settings)

    async def _batch(self, client: HttpClient, batch: str, settings: Settings) -> Mapping[str, Any]:
        reply = await client.send(Call(f"/batches/{quote(batch, safe='')}", method="GET"))
        if not isinstance(reply.data, Mapping):
            raise bad_reply(settings.where, "a batch", json.dumps(reply.data))
        return reply.data


def _answer(line: bytes, settings: Settings) -> Answer:
    """One line of either file."""
    try:
        row = json.loads(line)
        item = row["custom_id"]
        response, error = row.get("response"), row.get("error")
        if not isinstance(item, str):
            raise TypeError
    except (ValueError, TypeError, KeyError, AttributeError):
        raise bad_reply(settings.where, "a line of a batch's answers", line) from None
    if isinstance(response, Mapping):
        status, body = response.get("status_code"), response.get("body")
        if isinstance(status, int) and not 200 <= status < 300:
            return item, error_for(settings.where, status, server_message(body))
        return item, body
    return item, _error(error, settings)


def _error(error: Any, settings: Settings) -> RequestError:
    code = error.get("code") if isinstance(error, Mapping) else None
    words = clean(server_message(error), 300) if isinstance(error, Mapping) else ""
    if code in ("batch_expired", "batch_cancelled"):
        return TimedOut(f"{settings.where} ended the batch before this was answered: {words or code}")
    return BadReply(f"{settings.where} gave neither an answer nor a known error: {words or code}.")


def _text(data: Any, name: str, settings: Settings) -> str:
    value = data.get(name) if isinstance(data, Mapping) else None
    if not isinstance(value, str) or not value:
        raise bad_reply(settings.where, f"what the interface documents ('{name}')", json.dumps(data))
    return value


def _form(content: bytes) -> tuple[bytes, str]:
    """A file as multipart/form-data, and its content type."""
    boundary = secrets.token_hex(16)
    head = (
        f'--{boundary}\r\nContent-Disposition: form-data; name="purpose"\r\n\r\nbatch\r\n'
        f'--{boundary}\r\nContent-Disposition: form-data; name="file"; filename="batch.jsonl"\r\n'
        f"Content-Type: application/jsonl\r\n\r\n"
    )
    return (
        head.encode() + content + f"\r\n--{boundary}--\r\n".encode(),
        f"multipart/form-data; boundary={boundary}",
    )
