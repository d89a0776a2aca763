"""Seconds at work are those with a request under way, however many there are."""

from __future__ import annotations

import time

import pytest

from evalwright.core.responses import Response, Usage
from evalwright.engine.speed import Speed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_requests_side_by_side_are_counted_once_and_pauses_not(clock: list[float]) -> None:
    speed = Speed()
    for start, end in ((0, None), (1, None), (None, 2), (None, 3), (10, None), (None, 11)):
        clock[0] = 100.0 + (start if start is not None else end or 0)
        if start is not None:
            began = speed.begin()
        else:
            speed.add(Response("x", usage=Usage(8, 4), latency=0.5), began)
            speed.end()
    assert speed.throughput() == {
        "seconds": 4.0,
        "answers": 3,
        "answers_per_second": 0.75,
        "input_tokens_per_second": 6.0,
        "output_tokens_per_second": 3.0,
    }
    found = speed.latency()
    assert found is not None
    assert found["n"] == 3
    assert found["p50"] == pytest.approx(0.5, rel=0.01)
