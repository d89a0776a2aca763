"""The test server is itself tested: a lenient or uneven server would make other tests prove nothing."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from typing import Any

import aiohttp
import pytest

from support.openai_faults import Faults, rules
from support.openai_limits import Limits
from support.openai_server import OpenAIServer, content_of
from support.wire_schemas import InvalidRequest, validate

CHAT: dict[str, Any] = {"model": "m", "messages": [{"role": "user", "content": "hello"}]}
TEXT: dict[str, Any] = {"model": "m", "prompt": "hello"}


@pytest.mark.parametrize(
    ("interface", "body", "param"),
    [
        ("chat", [], None),
        ("chat", {"model": "m"}, "messages"),
        ("chat", {"messages": CHAT["messages"]}, "model"),
        ("chat", {**CHAT, "promt": "x"}, "promt"),
        ("chat", {**CHAT, "messages": [{"role": "model", "content": "x"}]}, "messages"),
        ("chat", {**CHAT, "messages": [{"role": "user", "text": "x"}]}, "messages"),
        ("chat", {**CHAT, "temperature": True}, "temperature"),
        ("chat", {**CHAT, "temperature": 2.5}, "temperature"),
        ("chat", {**CHAT, "max_tokens": -1}, "max_tokens"),
        ("chat", {**CHAT, "max_tokens": 1, "max_completion_tokens": 1}, "max_tokens"),
        ("chat", {**CHAT, "stop": ["a", "b", "c", "d", "e"]}, "stop"),
        ("chat", {**CHAT, "stream": 1}, "stream"),
        ("chat", {**CHAT, "stream": True, "stream_options": {"usage": True}}, "stream_options"),
        ("chat", {**CHAT, "stream_options": {"include_usage": True}}, "stream_options"),
        ("completions", {**TEXT, "messages": []}, "messages"),
        ("completions", {**TEXT, "prompt": ["a", "b"]}, "prompt"),
        ("completions", {**TEXT, "logprobs": 6}, "logprobs"),
        ("completions", {**TEXT, "max_completion_tokens": 1}, "max_completion_tokens"),
    ],
)
def test_requests_outside_the_schema_are_refused(interface: str, body: Any, param: str | None) -> None:
    with pytest.raises(InvalidRequest) as caught:
        validate(interface, body)
    error = caught.value.body["error"]
    assert (error["param"], error["type"]) == (param, "invalid_request_error")


async def post(server: OpenAIServer, body: Any, path: str = "/chat/completions") -> tuple[int, Any]:
    async with aiohttp.ClientSession() as session, session.post(server.url + path, json=body) as response:
        return response.status, await response.json()


def test_contents_are_counted() -> None:
    async def go() -> None:
        faults = Faults(script=rules('[{"match": "bad", "fault": "500", "times": 1}]'))
        async with OpenAIServer(faults=faults) as server:
            bad = {**CHAT, "messages": [{"role": "user", "content": "bad"}]}
            statuses = [(await post(server, body))[0] for body in (CHAT, CHAT, bad, bad, {**CHAT, "x": 1})]
            assert statuses == [200, 200, 500, 200, 400]
            async with aiohttp.ClientSession() as session:
                base = server.url.removesuffix("/v1")
                async with session.get(base + "/__counts") as response:
                    counts = await response.json()
                async with session.get(base + "/__log") as response:
                    log = await response.json()
                async with session.post(base + "/__reset"):
                    pass
                async with session.get(server.url + "/models") as response:
                    assert (await response.json())["data"][0]["id"] == "test-model"
            path = "/v1/chat/completions"
            assert (
                counts["received"][content_of(path, CHAT)] == counts["completed"][content_of(path, CHAT)] == 2
            )
            assert (
                counts["received"][content_of(path, bad)],
                counts["completed"][content_of(path, bad)],
            ) == (2, 1)
            assert [entry["outcome"] for entry in log] == ["200", "200", "500", "200", "400"]
            assert not server.received

    asyncio.run(go())


def test_more_at_once_than_allowed_are_refused() -> None:
    async def go() -> None:
        async with OpenAIServer(concurrency=3, latency=0.1) as server:
            found = await asyncio.gather(*(post(server, CHAT) for _ in range(8)))
            assert sorted(status for status, _ in found) == [200] * 3 + [429] * 5
            assert server.refused == 5

    asyncio.run(go())


def test_buckets_refill() -> None:
    limits = Limits(requests_per_minute=600, burst_seconds=0.5)
    assert [limits.take(0) for _ in range(5)] == [0] * 5
    wait = limits.take(0)
    assert 0 < wait <= 0.1
    time.sleep(wait + 0.005)
    assert limits.take(0) == 0
    assert limits.headers()["x-ratelimit-limit-requests"] == "600"
    tokens = Limits(tokens_per_minute=100)
    assert tokens.take(90) == 0
    assert tokens.take(20) == pytest.approx(6, abs=0.1)
    assert tokens.headers()["x-ratelimit-remaining-tokens"] == "10"


def test_random_faults_are_fixed_by_the_seed_and_as_frequent_as_asked() -> None:
    contents = [str(number) for number in range(4000)]
    first = [Faults(0.2, seed=1).choose(content, {}, 0) for content in contents]
    again = [Faults(0.2, seed=1).choose(content, {}, 0) for content in reversed(contents)][::-1]
    assert first == again != [Faults(0.2, seed=2).choose(content, {}, 0) for content in contents]
    counts = Counter(first)
    assert 3100 < counts.pop(None) < 3300
    assert len(counts) == 8
    assert min(counts.values()) > 60
    assert all(Faults(1.0, most=2).choose(content, {}, 2) is None for content in contents[:50])
