"""Prices by provider and model: `prices.toml` of this package, and the `[NAME.prices]` of a
person's own file of providers.

A model is found by its name, else by its name without the date of a snapshot, else by a pattern
with `*`. A person's price wins. A model that is not found has no price, which is never taken for
free.
"""

from __future__ import annotations

import datetime
import logging
import math
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.models.remote.prices.price import Price

TABLE = Path(__file__).with_name("prices.toml")
OLD = 180
"""Days after which prices are reported as old."""

_logger = logging.getLogger("evalwright.models.remote.prices")
_SNAPSHOT = re.compile(r"[-@](\d{4}-\d{2}-\d{2}|\d{8}|latest)$")
_HEAD = ("as_of", "source")


@dataclass(frozen=True, slots=True)
class Book:
    """The prices of one provider, by lower-case name and by pattern in order."""

    names: Mapping[str, Price]
    patterns: tuple[tuple[re.Pattern[str], Price], ...]

    def find(self, model: str) -> Price | None:
        """Return the price of a model, or None."""
        name = model.lower()
        for candidate in (name, _SNAPSHOT.sub("", name)):
            if candidate in self.names:
                return self.names[candidate]
        return next(
            (price for pattern, price in self.patterns if pattern.fullmatch(name)), None
        )


_user_books: dict[str, Book] = {}


def price_of(provider: str, model: str, *, packaged: bool = True) -> Price | None:
    """Return the price of a provider's model, or None.

    `packaged` includes the package's own table.
    """
    books = (_user_books.get(provider), _packaged(provider) if packaged else None)
    return next(
        (price for book in books if book is not None and (price := book.find(model))),
        None,
    )


def add(provider: str, rows: Mapping[str, Any], where: str) -> None:
    """Add a user's own prices for a provider.

    Raises:
        ConfigurationError: a price cannot be read.
    """
    _user_books[provider] = read_book(rows, where)


def count_of(provider: str) -> int:
    """Count a provider's models (or patterns) with a known price."""
    books = [
        book
        for book in (_user_books.get(provider), _packaged(provider))
        if book is not None
    ]
    return len(
        {name for book in books for name in book.names}
        | {p.pattern for book in books for p, _ in book.patterns}
    )


def names_of(provider: str) -> list[str]:
    """List the models of a provider whose price is known by their name, sorted."""
    books = (_user_books.get(provider), _packaged(provider))
    return sorted({name for book in books if book is not None for name in book.names})


def as_of() -> str:
    """Return the date of the package's table."""
    return str(_document()["as_of"])


def warn_if_old(price: Price, today: datetime.date | None = None) -> None:
    """Warn, once for each date, that prices of the package's table are older than `OLD` days."""
    if not price.as_of or price.as_of in _warned_dates:
        return
    days = (
        (today or datetime.date.today()) - datetime.date.fromisoformat(price.as_of)
    ).days
    if days > OLD:
        _warned_dates.add(price.as_of)
        _logger.warning(
            "Prices are of %s, %d days ago, and may have changed: docs/providers.md"
            " shows how to set your own.",
            price.as_of,
            days,
        )


_warned_dates: set[str] = set()


@cache
def _document() -> dict[str, Any]:
    with TABLE.open("rb") as file:
        return tomllib.load(file)


@cache
def _packaged(provider: str) -> Book | None:
    rows = _document().get(provider)
    return (
        read_book({"as_of": as_of(), **rows}, f"{TABLE.name}, [{provider}]")
        if isinstance(rows, Mapping)
        else None
    )


def read_book(rows: Mapping[str, Any], where: str) -> Book:
    """Read the prices in a table: `as_of` and `source` for all, then a table by model.

    Raises:
        ConfigurationError: a price cannot be read.
    """
    head = {name: _headline(name, rows[name], where) for name in _HEAD if name in rows}
    names: dict[str, Price] = {}
    patterns: list[tuple[re.Pattern[str], Price]] = []
    for model, row in rows.items():
        if model in _HEAD:
            continue
        price = _price(row, head, f"{where}, price of '{model}'")
        if "*" in model:
            pieces = (re.escape(piece) for piece in model.lower().split("*"))
            patterns.append((re.compile(".*".join(pieces), re.DOTALL), price))
        else:
            names[model.lower()] = price
    return Book(names, tuple(patterns))


def _headline(name: str, content: Any, where: str) -> str:
    text = content.isoformat() if isinstance(content, datetime.date) else content
    if not isinstance(text, str):
        raise ConfigurationError(f"{where}: '{name}' must be text.")
    if name == "as_of":
        try:
            datetime.date.fromisoformat(text)
        except ValueError:
            raise ConfigurationError(
                f"{where}: 'as_of' must be a date such as 2026-11-12, not '{text}'."
            ) from None
    return text


def _price(row: Any, head: Mapping[str, str], at: str) -> Price:
    if not isinstance(row, Mapping):
        raise ConfigurationError(
            f"{at}: a price is a table in dollars per million tokens, such as {{ input"
            " = 0.15, output = 0.6 }."
        )
    allowed = [
        price_field.name for price_field in fields(Price) if price_field.name != "as_of"
    ]
    for key, value in row.items():
        if key not in allowed:
            raise UnknownName(
                "key of a price", key, allowed, f"Known: {', '.join(allowed)}. ({at})"
            )
        if key == "source":
            _headline(key, value, at)
        elif (
            isinstance(value, bool)
            or not isinstance(value, int | float)
            or not math.isfinite(value)
            or value < 0
        ):
            raise ConfigurationError(
                f"{at}: '{key}' must be a number that is not negative."
            )
    missing = [key for key in ("input", "output") if key not in row]
    if missing:
        raise ConfigurationError(
            f"{at}: '{missing[0]}' is missing; give input and output."
        )
    return Price(**{**head, **row})
