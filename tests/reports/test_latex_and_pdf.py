"""LaTeX and PDF of a board: hostile names are text, wide tables fall into parts, the same board
gives the same bytes.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from evalwright.analysis.board import make_board
from evalwright.reports import document as doc
from evalwright.reports.documents.board import board_document
from evalwright.reports.latex import escape, to_latex
from evalwright.reports.pdf import to_pdf
from support.hostile import HOSTILE
from support.runs import make_run

NAMES = [
    *HOSTILE,
    r"\input{/etc/passwd}",
    r"\end{tabular}",
    "a & b % c",
    "[a]",
    "*b",
    "文心/模型",
    "نموذج",
    "héllo",
    "x" * 300,
]


def _board(folder: Path, tasks: int = 12) -> doc.Document:
    scores = {f"a_task_with_a_name_{i}": [1.0, 0.0, 1.0] for i in range(tasks)}
    runs = [
        make_run(folder, model=model, name=f"run-{i}", scores=scores)
        for i, model in enumerate(("x/a", "x/b"))
    ]
    return board_document(make_board(runs))


def _hostile() -> doc.Document:
    table = doc.Table(
        doc.columns("Model*", "Score>"), [(name, "1") for name in NAMES], "Names"
    )
    return doc.Document(
        NAMES[0], [table, doc.Notes(NAMES), *(doc.Note(name) for name in NAMES)]
    )


def test_every_sign_that_acts_is_escaped() -> None:
    assert escape("a_b 50% & {x} #1 $y ^ ~") == (
        r"a\_\allowbreak{}b 50\% \& \{x\} \#1 \$y \textasciicircum{} \textasciitilde{}"
    )
    assert escape("\\input") == r"\textbackslash{}input"
    assert escape("--x ,, ?`") == r"-{}-x ,{}, ?\symbol{96}"
    assert escape("文") == r"\evalwrightletters{文}{U+6587}"
    allowed = {
        "allowbreak", "textbackslash", "textasciicircum", "textasciitilde", "textless", "textgreater", "textbar", "symbol", "ldots",
        "times", "cdot", "evalwrightletters",
    }  # fmt: skip
    for name in NAMES:
        text = escape(name)
        assert set(re.findall(r"\\([A-Za-z]+)", text)) <= allowed
        bare = re.sub(r"\\.", "", text)
        assert bare.count("{") == bare.count("}") and not set("&%#_~^") & set(bare)


@pytest.mark.parametrize("tasks", [8, 12])
def test_wide_tables_say_what_has_no_room(tmp_path: Path, tasks: int) -> None:
    """Eight tasks fall into parts; of more, one table has what fits, and names the next."""
    text = to_latex(_board(tmp_path, tasks))
    assert text.count(r"\begin{table}") > 1 == text.count(r"\caption{Leaderboard}")
    shown = [
        i
        for i in range(tasks)
        if r"a\_\allowbreak{}task" in text and f"name\\_\\allowbreak{{}}{i}" in text
    ]
    assert len(shown) == 8
    assert ("No room here for" in text) == (tasks > 8)
    for body in re.findall(
        r"\\begin\{tabular\}\{@\{\}(.*?)@\{\}\}\n(.*?)\\end", text, re.S
    ):
        columns = len(re.sub(r"p\{.*?\}", "p", body[0]))
        rows = [
            line for line in body[1].splitlines() if line.endswith(r"\tabularnewline")
        ]
        assert len(rows) == 2 and all(
            len(re.findall(r"(?<!\\)&", row)) == columns - 1 for row in rows
        )


@pytest.mark.skipif(
    shutil.which("pdflatex") is None, reason="no pdflatex on this machine"
)
def test_hostile_names_compile(tmp_path: Path) -> None:
    (tmp_path / "board.tex").write_text(
        to_latex(_hostile()), encoding="utf-8", errors="surrogatepass"
    )
    main = r"\documentclass{article}\usepackage{booktabs,longtable}\begin{document}\input{board}\end{document}"
    (tmp_path / "main.tex").write_text(main)
    command = [
        "pdflatex",
        "-halt-on-error",
        "-no-shell-escape",
        "-interaction=nonstopmode",
        "main.tex",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=1800)
    assert done.returncode == 0, done.stdout.decode(errors="replace")[-2000:]


def test_a_pdf_of_any_text_and_size(tmp_path: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    board = _board(tmp_path)
    first = to_pdf(board)
    assert first.startswith(b"%PDF") and first == to_pdf(board)
    assert b"CreationDate" not in first
    assert to_pdf(_hostile()).startswith(b"%PDF")


def test_parts_keep_every_column_once_and_fit() -> None:
    columns = [
        *doc.columns("Rank*", "Model*", "Overall"),
        *(doc.Column(f"t{i}", moves=True) for i in range(7)),
        doc.Column("Date"),
    ]
    table = doc.Table(columns, [[column.title for column in columns]])
    widths = [1.0, 3.0, 2.0, *([2.0] * 7), 2.0]
    parts = list(table.split_to_fit(widths, 10.0))
    titles = [[column.title for column in part.columns] for part in parts]
    assert titles == [
        ["Rank", "Model", "Overall", "Date"],
        *(
            ["Rank", "Model", *rest]
            for rest in (["t0", "t1", "t2"], ["t3", "t4", "t5"], ["t6"])
        ),
    ]
    assert [list(part.rows[0]) for part in parts] == titles
    assert list(table.split_to_fit(widths, 100.0)) == [table]
