"""Whether a request is sent again, and when: the one place that decides it.

| error | sent again |
|---|---|
| rate limited, server error, connection failed, timed out | up to `max_attempts` sendings in all, within the deadline |
| bad reply, empty reply | two more times: a model that keeps answering nonsense will go on doing so |
| authentication failed, rejected, anything else | never |

Between two sendings passes the server's own Retry-After, or else a random time up to 0.5, 1, 2, 4, ... 30 seconds
(exponential backoff with full jitter: Brooker, "Exponential Backoff And Jitter", AWS Architecture Blog, 2015).
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

from evalwright.core.errors import (
    AuthenticationFailed,
    BadReply,
    ConnectionFailed,
    EmptyReply,
    Failure,
    RequestError,
    TimedOut,
)
from evalwright.models.base import Pacing

BASE_SECONDS = 0.5
LONGEST_SECONDS = 30.0
RETRY_AFTER_JITTER = 0.25
"""Added to a Retry-After, as a random share of up to this many seconds: who waited together should not come together."""

BAD_REPLIES = 3
"""How often a request may be answered with something that is no answer."""


@dataclass(slots=True)
class Attempts:
    """The sendings of one request. Times in seconds of one monotonic clock; `started` is that of the first sending.

    moved: how many failed at one endpoint of a pool and went to another at once; they count for no attempt.
    """

    pacing: Pacing
    started: float
    sent: int = 0
    moved: int = 0
    bad_replies: int = 0
    last: RequestError | None = None

    def time_left(self, now: float) -> float:
        """Until the deadline."""
        return self.started + self.pacing.deadline - now

    def timeout(self, now: float) -> float:
        """What the next sending may take."""
        return min(self.pacing.timeout, self.time_left(now))

    def after(self, error: RequestError, now: float) -> float | Failure:
        """What follows from an error of the latest sending: seconds to wait before the next, or the final failure."""
        self.last = error
        if isinstance(error, BadReply | EmptyReply):
            self.bad_replies += 1
        if not error.retryable:
            return self.failure(error)
        if self.sent - self.moved >= self.pacing.max_attempts or self.bad_replies >= BAD_REPLIES:
            return self.failure(error, "given up")
        left = self.time_left(now)
        if error.retry_after is not None and error.retry_after > left:
            asks = f"the server says to wait {seconds_shown(error.retry_after)} s"
            return self.failure(error, f"{asks}, but the deadline leaves {max(left, 0):.0f} s")
        delay = delay_before(self.sent - self.moved + 1, error.retry_after)
        if delay >= left:
            return self.failure(error, f"the deadline of {self.pacing.deadline:g} s has passed")
        return delay

    def failure(self, error: RequestError, why: str = "") -> Failure:
        """The error as the final failure of the request, saying how often it was sent."""
        failure = error.as_failure(attempts=self.sent)
        if not why and self.sent <= 1:
            return failure
        times = "once" if self.sent == 1 else f"{self.sent} times"
        reason = f"; {why}" if why else ""
        return replace(failure, message=f"{failure.message} (sent {times}{reason})")


def seconds_shown(seconds: float) -> str:
    """A server's number of seconds, which may be absurd."""
    return f"{seconds:.0f}" if seconds < 1e9 else f"{seconds:.0e}"


def delay_before(attempt: int, retry_after: float | None = None) -> float:
    """Seconds to wait before sending for the `attempt`-th time (2 is the first repetition)."""
    if retry_after is not None:
        return max(retry_after, 0.0) + random.uniform(0, RETRY_AFTER_JITTER)
    return random.uniform(0, min(LONGEST_SECONDS, BASE_SECONDS * 2.0 ** (attempt - 2)))


class Breaker:
    """Stops a run against a model that has never once answered and never will.

    It opens after `REFUSED` sendings failed for the key's sake, or after `UNREACHED` sendings over at least
    `UNREACHED_SECONDS` reached no server; each in a row, and before any answer. A model that has answered once is never cut
    off.
    """

    REFUSED = 10
    UNREACHED = 50
    UNREACHED_SECONDS = 10.0

    def __init__(self, name: str) -> None:
        self.failure: Failure | None = None
        """Set while the breaker is open: why every request fails at once."""
        self._name = name
        self._trusted = False
        self._refused = 0
        self._unreached = 0
        self._since = 0.0

    def succeeded(self) -> None:
        """An answer came."""
        self._trusted = True
        self.failure = None

    def failed(self, error: RequestError, now: float) -> bool:
        """A sending failed; true if this opened the breaker."""
        if self._trusted or self.failure is not None:
            return False
        if isinstance(error, AuthenticationFailed):
            self._refused += 1
            self._unreached = 0
        elif isinstance(error, ConnectionFailed | TimedOut):
            self._refused = 0
            if self._unreached == 0:
                self._since = now
            self._unreached += 1
        else:
            self._refused = self._unreached = 0
            return False
        long_unreached = self._unreached >= self.UNREACHED and now - self._since >= self.UNREACHED_SECONDS
        if self._refused < self.REFUSED and not long_unreached:
            return False
        count = max(self._refused, self._unreached)
        self.failure = replace(
            error.as_failure(attempts=0),
            message=f"Not sent, because {self._name} never answered and {count} requests to it failed in a row: {error}",
        )
        return True
