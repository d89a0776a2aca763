"""The notebook runs top to bottom: its code cells, in order, in one process, with a tiny real model on the CPU."""

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


def cells() -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(NOTEBOOK.read_text(encoding="utf-8"))["cells"]
    return [cell for cell in found if cell["cell_type"] == "code"]


def test_it_is_a_clean_notebook() -> None:
    whole = json.loads(NOTEBOOK.read_text(encoding="utf-8"))
    assert whole["nbformat"] == 4
    for cell in cells():
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
        timeout=400,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert done.stdout.count("verified") == 2 and " 0 asked, 4 from the store" in done.stdout
    made = list_runs(tmp_path / "runs")
    assert len(made) == 2 and all(run.n_failed == 0 for run in made)
    assert all(row["prompt"] and row["responses"] for run in made for row in run.rows())
    assert "<table" in (tmp_path / "leaderboard.html").read_text(encoding="utf-8")
