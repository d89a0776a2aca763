"""Presets of boards: what the readers of a known leaderboard look for, as defaults of options.

The table is `presets.toml`; options that were typed take precedence over it.
"""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cache
from pathlib import Path
from typing import Any

from evalwright.analysis.board import Board
from evalwright.analysis.board_notes import ACCURACY_NOTE, SHARES_NOTE
from evalwright.analysis.extra_columns import MeasuredModel, has_value
from evalwright.analysis.measured_columns import (
    accuracy_scorers,
    make_extra_columns,
)
from evalwright.analysis.model_facts import (
    FROM_NAME,
    FROM_TABLE,
    ModelFacts,
    facts_of_runs,
)
from evalwright.analysis.words import listed
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.reports.columns import is_hallucination_board
from evalwright.runs.model_facts import KNOWN_KEYS
from evalwright.runs.reader import Run

TABLE = Path(__file__).with_name("presets.toml")

OPTIONS = ("best", "least_answered", "colour_by", "title")
"""Options of the command that a preset sets whatever the runs are."""

FITS_FACTUAL = "factual"
"""As `fits` of a preset: factual tasks, of which the outcomes of questions are shown."""

OVER_ACCURACIES = "the accuracy"
"""As `rank_by` of a preset: the mean of the tasks whose main metric is an accuracy."""

ACCURACY_TITLE = "Accuracy"

NEVER_COLUMNS = frozenset(
    {"provider", "family", "url", "price_in", "price_out", "context"}
)
"""Facts of a table that get no column of their own: names and pages show them."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Preset:
    """A way to show a board; `presets.toml` says what each field means."""

    name: str
    about: str
    title: str
    fits: str
    needs: str
    best: int | None = None
    least_answered: float | None = None
    colour_by: str = ""
    by: tuple[str, ...] = ()
    rank_by: str = ""
    prefers: str = ""
    over_runs: bool = False
    slices: tuple[str, ...] = ()
    readme: str = ""
    beside: tuple[str, ...] = ()
    by_beside: tuple[str, ...] = ()
    extra: tuple[str, ...] = ()
    options: Mapping[str, Any] = field(default_factory=dict)


@cache
def presets() -> Mapping[str, Preset]:
    """Return all presets by name."""
    preset_keys = {known_field.name for known_field in fields(Preset)}
    by_name = {}
    for name, row in tomllib.loads(TABLE.read_text(encoding="utf-8")).items():
        assert not row.keys() - preset_keys, f"{TABLE.name}: {row.keys() - preset_keys}"
        lists = {
            key: tuple(entry) for key, entry in row.items() if isinstance(entry, list)
        }
        options = {key: row[key] for key in OPTIONS if key in row}
        by_name[name] = Preset(name=name, options=options, **(row | lists))
    return by_name


def find_preset(name: str) -> Preset:
    """Find a preset by name.

    Raises:
        UnknownName: there is none; the message suggests the closest ones.
    """
    table = presets()
    if name not in table:
        raise UnknownName("preset", name, table, f"Known: {', '.join(table)}.")
    return table[name]


def preferred_metric(preset: Preset, runs: Sequence[Run]) -> str | None:
    """Return the label of the preset's kind of metric if every task has it under that label.

    None if it is the main metric of all tasks already, or not every task has it.
    """
    mains = [task.main for run in runs for task in run.tasks]
    are_preferred = all(main and main.kind == preset.prefers for main in mains)
    if not preset.prefers or are_preferred:
        return None
    labels = {
        next(
            (metric.label for metric in task.metrics if metric.kind == preset.prefers),
            "",
        )
        for run in runs
        for task in run.tasks
    }
    return labels.pop() if len(labels) == 1 and "" not in labels else None


def preferred_keys(preset: Preset, runs: Sequence[Run]) -> tuple[str, ...]:
    """Return the metadata keys of the preset by which the board's tree can be made.

    Runs that record averages over their tasks keep the tree of these.
    """
    if any(run.groups for run in runs):
        return ()
    keys_by_run = [_keys_of(run) for run in runs]
    return tuple(key for key in preset.by if all(key in keys for keys in keys_by_run))


def _keys_of(run: Run) -> set[str]:
    """Return the metadata keys of a run's tasks, and those that divide their samples."""
    keys: set[str] = set()
    for task in run.data["tasks"]:
        for holder in (task.get("metadata"), task.get("definition")):
            keys |= {*holder} if isinstance(holder, Mapping) else set()
    return keys | {key for task in run.tasks for key in task.slices}


def added_means(preset: Preset, runs: Sequence[Run]) -> dict[str, list[str]]:
    """Return the means that the preset adds to the board's tree, by name."""
    if preset.rank_by != OVER_ACCURACIES:
        return {}
    return {ACCURACY_TITLE: _accuracy_tasks(runs)}


def _accuracy_tasks(runs: Sequence[Run]) -> list[str]:
    return [*dict.fromkeys(name for run in runs for name in accuracy_scorers(run))]


def preferred_node(preset: Preset, runs: Sequence[Run]) -> str:
    """Return the node by which the preset ranks models; "" if the runs have none.

    It is a recorded average, or the mean of the tasks with an accuracy, stress questions left out.
    """
    if preset.rank_by == OVER_ACCURACIES:
        names = _accuracy_tasks(runs)
        if len(names) == 1:
            return names[0]
        return ACCURACY_TITLE if names else ""
    has_number = any(
        group.name.endswith(f":{preset.rank_by}")
        and any(has_value(metric.estimate) for metric in group.metrics)
        for run in runs
        for group in run.groups
    )
    return preset.rank_by if preset.rank_by and has_number else ""


