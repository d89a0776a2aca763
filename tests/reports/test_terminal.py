"""Documents on a terminal: the facts, the width, the colour, and nothing that acts."""

from __future__ import annotations

import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from evalwright.analysis.board import make_board
from evalwright.analysis.gate import judge, parse_gate_rule
from evalwright.api import compare
from evalwright.core.errors import Failure
from evalwright.reports.document import (
    Column,
    Document,
    Facts,
    Heading,
    Note,
    Table,
    Text,
)
from evalwright.reports.documents.board import board_document
from evalwright.reports.documents.run import run_document, runs_document
from evalwright.reports.documents.summary import (
    board_summary,
    run_summary,
    runs_summary,
)
from evalwright.reports.terminal import show
from evalwright.reports.text import cell_width
from evalwright.runs.reader import Run
from support.hostile import ACTIVE, HOSTILE, as_task_name
from support.runs import make_run
from support.shown import compared, in_a_terminal, terminal

STRONG = [1.0] * 36 + [0.0] * 4
WEAK = [1.0] * 4 + [0.0] * 35 + [None]


def two_runs(folder: Path) -> tuple[Run, Run]:
    strong = make_run(
        folder,
        model="demo/large",
        name="a",
        scores=STRONG,
        domains=["x", "y"],
        cost=0.0123,
    )
    weak = make_run(
        folder, model="demo/small", name="b", scores=WEAK, domains=["x", "y"]
    )
    return strong, weak


def row_with(text: str, start: str) -> list[str]:
    """The cells of the first line that has a cell `start`."""
    rows = [re.split(r"\s{2,}", line.strip()) for line in text.splitlines()]
    return next(row for row in rows if start in row)


def test_a_run_shows_metrics_slices_failures_usage_and_files(tmp_path: Path) -> None:
    run = two_runs(tmp_path)[1]
    text = terminal(run_document(run), width=200)
    assert row_with(text, "accuracy") == [
        "accuracy",
        "10.3 [4.1, 23.6]",
        "39, 1 missing",
        "95% Wilson",
    ]
    for part in (
        "demo/small",
        str(run.data["model"]["fingerprint"]),
        "40 samples, 1 missing",
        "By domain",
        "1 × rate limited: The provider's rate limit lasted",
        "First: HTTP 429: slow down.",
        "39 sent, 0 from the store, 1 failed, 9 retries",
        "1,560 in, 312 out",
        str(run.folder / "run.json"),
        str(run.folder / "samples.jsonl"),
    ):
        assert part in text


def test_a_run_in_short_fits_one_screen(tmp_path: Path) -> None:
    tasks = {f"task-number-{place}": [1.0, 0.0, None, 1.0] * 5 for place in range(12)}
    run = make_run(tmp_path, name="many", scores=tasks, cost=0.5)
    text = terminal(run_summary(run), width=80)
    assert len(text.splitlines()) <= 40 and max(map(len, text.splitlines())) <= 80
    row = row_with(text, "task-number-3")
    assert row[1:3] == ["66.7 [41.7, 84.8]", "15 of 20"]
    assert row_with(text, "Metric")[1] == "accuracy"
    for part in ("60 × rate limited", "evalwright runs show", "samples", "--missing"):
        assert part in text
    one = terminal(
        run_summary(make_run(tmp_path, name="one", scores=[1.0, 0.0, None])), width=80
    )
    assert "Of 3 samples 1 missing, left out of the scores." in " ".join(one.split())


def test_no_name_is_folded_while_there_is_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(
        tmp_path
    )  # the lines that name folders are as long wherever the test runs
    names = [
        f"the-very-long-name-of-a-task-in-a-benchmark-{place}" for place in range(12)
    ]
    scores = {name: [1.0, 0.0, None, 1.0] for name in names}
    made = [
        make_run(Path("runs"), name=f"run-{i}", model=f"demo/{i}", scores=scores)
        for i in range(2)
    ]
    for document in (run_summary(made[0]), runs_summary(made)):
        text = terminal(document, width=80)
        assert all(name in text for name in names)
        assert max(map(len, text.splitlines())) <= 80
    short = board_summary(make_board(made), "One is better.")
    text = terminal(runs_summary(made), width=80) + terminal(short, width=80)
    assert len(text.splitlines()) <= 72 and text.splitlines()[-1] == "One is better."


@pytest.mark.parametrize("name", ["odd*", "odd~", "odd>"])
def test_the_end_of_a_tasks_name_is_no_mark_of_a_column(
    tmp_path: Path, name: str
) -> None:
    made = [
        make_run(tmp_path, name=run, model=f"demo/{run}", scores={name: STRONG})
        for run in ("one", "two")
    ]
    assert name in row_with(terminal(board_summary(make_board(made)), width=80), "Rank")


