"""`evalwright import`: other programs' results as runs."""

from __future__ import annotations

from pathlib import Path

import click

from evalwright.cli.output import print_json


@click.group("import")
def import_() -> None:
    """Make runs of results of other programs."""


@import_.command("lm-eval")
@click.argument("path")
@click.option("--name", default="", metavar="ID", help="The run's name. Default: the model and the time.")
@click.option("--out", default="runs", metavar="DIR", help="Where runs are written. Default: runs.")
@click.option("--json", "as_json", is_flag=True, help="Print the runs' names as JSON.")
def lm_eval(path: str, name: str, out: str, as_json: bool) -> None:
    """Make runs of results of lm-evaluation-harness in PATH: a results or samples file, or a folder with many."""
    from evalwright.compat.lm_eval.runs.importing import import_lm_eval
    from evalwright.reports.numbers import counted

    runs = import_lm_eval(Path(path), Path(out), name)
    if as_json:
        print_json([{"id": run.id, "model": run.model, "folder": str(run.folder)} for run in runs])
        return
    for run in runs:
        tasks = counted(len(run.tasks), "task")
        samples = counted(int(run.data["samples"]["records"]), "sample")
        failed = f", {run.n_failed} failed" if run.n_failed else ""
        click.echo(f"Imported: {run.folder} ({run.model}: {tasks}, {samples}{failed})")


@import_.command("hhem")
@click.argument("path")
@click.option("--name", default="", metavar="ID", help="The run's name. Default: the model and the date.")
@click.option("--out", default="runs", metavar="DIR", help="Where runs are written. Default: runs.")
@click.option(
    "--scoring",
    type=click.Choice(["corrected", "published"]),
    default="corrected",
    help="Count each judgment once, or as the engine does. Default: corrected.",
)
@click.option(
    "--articles", metavar="CSV", help="The data set: slices by category, text_type and dataset, and its size."
)
@click.option("--all-dates", is_flag=True, help="Also what was judged before the last time.")
@click.option("--json", "as_json", is_flag=True, help="Print the runs and what differs as JSON.")
def hhem(
    path: str, name: str, out: str, scoring: str, articles: str | None, all_dates: bool, as_json: bool
) -> None:
    """Make runs of recorded runs of the HHEM leaderboard engine in PATH.

    PATH is its output folder, a company's folder in it, or one model's.
    """
    from evalwright.compat.hhem.importing import import_hhem
    from evalwright.compat.hhem.shown import as_record, lines_of

    found = import_hhem(
        Path(path),
        Path(out),
        name,
        scoring=scoring,
        articles=Path(articles) if articles else None,
        every=all_dates,
    )
    if as_json:
        print_json({"runs": [as_record(run) for run in found.runs], "left_out": list(found.left_out)})
        return
    for run in found.runs:
        for line in lines_of(run):
            click.echo(line)
    for sentence in found.left_out:
        click.echo(f"Left out: {sentence}", err=True)


@import_.command("open-factual-bench")
@click.argument("path")
@click.option("--name", default="", metavar="ID", help="The run's name. Default: the model and its run id.")
@click.option("--out", default="runs", metavar="DIR", help="Where runs are written. Default: runs.")
@click.option(
    "--scoring",
    type=click.Choice(["corrected", "published"]),
    help="Score the answers again, or count as the benchmark does. Default: corrected with --tasks.",
)
@click.option(
    "--tasks",
    metavar="FILE",
    help="Its questions: its Python file (read, never run), JSON, JSON Lines or CSV.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the runs and what differs as JSON.")
def open_factual_bench(
    path: str, name: str, out: str, scoring: str | None, tasks: str | None, as_json: bool
) -> None:
    """Make runs of recorded runs of open-factual-bench in PATH: a result file, or a folder with some."""
    from evalwright.compat.open_factual_bench.importing import import_ofb
    from evalwright.compat.open_factual_bench.shown import as_record, lines_of

    runs = import_ofb(Path(path), Path(out), name, scoring=scoring, tasks=Path(tasks) if tasks else None)
    if as_json:
        print_json({"runs": [as_record(run) for run in runs]})
        return
    for run in runs:
        for line in lines_of(run):
            click.echo(line)
