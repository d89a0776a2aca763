"""What replicas of one model share, be they endpoints, processes or actors: how each of them did."""

from __future__ import annotations

import time
from typing import Any


class Replica:
    """The record of one replica. requests: sent to it. failures: of those. seconds: in which at least one was under way."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.requests = self.failures = self.under_way = 0
        self._seconds = self._since = 0.0

    def begin(self, requests: int = 1) -> None:
        """Requests are handed to it."""
        if not self.under_way:
            self._since = time.monotonic()
        self.requests += requests
        self.under_way += requests

    def end(self, requests: int = 1, *, failed: bool = False) -> None:
        """Requests have ended there, with an answer or without."""
        self.under_way -= requests
        self.failures += requests if failed else 0
        if requests and not self.under_way:
            self._seconds += time.monotonic() - self._since

    def as_dict(self) -> dict[str, Any]:
        """For the record; answers_per_second: while something was under way."""
        seconds = self._seconds + (time.monotonic() - self._since if self.under_way else 0.0)
        answers = self.requests - self.failures - self.under_way
        rate = {"answers_per_second": float(f"{answers / seconds:.4g}")} if seconds > 0 else {}
        return {"name": self.name, "requests": self.requests, "failures": self.failures, **rate}
