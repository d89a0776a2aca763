"""The batch interfaces one by one: hand over, look, fetch, and find again what was handed over
without a reply.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from evalwright.core.errors import (
    BadReply,
    Overloaded,
    RateLimited,
    Rejected,
    RequestError,
    TimedOut,
)
from evalwright.models.remote.batch import batch_api
from evalwright.models.remote.batch.interface import BatchApi, Item, LostSubmission
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.wire.format import Settings
from support.batch_server import BatchServer, serving_batches

KINDS = ("openai", "anthropic", "gemini")
SETTINGS = Settings("m", "host")
T = TypeVar("T")


def body_of(kind: str, text: str) -> dict[str, Any]:
    if kind == "gemini":
        return {"contents": [{"role": "user", "parts": [{"text": text}]}]}
    body: dict[str, Any] = {
        "model": "m",
        "messages": [{"role": "user", "content": text}],
    }
    return {**body, "max_tokens": 9} if kind == "anthropic" else body


def items_of(kind: str, n: int) -> list[Item]:
    return [
        Item(f"{place:x}item", body_of(kind, f"question {place}")) for place in range(n)
    ]


def with_client(server: BatchServer, work: Callable[[BatchApi], Awaitable[T]]) -> T:
    async def run() -> T:
        client = HttpClient(server.url)
        try:
            return await work(
                batch_api(server.kind)(client, SETTINGS, "/chat/completions")
            )
        finally:
            await client.close()

    return asyncio.run(run())


async def fetched(api: BatchApi, items: list[Item]) -> dict[str, Any]:
    batch = await api.submit(items, "evalwright-1")
    while not (await api.state(batch)).ended:
        await asyncio.sleep(0.02)
    order = [item.id for item in items]
    return {item: data async for item, data in api.answers(batch, order)}


@pytest.mark.parametrize(
    ("kind", "fate", "error"),
    [
        *((kind, "error:429", RateLimited) for kind in KINDS),
        *((kind, "error:500", Overloaded) for kind in KINDS),
        *((kind, "error:400", Rejected) for kind in KINDS),
        ("openai", "expired", TimedOut),
        ("anthropic", "expired", TimedOut),
        ("gemini", "missing", BadReply),
    ],
)
def test_what_failed_is_an_error_of_its_kind(
    kind: str, fate: str, error: type[RequestError]
) -> None:
    with serving_batches(
        kind, fate=lambda item, asked: fate if item.startswith("1") else "ok"
    ) as server:
        found = with_client(server, lambda api: fetched(api, items_of(kind, 3)))
    assert isinstance(found["1item"], error)
    assert not isinstance(found["0item"], RequestError) and not isinstance(
        found["2item"], RequestError
    )


@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_line_is_no_reason_to_lose_the_others(kind: str) -> None:
    with serving_batches(
        kind, fate=lambda item, asked: "garbled" if item[0] == "1" else "ok"
    ) as server:
        found = with_client(server, lambda api: fetched(api, items_of(kind, 3)))
    assert set(found) == {"0item", "", "2item"}


@pytest.mark.parametrize("kind", KINDS)
def test_a_batch_without_a_reply_is_found_again(kind: str) -> None:
    async def work(api: BatchApi) -> tuple[str | None, ...]:
        since = time.time()
        for place in range(4):
            await api.submit(items_of(kind, 2), f"other-{place}")
        with pytest.raises(RequestError):
            server.lose = 1
            await api.submit(items_of(kind, 3), "mine")
        for place in range(4):
            await api.submit(items_of(kind, 2), f"another-{place}")
        return (
            await api.find(LostSubmission("mine", since, 3, ())),
            await api.find(LostSubmission("nobody's", since, 7, ())),
        )

    with serving_batches(kind, page=3) as server:
        mine, nobodys = with_client(server, work)
        assert (
            mine is not None
            and len(server.batches[mine].bodies) == 3
            and nobodys is None
        )


def test_an_anthropic_batch_is_told_from_known_ones_and_by_its_moment() -> None:
    async def work(api: BatchApi) -> tuple[list[str], list[str | None]]:
        made = []
        since = []
        for _ in range(3):
            since.append(time.time())
            made.append(await api.submit(items_of("anthropic", 3), ""))
            await asyncio.sleep(
                0.3
            )  # longer than a connection rests before it is first used again
        found = [await api.find(LostSubmission("", moment, 3, ())) for moment in since]
        return made, [*found, await api.find(LostSubmission("", since[1], 3, made[:2]))]

    with serving_batches("anthropic") as server:
        made, found = with_client(server, work)
    assert found == [*made, made[2]]
