"""Rate-limit headers of every known form, and Retry-After."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from evalwright.core.responses import RateLimits
from evalwright.models.remote.http_limits import parse_rate_limits, parse_reset, parse_retry_after

NOW = 1_763_640_000.0  # 2025-11-20T12:00:00Z


def limits(headers: dict[str, str]) -> RateLimits | None:
    return parse_rate_limits([(name.encode(), value.encode()) for name, value in headers.items()], NOW)


FORMS: list[tuple[str, dict[str, str], dict[str, Any]]] = [
    (
        "openai",
        {
            "x-ratelimit-limit-requests": "10000",
            "x-ratelimit-remaining-requests": "9999",
            "x-ratelimit-reset-requests": "8.64s",
            "X-RateLimit-Limit-Tokens": "200000",
            "x-ratelimit-remaining-tokens": "199500",
            "x-ratelimit-reset-tokens": "6m0s",
        },
        {
            "limit_requests": 10000,
            "remaining_requests": 9999,
            "reset_requests": 8.64,
            "limit_tokens": 200000,
            "remaining_tokens": 199500,
            "reset_tokens": 360.0,
        },
    ),
    (
        "anthropic, tightest of three token windows",
        {
            "anthropic-ratelimit-requests-limit": "50",
            "anthropic-ratelimit-requests-remaining": "49",
            "anthropic-ratelimit-requests-reset": "2025-11-20T12:00:30Z",
            "anthropic-ratelimit-input-tokens-limit": "40000",
            "anthropic-ratelimit-input-tokens-remaining": "39000",
            "anthropic-ratelimit-output-tokens-limit": "8000",
            "anthropic-ratelimit-output-tokens-remaining": "7000",
            "anthropic-ratelimit-output-tokens-reset": "2025-11-20T12:01:00+00:00",
        },
        {
            "limit_requests": 50,
            "remaining_requests": 49,
            "reset_requests": 30.0,
            "limit_tokens": 8000,
            "remaining_tokens": 7000,
            "reset_tokens": 60.0,
        },
    ),
    (
        "plain",
        {"RateLimit-Limit": "100, 100;w=60", "RateLimit-Remaining": "7", "RateLimit-Reset": "42"},
        {"limit_requests": 100, "remaining_requests": 7, "reset_requests": 42.0},
    ),
    (
        "plain with x-, reset as Unix time",
        {
            "X-RateLimit-Limit": "20",
            "X-RateLimit-Remaining": "0",
            "X-RateLimit-Reset": str(int((NOW + 12) * 1000)),
        },
        {"limit_requests": 20, "remaining_requests": 0, "reset_requests": 12.0},
    ),
    (
        "one structured header",
        {"RateLimit": "limit=100, remaining=50, reset=5", "RateLimit-Policy": "100;w=60"},
        {"limit_requests": 100, "remaining_requests": 50, "reset_requests": 5.0},
    ),
    (
        "one structured header, newer draft",
        {"RateLimit": '"default";r=50;t=30'},
        {"remaining_requests": 50, "reset_requests": 30.0},
    ),
    (
        "windows by minute and day",
        {
            "x-ratelimit-limit-requests-day": "1000",
            "x-ratelimit-remaining-requests-day": "900",
            "x-ratelimit-limit-tokens-minute": "60000",
            "x-ratelimit-remaining-tokens-minute": "100",
            "x-ratelimit-reset-tokens-minute": "31.5",
            "x-ratelimit-limit-tokens-day": "1000000",
            "x-ratelimit-remaining-tokens-day": "500000",
            "x-ratelimit-reset-tokens-day": "50000",
        },
        {
            "limit_requests": 1000,
            "remaining_requests": 900,
            "limit_tokens": 60000,
            "remaining_tokens": 100,
            "reset_tokens": 31.5,
        },
    ),
    (
        "nonsense beside sense",
        {"x-ratelimit-limit-requests": "many", "x-ratelimit-remaining-requests": "3", "x-ratelimit-by": "ip"},
        {"remaining_requests": 3},
    ),
]


@pytest.mark.parametrize(
    ("headers", "expected"), [form[1:] for form in FORMS], ids=[form[0] for form in FORMS]
)
def test_header_forms(headers: dict[str, str], expected: dict[str, Any]) -> None:
    assert limits(headers) == RateLimits(**expected)


@pytest.mark.parametrize(
    "headers", [{}, {"content-type": "application/json", "date": "x"}, {"x-ratelimit-limit-requests": "lots"}]
)
def test_headers_that_say_nothing(headers: dict[str, str]) -> None:
    assert limits(headers) is None


@pytest.mark.parametrize(
    ("value", "seconds"),
    [
        ("6m0s", 360.0),
        ("20ms", 0.02),
        ("1h30m", 5400.0),
        ("1d2h", 93600.0),
        ("2m59.56s", 179.56),
        ("250us", 0.00025),
        ("17", 17.0),
        ("0.5", 0.5),
        ("0", 0.0),
        ("-3", 0.0),
        (str(NOW + 90), 90.0),
        (str(int(NOW - 90)), 0.0),
        ("2025-11-20T12:00:10.5Z", 10.5),
        ("2025-11-20T14:00:10+02:00", 10.0),
        ("2025-11-20T12:00:10", 10.0),
        ("Thu, 20 Nov 2025 12:00:05 GMT", 5.0),
        ("soon", None),
        ("", None),
        ("5 apples", None),
        ("5s apples", None),
        ("nan", None),
        ("inf", None),
    ],
)
def test_resets(value: str, seconds: float | None) -> None:
    found = parse_reset(value, NOW)
    assert found == (None if seconds is None else pytest.approx(seconds, abs=1e-4))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({"Retry-After": "7"}, 7.0),
        ({"Retry-After": "0.25"}, 0.25),
        ({"Retry-After": "-1"}, 0.0),
        ({"retry-after-ms": "150"}, 0.15),
        ({"retry-after-ms": "150", "Retry-After": "9"}, 0.15),
        ({"retry-after-ms": "soon", "Retry-After": "9"}, 9.0),
        ({"Retry-After": "Thu, 20 Nov 2025 12:00:30 GMT"}, 30.0),
        # The server's clock is an hour ahead of ours; what counts is the difference to its own Date.
        ({"Retry-After": "Thu, 20 Nov 2025 13:00:30 GMT", "Date": "Thu, 20 Nov 2025 13:00:00 GMT"}, 30.0),
        ({"Retry-After": "Thu, 20 Nov 2025 11:00:00 GMT"}, 0.0),
        ({"Retry-After": "later"}, None),
        ({"Retry-After": "nan"}, None),
        ({}, None),
    ],
)
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    assert parse_retry_after(CIMultiDict(headers), NOW) == seconds


@given(st.dictionaries(st.text(max_size=8).map(lambda end: "x-ratelimit-" + end), st.text(max_size=12)))
def test_no_header_breaks_the_parser(headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    found = parse_rate_limits(raw, NOW)
    assert found is None or isinstance(found, RateLimits)
