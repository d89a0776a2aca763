"""`evalwright run`: evaluate models on tasks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli import options
from evalwright.cli.exit_codes import conclude, say
from evalwright.cli.logs import LOGGING, logged
from evalwright.cli.options import flag, option, repeatable_option
from evalwright.cli.output import print_result
from evalwright.cli.sections import SectionedCommand
from evalwright.core.errors import EvalwrightError
from evalwright.evaluation.configuration import ModelSpec

if TYPE_CHECKING:
    from evalwright.evaluation.settings import Settings
    from evalwright.evaluation.worker_rounds import RunEnd
    from evalwright.runs.callbacks import Callbacks
    from evalwright.runs.reader import Run


SECTIONS = {
    "Options": (
        *("--model", "-M", "--prompt", "--judge", "--rubric", "--limit", "--name"),
        *("--until", "--budget", "--config"),
    ),
    "Models and judges": (
        *(
            "--role",
            "-R",
            "--panel",
            "--no-judge",
            "--format",
            "--price",
            "--batch",
            "--plugin",
        ),
        "--sandbox",
    ),
    "Tasks and samples": (
        *("-T", "--where", "--column", "--seed", "--image-urls", "--no-images"),
        *("--accept-failures", "--give-up"),
    ),
    "Suites and their trust": ("--suite", "--trust-file"),
    "Tasks of other frameworks": (
        *("--task-root", "--trust", "--scoring", "-D", "--num-fewshot"),
    ),
    "Machines": (
        *(
            "--worker",
            "--shard",
            "--on",
            "--replicas",
            "--gpus-per-replica",
            "--max-resident",
        ),
        "--hardware",
    ),
    "Runs and their storage": (
        *(
            "--out",
            "--push",
            "--home",
            "--replace",
            "--resend-empty",
            "--round",
            "--track",
            "--grace",
        ),
    ),
    "Output": ("--json", "--quiet", "--verbose", "--log-file"),
}
"""Options by heading; the first section is what `--help` shows."""


@click.command(cls=SectionedCommand, sections=SECTIONS)
@click.argument("tasks", nargs=-1)
@options.MODELS
@options.LIMIT
@option(
    "--seed",
    "S",
    "Fixes the order of samples and what --limit draws. Default: 0.",
    type=int,
)
@repeatable_option(
    "--until",
    "RULE",
    "Stop as soon as this is known: 'accuracy +-0.02', 'A beats B', 'A differs from B"
    " or not by 0.03', 'all pairs'.",
)
@repeatable_option(
    "--budget", "SUM", "Spend no more than '5 USD', '2M tokens', '1000 requests'."
)
@repeatable_option(
    "--price",
    "[MODEL=]IN/OUT",
    "US dollars per million tokens read and written, e.g. 0.15/0.60; for --budget in"
    " USD.",
)
@option(
    "--name",
    "ID",
    "The run's name; with several models, the beginning of each run's name.",
)
@option(
    "--shard",
    "I/N",
    "Only part I of N of the samples, for N processes; auto in an array of jobs or"
    " several launched processes. `runs merge` makes the whole run.",
)
@flag(
    "--worker",
    "Make the run together with all processes, on any hosts, that run this command with"
    " the same store (EVALWRIGHT_STORE). They may start and stop at any time.",
)
@option("--out", "DIR", "Where run folders are written. Default: runs.")
@option(
    "--push",
    "s3://BUCKET/FOLDER",
    "Copy each finished run into a folder of a bucket.",
)
@options.HOME
@options.FORMAT
@options.IMAGE_URLS
@option(
    "--max-resident",
    "N",
    "Heavy local models in memory at a time. Default: 1.",
    type=int,
)
@options.ON
@options.CONFIG
@options.TRUST_FILE
@option("--suite", "NAME", "Which of the suites in the --config file.")
@options.PLUGINS
@flag(
    "--batch",
    "Use the providers' batch jobs: cheaper, within a day. The same command resumes"
    " after a stop.",
)
@option(
    "--hardware", "LABEL", "A label for this machine in the record: 'T4', 'my laptop'."
)
@option(
    "--round",
    "NAME",
    "Ask everything again in this round, such as 2026-W49, to see whether a model has"
    " changed; answers of other rounds are not used. Added to the run's name.",
)
@flag("--resend-empty", "Send requests again that were paid before and got no answer.")
@flag(
    "--no-images",
    "Keep no pictures of the prompts' images beside the record (store_images: false).",
)
@repeatable_option(
    "--track",
    "NAME[=WHERE]",
    "Log finished runs to mlflow, wandb, trackio, tensorboard, or as traces (otlp).",
)
@options.dialect_options
@options.SANDBOX
@flag("--replace", "Replace a run of the same name that has other settings.")
@options.NO_JUDGE
@options.ACCEPT_FAILURES
@options.GIVE_UP
@option(
    "--grace",
    "SECONDS",
    "After Ctrl-C, SIGTERM or SIGHUP, requests that were sent may take this long to be"
    " answered. Default: 4.",
    type=options.Finite(min=0, max=86_400),
    default=4.0,
    envvar="EVALWRIGHT_GRACE",
)
@options.AS_JSON
@options.QUIET
@LOGGING
def run(**params: Any) -> int:
    """Evaluate models on TASKS (names or YAML files), one run per model.

    Responses are cached: to resume after an interruption, or to request only what is missing, run
    the same command again.
    """
    from evalwright.cli.arguments import evaluation_settings, key_values, load_plugins
    from evalwright.evaluation.configuration_file import read_settings
    from evalwright.evaluation.processes import check_one_process, use_device_of_rank

    options.only_with(replicas="on", gpus_per_replica="on")
    if params["no_judge"] and (
        params["roles"] or params["judges"] or params["role_arguments"]
    ):
        raise click.UsageError(
            "--no-judge leaves every judge out: leave out --judge, --role and -R, or"
            " --no-judge."
        )
    load_plugins(params["plugins"])
    arguments = key_values(params["arguments"], "-M")
    flags = evaluation_settings(params)
    plain_fields = ("limit", "name", "max_resident", "hardware", "shard", "round")
    flags |= {key: params[key] for key in plain_fields if params[key] is not None}
    if params["round"] == "":
        raise click.UsageError("--round needs a name, such as 2026-W49.")
    flags |= {
        key: tuple(params[key]) for key in ("until", "budget", "price") if params[key]
    }
    flags |= {
        key: True
        for key in ("replace", "resend_empty", "batch", "no_judge")
        if params[key]
    }
    flags |= {key: params[key] for key in ("accept_failures", "give_up") if params[key]}
    if params["no_images"]:
        flags["store_images"] = False
    if params["tasks"]:
        flags["tasks"] = tuple(params["tasks"])
    if params["models"]:
        flags["models"] = tuple(ModelSpec(name, arguments) for name in params["models"])
    arguments = {} if params["models"] else arguments
    settings = read_settings(
        params["config"], flags, arguments, params["suite"], params["trust_file"]
    )
    if settings.configuration.home:
        # Caches of datasets and hashes are beside the store.
        os.environ["EVALWRIGHT_HOME"] = settings.configuration.home
    if not settings.configuration.shard and not params["worker"]:
        check_one_process("-M device_map=auto")
    device = use_device_of_rank(os.environ, _all_model_arguments(settings))
    if device and not params["quiet"]:
        click.echo(f"This process uses the device {device}.", err=True)
    settings = replace(
        settings,
        on=_place(params),
        sandbox=params["sandbox"],
        worker=params["worker"],
        push=params["push"] or "",
    )
    return _evaluate(
        settings,
        track=params["track"],
        grace=params["grace"],
        quiet=params["quiet"],
        verbose=params["verbose"],
        log_file=params["log_file"],
        as_json=params["as_json"],
    )


def _all_model_arguments(settings: Settings) -> list[Mapping[str, Any]]:
    configuration = settings.configuration
    specs = [*configuration.models, *configuration.roles.values()]
    return [spec.arguments for spec in specs]


MOST_IN_A_SENTENCE = 5
"""Most models that a run compares in its last sentence; `compare` and `leaderboard` take more."""


def _place(params: dict[str, Any]) -> Any:
    """Return where --on puts the replicas of local models."""
    if not params["on"]:
        return None
    from evalwright.cli.arguments import load_plugins
    from evalwright.models.local.cluster import Placement

    files = [str(Path(file).resolve()) for file in params["plugins"]]
    return Placement.parse(
        params["on"],
        params["replicas"],
        params["gpus_per_replica"],
        partial(load_plugins, files),
    )


def _evaluate(
    settings: Settings,
    *,
    track: Sequence[str],
    grace: float,
    quiet: bool,
    verbose: bool,
    log_file: str | None,
    as_json: bool,
) -> int:
    """Carry out the settings, show the runs, and report how they ended."""
    from evalwright.evaluation.evaluating import evaluate_settings, work_on_settings
    from evalwright.evaluation.running import run_blocking
    from evalwright.reports.progress import TerminalProgress
    from evalwright.runs.callbacks import Callbacks
    from evalwright.trackers import open_trackers

    listeners = Callbacks(open_trackers(track))
    with ExitStack() as stack:
        # Progress messages are logged too, so that a log without a terminal has them.
        hidden = (
            stack.enter_context(Path(os.devnull).open("w"))
            if quiet and log_file
            else None
        )
        progress = (
            None
            if quiet and not log_file
            else stack.enter_context(TerminalProgress(hidden))
        )
        tell = progress.show if progress and not quiet else say
        stack.enter_context(logged(verbose, log_file, tell))
        evaluate = work_on_settings if settings.worker else evaluate_settings
        outcomes = run_blocking(
            lambda: evaluate(
                settings, progress=progress, callbacks=listeners, grace=grace
            )
        )
    runs = _visible_runs(outcomes) if settings.worker else outcomes
    code = _conclude(runs, listeners, quiet=quiet, as_json=as_json)
    lacks = settings.worker and not all(end.is_complete for end in outcomes)
    return 1 if lacks else code


def _conclude(
    runs: Sequence[Run], listeners: Callbacks, *, quiet: bool, as_json: bool
) -> int:
    """Show finished runs, and report how they ended."""
    # Loaded only now, so that the first request need not wait for what shows runs.
    from evalwright.analysis.board import make_board
    from evalwright.reports.documents.summary import (
        board_summary,
        run_summary,
        runs_summary,
    )
    from evalwright.reports.endings import (
        judge_failed_throughout,
        remarks,
        unscored_sentences,
        unsent_image_warnings,
    )

    if as_json:
        documents = []
    elif len(runs) > 1 and not runs[0].part:
        documents = [
            runs_summary(runs),
            board_summary(make_board(runs), _verdict(runs)),
        ]
    else:
        documents = [run_summary(run) for run in runs]
    records = [{**run.data, "folder": str(run.folder)} for run in runs]
    print_result(as_json, records, *documents)
    if quiet:  # otherwise progress has shown it before the first request
        for warning in unsent_image_warnings(runs):
            say(warning)
    for remark in remarks(runs):
        say(remark)
    code = conclude(_spent(runs), unscored_sentences(runs), *listeners.faults)
    return 1 if judge_failed_throughout(runs) else code


def _visible_runs(ends: Sequence[RunEnd]) -> list[Run]:
    """Return the runs that can be seen from here, and say who wrote those of other workers."""
    for end in ends:
        if not end.own_folder:
            say(end.sentence)
    return [run for run in (end.open() for end in ends) if run is not None]


def _verdict(runs: Sequence[Run]) -> str:
    """Say which of a few runs is better and by how much.

    Where stopping rules have decided it, it is their verdict; "" if the runs cannot be compared,
    and for more runs than a sentence can hold.
    """
    from evalwright.analysis.comparison import compare_runs
    from evalwright.analysis.several import compare_several
    from evalwright.reports.conclusions import verdict, worded_several
    from evalwright.reports.endings import rule_verdicts

    if any((run.data.get("stopping") or {}).get("rules") for run in runs):
        verdicts = rule_verdicts(runs)
        return " ".join(verdicts) if len(verdicts) <= MOST_IN_A_SENTENCE else ""
    with suppress(EvalwrightError):
        if len(runs) == 2:
            return verdict(compare_runs(runs[1], runs[0]))
        if len(runs) <= MOST_IN_A_SENTENCE:
            return worded_several(compare_several(runs)).conclusion
    return ""


def _spent(runs: Any) -> str:
    """Say where the budget ended a run before its rules were decided; "" if it did not."""
    stoppings = [run.data["stopping"] for run in runs if run.data.get("stopping")]
    out_of_budget = [
        stopping
        for stopping in stoppings
        if stopping["budget_reached"] and not stopping["settled"]
    ]
    if not out_of_budget:
        return ""
    if processes := (out_of_budget[0].get("budget") or {}).get("processes"):
        return (
            f"The budget of {out_of_budget[0]['budget_reached']} was spent by all {processes}"
            " shards together before everything was answered. To go on, run the same"
            " commands with a higher --budget: what was spent counts again, and stored"
            " responses cost nothing."
        )
    if "spent_by_all" in (out_of_budget[0].get("budget") or {}):
        return (
            f"The budget of {out_of_budget[0]['budget_reached']} was spent by all workers"
            " together before everything was answered. To go on, run the same command with"
            " a higher --budget: what was spent counts again, and stored responses cost"
            " nothing."
        )
    return (
        f"The budget of {out_of_budget[0]['budget_reached']} was spent before everything was"
        " answered. The same command continues from here: stored responses cost"
        " nothing, and the budget is per command."
    )
