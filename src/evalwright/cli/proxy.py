"""`evalwright proxy`: an endpoint for other programs, in front of any model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli import options
from evalwright.cli.exit_codes import say
from evalwright.cli.logs import LOGGING, logged
from evalwright.cli.options import flag, option, repeatable_option
from evalwright.cli.sections import SectionedCommand
from evalwright.cli.signals import ServingEnded
from evalwright.core.errors import ConfigurationError

if TYPE_CHECKING:
    from evalwright.engine.store import Store
    from evalwright.models.model_interface import Model
    from evalwright.proxy.serving import Plan
    from evalwright.proxy.tokens import Access

TOKEN_VARIABLE = "EVALWRIGHT_PROXY_TOKEN"
SECTIONS = {
    "Options": (
        *("--model", "-M", "--trajectory", "--budget", "--price", "--port"),
        *("--tokens", "--no-record"),
    ),
    "Models": ("--plugin", "--max-resident", "--round"),
    "Storage and limits": ("--home", "--max-stored", "--grace"),
    "Network": ("--host",),
    "Output": ("--quiet", "--verbose", "--log-file"),
}


@click.command(
    cls=SectionedCommand,
    sections=SECTIONS,
    context_settings={"allow_interspersed_args": False},
)
@click.argument("command", nargs=-1, type=click.UNPROCESSED)
@repeatable_option(
    "--model -m models", "M", "A model to serve, provider/name[@revision]."
)
@options.MODEL_ARGUMENTS
@option(
    "--trajectory",
    "ID",
    "The trajectory of COMMAND. Default: a hash of its command line, so that the same"
    " command is resumed.",
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
    "--port",
    "N",
    "Where to listen. Default: any free port.",
    type=click.IntRange(0, 65535),
    default=0,
)
@option(
    "--host",
    "ADDRESS",
    "The loopback address to listen on. Default: 127.0.0.1.",
    default="127.0.0.1",
)
@option(
    "--tokens",
    "FILE",
    "A TOML file of tokens, each with its trajectory, models, budget and expiry.",
)
@flag(
    "--no-record",
    "Keep prompts and answers in memory alone, never on disk; nothing can be resumed.",
)
@options.HOME
@option(
    "--max-stored",
    "GB",
    "Add no more than this to the store. Default: 20.",
    type=options.Finite(min=0, min_open=True, max=1e6),
    default=20.0,
)
@option(
    "--max-resident",
    "N",
    "Heavy local models in memory at a time. Default: 1.",
    type=click.IntRange(1),
    default=1,
)
@option("--round", "NAME", "Ask everything again in this round; see `run --round`.")
@options.PLUGINS
@option(
    "--grace",
    "SECONDS",
    "After Ctrl-C or SIGTERM, requests that were sent may take this long to be"
    " answered. Default: 4.",
    type=options.Finite(min=0, max=86_400),
    default=4.0,
    envvar="EVALWRIGHT_GRACE",
)
@options.QUIET
@LOGGING
def proxy(**params: Any) -> int:
    """Serve models to other programs, in OpenAI's and Anthropic's shapes, through the store.

    With COMMAND, after "--", it is run with the variables by which client libraries find the proxy,
    and the proxy ends with its exit code. Without, it serves until Ctrl-C.

    What was answered is not paid again: after an interruption, run the same command again.
    """
    from evalwright.evaluation.running import run_blocking

    _check(params)
    if params["home"]:
        os.environ["EVALWRIGHT_HOME"] = params["home"]
    models, budget = _open_models(params)
    with ExitStack() as stack:
        store = stack.enter_context(_open_store(params))
        plan = _plan(params, models, budget)
        from evalwright.cli.proxy_progress import ProxyProgress
        from evalwright.proxy.serving import Listener, serve

        progress = stack.enter_context(
            ProxyProgress(quiet=params["quiet"], shares_terminal=bool(plan.command))
        )
        stack.enter_context(logged(params["verbose"], params["log_file"], progress.say))
        listener = Listener(
            progress.say,
            lambda address: _announce(address, plan, store, params, progress.say),
            progress.show,
        )
        try:
            code: int = run_blocking(lambda: serve(plan, store, listener))
        except KeyboardInterrupt:
            raise ServingEnded from None
        return code


def _check(params: dict[str, Any]) -> None:
    from evalwright.proxy.faults import Fault
    from evalwright.proxy.server import check_loopback
    from evalwright.proxy.sessions import check_id

    if not params["models"]:
        raise click.UsageError(
            "No model given. Name at least one with -m, for example -m demo/small."
        )
    params["host"] = check_loopback(params["host"])
    if params["round"] == "":
        raise click.UsageError("--round needs a name, such as 2026-W49.")
    if params["no_record"] and params["home"]:
        raise click.UsageError("--no-record keeps nothing: leave out --home.")
    if params["trajectory"] is not None:
        if not params["command"]:
            raise click.UsageError(
                "--trajectory names that of COMMAND. Without one, each program names its"
                " own in its base URL: /t/ID/v1."
            )
        try:
            check_id(params["trajectory"])
        except Fault as fault:
            raise click.UsageError(f"--trajectory: {fault.message}") from None


def _open_models(params: dict[str, Any]) -> tuple[list[Model], Any]:
    """Open the models, with their prices; return them, and the budget."""
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.evaluation.budgets import price_models, read_budget
    from evalwright.evaluation.configuration import ModelSpec
    from evalwright.models.registry import open_model

    load_plugins(params["plugins"])
    arguments = key_values(params["arguments"], "-M")
    names = list(dict.fromkeys(params["models"]))
    opened = [
        (ModelSpec(name, arguments), open_model(name, arguments)) for name in names
    ]
    price_models(params["price"], opened, has_budget=bool(params["budget"]))
    budget = read_budget(params["budget"], opened)
    models = [model for _, model in opened]
    for model in models:
        model.check()
        if not model.abilities & {"generate", "log-likelihood", "rolling"}:
            able = ", ".join(sorted(model.abilities)) or "nothing"
            raise ConfigurationError(
                f"'{model.name}' generates no text (it can do: {able}), so there is nothing"
                " to serve."
            )
    return models, budget


def _open_store(params: dict[str, Any]) -> Store:
    from evalwright.core.private import home_folder
    from evalwright.engine.memory import MemoryStore
    from evalwright.engine.opening import open_store

    return MemoryStore() if params["no_record"] else open_store(home_folder(None))


def _plan(params: dict[str, Any], models: Sequence[Model], budget: Any) -> Plan:
    from evalwright.proxy.serving import Plan, trajectory_of
    from evalwright.proxy.tokens import Access, new_token

    command = params["command"]
    token = _token_of_environment() or new_token()
    access_by_token: dict[str, Access] = _file_tokens(params, models)
    if command or not access_by_token:
        access_by_token = {**access_by_token, token: Access("this proxy's")}
    return Plan(
        models,
        access_by_token,
        token,
        params["host"],
        params["port"],
        budget,
        command,
        params["trajectory"] or (trajectory_of(command) if command else ""),
        params["round"] or "",
        params["max_resident"],
        int(params["max_stored"] * 1e9),
        params["grace"],
    )


def _token_of_environment() -> str:
    from evalwright.proxy.tokens import MIN_TOKEN_CHARS, SENDABLE, can_be_sent

    token = os.environ.get(TOKEN_VARIABLE, "")
    if token and len(token) < MIN_TOKEN_CHARS:
        raise ConfigurationError(
            f"${TOKEN_VARIABLE} must have at least {MIN_TOKEN_CHARS} characters, so that it"
            " cannot be guessed."
        )
    if not can_be_sent(token):
        raise ConfigurationError(f"${TOKEN_VARIABLE} must be {SENDABLE}.")
    return token


def _file_tokens(params: dict[str, Any], models: Sequence[Model]) -> dict[str, Access]:
    from evalwright.proxy.tokens import read_tokens, readable_by_others
    from evalwright.proxy.upstream import Served

    if not params["tokens"]:
        return {}
    path = Path(params["tokens"])
    access_by_token = read_tokens(path, list(Served.of(models).by_name))
    _check_token_budgets(access_by_token.values(), models)
    if readable_by_others(path):
        say(
            f"The file of tokens '{path}' can be read by other users of this machine: chmod"
            " 600 it."
        )
    return access_by_token


def _check_token_budgets(accesses: Any, models: Sequence[Model]) -> None:
    """Refuse a token's budget in dollars for models without a price, as `--budget` does."""
    from evalwright.models.model_interface import LocalModel, RemoteModel

    for access in accesses:
        if access.budget is None or access.budget.limits.dollars is None:
            continue
        for model in models:
            is_priced = model.price is not None or (
                isinstance(model, RemoteModel) and model.names_cost
            )
            if not is_priced and not isinstance(model, LocalModel):
                raise ConfigurationError(
                    f"The budget of the token '{access.name}' is in dollars, but the price"
                    f" of '{model.name}' is not known. Give it with --price, or limit"
                    " tokens or requests."
                )


