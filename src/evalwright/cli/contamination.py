"""`evalwright check contamination`: signs that a model has memorised a task's questions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import (
    AS_JSON,
    RUNS_FOLDER,
    only_with,
    open_runs,
    option,
    repeatable_option,
)
from evalwright.cli.output import print_result, write_result
from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    from evalwright.runs.reader import Run


@click.command()
@click.argument("runs", nargs=-1, required=True)
@repeatable_option(
    "--rewrites",
    "RUN",
    "A run of the same model on a rewritten task. Repeatable; with several RUNs, each"
    " uses those of its model.",
)
@option(
    "--cut-off",
    "DATE",
    "The model's training cut-off, e.g. 2024-06. Later items are control items.",
    default="",
)
@option(
    "--date-key",
    "KEY",
    "The metadata that dates a question. Default: the first of created_at, known_since,"
    " date and year that divides a task's items.",
    default="",
)
@option(
    "--control",
    "KEY=VALUE",
    "Items with this metadata are control items: questions that no model has seen.",
    default="",
)
@repeatable_option(
    "--corpus",
    "PATH",
    "A file or folder of text in which to look for the questions' n-grams.",
)
@option("--ngram", "N", "Words of an n-gram.", type=int, default=13, show_default=True)
@RUNS_FOLDER
@AS_JSON
@option("--json-file", "FILE", "Write the reports as JSON to a file.")
@option("--markdown", "FILE", "Write the reports as Markdown to a file.")
def contamination(runs: tuple[str, ...], **params: Any) -> None:
    """Report on RUNS: scores by a cut-off and by overlap with a corpus, and the paired drop to
    rewritten questions.

    The drop on control items, which no model can have seen, is subtracted, because a rewrite may
    simply be harder. The exit code is 0 whatever is found: it is a reason to look closer, not a
    proof.
    """
    from evalwright.analysis.contamination.report import contamination_report
    from evalwright.reports.documents.contamination import contamination_document
    from evalwright.reports.markdown import to_markdown

    only_with(date_key="cut_off", ngram="corpus")
    opened_runs = open_runs(*runs)
    rewrites = open_runs(*params["rewrites"])
    rewrites_by_model: dict[Any, list[Run]] = {
        run.data["model"].get("fingerprint"): [] for run in opened_runs
    }
    for rewrite in rewrites if len(opened_runs) > 1 else ():
        model_rewrites = rewrites_by_model.get(rewrite.data["model"].get("fingerprint"))
        if model_rewrites is None:
            raise ConfigurationError(
                f"--rewrites {rewrite.id} has no effect: it is a run of '{rewrite.label}', of"
                " which there is no other run here."
            )
        model_rewrites.append(rewrite)
    settings = {
        key: params[key] for key in ("cut_off", "date_key", "control", "corpus")
    }
    reports = []
    for run in opened_runs:
        run_rewrites = (
            rewrites_by_model[run.data["model"].get("fingerprint")]
            if len(opened_runs) > 1
            else rewrites
        )
        reports.append(
            contamination_report(
                run, rewrites=run_rewrites, n=params["ngram"], **settings
            )
        )
    documents = [contamination_document(report) for report in reports]
    records = [
        {**report.as_dict(), **document.words()}
        for report, document in zip(reports, documents, strict=True)
    ]
    print_result(params["as_json"], records, *documents)
    if params["json_file"]:
        write_result(params["json_file"], records)
    if params["markdown"]:
        write_result(
            params["markdown"],
            "\n".join(to_markdown(document, 2) for document in documents),
        )
