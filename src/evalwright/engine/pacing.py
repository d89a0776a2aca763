"""How many requests a remote model may have in flight at once, and when the next may be sent.

There is one pacer for each endpoint. The number in flight starts at `Pacing.start_concurrency`
and grows by one with every answer until the provider first refuses. Then nothing is sent for a
moment: what is still in flight when all refusals are in is what the provider accepts at once.
Later refusals cut the number, a little after a long quiet time and deeply when they follow each
other; it climbs quickly to just below where it was cut, and probes further so seldom that
hardly anything is refused. A few refusals among many answers, which no pace would avoid, do not
slow it down.

A Retry-After pauses all requests; announced rate limits of requests and tokens are respected
before they are exhausted. A Retry-After of more than `_BELIEVED` seconds does not pause the
others for that long: one request at a time probes, at growing gaps, and any answer ends the
probing. The queue of requests waiting for a permit is in `sending.py`.
"""

from __future__ import annotations

import asyncio
import math
import random
from dataclasses import dataclass

from evalwright.core.errors import (
    ConnectionFailed,
    Overloaded,
    RateLimited,
    RequestError,
    TimedOut,
)
from evalwright.core.responses import RateLimits, Response
from evalwright.engine.rate_limit import Moment, RateLimit
from evalwright.engine.retry import BASE_BACKOFF_SECONDS, MAX_BACKOFF_SECONDS
from evalwright.models.model_interface import Pacing

_GENTLE_CUT = 0.97
_CUT = 0.85
_DEEP_CUT = 0.5
# Up to this share of recent replies, refusals without a Retry-After are not taken for a limit.
_TOLERATED = 0.05
# Replies that count as recent: this many, or two rounds of all that is in flight if that is more.
_LEAST_LOOKED_BACK = 40.0
# After a burst of refusals, what is still in flight is taken for the provider's limit if it is at
# least this share of what was in flight before.
_LET_THROUGH = 0.1
# Share of a round trip for which refusals of the same burst may still come in after the first one.
_SETTLED = 0.25
# The next probe above a known ceiling comes after this many times the cost of the last one (a round
# trip, or the Retry-After).
_PATIENCE = 20.0
# Share of the way back to the last ceiling that one round trip covers.
_RECOVERY = 0.25
_PROBE = 0.005
# Share of recent replies from which server errors, timeouts and broken connections are taken for
# overload.
_TROUBLED = 0.2
# Least number in flight while requests fail for reasons other than a limit.
_LEAST_IN_TROUBLE = 4.0
# Requests sent at once before any reply has come; the number doubles every `_DOUBLING` seconds. The
# first reply may announce small limits, and refusals come fast even where answers do not.
_OPENING = 4
_DOUBLING = 0.1
_PAUSE_JITTER = 0.1
_FIRST_ROUND_TRIP = 0.2
_BELIEVED = 120.0
# Most seconds between two probes. If probing goes on for longer than the deadline, the waiting
# requests fail too.
_LONGEST_PROBE_GAP = 60.0
_LONGEST_GAP = 0.05


@dataclass(slots=True)
class Permit:
    """The right to send one request.

    Attributes:
        number: its position among all requests sent.
        sent_at: when the request was sent.
        tokens: tokens that the request is expected to use.
    """

    number: int
    sent_at: float
    tokens: float


