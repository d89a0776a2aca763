"""`evalwright export hf-results`, `export eval-results` and `export model-card`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from evalwright import Run
from evalwright.compat.programs import option
from evalwright.extend import ConfigurationError, Exporter, ExportSummary


def _export_results(
    runs: Sequence[Run],
    folder: Path,
    *,
    task: str,
    annotations: str | None,
    category: str,
) -> ExportSummary:
    from evalwright.compat.huggingface.hf_results import (
        export_hf_results,
        is_annotated,
        read_annotations,
    )

    table = read_annotations(Path(annotations)) if annotations else {}
    files: list[Path] = []
    for run in runs:
        file = export_hf_results(
            run, folder, task=task, annotations=table, category=category
        )
        if file in files:
            raise ConfigurationError(
                f"'{file}' would contain two of these runs: they have the same model"
                " and time. Export one of them."
            )
        files.append(file)
    lacking = [run.model for run in runs if table and not is_annotated(table, run)]
    return ExportSummary(
        files,
        [
            f"'{annotations}' has no annotations of '{model}': they are null."
            for model in lacking
        ],
    )


def _eval_results(
    runs: Sequence[Run],
    folder: Path,
    *,
    source_url: str,
    source_name: str,
    source_user: str,
    **options: str,
) -> ExportSummary:
    from evalwright.compat.huggingface.eval_results import export_eval_results

    if not source_url and (source_name or source_user):
        raise click.UsageError("--source-name and --source-user need --source-url.")
    source = {"url": source_url, "name": source_name, "user": source_user}
    return ExportSummary(
        [
            export_eval_results(
                runs[0], folder, source=source if source_url else None, **options
            )
        ]
    )


def _model_cards(
    runs: Sequence[Run],
    folder: Path,
    *,
    source_name: str,
    source_url: str,
    **options: Any,
) -> ExportSummary:
    from evalwright.compat.huggingface.model_card import export_model_cards

    if source_name and not source_url:
        raise click.UsageError("--source-name needs --source-url.")
    return export_model_cards(
        runs, folder, source_name=source_name, source_url=source_url, **options
    )


def _text(name: str, metavar: str, help: str, default: str = "") -> click.Option:
    """Create an option that takes text."""
    return option(
        name, default=default, show_default=bool(default), metavar=metavar, help=help
    )


RESULTS = Exporter(
    "Write RUNS as structured results for a leaderboard on the Hugging Face Hub: a JSON"
    " file for each model.",
    _export_results,
    "hf_results",
    "Where models' folders are made.",
    takes_several_runs=True,
    options=(
        _text("--task", "NAME", "The task, where a run has several."),
        option(
            "--annotations",
            metavar="FILE",
            help=(
                "Annotations by model, such as its size: a table of facts (YAML, JSON or"
                " CSV), as for leaderboard --facts."
            ),
        ),
        _text(
            "--category", "KEY", "The metadata key for category_results.", "category"
        ),
    ),
)
EVAL_RESULTS = Exporter(
    "Write RUN for a model repository on the Hugging Face Hub:"
    " .eval_results/NAME.yaml.",
    _eval_results,
    ".",
    "The model's repository.",
    options=(
        option(
            "--dataset",
            required=True,
            metavar="ID",
            help="The benchmark's data set on the Hub: owner/name.",
        ),
        option(
            "--task-id",
            required=True,
            metavar="ID",
            help="The task's id in the data set's eval.yaml.",
        ),
        _text("--revision", "HASH", "The data set's revision."),
        _text("--task", "NAME", "The run's task, where it has several."),
        _text("--metric", "LABEL", "The task's metric. Default: the main one."),
        _text(
            "--unit",
            "UNIT",
            "For accuracy and similar metrics: percent, or share (0 to 1).",
            "percent",
        ),
        _text("--source-url", "URL", "Where the result can be looked up."),
        _text("--source-name", "TEXT", "The name of that address."),
        _text("--source-user", "NAME", "A user or organisation on the Hub."),
        _text(
            "--framework",
            "NAME",
            "The framework's name, as in eval.yaml.",
            "evalwright",
        ),
        _text("--notes", "TEXT", "Text before the notes on unit and interval."),
        _text("--name", "NAME", "The file's name. Default: the data set's."),
    ),
)
MODEL_CARD = Exporter(
    "Write the metadata of model cards on the Hugging Face Hub for RUNS: a Markdown file"
    " for each model, whose header has its results as model-index.",
    _model_cards,
    "model_cards",
    "Where the files are written: ORGANISATION/MODEL.md.",
    takes_several_runs=True,
    options=(
        _text("--task-type", "TYPE", "The Hub's name of the task.", "text-generation"),
        _text(
            "--unit",
            "UNIT",
            "For accuracy and similar metrics: percent, or share (0 to 1).",
            "percent",
        ),
        option(
            "--all-metrics",
            is_flag=True,
            help="All metrics of each task, not only the main one.",
        ),
        _text("--source-url", "URL", "Where the results can be looked up."),
        _text("--source-name", "TEXT", "The name of that address."),
    ),
)
