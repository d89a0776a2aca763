"""Plain words: no term of the old vocabulary in the pages, the help texts and the messages."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from evalwright.cli import cli
from support.words import INSTEAD, old_words

ROOT = Path(__file__).resolve().parent.parent
PAGES = [
    ROOT / "README.md",
    ROOT / "CONTRIBUTING.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
ROOMS = sorted(
    path
    for path in (ROOT / "src" / "evalwright").iterdir()
    if path.is_dir() and path.name[0] != "_"
)


def messages(path: Path) -> Iterator[tuple[int, str]]:
    """The string constants of three words and more, docstrings apart."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    apart = {
        id(node.value)
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if (
            not isinstance(node, ast.Constant)
            or not isinstance(node.value, str)
            or id(node) in apart
        ):
            continue
        if len(node.value.split()) >= 3:
            yield node.lineno, node.value


def commands(context: click.Context) -> Iterator[click.Context]:
    """A command's context and those of the commands below it, with the settings that they have
    when typed.
    """
    yield context
    if isinstance(context.command, click.Group):
        for name in context.command.list_commands(context):
            command = context.command.get_command(context, name)
            assert command is not None
            yield from commands(
                click.Context(
                    command, parent=context, info_name=name, **command.context_settings
                )
            )


def test_pages() -> None:
    found = {page.name: old_words(page.read_text(encoding="utf-8")) for page in PAGES}
    assert not {name: words for name, words in found.items() if words}


def test_messages() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {old_word}"
        for room in ROOMS
        for path in sorted(room.rglob("*.py"))
        for line, text in messages(path)
        for old_word in old_words(text)
    ]
    assert not found, "\n".join(found)


def test_help() -> None:
    root = click.Context(cli, info_name="evalwright", **cli.context_settings)
    found = [
        f"{context.command_path}: {old_word}"
        for context in commands(root)
        for old_word in old_words(context.get_help())
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize(
    "text",
    [
        "the purse is empty", "Nobody is asked.", "models that differ surely", "settings put over the task's",
        "the lift of passages", "The rule speaks of a model; its date is no date.", "the key stands twice",
    ],
)  # fmt: skip
def test_the_old_words_are_found(text: str) -> None:
    assert old_words(text)


def test_field_terms_stay() -> None:
    assert (
        not old_words(
            "Calibrating probabilities; leaning on labels; a long-standing rule; out of budget."
        )
        and INSTEAD
    )
