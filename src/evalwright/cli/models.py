"""`evalwright models`: which models can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import TextWrapper
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    HOME,
    MODEL_ARGUMENTS,
    PLUGINS,
    TRUST_FILE,
    flag,
    only_with,
    option,
    repeatable_option,
)
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError, EvalwrightError
from evalwright.core.private import home_folder
from evalwright.core.requests import Generate, Message, Prompt

if TYPE_CHECKING:
    from evalwright.evaluation.drift import TaskDrift


@click.group(cls=CommandGroup)
def models() -> None:
    """List model providers; check that a model can be used."""


@models.command("list")
@flag("--all every", "Show every provider in full, even without a key.")
@PLUGINS
@AS_JSON
def list_(every: bool, plugins: tuple[str, ...], as_json: bool) -> None:
    """List the providers that a model's name may begin with, how such a name looks, and whether a
    key is set.
    """
    from evalwright.cli.arguments import load_plugins
    from evalwright.models.registry import providers

    load_plugins(plugins)
    rows = [_provider_row(name) for name in providers()]
    if as_json:
        print_json(rows)
        return
    for group in _PROVIDER_GROUPS:
        in_group = [row for row in rows if row["group"] == group]
        listed = [
            row
            for row in in_group
            if every or group != _REMOTE_PROVIDERS or row["key"] == "set"
        ]
        if in_group:
            echo(f"{group}:")
        width = max((len(row["example"]) for row in listed), default=0)
        for row in listed:
            echo(f"  {row['example']:<{width}}  {_describe_access(row)}".rstrip())
        without_key = [row["provider"] for row in in_group if row not in listed]
        if without_key:
            start = "  no key is set for: " if listed else "  "
            names = TextWrapper(100, start, "  ", break_on_hyphens=False)
            echo(names.fill(", ".join(without_key)))
            echo("  (--all shows how to name each, and which variable holds its key)")


_IN_PROCESS = "In this process"
_OWN_PROVIDERS = "Your own"
_LOCAL_SERVERS = "Servers on this machine"
_REMOTE_PROVIDERS = "Providers"
_PROVIDER_GROUPS = (_IN_PROCESS, _OWN_PROVIDERS, _LOCAL_SERVERS, _REMOTE_PROVIDERS)


def _provider_row(name: str) -> dict[str, Any]:
    """Return a provider's row in the list of providers.

    Its "key" is "set", "missing" or "none needed"; "priced" counts models with a known price.
    """
    from evalwright.models.built_in import EXAMPLES
    from evalwright.models.remote import prices
    from evalwright.models.remote.providers import find, user_names

    row = find(name)
    example, description = EXAMPLES.get(name, (f"{name}/...", "a plug-in"))
    if row is None:
        return {
            "provider": name,
            "example": example,
            "what": description,
            "group": _IN_PROCESS,
        }

    local = "://localhost" in row.base_url
    group = _LOCAL_SERVERS if local else _REMOTE_PROVIDERS
    if name in user_names():
        group = _OWN_PROVIDERS
    key_state = "none needed"
    if row.key and not local:
        key_state = "set" if _has_key(row.key) else "missing"
    return {
        "provider": name,
        "example": row.example or example,
        "what": row.title or row.base_url,
        "group": group,
        "base_url": row.base_url,
        "variables": list(row.key),
        "key": key_state,
        "priced": prices.count_of(name),
        "docs": row.docs,
    }


def _has_key(variables: tuple[str, ...]) -> bool:
    from evalwright.models.remote.keys import find_key

    try:
        return any(find_key(variable) is not None for variable in variables)
    except ConfigurationError:
        return False


def _describe_access(row: dict[str, Any]) -> str:
    keys = {
        "set": "key set",
        "missing": f"set {next(iter(row.get('variables', ())), '')}",
    }
    notes = [
        row["what"],
        keys.get(row.get("key", "")),
        row.get("priced") and "prices known",
    ]
    return ", ".join(filter(None, notes))


@models.command()
@click.argument("model")
@MODEL_ARGUMENTS
@option("--ask", "TEXT", "Also send it TEXT and show the answer (this may cost money).")
@option(
    "--against",
    "MODEL",
    "Send both the same requests and say whether their answers may be mixed.",
)
@repeatable_option(
    "-A other_arguments", "KEY=VALUE", "An argument of the model --against names."
)
@repeatable_option(
    "--task tasks", "NAME", "With --against: a task in place of the two bundled ones."
)
@option("--limit", "N", "With --against: samples of each task. Default: 100.", type=int)
@option(
    "--margin",
    "X",
    "With --against: the score difference that matters. Default: 0.03.",
    type=float,
)
@PLUGINS
@AS_JSON
def check(
    model: str, ask: str | None, against: str | None, as_json: bool, **params: Any
) -> int:
    """Check that MODEL can be used, and show what it can do.

    Costs nothing without --ask or --against.

    --against NAME asks both the same: log-likelihoods, texts at temperature 0, scores. Exit code 1
    where their answers should not be mixed in one comparison.
    """
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.models.registry import open_model

    only_with(
        other_arguments="against", tasks="against", limit="against", margin="against"
    )
    load_plugins(params["plugins"])
    model_under_test = open_model(model, key_values(params["arguments"], "-M"))
    if against is not None:
        if ask is not None:
            raise click.UsageError(
                "--ask shows one model's answer: leave it out with --against."
            )
        other_model = open_model(against, key_values(params["other_arguments"], "-A"))
        drift_settings = {
            key: params[key]
            for key in ("tasks", "limit", "margin")
            if params[key] not in (None, ())
        }
        return _compare(model_under_test, other_model, as_json, drift_settings)
    model_under_test.check()
    answer = {} if ask is None else {"answer": _ask(model_under_test, ask)}
    # Described after the answer, so that what the model learnt about itself is shown.
    description = {
        **model_under_test.describe(),
        **model_under_test.try_out(),
        **answer,
    }
    if as_json:
        print_json(description)
    else:
        description.pop("template", None)
        if "replicas" in description:
            description["replicas"] = [
                replica["name"] for replica in description["replicas"]
            ]
        for key, fact in description.items():
            echo(f"{key:<14} {_format_fact(fact)}".rstrip())
    if model_under_test.remark and "replica_devices" not in description:
        echo(model_under_test.remark, error=True)
    return 0


def _compare(first: Any, second: Any, as_json: bool, settings: dict[str, Any]) -> int:
    from evalwright.evaluation.drift import measure_drift

    with _telling_person() as say:
        drift = measure_drift(first, second, say=say, **settings)
    if as_json:
        print_json(drift.as_dict())
    else:
        echo(f"Differences are {drift.a} minus {drift.b}.")
        for task in drift.tasks:
            _show_task_drift(task)
        echo(drift.sentence)
    return int(not drift.may_be_mixed)


def _show_task_drift(task: TaskDrift) -> None:
    echo(f"{task.task}: {task.verdict}; {task.n} samples, {task.n_missing} missing")
    if task.n_generated:
        echo(f"  texts      {task.n_same} of {task.n_generated} are equal")

    tokens = task.tokens
    if tokens is not None:
        other_lengths = ""
        if tokens.n_split:
            other_lengths = (
                f"; {tokens.n_split} further texts have another number of tokens"
            )
        echo(
            f"  tokens     log-probability {tokens.mean:+.2g} on average (90%"
            f" interval {tokens.low:+.2g} to {tokens.high:+.2g}), at most"
            f" {tokens.largest:.2g}, in {tokens.n} texts{other_lengths}"
        )

    scores = task.scores
    if scores is not None:
        missing = ""
        if scores.n_missing:
            missing = f"; {scores.n_missing} missing, whatever they would score"
        echo(
            f"  scores     {100 * scores.difference:+.2f} points (90% interval"
            f" {100 * scores.low:+.2f} to {100 * scores.high:+.2f}), of {scores.n}"
            f" scored by both{missing}"
        )


def _format_fact(fact: Any) -> str:
    if isinstance(fact, dict):
        return ", ".join(
            f"{name} {_format_fact(nested_fact)}" for name, nested_fact in fact.items()
        )
    return ", ".join(map(_format_fact, fact)) if isinstance(fact, list) else str(fact)


@models.command()
@click.argument("model", required=False)
@MODEL_ARGUMENTS
@option("--config", "FILE", "Test the models of a suite file, as its task asks them.")
@option("--suite", "NAME", "Use this suite of the --config file.")
@TRUST_FILE
@option(
    "--words",
    "N",
    "Length of the longest text. Default: 15000.",
    type=int,
    default=15_000,
)
@HOME
@PLUGINS
@AS_JSON
def test(
    model: str | None, words: int, home: str | None, as_json: bool, **params: Any
) -> int:
    """Have MODEL summarise three texts (an ordinary one, an empty one, a very long one) and check
    the answers.

    Exit code 1 where it fails a case. "look" means that it can be evaluated, but that you should
    read the answer first.
    """
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.evaluation.smoke import smoke_test
    from evalwright.models.registry import open_model

    if (model is None) == (params["config"] is None):
        raise ConfigurationError("Name a model, or a suite file with --config FILE.")
    only_with(suite="config", trust_file="config")
    load_plugins(params["plugins"])
    if model is None:
        from evalwright.cli.suite_models import try_models

        if params["arguments"]:
            raise ConfigurationError(
                "-M sets an argument of MODEL; the models of a suite have theirs in its"
                " file."
            )
        return try_models(params, words=words, home=home, as_json=as_json)
    opened_model = open_model(model, key_values(params["arguments"], "-M"))
    verdicts = smoke_test(opened_model, words=words, home=home)
    if as_json:
        print_json([verdict.as_dict() for verdict in verdicts])
    for verdict in verdicts if not as_json else ():
        echo(
            f"{verdict.result:<5} {verdict.case} ({verdict.words:,} words):"
            f" {verdict.why}"
        )
        if verdict.answer:
            line = " ".join(verdict.answer.split())
            echo(f"      {line[:300]}{'…' if len(line) > 300 else ''}")
    return int(any(verdict.result == "fail" for verdict in verdicts))


@contextmanager
def _telling_person() -> Iterator[Callable[[str], None]]:
    """Yield a function that prints what happens, on standard error.

    Messages that a server was given up are printed at the end, unless the error says the same.
    """
    given_up: list[str] = []

    def say(sentence: str) -> None:
        if sentence.startswith("Given up"):
            given_up.append(sentence)
        else:
            echo(sentence, error=True)

    error = ""
    try:
        yield say
    except EvalwrightError as raised:
        error = str(raised)
        raise
    finally:
        for sentence in given_up:
            if sentence != error:
                echo(sentence, error=True)


def _ask(model: object, text: str) -> str:
    from evalwright.engine.engine import Engine
    from evalwright.engine.opening import open_store
    from evalwright.evaluation.running import run_blocking
    from evalwright.models.model_interface import Model

    assert isinstance(model, Model)
    prompt: Prompt = (Message("user", text),) if "chat" in model.abilities else text

    async def once() -> str:
        with open_store(home_folder()) as store, _telling_person() as say:
            async with Engine(store, on_event=say) as engine:
                response = await engine.door({"target": model})(
                    "target", Generate(prompt, max_tokens=64)
                )
                return response.text

    answer: str = run_blocking(once)
    return answer
