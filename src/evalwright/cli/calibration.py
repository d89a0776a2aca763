"""`evalwright check calibration`: whether a model knows when it is right."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.options import AS_JSON, RUNS_FOLDER, open_runs
from evalwright.cli.output import print_result


@click.command()
@click.argument("runs", nargs=-1, required=True)
@RUNS_FOLDER
@AS_JSON
def calibration(runs: tuple[str, ...], as_json: bool, **_: Any) -> int:
    """Compare the confidence of RUNS' answers with their scores: Brier score, calibration error,
    risk and coverage.

    The confidence is what answers state ("Confidence: 80%"), or the log-probabilities of options.
    No request is sent.
    """
    from evalwright.analysis.confidence import measure_confidence
    from evalwright.reports.documents.analysis import confidence_document

    confidences = [(run, measure_confidence(run)) for run in open_runs(*runs)]
    print_result(
        as_json,
        [
            {"run": run.id, "tasks": [task.as_dict() for task in tasks]}
            for run, tasks in confidences
        ],
        *(
            confidence_document(f"{run.label} (run {run.id})", tasks)
            for run, tasks in confidences
        ),
    )
    return 0
