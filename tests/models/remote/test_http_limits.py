"""Rate-limit headers of every known form, and Retry-After."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from multidict import CIMultiDict

from evalwright.core.responses import RateLimits
from evalwright.models.remote.http_limits import (
    parse_rate_limits,
    parse_reset,
    parse_retry_after,
)
from support.tables import rows

NOW = 1_763_640_000.0  # 2025-11-20T12:00:00Z


def limits(headers: dict[str, str]) -> RateLimits | None:
    return parse_rate_limits(
        [(name.encode(), value.encode()) for name, value in headers.items()], NOW
    )


@pytest.mark.parametrize(("headers", "expected"), rows(__file__, "rate_limits"))
def test_header_forms(headers: dict[str, str], expected: dict[str, Any]) -> None:
    """OpenAI's, Anthropic's with the tightest of three windows, the plain ones, both drafts of
    one structured header.
    """
    assert limits(headers) == RateLimits(**expected)


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"content-type": "application/json", "date": "x"},
        {"x-ratelimit-limit-requests": "lots"},
    ],
)
def test_headers_that_say_nothing(headers: dict[str, str]) -> None:
    assert limits(headers) is None


@pytest.mark.parametrize(("value", "seconds"), rows(__file__, "resets"))
def test_resets(value: str, seconds: float | None) -> None:
    found = parse_reset(value, NOW)
    assert found == (None if seconds is None else pytest.approx(seconds, abs=1e-4))


@pytest.mark.parametrize(("headers", "seconds"), rows(__file__, "retry_after"))
def test_retry_after(headers: dict[str, str], seconds: float | None) -> None:
    """A date counts against the server's own `Date`, whose clock may be an hour ahead of ours."""
    assert parse_retry_after(CIMultiDict(headers), NOW) == seconds


@given(
    st.dictionaries(
        st.text(max_size=8).map(lambda end: "x-ratelimit-" + end), st.text(max_size=12)
    )
)
def test_no_header_breaks_the_parser(headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    rate_limits = parse_rate_limits(raw, NOW)
    assert rate_limits is None or isinstance(rate_limits, RateLimits)
