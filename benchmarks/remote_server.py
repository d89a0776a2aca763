"""A chat server for measuring clients: log-normal latency, a capacity, 429s, and a token limit told
in headers.

    python remote_server.py --capacity 128 [--refuse-above] [--refuse-share 0.02]
        [--tokens-per-minute 600000]

Prints its port and runs until it is stopped. It is one asyncio protocol that looks for the end of a
request's header and for its Content-Length, and writes bytes that were made before: some 30
microseconds a request, so that the clients are what is measured. GET /counts tells what came and
what became of it; GET /reset forgets it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import json
import math
import random
import time
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

TOKENS = 9
"""Of one reply, as its usage says."""

_BODY = json.dumps(
    {
        "id": "chatcmpl-9f2c7a40d1",
        "object": "chat.completion",
        "created": 1760000000,
        "model": "measured",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "4", "refusal": None},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": {
            "prompt_tokens": TOKENS - 1,
            "completion_tokens": 1,
            "total_tokens": TOKENS,
            "prompt_tokens_details": {"cached_tokens": 0},
            "completion_tokens_details": {"reasoning_tokens": 0},
        },
        "system_fingerprint": "fp_0",
    }
).encode()
_REFUSAL = (
    b'{"error": {"message": "Too many requests", "type": "requests", "code":'
    b' "rate_limit_exceeded"}}'
)


def _reply(status: str, body: bytes, headers: str = "") -> bytes:
    return (
        f"HTTP/1.1 {status}\r\nContent-Type: application/json\r\nContent-Length:"
        f" {len(body)}\r\nServer: measured\r\nx-request-id:"
        f" req_0\r\nopenai-processing-ms: 200\r\n{headers}\r\n"
    ).encode() + body


@dataclass
class TokenLimit:
    """A bucket as OpenAI has it: refilled all the time, a minute's worth (or `burst` seconds'
    worth) at most.
    """

    per_minute: float
    burst: float = 60.0
    level: float = field(init=False)
    at: float = field(init=False)

    def __post_init__(self) -> None:
        self.most = self.per_minute * self.burst / 60
        self.level = self.most
        self.at = time.monotonic()

    def take(self, tokens: float) -> bool:
        """Whether so many tokens were there; they are gone then."""
        now = time.monotonic()
        self.level = min(self.most, self.level + (now - self.at) * self.per_minute / 60)
        self.at = now
        if self.level < tokens:
            return False
        self.level -= tokens
        return True

    def headers(self) -> str:
        """x-ratelimit-* of tokens."""
        full = (self.most - self.level) * 60 / self.per_minute
        minutes, seconds = divmod(full, 60)
        reset = (
            f"{math.ceil(full * 1000)}ms"
            if full < 1
            else f"{int(minutes)}m{seconds:.3f}s"
        )
        return (
            "x-ratelimit-limit-tokens:"
            f" {int(self.most)}\r\nx-ratelimit-remaining-tokens:"
            f" {int(self.level)}\r\nx-ratelimit-reset-tokens: {reset}\r\n"
        )


class Server:
    """What all connections share: the rules and the books."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        spread = options.sigma
        self.mu = math.log(options.latency) - spread**2 / 2 if options.latency else 0.0
        self.chance = random.Random(options.seed)
        self.limit = (
            TokenLimit(options.tokens_per_minute, options.burst)
            if options.tokens_per_minute
            else None
        )
        after = (
            f"Retry-After: {options.retry_after:g}\r\n" if options.retry_after else ""
        )
        self.refusal = _reply("429 Too Many Requests", _REFUSAL, after)
        self.good = _reply("200 OK", _BODY)
        self.in_flight = 0
        self.reset()

    def reset(self) -> None:
        """Forget what was counted."""
        self.received = self.answered = self.refused = self.most_in_flight = 0
        self.first = self.last = 0.0
        self.contents: Counter[bytes] = Counter()
        self.completed: Counter[bytes] = Counter()
        if self.limit is not None:
            self.limit = TokenLimit(self.limit.per_minute, self.limit.burst)

    def counts(self, books: bool) -> dict[str, Any]:
        """What came and what became of it; first and last are seconds on this server's clock."""
        books_by_name = {
            name: getattr(self, name)
            for name in (
                "received",
                "answered",
                "refused",
                "most_in_flight",
                "first",
                "last",
            )
        }
        books_by_name["cpu"] = time.process_time()
        if self.options.books and books:
            for name in ("contents", "completed"):
                books_by_name[name] = {
                    body.decode(): times for body, times in getattr(self, name).items()
                }
        return books_by_name

    def latency(self) -> float:
        """Seconds, log-normal with the given mean."""
        return (
            self.chance.lognormvariate(self.mu, self.options.sigma)
            if self.options.latency
            else 0.0
        )

    def refuses(self) -> bool:
        """Whether the request that has just come gets a 429."""
        options = self.options
        return (
            (options.refuse_above and self.in_flight >= options.capacity)
            or (
                options.refuse_share > 0 and self.chance.random() < options.refuse_share
            )
            or (self.limit is not None and not self.limit.take(TOKENS))
        )


