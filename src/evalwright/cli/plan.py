"""`evalwright plan`: what a run costs and what it can detect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.dialect import dialect_options, dialect_settings
from evalwright.cli.options import AS_JSON, HOME, MODEL_ARGUMENTS, OVERRIDES, PLUGINS, ROLE_ARGUMENTS, ROLES
from evalwright.cli.output import print_json

if TYPE_CHECKING:
    from evalwright.analysis.power import Forecast


@click.command()
@click.argument("tasks", nargs=-1)
@click.option(
    "--model", "models", multiple=True, metavar="M", help="A model, provider/name[@revision]. Repeatable."
)
@MODEL_ARGUMENTS
@click.option(
    "--difference",
    type=float,
    default=0.02,
    metavar="D",
    help="The difference to detect. Default: 0.02, 2 points.",
)
@click.option(
    "--half-width", type=float, default=0.02, metavar="W", help="Half of one model's interval. Default: 0.02."
)
@click.option(
    "--power", type=float, default=0.8, metavar="P", help="The probability of detecting it. Default: 0.8."
)
@click.option(
    "--level",
    type=float,
    default=0.95,
    metavar="L",
    help="Confidence level of intervals and tests. Default: 0.95.",
)
@click.option(
    "--pilot",
    type=int,
    metavar="N",
    help="Run N items of each task first and measure on them; their answers are kept.",
)
@click.option(
    "--from",
    "runs",
    multiple=True,
    metavar="RUN",
    help="Measure on a stored run of the tasks; give two for two models.",
)
@click.option(
    "--assume", multiple=True, metavar="NAME=X,...", help="E.g. accuracy=0.7,discordant=0.2. Repeatable."
)
@click.option(
    "--price",
    "prices",
    multiple=True,
    metavar="IN/OUT",
    help="US dollars per million tokens; MODEL=IN/OUT for one model.",
)
@ROLES
@ROLE_ARGUMENTS
@OVERRIDES
@click.option(
    "--where",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only samples with this metadata, as in `run`. Repeatable.",
)
@click.option("--seed", type=int, metavar="S", help="Fixes which items the pilot uses. Default: 0.")
@click.option("--out", metavar="DIR", help="Where runs are, and where the pilot is written. Default: runs.")
@HOME
@click.option(
    "--format", "prompt_format", type=click.Choice(["auto", "chat", "text"]), help="How prompts are rendered."
)
@PLUGINS
@dialect_options
@AS_JSON
@click.option("--quiet", is_flag=True, help="Show no progress of the pilot.")
def plan(**given: Any) -> int:
    """Estimate what running TASKS takes and what the answers can show: items, requests, tokens, cost and time.

    No request is sent without --pilot; without --pilot, --from and --assume the plan is for the worst case.
    """
    from evalwright.analysis.power import read_assumptions, read_prices
    from evalwright.cli.arguments import key_values, load_plugins, role_specs
    from evalwright.evaluation.configuration import ModelSpec
    from evalwright.reports.documents.plan import plan_document
    from evalwright.reports.terminal import show

    load_plugins(given["plugins"])
    arguments = key_values(given["arguments"], "-M")
    settings: dict[str, Any] = {key: given[key] for key in ("seed", "out", "home") if given[key] is not None}
    if given["roles"] or given["role_arguments"]:
        settings["roles"] = role_specs(given["roles"], given["role_arguments"])
    if given["where"]:
        settings["where"] = tuple(given["where"])
    if given["prompt_format"]:
        settings["format"] = given["prompt_format"]
    if given["overrides"]:
        settings["overrides"] = key_values(given["overrides"], "-T")
    if dialect := dialect_settings(given):
        settings["dialect"] = dialect
    if given["home"]:
        # Caches of data sets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = given["home"]
    wanted = {key: given[key] for key in ("difference", "half_width", "power", "level", "pilot", "runs")}
    forecast = _planned(
        list(given["tasks"]),
        [ModelSpec(name, arguments) for name in given["models"]],
        given["quiet"] or given["pilot"] is None,
        **wanted,
        assume=read_assumptions(given["assume"]),
        prices=read_prices(given["prices"]),
        **settings,
    )
    if given["as_json"]:
        print_json(forecast.as_dict())
    else:
        show(plan_document(forecast))
    return _conclude(forecast)


def _planned(tasks: Any, models: Any, quiet: bool, **settings: Any) -> Forecast:
    from evalwright.api import plan as make_plan
    from evalwright.reports.progress import TerminalProgress

    if quiet:
        return make_plan(tasks, models, **settings)
    with TerminalProgress() as progress:
        return make_plan(tasks, models, progress=progress, **settings)


def _conclude(forecast: Forecast) -> int:
    from evalwright.cli import say

    if not forecast.pilot_failed:
        return 0
    failed = forecast.pilot_failed
    say(
        f"{failed} {'sample' if failed == 1 else 'samples'} of the pilot failed and are not part of the measurements. "
        f"Run the same command again to send only these requests."
    )
    return 1
