"""The record of each replica of a model, be it an endpoint, a process or an actor."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any


class Replica:
    """The record of one replica.

    Attributes:
        requests: number of requests sent to it.
        failures: how many of those failed.
        aside: why it is not used at present; "" if it is used.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.aside = ""
        self.requests = self.failures = self.under_way = 0
        self._since = self._until = 0.0

    def begin(self, requests: int = 1) -> None:
        """Count requests that are sent to the replica."""
        self._since = self._since or time.monotonic()
        self.requests += requests
        self.under_way += requests

    def end(self, requests: int = 1, *, failed: bool = False) -> None:
        """Count requests that have ended there, with an answer or without."""
        self.under_way -= requests
        self.failures += requests if failed else 0
        self._until = time.monotonic()

    def as_dict(self) -> dict[str, Any]:
        """Return the record for JSON.

        `answers_per_second` counts from the first request to the last answer, including waits for
        rate limits.
        """
        seconds = (time.monotonic() if self.under_way else self._until) - self._since
        answers = self.requests - self.failures - self.under_way
        rate = (
            {"answers_per_second": float(f"{answers / seconds:.4g}")}
            if seconds > 0
            else {}
        )
        aside = {"aside": self.aside} if self.aside else {}
        return {
            "name": self.name,
            "requests": self.requests,
            "failures": self.failures,
            **rate,
            **aside,
        }


def summarise_replicas(replicas: Iterable[Replica]) -> str:
    """Summarise the replicas: "a 20/s, b 48/s (2 tries failed), c set aside".

    Others may have answered what failed at one replica.
    """
    descriptions = []
    for replica in replicas:
        record = replica.as_dict()
        tries = "try" if replica.failures == 1 else "tries"
        failed = f" ({replica.failures:,} {tries} failed)" if replica.failures else ""
        rate = (
            f"{record['answers_per_second']:.3g}/s"
            if "answers_per_second" in record
            else "idle"
        )
        descriptions.append(
            f"{replica.name} {'set aside' if replica.aside else rate}{failed}"
        )
    return ", ".join(descriptions)
