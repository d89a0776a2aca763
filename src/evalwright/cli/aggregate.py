"""`evalwright runs aggregate`: recorded scores, new numbers."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.options import (
    AS_JSON,
    PLUGINS,
    RUNS_FOLDER,
    open_runs,
    option,
    repeatable_option,
)
from evalwright.cli.output import print_result
from evalwright.core.errors import ConfigurationError
from evalwright.core.tasks import MetricSpec


@click.command()
@click.argument("run")
@repeatable_option(
    "--slice slices",
    "KEY",
    "A metadata key to show the metrics by, in place of the run's own.",
)
@option(
    "--level",
    "L",
    "Confidence level of the intervals, e.g. 0.99. Default: the run's own.",
    type=float,
)
@option(
    "--metric metrics",
    "[LABEL=]METRIC[:SCORER]",
    "A metric in place of the run's own. Repeatable.",
    multiple=True,
)
@option(
    "--name",
    "ID",
    "The new run's name. Default: the old one with '.aggregated'.",
    default="",
)
@RUNS_FOLDER
@PLUGINS
@AS_JSON
def aggregate(run: str, **params: Any) -> int:
    """Compute the metrics of RUN again from its recorded scores, as a new run. No request is
    sent.
    """
    from evalwright.cli.arguments import load_plugins
    from evalwright.cli.exit_codes import say
    from evalwright.evaluation.aggregating import aggregate_run
    from evalwright.reports.documents.summary import run_summary
    from evalwright.reports.endings import unscored_sentences

    load_plugins(params["plugins"])
    aggregated = aggregate_run(
        open_runs(run, writes_beside=True)[0],
        metrics=[_metric(text) for text in params["metrics"]],
        slices=params["slices"] or None,
        level=params["level"],
        name=params["name"],
    )
    print_result(
        params["as_json"],
        {**aggregated.data, "folder": str(aggregated.folder)},
        run_summary(aggregated),
    )
    if aggregated.n_left_out:
        say(unscored_sentences([aggregated]))
    return 1 if aggregated.n_missing else 0


def _metric(text: str) -> MetricSpec:
    """Parse `LABEL=METRIC:SCORER`, of which only METRIC is required."""
    label, equals, right_side = text.partition("=")
    metric, colon, scorer = (right_side if equals else label).partition(":")
    if not metric or (equals and not label) or (colon and not scorer):
        raise ConfigurationError(
            "--metric takes [LABEL=]METRIC[:SCORER], such as answer-rate:answered, not"
            f" '{text}'."
        )
    return MetricSpec(label if equals else metric, metric, scorer)
