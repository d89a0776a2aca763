"""Options that several commands share, each with one name and one help text."""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.core.local_paths import check_local
from evalwright.tasks.dialects import SCORINGS

if TYPE_CHECKING:
    from evalwright.runs.reader import Run

Option = Callable[[Any], Any]


class LocalPath(click.ParamType[str]):
    """A local file or folder; addresses such as s3://bucket are refused at once."""

    name = "path"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the path as it was typed.

        Raises:
            ConfigurationError: it is an address.
        """
        check_local(
            value, param.opts[0] if isinstance(param, click.Option) else "The argument"
        )
        return str(value)


class PathOrAddress(LocalPath):
    """A local file or folder, or an address in a bucket (s3://BUCKET/KEY)."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        """Return the path or the address as it was typed.

        Raises:
            ConfigurationError: it is an address of another storage, or cannot be one.
        """
        from evalwright.runs.buckets import is_bucket_address, parse_bucket_address

        if is_bucket_address(value):
            parse_bucket_address(value)
            return str(value)
        return super().convert(value, param, ctx)


class Finite(click.FloatRange):
    """A range of numbers without "nan", which click accepts in every range."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> Any:
        """Return the number.

        Raises:
            click.BadParameter: it is not finite or not in the range.
        """
        number = super().convert(value, param, ctx)
        if not math.isfinite(number):
            self.fail(f"{value} is not a number that can be counted with.", param, ctx)
        return number


def option(names: str, metavar: str, help: str, **settings: Any) -> Option:
    """Make an option with a value.

    Args:
        names: the option, followed by a space and the parameter's name if that differs.
        metavar: what the help calls the value.
        help: the help text.
        settings: further settings of click.
    """
    if metavar in ("FILE", "DIR"):
        settings.setdefault("type", LocalPath())
    return click.option(*names.split(), metavar=metavar or None, help=help, **settings)


def flag(names: str, help: str) -> Option:
    """Make an option without a value."""
    return click.option(*names.split(), is_flag=True, help=help)


def repeatable_option(names: str, metavar: str, help: str, **settings: Any) -> Option:
    """Make an option that may be given several times; its help says so."""
    help = help if "Repeatable" in help else f"{help} Repeatable."
    return option(names, metavar, help, multiple=True, **settings)


def open_runs(*names: str, writes_beside: bool = False) -> list[Run]:
    """Open runs by name, folder or address in a bucket; names are looked up in the folder that
    RUNS_FOLDER sets.

    Args:
        names: of the runs.
        writes_beside: whether the command writes into a run's folder or beside it, so that it takes
            no address.

    Raises:
        UnknownName: there is no such run.
        RunError: a run cannot be read or is named twice.
    """
    from evalwright.api import open_run
    from evalwright.runs.reader import check_named_once
    from evalwright.runs.reader import open_run as open_local_run

    folder = click.get_current_context().params["runs_folder"]
    if writes_beside:
        runs = [open_local_run(name, Path(folder)) for name in names]
    else:
        runs = [open_run(name, folder) for name in names]
    check_named_once(runs)
    return runs


class _Limit(click.ParamType[float]):
    name = "limit"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Convert a whole number, or a share: 10% is 0.1."""
        text = str(value)
        try:
            number = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
            if not text.endswith("%") and number == int(number):
                return int(number)
            if 0 < number < 1:
                return number
        except (ValueError, OverflowError):
            pass
        return self.fail(
            f"'{value}' is no whole number such as 100, and no share such as 0.1 or"
            " 10%.",
            param,
            ctx,
        )


LIMIT = option(
    "--limit",
    "N",
    "Use N samples of each task, or below 1 a share of them (0.1, 10%), drawn by the"
    " seed.",
    type=_Limit(),
)
RUNS_FOLDER = option(
    "--out runs_folder",
    "DIR",
    "Where runs given by name are. Default: runs.",
    default="runs",
)
METRIC = option(
    "--metric",
    "NAME",
    "Use this metric, a label or TASK.LABEL, not each task's main one.",
)
AS_JSON = flag("--json as_json", "Print the result as JSON.")
PLUGINS = repeatable_option(
    "--plugin plugins",
    "FILE",
    "A Python file with models, tasks, scorers or metrics, or a TOML file with"
    " providers.",
)
MODEL_ARGUMENTS = repeatable_option(
    "-M arguments", "KEY=VALUE", "An argument of the model."
)
ROLES = repeatable_option(
    "--role roles", "ROLE=MODEL", "A model for a role of a scorer, e.g. judge=..."
)
ROLE_ARGUMENTS = repeatable_option(
    "-R role_arguments", "ROLE.KEY=VALUE", "An argument for a role's model."
)
OVERRIDES = repeatable_option(
    "-T overrides",
    "KEY=VALUE",
    "A setting that overrides the task's, e.g. dataset.path=mine.csv,"
    " prompt.file=mine.txt.",
)
IMAGE_URLS = flag(
    "--image-urls",
    "Fetch images that rows name by http(s) addresses. Each is fetched once.",
)
HOME = option(
    "--home",
    "DIR",
    "Where responses are stored. Default: $EVALWRIGHT_HOME or .evalwright.",
)
FORMAT = option(
    "--format prompt_format",
    "",
    "How prompts are rendered.",
    type=click.Choice(["auto", "chat", "text"]),
)
NO_JUDGE = flag(
    "--no-judge",
    "Leave out scorers that need a judge. The same command with a judge and another"
    " --name asks the judge alone.",
)
ACCEPT_FAILURES = option(
    "--accept-failures",
    "N",
    "The run is complete although N samples of each task (3), or a share of them (2%),"
    " got no answer or score.",
)
GIVE_UP = repeatable_option(
    "--give-up",
    "ID",
    "A sample that may stay without an answer or score; FILE.txt names one a line.",
)
QUIET = flag("--quiet", "Show no progress.")


CONFIG = option(
    "--config",
    "FILE",
    "A suite file, or a run.json, with the whole evaluation; flags override it.",
)
TRUST_FILE = option(
    "--trust-file",
    "FILE",
    "The --config file, read and trusted: it may run code, name keys, addresses,"
    " headers and plug-ins.",
)


TASKS_ARE = option(
    "--tasks-are",
    "",
    "Whether means over tasks are about these tasks, or about tasks like these (3 or"
    " more).",
    type=click.Choice(["fixed", "sample"]),
    default="fixed",
    show_default=True,
)


def was_typed(name: str) -> bool:
    """Return whether a parameter was given on the command line."""
    return (
        click.get_current_context().get_parameter_source(name)
        is click.core.ParameterSource.COMMANDLINE
    )


def only_with(**needs: str) -> None:
    """Raise UsageError if an option was given that has no effect without another one.

    Args:
        needs: by parameter, the one that it needs, or several separated by spaces, of which one is
            enough.
    """
    context = click.get_current_context()
    option_by_param = {param.name: param.opts[0] for param in context.command.params}
    for name, needed_names in needs.items():
        if was_typed(name) and not any(
            context.params[other_name] not in (None, (), False, "")
            for other_name in needed_names.split()
        ):
            required = " or ".join(
                option_by_param[other_name] for other_name in needed_names.split()
            )
            raise click.UsageError(
                f"{option_by_param[name]} can only be used with {required}."
            )


def _use_sandbox(
    context: click.Context, option: click.Parameter, chosen: str | None
) -> str | None:
    """Use the chosen sandbox in this process and those that it starts; no file can choose it."""
    if chosen:
        from evalwright.scorers.code.containers import parse_container

        if chosen != "jail":
            parse_container(chosen)
        os.environ["EVALWRIGHT_SANDBOX"] = chosen
    return chosen


SANDBOX = option(
    "--sandbox",
    "WHERE",
    "Where programs that models wrote run: jail, podman:IMAGE, docker:IMAGE,"
    " apptainer:FILE. Default: $EVALWRIGHT_SANDBOX or jail.",
    callback=_use_sandbox,
)


def combine_options(*options: Option) -> Option:
    """Combine several options into one decorator, in this order."""

    def decorate(command: Any) -> Any:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def gate_options(compared: str) -> Option:
    """Options for rules that make a comparison a gate.

    Args:
        compared: what a rule is about, for the help.
    """
    return combine_options(
        repeatable_option(
            "--fail-if rules",
            "RULE",
            f'End with 1 if this holds of {compared}: "accuracy drops by more than 0.02".',
        ),
        option(
            "--gate mode",
            "",
            "When a rule fails: when the data show that it is broken, or unless they rule"
            " that out (non-inferiority).",
            type=click.Choice(["shown", "not-ruled-out"]),
            default="shown",
            show_default=True,
        ),
    )


ON = combine_options(
    option(
        "--on",
        "ray[:ADDRESS]",
        "Run local models and heavy scorers on a Ray cluster; without ADDRESS"
        " ($RAY_ADDRESS) one is started here.",
    ),
    option(
        "--replicas",
        "auto|N",
        "How many copies of a local model. Default: auto, one on each GPU or node.",
    ),
    option(
        "--gpus-per-replica",
        "G",
        "GPUs of each copy, also a share such as 0.5. Default: 1 where there are any.",
        type=float,
    ),
)
JUDGES = repeatable_option(
    "--judge judges",
    "M",
    "A judge, provider/name: it scores by --rubric or as the task's judge, or reads the"
    " unsure answers of tasks whose rules score. Repeatable: several are a panel.",
)
PANEL = repeatable_option(
    "--panel panel_options",
    "KEY=VALUE",
    "How several judges decide: combine=mean or majority, needs=N of them.",
)
RUBRIC = repeatable_option(
    "--rubric rubric",
    "TEXT",
    "What a good answer is, for a judge; in place of the tasks' scorers. Repeatable:"
    " each is a criterion of its own.",
)
COLUMNS = repeatable_option(
    "--column columns",
    "ROLE=NAME",
    "A column of a data file (mine.csv): its input, answer, target or passages.",
)
MODELS = combine_options(
    repeatable_option("--model models", "M", "A model, provider/name[@revision]."),
    MODEL_ARGUMENTS,
    ROLES,
    ROLE_ARGUMENTS,
    OVERRIDES,
    repeatable_option(
        "--prompt prompts",
        "FILE",
        "A text file with a prompt in place of the tasks' own. Repeatable: each model"
        " has a run with each.",
    ),
    JUDGES,
    PANEL,
    RUBRIC,
    COLUMNS,
    repeatable_option(
        "--where",
        "KEY=VALUE",
        "Only samples with this metadata: domain=science, language!=ko. Repeatable;"
        " equal keys are alternatives.",
    ),
)
"""Models and settings of `run` and `plan`; `arguments.evaluation_settings` reads them."""

# -- tasks of other frameworks (DIALECT:NAME) ------------------------------------------

root_options = combine_options(
    repeatable_option(
        "--task-root task_root",
        "DIR",
        "Where another framework's tasks (DIALECT:NAME) are. Repeatable. Default: those"
        " of its installed package.",
    ),
    repeatable_option(
        "--trust",
        "DIR",
        "A folder whose task files may run their Python and read files anywhere.",
    ),
)
"""Options for other frameworks' task files: their folders, and which of them may run Python."""

scoring_options = combine_options(
    root_options,
    option(
        "--scoring",
        "",
        "How another framework's tasks are scored: as published, or with known flaws"
        " corrected. Default: corrected.",
        type=click.Choice(SCORINGS),
    ),
    repeatable_option(
        "-D dialect_values",
        "KEY=VALUE",
        "A setting of another framework's tasks, e.g. base_model=true,"
        " generation.temperature=0.",
    ),
)
"""Options for other frameworks' tasks that also apply when answers are scored again."""

dialect_options = combine_options(
    scoring_options,
    option(
        "--num-fewshot", "N", "Number of shots, in place of the tasks' own.", type=int
    ),
)
