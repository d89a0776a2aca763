"""The board between markers: idempotent, and nothing outside is touched."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.core.errors import ConfigurationError
from evalwright.reports.markers import END, START, put_between

BLOCK = "| a |\n| - |\n| 1 |"
LINES = st.lists(
    st.text(
        st.characters(blacklist_categories=["Cs"], blacklist_characters="\0`~<\r\n")
    ),
    max_size=5,
)


@given(LINES, LINES, st.sampled_from(["\n", "\r\n"]), st.booleans())
def test_what_stands_outside_stays_byte_for_byte(
    before: list[str], after: list[str], line_end: str, theirs: bool
) -> None:
    first, last = (
        ("<!-- LEADERBOARD_START -->", "<!-- LEADERBOARD_END -->")
        if theirs
        else (START, END)
    )
    head = line_end.join([*before, first])
    tail = line_end.join([last, *after])
    text = f"{head}{line_end}old{line_end}{tail}".encode()
    once = put_between(text, BLOCK, "Board")
    assert once.startswith(head.encode()) and once.endswith(tail.encode())
    assert b"old" not in once[len(head.encode()) : len(once) - len(tail.encode())]
    inside = once[len(head.encode()) : len(once) - len(tail.encode())]
    assert inside.replace(b"\r\n", b"\n") == f"\n\n{BLOCK}\n\n".encode()
    assert put_between(once, BLOCK, "Board") == once


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("", f"# Board\n\n{START}\n\nx\n\n{END}\n"),
        ("\n \n", f"\n \n# Board\n\n{START}\n\nx\n\n{END}\n"),
        ("A text", f"A text\n\n## Board\n\n{START}\n\nx\n\n{END}\n"),
        ("A text\r\n", f"A text\r\n\r\n## Board\r\n\r\n{START}\r\n\r\nx\r\n\r\n{END}\r\n"),
        (f"{START}{END}", f"{START}\n\nx\n\n{END}"),
        (f"a {START}\n\n\nold\n  {END} b", f"a {START}\n\nx\n\n{END} b"),
        ("<!--evalwright:leaderboard:start-->\n<!--\tevalwright:leaderboard:end -->",
         "<!--evalwright:leaderboard:start-->\n\nx\n\n<!--\tevalwright:leaderboard:end -->"),
    ],
)  # fmt: skip
def test_where_the_block_goes(text: str, wanted: str) -> None:
    once = put_between(text.encode(), "x\n", "Board")
    assert once.decode() == wanted
    assert put_between(once, "x\n", "Board") == once


def test_markers_in_code_are_examples() -> None:
    shown = f"Write `{START}` and\n\n```html\n{START}\n{END}\n```\n\n~~~~\n{START}\n~~~\n{END}\n~~~~\n"
    once = put_between(shown.encode(), "x", "Board").decode()
    assert once.startswith(shown)
    assert once.endswith(f"## Board\n\n{START}\n\nx\n\n{END}\n")
    assert put_between(once.encode(), "x", "Board").decode() == once


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f"a\n{START}\n", "the start marker of a leaderboard (line 2) without the end marker. Add '<!-- evalwright"),
        (f"{END}\n", "the end marker of a leaderboard (line 1) without the start marker"),
        (f"{START}\n{END}\n{START}\n{END}\n", "several markers of a leaderboard (lines 1, 2, 3, 4)"),
        (f"{START}\n{START}\n{END}\n", "several markers of a leaderboard (lines 1, 2, 3)"),
        (f"{START}\n{END}\n<!-- LEADERBOARD_START -->\n<!-- LEADERBOARD_END -->", "several markers"),
        (f"{END}\n{START}\n", "the end marker of the leaderboard (line 1) is before the start marker (line 2)"),
        (f"{START}\n<!-- LEADERBOARD_END -->", "do not match"),
        ("a\0b", "not a text file"),
    ],
)  # fmt: skip
def test_what_is_no_pair_is_refused(text: str, said: str) -> None:
    with pytest.raises(ConfigurationError) as error:
        put_between(text.encode(), "x", "Board")
    assert said in str(error.value)


def test_other_encodings_are_refused() -> None:
    for data in ("Größe".encode("latin-1"), "Text".encode("utf-16")):
        with pytest.raises(ConfigurationError, match="UTF-8"):
            put_between(data, "x", "Board")
