"""Tracks what a provider still allows according to its rate-limit headers.

A header states `limit`, `remaining` and `reset`. It may describe a bucket that is refilled
steadily (`reset` is when it would be full) or a window that starts anew (`reset` is when). The
two are told apart by observation: while `remaining` falls, a bucket's reset time moves away and
a window's stays where it is.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

# Share of a bucket that is never used, so that small errors of the estimate cause no refusals.
_RESERVE = 0.02
# Share of a new window that is used before a reply has confirmed that it has begun.
_OPENING = 0.01
_OPENING_GAP = 0.1
_LONGEST_OPENING_GAP = 10.0
_SENT_AT_RESOLUTION = 0.05
_UNKNOWN_RESET = 1.0


class Moment(NamedTuple):
    """The times of a reply.

    Attributes:
        sent_at: when its request was sent.
        now: when the reply came.
        round_trip: usual seconds between the two.
    """

    sent_at: float
    now: float
    round_trip: float


class RateLimit:
    """The limit of one unit, requests or tokens. Times are seconds of one monotonic clock."""

    def __init__(self) -> None:
        self.limit = 0.0
        self.kind: Literal["unknown", "bucket", "window"] = "unknown"
        self.rate = 0.0
        """Units per second by which a bucket is refilled."""
        self._level = 0.0
        self._level_at = 0.0
        self._ends = 0.0
        self._guessed = False
        self._openings = 0
        self._next_opening = 0.0
        self._known = False
        self._anchor: tuple[float, float] | None = None
        self._last_remaining = 0.0

    @classmethod
    def fixed(cls, per_minute: float) -> RateLimit:
        """Make a limit that the user sets and no reply changes.

        It is refilled evenly, and holds at most one second's worth.
        """
        limit = cls()
        limit.kind = "bucket"
        limit.rate = per_minute / 60
        limit._known = True
        limit.limit = limit._level = max(limit.rate, 1.0)
        return limit

    def spend(self, units: float) -> None:
        """Subtract units that were sent."""
        self._level -= units

    def wait(self, units: float, now: float, round_trip: float) -> float:
        """Return the seconds until these units may be sent; 0 for now.

        `round_trip` is the usual time until a reply.
        """
        if not self._known:
            return 0.0
        if self.kind == "bucket" and self.rate > 0:
            self._level = min(
                self.limit, self._level + self.rate * (now - self._level_at)
            )
            self._level_at = now
            reserve = min(max(_RESERVE * self.limit, 1.0), 0.2 * self.limit)
            missing = min(units, self.limit - reserve) + reserve - self._level
            return missing / self.rate if missing > 1e-9 else 0.0
        if now >= max(self._ends, self._next_opening):
            # A new window should have begun. A few requests probe it; their replies say how much it
            # has. If it has not begun (reset times are often rounded down), the next few go later.
            self._level = max(
                self._level, _OPENING * self.limit, min(units, self.limit)
            )
            self._ends = now + max(2 * round_trip, _UNKNOWN_RESET)
            self._guessed = True
            self._openings += 1
            self._next_opening = now + min(
                _OPENING_GAP * 2.0**self._openings, _LONGEST_OPENING_GAP
            )
        if self._level >= min(units, self.limit):
            return 0.0
        return max(self._ends - now, self._next_opening - now, 0.001)

    def observe(
        self,
        limit: float | None,
        remaining: float | None,
        reset: float | None,
        when: Moment,
        *,
        unseen: float,
        counted_at: float,
    ) -> None:
        """Learn from a reply's headers.

        Args:
            limit: units in a full bucket or window.
            remaining: units left.
            reset: seconds until the bucket is full or the window starts anew.
            when: times of the reply.
            unseen: units sent that `remaining` cannot include.
            counted_at: the latest time at which `remaining` was true.
        """
        sent_at, now, round_trip = when
        if remaining is None:
            return
        if limit is not None and limit > 0:
            self.limit = float(limit)
        self.limit = max(self.limit, float(remaining))
        if self.limit <= 0:
            return
        ends = sent_at + (reset if reset is not None else _UNKNOWN_RESET)
        if reset is not None:
            self._tell_apart(remaining, reset, ends, round_trip)
        used = self.limit - remaining
        gained = 0.0
        if self.kind == "bucket":
            # At 0 the bucket may be overdrawn, which would falsify the rate.
            if (
                reset is not None
                and reset > 0
                and remaining > 0
                and used >= 0.05 * self.limit
            ):
                rate = used / reset
                self.rate = rate if self.rate == 0 else 0.7 * self.rate + 0.3 * rate
            gained = self.rate * (now - counted_at)
        # The latest end that any reply named, because the earlier ones may be rounded down; a
        # fuller limit means a new window.
        fuller = not self._known or remaining > self._last_remaining + 0.5 * (
            self.limit - self._last_remaining
        )
        if remaining > self._last_remaining:
            self._openings = 0
            self._next_opening = 0.0
        self._ends = ends if fuller or self._guessed else max(self._ends, ends)
        self._guessed = False
        self._level = remaining - unseen + gained
        self._level_at = now
        self._last_remaining = remaining
        self._known = True

    def _tell_apart(
        self, remaining: float, reset: float, ends: float, round_trip: float
    ) -> None:
        if self._anchor is None or remaining > self._anchor[0]:
            self._anchor = (remaining, ends)
            return
        fallen = self._anchor[0] - remaining
        used = self.limit - remaining
        if fallen < max(3.0, 0.02 * self.limit) or used <= 0:
            return
        # For a bucket, this is how far its reset time must have moved.
        expected = fallen * reset / used
        coarse = 1.5 if reset == int(reset) else _SENT_AT_RESOLUTION
        if expected < max(coarse, 2 * round_trip):
            return
        moved = ends - self._anchor[1]
        self.kind = "bucket" if moved > 0.5 * expected else "window"
        self._anchor = (remaining, ends)
