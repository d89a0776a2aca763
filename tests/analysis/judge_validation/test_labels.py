"""Tables come back in every dialect that spreadsheets write, and what is wrong is told with its
file and line.
"""

from __future__ import annotations

import math
from pathlib import Path

import pytest

from evalwright import UsageError
from evalwright.analysis.judge_validation.labels import read_label_files

ROWS = [
    ("s00000001-1", "1", "Ann"),
    ("s00000001-2", "0", "Ann"),
    ("s00000001-3", "", "Ann"),
]


def write(tmp_path: Path, data: str | bytes, name: str = "done.csv") -> str:
    path = tmp_path / name
    path.write_bytes(data if isinstance(data, bytes) else data.encode())
    return str(path)


def told(path: str) -> list[tuple[int, float | None, str]]:
    (file,) = read_label_files([path])
    return [
        (x.number, None if math.isnan(x.value) else x.value, x.labeller)
        for x in file.labels
    ]


def plain(delimiter: str = ",", end: str = "\n", decimal: str = ".") -> str:
    lines = [
        ("row", "answer", "label", "labeller"),
        *((r, 'two\nlines, and "quotes"; so', v, w) for r, v, w in ROWS),
    ]
    quoted = (
        delimiter.join('"' + cell.replace('"', '""') + '"' for cell in line)
        for line in lines
    )
    return end.join(quoted) + end


@pytest.mark.parametrize("delimiter", [",", ";", "\t"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "cp1252"])
def test_dialects(tmp_path: Path, delimiter: str, end: str, encoding: str) -> None:
    text = plain(delimiter, end).replace("Ann", "Zoë")
    wanted = [(0, 1.0, "Zoë"), (1, 0.0, "Zoë"), (2, None, "Zoë")]
    assert told(write(tmp_path, text.encode(encoding))) == wanted
    assert (
        told(write(tmp_path, f"sep={delimiter}{end}{text}".encode(encoding))) == wanted
    )


@pytest.mark.parametrize(
    ("text", "value"),
    [("1", 1), ("0", 0), ("1.0", 1), ("0,5", 0.5), ("0.25", 0.25), (" Yes ", 1), ("FALSE", 0), ("'1", 1), ("", None), (" ", None)],
)  # fmt: skip
def test_what_people_write_for_a_label(
    tmp_path: Path, text: str, value: float | None
) -> None:
    assert told(write(tmp_path, f"label;row\n{text};'s00000001-1\n")) == [
        (0, value, "")
    ]


@pytest.mark.parametrize(
    "text",
    ["2", "-1", "1.01", "maybe", "nan", "inf", "1e400", "50%", "=1+0", "\x1b[2J"],
)
def test_labels_that_are_none(tmp_path: Path, text: str) -> None:
    with pytest.raises(UsageError, match=r"done\.csv, line 3: .*label") as caught:
        told(write(tmp_path, f"label,row\n1,s00000001-1\n{text},s00000001-2\n"))
    assert "\x1b" not in str(caught.value)


@pytest.mark.parametrize(
    "name",
    [
        "",
        "item-1",
        "s00000001",
        "s00000001-0",
        "s0000001-1",
        "../s00000001-1",
        "s00000001-1x",
    ],
)
def test_rows_that_are_none(tmp_path: Path, name: str) -> None:
    with pytest.raises(UsageError, match=r"done\.csv, line 2: .*'row'"):
        told(write(tmp_path, f"row,label\n{name},1\n"))


def test_lines_are_counted_through_cells_with_line_breaks(tmp_path: Path) -> None:
    text = 'row,label,note\ns00000001-1,1,"a\nb\nc"\n\ns00000001-2,7,x\n'
    with pytest.raises(UsageError, match=r"line 6: the label '7'"):
        told(write(tmp_path, text))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("row,lable\ns00000001-1,1\n", "'label' is missing. Is 'lable' meant?"),
        ("id,label\nitem-1,1\n", "'row' is missing"),
        ("row,label,label\ns00000001-1,1,0\n", "'label' is given twice"),
        ("", "'row' is missing|are empty"),
    ],
)
def test_headers_that_cannot_be_used(tmp_path: Path, text: str, words: str) -> None:
    with pytest.raises(UsageError, match=words):
        told(write(tmp_path, text))


def test_a_row_is_labelled_once_by_each_person(tmp_path: Path) -> None:
    twice = write(tmp_path, "row,label\ns00000001-1,1\ns00000001-1,0\n")
    with pytest.raises(UsageError, match=r"line 3: .*done\.csv, line 2"):
        read_label_files([twice])
    named = write(
        tmp_path,
        "row,label,labeller\ns00000001-1,1,Ann\ns00000001-1,0,Bob\n",
        "named.csv",
    )
    assert len(read_label_files([named])[0].labels) == 2
    again = write(tmp_path, "row,label,labeller\ns00000001-1,1, ann \n", "again.csv")
    with pytest.raises(UsageError, match=r"again\.csv, line 2: .*by 'ann'"):
        read_label_files([named, again])


@pytest.mark.parametrize(
    "data",
    [
        b"\x00\x01\x02",
        b"PK\x03\x04 not a table",
        b"\xff\xfe\x00",
        b'row,label\n"open',
        b"\n\n\n",
    ],
)
def test_what_is_no_table(tmp_path: Path, data: bytes) -> None:
    with pytest.raises(UsageError):
        told(write(tmp_path, data))
