"""`evalwright contamination`: signs that a model has memorised a task's questions."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.options import AS_JSON, RUNS_FOLDER, only_with, several
from evalwright.cli.output import print_result, write_result


@click.command()
@click.argument("runs", nargs=-1, required=True)
@several(
    "--rewrites",
    metavar="RUN",
    help="A run of the same model on a rewritten task. Repeatable; with several RUNs, each uses those of its model.",
)
@click.option(
    "--cut-off", default="", metavar="DATE",
    help="The model's training cut-off, e.g. 2024-06. Later items are control items.",
)  # fmt: skip
@click.option(
    "--date-key", default="created_at", show_default=True, metavar="KEY",
    help="The metadata that says when a question was written.",
)  # fmt: skip
@click.option(
    "--control", default="", metavar="KEY=VALUE",
    help="Items with this metadata are control items: questions that no model has seen.",
)  # fmt: skip
@several(
    "--corpus", metavar="PATH", help="A file or folder of text in which to look for the questions' n-grams."
)
@click.option("--ngram", type=int, default=13, show_default=True, metavar="N", help="Words of an n-gram.")
@RUNS_FOLDER
@AS_JSON
@click.option("--json-file", metavar="FILE", help="Write the reports as JSON to a file.")
@click.option("--markdown", metavar="FILE", help="Write the reports as Markdown to a file.")
def contamination(runs: tuple[str, ...], **given: Any) -> None:
    """Report on RUNS: scores by a cut-off and by overlap with a corpus, and the paired drop to rewritten questions.

    The drop on control items, which no model can have seen, is subtracted, because a rewrite may simply be harder. The exit
    code is 0 whatever is found: it is a reason to look closer, not a proof.
    """
    from evalwright.analysis.contamination.report import contamination_report
    from evalwright.api import open_run
    from evalwright.core.errors import ConfigurationError
    from evalwright.reports.documents.contamination import contamination_document
    from evalwright.reports.markdown import to_markdown

    only_with(date_key="cut_off", ngram="corpus")
    opened = [open_run(run, given["runs_folder"]) for run in runs]
    rewrites = [open_run(run, given["runs_folder"]) for run in given["rewrites"]]
    known = {run.data["model"].get("fingerprint") for run in opened}
    for one in rewrites if len(opened) > 1 else ():
        if one.data["model"].get("fingerprint") not in known:
            raise ConfigurationError(
                f"--rewrites {one.id} has no effect: it is a run of '{one.label}', of which there is no other run here."
            )
    reports = []
    for run in opened:
        own = [
            one
            for one in rewrites
            if one.data["model"].get("fingerprint") == run.data["model"].get("fingerprint")
        ]
        reports.append(
            contamination_report(
                run,
                rewrites=own if len(opened) > 1 else rewrites,
                cut_off=given["cut_off"],
                date_key=given["date_key"],
                control=given["control"],
                corpus=given["corpus"],
                n=given["ngram"],
            )
        )
    documents = [contamination_document(report) for report in reports]
    data = [
        {**report.as_dict(), **document.words()} for report, document in zip(reports, documents, strict=True)
    ]
    print_result(given["as_json"], data, *documents)
    if given["json_file"]:
        write_result(given["json_file"], data)
    if given["markdown"]:
        write_result(given["markdown"], "\n".join(to_markdown(document, 2) for document in documents))
