"""Anthropic's message batches: requests in the body, answers as a file of lines.

Documented at https://docs.anthropic.com/en/api/creating-message-batches, with its limits: 100,000
requests and 256 MB a batch.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from datetime import datetime
from typing import Any
from urllib.parse import quote

from evalwright.core.errors import BadReply, RequestError, TimedOut
from evalwright.models.remote.batch.interface import (
    CLOCK_TOLERANCE_SECONDS,
    Answer,
    BatchApi,
    BatchState,
    Item,
    LostSubmission,
)
from evalwright.models.remote.exchange import Call
from evalwright.models.remote.http_faults import error_for, server_message, status_of
from evalwright.models.remote.wire.format import as_mapping, count, get_nested

_PATH = "/messages/batches"


class AnthropicBatches(BatchApi):
    """Anthropic's interface. Batches carry no mark; a lost one is found by its time and size."""

    most_items = 100_000
    most_bytes = 240 * 10**6

    async def submit(self, items: Sequence[Item], mark: str) -> str:
        """Submit all requests in one body."""
        requests = [{"custom_id": item.id, "params": item.body} for item in items]
        return self.text(
            (await self.client.send(Call(_PATH, {"requests": requests}))).data, "id"
        )

    async def find(self, submission: LostSubmission) -> str | None:
        """Find the unknown batch of the right size that was created closest to that moment."""
        distance_by_batch: dict[str, float] = {}
        after = ""
        while True:
            page = await self.get(f"{_PATH}?limit=100{after}")
            rows = [(self.text(row, "id"), row) for row in page.get("data") or ()]
            recent = [
                row
                for row in rows
                if _seconds(row[1]) >= submission.since - CLOCK_TOLERANCE_SECONDS
            ]
            for name, row in recent:
                if _total(row) == submission.total and name not in submission.known:
                    distance_by_batch[name] = abs(_seconds(row) - submission.since)
            if len(recent) < len(rows) or not rows or not page.get("has_more"):
                return min(
                    distance_by_batch, key=distance_by_batch.__getitem__, default=None
                )
            after = f"&after_id={quote(rows[-1][0], safe='')}"

    async def state(self, batch: str) -> BatchState:
        """Return how far the batch is; requests count as done only when all are."""
        batch_object = await self.get(f"{_PATH}/{quote(batch, safe='')}")
        status = str(batch_object.get("processing_status", ""))
        total = _total(batch_object)
        return BatchState(
            status == "ended",
            total - count(get_nested(batch_object, "request_counts", "processing")),
            total,
            status,
        )

    async def answers(self, batch: str, order: Sequence[str]) -> AsyncIterator[Answer]:
        """Yield the answers from the file of results."""
        async for row in self.rows(f"{_PATH}/{quote(batch, safe='')}/results"):
            item_id = self.item(row)
            outcome = as_mapping(row.get("result")) if item_id else {}
            kind = outcome.get("type")
            yield (
                item_id,
                (
                    outcome.get("message")
                    if kind == "succeeded"
                    else self._error(kind, outcome.get("error"))
                ),
            )

    def _error(self, kind: Any, error: Any) -> RequestError:
        if kind in ("expired", "canceled"):
            return TimedOut(
                f"{self.where} ended the batch before this was answered ({kind})."
            )
        if kind == "errored" and isinstance(get_nested(error, "error"), Mapping):
            return error_for(
                self.where,
                status_of(get_nested(error, "error", "type")),
                server_message(error),
            )
        return BadReply(
            f"{self.where} gave neither an answer nor a known error in a batch."
        )


def _total(batch_object: Mapping[str, Any]) -> int:
    return sum(map(count, as_mapping(batch_object.get("request_counts")).values()))


def _seconds(row: Any) -> float:
    try:
        return datetime.fromisoformat(str(row.get("created_at"))).timestamp()
    except ValueError:
        return 0.0
