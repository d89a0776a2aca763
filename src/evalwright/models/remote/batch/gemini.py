"""Gemini's batch mode: requests in the body of one call, answers in the operation or in a file.

Documented at https://ai.google.dev/api/batch-api. The answers are in the order of the requests;
most, but not all, come with their keys, so the order decides if a key is missing. Requests in the
body may have 20 MB in all.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import BadReply, Rejected, RequestError, TimedOut
from evalwright.models.remote.batch.interface import (
    Answer,
    BatchApi,
    BatchState,
    Item,
    LostSubmission,
)
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http_faults import (
    bad_reply,
    clean,
    error_for,
    server_message,
)
from evalwright.models.remote.wire.format import as_mapping, get_nested

_ENDED = ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED", "PARTIALLY_SUCCEEDED")
# The codes of google.rpc.Code, as HTTP statuses.
_STATUS = {
    1: 499, 3: 400, 4: 504, 5: 404, 7: 403, 8: 429, 9: 400, 11: 400, 13: 500, 14: 503, 16: 401,
}  # fmt: skip


class GeminiBatches(BatchApi):
    """Gemini's interface. The mark is a batch's display name."""

    most_items = 20_000
    most_bytes = 18 * 10**6

    async def submit(self, items: Sequence[Item], mark: str) -> str:
        """Submit all requests in one body."""
        requests = [
            {"request": item.body, "metadata": {"key": item.id}} for item in items
        ]
        body = {
            "batch": {
                "displayName": mark,
                "inputConfig": {"requests": {"requests": requests}},
            }
        }
        model = quote(self.settings.model.removeprefix("models/"), safe="")
        return self._name(
            (
                await self.client.send(
                    Call(f"/models/{model}:batchGenerateContent", body)
                )
            ).data
        )

    async def find(self, submission: LostSubmission) -> str | None:
        """Find a batch by its display name."""
        token = ""
        while True:
            page = await self.get(f"/batches?pageSize=100{token}")
            for row in page.get("operations") or ():
                if get_nested(row, "metadata", "displayName") == submission.mark:
                    return self._name(row)
            if not page.get("nextPageToken"):
                return None
            token = f"&pageToken={quote(str(page['nextPageToken']), safe='')}"

    async def state(self, batch: str) -> BatchState:
        """Return how far the batch is; one that failed as a whole has an error."""
        operation = await self._operation(batch)
        inner = as_mapping(operation.get("metadata"))
        counts = get_nested(operation, "metadata", "batchStats")
        status = (
            str(inner.get("state", ""))
            .removeprefix("BATCH_STATE_")
            .removeprefix("JOB_STATE_")
        )
        done = sum(
            _int(get_nested(counts, f"{name}RequestCount"))
            for name in ("successful", "failed")
        )
        error: RequestError | None = None
        if isinstance(operation.get("error"), Mapping):
            error = Rejected(
                f"{self.where} failed the batch: {clean(server_message(operation), 300)}"
            )
        elif status in ("CANCELLED", "EXPIRED"):
            error = TimedOut(
                f"{self.where} ended the batch before it was answered"
                f" ({status.lower()})."
            )
        ended = bool(operation.get("done")) or status in _ENDED
        return BatchState(
            ended, done, _int(get_nested(counts, "requestCount")), status.lower(), error
        )

    async def answers(self, batch: str, order: Sequence[str]) -> AsyncIterator[Answer]:
        """Yield the answers from the operation itself, or from the file that it names."""
        operation = await self._operation(batch)
        output = operation.get("response") or get_nested(
            operation, "metadata", "output"
        )
        ids = iter(order)
        if isinstance(inlined := get_nested(output, "inlinedResponses"), Mapping):
            for row in inlined.get("inlinedResponses") or ():
                yield self._answer(row, next(ids, ""))
        elif isinstance(file := get_nested(output, "responsesFile"), str):
            async for row in self.rows(f"/{quote(file)}:download?alt=media"):
                yield self._answer(row, next(ids, ""))

    async def _operation(self, batch: str) -> Mapping[str, Any]:
        operation = await self.get(f"/{quote(batch)}")
        self._name(operation)
        return operation

    def _name(self, operation: Any) -> str:
        name = self.text(operation, "name")
        if not name.startswith("batches/"):
            raise bad_reply(self.where, "a batch's operation", json.dumps(operation))
        return name

    def _answer(self, row: Any, by_order: str) -> Answer:
        if not isinstance(row, Mapping):
            return "", None
        key = row.get("key") or get_nested(row, "metadata", "key")
        item_id = key if isinstance(key, str) and key else by_order
        if isinstance(row.get("error"), Mapping):
            code = get_nested(row, "error", "code")
            status = _STATUS.get(code, code) if isinstance(code, int) else 500
            return item_id, error_for(self.where, status, server_message(row))
        if isinstance(row.get("response"), Mapping):
            return item_id, row["response"]
        return item_id, BadReply(
            f"{self.where} gave neither an answer nor an error in a batch."
        )


def _int(value: Any) -> int:
    """Read a count, which is a number or, being 64 bits wide, text."""
    return (
        int(value)
        if isinstance(value, int) or (isinstance(value, str) and value.isdigit())
        else 0
    )
