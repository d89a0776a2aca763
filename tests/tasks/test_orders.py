"""Orders that a word alone decides."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalwright.tasks.orders import shuffled


@given(st.integers(0, 200), st.text(max_size=5))
def test_an_order_is_a_permutation_that_its_key_decides(size: int, key: str) -> None:
    order = list(shuffled(size, key))
    assert sorted(order) == list(range(size))
    assert list(shuffled(size, key)) == order


def test_orders_do_not_change_between_versions() -> None:
    assert list(shuffled(8, "0")) == [1, 4, 7, 6, 3, 2, 0, 5]


def test_orders_favour_no_place() -> None:
    counts = [0] * 6
    for key in range(3000):
        counts[next(shuffled(6, str(key)))] += 1
    # 500 expected, standard deviation 20.4: five of them either way.
    assert all(398 < count < 602 for count in counts)
