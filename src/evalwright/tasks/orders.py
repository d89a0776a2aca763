"""Orders decided only by a key, equal on every machine: of a task's shots, a sample's choices."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator


def shuffled(size: int, key: str) -> Iterator[int]:
    """Yield the numbers below `size` in an order that depends only on `key` (Fisher-Yates)."""
    moved: dict[int, int] = {}
    for step in range(size):
        digest = hashlib.blake2b(
            f"{key}/{step}".encode("utf-8", "surrogatepass"), digest_size=8
        ).digest()
        swapped = step + int.from_bytes(digest, "big") % (size - step)
        yield moved.get(swapped, swapped)
        moved[swapped] = moved.pop(step, step)
