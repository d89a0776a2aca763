"""`evalwright plan`: what a run costs and what it can detect."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import click

from evalwright.cli import conclude, options
from evalwright.cli.options import flag, option, several
from evalwright.cli.output import print_result
from evalwright.evaluation.configuration import ModelSpec


@click.command()
@click.argument("tasks", nargs=-1)
@options.MODELS
@option(
    "--difference",
    "D",
    "The difference to detect. Default: 0.02, 2 points.",
    type=float,
    default=0.02,
)
@option(
    "--half-width",
    "W",
    "Half of one model's interval. Default: 0.02.",
    type=float,
    default=0.02,
)
@option(
    "--power",
    "P",
    "The probability of detecting it. Default: 0.8.",
    type=float,
    default=0.8,
)
@option(
    "--level",
    "L",
    "Confidence level of intervals and tests. Default: 0.95.",
    type=float,
    default=0.95,
)
@option(
    "--pilot",
    "N",
    "Run N items of each task first and measure on them; their answers are kept.",
    type=int,
)
@several(
    "--from runs",
    "RUN",
    "Measure on a stored run of the tasks; give two for two models.",
)
@several("--assume", "NAME=X,...", "E.g. accuracy=0.7,discordant=0.2.")
@several(
    "--price prices",
    "IN/OUT",
    "US dollars per million tokens; MODEL=IN/OUT for one model.",
)
@option("--seed", "S", "Fixes which items the pilot uses. Default: 0.", type=int)
@option(
    "--out", "DIR", "Where runs are, and where the pilot is written. Default: runs."
)
@options.HOME
@options.FORMAT
@options.IMAGE_URLS
@options.PLUGINS
@options.dialect_options
@options.AS_JSON
@flag("--quiet", "Show no progress of the pilot.")
def plan(**given: Any) -> int:
    """Estimate what running TASKS takes and what the answers can show: items, requests, tokens,
    cost and time.

    No request is sent without --pilot; without --pilot, --from and --assume the plan is for the
    worst case.
    """
    from evalwright.analysis.power.settings import read_assumptions, read_prices
    from evalwright.api import plan as make_plan
    from evalwright.cli.arguments import evaluation_settings, key_values, load_plugins
    from evalwright.reports.documents.plan import plan_document
    from evalwright.reports.progress import TerminalProgress

    options.only_with(quiet="pilot", seed="pilot", home="pilot", out="pilot runs")
    load_plugins(given["plugins"])
    arguments = key_values(given["arguments"], "-M")
    settings = evaluation_settings(given)
    wanted = {
        key: given[key]
        for key in ("difference", "half_width", "power", "level", "pilot", "runs")
    }
    quiet = given["quiet"] or given["pilot"] is None
    with nullcontext() if quiet else TerminalProgress() as progress:
        forecast = make_plan(
            list(given["tasks"]),
            [ModelSpec(name, arguments) for name in given["models"]],
            progress=progress,
            **wanted,
            assume=read_assumptions(given["assume"]),
            prices=read_prices(given["prices"]),
            **settings,
        )
    print_result(given["as_json"], forecast.as_dict(), plan_document(forecast))
    failed = forecast.pilot_failed
    what = (
        f"{failed} {'answer' if failed == 1 else 'answers'} of the pilot"
        f" {'is' if failed == 1 else 'are'} missing, and not part of the measurements."
    )
    return conclude(
        f"{what} Run the same command again to send only these requests."
        if failed
        else ""
    )
