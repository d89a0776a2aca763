"""Prices: the arithmetic to the last digit, how a model is found, a person's own, and what the
package's table holds.
"""

from __future__ import annotations

import datetime
import logging
import tomllib
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.core.responses import Usage
from evalwright.models.remote import prices
from evalwright.models.remote.prices import Price, price_table
from evalwright.models.remote.prices.price_table import TABLE, read_book

PRICES = st.decimals(min_value=0, max_value=1000, places=4).map(float)
TOKENS = st.integers(min_value=0, max_value=3_000_000)


@pytest.fixture(autouse=True)
def _nothing_of_ones_own(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(price_table, "_user_books", {})
    monkeypatch.setattr(price_table, "_warned_dates", set())


def exact(price: float) -> Fraction:
    return Fraction(repr(price))


@given(into=PRICES, out=PRICES, cached=PRICES, read=TOKENS, part=TOKENS, written=TOKENS)
def test_cost_is_the_float_next_to_the_exact_sum(
    into: float, out: float, cached: float, read: int, part: int, written: int
) -> None:
    price = Price(into, out, cached_input=cached)
    known = min(part, read)
    usage = Usage(read, written, cached_tokens=part)
    if not read and not written:
        assert price.cost(usage) is None
        return
    wanted = (
        (read - known) * exact(into) + known * exact(cached) + written * exact(out)
    ) / 1_000_000
    assert price.cost(usage) == float(wanted)


@pytest.mark.parametrize(
    ("price", "usage", "cost"),
    [
        (Price(0.15, 0.6), Usage(1_000_000, 1_000_000), 0.75),
        (Price(0.15, 0.6), Usage(137, 11), 2.715e-05),
        (Price(3, 15, cached_input=0.3), Usage(1000, 100, cached_tokens=900), 0.00207),
        (Price(3, 15), Usage(1000, 100, cached_tokens=900), 0.0045),
        (Price(1, 2, request=0.005), Usage(10, 10), 0.00503),
        (
            Price(1.25, 10, long_above=200_000, long_input=2.5, long_output=15),
            Usage(200_000, 10),
            0.2501,
        ),
        (
            Price(1.25, 10, long_above=200_000, long_input=2.5, long_output=15),
            Usage(200_001, 10),
            0.5001525,
        ),
        (Price(1, 2), Usage(), None),
    ],
)
def test_cost_of_what_was_counted(
    price: Price, usage: Usage, cost: float | None
) -> None:
    assert price.cost(usage) == cost


BOOK = {
    "as_of": "2026-01-31",
    "source": "https://example.com/prices",
    "Big": {"input": 1, "output": 2},
    "big-2024-05-13": {"input": 3, "output": 4},
    "small-*": {"input": 0.1, "output": 0.2},
    "*-tail": {"input": 9, "output": 9},
}


@pytest.mark.parametrize(
    ("model", "found"),
    [
        ("big", 1), ("BIG", 1), ("big-2024-05-13", 3), ("big-2025-01-01", 1), ("big-20250101", 1),
        ("big@20250101", 1), ("big-latest", 1), ("big-0709", None), ("bigger", None), ("small-x", 0.1),
        ("small-tail", 0.1), ("other-tail", 9), ("small", None),
    ],
)  # fmt: skip
def test_how_a_model_is_found(model: str, found: float | None) -> None:
    price = read_book(BOOK, "here").find(model)
    assert (price.input if price else None) == found
    if price:
        assert (price.as_of, price.source) == (
            "2026-01-31",
            "https://example.com/prices",
        )


@pytest.mark.parametrize(
    ("rows", "error", "words"),
    [
        ({"m": "0.15/0.6"}, ConfigurationError, "input = 0.15"),
        ({"m": {"input": 1}}, ConfigurationError, "'output' is missing"),
        (
            {"m": {"input": -1, "output": 1}},
            ConfigurationError,
            "'input' must be a number",
        ),
        (
            {"m": {"input": float("nan"), "output": 1}},
            ConfigurationError,
            "'input' must be a number",
        ),
        (
            {"m": {"input": True, "output": 1}},
            ConfigurationError,
            "'input' must be a number",
        ),
        ({"m": {"input": 1, "ouput": 1}}, UnknownName, "output"),
        ({"m": {"input": 1, "output": 1, "as_of": "2026-01-01"}}, UnknownName, "as_of"),
        ({"as_of": "yesterday"}, ConfigurationError, "2026-11-12"),
        ({"source": 5}, ConfigurationError, "'source' must be text"),
    ],
)
def test_faults_are_told(
    rows: dict[str, object], error: type[Exception], words: str
) -> None:
    with pytest.raises(error, match=words) as raised:
        read_book(rows, "mine.toml, prices of 'x'")
    assert "mine.toml" in str(raised.value)


def test_old_prices_are_said_once(caplog: pytest.LogCaptureFixture) -> None:
    price = Price(1, 2, as_of="2026-01-01")
    day = datetime.date(2026, 1, 1)
    with caplog.at_level(logging.WARNING, "evalwright.models.remote.prices"):
        prices.warn_if_old(price, day + datetime.timedelta(days=180))
        prices.warn_if_old(Price(1, 2), datetime.date(2099, 1, 1))
        assert not caplog.records
        prices.warn_if_old(price, day + datetime.timedelta(days=181))
        prices.warn_if_old(price, day + datetime.timedelta(days=300))
    assert len(caplog.records) == 1
    assert "2026-01-01" in caplog.text and "181 days" in caplog.text


def test_the_package_s_table_holds() -> None:
    document = tomllib.loads(TABLE.read_text(encoding="utf-8"))
    assert datetime.date.fromisoformat(
        document["as_of"]
    ) == datetime.date.fromisoformat(prices.as_of())
    books = {name: rows for name, rows in document.items() if isinstance(rows, dict)}
    assert list(books) == sorted(books) and len(books) >= 15
    assert sum(prices.count_of(name) for name in books) >= 150
    for name, rows in books.items():
        book = read_book({"as_of": document["as_of"], **rows}, name)
        for model, price in book.names.items():
            at = f"{name}/{model}"
            assert (
                price.source.startswith("https://") and price.as_of == document["as_of"]
            ), at
            assert price.output > 0 or price.input > 0, at
            assert price.cached_input is None or price.cached_input <= price.input, at
            assert price.batch is None or 0 < price.batch <= 1, at
            assert (price.long_above is None) == (price.long_input is None), at
