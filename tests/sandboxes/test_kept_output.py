"""What is kept of a stream, however it comes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalwright.sandboxes.kept_output import KeptOutput


@given(st.lists(st.binary(max_size=60)), st.integers(0, 50))
def test_the_beginning_and_the_end_are_kept(pieces: list[bytes], most: int) -> None:
    output = KeptOutput(most)
    for piece in pieces:
        output.add(piece)
    stream = b"".join(pieces)
    assert output.n_bytes == len(stream)
    n_head = (most + 1) // 2
    whole = (
        stream
        if len(stream) <= most
        else stream[:n_head] + stream[len(stream) - most // 2 :]
    )
    assert output.content == whole


def test_a_long_stream_takes_little_memory() -> None:
    output = KeptOutput(1_000)
    for _ in range(1_000):
        output.add(b"x" * 10_000)
    output.add(b"end")
    assert output.n_bytes == 10_000_003
    assert output.content == b"x" * 997 + b"end"
    assert len(output._tail) <= 1_000 + (1 << 16)
