"""`evalwright models`: which models can be used."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from textwrap import TextWrapper
from typing import Any

import click

from evalwright.cli.groups import CommandGroup
from evalwright.cli.options import (
    AS_JSON,
    HOME,
    MODEL_ARGUMENTS,
    PLUGINS,
    flag,
    only_with,
    option,
    several,
)
from evalwright.cli.output import echo, print_json
from evalwright.core.errors import ConfigurationError, EvalwrightError
from evalwright.core.private import home_folder
from evalwright.core.requests import Generate, Message, Prompt


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
    rows = [_row(name) for name in providers()]
    if as_json:
        print_json(rows)
        return
    for group in _GROUPS:
        found = [row for row in rows if row["group"] == group]
        shown = [
            row for row in found if every or group != _REMOTE or row["key"] == "set"
        ]
        if found:
            echo(f"{group}:")
        width = max((len(row["example"]) for row in shown), default=0)
        for row in shown:
            echo(f"  {row['example']:<{width}}  {_said(row)}".rstrip())
        rest = [row["provider"] for row in found if row not in shown]
        if rest:
            start = "  no key is set for: " if shown else "  "
            names = TextWrapper(100, start, "  ", break_on_hyphens=False)
            echo(names.fill(", ".join(rest)))
            echo("  (--all shows how to name each, and which variable holds its key)")


_HERE = "In this process"
_OWN = "Your own"
_LOCAL = "Servers on this machine"
_REMOTE = "Providers"
_GROUPS = (_HERE, _OWN, _LOCAL, _REMOTE)


def _row(name: str) -> dict[str, Any]:
    """What the list says of a provider. key: "set", "missing" or "none needed"; priced: models with
    a known price.
    """
    from evalwright.models.built_in import EXAMPLES
    from evalwright.models.remote import prices
    from evalwright.models.remote.providers import find, own

    row = find(name)
    example, what = EXAMPLES.get(name, (f"{name}/...", "a plug-in"))
    if row is None:
        return {"provider": name, "example": example, "what": what, "group": _HERE}
    local = "://localhost" in row.base_url
    return {
        "provider": name,
        "example": row.example or example,
        "what": row.title or row.base_url,
        "group": _OWN if name in own() else _LOCAL if local else _REMOTE,
        "base_url": row.base_url,
        "variables": list(row.key),
        "key": (
            "none needed"
            if local or not row.key
            else "set"
            if _has_key(row.key)
            else "missing"
        ),
        "priced": prices.count_of(name),
        "docs": row.docs,
    }


def _has_key(variables: tuple[str, ...]) -> bool:
    from evalwright.models.remote.keys import find_key

    try:
        return any(find_key(variable) is not None for variable in variables)
    except ConfigurationError:
        return False


def _said(row: dict[str, Any]) -> str:
    keys = {
        "set": "key set",
        "missing": f"set {next(iter(row.get('variables', ())), '')}",
    }
    parts = [
        row["what"],
        keys.get(row.get("key", "")),
        row.get("priced") and "prices known",
    ]
    return ", ".join(filter(None, parts))


@models.command()
@click.argument("model")
@MODEL_ARGUMENTS
@option("--ask", "TEXT", "Also send it TEXT and show the answer (this may cost money).")
@option(
    "--against",
    "MODEL",
    "Send both the same requests and say whether their answers may be mixed.",
)
@several("-A other_arguments", "KEY=VALUE", "An argument of the model --against names.")
@several(
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
    model: str, ask: str | None, against: str | None, as_json: bool, **given: Any
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
    load_plugins(given["plugins"])
    found = open_model(model, key_values(given["arguments"], "-M"))
    if against is not None:
        if ask is not None:
            raise click.UsageError(
                "--ask shows one model's answer: leave it out with --against."
            )
        other = open_model(against, key_values(given["other_arguments"], "-A"))
        wanted = {
            key: given[key]
            for key in ("tasks", "limit", "margin")
            if given[key] not in (None, ())
        }
        return _compare(found, other, as_json, wanted)
    found.check()
    answer = {} if ask is None else {"answer": _ask(found, ask)}
    # What answered is described after it, so that what it found out of itself is shown.
    description = {**found.describe(), **found.try_out(), **answer}
    if as_json:
        print_json(description)
    else:
        description.pop("template", None)
        if "replicas" in description:
            description["replicas"] = [one["name"] for one in description["replicas"]]
        for key, value in description.items():
            echo(f"{key:<14} {_shown(value)}".rstrip())
    return 0


def _compare(found: Any, other: Any, as_json: bool, wanted: dict[str, Any]) -> int:
    from evalwright.evaluation.drift import measure_drift

    with _telling() as say:
        drift = measure_drift(found, other, say=say, **wanted)
    if as_json:
        print_json(drift.as_dict())
    else:
        echo(f"Differences are {drift.a} minus {drift.b}.")
    for task in drift.tasks if not as_json else ():
        echo(f"{task.task}: {task.verdict}; {task.n} samples, {task.n_missing} missing")
        if task.n_generated:
            echo(f"  texts      {task.n_same} of {task.n_generated} are equal")
        if (tokens := task.tokens) is not None:
            split = (
                f"; {tokens.n_split} further texts have another number of tokens"
                if tokens.n_split
                else ""
            )
            echo(
                f"  tokens     log-probability {tokens.mean:+.2g} on average (90%"
                f" interval {tokens.low:+.2g} to {tokens.high:+.2g}), at most"
                f" {tokens.largest:.2g}, in {tokens.n} texts{split}"
            )
        if (scores := task.scores) is not None:
            once = (
                f"; {scores.n_missing} missing, whatever they would score"
                if scores.n_missing
                else ""
            )
            echo(
                f"  scores     {100 * scores.difference:+.2f} points (90% interval"
                f" {100 * scores.low:+.2f} to {100 * scores.high:+.2f}), of {scores.n}"
                f" scored by both{once}"
            )
    if not as_json:
        echo(drift.sentence)
    return int(not drift.may_be_mixed)


def _shown(value: Any) -> str:
    if isinstance(value, dict):
        return ", ".join(f"{name} {_shown(part)}" for name, part in value.items())
    return ", ".join(map(_shown, value)) if isinstance(value, list) else str(value)


@models.command()
@click.argument("model")
@MODEL_ARGUMENTS
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
def test(model: str, words: int, home: str | None, as_json: bool, **given: Any) -> int:
    """Have MODEL summarise three texts (an ordinary one, an empty one, a very long one) and check
    the answers.

    Exit code 1 where it fails a case. "look" means that it can be evaluated, but that you should
    read the answer first.
    """
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.evaluation.smoke import smoke_test
    from evalwright.models.registry import open_model

    load_plugins(given["plugins"])
    found = open_model(model, key_values(given["arguments"], "-M"))
    verdicts = smoke_test(found, words=words, home=home)
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
def _telling() -> Iterator[Callable[[str], None]]:
    """Says on standard error what happens.

    That a server is given up waits for the end: the error often is the same sentence.
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
    from evalwright.models.base import Model

    assert isinstance(model, Model)
    prompt: Prompt = (Message("user", text),) if "chat" in model.abilities else text

    async def once() -> str:
        with open_store(home_folder()) as store, _telling() as say:
            async with Engine(store, on_event=say) as engine:
                response = await engine.door({"target": model})(
                    "target", Generate(prompt, max_tokens=64)
                )
                return response.text

    answer: str = run_blocking(once)
    return answer
