"""Names of model pages: safe on every file system, unlike each other, and independent of the
board's order.
"""

from __future__ import annotations

import random
import re

from hypothesis import example, given
from hypothesis import strategies as st

from evalwright.reports.model_pages import page_names
from support.hostile import HOSTILE

SAFE = re.compile(r"[a-z0-9][a-z0-9.-]*\.html")
DEVICE = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\.|$)", re.IGNORECASE)


def _check(names: list[str]) -> None:
    assert len({name.lower() for name in names}) == len(names)
    for name in names:
        assert SAFE.fullmatch(name) and len(name) <= 110 and ".." not in name
        assert (
            not DEVICE.match(name)
            and name != "index.html"
            and not name.endswith((". ", "-.html", "..html"))
        )


@example([("0…0", "")])
@given(st.lists(st.tuples(st.text(max_size=120), st.text(max_size=20)), max_size=12))
def test_any_names(pairs: list[tuple[str, str]]) -> None:
    _check(page_names([label for label, _ in pairs], [run for _, run in pairs]))


def test_devices_empty_names_and_twins_are_marked() -> None:
    labels = [
        "CON",
        "nul.txt",
        "index",
        "",
        "日本語",
        "a/b",
        "a:b",
        "A-B",
        "x" * 300,
        "same",
        "same",
    ]
    names = page_names(labels, [str(i) for i in range(len(labels))])
    _check(names)
    assert names[0].startswith("con-") and re.fullmatch(
        r"a-b-[0-9a-f]{8}\.html", names[5]
    )
    _check(page_names([*HOSTILE, *HOSTILE], ["run"] * 2 * len(HOSTILE)))


def test_the_order_of_the_board_changes_no_name() -> None:
    pairs = [
        (label, f"run-{i}")
        for i, label in enumerate(["a/b", "a:b", "CON", "", "plain", "plain"])
    ]
    wanted = dict(
        zip(pairs, page_names(*map(list, zip(*pairs, strict=True))), strict=True)
    )
    random.Random(0).shuffle(pairs)
    assert (
        dict(zip(pairs, page_names(*map(list, zip(*pairs, strict=True))), strict=True))
        == wanted
    )
