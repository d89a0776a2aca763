"""Whether a request is sent again, and when: the one place that decides it.

- rate limited, server error, connection failed, timed out: up to `max_attempts` sendings in all,
  within the deadline
- bad reply, wrong model: two more times: a model that keeps answering nonsense will go on doing so
- empty reply: once more; then it is what the model said
- authentication failed, rejected, prompt too long, still writing, anything else: never

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
from evalwright.models.model_interface import Pacing

BASE_BACKOFF_SECONDS = 0.5
MAX_BACKOFF_SECONDS = 30.0
RETRY_AFTER_JITTER_SECONDS = 0.25
"""Most random seconds added to a Retry-After, so that waiting requests do not all return at once.
"""

MAX_BAD_REPLIES = 3
"""Number of replies without a usable answer after which a request fails."""
MAX_EMPTY_REPLIES = 2
"""Number of empty replies after which a request fails."""


@dataclass(slots=True)
class Attempts:
    """The sendings of one request, with times in seconds of one monotonic clock.

    Attributes:
        pacing: the model's limits.
        started: when the request was first sent.
        sent: number of sendings.
        moved: how many failed at one endpoint of a pool and went to another at once; they do not
            count as attempts.
        bad_replies: how many replies had no usable answer.
        empty_replies: how many of these were empty.
        last: the latest error.
    """

    pacing: Pacing
    started: float
    sent: int = 0
    moved: int = 0
    bad_replies: int = 0
    empty_replies: int = 0
    last: RequestError | None = None

    def time_left(self, now: float) -> float:
        """Return the seconds until the deadline."""
        return self.started + self.pacing.deadline - now

    def timeout(self, now: float) -> float:
        """Return the seconds that the next sending may take."""
        return min(self.pacing.timeout, self.time_left(now))

    def after(self, error: RequestError, now: float) -> float | Failure:
        """Decide after an error: return the seconds to the next sending, or the final failure."""
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
            or self.bad_replies >= MAX_BAD_REPLIES
            or self.empty_replies >= MAX_EMPTY_REPLIES
        ):
            return self.failure(error, "given up")
        left = self.time_left(now)
        if error.retry_after is not None and error.retry_after > left:
            asks = f"the server says to wait {format_seconds(error.retry_after)} s"
            return self.failure(
                error, f"{asks}, but the deadline leaves {max(left, 0):.0f} s"
            )
        delay = backoff_seconds(self.sent - self.moved + 1, error.retry_after)
        if delay >= left:
            return self.failure(
                error, f"the deadline of {self.pacing.deadline:g} s has passed"
            )
        return delay

    def failure(self, error: RequestError, why: str = "") -> Failure:
        """Make the request's final failure from an error, with the number of sendings."""
        failure = error.as_failure(attempts=self.sent)
        if not why and self.sent <= 1:
            return failure
        times = "once" if self.sent == 1 else f"{self.sent} times"
        reason = f"; {why}" if why else ""
        return replace(failure, message=f"{failure.message} (sent {times}{reason})")


def format_seconds(seconds: float) -> str:
    """Format a number of seconds that a server stated, which may be absurdly large."""
    return f"{seconds:.0f}" if seconds < 1e9 else f"{seconds:.0e}"


def backoff_seconds(attempt: int, retry_after: float | None = None) -> float:
    """Return the seconds to wait before the `attempt`-th sending (2 is the first retry)."""
    if retry_after is not None:
        return max(retry_after, 0.0) + random.uniform(0, RETRY_AFTER_JITTER_SECONDS)
    return random.uniform(
        0, min(MAX_BACKOFF_SECONDS, BASE_BACKOFF_SECONDS * 2.0 ** (attempt - 2))
    )


class Breaker:
    """Decides from an endpoint's consecutive failures whether to give it up or prefer its replicas.

    It opens for an endpoint that has never answered and never will: after `REFUSED` failures
    because of the key, `UNREACHED` failures to connect, `SILENT` in which a server took the request
    and did not answer, or `FOREIGN` replies of another model. An endpoint that has answered once is
    never given up, but it can be set aside as ill: after `CLOSED` failures that let no request in,
    or `FAULTY` others. Each constant is a number of failures, and the least seconds from the first
    to the last of them.
    """

    REFUSED = (10, 0.0)
    UNREACHED = (2, 10.0)
    SILENT = (50, 10.0)
    FOREIGN = (3, 0.0)
    CLOSED = (3, 0.0)
    FAULTY = (10, 5.0)

    def __init__(self, name: str) -> None:
        self.failure: Failure | None = None
        """Set while the breaker is open: why every request fails at once."""
        self.proven = False
        """Whether the endpoint has ever answered."""
        self._name = name
        self._rows: dict[str, tuple[int, float]] = {}
        """By kind of failure: how many in a row, and when the first came."""

    def succeeded(self) -> None:
        """Note an answer."""
        self.proven = True
        self.failure = None

    def recovered(self) -> None:
        """Note that the endpoint is no longer ill."""
        self._rows.pop("ill", None)

    def failed(self, error: RequestError, now: float) -> bool:
        """Note a failed sending; return whether it opened the breaker."""
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
        """Return whether this is the first sign that nothing may be listening at the address."""
        return (
            not self.proven and is_unreached(error) and self._rows["unreached"][0] == 1
        )

    def is_ill(self, error: RequestError, now: float, *, at_fault: bool) -> bool:
        """Return whether the endpoint is ill by now.

        `at_fault` says that the endpoint may be at fault, not the request.
        """
        return self._row(
            "ill",
            at_fault,
            self.CLOSED if is_closed_endpoint(error) else self.FAULTY,
            now,
        )

    def _row(
        self, cause: str, goes_on: bool, limit: tuple[int, float], now: float
    ) -> bool:
        if not goes_on:
            self._rows.pop(cause, None)
            return False
        count, since = self._rows.get(cause, (0, now))
        self._rows[cause] = (count + 1, since)
        return count + 1 >= limit[0] and now - since >= limit[1]


def is_unreached(error: RequestError) -> bool:
    """Return whether no connection was made, but one may be made later."""
    return (
        isinstance(error, ConnectionFailed | TimedOut)
        and error.retryable
        and not error.taken
    )


def is_closed_endpoint(error: RequestError) -> bool:
    """Return whether an endpoint takes no request: no connection, key refused, or no such model."""
    return (
        isinstance(error, AuthenticationFailed | ConnectionFailed | WrongModel)
        or error.status == 404
    )
