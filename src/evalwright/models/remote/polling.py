"""Polls a job until it has ended, and cancels it if its answer is no longer needed."""

from __future__ import annotations

import asyncio
import time
from contextlib import suppress

from evalwright.core.errors import RequestError, TimedOut
from evalwright.models.remote.exchange import Polling, Reply
from evalwright.models.remote.http import HttpClient
from evalwright.models.remote.wire.format import Settings

FIRST_PAUSE = 0.25
LONGEST_PAUSE = 5.0
GROWTH = 1.5
"""Seconds between two polls, at first and at most, and the factor by which they grow."""
CANCELLING = 2.0
"""Most seconds that cancelling a job may take."""


async def follow_job(
    client: HttpClient, polling: Polling, reply: Reply, settings: Settings
) -> Reply:
    """Return the last reply of a job, polled for at most the client's timeout.

    A poll that fails temporarily is repeated, because a new job would cost again.

    Raises:
        TimedOut: the job did not end in time.
        RequestError: a poll failed that cannot be repeated.
    """
    try:
        return await _ended(client, polling, reply, settings)
    except (TimedOut, asyncio.CancelledError):
        with suppress(RequestError, TimeoutError):
            async with asyncio.timeout(CANCELLING):
                await client.send(polling.cancel(reply, settings))
        raise


async def _ended(
    client: HttpClient, polling: Polling, reply: Reply, settings: Settings
) -> Reply:
    if polling.ended(reply, settings):
        return reply
    started = time.perf_counter() - reply.seconds
    pause = FIRST_PAUSE
    call = polling.look(reply, settings)
    while not polling.ended(reply, settings):
        left = started + client.timeout - time.perf_counter()
        if left <= 0:
            raise TimedOut(
                f"{settings.where} did not end the job within {client.timeout:g} s."
            )
        await asyncio.sleep(min(pause, left))
        pause = min(LONGEST_PAUSE, pause * GROWTH)
        try:
            reply = await client.send(call)
        except RequestError as error:
            if not error.retryable:
                error.taken = True  # the job was created, whatever becomes of it
                raise
            pause = max(pause, min(error.retry_after or 0.0, LONGEST_PAUSE))
    return reply._replace(seconds=time.perf_counter() - started)
