"""Gemini's batch mode: requests in the body of one call, answers in the finished operation or in a file.

Documented at https://ai.google.dev/api/batch-api. The answers stand in the order of the requests; their keys come back with
most of them, not with all, so the order decides where a key is missing.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import BadReply, Rejected, RequestError, TimedOut
from evalwright.models.remote.batch.interface import Answer, Item, State
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.http_faults import bad_reply, clean, error_for, server_message
from evalwright.models.remote.wire.format import Settings

_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
# The codes of google.rpc.Code, as HTTP statuses.
_STATUS = {
    1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401,
}  # fmt: skip


class GeminiBatches:
    """Requests in the body may be 20 MB together, so larger runs are several batches."""

    most_items = 20_000
    most_bytes = 18 * 10**6

    def __init__(self, path: str) -> None:
        """path: not needed, because the model's name says where batches go."""

    async def submit(self, client: HttpClient, items: Sequence[Item], mark: str, settings: Settings) -> str:
        """All requests in one body, the mark as the batch's display name."""
        requests = [{"request": item.body, "metadata": {"key": item.id}} for item in items]
        body = {"batch": {"displayName": mark, "inputConfig": {"requests": {"requests": requests}}}}
        path = f"/models/{quote(settings.model.removeprefix('models/'), safe='')}:batchGenerateContent"
        return _name((await client.send(Call(path, body))).data, settings)

    async def find(
        self,
        client: HttpClient,
        mark: str,
        since: float,
        total: int,
        known: Collection[str],
        settings: Settings,
    ) -> str | None:
        """By its display name."""
        token = ""
        while True:
            reply = await client.send(Call(f"/batches?pageSize=100{token}", method="GET"))
            data = reply.data if isinstance(reply.data, Mapping) else {}
            for row in data.get("operations") or ():
                if isinstance(row, Mapping) and _metadata(row).get("displayName") == mark:
                    return _name(row, settings)
            following = data.get("nextPageToken")
            if not following:
                return None
            token = f"&pageToken={quote(str(following), safe='')}"

    async def state(self, client: HttpClient, batch: str, settings: Settings) -> State:
        """How far it is."""
        data = await self._operation(client, batch, settings)
        inner = _metadata(data)
        status = str(inner.get("state", "")).removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        counts = inner.get("batchStats")
        counts = counts if isinstance(counts, Mapping) else {}
        done = _int(counts.get("successfulRequestCount")) + _int(counts.get("failedRequestCount"))
        error: RequestError | None = None
        if isinstance(data.get("error"), Mapping):
            words = clean(server_message(data), 300)
            error = Rejected(f"{settings.where} failed the batch: {words}")
        elif status in ("CANCELLED", "EXPIRED"):
            error = TimedOut(f"{settings.where} ended the batch before it was answered ({status.lower()}).")
        ended = bool(data.get("done")) or status in _ENDED
        return State(ended, done, _int(counts.get("requestCount")), status.lower(), error)

    async def answers(
        self, client: HttpClient, batch: str, items: Sequence[str], settings: Settings
    ) -> AsyncIterator[Answer]:
        """From the operation itself, or from the file that it names."""
        data = await self._operation(client, batch, settings)
        output = data.get("response") or _metadata(data).get("output")
        output = output if isinstance(output, Mapping) else {}
        inlined = output.get("inlinedResponses")
        if isinstance(inlined, Mapping):
            for place, row in enumerate(inlined.get("inlinedResponses") or ()):
                yield _answer(row, items[place] if place < len(items) else "", settings)
        elif isinstance(file := output.get("responsesFile"), str):
            place = 0
            async for line in client.lines(f"/{quote(file)}:download?alt=media"):
                if line.strip():
                    yield _answer(_json(line, settings), items[place] if place < len(items) else "", settings)
                    place += 1

    async def _operation(self, client: HttpClient, batch: str, settings: Settings) -> Mapping[str, Any]:
        data = (await client.send(Call(f"/{quote(batch)}", method="GET"))).data
        _name(data, settings)
        found: Mapping[str, Any] = data
        return found


def _answer(row: Any, by_order: str, settings: Settings) -> Answer:
    if not isinstance(row, Mapping):
        raise bad_reply(settings.where, "a batch's answer", json.dumps(row))
    metadata = row.get("metadata")
    key = row.get("key") or (metadata.get("key") if isinstance(metadata, Mapping) else None)
    item = key if isinstance(key, str) and key else by_order
    error = row.get("error")
    if isinstance(error, Mapping):
        code = error.get("code")
        status = _STATUS.get(code, code) if isinstance(code, int) else 500
        return item, error_for(settings.where, status, server_message(row))
    response = row.get("response")
    if isinstance(response, Mapping):
        return item, response
    return item, BadReply(f"{settings.where} gave neither an answer nor an error in a batch.")


def _json(line: bytes, settings: Settings) -> Any:
    try:
        return json.loads(line)
    except ValueError:
        raise bad_reply(settings.where, "a line of a batch's answers", line) from None


def _name(data: Any, settings: Settings) -> str:
    name = data.get("name") if isinstance(data, Mapping) else None
    if not isinstance(name, str) or not name.startswith("batches/"):
        raise bad_reply(settings.where, "a batch's operation", json.dumps(data))
    return name


def _metadata(row: Mapping[str, Any]) -> Mapping[str, Any]:
    found = row.get("metadata")
    return found if isinstance(found, Mapping) else {}


def _int(value: Any) -> int:
    """Counts come as numbers or, being 64 bits wide, as text."""
    return int(value) if isinstance(value, int) or (isinstance(value, str) and value.isdigit()) else 0
