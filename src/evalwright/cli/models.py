"""`evalwright models`: which models can be used."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from evalwright.cli.options import AS_JSON, HOME, MODEL_ARGUMENTS, PLUGINS, only_with, several
from evalwright.cli.output import echo, print_json


@click.group()
def models() -> None:
    """List model providers; check that a model can be used."""


@models.command("list")
@click.option("--all", "every", is_flag=True, help="Show every provider in full, even without a key.")
@PLUGINS
@AS_JSON
def list_(every: bool, plugins: tuple[str, ...], as_json: bool) -> None:
    """List the providers that a model's name may begin with, how such a name looks, and whether a key is set."""
    from evalwright.cli.arguments import load_plugins
    from evalwright.models.registry import providers

    load_plugins(plugins)
    rows = [_row(name) for name in providers()]
    if as_json:
        print_json(rows)
        return
    for group in _GROUPS:
        found = [row for row in rows if row["group"] == group]
        shown = [row for row in found if every or group != _REMOTE or row["key"] == "set"]
        if found:
            echo(f"{group}:")
        width = max((len(row["example"]) for row in shown), default=0)
        for row in shown:
            echo(f"  {row['example']:<{width}}  {_said(row)}".rstrip())
        rest = [row["provider"] for row in found if row not in shown]
        if rest:
            _show_names("  no key is set for: " if shown else "  ", rest)
            echo("  (--all shows how to name each, and which variable holds its key)")


_HERE, _OWN, _LOCAL, _REMOTE = "In this process", "Your own", "Servers on this machine", "Providers"
_GROUPS = (_HERE, _OWN, _LOCAL, _REMOTE)


def _row(name: str) -> dict[str, Any]:
    """What the list says of a provider. key: "set", "missing" or "none needed"; priced: models with a known price."""
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
        "key": "none needed" if local or not row.key else "set" if _has_key(row.key) else "missing",
        "priced": prices.count_of(name),
        "docs": row.docs,
    }


def _has_key(variables: tuple[str, ...]) -> bool:
    from evalwright.core.errors import ConfigurationError
    from evalwright.models.remote.keys import find_key

    try:
        return any(find_key(variable) is not None for variable in variables)
    except ConfigurationError:
        return False


def _said(row: dict[str, Any]) -> str:
    parts = [row["what"]]
    if row.get("key") == "set":
        parts.append("key set")
    elif row.get("key") == "missing":
        parts.append(f"set {row['variables'][0]}")
    if row.get("priced"):
        parts.append("prices known")
    return ", ".join(parts)


def _show_names(start: str, names: list[str]) -> None:
    import textwrap

    for line in textwrap.wrap(
        ", ".join(names), 100, initial_indent=start, subsequent_indent="  ", break_on_hyphens=False
    ):
        echo(line)


