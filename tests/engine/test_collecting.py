"""The collector of cyclic garbage: rarer inside, as before outside, and never more frequent than
somebody wants it.
"""

from __future__ import annotations

import gc

import pytest

from evalwright.engine.collecting import rare_collections


@pytest.mark.parametrize("before", [(700, 10, 10), (100_000, 5, 5), (0, 0, 0)])
def test_thresholds_are_restored(before: tuple[int, int, int]) -> None:
    original = gc.get_threshold()
    gc.set_threshold(*before)
    try:
        with pytest.raises(KeyError), rare_collections():
            inside = gc.get_threshold()
            raise KeyError
        assert gc.get_threshold() == before
    finally:
        gc.set_threshold(*original)
    assert inside[0] == (20_000 if before[0] == 700 else before[0])
