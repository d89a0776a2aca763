"""What the library math-verify reads in two texts."""

from __future__ import annotations

import logging
from contextlib import suppress
from typing import Any


def compare_with_math_verify(
    response: str, reference: str, latex: bool = True, expression: bool = True
) -> tuple[Any, ...]:
    """Compare two texts with the library math-verify, as it is.

    Returns:
        What it reads in each text (None where it fails), and whether it finds them equal.
    """
    from math_verify import ExprExtractionConfig, LatexExtractionConfig, parse, verify

    logging.disable(logging.CRITICAL)
    configs = [LatexExtractionConfig()] * latex + [ExprExtractionConfig()] * expression
    read: list[Any] = [None, None]
    right = False
    with suppress(Exception):
        read[0] = parse(response, extraction_config=configs)
    with suppress(Exception):
        read[1] = parse(reference, extraction_config=configs)
        right = read[0] is not None and bool(verify(read[1], read[0]))
    return *(
        parsed and [str(expression) for expression in parsed] for parsed in read
    ), right