def _announce(
    address: str, plan: Plan, store: Store, params: dict[str, Any], tell: Any
) -> None:
    """Say where the proxy is, who may use it, and what is kept."""
    names = ", ".join(model.name for model in plan.models)
    lines = []
    if plan.command:
        lines.append(
            f"Serving {names} at {address}/t/{plan.trajectory} to the command."
        )
    else:
        lines.append(
            f"Serving {names} at {address}, on this machine alone, until Ctrl-C."
        )
        lines.append(
            f"OpenAI's clients: OPENAI_BASE_URL={address}/t/ID/v1   Anthropic's:"
            f" ANTHROPIC_BASE_URL={address}/t/ID   (ID: a name for each course of a"
            " program)"
        )
        if params["tokens"]:
            lines.append(f"Tokens: those in {params['tokens']}.")
        elif os.environ.get(TOKEN_VARIABLE):
            lines.append(f"Token: that in ${TOKEN_VARIABLE}.")
        else:
            lines.append(f"Token, as their API key: {plan.token}")
    if params["no_record"]:
        lines.append(
            "Prompts and answers are in memory alone, and end with this process"
            " (--no-record)."
        )
    else:
        lines.append(
            f"Prompts and answers are kept in {store.place}; --no-record keeps nothing on"
            " disk."
        )
    if not params["quiet"] or not plan.command:
        for line in lines:
            tell(line)
