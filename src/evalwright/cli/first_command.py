"""The first command of a new evaluation: run where it is free, else shown with its price."""

from __future__ import annotations

import shlex
from pathlib import Path

from evalwright.analysis.words import counted
from evalwright.cli.exit_codes import say
from evalwright.cli.output import echo
from evalwright.cli.scaffold import SUITE, ComposedSuite
from evalwright.core.errors import EvalwrightError
from evalwright.evaluation.configuration import ModelSpec

FREE_PROVIDERS = frozenset({"baseline", "demo", "oracle", "scripted"})
"""Models that come with the package."""
FOLDER_PROVIDERS = frozenset({"hf", "onnx", "vllm-local"})
"""Models in this process, where their name is a folder; any other name may be a download."""
ASSUMED_OUTPUT_TOKENS = 200
"""Tokens of one answer, for a price before anything was sent."""


def suite_command(suite: ComposedSuite, *options: str) -> str:
    """Return the command that runs the suite, with further options."""
    words = ["evalwright", "run", "--config", SUITE]
    if suite.needs_trust:
        words += ["--trust-file", SUITE]
    return shlex.join([*words, *options])


def runs_for_free(suite: ComposedSuite) -> bool:
    """Return whether its models and judges run in this process, and nothing is downloaded."""
    if "hub" in suite.task_extras:
        return False
    return all(map(_is_here, suite.all_models.models))


def _is_here(spec: ModelSpec) -> bool:
    from evalwright.models.registry import parse_name

    provider, name, _ = parse_name(spec.model)
    if provider in FOLDER_PROVIDERS:
        return Path(name).expanduser().is_dir()
    return provider in FREE_PROVIDERS


def run_here(command: str) -> int:
    """Print a command of ours and run it in this process; returns its exit code.

    Raises:
        EvalwrightError: it ended with an error.
    """
    from evalwright.cli.command_line import cli

    echo("")
    echo(f"$ {command}")
    code = cli.main(
        args=shlex.split(command)[1:], prog_name="evalwright", standalone_mode=False
    )
    return code if isinstance(code, int) else 0


def say_price(suite: ComposedSuite) -> None:
    """Print what the whole suite sends and costs; nothing is sent for it."""
    if "hub" in suite.task_extras:
        tasks = shlex.join(suite.tasks)
        models = " ".join(f"--model {spec.model}" for spec in suite.models)
        say(
            "Nothing was sent. The data come from the Hugging Face hub; what a run costs:"
            f" evalwright plan {tasks} {models}"
        )
        return
    from evalwright.analysis.power.settings import read_assumptions
    from evalwright.api import plan
    from evalwright.models.function_files import function_file

    try:
        forecast = plan(
            list(suite.tasks),
            list(suite.models),
            roles=dict(suite.roles),
            unsure=dict(suite.unsure),
            panel=dict(suite.panel),
            assume=read_assumptions([f"output_tokens={ASSUMED_OUTPUT_TOKENS}"]),
        )
    except EvalwrightError as error:
        say(f"Nothing was sent. What a run costs is not known: {error}")
        return
    say(
        f"Nothing was sent. The whole suite, with answers of {ASSUMED_OUTPUT_TOKENS} tokens:"
    )
    for model, needed in forecast.models.items():
        n_requests = round((needed.requests.most or 0) * suite.n_prompts)
        dollars = needed.money.most
        price = (
            "no price is known (--price IN/OUT, in dollars for a million tokens)"
            if dollars is None
            else f"about {dollars * suite.n_prompts:.2g} USD"
        )
        if function_file(model) is not None:
            price = "each a call of your function; what that costs is not known"
        say(f"  {model}: {counted(n_requests, 'request')}, {price}")
    bound_by_role = {judge.role: judge.money.most for judge in forecast.judges}
    for role, spec in suite.roles.items():
        dollars = bound_by_role.get(role)
        bound = (
            "" if dollars is None else f", at most {dollars * suite.n_prompts:.2g} USD"
        )
        say(f"  {spec.model}, as {role}: up to a request for each answer{bound}")
