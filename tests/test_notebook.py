"""The notebooks run top to bottom: their code cells, in order, in one process; with a tiny real
model on the CPU where they need one.
"""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from evalwright.runs.reader import list_runs
from support.command import ROOT, environment

NOTEBOOK = ROOT / "examples" / "factual_on_a_free_gpu.ipynb"
FUNCTIONS = ROOT / "examples" / "two_functions_in_korean.ipynb"
PROMPTS = ROOT / "examples" / "two_prompts_on_a_data_frame.ipynb"


def cells(notebook: Path = NOTEBOOK) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(notebook.read_text(encoding="utf-8"))[
        "cells"
    ]
    return [cell for cell in found if cell["cell_type"] == "code"]


@pytest.mark.parametrize(
    "notebook", [NOTEBOOK, FUNCTIONS, PROMPTS], ids=lambda path: path.stem
)
def test_it_is_a_clean_notebook(notebook: Path) -> None:
    whole = json.loads(notebook.read_text(encoding="utf-8"))
    assert whole["nbformat"] == 4
    for cell in cells(notebook):
        assert cell["outputs"] == [] and cell["execution_count"] is None
        text = "".join(cell["source"])
        if not text.startswith("%pip install "):
            ast.parse(text)


def test_it_runs_top_to_bottom(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    pytest.importorskip("transformers")
    from support.tiny_models import make_tiny_model

    for seed, name in enumerate(("one", "two")):
        make_tiny_model(tmp_path / name, "llama", chat=True, context=640, seed=seed)
    code = "\n\n".join("".join(cell["source"]) for cell in cells())
    # Only the line that installs the package is for a notebook alone.
    lines = [line for line in code.splitlines() if not line.startswith("%pip install ")]
    assert not any(line.startswith(("%", "!")) for line in lines)
    (tmp_path / "notebook.py").write_text("\n".join(lines), encoding="utf-8")
    done = subprocess.run(
        [sys.executable, "notebook.py"],
        cwd=tmp_path,
        env=environment(
            {
                "NOTEBOOK_TASKS": "factual-closed-book factual-stress",
                "NOTEBOOK_MODELS": "hf/./one hf/./two",
                "NOTEBOOK_LIMIT": "2",
                "CUDA_VISIBLE_DEVICES": "",
                "PYTHONWARNINGS": "default",
            }
        ),
        capture_output=True,
        text=True,
        timeout=1800,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert (
        done.stdout.count("verified") == 2
        and " 0 asked, 4 from the store" in done.stdout
    )
    made = list_runs(tmp_path / "runs")
    assert len(made) == 2 and all(run.n_missing == 0 for run in made)
    assert all(row["prompt"] and row["responses"] for run in made for row in run.rows())
    assert "<table" in (tmp_path / "leaderboard.html").read_text(encoding="utf-8")


def shown(code: str, names: dict[str, Any]) -> str:
    """What a notebook would show below a cell: the HTML of its last expression, else its text."""
    *body, last = ast.parse(code).body
    if not isinstance(last, ast.Expr):
        body = [*body, last]
        value = None
    exec(compile(ast.Module(body, []), "cell", "exec"), names)
    if isinstance(last, ast.Expr):
        value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
    html = getattr(value, "_repr_html_", None)
    assert len(repr(value)) < 200 or not type(value).__module__.startswith("evalwright")
    return str(html() if html else value)


def test_the_notebook_of_functions(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for library in ("matplotlib", "pandas"):
        pytest.importorskip(library)
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    out = [shown("".join(cell["source"]), names) for cell in cells(FUNCTIONS)[1:]]
    assert "notes and calculator" in out[2] and "[73.6, 96.4]" in out[2]
    assert out[3].startswith("<img") and out[5].startswith("<img")
    assert "scores 44.8 points higher than notes" in out[4] and "산수" in out[4]
    assert out[6].count("모르겠습니다") == 3
    assert "Subsets, worst first" in out[7] and "may be the best" in repr(
        names["board"]
    )
    assert names["first"].tasks[0].n_unsure == 0 and names["second"].n_missing == 0
    assert {path.name for path in tmp_path.glob("*.*")} >= {
        "board.html",
        "board.csv",
        "board.svg",
        "comparison.html",
    }


def test_the_notebook_of_prompts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("pandas")
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    out = [shown("".join(cell["source"]), names) for cell in cells(PROMPTS)[1:]]
    assert "careful · plain" in out[2] and "brief" in out[3]
    assert [run.score.value for run in names["runs"]] == [0.375, 1.0, 0.625, 0.625]
    conclusion = names["comparison"].conclusion
    assert (
        "careful · strict scores 62.5 points higher than careful · plain" in conclusion
    )
    assert "5 days" in out[5] and (tmp_path / "prompts.html").exists()
