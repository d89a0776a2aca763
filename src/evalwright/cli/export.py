"""`evalwright export`: runs in other programs' files."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from evalwright.cli.output import print_json


@click.group()
def export() -> None:
    """Write runs as files of other programs."""


@export.command("lm-eval")
@click.argument("run")
@click.option(
    "--out", default="exports", metavar="DIR", help="Where the model's folder is made. Default: exports."
)
@click.option(
    "--runs",
    "runs_folder",
    default="runs",
    metavar="DIR",
    help="Where runs given by name lie. Default: runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the files' names as JSON.")
def lm_eval(run: str, out: str, runs_folder: str, as_json: bool) -> None:
    """Write RUN as lm-evaluation-harness writes its results: results_*.json and samples_*.jsonl."""
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.compat.lm_eval.runs.export import export_lm_eval

    found = open_run(run, runs_folder)
    files = export_lm_eval(found, Path(out))
    _show(files, as_json)
    if found.n_failed:
        failed = "1 failed sample stands" if found.n_failed == 1 else f"{found.n_failed} failed samples stand"
        say(f"{failed} in failures_*.jsonl, or in samples_*.jsonl without a value; no number counts them.")


@export.command("hf-results")
@click.argument("runs", nargs=-1, required=True)
@click.option(
    "--out", default="hf_results", metavar="DIR", help="Where models' folders are made. Default: hf_results."
)
@click.option("--task", default="", metavar="NAME", help="The task, where a run has several.")
@click.option("--annotations", metavar="FILE", help="A YAML table: annotations by model, such as its size.")
@click.option(
    "--category", default="category", show_default=True, metavar="KEY", help="The slices given by category."
)
@click.option(
    "--runs",
    "runs_folder",
    default="runs",
    metavar="DIR",
    help="Where runs given by name lie. Default: runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the files' names as JSON.")
def hf_results(
    runs: tuple[str, ...],
    out: str,
    task: str,
    annotations: str | None,
    category: str,
    runs_folder: str,
    as_json: bool,
) -> None:
    """Write RUNS as structured results for a leaderboard on the Hugging Face Hub: a JSON file for each model."""
    from evalwright.api import open_run
    from evalwright.cli import say
    from evalwright.compat.huggingface.hf_results import export_hf_results, is_annotated, read_annotations
    from evalwright.core.errors import ConfigurationError

    table = read_annotations(Path(annotations)) if annotations else {}
    opened = [open_run(run, runs_folder) for run in runs]
    files: list[Path] = []
    for one in opened:
        file = export_hf_results(one, Path(out), task=task, annotations=table, category=category)
        if file in files:
            raise ConfigurationError(
                f"'{file}' would hold two of these runs: they are of one model and one time. Name one of them."
            )
        files.append(file)
    _show(files, as_json)
    for run in opened:
        if table and not is_annotated(table, run):
            say(f"'{annotations}' has no annotations of '{run.model}': they are null.")


@export.command("eval-results")
@click.argument("run")
@click.option(
    "--dataset", required=True, metavar="ID", help="The benchmark's data set on the Hub: owner/name."
)
@click.option("--task-id", required=True, metavar="ID", help="The task's id in the data set's eval.yaml.")
@click.option("--revision", default="", metavar="HASH", help="The data set's revision.")
@click.option("--task", default="", metavar="NAME", help="The run's task, where it has several.")
@click.option("--metric", default="", metavar="LABEL", help="The task's metric. Default: the main one.")
@click.option(
    "--unit",
    default="percent",
    show_default=True,
    help="Of accuracy and its kin: percent, or share (0 to 1).",
)
@click.option("--source-url", default="", metavar="URL", help="Where the result can be looked up.")
@click.option("--source-name", default="", metavar="TEXT", help="What that address is called.")
@click.option("--source-user", default="", metavar="NAME", help="A user or organisation on the Hub.")
@click.option(
    "--framework", default="evalwright", show_default=True, help="The framework's name, as in eval.yaml."
)
@click.option("--notes", default="", metavar="TEXT", help="Put before what is said of unit and interval.")
@click.option("--name", default="", metavar="NAME", help="The file's name. Default: the data set's.")
@click.option(
    "--out", default=".", metavar="DIR", help="The model's repository. Default: the working folder."
)
@click.option(
    "--runs",
    "runs_folder",
    default="runs",
    metavar="DIR",
    help="Where runs given by name lie. Default: runs.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the file's name as JSON.")
def eval_results(run: str, **given: Any) -> None:
    """Write RUN for a model repository on the Hugging Face Hub: .eval_results/NAME.yaml."""
    from evalwright.api import open_run
    from evalwright.compat.huggingface.eval_results import Entry, Source, export_eval_results

    url = given["source_url"]
    if not url and (given["source_name"] or given["source_user"]):
        raise click.UsageError("--source-name and --source-user need --source-url.")
    entry = Entry(
        dataset=given["dataset"],
        task_id=given["task_id"],
        name=given["name"],
        revision=given["revision"],
        unit=given["unit"],
        source=Source(url, given["source_name"], given["source_user"]) if url else None,
        framework=given["framework"],
        notes=given["notes"],
    )
    found = open_run(run, given["runs_folder"])
    file = export_eval_results(found, Path(given["out"]), entry, task=given["task"], metric=given["metric"])
    _show([file], given["as_json"])


def _show(files: list[Path], as_json: bool) -> None:
    if as_json:
        print_json([str(file) for file in files])
        return
    for file in files:
        click.echo(f"Written: {file}")