class Connection(asyncio.Protocol):
    """One client's connection; one request at a time."""

    def __init__(self, server: Server, loop: asyncio.AbstractEventLoop) -> None:
        self.server = server
        self.loop = loop
        self.buffer = b""
        self.waiting: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def connection_lost(self, error: Exception | None) -> None:
        # What nobody waits for any more is dropped, as a provider would; it was received and never
        # answered.
        self.server.in_flight -= len(self.waiting)
        self.waiting.clear()

    def data_received(self, data: bytes) -> None:
        self.buffer = self.buffer + data if self.buffer else data
        while (end := self.buffer.find(b"\r\n\r\n")) >= 0:
            head = self.buffer[:end]
            place = head.lower().find(b"content-length:")
            length = int(head[place + 15 :].split(b"\r\n", 1)[0]) if place >= 0 else 0
            request_end = end + 4 + length
            if len(self.buffer) < request_end:
                return
            body = self.buffer[end + 4 : request_end]
            self.buffer = self.buffer[request_end:]
            self.request(head, body)

    def request(self, head: bytes, body: bytes) -> None:
        server = self.server
        if head.startswith(b"GET"):
            if head.startswith(b"GET /reset"):
                server.reset()
            counts = server.counts(books=b"?short" not in head.split(b"\r\n", 1)[0])
            self.transport.write(_reply("200 OK", json.dumps(counts).encode()))
            return
        server.received += 1
        if not server.first:
            server.first = time.monotonic()
        if server.options.books:
            server.contents[body] += 1
        if server.refuses():
            server.refused += 1
            self.transport.write(
                _reply("429 Too Many Requests", _REFUSAL, server.limit.headers())
                if server.limit
                else server.refusal
            )
            return
        server.in_flight += 1
        server.most_in_flight = max(server.most_in_flight, server.in_flight)
        self.waiting.append(body)
        self.loop.call_later(server.latency(), self.answer, body)

    def answer(self, body: bytes) -> None:
        if not self.waiting:
            return  # the client went away
        server = self.server
        self.waiting.remove(body)
        server.in_flight -= 1
        server.answered += 1
        server.last = time.monotonic()
        if server.options.books:
            server.completed[body] += 1
        self.transport.write(
            _reply("200 OK", _BODY, server.limit.headers())
            if server.limit
            else server.good
        )


async def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--latency", type=float, default=0.2, help="mean seconds")
    parser.add_argument(
        "--sigma", type=float, default=0.4, help="of the logarithm of the latency"
    )
    parser.add_argument("--capacity", type=int, default=1_000_000)
    parser.add_argument(
        "--refuse-above",
        action="store_true",
        help="429 for more than the capacity at once",
    )
    parser.add_argument(
        "--refuse-share", type=float, default=0.0, help="429 for this share, at random"
    )
    parser.add_argument(
        "--retry-after", type=float, default=0.0, help="seconds, told with a 429"
    )
    parser.add_argument("--tokens-per-minute", type=float, default=0.0)
    parser.add_argument(
        "--burst",
        type=float,
        default=60.0,
        help="seconds' worth of tokens that are kept",
    )
    parser.add_argument(
        "--books", action="store_true", help="count every content apart"
    )
    parser.add_argument("--seed", type=int, default=1)
    server = Server(parser.parse_args())
    loop = asyncio.get_running_loop()
    gc.freeze()
    listening = await loop.create_server(
        lambda: Connection(server, loop), "127.0.0.1", 0, backlog=4096
    )
    print(listening.sockets[0].getsockname()[1], flush=True)
    await listening.serve_forever()


if __name__ == "__main__":
    asyncio.run(main())
