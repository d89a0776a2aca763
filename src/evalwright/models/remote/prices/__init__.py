"""Prices by provider and model: `prices.toml` of this package, and a person's own."""

from evalwright.models.remote.prices.price import Price
from evalwright.models.remote.prices.price_table import (
    add,
    as_of,
    count_of,
    names_of,
    price_of,
    warn_if_old,
)

__all__ = [
    "Price",
    "add",
    "as_of",
    "count_of",
    "names_of",
    "price_of",
    "warn_if_old",
]
