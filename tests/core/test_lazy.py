"""What is made on first use."""

from __future__ import annotations

import re
import sys

import pytest

from evalwright.core.lazy import lazy_pattern
from evalwright.scorers import choice, short_answer


def test_a_lazy_pattern_is_like_a_compiled_one() -> None:
    lazy = lazy_pattern(r"(?P<word>a+)", re.IGNORECASE)
    compiled = re.compile(r"(?P<word>a+)", re.IGNORECASE)
    assert lazy.sub("-", "bAab") == compiled.sub("-", "bAab")
    assert lazy.pattern == compiled.pattern
    assert lazy.groupindex == compiled.groupindex
    assert [match.span() for match in lazy.finditer("aba")] == [(0, 1), (2, 3)]
    with pytest.raises(re.error):
        lazy_pattern("(").search("")


def test_every_lazy_pattern_of_the_scorers_compiles() -> None:
    assert choice
    assert short_answer
    patterns = [
        member
        for name, module in list(sys.modules.items())
        if name.startswith("evalwright.scorers")
        for attribute in vars(module).values()
        for member in (attribute if isinstance(attribute, tuple) else (attribute,))
        if type(member).__name__ == "_LazyPattern"
    ]
    assert len(patterns) > 100
    for pattern in patterns:
        pattern.search("")
