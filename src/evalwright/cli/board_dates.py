"""`evalwright leaderboard --newest`, `--as-of`, `--since` and `--feed`: boards of several dates."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.core.errors import ConfigurationError, RunError
from evalwright.tasks.safe_files import read_json

if TYPE_CHECKING:
    from evalwright.analysis.board import Board
    from evalwright.analysis.history import HistoryEntry
    from evalwright.analysis.model_series import ModelSeries
    from evalwright.runs.reader import Run

SHOWING_HISTORY = ("pages", "json_file")
"""Options for files that have the history of each model."""
FEED_SUFFIXES = (".xml", ".atom")


@dataclass(frozen=True, slots=True)
class DatedRuns:
    """The runs of a board at a date.

    Attributes:
        runs: the runs of the board.
        series: all results up to the date, by model; empty where dates do not matter.
        notes: what a reader must know of it.
    """

    runs: tuple[Run, ...]
    series: tuple[ModelSeries, ...] = ()
    notes: tuple[str, ...] = ()


def select_by_date(runs: Sequence[Run], params: Mapping[str, Any]) -> DatedRuns:
    """Choose the runs of a board.

    Args:
        runs: all runs.
        params: the command's parameters.

    Raises:
        ConfigurationError: a date cannot be used, or `--since` names no board.
        RunError: a run started in the future, or there is none yet at the date.
    """
    by_date = params["newest"] or params["as_of"] or params["since"]
    if not by_date and not params["feed"]:
        return DatedRuns(tuple(runs))
    from evalwright.analysis.model_series import (
        check_not_in_future,
        read_date,
        series_of,
    )

    check_not_in_future(runs)
    as_of = read_date(params["as_of"], "--as-of") if params["as_of"] else None
    series = series_of(runs, as_of)
    if not by_date:
        return DatedRuns(tuple(runs), series)
    if not series:
        first_day = min(str(run.data["started"])[:10] for run in runs)
        raise RunError(
            f"No run had started by {params['as_of']}; the first is of {first_day}."
        )
    newest = {id(model.newest) for model in series}
    shown_runs = [run for run in runs if id(run) in newest]
    notes = _selection_notes(runs, series, params["as_of"])
    if params["since"]:
        shown_runs, since_notes = _shown_since(runs, shown_runs, params["since"], as_of)
        notes += since_notes
    return DatedRuns(tuple(shown_runs), series, tuple(notes))


def _selection_notes(
    runs: Sequence[Run], series: Sequence[ModelSeries], as_of: str | None
) -> list[str]:
    from evalwright.analysis.words import counted

    notes = []
    n_present = sum(model.n_runs for model in series)
    if as_of:
        n_later = sum(_is_later(run, as_of) for run in runs)
        later = f"; {counted(n_later, 'later run')} left out" if n_later else ""
        notes.append(f"The board as of {as_of}{later}.")
    if n_earlier := n_present - len(series):
        verb = "is" if n_earlier == 1 else "are"
        notes.append(
            f"Each model's newest result; {counted(n_earlier, 'earlier one')} {verb} not"
            " shown."
        )
    return notes


def _is_later(run: Run, as_of: str) -> bool:
    from evalwright.analysis.model_series import read_date, started_at

    return started_at(run) > read_date(as_of, "--as-of")


def _shown_since(
    runs: Sequence[Run], newest: Sequence[Run], since: str, as_of: datetime | None
) -> tuple[list[Run], list[str]]:
    from evalwright.analysis.model_series import (
        changed_since,
        changed_since_board,
        read_date,
    )

    file = Path(since)
    if file.suffix.lower() == ".json" or file.is_file():
        published = read_json(file, ConfigurationError, f"'{since}'")
        models = published.get("models") if isinstance(published, dict) else None
        if not isinstance(models, list) or not all(
            isinstance(model, dict) for model in models
        ):
            raise ConfigurationError(
                f"'{since}' is not a board: name a file that `evalwright leaderboard"
                " --json-file` wrote, or a date."
            )
        changed_runs, changes = changed_since_board(newest, models)
        day = str(published.get("as_of") or "")[:10]
        return changed_runs, changes.sentences(f"the board of {day}" if day else since)
    moment = read_date(since, "--since")
    if as_of is not None and moment >= as_of:
        raise click.UsageError("--since must name a day before that of --as-of.")
    changed_runs, changes = changed_since(runs, moment, as_of)
    return changed_runs, changes.sentences(since)


# -- history ---------------------------------------------------------------------------


def add_history(
    board: Board,
    runs: Sequence[Run],
    dated: DatedRuns,
    params: Mapping[str, Any],
    show_step: Callable[[str], None],
) -> Board:
    """Give a board its notes on dates, and the models' histories where a file shows them.

    Args:
        board: the board.
        runs: its runs, in the order in which it was made of them.
        dated: how they were chosen.
        params: the command's parameters.
        show_step: called with words about how far it is.
    """
    board = replace(board, notes=(*dated.notes, *board.notes))
    by_date = params["newest"] or params["as_of"] or params["since"]
    if not by_date or not any(params[name] for name in SHOWING_HISTORY):
        return board
    shown_hashes = {run.samples_sha256 for run in runs}
    show_step("Reading the history of the models")
    histories = {
        (model.label, model.newest.samples_sha256): _confirmed_history(model, params)
        for model in dated.series
        if model.newest.samples_sha256 in shown_hashes
    }

    def with_history(unit_board: Board) -> Board:
        rows = tuple(
            replace(
                row,
                history=histories.get(
                    (
                        runs[row.run_index].label,
                        runs[row.run_index].samples_sha256,
                    ),
                    (),
                ),
            )
            for row in unit_board.rows
        )
        return replace(unit_board, rows=rows)

    return replace(
        with_history(board), more=tuple(with_history(more) for more in board.more)
    )


def _confirmed_history(
    model: ModelSeries, params: Mapping[str, Any]
) -> tuple[HistoryEntry, ...]:
    from evalwright.analysis.history import history_of
    from evalwright.runs.confirmed import confirm

    answers = tuple(
        replace(dated, runs=tuple(map(confirm, dated.runs))) for dated in model.answers
    )
    return history_of(replace(model, answers=answers), params["metric"])


def render_feed(
    board: Board, runs: Sequence[Run], dated: DatedRuns, params: Mapping[str, Any]
) -> dict[Path, str]:
    """Render the feed that was asked for, by its file; nothing without --feed.

    Raises:
        UsageError: the file's name or the address cannot be used.
    """
    if not params["feed"]:
        return {}
    from evalwright.reports.feed import FeedModel, atom_feed, check_feed_address
    from evalwright.reports.model_pages import link_to, page_files

    file = Path(params["feed"])
    if file.suffix.lower() not in FEED_SUFFIXES:
        raise click.UsageError(f"--feed takes FILE.xml, not '{params['feed']}'.")
    if params["url"]:
        check_feed_address(params["url"])
    pages = page_files(board, Path(params["pages"])) if params["pages"] else []
    page_by_hash = {
        runs[row.run_index].samples_sha256: link_to(page, file)
        for row, page in zip(board.rows, pages, strict=bool(pages))
    }
    models = [
        FeedModel(
            label=model.label,
            prompt=model.newest.prompt.get("name", ""),
            history=_confirmed_history(model, params),
            page=page_by_hash.get(model.newest.samples_sha256, ""),
        )
        for model in dated.series
    ]
    feed = atom_feed(
        models, title=params["title"], url=params["url"] or "", file_name=file.name
    )
    return {file: feed}
