"""The sizes of a demonstration network."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Shape:
    """Sizes of a network. `heads` divide `width` evenly; `inner` is the width of the SwiGLU."""

    vocabulary: int
    width: int
    layers: int
    heads: int
    inner: int
    context: int = 1024
    rope_base: float = 10000.0
    epsilon: float = 1e-5

    @property
    def head_size(self) -> int:
        """Numbers per head."""
        return self.width // self.heads
