from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from evalwright.reports.layout import Block, Column, Gap, Heading, Line, Table, lay_out
from evalwright.reports.text import cell_width


def lines(blocks: list[Block], width: int) -> list[str]:
    return ["".join(segment.text for segment in line) for line in lay_out(blocks, width)]


def test_a_page() -> None:
    table = Table(
        (Column("Name", folds=True), Column("n", right=True)),
        (("one", "1"), ("two", "10")),
        {(0, 0): "strong"},
    )
    page: list[Block] = [Heading("Title"), Line("Some words", indent=2), Gap(), table, Heading("Next")]
    assert lines(page, 40) == [
        "Title",
        "  Some words",
        "",
        "Name   n",
        "----  --",
        "one    1",
        "two   10",
        "",
        "Next",
    ]
    assert any(
        segment.tone == "strong" and segment.text == "one " for line in lay_out(page, 40) for segment in line
    )


def test_text_folds_and_numbers_do_not() -> None:
    table = Table(
        (Column("Name", folds=True), Column("Score")), (("a name of many words", "62.5 [57.1, 67.6]"),), {}
    )
    assert lines([table], 36) == [
        "Name               Score",
        "-----------------  -----------------",
        "a name of many     62.5 [57.1, 67.6]",
        "words",
    ]  # fmt: skip


def test_a_wide_table_falls_into_parts_that_repeat_the_key() -> None:
    columns = (Column("Model", key=True), *(Column(f"task {i}") for i in range(4)))
    rows = (("m", "11.1 [1, 2]", "22.2 [1, 2]", "33.3 [1, 2]", "44.4 [1, 2]"),)
    shown = lines([Table(columns, rows, {})], 40)
    assert [line for line in shown if line.startswith("Model")] == [
        "Model  task 0       task 1",
        "Model  task 2       task 3",
    ]
    assert sum(line.startswith("m ") for line in shown) == 2


@given(
    st.lists(st.lists(st.text("ab /7", max_size=30), min_size=4, max_size=4), max_size=4),
    st.integers(40, 120),
)
def test_no_line_is_too_wide_and_no_number_is_lost(cells: list[list[str]], width: int) -> None:
    columns = (
        Column("Key", folds=True, key=True),
        Column("Text", folds=True),
        Column("A", right=True),
        Column("B"),
    )
    numbers = [(f"{len(row[2])}.5 [1.0, 2.0]", f"{len(row[3])},000") for row in cells]
    rows = tuple((row[0], row[1], *pair) for row, pair in zip(cells, numbers, strict=True))
    shown = lines([Table(columns, rows, {}, indent=2)], width)
    assert all(cell_width(line) <= width for line in shown)
    assert all(line == line.rstrip() for line in shown)
    text = "\n".join(shown)
    assert all(number in text for pair in numbers for number in pair)
