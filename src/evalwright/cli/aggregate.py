"""`evalwright aggregate`: recorded scores, new numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from evalwright.cli.options import AS_JSON, PLUGINS, RUNS_FOLDER
from evalwright.cli.output import print_json

if TYPE_CHECKING:
    from evalwright.core.tasks import MetricSpec


@click.command()
@click.argument("run")
@click.option(
    "--slice",
    "slices",
    multiple=True,
    metavar="KEY",
    help="A metadata key to show the metrics by, in place of the run's own. Repeatable.",
)
@click.option(
    "--level",
    type=float,
    metavar="L",
    help="Confidence level of the intervals, e.g. 0.99. Default: the run's own.",
)
@click.option(
    "--metric",
    "metrics",
    multiple=True,
    metavar="[LABEL=]METRIC[:SCORER]",
    help="A metric in place of the run's own. Repeatable.",
)
@click.option(
    "--name", default="", metavar="ID", help="The new run's name. Default: the old one with '.aggregated'."
)
@RUNS_FOLDER
@PLUGINS
@AS_JSON
def aggregate(
    run: str,
    slices: tuple[str, ...],
    level: float | None,
    metrics: tuple[str, ...],
    name: str,
    runs_folder: str,
    plugins: tuple[str, ...],
    as_json: bool,
) -> int:
    """Compute the metrics of RUN again from its recorded scores, as a new run. No request is sent."""
    from evalwright.api import open_run
    from evalwright.cli.arguments import load_plugins
    from evalwright.evaluation.aggregating import aggregate_run
    from evalwright.reports.documents.run import run_document
    from evalwright.reports.terminal import show

    load_plugins(plugins)
    made = aggregate_run(
        open_run(run, runs_folder),
        metrics=[_metric(text) for text in metrics],
        slices=slices or None,
        level=level,
        name=name,
    )
    if as_json:
        print_json({**made.data, "folder": str(made.folder)})
    else:
        show(run_document(made))
    return 1 if made.n_failed else 0


def _metric(text: str) -> MetricSpec:
    """`LABEL=METRIC:SCORER`, of which only METRIC must be there."""
    from evalwright.core.errors import ConfigurationError
    from evalwright.core.tasks import MetricSpec as Spec

    label, equals, rest = text.partition("=")
    kind, colon, scorer = (rest if equals else label).partition(":")
    if not kind or (equals and not label) or (colon and not scorer):
        raise ConfigurationError(
            f"--metric takes [LABEL=]METRIC[:SCORER], such as answer-rate:answered, not '{text}'."
        )
    return Spec(label if equals else kind, kind, scorer)
