"""Orders that a word alone decides, the same on every machine: of the shots of a task, of the
choices of a sample.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator


def shuffled(size: int, key: str) -> Iterator[int]:
    """The numbers below `size` in an order that `key` alone decides (Fisher and Yates, one step at
    a time).
    """
    moved: dict[int, int] = {}
    for step in range(size):
        digest = hashlib.blake2b(
            f"{key}/{step}".encode("utf-8", "surrogatepass"), digest_size=8
        ).digest()
        swapped = step + int.from_bytes(digest, "big") % (size - step)
        yield moved.get(swapped, swapped)
        moved[swapped] = moved.pop(step, step)
