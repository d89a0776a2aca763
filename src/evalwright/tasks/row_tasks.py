"""Rows in Python as a task: a list of mappings, a data frame, or a Hugging Face data set.

Columns are found by their names as those of a data file (`data_files`), or named by the caller. The
task is registered under its name, so that settings, prompts and chat models treat it as any other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from evalwright.core.errors import ConfigurationError, DatasetError, closest
from evalwright.metrics.registry import usual_metric
from evalwright.scorers.registry import scorer as register_scorer
from evalwright.tasks.column_names import COLUMNS, columns_by_fold, option_columns
from evalwright.tasks.data_files import (
    LETTERED,
    cell_template,
    listed,
)
from evalwright.tasks.decorator import task as register_task

DEFAULT_NAME = "rows"
_MOST_METADATA = 100

ScorerLike = str | Mapping[str, Any] | Callable[..., Any]


def are_rows(tasks: Any) -> bool:
    """Whether the argument is rows: mappings, a data frame, or a Hugging Face data set."""
    if isinstance(tasks, list | tuple):
        return bool(tasks) and all(isinstance(row, Mapping) for row in tasks)
    return _table_rows(tasks) is not None


def rows_of(tasks: Any) -> list[dict[str, Any]]:
    """The rows as plain mappings.

    Raises:
        DatasetError: there are none.
    """
    table = _table_rows(tasks)
    rows = [dict(row) for row in (tasks if table is None else table)]
    if not rows:
        raise DatasetError("The table has no rows, so there is nothing to evaluate.")
    return [{str(key): _plain(cell) for key, cell in row.items()} for row in rows]


def _table_rows(table: Any) -> Iterable[Mapping[str, Any]] | None:
    """The rows of a data frame or data set; None for anything else."""
    if callable(getattr(table, "to_dicts", None)):  # polars
        rows: Iterable[Mapping[str, Any]] = table.to_dicts()
        return rows
    if hasattr(table, "columns") and hasattr(table, "iloc"):  # pandas
        records: Iterable[Mapping[str, Any]] = table.to_dict("records")
        return records
    if hasattr(table, "features") and hasattr(table, "column_names"):  # datasets
        if isinstance(table, Mapping):
            raise DatasetError(
                f"The data set has several splits: {', '.join(map(str, table))}. Pass one"
                ' of them, such as dataset["test"].'
            )
        samples: Iterable[Mapping[str, Any]] = table
        return samples
    return None


def _plain(cell: Any) -> Any:
    """A cell as JSON has it: numpy's numbers as Python's, a missing value as None."""
    if hasattr(cell, "tolist"):
        cell = cell.tolist()
    return None if isinstance(cell, float) and cell != cell else cell


def rows_task(
    rows: Sequence[Mapping[str, Any]],
    *,
    name: str = DEFAULT_NAME,
    input: str = "",
    target: str = "",
    scorers: ScorerLike | Sequence[ScorerLike] = (),
    metrics: Any = (),
    prompt: str = "",
) -> str:
    """Register the task of some rows.

    Args:
        rows: the rows, each with the same columns.
        name: the task's name.
        input: the column with what is asked; found by its name where it is left out.
        target: the column with what is expected; found by its name where it is left out.
        scorers: names, mappings as in task files, or functions `f(sample, answer)`; by default
            `choice` where rows have options, else `short-answer`.
        metrics: metrics as in task files; by default those of the scorers.
        prompt: a template of the prompt, such as "Q: {{ input }}"; by default the input alone.

    Returns:
        The name.

    Raises:
        ConfigurationError: an argument that no task can have.
        DatasetError: a column that there is not, or nothing that says what is asked.
    """
    columns = [str(column) for column in rows[0]]
    by_fold = columns_by_fold(columns)
    input_column = _column("input", input, columns, by_fold)
    if not input_column:
        raise DatasetError(
            "No column has a name that says that it holds the question"
            f" ({', '.join(COLUMNS['input'])}). Name it with input=. The columns:"
            f" {listed(columns)}."
        )
    target_column = _column("target", target, columns, by_fold)
    options = option_columns(columns)
    scorer_entries = [_scorer_entry(entry) for entry in _as_entries(scorers)]
    if not scorer_entries and not target_column:
        raise DatasetError(
            "Nothing says how answers are scored: name the column of what is expected"
            f" with target=, or scorers=. The columns: {listed(columns)}."
        )
    sample: dict[str, Any] = {"input": cell_template(input_column)}
    if target_column:
        sample["target"] = cell_template(target_column)
    if options:
        sample["choices"] = (
            f"{{{{ row[{options[0]!r}] | literal }}}}"
            if len(options) == 1
            else [cell_template(option) for option in options]
        )
    used = {input_column, target_column, *options}
    sample["metadata"] = {
        column: f"{{{{ row.get({column!r}) }}}}"
        for column in columns[:_MOST_METADATA]
        if column not in used and column not in ("id", "metadata", "passages")
    }
    definition: dict[str, Any] = {
        "dataset": {"rows": [dict(row) for row in rows]},
        "sample": sample,
        "prompt": {"user": prompt or (LETTERED if options else "{{ input }}")},
        "answer": {"mode": "generate"},
        "scorers": scorer_entries or ["choice" if options else "short-answer"],
    }
    if metrics:
        definition["metrics"] = _as_entries(metrics)
    elif scorer_entries:
        functions = {
            _function_name(entry): entry
            for entry in _as_entries(scorers)
            if callable(entry)
        }
        definition["metrics"] = _metrics_of(scorer_entries, functions)

    def make() -> Mapping[str, Any]:
        return definition

    register_task(name)(make)
    return name


def _column(
    role: str, named: str, columns: Sequence[str], by_fold: Mapping[str, str]
) -> str:
    """The column of a role: the one that is named, or else one that is called like it."""
    if named:
        if named in columns:
            return named
        near = closest(named, columns)
        hint = f"Did you mean '{near[0]}'?" if near else f"It has: {listed(columns)}."
        raise DatasetError(f"The table has no column '{named}' ({role}=). {hint}")
    return next((by_fold[name] for name in COLUMNS[role] if name in by_fold), "")


def _as_entries(entries: Any) -> list[Any]:
    is_single = isinstance(entries, str | Mapping) or callable(entries)
    return [entries] if is_single else list(entries)


def _scorer_entry(entry: ScorerLike) -> Any:
    """A scorer as a task file names it; a function is registered under its name."""
    if isinstance(entry, str):
        return entry
    if isinstance(entry, Mapping):
        return dict(entry)
    if not callable(entry):
        raise ConfigurationError(
            "A scorer is a name, a mapping or a function `f(sample, answer)`, not"
            f" {type(entry).__name__}."
        )
    name = _function_name(entry)
    register_scorer(name)(entry)
    return name


def _function_name(function: Callable[..., Any]) -> str:
    name = getattr(function, "__name__", "").strip("<>").replace("_", "-")
    return name or "function"


def _metrics_of(
    scorers: Sequence[Any], functions: Mapping[str, Callable[..., Any]]
) -> list[Any]:
    """A metric for each scorer: its usual one; for a function, the mean of what it returns, or the
    share of True where it is annotated so.
    """
    metrics: list[Any] = []
    for number, entry in enumerate(scorers):
        name = entry if isinstance(entry, str) else _entry_name(entry)
        if name in functions:
            use = "accuracy" if _returns_bool(functions[name]) else "mean"
        else:
            use = usual_metric(_entry_kind(entry), {})
        if number == 0:
            metrics.append(use)
        else:
            metrics.append({"name": name, "use": use, "scorer": name})
    return metrics


def _returns_bool(function: Callable[..., Any]) -> bool:
    return getattr(function, "__annotations__", {}).get("return") in (bool, "bool")


def _entry_name(entry: Mapping[str, Any]) -> str:
    return str(entry.get("name") or entry.get("use") or next(iter(entry), ""))


def _entry_kind(entry: Any) -> str:
    if isinstance(entry, str):
        return entry
    return str(entry.get("use") or entry.get("name") or next(iter(entry), ""))
