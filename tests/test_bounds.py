"""The bounds on time that other tests hold: linear work passes, the square of it and work
without end fail.
"""

from __future__ import annotations

import re

import pytest

from support.bounds import assert_grows_linearly, ends, repeated


def test_linear_work_passes() -> None:
    assert_grows_linearly(lambda length: sum(range(20 * length)), int)


def test_the_square_fails() -> None:
    at_the_end = re.compile("a+$")
    with pytest.raises(pytest.fail.Exception, match="not linear"):
        assert_grows_linearly(
            at_the_end.search, repeated("a", after="!"), (1_000, 16_000)
        )


def test_work_without_end_fails() -> None:
    with pytest.raises(pytest.fail.Exception, match="still at work"), ends(0.05):
        while True:
            pass
