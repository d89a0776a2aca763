"""How fast one model answered: busy seconds, answers, tokens and latencies.

Its memory does not grow with the run.
"""

from __future__ import annotations

import math
import threading
import time
from collections import Counter
from typing import Any

from evalwright.core.responses import Response, Usage

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}

LATENCY_ACCURACY = 0.01
"""Largest relative error of a percentile of the latencies."""
_BUCKET_GROWTH = (1 + LATENCY_ACCURACY) / (1 - LATENCY_ACCURACY)
_LOG_BUCKET_GROWTH = math.log(_BUCKET_GROWTH)
_LEAST_SECONDS = 1e-9


class Speed:
    """What one model has done so far.

    Written to by one thread, a local model's own or else the event loop's; read by any.

    Attributes:
        answers: answers that came from the model itself, not from the store.
        load_seconds: seconds that loading took; None for a model that was not loaded.
        loading_since: when the current loading began, on the monotonic clock; None if none is going
            on.
        seconds: seconds in which at least one request was in flight, without loading.
    """

    def __init__(self) -> None:
        self.answers = 0
        self.usage = Usage()
        self.load_seconds: float | None = None
        self.loading_since: float | None = None
        self._latency_counts = Counter[int]()
        self._longest_seconds = 0.0
        self._seconds = 0.0
        self._under_way = 0
        self._since = 0.0
        self._lock = threading.Lock()

    def begin(self) -> float:
        """Note that a request or a batch is handed to the model; return the time."""
        now = time.monotonic()
        with self._lock:
            if not self._under_way:
                self._since = now
            self._under_way += 1
        return now

    def end(self) -> None:
        """Note that what `begin` announced has ended, in whatever way."""
        with self._lock:
            self._under_way -= 1
            if not self._under_way:
                self._seconds += time.monotonic() - self._since

    def add(self, response: Response, began: float) -> None:
        """Count the answer to a request that was handed over at `began`.

        Its latency is what the model states, else the time since then.
        """
        self.answers += 1
        self.usage = self.usage + response.usage
        seconds = response.latency or time.monotonic() - began
        if math.isfinite(seconds) and seconds >= 0:
            self._latency_counts[_latency_bucket(seconds)] += 1
            self._longest_seconds = max(self._longest_seconds, seconds)

    def throughput(self) -> dict[str, Any] | None:
        """Answers and tokens per busy second; None if no request was sent to the model."""
        with self._lock:
            # The last answer may be handed over before its batch has ended.
            seconds = self._seconds + (
                time.monotonic() - self._since if self._under_way else 0.0
            )
        if not self.answers or seconds <= 0:
            return None
        parts = {
            "answers": self.answers,
            "input_tokens": self.usage.input_tokens,
            "output_tokens": self.usage.output_tokens,
        }
        rates = {
            f"{name}_per_second": _short(count / seconds)
            for name, count in parts.items()
        }
        return {"seconds": round(seconds, 3), "answers": self.answers, **rates}

    def latency(self) -> dict[str, Any] | None:
        """Return number, percentiles and maximum of the latencies in seconds; None without any."""
        n = self._latency_counts.total()
        if not n:
            return None
        percentiles = {
            name: min(_percentile(self._latency_counts, share), self._longest_seconds)
            for name, share in QUANTILES.items()
        }
        return {
            "n": n,
            **{name: _short(seconds) for name, seconds in percentiles.items()},
            "longest": _short(self._longest_seconds),
            "method": f"DDSketch, within {100 * LATENCY_ACCURACY:g}%",
        }


def _latency_bucket(seconds: float) -> int:
    """Return the bucket in which a latency is counted; bucket borders are a constant factor apart.

    From a microsecond to a day there are fewer than 1,300 of them, so memory does not grow with the
    run (DDSketch: Masson, Rim & Lee 2019).
    """
    return math.ceil(math.log(max(seconds, _LEAST_SECONDS)) / _LOG_BUCKET_GROWTH)


def _percentile(counts: Counter[int], share: float) -> float:
    """Return the latency at rank floor(share * (n - 1)), from 0, within `LATENCY_ACCURACY`."""
    rank = math.floor(share * (counts.total() - 1))
    n_passed = 0
    for bucket in sorted(counts):
        n_passed += counts[bucket]
        if rank < n_passed:
            break
    return float(2 * _BUCKET_GROWTH**bucket / (_BUCKET_GROWTH + 1))


def _short(value: float) -> float:
    """Round to four digits: a clock on a shared machine is no more precise."""
    return float(f"{value:.4g}")
