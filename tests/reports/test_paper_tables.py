"""Boards and comparisons as a paper has them: one table, balanced and escaped, bold that means
something, no commands; and comparisons as CSV.
"""

from __future__ import annotations

import csv
import io
import re
from pathlib import Path

import pytest

from evalwright import open_run
from evalwright.analysis.board import make_board
from evalwright.analysis.comparison import compare_runs
from evalwright.analysis.several import compare_several
from evalwright.reports.board_files import board_csv
from evalwright.reports.paper_tables import (
    board_latex,
    comparison_csv,
    comparison_latex,
    without_commands,
)
from evalwright.runs.reader import Run
from evalwright.statistics import holm
from support.hostile import HOSTILE
from support.runs import make_run
from support.typed import typed

STRONG = [1.0] * 36 + [0.0] * 4
MIDDLE = [1.0] * 24 + [0.0] * 16
WEAK = [1.0] * 4 + [0.0] * 36


def _runs(folder: Path, labels: tuple[str, ...] = ("", "", "")) -> list[Run]:
    scores = [
        {"factual": STRONG, "other": STRONG},
        {"factual": WEAK, "other": MIDDLE},
        {"factual": WEAK, "other": WEAK},
    ]
    return [
        make_run(
            folder,
            name=f"run-{i}",
            model=f"x/{'abc'[i]}",
            label=label,
            scores=scores[i],
            domains=["history", "law"],
        )
        for i, label in enumerate(labels)
    ]


