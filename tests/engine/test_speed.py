"""Seconds at work are those with a request under way, however many there are."""

from __future__ import annotations

import math
import time

import numpy as np
import pytest

from evalwright.core.responses import Response, Usage
from evalwright.engine.speed import Speed


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [100.0]
    monkeypatch.setattr(time, "monotonic", lambda: now[0])
    return now


def test_requests_side_by_side_are_counted_once_and_pauses_not(
    clock: list[float],
) -> None:
    speed = Speed()
    for start, end in (
        (0, None),
        (1, None),
        (None, 2),
        (None, 3),
        (10, None),
        (None, 11),
    ):
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


def test_percentiles_are_within_one_percent_in_memory_that_does_not_grow() -> None:
    speed = Speed()
    latencies = np.random.default_rng(0).lognormal(0, 2, 50_000)
    for seconds in latencies.tolist():
        speed.add(Response("x", latency=seconds), 0.0)
    summary = speed.latency()
    assert summary is not None
    assert (summary["n"], summary["longest"]) == (
        50_000,
        float(f"{latencies.max():.4g}"),
    )
    for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99)):
        assert summary[name] == pytest.approx(
            np.quantile(latencies, share, method="lower"), rel=0.0105
        )
    buckets_of_range = math.log(latencies.max() / latencies.min()) / math.log(
        1.01 / 0.99
    )
    assert len(speed._latency_counts) <= math.ceil(buckets_of_range) + 1 < 1300


def test_latencies_of_nothing_and_of_no_time(clock: list[float]) -> None:
    speed = Speed()
    assert speed.latency() is None
    speed.add(Response("x"), 100.0)
    assert speed.latency() == {
        "n": 1,
        "p50": 0.0,
        "p90": 0.0,
        "p99": 0.0,
        "longest": 0.0,
        "method": "DDSketch, within 1%",
    }
