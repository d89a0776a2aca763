"""Checks numbers among the options of strategies."""

from __future__ import annotations

import math
from typing import Any

from evalwright.core.errors import ConfigurationError


def check_number(
    strategy: str,
    option: str,
    number: Any,
    least: float,
    most: float,
    *,
    is_whole: bool = False,
) -> None:
    """Check an option that is a number.

    Args:
        strategy: the strategy's name, for the message.
        option: the option's name.
        number: what the task file has.
        least: the least number that is allowed.
        most: the greatest.
        is_whole: whether it has to be a whole number.

    Raises:
        ConfigurationError: it is no such number.
    """
    types = (int,) if is_whole else (int, float)
    is_number = isinstance(number, types) and not isinstance(number, bool)
    if not is_number or not math.isfinite(number) or not least <= number <= most:
        noun = "whole number" if is_whole else "number"
        raise ConfigurationError(
            f"The option '{option}' of '{strategy}' is a {noun} from {least:g} to {most:g},"
            f" not {number!r}."
        )