def test_runs_in_short_stand_side_by_side(tmp_path: Path) -> None:
    made = [
        make_run(
            tmp_path,
            name=name,
            model=f"demo/{name}",
            scores={"a": [1.0, value], "b": [None, None]},
        )
        for name, value in (("one", 0.0), ("two", 1.0))
    ]
    text = terminal(runs_summary(made), width=80)
    assert row_with(text, "Task") == ["Task", "demo/one", "demo/two"]
    assert row_with(text, "b")[1:] == ["n/a", "n/a"]
    assert "2 × rate limited" in text
    wide = terminal(runs_summary(made), width=1000)
    (one, two) = (run.folder for run in made)
    assert (
        f"evalwright compare {one} {two} --flips 5" in wide
        and f"evalwright view {one} {two}" in wide
    )


def test_a_comparison_ends_with_its_conclusion(tmp_path: Path) -> None:
    runs = two_runs(tmp_path)
    comparison = compare(*runs)
    text = terminal(compared(comparison), width=400)
    assert text.splitlines()[-1] == comparison.conclusion
    row = row_with(text, "factual (accuracy)")
    assert (
        row[1:3] == ["92.3", "10.3"]
        and "32 : 0" in row
        and row[3].startswith("+82.1 [")
    )
    assert (
        "39, 1 missing" in text
        and "It holds whatever the 1 missing would have scored" in text
    )
    assert "32 higher in A, 0 higher in B), the first 5" in text


@pytest.mark.parametrize("width", [80, 120])
def test_several_runs_by_number(tmp_path: Path, width: int) -> None:
    middle = make_run(
        tmp_path, model="demo/middle", name="c", scores=[1.0] * 20 + [0.0] * 20
    )
    strong, weak = two_runs(tmp_path)
    comparison = compare(strong, middle, weak)
    text = terminal(compared(comparison), width=width)
    lines = text.splitlines()
    models = [line.split()[:2] for line in lines if " demo/" in line][:3]
    assert models == [["1", "demo/large"], ["2", "demo/middle"], ["3", "demo/small"]]
    pairs = [line.split()[:3] for line in lines if re.match(r"  \d - \d ", line)]
    assert pairs == [["1", "-", "3"], ["2", "-", "3"], ["1", "-", "2"]]
    assert " ".join(text.split()).endswith(comparison.conclusion)
    assert "39 of 40" in row_with(text, "demo/small")


def test_nothing_hostile_reaches_the_terminal_and_no_line_is_too_wide(
    tmp_path: Path,
) -> None:
    failure = Failure(HOSTILE[13], "provider", "".join(HOSTILE))
    runs = []
    documents = []
    for i, name in enumerate(HOSTILE):
        pair = [
            make_run(
                tmp_path,
                model=name or "x",
                name=f"{side}{i}",
                scores={
                    as_task_name(name): [1.0, 0.0, None],
                    "t": [float(side == "a"), 1.0],
                },
                domains=[name, "other"],
                failure=failure,
                ids=f"{name.replace('{', '').replace('}', '')}-{{}}",
            )
            for side in "ab"
        ]
        gates = [judge(pair[0], pair[1], [parse_gate_rule("accuracy differs")])]
        third = make_run(
            tmp_path,
            model="third",
            name=f"c{i}",
            scores={as_task_name(name): [0.0, 1.0], "t": [1.0]},
        )
        documents += [
            run_document(pair[0]),
            compared(compare(*pair, slices=["domain"], equivalent=0.1), gates),
            compared(compare(*pair, third, slices=["domain"])),
        ]
        runs += pair
    documents += [board_document(make_board(runs)), runs_document(runs)]
    for width in (80, 140):
        text = terminal(*documents, width=width)
        assert not set(text) & set(ACTIVE)
        assert [line for line in text.splitlines() if cell_width(line) > width] == []
        assert "[bold]rich[/bold] :smile:" in text


def test_a_file_that_knows_ascii_only_gets_question_marks(tmp_path: Path) -> None:
    raw = io.BytesIO()
    out = io.TextIOWrapper(raw, encoding="ascii")
    show(runs_document([make_run(tmp_path, model="日本", scores=[1.0, 0.0])]), file=out)
    assert b"??" in raw.getvalue()


# -- tables
# ---------------------------------------------------------------------------------------------------------------


