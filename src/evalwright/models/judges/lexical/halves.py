"""Which labelled articles the weights may be fitted on: one half, by a hash of the id, so that adding articles moves none."""

from __future__ import annotations

import hashlib


def is_fitted_on(article_id: str) -> bool:
    """Whether an article is in the half that the weights are fitted on; the other half is for measuring only."""
    return hashlib.blake2b(f"consistency-split:{article_id}".encode(), digest_size=8).digest()[0] % 2 == 0
