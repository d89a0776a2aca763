"""HRET's ways to form an answer (`scaling_method`): names, parameters with their defaults, and what
both rules do with them.

A row that occurs several times in a data set is drawn anew each time, as in HRET, where
`sample.metadata["earlier"]` says how many rows with the same prompt come before it.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from evalwright import Sample
from evalwright.compat.hret.registry import check_parameters
from evalwright.compat.hret.row_samples import Given
from evalwright.compat.hret.tables import tables

logger = logging.getLogger("evalwright")


PROMPT_COT = "\nLet's think step by step.\n"

DRAWN: Mapping[str, Given] = tables()["drawn"]
"""What HRET's documents list and it does not have, with our strategies and their options."""

WITHOUT_EFFECT = ("batch_size", "num_iterations", "use_cot")
"""Parameters that HRET's documents name and that change no answer: batches are the engine's work.
"""

SUMS: Mapping[str, Callable[[Sequence[float]], float]] = {
    "sum": sum,
    "max": max,
    "mean": lambda scores: sum(scores) / len(scores),
}
METHODS: Mapping[str, Given] = {
    "self_consistency": {
        "n_paths": 5,
        "aggregator_fn": None,
        "prompt_cot": None,
        "use_default_parser": True,
    },
    "best_of_n": {"n": 5},
    "beam_search": {"beam_size": 4, "max_tokens": 50, "agg_strategy": "sum"},
}
"""What HRET has, with the defaults of its parameters."""


def settings_of(method: str, params: Given) -> dict[str, Any]:
    """The parameters of one of HRET's methods, with defaults."""
    defaults = METHODS[method]
    known_params = {key: setting for key, setting in params.items() if key in defaults}
    return {**defaults, **known_params}


def check_known(method: str, params: Given, known_names: Collection[str]) -> None:
    """Raise UnknownParameter for a parameter that there is not; log those without an effect."""
    for name in WITHOUT_EFFECT:
        if name in params:
            logger.warning("The parameter '%s' of '%s' has no effect.", name, method)
    others = (name for name in params if name not in WITHOUT_EFFECT)
    check_parameters(f"the scaling method '{method}'", others, known_names)


def draws_before(sample: Sample) -> int:
    """How many rows with the sample's prompt come before it, each with a draw of its own."""
    return int(sample.metadata.get("earlier", 0))


def most_common(candidates: Sequence[str]) -> str:
    """The text that occurs most often, the first of several; "" of none."""
    return Counter(candidates).most_common(1)[0][0] if candidates else ""
