"""`evalwright export hf-results` and `evalwright export eval-results`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import click

from evalwright.compat.programs import Exporter, Exports, option
from evalwright.core.errors import ConfigurationError
from evalwright.runs.reader import Run


def _results(runs: Sequence[Run], out: Path, *, task: str, annotations: str | None, category: str) -> Exports:
    from evalwright.compat.huggingface.hf_results import export_hf_results, is_annotated, read_annotations

    table = read_annotations(Path(annotations)) if annotations else {}
    files: list[Path] = []
    for run in runs:
        file = export_hf_results(run, out, task=task, annotations=table, category=category)
        if file in files:
            raise ConfigurationError(
                f"'{file}' would contain two of these runs: they have the same model and time. Export one of them."
            )
        files.append(file)
    lacking = [run.model for run in runs if table and not is_annotated(table, run)]
    return Exports(
        files, [f"'{annotations}' has no annotations of '{model}': they are null." for model in lacking]
    )


def _eval_results(
    runs: Sequence[Run],
    out: Path,
    *,
    task: str,
    metric: str,
    source_url: str,
    source_name: str,
    source_user: str,
    **entry: str,
) -> Exports:
    from evalwright.compat.huggingface.eval_results import Entry, Source, export_eval_results

    if not source_url and (source_name or source_user):
        raise click.UsageError("--source-name and --source-user need --source-url.")
    source = Source(source_url, source_name, source_user) if source_url else None
    made = Entry(**entry, source=source)
    return Exports([export_eval_results(runs[0], out, made, task=task, metric=metric)])


RESULTS = Exporter(
    "Write RUNS as structured results for a leaderboard on the Hugging Face Hub: a JSON file for each model.",
    _results,
    "hf_results",
    "Where models' folders are made.",
    several=True,
    options=(
        option("--task", default="", metavar="NAME", help="The task, where a run has several."),
        option("--annotations", metavar="FILE", help="A YAML table: annotations by model, such as its size."),
        option(
            "--category",
            default="category",
            show_default=True,
            metavar="KEY",
            help="The metadata key for category_results.",
        ),
    ),
)
EVAL_RESULTS = Exporter(
    "Write RUN for a model repository on the Hugging Face Hub: .eval_results/NAME.yaml.",
    _eval_results,
    ".",
    "The model's repository.",
    options=(
        option(
            "--dataset", required=True, metavar="ID", help="The benchmark's data set on the Hub: owner/name."
        ),
        option("--task-id", required=True, metavar="ID", help="The task's id in the data set's eval.yaml."),
        option("--revision", default="", metavar="HASH", help="The data set's revision."),
        option("--task", default="", metavar="NAME", help="The run's task, where it has several."),
        option("--metric", default="", metavar="LABEL", help="The task's metric. Default: the main one."),
        option(
            "--unit",
            default="percent",
            show_default=True,
            help="For accuracy and similar metrics: percent, or share (0 to 1).",
        ),
        option("--source-url", default="", metavar="URL", help="Where the result can be looked up."),
        option("--source-name", default="", metavar="TEXT", help="The name of that address."),
        option("--source-user", default="", metavar="NAME", help="A user or organisation on the Hub."),
        option(
            "--framework",
            default="evalwright",
            show_default=True,
            help="The framework's name, as in eval.yaml.",
        ),
        option("--notes", default="", metavar="TEXT", help="Text before the notes on unit and interval."),
        option("--name", default="", metavar="NAME", help="The file's name. Default: the data set's."),
    ),
)
