"""What tokens cost: a dated table, a person's own prices over it, and the cost of an answer."""

from evalwright.models.remote.prices.table import Price, add, as_of, count_of, price_of, warn_if_old

__all__ = ["Price", "add", "as_of", "count_of", "price_of", "warn_if_old"]
