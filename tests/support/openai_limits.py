"""Rate limits as OpenAI has them: buckets of requests and tokens that refill all the time, told
in headers.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field


@dataclass
class Bucket:
    """per_minute units, refilled evenly; holds at most `burst` (default: a whole minute's
    worth).
    """

    per_minute: float
    burst: float = 0.0
    level: float = field(init=False)
    moment: float = field(init=False)

    def __post_init__(self) -> None:
        self.burst = self.burst or self.per_minute
        self.level = self.burst
        self.moment = time.monotonic()

    def refill(self) -> None:
        """Bring the level up to now."""
        now = time.monotonic()
        self.level = min(
            self.burst, self.level + (now - self.moment) * self.per_minute / 60
        )
        self.moment = now

    def seconds_until(self, units: float) -> float:
        """How long until `units` are there."""
        return max(0.0, (min(units, self.burst) - self.level) * 60 / self.per_minute)


@dataclass
class Limits:
    """A request is taken if both buckets have enough for it, else refused and not counted."""

    requests_per_minute: float = 0.0
    tokens_per_minute: float = 0.0
    burst_seconds: float = 60.0

    def __post_init__(self) -> None:
        self._buckets = {
            name: Bucket(rate, rate * self.burst_seconds / 60)
            for name, rate in (
                ("requests", self.requests_per_minute),
                ("tokens", self.tokens_per_minute),
            )
            if rate
        }

    def take(self, tokens: int) -> float:
        """0 and the units are taken, or the seconds to wait."""
        units = {"requests": 1.0, "tokens": float(tokens)}
        for bucket in self._buckets.values():
            bucket.refill()
        wait = max(
            (b.seconds_until(units[name]) for name, b in self._buckets.items()),
            default=0.0,
        )
        if wait <= 0:
            for name, bucket in self._buckets.items():
                bucket.level -= min(units[name], bucket.burst)
        return wait

    def headers(self) -> dict[str, str]:
        """x-ratelimit-* as OpenAI writes them."""
        headers = {}
        for name, bucket in self._buckets.items():
            headers[f"x-ratelimit-limit-{name}"] = str(int(bucket.per_minute))
            headers[f"x-ratelimit-remaining-{name}"] = str(max(0, int(bucket.level)))
            headers[f"x-ratelimit-reset-{name}"] = duration(
                bucket.seconds_until(bucket.burst)
            )
        return headers


def duration(seconds: float) -> str:
    """As Go prints durations, which OpenAI's headers are: 20ms, 8.64s, 6m0s."""
    if seconds < 1:
        return f"{math.ceil(seconds * 1000)}ms"
    minutes, seconds_left = divmod(seconds, 60)
    text = f"{seconds_left:.3f}".rstrip("0").rstrip(".") + "s"
    return f"{int(minutes)}m{text}" if minutes else text
