"""Replicate: a prediction is made, and asked after until it has ended. Models have inputs, not messages.

`owner/name` is one of its official models, `owner/name:version` or a bare version hash any other. A prediction says where
it is to be asked after; only an address below the base URL is followed, because the key goes with it.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Any

from evalwright.core.errors import Overloaded, Rejected, RequestError, TimedOut
from evalwright.core.requests import Generate
from evalwright.core.responses import Response, Usage
from evalwright.models.remote.http import HttpClient, Reply
from evalwright.models.remote.http_faults import clean
from evalwright.models.remote.wire.format import (
    Settings,
    Wire,
    count,
    finished,
    merged,
    not_documented,
    sampling,
    system_and_turns,
)

FIRST_PAUSE, LONGEST_PAUSE, GROWTH = 0.25, 5.0, 1.5
"""Seconds between two questions after a prediction."""
CANCELLING = 2.0
"""Seconds that cancelling a prediction may take."""

_NAME = re.compile(r"(?P<model>\w[\w.-]*/\w[\w.-]*)?(?:(?(model):)(?P<version>[0-9a-f]{64}))?", re.ASCII)
_RUNNING = ("starting", "processing")
_ENDED_BADLY = ("failed", "canceled", "aborted")


def path(settings: Settings) -> str:
    """Where a prediction with this model is made."""
    model, version = _model(settings)
    return "/predictions" if version else f"/models/{model}/predictions"


def _model(settings: Settings) -> tuple[str, str]:
    """(owner/name, version), one of them "" where the other says enough. Raises Rejected for other names."""
    match = _NAME.fullmatch(settings.model)
    if not settings.model or match is None:
        raise Rejected(
            f"'{clean(settings.model, 80)}' is no model of {settings.where}: write owner/name, owner/name:version, or the "
            f"version's 64 hexadecimal digits."
        )
    return match["model"] or "", match["version"] or ""


def replicate_payload(request: Generate, settings: Settings) -> dict[str, Any]:
    """The body: one prompt and one system prompt. Raises Rejected for a conversation, which has no input."""
    system, turns = system_and_turns(request.prompt)
    if len(turns) != 1 or turns[0].role != "user":
        raise Rejected(
            f"The models of {settings.where} take one prompt and one system prompt, no conversation and no beginning of an "
            f"answer: ask with a single message of the user, or write the prompt as text."
        )
    told = sampling(request, settings)
    fields = {
        "system_prompt": system or None,
        settings.tokens_field: told.max_tokens,
        "temperature": told.temperature,
        "top_p": told.top_p,
        "seed": told.seed,
    }
    given = {name: value for name, value in fields.items() if value is not None}
    body: dict[str, Any] = {"input": {"prompt": turns[0].content, **given}}
    version = _model(settings)[1]
    if version:
        body["version"] = version
    return merged(body, settings.extra_body)


async def wait(client: HttpClient, reply: Reply, settings: Settings) -> Reply:
    """Ask after a prediction until it has ended, at most for the client's timeout. One that nobody waits for any more is
    cancelled.

    A question that failed for a passing reason is asked again, because a new prediction would cost again.
    """
    try:
        return await _ended(client, reply, settings)
    except (TimedOut, asyncio.CancelledError):
        with suppress(RequestError, TimeoutError):
            async with asyncio.timeout(CANCELLING):
                await client.post(_below(client, reply, "cancel", settings), {})
        raise


async def _ended(client: HttpClient, reply: Reply, settings: Settings) -> Reply:
    deadline = time.perf_counter() + client.timeout - reply.seconds
    started, pause = time.perf_counter() - reply.seconds, FIRST_PAUSE
    if _status(reply, settings) not in _RUNNING:
        return reply
    address = _below(client, reply, "get", settings)
    while _status(reply, settings) in _RUNNING:
        left = deadline - time.perf_counter()
        if left <= 0:
            raise TimedOut(f"{settings.where} did not end the prediction within {client.timeout:g} s.")
        await asyncio.sleep(min(pause, left))
        pause = min(LONGEST_PAUSE, pause * GROWTH)
        try:
            reply = await client.get(address)
        except RequestError as error:
            if not error.retryable:
                raise
            pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
    return replace(reply, seconds=time.perf_counter() - started)


def _status(reply: Reply, settings: Settings) -> str:
    status = reply.data.get("status") if isinstance(reply.data, Mapping) else None
    if status not in (*_RUNNING, *_ENDED_BADLY, "succeeded"):
        raise not_documented(settings, "a prediction with its status", reply.data)
    return str(status)


def _below(client: HttpClient, reply: Reply, name: str, settings: Settings) -> str:
    """The path below the base URL of one of a prediction's addresses. Raises Rejected for any other address."""
    urls = reply.data.get("urls")
    url = urls.get(name) if isinstance(urls, Mapping) else None
    if not isinstance(url, str):
        raise not_documented(settings, f"urls.{name}", reply.data)
    rest = url.removeprefix(client.base_url)
    if rest == url or not re.fullmatch(r"/predictions/[\w-]+(/cancel)?", rest):
        raise Rejected(
            f"{settings.where} sends us to another address to ask after the prediction ({clean(url, 100)}); it was not "
            f"followed, because the key would go with it."
        )
    return rest


def read_prediction(reply: Reply, request: Generate, settings: Settings) -> Response:
    """A Response from a prediction that has ended."""
    data, status = reply.data, _status(reply, settings)
    if status in _ENDED_BADLY:
        said = clean(str(data.get("error") or "it gave no reason"), 300)
        raise Overloaded(f"{settings.where} did not answer, the prediction has {_words(status)}: {said}")
    output = data.get("output")
    if isinstance(output, list) and all(isinstance(piece, str) for piece in output):
        output = "".join(output)
    if data.get("data_removed") or not (output is None or isinstance(output, str)):
        raise not_documented(settings, "output as text or a list of texts", data)
    usage = _usage(data.get("metrics"))
    most = sampling(request, settings).max_tokens
    return finished(
        output or "",
        "",
        "length" if most is not None and usage.output_tokens >= most else "stop",
        usage,
        request,
        settings,
        reply=reply,
        model=data.get("model"),
    )


def _words(status: str) -> str:
    return "failed" if status == "failed" else f"been {status}"


def _usage(metrics: Any) -> Usage:
    if not isinstance(metrics, Mapping):
        return Usage()
    return Usage(count(metrics.get("input_token_count")), count(metrics.get("output_token_count")))


WIRE = Wire(
    name="replicate",
    path=path,
    payload=replicate_payload,
    read=read_prediction,
    wait=wait,
    # Some models have an input for stop strings and some have not, so the answer is cut here, where it is exact.
    lacks=frozenset({"stop"}),
)
