"""`evalwright leaderboard --check`: compares a published board.json with what runs give."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import was_typed
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError
from evalwright.core.text import printable
from evalwright.tasks.safe_files import read_json

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.runs.reader import Run

BOARD_SETTINGS = ("metric", "tasks_are", "ratings", "by", "rank_by", "where", "preset")
"""Parameters that decide a board's numbers, as far as the command has them."""
FILE_OPTIONS = (
    "into",
    "markdown",
    "html",
    "latex",
    "pdf",
    "csv",
    "json_file",
    "parquet",
    "embed",
    "citation",
    "plots",
    "pages",
    "kept",
    "workflow",
)
"""Parameters that write files, which a check does not do."""
_MODEL_TEXTS = ("label", "run")
_NODE_TEXTS = ("id", "title")


def board_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a board was made with, for `board.json`; defaults are left out."""
    settings = {}
    for name in BOARD_SETTINGS:
        setting = params.get(name)
        if setting and (name == "ratings" or was_typed(name)):
            settings[name] = list(setting) if isinstance(setting, tuple) else setting
    return settings


def read_published(file: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Read a board that is to be checked.

    Raises:
        UsageError: other options would write files.
        ConfigurationError: the file is no `board.json` that this version knows.
    """
    for name in FILE_OPTIONS:
        if params.get(name):
            option_name = name.removesuffix("s") if name == "plots" else name
            raise click.UsageError(
                f"--check writes no files: leave out --{option_name.replace('_', '-')}."
            )
    from evalwright.reports.board_files import BOARD_SCHEMA

    published = read_json(Path(file), ConfigurationError, f"'{file}'")
    if not isinstance(published, dict) or "models" not in published:
        raise ConfigurationError(
            f"'{file}' is no board: name a file that `evalwright leaderboard --json-file`"
            " wrote."
        )
    schema = published.get("schema")
    if schema is None:
        raise ConfigurationError(
            f"'{file}' was written by an earlier version and has no nodes to compare:"
            " write it again with --json-file."
        )
    if schema != BOARD_SCHEMA:
        raise ConfigurationError(
            f"'{file}' has schema {printable(str(schema))[:40]}, and this version reads"
            f" {BOARD_SCHEMA}. Upgrade evalwright."
        )
    if fault := _fault(published):
        raise ConfigurationError(
            f"'{file}' is not as boards are: {fault}. Its schema is in"
            " evalwright/reports/schemas/board.schema.json."
        )
    return published


def _fault(published: Mapping[str, Any]) -> str:
    """Say what keeps a board from being compared; "" if nothing does."""
    for name, texts in (("models", _MODEL_TEXTS), ("nodes", _NODE_TEXTS)):
        entries = published.get(name)
        if not isinstance(entries, list):
            return f"'{name}' is no list"
        for index, entry in enumerate(entries):
            if not isinstance(entry, Mapping):
                return f"{name}[{index}] is no mapping"
            for text in texts:
                if not isinstance(entry.get(text), str):
                    return f"{name}[{index}] has no '{text}'"
    for index, model in enumerate(published["models"]):
        if not isinstance(model.get("scores") or {}, Mapping):
            return f"the scores of models[{index}] are no mapping"
    if not isinstance(published.get("settings") or {}, Mapping):
        return "'settings' is no mapping"
    return ""


def with_settings(
    params: Mapping[str, Any], published: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters with the board's own settings, where none were typed.

    Raises:
        BadParameter: a setting in the file is none that the option takes.
    """
    context = click.get_current_context()
    options = {option.name: option for option in context.command.params}
    settings = published.get("settings") or {}
    merged = dict(params)
    for name in BOARD_SETTINGS:
        if name in settings and name in options and not was_typed(name):
            merged[name] = options[name].process_value(context, settings[name])
    return merged


def print_check(
    file: str,
    published: Mapping[str, Any],
    board: Board,
    runs: Sequence[Run],
    *,
    as_json: bool,
) -> int:
    """Print which numbers of a published board differ from those of runs.

    Returns:
        The exit code: 1 if a number differs.
    """
    from evalwright.analysis.board_check import check_board, check_sentences
    from evalwright.reports.board_files import board_json

    check = check_board(published, board_json(board, "", runs=runs))
    if as_json:
        print_json(check.as_dict())
    else:
        for sentence in check_sentences(check, file):
            echo(sentence)
    return int(bool(check.differences))
