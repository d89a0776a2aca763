"""The recipes of CONTRIBUTING.md, done as they say in a copy of the repository: each command
works, each test passes.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path

import pytest

from support.pages import FILE, ROOT, Block, blocks, commands, environment, run

PAGE = ROOT / "CONTRIBUTING.md"
COPIED = (
    "src",
    "tests",
    "docs",
    "examples",
    "pyproject.toml",
    "README.md",
    "CONTRIBUTING.md",
    "scripts",
)
HEADING = re.compile(r"^### (?P<title>.+)$", re.MULTILINE)


def recipes() -> dict[str, list[Block]]:
    """The blocks below each heading of the third level."""
    text = PAGE.read_text(encoding="utf-8")
    lines = {
        text[: heading.start()].count("\n") + 1: heading["title"]
        for heading in HEADING.finditer(text)
    }
    blocks_by_title: dict[str, list[Block]] = {title: [] for title in lines.values()}
    for block in blocks(PAGE):
        above = [line for line in lines if line < block.line]
        if above:
            blocks_by_title[lines[max(above)]].append(block)
    return blocks_by_title


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A copy of what the recipes change and run."""
    folder = tmp_path / "checkout"
    folder.mkdir()
    for name in COPIED:
        source = ROOT / name
        if source.is_dir():
            shutil.copytree(
                source, folder / name, ignore=shutil.ignore_patterns("__pycache__")
            )
        else:
            shutil.copy(source, folder / name)
    return folder


def add_lines(path: Path, change: str) -> None:
    """Do what a block with `+` says: the lines without it are there, once and in one piece."""
    lines = change.splitlines(keepends=True)
    context = "".join(
        line[1:] if line.startswith(" ") else line for line in lines if line[0] != "+"
    )
    changed = "".join(line[1:] if line[0] in " +" else line for line in lines)
    text = path.read_text(encoding="utf-8")
    assert text.count(context) == 1, f"{path}: {context}"
    path.write_text(text.replace(context, changed), encoding="utf-8")


@pytest.mark.slow
@pytest.mark.parametrize("title", recipes())
def test_the_recipe_works(title: str, checkout: Path) -> None:
    variables = environment(PAGE, checkout) | {"PYTHONPATH": str(checkout / "src")}
    for block in recipes()[title]:
        where = f"{PAGE.name}:{block.line}"
        named = FILE.match(block.body)
        if named is not None:
            path = checkout / named["name"]
            body = FILE.sub("", block.body)
            if block.language == "diff":
                add_lines(path, body)
            else:
                assert not path.exists()
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(body, encoding="utf-8")
        elif block.language == "bash":
            for command, exit_code in commands(block.body):
                run(["sh", "-c", command], checkout, variables, where, exit_code)


def test_there_are_three_recipes_and_all_change_something() -> None:
    assert set(recipes()) == {"A task", "A scorer", "A provider"}
    for recipe in recipes().values():
        assert any(block.language == "bash" for block in recipe)
        assert any(FILE.match(block.body) for block in recipe)
