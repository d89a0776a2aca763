"""`evalwright run`: evaluate models on tasks."""

from __future__ import annotations

import os
from typing import Any

import click

from evalwright.cli.dialect import dialect_options, dialect_settings
from evalwright.cli.options import AS_JSON, HOME, MODEL_ARGUMENTS, OVERRIDES, PLUGINS, ROLE_ARGUMENTS, ROLES
from evalwright.cli.output import print_json


@click.command()
@click.argument("tasks", nargs=-1)
@click.option(
    "--model", "models", multiple=True, metavar="M", help="A model, provider/name[@revision]. Repeatable."
)
@MODEL_ARGUMENTS
@ROLES
@ROLE_ARGUMENTS
@OVERRIDES
@click.option(
    "--where",
    multiple=True,
    metavar="KEY=VALUE",
    help="Only samples with this metadata: domain=science, language!=ko. Repeatable; equal keys are alternatives.",
)
@click.option("--limit", type=int, metavar="N", help="Use N samples of each task, drawn by the seed.")
@click.option(
    "--seed", type=int, metavar="S", help="Fixes the order of samples and what --limit draws. Default: 0."
)
@click.option(
    "--until",
    multiple=True,
    metavar="RULE",
    help="Stop as soon as this is known: 'accuracy +-0.02', 'A beats B', 'A differs from B or not by 0.03'. Repeatable.",
)
@click.option(
    "--budget", multiple=True, metavar="SUM", help="Spend no more than '5 USD', '2M tokens', '1000 requests'."
)
@click.option(
    "--price",
    multiple=True,
    metavar="[MODEL=]IN/OUT",
    help="US dollars per million tokens read and written, e.g. 0.15/0.60; for --budget in USD.",
)
@click.option(
    "--name", metavar="ID", help="The run's name; with several models, the beginning of each run's name."
)
@click.option("--out", metavar="DIR", help="Where run folders are written. Default: runs.")
@HOME
@click.option(
    "--format", "prompt_format", type=click.Choice(["auto", "chat", "text"]), help="How prompts are rendered."
)
@click.option(
    "--max-resident", type=int, metavar="N", help="Heavy local models in memory at a time. Default: 1."
)
@click.option(
    "--config",
    metavar="FILE",
    help="A suite file, or a run.json, with the whole evaluation; flags override it.",
)
@click.option("--suite", metavar="NAME", help="Which of the suites in the --config file.")
@PLUGINS
@click.option(
    "--batch",
    is_flag=True,
    help="Use the providers' batch jobs: cheaper, within a day. The same command resumes after a stop.",
)
@click.option(
    "--hardware", metavar="LABEL", help="A label for this machine in the record: 'T4', 'my laptop'."
)
@dialect_options
@click.option("--replace", is_flag=True, help="Replace a run of the same name that has other settings.")
@AS_JSON
@click.option("--quiet", is_flag=True, help="Show no progress.")
def run(**given: Any) -> int:
    """Evaluate models on TASKS (names or YAML files), one run per model.

    Responses are cached: to resume after an interruption, or to retry only what failed, run the same command again.
    """
    from evalwright.cli.arguments import key_values, load_plugins, role_specs
    from evalwright.evaluation.configuration import ModelSpec
    from evalwright.evaluation.configuration_file import configuration_from

    load_plugins(given["plugins"])
    arguments = key_values(given["arguments"], "-M")
    flags: dict[str, Any] = {
        key: given[key]
        for key in ("limit", "seed", "name", "out", "home", "max_resident", "hardware")
        if given[key] is not None
    }
    flags |= {key: tuple(given[key]) for key in ("where", "until", "budget", "price") if given[key]}
    if given["tasks"]:
        flags["tasks"] = tuple(given["tasks"])
    if given["models"]:
        flags["models"] = tuple(ModelSpec(name, arguments) for name in given["models"])
    if given["roles"] or given["role_arguments"]:
        flags["roles"] = role_specs(given["roles"], given["role_arguments"])
    if given["prompt_format"]:
        flags["format"] = given["prompt_format"]
    flags |= {key: True for key in ("replace", "batch") if given[key]}
    if given["overrides"]:
        flags["overrides"] = key_values(given["overrides"], "-T")
    dialect = dialect_settings(given)
    if dialect:
        flags["dialect"] = dialect
    arguments = {} if given["models"] else arguments
    configuration = configuration_from(given["config"], flags, arguments, given["suite"])
    if configuration.home:
        # Caches of data sets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = configuration.home
    return _evaluate(configuration, given["as_json"], given["quiet"])


def _evaluate(configuration: Any, as_json: bool, quiet: bool) -> int:
    from evalwright.evaluation.running import evaluate_configuration, run_blocking
    from evalwright.reports.documents.board import board_document
    from evalwright.reports.documents.run import run_document
    from evalwright.reports.progress import TerminalProgress
    from evalwright.reports.terminal import show

    if quiet:
        runs = run_blocking(lambda: evaluate_configuration(configuration))
    else:
        with TerminalProgress() as progress:
            runs = run_blocking(lambda: evaluate_configuration(configuration, progress=progress))
    if as_json:
        print_json([{**run.data, "folder": str(run.folder)} for run in runs])
    else:
        from evalwright.analysis.board import make_board

        board = [board_document(make_board(runs), costs=True)] if len(runs) > 1 else []
        show(*(run_document(run, slices=False) for run in runs), *board)
    return _conclude(runs)


def _conclude(runs: Any) -> int:
    from evalwright.cli import say

    failed = sum(run.n_failed for run in runs)
    spent = _spent(runs)
    if spent:
        say(spent)
    if not failed:
        partial = sum(count for run in runs for task in run.tasks for count in task.failures.values())
        if not partial:
            return 1 if spent else 0
        say(
            f"{partial} draws failed, but every sample has a score from its other draws. "
            f"Run the same command again to send only these requests."
        )
        return 1
    total = sum(task.n_samples for run in runs for task in run.tasks)
    say(
        f"{failed} of {total} samples failed; they are counted apart and not scored. "
        f"Run the same command again to send only these requests."
    )
    return 1


def _spent(runs: Any) -> str:
    """What to say where the budget ended a run before its rules were decided; "" elsewhere."""
    parts = [run.data["stopping"] for run in runs if run.data.get("stopping")]
    ended = [part for part in parts if part["budget_reached"] and not part["settled"]]
    if not ended:
        return ""
    return (
        f"The budget of {ended[0]['budget_reached']} was spent before everything was answered. The same command continues "
        f"from here: stored responses cost nothing, and the budget is per command."
    )