class Pacer:
    """Decides when a request may be sent, and learns from the outcome of each.

    Belongs to one event loop; costs a few microseconds per request.
    """

    def __init__(self, pacing: Pacing, loop: asyncio.AbstractEventLoop) -> None:
        self.limit = float(
            max(1, min(pacing.start_concurrency, pacing.max_concurrency))
        )
        self.in_flight = 0
        self.requests = RateLimit()
        self.tokens = RateLimit()
        self._user_limit = (
            RateLimit.fixed(pacing.requests_per_minute)
            if pacing.requests_per_minute
            else RateLimit()
        )
        self._pacing = pacing
        self._loop = loop
        self._paused_until = 0.0
        self._refused_since = self._refused_at = self._probed_at = 0.0
        self._probes = 0
        self._hopeless_why = ""
        self._ramp = 0
        self._next_send = 0.0
        self._slow_start = True
        self._ceiling = float("inf")
        self._cut_at = -1.0
        self._answers_since_cut = 0
        self._answerless_cuts = 0
        self._trouble = 0.0
        self._refused = 0.0
        self._settling_until = 0.0
        self._used_at_cut = 0.0
        self._probe_from = 0.0
        self._round_trip = _FIRST_ROUND_TRIP
        self._sent = 0
        self._opened_at = 0.0
        self._heard = not pacing.careful
        self._newest = 0
        self._tokens_each: float | None = None

    @property
    def load(self) -> float:
        """Requests in flight, as a share of the allowed number."""
        return self.in_flight / self._width()

    @property
    def hopeless(self) -> RateLimited | None:
        """Return the error of all waiting requests if only refusals came for a whole deadline."""
        if not self._hopeless_why:
            return None
        return RateLimited(
            f"{self._hopeless_why} (it says so since"
            f" {self._loop.time() - self._refused_since:.0f} s, longer than the"
            f" deadline of {self._pacing.deadline:g} s)",
            status=429,
        )

    def wait(self, size: float, now: float) -> float:
        """Return the seconds until a request may be sent; 0 for now, inf if one has to end first.

        `size` is a first guess of its tokens, used until answers have shown how many they take.
        """
        return (
            math.inf
            if self.in_flight >= self._width()
            else max(0.0, self._delay(self._tokens(size), now))
        )

    def admit(self, size: float, now: float) -> Permit:
        """Issue the permit for a request that may be sent now."""
        tokens = self._tokens(size)
        if not self._sent:
            self._opened_at = now
        self.in_flight += 1
        self._sent += 1
        self.requests.spend(1)
        self._user_limit.spend(1)
        self.tokens.spend(tokens)
        if self._ramp > 0:
            self._ramp -= 1
            self._next_send = now + min(self._round_trip / self.limit, _LONGEST_GAP)
        return Permit(self._sent, now, tokens)

    def answered(self, permit: Permit, response: Response) -> None:
        """Learn from a request that was answered."""
        now = self._loop.time()
        self._heard = True
        self._round_trip += 0.1 * (now - permit.sent_at - self._round_trip)
        self._trouble *= 0.95
        self._refused_since = 0.0
        self._hopeless_why = ""
        if self._probes:
            self._probes = 0
            self._paused_until = now
        self._refused -= self._refused * self._weight()
        self._answers_since_cut += 1
        if self._settling_until:
            self._settle(now)
        used = response.usage.input_tokens + response.usage.output_tokens
        if used:
            self._tokens_each = (
                used
                if self._tokens_each is None
                else 0.95 * self._tokens_each + 0.05 * used
            )
        self._grow(now)
        self._leave(permit, response.rate_limits, now)

    def failed(self, permit: Permit, error: RequestError) -> None:
        """Learn from a request that failed: slow down and pause as the error demands."""
        now = self._loop.time()
        self._heard = True
        if isinstance(error, RateLimited):
            self._refused += (1 - self._refused) * self._weight()
            limited = self._refused > _TOLERATED or error.retry_after is not None
            # An exhausted rate limit that was announced does not depend on how many are in flight.
            if limited and not _is_exhausted(error.rate_limits):
                self._cut(permit, now, pause=True, cost=error.retry_after or 0.0)
        elif isinstance(error, (Overloaded, ConnectionFailed, TimedOut)):
            self._trouble = 0.95 * self._trouble + 0.05
            if self._trouble > _TROUBLED or error.status in (503, 529):
                # Each request backs off by itself; pausing the others too would let a few that
                # always fail starve those that would be answered.
                self._cut(permit, now, pause=False, cost=0.0)
        else:
            # The provider accepted the request, whatever became of it then.
            self._answers_since_cut += 1
        if error.retry_after is not None and error.retryable:
            self._hold_back(error.retry_after, permit, now)
        if isinstance(error, RateLimited) or (
            error.retry_after is not None and error.retryable
        ):
            self._note_refusal(error, now)
        self._leave(permit, error.rate_limits, now)

    def abandon(self, permit: Permit) -> None:
        """End a permit without a reply to learn from."""
        self._leave(permit, None, self._loop.time())

    def _tokens(self, size: float) -> float:
        return size if self._tokens_each is None else self._tokens_each

    def _leave(self, permit: Permit, limits: RateLimits | None, now: float) -> None:
        self.in_flight -= 1
        # A reply that arrives after that of a later request has outdated limits.
        if limits is not None and permit.number > self._newest:
            self._newest = permit.number
            when = Moment(permit.sent_at, now, self._round_trip)
            later = self._sent - permit.number
            # Requests are counted when they come in, so what was sent later is not yet counted in
            # this reply. Tokens may be counted only when the answer is complete, so all that is in
            # flight may be uncounted too.
            announced = (
                limits.limit_requests,
                limits.remaining_requests,
                limits.reset_requests,
            )
            self.requests.observe(
                *announced, when, unseen=later, counted_at=permit.sent_at
            )
            announced = (
                limits.limit_tokens,
                limits.remaining_tokens,
                limits.reset_tokens,
            )
            unseen = max(self.in_flight, later) * (self._tokens_each or permit.tokens)
            self.tokens.observe(*announced, when, unseen=unseen, counted_at=now)

    def _delay(self, tokens: float, now: float) -> float:
        pause = max(self._paused_until, self._next_send, self._settling_until) - now
        if not self._heard and self._sent >= _OPENING:
            pause = max(
                pause,
                self._opened_at
                + _DOUBLING * math.log2((self._sent + 1) / _OPENING)
                - now,
            )
        return max(
            pause,
            self._user_limit.wait(1, now, self._round_trip),
            self.requests.wait(1, now, self._round_trip),
            self.tokens.wait(tokens, now, self._round_trip),
        )

    def _weight(self) -> float:
        """Return the weight of one reply in the share of recent refusals."""
        return 1 / max(_LEAST_LOOKED_BACK, 2 * self.limit)

    def _grow(self, now: float) -> None:
        if self.in_flight < int(self.limit) - 1:
            return  # the limit was not reached, so the answer says nothing about it
        if self._slow_start:
            step = 1.0
        elif self.limit < self._ceiling:
            step = max(_RECOVERY * (self._ceiling - self.limit), 0.2) / self.limit
        elif self.limit < 1.1 * self._ceiling + 2:
            step = _PROBE if now >= self._probe_from else 0.0
        else:
            step = max(
                0.05, 1 / self.limit
            )  # well above the old ceiling, so that ceiling no longer holds
        self.limit = min(self.limit + step, float(self._pacing.max_concurrency))

    def _cut(self, permit: Permit, now: float, *, pause: bool, cost: float) -> None:
        if permit.sent_at <= self._cut_at:
            return  # sent before the last cut, so it tells nothing new
        # The limit cannot be above what was actually in flight.
        used = min(self.limit, float(self.in_flight))
        # With one in flight, a connection that hangs would hold up all others until it times out.
        least = 1.0 if pause else min(_LEAST_IN_TROUBLE, self.limit)
        if self._slow_start or self._answers_since_cut:
            self._answerless_cuts = 0
            self._ceiling = max(least, used - 1)
            self.limit = max(least, min(used * self._depth(used), self._ceiling))
            if self._slow_start and pause:
                self._settling_until = now + self._round_trip
                self._used_at_cut = used
        elif not pause:
            self.limit = min(self.limit, max(_LEAST_IN_TROUBLE, used * _CUT))
        else:
            # Not one answer since the last cut: nothing is accepted at present, and the old ceiling
            # remains the best estimate. All requests wait, longer each time, and soon only one
            # request at a time probes.
            self._answerless_cuts += 1
            self.limit = (
                1.0 if self._answerless_cuts > 1 else max(1.0, used * _DEEP_CUT)
            )
            seconds = BASE_BACKOFF_SECONDS * 2.0 ** (self._answerless_cuts - 1)
            self._pause(
                min(seconds, MAX_BACKOFF_SECONDS) * random.uniform(0.5, 1.0), now
            )
        self._slow_start = False
        self._cut_at = now
        self._answers_since_cut = 0
        self._refused = min(self._refused, _TOLERATED / 2)
        self._probe_from = now + _PATIENCE * max(cost, self._round_trip)

    def _depth(self, used: float) -> float:
        """Return the share of the limit that a cut leaves: less if it follows the last one soon."""
        if self._slow_start or self._answers_since_cut < 2 * used:
            return _DEEP_CUT
        return _CUT if self._answers_since_cut < 4 * used else _GENTLE_CUT

    def _settle(self, now: float) -> None:
        """Set the limit after a burst of refusals, once the first answer has come after it.

        The limit is what is in flight, or was answered since the burst, because that was accepted.
        """
        if now < self._cut_at + _SETTLED * self._round_trip:
            return
        let_through = self.in_flight + self._answers_since_cut - 1
        if (
            now < self._settling_until
            and let_through >= _LET_THROUGH * self._used_at_cut
        ):
            self.limit = self._ceiling = float(max(1, let_through))
        self._settling_until = 0.0

    def _pause(self, seconds: float, now: float) -> None:
        until = now + seconds
        if until > self._paused_until:
            self._paused_until = until + random.uniform(0, _PAUSE_JITTER)
            # Afterwards the first round is spread over a round trip, so that requests do not come
            # in a herd.
            self._ramp = int(self.limit)

    def _note_refusal(self, error: RequestError, now: float) -> None:
        """Note a refusal.

        If every reply was a refusal for as long as one request may take, waiting requests will fare
        no better.
        """
        if (
            not self._refused_since
            or now - self._refused_at > _BELIEVED + _LONGEST_PROBE_GAP
        ):
            self._refused_since = now
        self._refused_at = now
        if now - self._refused_since > self._pacing.deadline:
            self._hopeless_why = str(error)

    def _hold_back(self, seconds: float, permit: Permit, now: float) -> None:
        """Pause because a reply carried a Retry-After.

        If that is too long, it does not pause all the others: one request at a time probes.
        """
        if seconds <= min(_BELIEVED, self._pacing.deadline):
            self._pause(seconds, now)
        elif not self._probes or permit.sent_at >= self._probed_at:
            self._probes += 1
            self._probed_at = now
            self._pause(
                min(
                    BASE_BACKOFF_SECONDS * 2.0 ** (self._probes - 1), _LONGEST_PROBE_GAP
                ),
                now,
            )

    def _width(self) -> int:
        """Return the number of requests that may be in flight now."""
        return 1 if self._probes else int(self.limit)


def _is_exhausted(limits: RateLimits | None) -> bool:
    return limits is not None and (
        limits.remaining_requests == 0 or limits.remaining_tokens == 0
    )
