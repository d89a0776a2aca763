"""Reads the rate limits in a reply's headers, in OpenAI's, Anthropic's and the plain forms.

Header names differ in the order of their words, so a name is read as a set of words: which number
it gives (limit, remaining, reset), of what (requests, tokens), and for which window (the remaining
words: minute, day, input, ...). If a provider announces several windows of one unit, the one with
the least left counts.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import lru_cache

from evalwright.core.responses import RateLimits

_NUMBERS = ("limit", "remaining", "reset")
_UNITS = ("requests", "tokens")
_DURATION = re.compile(r"([0-9]{1,15}(?:\.[0-9]+)?)(ms|us|µs|ns|d|h|m|s)")
_SECONDS = {
    "d": 86400.0,
    "h": 3600.0,
    "m": 60.0,
    "s": 1.0,
    "ms": 1e-3,
    "us": 1e-6,
    "µs": 1e-6,
    "ns": 1e-9,
}
_INTEGER = re.compile(r"\s*([0-9]{1,15})(?![0-9])")
_DRAFT = re.compile(r"\b(limit|remaining|reset|r|t|q)\s*=\s*([0-9]{1,15})(?![0-9])")
_DRAFT_NAMES = {"r": "remaining", "t": "reset", "q": "limit"}
_EPOCH = 1e9
"""A reset above this is a point in time (Unix seconds), not a duration."""

_LONGEST_WINDOW = 32 * 86400.0
"""Seconds; no limit is counted over a longer time, so a reset beyond it is ignored."""


def parse_rate_limits(
    headers: Iterable[tuple[bytes, bytes]], now: float | None = None
) -> RateLimits | None:
    """Parse the rate limits in raw reply headers; None without any. `now` is in Unix seconds."""
    announced = [
        (meaning, content)
        for name, content in headers
        if (meaning := _parse_header_name(name)) is not None
    ]
    if not announced:
        return None
    moment = time.time() if now is None else now
    windows: dict[str, dict[str, dict[str, float]]] = {unit: {} for unit in _UNITS}
    for (unit, window, number_name), raw in announced:
        text = raw.decode("latin-1").strip()
        if not number_name:
            for key, digits in _DRAFT.findall(text):
                name = _DRAFT_NAMES.get(key, key)
                amount = _window(float(digits)) if name == "reset" else float(digits)
                if amount is not None:
                    windows[unit].setdefault(window, {})[name] = amount
            continue
        number = (
            _window(parse_reset(text, moment))
            if number_name == "reset"
            else _first_integer(text)
        )
        if number is not None:
            windows[unit].setdefault(window, {})[number_name] = number
    requests, tokens = (_tightest(windows[unit].values()) for unit in _UNITS)
    if not requests and not tokens:
        return None
    return RateLimits(
        limit_requests=_to_int(requests.get("limit")),
        remaining_requests=_to_int(requests.get("remaining")),
        reset_requests=requests.get("reset"),
        limit_tokens=_to_int(tokens.get("limit")),
        remaining_tokens=_to_int(tokens.get("remaining")),
        reset_tokens=tokens.get("reset"),
    )


@lru_cache(maxsize=1024)
def _parse_header_name(header: bytes) -> tuple[str, str, str] | None:
    """Return the (unit, window, number) for which a header's name stands, or None.

    The number is "" for the draft standard's header, which has all in one.
    """
    name = header.decode("latin-1").lower()
    if name == "ratelimit":
        return "requests", "", ""
    words = name.split("-")
    start = next(
        (index for index, word in enumerate(words) if word.startswith("ratelimit")),
        len(words),
    )
    words = words[start + 1 :]
    number_name = next((number for number in _NUMBERS if number in words), None)
    if number_name is None:
        return None
    unit = next((word for word in _UNITS if word in words), "requests")
    return (
        unit,
        "-".join(word for word in words if word not in (number_name, unit)),
        number_name,
    )


def _tightest(windows: Iterable[Mapping[str, float]]) -> Mapping[str, float]:
    return min(
        windows, key=lambda window: window.get("remaining", math.inf), default={}
    )


def _first_integer(text: str) -> float | None:
    match = _INTEGER.match(text)
    return float(match.group(1)) if match else None


def _window(seconds: float | None) -> float | None:
    return seconds if seconds is not None and seconds <= _LONGEST_WINDOW else None


def _to_int(number: float | None) -> int | None:
    return None if number is None else int(number)


def parse_reset(text: str, now: float) -> float | None:
    """Parse the seconds from `now` until a reset: "6m0s", "20ms", seconds, Unix, ISO or HTTP time.

    Never negative; None for other forms.
    """
    text = text.strip()
    try:
        number = float(text)
    except ValueError:
        return _duration(text) if _DURATION.match(text) else _until(text, now)
    if not math.isfinite(number):
        return None
    if number > _EPOCH * 1000:
        number /= 1000
    return max(0.0, number - now if number > _EPOCH else number)


def _duration(text: str) -> float | None:
    amounts = _DURATION.findall(text)
    if "".join(number + unit for number, unit in amounts) != text:
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in amounts)


def _until(text: str, now: float) -> float | None:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        try:
            moment = parsedate_to_datetime(text)
        except (ValueError, TypeError, OverflowError):
            return None
    if moment.tzinfo is None:
        moment = moment.replace(tzinfo=UTC)
    return max(0.0, moment.timestamp() - now)


def parse_retry_after(
    headers: Mapping[str, str], now: float | None = None
) -> float | None:
    """Return the seconds to wait by `retry-after-ms` or `Retry-After`, or None.

    A date is compared with the reply's own `Date`, so a wrong local clock does not matter.
    """
    milliseconds = headers.get("retry-after-ms")
    if (
        milliseconds is not None
        and (waited := _plain_seconds(milliseconds)) is not None
    ):
        return waited / 1000
    retry_after = headers.get("retry-after")
    if retry_after is None:
        return None
    seconds = _plain_seconds(retry_after)
    if seconds is not None:
        return seconds
    moment = time.time() if now is None else now
    with suppress(ValueError, TypeError, OverflowError):
        moment = parsedate_to_datetime(headers.get("date", "")).timestamp()
    return _until(retry_after.strip(), moment)


def _plain_seconds(text: str) -> float | None:
    try:
        number = float(text)
    except ValueError:
        return None
    return max(0.0, number) if math.isfinite(number) else None
