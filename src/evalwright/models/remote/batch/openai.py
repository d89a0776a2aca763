"""OpenAI's batches: upload a file of requests, download a file of answers and one of errors.

Documented at https://platform.openai.com/docs/api-reference/batch, with its limits: 50,000 requests
and 200 MB a file. Other providers offer the same interface.
"""

from __future__ import annotations

import secrets
from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Any
from urllib.parse import quote, urlsplit

from evalwright.core.errors import BadReply, Rejected, RequestError, TimedOut
from evalwright.models.remote.batch.interface import (
    CLOCK_TOLERANCE_SECONDS,
    Answer,
    BatchApi,
    BatchState,
    Item,
    LostSubmission,
)
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http import encode
from evalwright.models.remote.http_faults import (
    clean,
    codes_of,
    error_for,
    server_message,
)
from evalwright.models.remote.wire.format import as_mapping, count, get_nested

_ENDED = frozenset({"completed", "expired", "cancelled", "failed"})
_MARK = "evalwright"


class OpenAIBatches(BatchApi):
    """OpenAI's interface. The mark is in a batch's metadata."""

    most_items = 50_000
    most_bytes = 190 * 10**6

    async def submit(self, items: Sequence[Item], mark: str) -> str:
        """Upload the file, then make the batch of it."""
        # The documentation gives endpoints with the API's version, which is in the base URL.
        version = urlsplit(self.client.base_url).path.rpartition("/")[2]
        endpoint = f"/{version}{self.path}" if version else self.path
        lines = [
            encode(
                {
                    "custom_id": item.id,
                    "method": "POST",
                    "url": endpoint,
                    "body": item.body,
                }
            )
            for item in items
        ]
        body, content_type = _multipart_form(b"\n".join(lines) + b"\n")
        uploaded = await self.client.send(
            Call("/files", body, headers={"Content-Type": content_type})
        )
        batch_request = {
            "input_file_id": self.text(uploaded.data, "id"),
            "endpoint": endpoint,
            "completion_window": "24h",
            "metadata": {_MARK: mark},
        }
        return self.text(
            (await self.client.send(Call("/batches", batch_request))).data, "id"
        )

    async def find(self, submission: LostSubmission) -> str | None:
        """Find a batch by its mark, among the batches made since."""
        after = ""
        while True:
            page = await self.get(f"/batches?limit=100{after}")
            rows = [row for row in page.get("data") or () if isinstance(row, Mapping)]
            for row in rows:
                if get_nested(row, "metadata", _MARK) == submission.mark:
                    return self.text(row, "id")
            # The newest come first.
            older = any(
                count(row.get("created_at"))
                < submission.since - CLOCK_TOLERANCE_SECONDS
                for row in rows
            )
            if not rows or older or not page.get("has_more"):
                return None
            after = f"&after={quote(self.text(rows[-1], 'id'), safe='')}"

    async def state(self, batch: str) -> BatchState:
        """Return how far the batch is; a file that was refused as a whole has an error."""
        batch_object = await self.get(f"/batches/{quote(batch, safe='')}")
        status = str(batch_object.get("status", ""))
        error = None
        if status == "failed":
            words = "; ".join(
                map(server_message, get_nested(batch_object, "errors", "data") or ())
            )
            reason = clean(words, 300) or "it gave no reason"
            error = Rejected(f"{self.where} refused the batch: {reason}.")
        counts = [
            count(get_nested(batch_object, "request_counts", name))
            for name in ("completed", "failed", "total")
        ]
        return BatchState(
            status in _ENDED, counts[0] + counts[1], counts[2], status, error
        )

    async def answers(self, batch: str, order: Sequence[str]) -> AsyncIterator[Answer]:
        """Yield the answers from the file of answers, then from that of errors."""
        batch_object = await self.get(f"/batches/{quote(batch, safe='')}")
        for name in ("output_file_id", "error_file_id"):
            if file := batch_object.get(name):
                async for row in self.rows(
                    f"/files/{quote(str(file), safe='')}/content"
                ):
                    yield self._answer(row)

    def _answer(self, row: Any) -> Answer:
        """Read one line of either file."""
        item_id = self.item(row)
        response = as_mapping(row).get("response")
        if not item_id:
            return "", None
        if not isinstance(response, Mapping):
            return item_id, self._error(row.get("error"))
        status = response.get("status_code")
        body = response.get("body")
        if isinstance(status, int) and not 200 <= status < 300:
            return item_id, error_for(
                self.where, status, server_message(body), codes=codes_of(body)
            )
        return item_id, body

    def _error(self, error: Any) -> RequestError:
        code = get_nested(error, "code")
        words = clean(server_message(error), 300)
        if code in ("batch_expired", "batch_cancelled"):
            return TimedOut(
                f"{self.where} ended the batch before this was answered:"
                f" {words or code}"
            )
        return BadReply(
            f"{self.where} gave neither an answer nor a known error: {words or code}."
        )


def _multipart_form(content: bytes) -> tuple[bytes, str]:
    """Encode a file as multipart/form-data; return it and its content type."""
    boundary = secrets.token_hex(16)
    head = (
        f"--{boundary}\r\nContent-Disposition: form-data;"
        f' name="purpose"\r\n\r\nbatch\r\n--{boundary}\r\nContent-Disposition:'
        ' form-data; name="file"; filename="batch.jsonl"\r\nContent-Type:'
        " application/jsonl\r\n\r\n"
    )
    body = head.encode() + content + f"\r\n--{boundary}--\r\n".encode()
    return body, f"multipart/form-data; boundary={boundary}"
