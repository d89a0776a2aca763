"""`import lm-eval`: results of others as runs that every other command takes."""

from __future__ import annotations

import json
from pathlib import Path

from compat.lm_eval.runs.lm_eval_files import RELEASED
from support.typed import typed


def test_import_show_compare_and_board(folder: Path) -> None:
    done = typed("import", "lm-eval", str(RELEASED), "--name", "theirs")
    assert (done.code, done.err) == (0, "")
    assert done.out == f"Imported: {Path('runs/theirs')} (dummy: 4 tasks, 18 samples)\n"
    shown = typed("runs", "show", "theirs", "--verify", "--details")
    assert shown.code == 0
    assert "lm-eval:pick (version 2): 6 samples" in shown.out
    assert (
        typed(
            "import", "lm-eval", str(RELEASED), "--name", "again", "--out", "runs"
        ).code
        == 0
    )
    compared = typed("compare", "theirs", "again")
    assert (compared.code, compared.err) == (0, "")
    board = json.loads(typed("leaderboard", "theirs", "again", "--json").out)
    assert len(board["rows"]) == 2
    (row,) = json.loads(typed("import", "lm-eval", str(RELEASED), "--json").out)
    assert row["model"] == "dummy"


def test_import_says_what_is_wrong(folder: Path) -> None:
    broken = folder / "samples_t_2026.jsonl"
    broken.write_text('{"doc_id": 0, "acc": 1.0}\n{"doc_id":\n')
    done = typed("import", "lm-eval", str(broken))
    assert (done.code, done.out) == (2, "")
    assert done.err.startswith(f"Error: {broken}, line 2 is not valid JSON")
    assert typed("import", "lm-eval", "nowhere").err.startswith(
        "Error: 'nowhere' does not exist"
    )
    assert typed("import", "--help").code == 0


def test_a_plug_in_is_loaded_for_an_import(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text('open("loaded", "w").close()\n')
    absent = typed("import", "lm-eval", ".", "--plugin", "none.py", folder=tmp_path)
    assert absent.code == 2 and "'none.py' does not exist" in absent.err
    typed("import", "lm-eval", ".", "--plugin", "mine.py", folder=tmp_path)
    assert (tmp_path / "loaded").exists()
