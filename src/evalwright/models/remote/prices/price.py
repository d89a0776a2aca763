"""The price of a model, and what an answer costs by it."""

from __future__ import annotations

from dataclasses import dataclass, fields
from decimal import Decimal
from typing import Any

from evalwright.core.responses import Usage

_MILLION = Decimal(1_000_000)


@dataclass(frozen=True, slots=True)
class Price:
    """Prices in US dollars per million tokens.

    Attributes:
        input: price of input tokens.
        output: price of output tokens, reasoning included.
        cached_input: price of cached input tokens; None if they cost the same.
        batch: the factor for batch requests.
        request: dollars for each request.
        long_above: with more prompt tokens than this, the `long_` prices apply.
        source: the address of the price list.
        as_of: the date of the price list ("2026-11-12"), or "".
    """

    input: float
    output: float
    cached_input: float | None = None
    batch: float | None = None
    request: float = 0.0
    long_above: int | None = None
    long_input: float | None = None
    long_cached_input: float | None = None
    long_output: float | None = None
    source: str = ""
    as_of: str = ""

    def cost(self, usage: Usage, *, batched: bool = False) -> float | None:
        """Return the US dollars for one answer, computed exactly before it is rounded to a float.

        It is None if nothing was counted, and for an answer of a batch if the batch price is
        unknown.
        """
        read = usage.input_tokens
        written = usage.output_tokens
        if not read and not written:
            return None
        input_price = self.input
        cached = self.cached_input
        output_price = self.output
        if self.long_above is not None and read > self.long_above:
            input_price = input_price if self.long_input is None else self.long_input
            cached = (
                cached if self.long_cached_input is None else self.long_cached_input
            )
            output_price = (
                output_price if self.long_output is None else self.long_output
            )
        cached_tokens = min(usage.cached_tokens, read)
        total = _times(read - cached_tokens, input_price) + _times(
            cached_tokens, input_price if cached is None else cached
        )
        total_cost = (total + _times(written, output_price)) / _MILLION + Decimal(
            str(self.request)
        )
        if not batched:
            return float(total_cost)
        return (
            None if self.batch is None else float(total_cost * Decimal(str(self.batch)))
        )

    def as_dict(self) -> dict[str, Any]:
        """Return the prices that are set as a mapping for JSON."""
        by_name = {
            price_field.name: getattr(self, price_field.name)
            for price_field in fields(self)
        }
        return {
            name: value
            for name, value in by_name.items()
            if value not in (None, "") and (value or name != "request")
        }


def _times(tokens: int, price: float) -> Decimal:
    return tokens * Decimal(str(price))
