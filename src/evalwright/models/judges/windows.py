"""How many tokens a checkpoint reads at once, as its files say."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_OFFSET = (
    "roberta",
    "xlm-roberta",
    "xlm-roberta-xl",
    "camembert",
    "longformer",
    "mpnet",
    "roberta-prelayernorm",
)
"""Families whose positions begin after the padding's, so that the table holds more of them than a text may have."""


def window_of(config: Mapping[str, Any], tokenizer_config: Mapping[str, Any]) -> int | None:
    """Tokens of a pair, special ones included; None where the files name no limit.

    The smaller of the table of positions and of what the tokenizer was saved with. Where positions are relative only (T5;
    DeBERTa without a bias by position) the number is what it was trained on.
    """
    found: list[int] = []
    for key in ("max_position_embeddings", "n_positions", "n_ctx"):
        value = config.get(key)
        if isinstance(value, int) and value > 0:
            offset = int(config.get("pad_token_id") or 0) + 1 if config.get("model_type") in _OFFSET else 0
            found.append(value - offset)
            break
    longest = tokenizer_config.get("model_max_length")
    if isinstance(longest, (int, float)) and 0 < longest < 1e9:
        found.append(int(longest))
    return min(found, default=None)