@models.command()
@click.argument("model")
@MODEL_ARGUMENTS
@click.option("--ask", metavar="TEXT", help="Also send it TEXT and show the answer (this may cost money).")
@click.option(
    "--against",
    metavar="MODEL",
    help="Send both the same requests and say whether their answers may be mixed.",
)
@several("-A", "other_arguments", metavar="KEY=VALUE", help="An argument of the model --against names.")
@several("--task", "tasks", metavar="NAME", help="With --against: a task in place of the two bundled ones.")
@click.option("--limit", type=int, metavar="N", help="With --against: samples of each task. Default: 100.")
@click.option(
    "--margin",
    type=float,
    metavar="X",
    help="With --against: the score difference that matters. Default: 0.03.",
)
@PLUGINS
@AS_JSON
def check(
    model: str,
    arguments: tuple[str, ...],
    ask: str | None,
    against: str | None,
    other_arguments: tuple[str, ...],
    tasks: tuple[str, ...],
    limit: int | None,
    margin: float | None,
    plugins: tuple[str, ...],
    as_json: bool,
) -> int:
    """Check that MODEL can be used, and show what it can do. Costs nothing without --ask or --against.

    --against NAME asks both the same: log-likelihoods, texts at temperature 0, scores. Exit code 1 where their answers should not be
    mixed in one comparison.
    """
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.models.registry import open_model

    only_with(other_arguments="against", tasks="against", limit="against", margin="against")
    load_plugins(plugins)
    found = open_model(model, key_values(arguments, "-M"))
    if against is not None:
        if ask is not None:
            raise click.UsageError("--ask shows one model's answer: leave it out with --against.")
        other = open_model(against, key_values(other_arguments, "-A"))
        wanted = {"tasks": tasks or None, "limit": limit, "margin": margin}
        return _compare(
            found, other, as_json, {key: value for key, value in wanted.items() if value is not None}
        )
    found.check()
    description = found.describe()
    if ask is not None:
        description["answer"] = _ask(found, ask)
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

    drift = measure_drift(found, other, say=partial(echo, error=True), **wanted)
    if as_json:
        print_json(drift.as_dict())
    else:
        echo(f"Differences are {drift.a} minus {drift.b}.")
    for task in drift.tasks if not as_json else ():
        echo(f"{task.task}: {task.verdict}; {task.n} samples, {task.n_failed} failed")
        if task.n_generated:
            echo(f"  texts      {task.n_same} of {task.n_generated} are equal")
        if (tokens := task.tokens) is not None:
            split = (
                f"; {tokens.n_split} further texts have another number of tokens" if tokens.n_split else ""
            )
            echo(f"  tokens     log-probability {tokens.mean:+.2g} on average (90% interval {tokens.low:+.2g} to {tokens.high:+.2g}), "
                 f"at most {tokens.largest:.2g}, in {tokens.n} texts{split}")  # fmt: skip
        if (scores := task.scores) is not None:
            once = (
                f"; {scores.n_missing} failed or undecided, whatever they would score"
                if scores.n_missing
                else ""
            )
            echo(f"  scores     {100 * scores.difference:+.2f} points (90% interval {100 * scores.low:+.2f} to "
                 f"{100 * scores.high:+.2f}), of {scores.n} scored by both{once}")  # fmt: skip
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
@click.option(
    "--words", type=int, default=15_000, metavar="N", help="Length of the longest text. Default: 15000."
)
@HOME
@PLUGINS
@AS_JSON
def test(
    model: str,
    arguments: tuple[str, ...],
    words: int,
    home: str | None,
    plugins: tuple[str, ...],
    as_json: bool,
) -> int:
    """Have MODEL summarise three texts (an ordinary one, an empty one, a very long one) and check the answers.

    Exit code 1 where it fails a case. "look" means that it can be evaluated, but that you should read the answer first.
    """
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.evaluation.smoke import smoke_test
    from evalwright.models.registry import open_model

    load_plugins(plugins)
    verdicts = smoke_test(open_model(model, key_values(arguments, "-M")), words=words, home=home)
    if as_json:
        print_json([verdict.as_dict() for verdict in verdicts])
    for verdict in verdicts if not as_json else ():
        echo(f"{verdict.result:<5} {verdict.case} ({verdict.words:,} words): {verdict.why}")
        if verdict.answer:
            line = " ".join(verdict.answer.split())
            echo(f"      {line[:300]}{'…' if len(line) > 300 else ''}")
    return int(any(verdict.result == "fail" for verdict in verdicts))


def _ask(model: object, text: str) -> str:
    from evalwright.core.private import home_folder
    from evalwright.core.requests import Generate, Message, Prompt
    from evalwright.engine.engine import Engine
    from evalwright.engine.opening import open_store
    from evalwright.evaluation.running import run_blocking
    from evalwright.models.base import Model

    assert isinstance(model, Model)
    prompt: Prompt = (Message("user", text),) if "chat" in model.abilities else text

    async def once() -> str:
        with open_store(home_folder()) as store:
            async with Engine(store) as engine:
                response = await engine.door({"target": model})("target", Generate(prompt, max_tokens=64))
                return response.text

    answer: str = run_blocking(once)
    return answer
