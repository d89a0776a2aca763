"""The beginning and the end of a stream; what is between them is only counted.

Keepers of jails load this file, so it imports nothing of ours.
"""

from __future__ import annotations

_SPARE_BYTES = 1 << 16
"""How much longer than need be the end may get before it is cut, which moves all of it."""


class KeptOutput:
    """The beginning and the end of a stream.

    Args:
        max_bytes: most bytes that are kept.

    Attributes:
        n_bytes: how many there were.
    """

    def __init__(self, max_bytes: int) -> None:
        self.max_bytes = max_bytes
        self.n_bytes = 0
        self._head_bytes = (max_bytes + 1) // 2
        self._tail_bytes = max_bytes // 2
        self._head = bytearray()
        self._tail = bytearray()

    def add(self, piece: bytes) -> None:
        """Take in the next bytes of the stream."""
        self.n_bytes += len(piece)
        room = self._head_bytes - len(self._head)
        if room > 0:
            self._head += piece[:room]
            piece = piece[room:]
        self._tail += piece
        if len(self._tail) > 2 * self._tail_bytes + _SPARE_BYTES:
            del self._tail[: len(self._tail) - self._tail_bytes]

    @property
    def content(self) -> bytes:
        """What is kept."""
        excess = max(len(self._tail) - self._tail_bytes, 0)
        return bytes(self._head + self._tail[excess:])