def apply_preset(
    board: Board,
    runs: Sequence[Run],
    preset: Preset | None,
    facts: Sequence[ModelFacts] = (),
) -> Board:
    """Add facts about models, and what a preset shows beside scores.

    Args:
        board: the board.
        runs: its runs, in the order in which they were passed to `make_board`.
        preset: the preset, if any.
        facts: what is known of the runs' models, in the same order; by default what their records
            and names say.

    Raises:
        ConfigurationError: the runs are none that the preset can show.
    """
    if preset is not None:
        check_fit(preset, board, runs)
        if preset.fits != FITS_FACTUAL:
            board = _without_shares(board)
    facts = facts or facts_of_runs(runs)[0]
    with_facts = _with_facts(board, facts)
    models = [
        MeasuredModel(runs[row.run_index], facts[row.run_index].facts)
        for row in board.rows
    ]
    names = [*(preset.extra if preset else ()), *_fact_columns(with_facts)]
    extra_columns = make_extra_columns(tuple(dict.fromkeys(names)), models)
    notes = dict.fromkeys(column.note for column in extra_columns if column.note)
    return replace(
        with_facts,
        preset=preset.name if preset else "",
        extra_columns=extra_columns,
        notes=(*board.notes, *notes, *_name_notes(with_facts, names)),
    )


def _without_shares(board: Board) -> Board:
    """Show tasks and groups in place of the outcomes of factual questions."""
    return replace(
        board,
        rows=tuple(replace(row, shares={}) for row in board.rows),
        notes=tuple(
            note for note in board.notes if note not in (SHARES_NOTE, ACCURACY_NOTE)
        ),
        more=tuple(map(_without_shares, board.more)),
    )


def _with_facts(board: Board, facts: Sequence[ModelFacts]) -> Board:
    rows = tuple(
        replace(
            row,
            facts=facts[row.run_index].facts,
            fact_sources=facts[row.run_index].sources,
        )
        for row in board.rows
    )
    further_boards = tuple(_with_facts(unit_board, facts) for unit_board in board.more)
    return replace(board, rows=rows, more=further_boards)


def _fact_columns(board: Board) -> list[str]:
    """Name a column for each fact that a table says of a model, known ones first."""
    from_table = dict.fromkeys(
        key
        for row in board.rows
        for key, source in row.fact_sources.items()
        if source == FROM_TABLE and key not in NEVER_COLUMNS
    )
    known_first = sorted(
        from_table,
        key=lambda key: KNOWN_KEYS.index(key) if key in KNOWN_KEYS else len(KNOWN_KEYS),
    )
    return [f"fact:{key}" for key in known_first]


def _name_notes(board: Board, names: Sequence[str]) -> list[str]:
    """Say which facts of a column were read from names."""
    notes = []
    for key in ("size", "family"):
        if f"fact:{key}" not in names:
            continue
        labels = [
            row.label for row in board.rows if row.fact_sources.get(key) == FROM_NAME
        ]
        if labels:
            notes.append(f"From the name: the {key} of {listed(labels, 5)}.")
    return notes


# -- which runs a preset can show ----------------------------------------------------------


def check_fit(preset: Preset, board: Board, runs: Sequence[Run]) -> None:
    """Raise ConfigurationError if the runs are none that the preset can show."""
    if _FITS[preset.fits](board, runs):
        return
    shown_tasks = [
        f"{task.name} ({task.metric})"
        for unit_board in (board, *board.more)
        for task in unit_board.tasks
    ]
    raise ConfigurationError(
        f"The preset '{preset.name}' needs {preset.needs}. These runs show"
        f" {listed(shown_tasks, 5)}."
    )


def _has_hallucination_rate(board: Board, _runs: Sequence[Run]) -> bool:
    return is_hallucination_board(board)


def _has_stress_questions(board: Board, _runs: Sequence[Run]) -> bool:
    return any(row.shares for row in board.rows)


def _has_languages(_board: Board, runs: Sequence[Run]) -> bool:
    return all(len(languages_of(run)) > 1 or _is_of_sea_helm(run) for run in runs)


def _is_of_sea_helm(run: Run) -> bool:
    """Tell whether all tasks are SEA-HELM's, of which a board may well begin with one language."""
    return bool(run.tasks) and all(
        task.name.startswith("sea-helm:") for task in run.tasks
    )


def _is_korean(_board: Board, runs: Sequence[Run]) -> bool:
    return all(_is_korean_run(run) for run in runs)


def _has_average(board: Board, _runs: Sequence[Run]) -> bool:
    return board.has_overall


_FITS: Mapping[str, Callable[[Board, Sequence[Run]], bool]] = {
    "hallucination": _has_hallucination_rate,
    FITS_FACTUAL: _has_stress_questions,
    "languages": _has_languages,
    "korean": _is_korean,
    "averages": _has_average,
}


def languages_of(run: Run) -> set[str]:
    """Return the languages of a run's tasks, as their metadata or definitions name them."""
    languages = set()
    for task in run.data["tasks"]:
        for holder in (task.get("metadata"), task.get("definition")):
            language = holder.get("language") if isinstance(holder, Mapping) else None
            if isinstance(language, str) and language:
                languages.add(language)
    return languages


def _is_korean_run(run: Run) -> bool:
    imported = run.data["configuration"].get("imported")
    if isinstance(imported, Mapping) and imported.get("format") == "hret":
        return True
    if "ko" in languages_of(run):
        return True
    return any("call" in task.get("definition", {}) for task in run.data["tasks"])
