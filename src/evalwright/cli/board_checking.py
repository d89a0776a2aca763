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

BOARD_SETTINGS = {
    "metric": "metric",
    "tasks_are": "tasks_are",
    "ratings": "ratings",
    "by": "by",
    "rank_by": "rank_by",
    "where": "filters",
    "preset": "preset",
    "newest": "newest",
    "as_of": "as_of",
    "since": "since",
}
"""Settings in `board.json` that decide its numbers, and the command's parameters for them."""
INPUT_FILES = ("facts", "labels")
"""Parameters that name a file; a board has its name, and a check needs the file itself."""

NAMED_FILES = (
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
    "feed",
)
"""Parameters that each name one file of the board."""
FILE_OPTIONS = (*NAMED_FILES, "plots", "pages", "kept", "workflow")
"""Parameters that write files, which a check does not do."""
_FLAGS = frozenset({"ratings", "newest"})
_MODEL_TEXTS = ("label", "run")
_NODE_TEXTS = ("id", "title")


def board_settings(params: Mapping[str, Any]) -> dict[str, Any]:
    """Return the settings that a board was made with, for `board.json`; defaults are left out."""
    settings = {}
    for name, parameter in BOARD_SETTINGS.items():
        setting = params.get(parameter)
        if setting and (parameter in _FLAGS or was_typed(parameter)):
            settings[name] = _plain_setting(setting)
    for name in INPUT_FILES:
        if file_or_files := params.get(name):
            files = (
                file_or_files if isinstance(file_or_files, tuple) else (file_or_files,)
            )
            settings[name] = ", ".join(Path(file).name for file in files)
    return settings


def _plain_setting(setting: Any) -> Any:
    """Return a setting as it was typed, for JSON."""
    if isinstance(setting, tuple):
        return [_plain_setting(scalar) for scalar in setting]
    return setting if isinstance(setting, bool | int | float | str) else str(setting)


def read_published(file: str, params: Mapping[str, Any]) -> dict[str, Any]:
    """Read a board that is to be checked.

    Raises:
        UsageError: other options would write files.
        ConfigurationError: the file is not a `board.json` that this version knows.
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
            f"'{file}' is not a board: name a file that `evalwright leaderboard --json-file`"
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
            return f"'{name}' is not a list"
        for index, entry in enumerate(entries):
            if not isinstance(entry, Mapping):
                return f"{name}[{index}] is not a mapping"
            for text in texts:
                if not isinstance(entry.get(text), str):
                    return f"{name}[{index}] has no '{text}'"
    for index, model in enumerate(published["models"]):
        if not isinstance(model.get("scores") or {}, Mapping):
            return f"the scores of models[{index}] are not a mapping"
    if not isinstance(published.get("settings") or {}, Mapping):
        return "'settings' is not a mapping"
    return ""


def with_settings(
    params: Mapping[str, Any], published: Mapping[str, Any]
) -> dict[str, Any]:
    """Return the parameters with the board's own settings, where none were typed.

    Raises:
        BadParameter: a setting in the file is none that the option takes.
        UsageError: the board was made with a file that was not typed.
    """
    context = click.get_current_context()
    options = {option.name: option for option in context.command.params}
    settings = published.get("settings") or {}
    _check_input_files(settings, params)
    merged_params = dict(params)
    for name, parameter in BOARD_SETTINGS.items():
        if name not in settings or parameter not in options or was_typed(parameter):
            continue
        merged_params[parameter] = options[parameter].process_value(
            context, settings[name]
        )
    return merged_params


def _check_input_files(settings: Mapping[str, Any], params: Mapping[str, Any]) -> None:
    """Raise UsageError if numbers depend on a file that was not named.

    Facts decide which models there are, with --where; else no number depends on them.
    """
    for name in INPUT_FILES:
        is_needed = name != "facts" or bool(settings.get("where"))
        if settings.get(name) and is_needed and not params.get(name):
            file = printable(str(settings[name]))[:100]
            raise click.UsageError(
                f"The board was made with --{name} {file}, on which its numbers depend: add"
                f" --{name} with that file."
            )


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