@pytest.fixture
def folder(own_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder in which commands are typed."""
    monkeypatch.chdir(own_folder)
    return own_folder


def _rows(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def _check_latex(text: str) -> None:
    """Every environment and brace is closed, every row has its cells, nothing is unescaped."""
    body = "\n".join(
        line
        for line in text.splitlines()
        if not line.startswith(("%", "\\providecommand"))
    )
    opened: list[str] = []
    for action, name in re.findall(r"\\(begin|end)\{(\w+)\}", body):
        if action == "begin":
            opened.append(name)
        else:
            assert opened.pop() == name
    assert not opened
    bare = re.sub(r"\\[^A-Za-z]", "", body)
    assert bare.count("{") == bare.count("}")
    assert not set("#_~^$") & set(bare)
    assert not re.search(r"%(?!\n)", bare), "a bare % comments the rest of its line out"
    for spec, rows in re.findall(
        r"\\begin\{(?:tabular|longtable)\}\{@\{\}(.*?)@\{\}\}\n(.*?)\\end", body, re.S
    ):
        n_columns = len(re.sub(r"p\{.*?\}", "p", spec))
        for line in rows.splitlines():
            if line.endswith(r"\tabularnewline"):
                assert len(re.findall(r"(?<!\\)&", line)) == n_columns - 1


def test_a_board_is_one_table_without_commands(tmp_path: Path) -> None:
    board = make_board(_runs(tmp_path))
    text = board_latex(board)
    _check_latex(text)
    assert text.count(r"\begin{table}") == text.count(r"\caption[") == 1
    assert "itemize" not in text
    assert r"\symbol{96}" not in text, "no command in backticks"
    assert "A rank is a range" in text, "the notes are in the caption"


def test_bold_is_for_what_may_be_the_best(tmp_path: Path) -> None:
    text = board_latex(make_board(_runs(tmp_path)))
    rows = [line for line in text.splitlines() if line.endswith(r"\tabularnewline")]
    assert [r"\textbf" in row for row in rows] == [True, False, False]
    assert "may be the best model" in text


def test_tied_models_are_both_bold_and_one_model_is_not(tmp_path: Path) -> None:
    runs = [
        make_run(tmp_path, name=f"run-{model}", model=f"x/{model}", scores=MIDDLE)
        for model in "ab"
    ]
    assert board_latex(make_board(runs)).count(r"\textbf") == 4
    assert r"\textbf" not in board_latex(make_board(runs[:1]))


@pytest.mark.parametrize("name", [*HOSTILE, r"\input{x}", "a & b % c_d #1 $x ^ ~"])
def test_hostile_names_are_text(tmp_path: Path, name: str) -> None:
    runs = _runs(tmp_path, (name, "plain", "b"))
    _check_latex(board_latex(make_board(runs), name or "x"))
    _check_latex(comparison_latex(compare_runs(*runs[:2])))
    _check_latex(comparison_latex(compare_several(runs)))


def test_a_board_with_many_tasks_or_rows_stays_whole(tmp_path: Path) -> None:
    scores = {f"a_task_with_a_name_{i}": [1.0, 0.0, 1.0] for i in range(14)}
    wide = [
        make_run(tmp_path, name=f"wide-{model}", model=f"x/{model}", scores=scores)
        for model in "ab"
    ]
    text = board_latex(make_board(wide))
    _check_latex(text)
    assert text.count(r"\begin{table}") == 1 < text.count(r"\begin{tabular}")
    long = [
        make_run(tmp_path, name=f"long-{i}", model=f"x/m{i}", scores=[1.0, 0.0])
        for i in range(50)
    ]
    text = board_latex(make_board(long))
    _check_latex(text)
    assert text.count(r"\begin{longtable}") == 1 and r"\begin{table}" not in text


def test_sentences_on_commands_are_left_out() -> None:
    assert without_commands(
        "81 unsure answers: scored. `evalwright runs samples RUN --unsure` lists them."
        " A judge can read them."
    ) == ("81 unsure answers: scored. A judge can read them.")
    assert without_commands("Use `--kept DIR` for that.") == ""


def test_a_comparison_of_two_runs(tmp_path: Path) -> None:
    runs = _runs(tmp_path)
    comparison = compare_runs(*runs[:2], slices=["domain"])
    text = comparison_latex(comparison)
    _check_latex(text)
    rows = [line for line in text.splitlines() if line.endswith(r"\tabularnewline")]
    assert [row.split(" & ")[0].split(" ")[0] for row in rows] == [
        "factual",
        "other",
        "Mean",
    ]
    assert "& 90.0 & 10.0 &" in rows[0] and "& 90.0 & 35.0 &" in rows[2]

    lines = _rows(comparison_csv(comparison))
    overall = next(line for line in lines if line["task"] == "overall")
    assert float(overall["mean_a"]) == pytest.approx(0.9)
    assert float(overall["mean_b"]) == pytest.approx(0.35)
    assert float(overall["mean_a"]) - float(overall["mean_b"]) == pytest.approx(
        float(overall["difference"])
    )
    by_task = [line for line in lines if not line["slice"] and line is not overall]
    p_values = [float(line["p_value"]) for line in by_task]
    assert [float(line["p_adjusted"]) for line in by_task] == pytest.approx(
        list(holm(p_values))
    )
    slices = [line for line in lines if line["slice"]]
    assert [line["slice"] for line in slices] == ["domain: history", "domain: law"] * 2
    assert all(line["p_adjusted"] and line["items"] == "20" for line in slices)


def test_a_comparison_of_three_runs_has_all_pairs(tmp_path: Path) -> None:
    comparison = compare_several(_runs(tmp_path), slices=["domain"])
    text = comparison_latex(comparison)
    _check_latex(text)
    assert text.count(r"\begin{table}") == 1
    lines = _rows(comparison_csv(comparison))
    assert len([line for line in lines if not line["slice"]]) == 9
    first = next(line for line in lines if line["task"] == "factual")
    assert (first["run_a"], first["run_b"]) == ("run-0", "run-1")
    assert float(first["mean_a"]) == pytest.approx(0.9)


def test_the_csv_of_a_factual_board_has_every_task(folder: Path) -> None:
    done = typed(
        "run", "factual", "--model", "demo/small", "--limit", "6", "--name", "f"
    )
    assert done.code == 0, done.err
    board = make_board([open_run("f")])
    (row,) = _rows(board_csv(board))
    (model,) = board.rows
    for task, cell in model.cells.items():
        assert float(row[task]) == pytest.approx(cell.estimate.value)
    # The share of refused questions and the number of refusals are two columns.
    assert float(row["refused"]) == pytest.approx(model.shares["refused"].value)
    assert row["refused_answers"] == "0"
    text = board_latex(board, task_scores=True)
    _check_latex(text)
    assert text.count(r"\begin{table}") == 1 and "closed-book" in text
    assert "closed-book" not in board_latex(board)


def test_files_of_the_command(folder: Path) -> None:
    _runs(folder / "runs")
    done = typed(
        *("compare", "run-0", "run-1", "--latex", "c.tex", "--csv", "c.csv"),
        *("--slice", "domain"),
    )
    assert done.code == 0 and "Written: c.tex\nWritten: c.csv" in done.err
    _check_latex((folder / "c.tex").read_text())
    assert len(_rows((folder / "c.csv").read_text())) == 7
    done = typed("compare", "run-0", "--csv", "d.csv")
    assert done.code == 2 and "--csv compares two runs or more" in done.err
