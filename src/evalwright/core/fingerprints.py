"""Fingerprints of models whose identity cannot be known."""

from __future__ import annotations

UNKNOWN_PREFIX = "unknown-"
"""How the fingerprint of such a model begins; the rest is new for each evaluation."""


def is_unknown_fingerprint(fingerprint: str) -> bool:
    """Tell whether a fingerprint was made up for a model whose identity cannot be known."""
    return fingerprint.startswith(UNKNOWN_PREFIX)
