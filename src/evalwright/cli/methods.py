"""`evalwright export methods`: what a paper's methods section says of runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.exit_codes import say
from evalwright.cli.options import open_runs, option
from evalwright.cli.output import echo, write_result
from evalwright.core.errors import EvalwrightError, TaskError
from evalwright.tasks.safe_files import failing_as

if TYPE_CHECKING:
    from evalwright.analysis.comparison import Comparison
    from evalwright.analysis.several import SeveralComparison
    from evalwright.runs.reader import Run


@click.command()
@click.argument("runs", nargs=-1, required=True)
@option("--into output", "FILE", "Where it is written. Default: the terminal.")
@option(
    "--runs runs_folder",
    "DIR",
    "Where runs given by name are. Default: runs.",
    default="runs",
)
def methods(runs: tuple[str, ...], output: str | None, **_: Any) -> None:
    """Write what the methods section of a paper has to say about RUNS, as plain text: models,
    tasks, prompts, generation, scoring, statistics and software, and the BibTeX entries to cite.
    """
    from evalwright.cli.citations import cite_run, merge_cited
    from evalwright.reports.methods import methods_text
    from evalwright.runs.confirmed import confirm_all
    from evalwright.tasks.citations import bib_text

    opened_runs = confirm_all(open_runs(*runs))
    text = methods_text(opened_runs, _compared(opened_runs))
    rows = merge_cited([row for run in opened_runs for row in cite_run(run)])
    with failing_as(TaskError, "The citations cannot be put together", ValueError):
        text = f"{text}\n\nTo cite, as BibTeX:\n\n{bib_text(rows)}"
    if output:
        write_result(output, text)
    else:
        echo(text.rstrip())


def _compared(runs: list[Run]) -> Comparison | SeveralComparison | None:
    """Compare the runs; None for a single one, and with a message where they cannot be compared."""
    from evalwright.api import compare

    if len(runs) < 2:
        return None
    try:
        return compare(*runs)
    except EvalwrightError as error:
        say(f"The text says nothing of a comparison: {error}")
        return None
