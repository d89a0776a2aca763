"""`evalwright models`: who can be asked."""

from __future__ import annotations

import click

from evalwright.cli.output import print_json


@click.group()
def models() -> None:
    """List model providers; check that a model can be used."""


@models.command("list")
@click.option("--json", "as_json", is_flag=True, help="Print them as JSON.")
def list_(as_json: bool) -> None:
    """List the providers that a model's name may begin with, and how such a name looks."""
    from evalwright.models.registry import EXAMPLES, providers

    rows = [(name, EXAMPLES.get(name, (f"{name}/...", "a plug-in"))) for name in providers()]
    if as_json:
        print_json([{"provider": name, "example": example, "what": what} for name, (example, what) in rows])
        return
    width = max(len(example) for _, (example, _) in rows)
    for _, (example, what) in rows:
        click.echo(f"{example:<{width}}  {what}")


@models.command()
@click.argument("model")
@click.option(
    "-M", "arguments", multiple=True, metavar="KEY=VALUE", help="An argument of the model. Repeatable."
)
@click.option("--ask", metavar="TEXT", help="Also ask it TEXT and show the answer (this may cost).")
@click.option("--plugin", "plugins", multiple=True, metavar="FILE", help="A Python file with models.")
@click.option("--json", "as_json", is_flag=True, help="Print the description as JSON.")
def check(
    model: str, arguments: tuple[str, ...], ask: str | None, plugins: tuple[str, ...], as_json: bool
) -> None:
    """Check that MODEL can be used, and show what it can do. Costs nothing without --ask."""
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.models.registry import open_model

    load_plugins(plugins)
    found = open_model(model, key_values(arguments, "-M"))
    found.check()
    description = found.describe()
    if ask is not None:
        description["answer"] = _ask(found, ask)
    if as_json:
        print_json(description)
    else:
        for key, value in description.items():
            click.echo(f"{key:<14} {', '.join(value) if isinstance(value, list) else value}")


@models.command()
@click.argument("model")
@click.option(
    "-M", "arguments", multiple=True, metavar="KEY=VALUE", help="An argument of the model. Repeatable."
)
@click.option(
    "--words", type=int, default=15_000, metavar="N", help="Length of the longest text. Default: 15000."
)
@click.option(
    "--home", metavar="DIR", help="Where answers are stored. Default: $EVALWRIGHT_HOME or .evalwright."
)
@click.option("--plugin", "plugins", multiple=True, metavar="FILE", help="A Python file with models.")
@click.option("--json", "as_json", is_flag=True, help="Print the verdicts as JSON.")
def test(
    model: str,
    arguments: tuple[str, ...],
    words: int,
    home: str | None,
    plugins: tuple[str, ...],
    as_json: bool,
) -> int:
    """Ask MODEL to summarise three texts (an ordinary one, an empty one, a very long one) and judge what comes.

    Exit code 1 where it fails a case. "look" means that it can be evaluated, and that you should read the answer first.
    """
    from evalwright.cli.arguments import key_values, load_plugins
    from evalwright.models.registry import open_model
    from evalwright.smoke import smoke_test

    load_plugins(plugins)
    verdicts = smoke_test(open_model(model, key_values(arguments, "-M")), words=words, home=home)
    if as_json:
        print_json([verdict.as_dict() for verdict in verdicts])
    for verdict in verdicts if not as_json else ():
        click.echo(f"{verdict.result:<5} {verdict.case} ({verdict.words:,} words): {verdict.why}")
        if verdict.answer:
            line = " ".join(verdict.answer.split())
            click.echo(f"      {line[:300]}{'…' if len(line) > 300 else ''}")
    return int(any(verdict.result == "fail" for verdict in verdicts))


def _ask(model: object, text: str) -> str:
    import asyncio

    from evalwright.configuration import home_folder
    from evalwright.core.requests import Generate, Message, Prompt
    from evalwright.engine.engine import Engine
    from evalwright.engine.store import Store
    from evalwright.models.base import Model

    assert isinstance(model, Model)
    prompt: Prompt = (Message("user", text),) if "chat" in model.abilities else text

    async def once() -> str:
        with Store.open(home_folder()) as store:
            async with Engine(store) as engine:
                response = await engine.door({"target": model})("target", Generate(prompt, max_tokens=64))
                return response.text

    return asyncio.run(once())
