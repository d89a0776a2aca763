"""Options that several commands share, each with one name and one help text."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import click

Option = Callable[[Any], Any]


def several(*names: str, help: str, **settings: Any) -> Option:
    """An option that may be given several times; its help says so."""
    return click.option(
        *names, multiple=True, help=help if "Repeatable" in help else f"{help} Repeatable.", **settings
    )


class _Limit(click.ParamType[float]):
    name = "limit"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """A whole number, or a share: 10% is 0.1."""
        text = str(value)
        try:
            found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
            if not text.endswith("%") and found == int(found):
                return int(found)
            if 0 < found < 1:
                return found
        except (ValueError, OverflowError):
            pass
        return self.fail(
            f"'{value}' is no whole number such as 100, and no share such as 0.1 or 10%.", param, ctx
        )


LIMIT = click.option(
    "--limit",
    type=_Limit(),
    metavar="N",
    help="Use N samples of each task, or below 1 a share of them (0.1, 10%), drawn by the seed.",
)
RUNS_FOLDER = click.option(
    "--out", "runs_folder", default="runs", metavar="DIR", help="Where runs given by name are. Default: runs."
)
METRIC = click.option(
    "--metric", metavar="NAME", help="Use this metric, a label or TASK.LABEL, not each task's main one."
)
AS_JSON = click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
PLUGINS = several(
    "--plugin",
    "plugins",
    metavar="FILE",
    help="A Python file with models, tasks, scorers or metrics, or a TOML file with providers.",
)
MODEL_ARGUMENTS = several("-M", "arguments", metavar="KEY=VALUE", help="An argument of the model.")
ROLES = several(
    "--role", "roles", metavar="ROLE=MODEL", help="A model for a role of a scorer, e.g. judge=..."
)
ROLE_ARGUMENTS = several(
    "-R", "role_arguments", metavar="ROLE.KEY=VALUE", help="An argument for a role's model."
)
OVERRIDES = several(
    "-T",
    "overrides",
    metavar="KEY=VALUE",
    help="A setting that overrides the task's, e.g. dataset.path=mine.csv, prompt.file=mine.txt.",
)
IMAGE_URLS = click.option(
    "--image-urls",
    is_flag=True,
    help="Fetch images that rows name by http(s) addresses. Each is fetched once.",
)
HOME = click.option(
    "--home", metavar="DIR", help="Where responses are stored. Default: $EVALWRIGHT_HOME or .evalwright."
)
FORMAT = click.option(
    "--format", "prompt_format", type=click.Choice(["auto", "chat", "text"]), help="How prompts are rendered."
)
QUIET = click.option("--quiet", is_flag=True, help="Show no progress.")


CONFIG = click.option(
    "--config",
    metavar="FILE",
    help="A suite file, or a run.json, with the whole evaluation; flags override it.",
)
TRUST_FILE = click.option(
    "--trust-file",
    metavar="FILE",
    help="The --config file, read and trusted: it may run code, name keys, addresses, headers and plug-ins.",
)


TASKS_ARE = click.option(
    "--tasks-are", type=click.Choice(["fixed", "sample"]), default="fixed", show_default=True,
    help="Whether means over tasks are about these tasks, or about tasks like these (3 or more).",
)  # fmt: skip


def only_with(**needs: str) -> None:
    """Raise UsageError where an option was typed that does nothing without another one, and that one was not.

    By name of the parameter the name of the one that it needs, or several of them separated by spaces.
    """
    context = click.get_current_context()
    named = {param.name: param.opts[0] for param in context.command.params}
    for name, others in needs.items():
        typed = context.get_parameter_source(name) is click.core.ParameterSource.COMMANDLINE
        if typed and not any(context.params[other] not in (None, (), False, "") for other in others.split()):
            wanted = " or ".join(named[other] for other in others.split())
            raise click.UsageError(f"{named[name]} can only be used with {wanted}.")


def _use_sandbox(context: click.Context, option: click.Parameter, chosen: str | None) -> str | None:
    """The person's choice, for this process and those that it starts; no file makes it."""
    if chosen:
        from evalwright.scorers.code.containers import parsed

        if chosen != "jail":
            parsed(chosen)
        os.environ["EVALWRIGHT_SANDBOX"] = chosen
    return chosen


SANDBOX = click.option(
    "--sandbox",
    metavar="WHERE",
    callback=_use_sandbox,
    help="Where programs that models wrote run: jail, podman:IMAGE, docker:IMAGE, apptainer:FILE. Default: $EVALWRIGHT_SANDBOX or jail.",
)


def together(*options: Option) -> Option:
    """Several options as one decorator, in this order."""

    def add(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return add


ON = together(
    click.option(
        "--on",
        metavar="ray[:ADDRESS]",
        help="Run local models and heavy scorers on a Ray cluster; without ADDRESS ($RAY_ADDRESS) one is started here.",
    ),
    click.option(
        "--replicas",
        metavar="auto|N",
        help="How many copies of a local model. Default: auto, one on each GPU or node.",
    ),
    click.option(
        "--gpus-per-replica",
        type=float,
        metavar="G",
        help="GPUs of each copy, also a share such as 0.5. Default: 1 where there are any.",
    ),
)
JUDGES = several(
    "--judge",
    "judges",
    metavar="M",
    help="A judge, provider/name: it scores by --rubric, or decides what the rules of tasks leave undecided.",
)
RUBRIC = several(
    "--rubric",
    "rubric",
    metavar="TEXT",
    help="What a good answer is, for a judge; in place of the tasks' scorers. Repeatable: each is a criterion of its own.",
)
COLUMNS = several(
    "--column",
    "columns",
    metavar="ROLE=NAME",
    help="A column of a data file (mine.csv): its input, answer, target or passages.",
)
MODELS = together(
    several("--model", "models", metavar="M", help="A model, provider/name[@revision]."),
    MODEL_ARGUMENTS,
    ROLES,
    ROLE_ARGUMENTS,
    OVERRIDES,
    JUDGES,
    RUBRIC,
    COLUMNS,
    several(
        "--where",
        metavar="KEY=VALUE",
        help="Only samples with this metadata: domain=science, language!=ko. Repeatable; equal keys are alternatives.",
    ),
)
"""What is asked of whom, as `run` and `plan` take it; `arguments.evaluation_settings` reads it."""
