"""`evalwright export citations`: what to cite for tasks, as LaTeX and BibTeX."""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import open_runs, option, repeatable_option
from evalwright.cli.output import echo
from evalwright.core.errors import (
    ConfigurationError,
    EvalwrightError,
    TaskError,
    UnknownName,
)
from evalwright.core.tasks import Task
from evalwright.tasks.safe_files import failing_as, write_file

if TYPE_CHECKING:
    from evalwright.runs.reader import Run
    from evalwright.tasks.citations import Cited


@click.command()
@click.argument("tasks", nargs=-1, metavar="TASK...")
@repeatable_option(
    "--run", "RUN", "The tasks of a run too, with their samples. Repeatable."
)
@option(
    "--into output",
    "FILE",
    "Where it is written: .tex for a document that compiles, .bib for the entries"
    " alone. Default: the terminal, as .tex.",
)
@option(
    "--runs runs_folder",
    "DIR",
    "Where runs given by name are. Default: runs.",
    default="runs",
)
def citations(
    tasks: tuple[str, ...], run: tuple[str, ...], output: str | None, **_: Any
) -> None:
    """Write a LaTeX table of tasks with their licences and citations, and the BibTeX entries.

    No data is fetched.

    A task without an entry is listed as "citation missing". Of a run on BenchHub, each benchmark is
    a row.
    """
    from evalwright.analysis.words import counted
    from evalwright.tasks.citations import MISSING, bib_text, tex_document

    if not tasks and not run:
        raise click.UsageError(
            "Name at least one task, for example gsm8k, or a run with --run."
        )
    run_rows = [row for opened_run in open_runs(*run) for row in cite_run(opened_run)]
    rows = merge_cited(
        [*(row for name in tasks for row in _cite_task(name)), *run_rows]
    )
    path = Path(output) if output else None
    if path is not None and path.suffix not in (".tex", ".bib"):
        raise click.UsageError(f"--into ends in .tex or .bib, not '{path.suffix}'.")
    with failing_as(TaskError, "The citations cannot be put together", ValueError):
        if path is None:
            echo(tex_document(rows).rstrip())
        else:
            stem = re.sub("[^A-Za-z0-9]", "-", path.stem).strip("-") or "tasks"
            write_file(
                path,
                bib_text(rows) if path.suffix == ".bib" else tex_document(rows, stem),
            )
    missing = [row for row in rows if not row.entries]
    if path is not None:
        echo(
            f"Written: {path} ({counted(len(rows), 'task')}, {len(missing)} without a"
            " citation)"
        )
    for row in missing:
        say(f"{MISSING.capitalize()}: {row.name}{f': {row.why}' if row.why else ''}.")


def _cite_task(name: str) -> Iterator[Cited]:
    from evalwright.tasks.citations import cited
    from evalwright.tasks.loading import find_definitions

    try:
        definitions = find_definitions(name)
    except UnknownName as error:
        if not _is_run(name):
            raise
        raise ConfigurationError(
            f"'{name}' is a run, not a task. For the tasks of a run: `evalwright export"
            f" citations --run {shlex.quote(name)}`."
        ) from error
    for definition in definitions:
        metadata = (
            definition.metadata
            if isinstance(definition, Task)
            else definition.document.value.get("metadata")
        )
        yield cited(definition.name, metadata if isinstance(metadata, dict) else {})


def _is_run(name: str) -> bool:
    try:
        open_runs(name)
    except EvalwrightError:
        return False
    return True


def merge_cited(rows: Sequence[Cited]) -> list[Cited]:
    """List each task once: its rows that agree but for the number of samples become one.

    Runs that used different numbers of samples keep a row each.
    """
    merged: dict[tuple[Any, ...], Cited] = {}
    for row in rows:
        citation = (row.name, row.licence, tuple(row.entries.items()), row.why)
        uncounted = (*citation, None)
        if row.samples is None and any(key[:-1] == citation for key in merged):
            continue
        if row.samples is not None and uncounted in merged:
            # The run says how many samples: its row takes the place of the task's.
            merged = {
                (*citation, row.samples) if key == uncounted else key: (
                    row if key == uncounted else merged_row
                )
                for key, merged_row in merged.items()
            }
        merged.setdefault((*citation, row.samples), row)
    return list(merged.values())


def cite_run(run: Run) -> Iterator[Cited]:
    from evalwright.tasks.citations import cited, cited_benchmark

    benchmarks_by_task: dict[str, Counter[str]] = {}
    for row in run.rows():
        benchmark = row["metadata"].get("benchmark")
        if benchmark and row.get("draw", 0) == 0:
            counts = benchmarks_by_task.setdefault(row["task"], Counter())
            counts[str(benchmark)] += 1

    for task in run.tasks:
        definition = run.record(task.name)["definition"]
        yield cited(task.name, definition.get("metadata") or {}, task.n_samples)
        for benchmark, count in sorted(benchmarks_by_task.get(task.name, {}).items()):
            yield cited_benchmark(benchmark, count)
