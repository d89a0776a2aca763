"""`evalwright jobs`: job files for clusters."""

from __future__ import annotations

from typing import Any

import click

from evalwright.cli.options import option, repeatable_option
from evalwright.cli.output import write_result
from evalwright.core.errors import ConfigurationError
from evalwright.core.secrets import masked_arguments
from evalwright.reports.jobs import SYSTEMS, Jobs, job_file

PODS_AT_ONCE = 16
"""Most pods at the same time.

One evaluation should not fill a shared cluster, and all pods share a provider's rate limit.
"""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("system", type=click.Choice(SYSTEMS))
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- run ..."
)
@option(
    "--shards",
    "N",
    "How many shards.",
    type=click.IntRange(2, 100_000),
    default=8,
    show_default=True,
)
@repeatable_option(
    "--option options",
    "TEXT",
    "An option of the submission of shards, e.g. --option=--gres=gpu:1; for Kubernetes"
    " a limit, e.g. nvidia.com/gpu=1.",
)
@option("--image", "", "For Kubernetes: the image, with evalwright in it.", default="")
@option(
    "--claim",
    "",
    "For Kubernetes: the volume claim of the working folder. Default: evalwright.",
    default="",
)
@repeatable_option(
    "--merge-option merge_options",
    "TEXT",
    "An option of the submission of the merge. It has the account, partition, queue and"
    " the like of --option.",
)
@option(
    "--at-once",
    "N",
    "How many shards run at a time. Default: all; for Kubernetes 16.",
    type=click.IntRange(1),
)
@repeatable_option(
    "--toleration tolerations",
    "KEY[=VALUE][:EFFECT]",
    "For Kubernetes: a taint that the shards' pods tolerate.",
)
@option(
    "--shared-memory",
    "SIZE",
    "For Kubernetes: memory that processes of a pod may share. Default: 2Gi.",
    default="",
)
@option("--into", "FILE", "Write the file, in place of printing it.")
def jobs(system: str, command: tuple[str, ...], **params: Any) -> None:
    """Print job files that run an evaluation in shards and merge them: evalwright jobs slurm
    --shards 8 -- run TASK --model M --name NAME
    """
    kubernetes = system == "kubernetes"
    if kubernetes and not params["image"]:
        raise ConfigurationError(
            "Kubernetes needs an image that has evalwright in it: name it with --image."
        )
    for name in (
        ("merge_options",)
        if kubernetes
        else ("image", "claim", "tolerations", "shared_memory")
    ):
        if params[name]:
            option_name = name.removesuffix("s").replace("_", "-")
            systems = "slurm and pbs" if kubernetes else "kubernetes"
            raise ConfigurationError(
                f"--{option_name} has no effect: it is for {systems}. Leave it out."
            )
    name, out_arguments, merge = _parse_run_command(command)
    submission = Jobs(
        name,
        params["shards"],
        ["evalwright", "run", *out_arguments, *command[1:]],
        ["evalwright", "runs", "merge", *merge],
        params["options"],
        params["image"],
        params["claim"] or "evalwright",
        params["merge_options"],
        params["at_once"] or (PODS_AT_ONCE if kubernetes else 0),
        params["tolerations"],
        params["shared_memory"] or "2Gi",
    )
    text = job_file(system, submission)
    if params["into"]:
        write_result(params["into"], text)
    else:
        click.echo(text, nl=False)


def _parse_run_command(command: tuple[str, ...]) -> tuple[str, list[str], list[str]]:
    """Check a `run` command, which will run in shards.

    Returns:
        The evaluation's name, arguments to add to the command, and the arguments of the merge.

    Raises:
        ConfigurationError: the command cannot run in shards, or contains a key.
    """
    from evalwright.cli.arguments import key_values
    from evalwright.cli.run import run
    from evalwright.runs.writer import check_run_name

    if command[0] != "run":
        raise ConfigurationError(
            f"Jobs are for `evalwright run`, not for '{command[0]}': evalwright jobs"
            " SYSTEM --shards N -- run TASK --model M --name NAME"
        )
    run_params = run.make_context("evalwright run", list(command[1:])).params
    if not run_params["name"]:
        raise ConfigurationError(
            "Give the evaluation a --name: its shards are merged by it."
        )
    for key in ("shard", "until", "as_json"):
        if run_params[key]:
            raise ConfigurationError(
                f"--{key.removeprefix('as_')} cannot be in a job's command: leave it"
                " out."
            )
    if run_params["home"]:
        raise ConfigurationError(
            "--home would be one store for all shards: leave it out, and set"
            " EVALWRIGHT_HOME or EVALWRIGHT_STORE (docs/clusters.md)."
        )
    arguments = [
        key_values(run_params[key], "-M") for key in ("arguments", "role_arguments")
    ]
    models = [*run_params["models"], *run_params["roles"], *run_params["judges"]]
    holds_key = masked_arguments(arguments) != arguments
    holds_key |= any(masked_arguments(model) != model for model in models)
    if holds_key:
        raise ConfigurationError(
            "The command has a key in it, and job files hold none: put keys into the"
            " environment, .env or a secret."
        )
    # Takes precedence over a file, so that the merge looks in the right place.
    out_arguments = [] if run_params["out"] else ["--out", "runs"]
    shared_arguments: list[str] = []
    for option_name, key in (
        ("--plugin", "plugins"),
        ("--task-root", "task_root"),
        ("--trust", "trust"),
    ):
        for argument in run_params[key]:
            shared_arguments += [option_name, argument]
    return (
        check_run_name(run_params["name"]),
        out_arguments,
        [
            "--out",
            run_params["out"] or "runs",
            *shared_arguments,
            "--",
            run_params["name"],
        ],
    )
