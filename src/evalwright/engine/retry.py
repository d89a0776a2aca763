"""Whether a request is sent again, and when: the one place that decides it.

| error | sent again |
|---|---|
| rate limited, server error, connection failed, timed out | up to `max_attempts` sendings in all,
within the deadline |
| bad reply, wrong model | two more times: a model that keeps answering nonsense will go on doing so
|
| empty reply | once more; then it is what the model said |
| authentication failed, rejected, prompt too long, still writing, anything else | never |

Between two sendings passes the server's own Retry-After, or else a random time up to 0.5, 1, 2, 4,
... 30 seconds (exponential backoff with full jitter: Brooker, "Exponential Backoff And Jitter", AWS
Architecture Blog, 2015).
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
    WrongModel,
)
from evalwright.models.base import Pacing

BASE_SECONDS = 0.5
LONGEST_SECONDS = 30.0
RETRY_AFTER_JITTER = 0.25
"""Added to a Retry-After, as a random share of up to this many seconds: who waited together should
not come together.
"""

BAD_REPLIES = 3
"""How often a request may be answered with something that is no answer."""
EMPTY_REPLIES = 2
"""How often it may be answered with nothing."""


@dataclass(slots=True)
class Attempts:
    """The sendings of one request.

    Times in seconds of one monotonic clock; `started` is that of the first sending.

    moved: how many failed at one endpoint of a pool and went to another at once; they count for no
    attempt. bad_replies: how many were answered with what is no answer; empty_replies: how many of
    these with nothing.
    """

    pacing: Pacing
    started: float
    sent: int = 0
    moved: int = 0
    bad_replies: int = 0
    empty_replies: int = 0
    last: RequestError | None = None

    def time_left(self, now: float) -> float:
        """Until the deadline."""
        return self.started + self.pacing.deadline - now

    def timeout(self, now: float) -> float:
        """Seconds that the next sending may take."""
        return min(self.pacing.timeout, self.time_left(now))

    def after(self, error: RequestError, now: float) -> float | Failure:
        """What follows from an error of the latest sending: seconds to wait before the next, or the
        final failure.
        """
        self.last = error
        if isinstance(error, BadReply | EmptyReply | WrongModel):
            self.bad_replies += 1
        if isinstance(error, EmptyReply):
            self.empty_replies += 1
        if not error.retryable:
            return self.failure(error)
        out_of_attempts = self.sent - self.moved >= self.pacing.max_attempts
        if (
            out_of_attempts
            or self.bad_replies >= BAD_REPLIES
            or self.empty_replies >= EMPTY_REPLIES
        ):
            return self.failure(error, "given up")
        left = self.time_left(now)
        if error.retry_after is not None and error.retry_after > left:
            asks = f"the server says to wait {seconds_shown(error.retry_after)} s"
            return self.failure(
                error, f"{asks}, but the deadline leaves {max(left, 0):.0f} s"
            )
        delay = delay_before(self.sent - self.moved + 1, error.retry_after)
        if delay >= left:
            return self.failure(
                error, f"the deadline of {self.pacing.deadline:g} s has passed"
            )
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
    """What the failures in a row of one endpoint mean: that nothing more is sent, or that others of
    its pool take its requests.

    It opens for an endpoint that has never once answered and never will: after `REFUSED` failures
    for the key's sake, `UNREACHED` in which nothing listened, `SILENT` in which a server took the
    request and said nothing, or `FOREIGN` replies of another model. One that has answered once is
    never cut off; it can be ill: `SURE` failures say so that let no request in, `SICK` others. Each
    is a number of failures, and the seconds over which they must have come.
    """

    REFUSED = (10, 0.0)
    UNREACHED = (2, 10.0)
    SILENT = (50, 10.0)
    FOREIGN = (3, 0.0)
    SURE = (3, 0.0)
    SICK = (10, 5.0)

    def __init__(self, name: str) -> None:
        self.failure: Failure | None = None
        """Set while the breaker is open: why every request fails at once."""
        self.proven = False
        """Whether an answer ever came."""
        self._name = name
        self._rows: dict[str, tuple[int, float]] = {}
        """By what fails: how often in a row, and when it began."""

    def succeeded(self) -> None:
        """An answer came."""
        self.proven = True
        self.failure = None

    def well(self) -> None:
        """It is not ill any more."""
        self._rows.pop("ill", None)

    def failed(self, error: RequestError, now: float) -> bool:
        """A sending failed; true if this opened the breaker."""
        if self.proven or self.failure is not None:
            return False
        rows = {
            "refused": (isinstance(error, AuthenticationFailed), self.REFUSED),
            "unreached": (is_unreached(error), self.UNREACHED),
            "silent": (isinstance(error, ConnectionFailed | TimedOut), self.SILENT),
            "foreign": (isinstance(error, WrongModel), self.FOREIGN),
        }
        opened = [
            name
            for name, (goes_on, limit) in rows.items()
            if self._row(name, goes_on, limit, now)
        ]
        if not opened:
            return False
        as_itself = " as itself" if "foreign" in opened else ""
        hint = (
            " Start the server, or correct its address."
            if "unreached" in opened
            else ""
        )
        self.failure = replace(
            error.as_failure(attempts=0),
            message=(
                f"Given up, because {self._name} never answered{as_itself} and"
                f" {self._rows[opened[0]][0]} requests to it failed in a row:"
                f" {error}{hint}"
            ),
        )
        return True

    def is_first_unreached(self, error: RequestError) -> bool:
        """Whether this is the first sign that nothing may listen there."""
        return (
            not self.proven and is_unreached(error) and self._rows["unreached"][0] == 1
        )

    def is_ill(self, error: RequestError, now: float, *, at_fault: bool) -> bool:
        """Whether the endpoint is ill by now. at_fault: it may be, and not the request, which else
        it took.
        """
        return self._row(
            "ill", at_fault, self.SURE if lets_nothing_in(error) else self.SICK, now
        )

    def _row(
        self, what: str, goes_on: bool, limit: tuple[int, float], now: float
    ) -> bool:
        if not goes_on:
            self._rows.pop(what, None)
            return False
        count, since = self._rows.get(what, (0, now))
        self._rows[what] = (count + 1, since)
        return count + 1 >= limit[0] and now - since >= limit[1]


def is_unreached(error: RequestError) -> bool:
    """Whether no connection was made, and one may be made later."""
    return (
        isinstance(error, ConnectionFailed | TimedOut)
        and error.retryable
        and not error.taken
    )


def lets_nothing_in(error: RequestError) -> bool:
    """Whether no connection is made, the key is refused, or the model is not there (another one may
    be).
    """
    return (
        isinstance(error, AuthenticationFailed | ConnectionFailed | WrongModel)
        or error.status == 404
    )
