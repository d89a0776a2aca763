"""`evalwright jobs`: job files for clusters."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import click

from evalwright.cli.options import flag, option, repeatable_option
from evalwright.cli.output import write_result
from evalwright.core.errors import ConfigurationError
from evalwright.core.postgres import store_url
from evalwright.core.secrets import masked_arguments
from evalwright.reports.jobs import KUBERNETES, SYSTEMS, Jobs, job_file
from evalwright.reports.kubernetes_jobs import (
    RUNS_FOLDER,
    Pods,
    kustomize_base,
    shards_file,
)

PODS_AT_ONCE = 16
"""Most pods of shards at the same time.

One evaluation should not fill a shared cluster, and all pods share a provider's rate limit.
"""

N_JOBS = 8
"""Workers or shards, where no number is given."""

_FOR_KUBERNETES = (
    "image",
    "claim",
    "cache_claim",
    "secret",
    "files",
    "node_labels",
    "tolerations",
    "shared_memory",
    "trial_postgres",
)
_FOR_SHARDS = ("merge_options",)
_OPTION_NAMES = {
    "files": "file",
    "merge_options": "merge-option",
    "node_labels": "node-label",
    "tolerations": "toleration",
}
"""Names of repeatable options, which differ from those of their parameters."""

_CODE_OPTIONS = {"plugins": "--plugin", "task_root": "--task-root", "trust": "--trust"}
"""Options of `run` that name code, by parameter: a merge needs the same."""


@click.command(context_settings={"ignore_unknown_options": True})
@click.argument("system", type=click.Choice(SYSTEMS))
@click.argument(
    "command", nargs=-1, required=True, type=click.UNPROCESSED, metavar="-- run ..."
)
@option(
    "--workers",
    "N",
    "N workers that share the evaluation through the PostgreSQL store in"
    " EVALWRIGHT_STORE, may come and go, and need no merge. Default where"
    f" EVALWRIGHT_STORE is set: {N_JOBS}.",
    type=click.IntRange(1, 10_000),
)
@option(
    "--shards",
    "N",
    "N fixed shards and a job that merges them, where hosts share a folder but no"
    f" database. Default where EVALWRIGHT_STORE is not set: {N_JOBS}.",
    type=click.IntRange(2, 100_000),
)
@repeatable_option(
    "--option options",
    "TEXT",
    "An option of the submission, e.g. --option=--gres=gpu:1; for Kubernetes a limit,"
    " e.g. nvidia.com/gpu=1.",
)
@option("--image", "", "For Kubernetes: the image, with evalwright in it.", default="")
@option(
    "--claim",
    "",
    "For Kubernetes: the volume claim of the workers' runs (default: none), or of the"
    " shards' working folder (default: evalwright).",
    default="",
)
@option(
    "--cache-claim",
    "NAME",
    "For Kubernetes: an existing volume claim with the cache of models and data sets, so"
    " that each is downloaded once. Default: each pod has a cache of its own.",
    default="",
)
@option(
    "--secret",
    "NAME",
    "For Kubernetes: the secret with keys and EVALWRIGHT_STORE. Default: evalwright.",
    default="",
)
@repeatable_option(
    "--file files",
    "PATH",
    "For workers on Kubernetes: a further file or folder that the tasks read. Files that"
    " the command and its YAML files name are there already.",
)
@flag(
    "--trial-postgres",
    "For workers on Kubernetes: also write a PostgreSQL server to try them with, not for"
    " production.",
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
    "How many run at a time. Default: all; for shards on Kubernetes 16.",
    type=click.IntRange(1),
)
@repeatable_option(
    "--node-label node_labels",
    "KEY=VALUE",
    "For Kubernetes: a label of the nodes on which the pods run.",
)
@repeatable_option(
    "--toleration tolerations",
    "KEY[=VALUE][:EFFECT]",
    "For Kubernetes: a taint that the pods tolerate.",
)
@option(
    "--shared-memory",
    "SIZE",
    "For Kubernetes: memory that processes of a pod may share. Default: 2Gi.",
    default="",
)
@option(
    "--into",
    "FILE",
    "Write the file, in place of printing it; for Kubernetes FOLDER/, a Kustomize base.",
)
def jobs(system: str, command: tuple[str, ...], **params: Any) -> None:
    """Print job files that run an evaluation on a cluster, by workers or in shards: evalwright jobs
    slurm --workers 8 -- run TASK --model M --name NAME
    """
    workers, shards = _choose_numbers(params["workers"], params["shards"])
    is_folder = _is_folder(system, params["into"], workers)
    _check_effects(system, workers, params)
    run = _parse_run_command(command, workers=bool(workers), in_pods=is_folder)
    submission = Jobs(
        name=run.name,
        run=["evalwright", "run", *run.added_arguments, *command[1:]],
        workers=workers,
        shards=shards,
        merge=[] if workers else ["evalwright", "runs", "merge", *run.merge_arguments],
        options=params["options"] if system != KUBERNETES else (),
        merge_options=params["merge_options"],
        at_once=params["at_once"] or _default_at_once(system, workers),
    )
    if system != KUBERNETES:
        _write(params["into"], job_file(system, submission))
        return
    pods = _pods(params, default_claim="" if workers else "evalwright")
    if not is_folder:
        _write(params["into"], shards_file(submission, pods))
        return
    inputs = {}
    if workers:
        from evalwright.cli.job_inputs import input_files

        inputs = input_files(command[1:], run.folders, params["files"])
    base = kustomize_base(submission, pods, inputs, params["trial_postgres"])
    for path, content in base.items():
        write_result(str(Path(params["into"]) / path), content)


def _pods(params: dict[str, Any], default_claim: str) -> Pods:
    return Pods(
        image=params["image"],
        secret=params["secret"] or "evalwright",
        claim=params["claim"] or default_claim,
        cache_claim=params["cache_claim"],
        limits=params["options"],
        node_labels=params["node_labels"],
        tolerations=params["tolerations"],
        shared_memory=params["shared_memory"] or "2Gi",
    )


def _choose_numbers(workers: int | None, shards: int | None) -> tuple[int, int]:
    """Return the numbers of workers and of shards, of which one is 0.

    Raises:
        click.UsageError: both are given.
    """
    if workers and shards:
        raise click.UsageError(
            "--workers and --shards are two ways to split an evaluation. Workers need"
            " a PostgreSQL store and no merge; shards need a shared folder. Leave one"
            " out."
        )
    if workers or shards:
        return workers or 0, shards or 0
    return (N_JOBS, 0) if store_url() else (0, N_JOBS)


def _is_folder(system: str, into: str | None, workers: int) -> bool:
    """Tell whether the job files are a folder, a Kustomize base.

    Raises:
        ConfigurationError: workers on Kubernetes, without a folder to write.
    """
    if system != KUBERNETES:
        return False
    if workers and not into:
        raise ConfigurationError(
            "Workers on Kubernetes are a folder, which `kubectl apply -k` takes: name it"
            " with --into FOLDER/."
        )
    return bool(into and (workers or into.endswith("/") or Path(into).is_dir()))


def _check_effects(system: str, workers: int, params: dict[str, Any]) -> None:
    """Refuse options without effect.

    Raises:
        ConfigurationError: an option is for another system, or for shards.
    """
    if system == KUBERNETES and not params["image"]:
        raise ConfigurationError(
            "Kubernetes needs an image that has evalwright in it: name it with --image."
        )
    reasons: dict[str, str] = {}
    if system == KUBERNETES:
        reasons |= dict.fromkeys(_FOR_SHARDS, "slurm and pbs")
        if workers:
            reasons["at_once"] = "shards; all workers run at a time"
        else:
            reasons |= dict.fromkeys(
                ("files", "trial_postgres"), "workers on kubernetes"
            )
    else:
        reasons |= dict.fromkeys(_FOR_KUBERNETES, KUBERNETES)
        if workers:
            reasons |= dict.fromkeys(_FOR_SHARDS, "shards; workers need no merge")
    for name, reason in reasons.items():
        if params[name]:
            option_name = _OPTION_NAMES.get(name, name).replace("_", "-")
            raise ConfigurationError(
                f"--{option_name} has no effect: it is for {reason}. Leave it out."
            )


def _default_at_once(system: str, workers: int) -> int:
    return PODS_AT_ONCE if system == KUBERNETES and not workers else 0


def _write(into: str | None, text: str) -> None:
    if into:
        write_result(into, text)
    else:
        click.echo(text, nl=False)


@dataclass(frozen=True, slots=True)
class RunCommand:
    """A `run` command that a job file may contain.

    Attributes:
        name: the evaluation's name.
        added_arguments: arguments to add to the command.
        merge_arguments: arguments of the command that merges its shards.
        folders: local folders that it names.
    """

    name: str
    added_arguments: list[str]
    merge_arguments: list[str]
    folders: list[str]


def _parse_run_command(
    command: tuple[str, ...], *, workers: bool, in_pods: bool
) -> RunCommand:
    """Check a `run` command, which workers or shards will run.

    Args:
        command: the command.
        workers: whether workers run it.
        in_pods: whether it runs in pods that have only the files that they are sent.

    Raises:
        ConfigurationError: the command cannot run as a job, or contains a key.
    """
    from evalwright.cli.run import run
    from evalwright.runs.writer import check_run_name

    if command[0] != "run":
        raise ConfigurationError(
            f"Jobs are for `evalwright run`, not for '{command[0]}': evalwright jobs"
            " SYSTEM --workers N -- run TASK --model M --name NAME"
        )
    run_params = run.make_context("evalwright run", list(command[1:])).params
    if not run_params["name"]:
        raise ConfigurationError(
            "Give the evaluation a --name, by which its jobs find each other."
        )
    for key in ("shard", "worker", "until", "as_json"):
        if run_params[key]:
            raise ConfigurationError(
                f"--{key.removeprefix('as_')} cannot be in a job's command: leave it"
                " out."
            )
    if run_params["home"]:
        raise ConfigurationError(
            "--home would be one store for all jobs: leave it out, and set"
            " EVALWRIGHT_HOME or EVALWRIGHT_STORE (docs/clusters.md)."
        )
    _check_for_keys(run_params)
    return RunCommand(
        name=check_run_name(run_params["name"]),
        added_arguments=_out_arguments(run_params["out"], in_pods=workers and in_pods),
        merge_arguments=_merge_arguments(run_params),
        folders=_named_folders(run_params),
    )


def _out_arguments(out: str | None, *, in_pods: bool) -> list[str]:
    """Return the `--out` to add to a command.

    Raises:
        ConfigurationError: the command has one, and runs in pods.
    """
    if not in_pods:
        # Takes precedence over a file, so that the merge looks in the right place.
        return [] if out else ["--out", "runs"]
    if out:
        raise ConfigurationError(
            f"--out has no effect in pods, which write runs to {RUNS_FOLDER}: leave it"
            " out, and name a volume with --claim."
        )
    return ["--out", RUNS_FOLDER]


def _merge_arguments(run_params: dict[str, Any]) -> list[str]:
    """Return the arguments of the command that merges a command's shards."""
    code_arguments = [
        argument
        for key, option_name in _CODE_OPTIONS.items()
        for name in run_params[key]
        for argument in (option_name, name)
    ]
    out = run_params["out"] or "runs"
    return ["--out", out, *code_arguments, "--", run_params["name"]]


def _named_folders(run_params: dict[str, Any]) -> list[str]:
    """Return the local folders that a command names."""
    names = list(run_params["tasks"])
    for key in _CODE_OPTIONS:
        names += run_params[key]
    return [name for name in names if Path(name).is_dir()]


def _check_for_keys(run_params: dict[str, Any]) -> None:
    """Refuse a command with a key in it.

    Raises:
        ConfigurationError: it has one.
    """
    from evalwright.cli.arguments import key_values

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
