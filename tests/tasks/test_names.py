"""Names are plain enough for files, columns and addresses."""

from __future__ import annotations

import pytest

from evalwright.tasks.names import is_name


@pytest.mark.parametrize("name", ["a", "factual-closed-book", "mmlu_pro.v2", "c++", "5-shot", "x" * 128])
def test_names(name: str) -> None:
    assert is_name(name)


@pytest.mark.parametrize(
    "name", ["", "-a", ".hidden", "..", "a/b", "a b", "a:b", "a\n", "é", "x" * 129, "{{ a }}"]
)
def test_no_names(name: str) -> None:
    assert not is_name(name)
