"""From recorded runs of the public engine to a published board: README twice, picture, pages,
files for the Hub.
"""

from __future__ import annotations

import csv
import io
import json
import shutil
from pathlib import Path

import pytest

from compat.hhem.hhem_trees import SHARED
from support.typed import typed

MODELS = ("google/gemini-2.5-flash-lite", "google/gemma-3-4b-it")

pytestmark = pytest.mark.skipif(
    not (SHARED / "v2").is_dir(),
    reason="the recorded runs of the public engine are not beside this checkout",
)


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    for model in MODELS:
        shutil.copytree(SHARED / "v2" / model, tmp_path / "output" / model)
    return tmp_path


def test_recorded_models_are_published(tree: Path) -> None:
    pytest.importorskip("matplotlib", reason="the extra `plot` is not installed")
    assert typed("import", "hhem", "output", folder=tree).code == 0
    names = [path.name for path in sorted((tree / "runs").iterdir())]
    readme = tree / "README.md"
    readme.write_text(
        "# A board\n\n<!-- LEADERBOARD_START -->\nstale\n<!-- LEADERBOARD_END -->\n\nAfter it.\n",
        encoding="utf-8",
    )
    options = (
        "--into", "README.md", "--csv", "board.csv", "--plot", "board.svg", "--plot", "board.png",
        "--least-answered", "95", "--pages", "models", "--html", "board.html", "--title", "Hallucinations",
    )  # fmt: skip
    first = typed("leaderboard", *names, *options, folder=tree)
    assert first.code == 0, first.err
    text = readme.read_text(encoding="utf-8")
    assert text.startswith(
        "# A board\n\n<!-- LEADERBOARD_START -->\n\n2 models; the newest run is of 2025-11-20."
    )
    assert (
        text.endswith("<!-- LEADERBOARD_END -->\n\nAfter it.\n") and "stale" not in text
    )
    # As published by the engine, to its one decimal.
    with (SHARED / "v2" / "expected.csv").open(encoding="utf-8") as file:
        expected = {row["model"]: row for row in csv.DictReader(file)}
    head = next(line for line in text.splitlines() if line.startswith("| Rank"))
    place = head.split("|").index(" Hallucination rate (%, lower is better) ")
    rows = [
        line for line in text.splitlines() if line.startswith("| ") and "[`" in line
    ]
    shown = {
        line.split("`")[1]: [
            cell.split()[0] for cell in line.split("|")[place : place + 4]
        ]
        for line in rows
    }
    for model in MODELS:
        rate, consistent, answered, words = shown[model]
        row = expected[model]
        assert (rate, answered, words) == (
            row["hallucination_rate"],
            row["answer_rate"],
            row["avg_word_count"],
        )
        assert float(consistent) == pytest.approx(
            100 - float(row["hallucination_rate"]), abs=0.051
        )
    board = list(
        csv.DictReader(io.StringIO((tree / "board.csv").read_text(encoding="utf-8")))
    )
    assert [row["model"] for row in board] == list(MODELS)

    before = {
        path: path.read_bytes()
        for path in tree.rglob("*")
        if path.is_file() and "runs" not in path.parts
    }
    again = typed("leaderboard", *reversed(names), *options, folder=tree)
    assert again.code == 0, again.err
    assert {path: path.read_bytes() for path in before} == before

    page = (tree / "models" / "google-gemma-3-4b-it.html").read_text(encoding="utf-8")
    assert "answered" in page and "5,205" in page and "2,525" in page
    assert "The record has no texts" in page

    done = typed("export", "hf-results", *names, "--json", folder=tree)
    for file in json.loads(done.out):
        data = json.loads((tree / file).read_text(encoding="utf-8"))
        told = float(expected[data["config"]["model_name"]]["hallucination_rate"])
        assert data["results"]["hallucination_rate"] == pytest.approx(told, abs=0.051)