def test_a_wide_table_falls_into_parts_that_repeat_the_key() -> None:
    columns = (Column("Model", key=True), *(Column(f"task {i}") for i in range(4)))
    rows = [("m", "11.1 [1, 2]", "22.2 [1, 2]", "33.3 [1, 2]", "44.4 [1, 2]")]
    heads = [
        line.split()
        for line in terminal(
            Document("", [Table(columns, rows)]), width=42
        ).splitlines()
    ]
    assert [head for head in heads if head[:1] == ["Model"]] == [
        ["Model", "task", "0", "task", "1"],
        ["Model", "task", "2", "task", "3"],
    ]


def test_two_rows_of_many_numbers_are_turned() -> None:
    columns = [
        Column("Rank", key=True),
        Column("Model", key=True, folds=True),
        *(Column(f"task {i}") for i in range(30)),
    ]
    rows = [
        [str(rank), name, *[f"{rank}{i}.0 [10.0, 20.0]" for i in range(30)]]
        for rank, name in ((1, "one"), (2, "two"))
    ]
    text = terminal(Document("", [Table(columns, rows, "")]), width=80)
    lines = [line.split("  ") for line in text.splitlines()]
    assert len(lines) < 36 and lines[0][-1].strip() == "two"
    assert ["Rank", "1", "2"] in [
        [cell.strip() for cell in line if cell.strip()] for line in lines
    ]
    assert all(
        f"{rank}{i}.0 [10.0, 20.0]" in text for rank in (1, 2) for i in range(30)
    )
    more = terminal(
        Document("", [Table(columns, rows * 3, "")]), width=80
    )  # of many rows the columns are repeated in parts
    assert sum(line.strip().startswith("Rank") for line in more.splitlines()) > 3


@given(
    st.lists(
        st.lists(st.text("ab /7", max_size=30), min_size=4, max_size=4), max_size=4
    ),
    st.integers(40, 120),
)
def test_no_line_is_too_wide_and_no_number_is_lost(
    cells: list[list[str]], width: int
) -> None:
    columns = (
        Column("Key", folds=True, key=True),
        Column("Text", folds=True),
        Column("A", right=True),
        Column("B"),
    )
    numbers = [(f"{len(row[2])}.5 [1.0, 2.0]", f"{len(row[3])},000") for row in cells]
    rows = [(row[0], row[1], *pair) for row, pair in zip(cells, numbers, strict=True)]
    text = terminal(Document("t", [Heading("h"), Table(columns, rows)]), width=width)
    assert all(
        cell_width(line) <= width and line == line.rstrip()
        for line in text.splitlines()
    )
    assert all(number in text for pair in numbers for number in pair)


@pytest.mark.parametrize(
    "text",
    [
        "x" * 100_000,
        "ж" * 100_000,
        "word " * 20_000,
        "日本 " * 30_000,
        "\u0301" * 100_000,
    ],
)
def test_long_texts_take_no_time(text: str) -> None:
    shown = terminal(
        Document(text[:50], [Note(text), Facts([("a", text)]), Text("t", text)]),
        width=80,
    )
    assert max(cell_width(line) for line in shown.splitlines()) <= 80


# -- a terminal and a pipe
# -------------------------------------------------------------------------------------------------

SCRIPT = """
import sys
from pathlib import Path
from evalwright.analysis.board import make_board
from evalwright.reports.documents.board import board_document
from evalwright.reports.terminal import show
from evalwright.runs.reader import open_run
show(board_document(make_board([open_run(Path(name)) for name in sys.argv[1:]])))
print("rich" in sys.modules, file=sys.stderr)
"""


def _environment() -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in ("COLUMNS", "NO_COLOR", "TERM", "FORCE_COLOR")
    }
    source = str(Path(__file__).parents[2] / "src")
    return {**kept, "TERM": "xterm-256color", "COLUMNS": "80", "PYTHONPATH": source}


def test_a_pipe_gets_plain_text_without_rich(tmp_path: Path) -> None:
    names = [str(run.folder) for run in two_runs(tmp_path)]
    found = subprocess.run(
        [sys.executable, "-c", SCRIPT, *names],
        capture_output=True,
        text=True,
        env=_environment(),
        check=True,
    )
    assert "\x1b" not in found.stdout
    assert found.stderr.strip() == "False"


def test_a_terminal_gets_the_same_lines_in_colour(tmp_path: Path) -> None:
    runs = two_runs(tmp_path)
    folders = [str(run.folder) for run in runs]
    code, shown, _ = in_a_terminal(
        SCRIPT, *folders, stream="stdout", environment=_environment()
    )
    assert code == 0
    text = shown.replace("\r\n", "\n")
    assert "\x1b[1m" in text
    plain = terminal(board_document(make_board(runs)), width=80)
    assert re.sub(r"\x1b\[[0-9;]*m", "", text) == plain
