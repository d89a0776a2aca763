"""`evalwright plan`: what a run costs and what it can detect."""

from __future__ import annotations

import os
from contextlib import nullcontext
from typing import Any

import click

from evalwright.cli import options
from evalwright.cli.exit_codes import conclude
from evalwright.cli.options import flag, option, repeatable_option
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
@repeatable_option(
    "--from runs",
    "RUN",
    "Measure on a stored run of the tasks; give two for two models.",
)
@repeatable_option("--assume", "NAME=X,...", "E.g. accuracy=0.7,discordant=0.2.")
@repeatable_option(
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
@options.CONFIG
@options.TRUST_FILE
@option("--suite", "NAME", "Which of the suites in the --config file.")
@options.PLUGINS
@options.dialect_options
@options.AS_JSON
@flag("--quiet", "Show no progress of the pilot.")
def plan(**params: Any) -> int:
    """Estimate what running TASKS takes and what the answers can show: items, requests, tokens,
    cost and time.

    No request is sent without --pilot; without --pilot, --from and --assume the plan is for the
    worst case.
    """
    from evalwright.analysis.power.making import SuiteFile, forecast_settings
    from evalwright.analysis.power.settings import read_assumptions, read_prices
    from evalwright.cli.arguments import evaluation_settings, key_values, load_plugins
    from evalwright.evaluation.configuration_file import read_settings
    from evalwright.reports.documents.plan import plan_document, worded_plan
    from evalwright.reports.progress import TerminalProgress

    options.only_with(
        quiet="pilot", seed="pilot", home="pilot config", out="pilot runs config"
    )
    load_plugins(params["plugins"])
    arguments = key_values(params["arguments"], "-M")
    flags = evaluation_settings(params)
    if params["tasks"]:
        flags["tasks"] = tuple(params["tasks"])
    if params["models"]:
        flags["models"] = tuple(ModelSpec(name, arguments) for name in params["models"])
    file_arguments = arguments if params["config"] and not params["models"] else {}
    settings = read_settings(
        params["config"], flags, file_arguments, params["suite"], params["trust_file"]
    )
    if settings.configuration.home:
        # Caches of datasets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = settings.configuration.home
    suite_file = None
    if params["config"]:
        # Rules and shards are the run's; the name of a pilot says what it measured.
        settings = settings.having(until=(), shard="", name="")
        suite_file = SuiteFile(
            params["config"],
            params["suite"] or "",
            params["trust_file"] or "",
            file_arguments,
        )
    aims = {
        key: params[key]
        for key in ("difference", "half_width", "power", "level", "pilot", "runs")
    }
    quiet = params["quiet"] or params["pilot"] is None
    with nullcontext() if quiet else TerminalProgress() as progress:
        forecast = worded_plan(
            forecast_settings(
                settings,
                **aims,
                assume=read_assumptions(params["assume"]),
                prices=read_prices(params["prices"]),
                progress=progress,
                suite_file=suite_file,
            )
        )
    print_result(params["as_json"], forecast.as_dict(), plan_document(forecast))
    n_failed = forecast.pilot_failed
    sentence = (
        f"{n_failed} {'answer' if n_failed == 1 else 'answers'} of the pilot"
        f" {'is' if n_failed == 1 else 'are'} missing, and not part of the measurements."
    )
    return conclude(
        f"{sentence} Run the same command again to send only these requests."
        if n_failed
        else ""
    )
