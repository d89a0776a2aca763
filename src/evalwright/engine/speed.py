"""How fast one model answered: seconds at work, answers, tokens, latencies; in constant memory."""

from __future__ import annotations

import math
import threading
import time
from typing import Any

from evalwright.core.responses import Response, Usage
from evalwright.statistics.quantile_sketch import QuantileSketch

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}


class Speed:
    """The work of one model.

    Written to by one thread, a local model's own or else the event loop's; read by any.

    Attributes:
        answers: answers from the model itself, never from the store.
        load_seconds: None for a model that was not loaded.
        loading_since: when the current loading began, on the monotonic clock; else None.
    """

    def __init__(self) -> None:
        self.answers = 0
        self.usage = Usage()
        self.load_seconds: float | None = None
        self.loading_since: float | None = None
        self._latency = QuantileSketch()
        self._seconds = 0.0
        self._under_way = 0
        self._since = 0.0
        self._lock = threading.Lock()

    def begin(self) -> float:
        """A request, or a batch, is handed to the model. Returns the time."""
        now = time.monotonic()
        with self._lock:
            if not self._under_way:
                self._since = now
            self._under_way += 1
        return now

    def end(self) -> None:
        """What `begin` announced has ended, in whatever way."""
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                self._seconds += time.monotonic() - self._since

    def add(self, response: Response, began: float) -> None:
        """Note an answer to what began then.

        Its latency is what the model says, else the time since.
        """
        self.answers += 1
        self.usage = self.usage + response.usage
        seconds = response.latency or time.monotonic() - began
        if math.isfinite(seconds) and seconds >= 0:
            self._latency.add(seconds)

    def throughput(self) -> dict[str, Any] | None:
        """Answers and tokens per working second; None without any answer."""
        with self._lock:
            # The last answer may be handed over before its batch has ended.
            seconds = self._seconds + (
                time.monotonic() - self._since if self._under_way else 0.0
            )
        if not self.answers or seconds <= 0:
            return None
        counts = {
            "answers": self.answers,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
        }
        rates = {
            f"{name}_per_second": _round_digits(count / seconds)
            for name, count in counts.items()
        }
        return {"seconds": round(seconds, 3), "answers": self.answers, **rates}

    def latency(self) -> dict[str, Any] | None:
        """Seconds per answer: number, percentiles and maximum; None if nothing was timed."""
        if not self._latency.n:
            return None
        return {
            "n": self._latency.n,
            **{
                name: _round_digits(self._latency.quantile(share))
                for name, share in QUANTILES.items()
            },
            "longest": _round_digits(self._latency.largest),
            "method": f"DDSketch, within {100 * self._latency.accuracy:g}%",
        }


def _round_digits(number: float) -> float:
    """Four digits, all that a clock on a shared machine can tell."""
    return float(f"{number:.4g}")
