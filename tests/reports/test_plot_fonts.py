"""Texts fit their room, and are shown whole where they fit."""

from __future__ import annotations

import pytest

pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")

from hypothesis import given, settings
from hypothesis import strategies as st

from evalwright.reports.plot import REPLACEMENT_CHARACTER, Fonts

FONTS = Fonts()


@settings(max_examples=40)
@given(
    st.text(
        st.characters(min_codepoint=32, max_codepoint=0x24F), min_size=1, max_size=80
    ),
    st.floats(0.4, 4),
)
def test_a_fitted_text_fits_and_keeps_both_ends(text: str, room: float) -> None:
    shown = FONTS.shorten_to_fit(text, 10, room)
    if shown == text:
        assert FONTS.width(text, 10) <= room
        return
    head, tail = shown.split("…", 1) if text.count("…") == 0 else (shown[:1], "")
    assert FONTS.width(shown, 10) <= room
    assert text.startswith(head) and text.endswith(tail)


def test_a_letter_that_no_font_has_is_replaced() -> None:
    _, shown = FONTS.font_for("a\U000e0b95b", 10)
    assert shown == f"a{REPLACEMENT_CHARACTER}b"
    assert FONTS.font_for("Größe/Модель", 10)[1] == "Größe/Модель"
