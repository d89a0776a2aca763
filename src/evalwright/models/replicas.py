"""The record of each replica of a model, be it an endpoint, a process or an actor."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any


class Replica:
    """The record of one replica. requests: sent to it. failures: of those. aside: why it is not
    used at present, "" where it is.
    """

    def __init__(self, name: str) -> None:
        self.name = name
        self.aside = ""
        self.requests = self.failures = self.under_way = 0
        self._since = self._until = 0.0

    def begin(self, requests: int = 1) -> None:
        """Requests are handed to it."""
        self._since = self._since or time.monotonic()
        self.requests += requests
        self.under_way += requests

    def end(self, requests: int = 1, *, failed: bool = False) -> None:
        """Requests have ended there, with an answer or without."""
        self.under_way -= requests
        self.failures += requests if failed else 0
        self._until = time.monotonic()

    def as_dict(self) -> dict[str, Any]:
        """For the record; answers_per_second: from its first request to its last answer, also while
        it waited for its limits.
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
    """How each did, in a few words: "a 20/s, b 48/s (2 tries failed), c set aside".

    Others may have answered what failed there.
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
