"""How the readers of answers are laid out: few files for one change, text apart from answers."""

from __future__ import annotations

import ast
from pathlib import Path

import evalwright

SOURCE = Path(evalwright.__file__).parent
SCORERS = SOURCE / "scorers"


def imported_scorer_files(path: Path) -> set[Path]:
    """The files of the scorers that a file imports, also inside functions."""
    files = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(
            "evalwright.scorers"
        ):
            module = SOURCE.parent.joinpath(*str(node.module).split("."))
            candidates = [module / f"{alias.name}.py" for alias in node.names]
            files |= {
                file
                for file in [module.with_suffix(".py"), *candidates]
                if file.exists()
            }
    return files


def files_behind(path: Path) -> set[Path]:
    reached: set[Path] = set()
    to_visit = {path}
    while to_visit:
        file = to_visit.pop()
        reached.add(file)
        to_visit |= imported_scorer_files(file) - reached
    return reached


def test_how_a_date_is_read_is_seen_in_six_small_files() -> None:
    files = files_behind(SCORERS / "text" / "dates.py")
    assert len(files) <= 6
    for file in files:
        statements = [
            node
            for node in ast.walk(ast.parse(file.read_text(encoding="utf-8")))
            if isinstance(node, ast.stmt)
        ]
        assert len(statements) <= 400, file


def test_text_knows_nothing_of_answers() -> None:
    for file in (SCORERS / "text").glob("*.py"):
        outside = {
            other
            for other in imported_scorer_files(file)
            if other.parent != SCORERS / "text"
        }
        assert not outside, file
