from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalwright.reports.text import cell_width, inert, wrap
from support.hostile import ACTIVE, HOSTILE


def test_inert_leaves_nothing_that_acts() -> None:
    for text in HOSTILE:
        shown = inert(text)
        assert not set(shown) & {*ACTIVE, "\n", "\t"}
        shown.encode()  # no lone surrogate is left


def test_inert_shows_what_it_neutralised() -> None:
    assert inert("\x1b[31m\nb\u202e") == "\\x1b[31m\\nb\\u202e"
    assert inert("\U000e0041") == "\\U000e0041"


@given(st.text())
def test_inert_is_done_after_one_pass(text: str) -> None:
    assert inert(inert(text)) == inert(text)
    assert inert(text).isprintable() or any(not char.isprintable() for char in text)


def test_cell_width_counts_wide_and_combining_characters() -> None:
    assert cell_width("abc") == 3
    assert cell_width("日本") == 4
    assert cell_width("e\u0301") == 1


@given(st.text(alphabet="ab /-.7日\u0301", max_size=60), st.integers(2, 20))
def test_wrap_fits_and_loses_only_spaces(text: str, width: int) -> None:
    lines = wrap(text, width)
    assert lines
    assert all(cell_width(line) <= width for line in lines)
    assert "".join(lines).replace(" ", "") == text.replace(" ", "")


def test_wrap_breaks_names_at_separators_and_never_inside_a_decimal() -> None:
    assert wrap("hf/meta-llama/Llama-3.3-70B", 16) == [
        "hf/meta-llama/",
        "Llama-3.3-70B",
    ]
    assert wrap("the p value is p = 0.00022, n = 240", 22) == [
        "the p value is p =",
        "0.00022, n = 240",
    ]
