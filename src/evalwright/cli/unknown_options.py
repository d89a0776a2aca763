"""What is said of an option that a command does not have, but another command of ours has."""

from __future__ import annotations

from collections.abc import Iterator

import click

from evalwright.cli.foreign_commands import FOREIGN_COMMANDS

WRITING_OPTIONS = ("-o", "--output", "--output-file", "--outfile", "--save")
"""What people type for a file to write, where our commands read runs of the folder --out."""

ADVICE = {
    ("plan", "--limit"): (
        " A plan covers whole tasks; to measure on some items first, use --pilot N."
    ),
}
"""What else is said, by command and option."""


def suggest_own_option(error: click.NoSuchOption) -> str | None:
    """Say which of our commands has an option, or how the command writes a file.

    Returns:
        The sentence; None where no command has the option.
    """
    if error.ctx is None:
        return None
    command = error.ctx.command
    name = error.option_name.partition("=")[0]
    path = error.ctx.command_path
    if name in WRITING_OPTIONS and _reads_runs(command):
        return f"No such option '{name}' of `{path}`. {_writing_advice(command)}"
    root = error.ctx.find_root()
    owners = list(_find_owners(root, name))
    if not owners:
        return None
    words = tuple(path.split()[1:])
    siblings = words[:-1]

    def distance(owner: tuple[str, click.Option]) -> tuple[bool, bool]:
        """Commands of the same group come first, then `run`."""
        owner_words = tuple(owner[0].split())
        is_sibling = bool(siblings) and owner_words[:-1] == siblings
        return not is_sibling, owner[0] != "run"

    owner_path, option = min(owners, key=distance)
    usage = " ".join(filter(None, (name, option.metavar)))
    return (
        f"No such option '{name}' of `{path}`; `{root.command_path} {owner_path}` has it"
        f" ({usage}: {_first_sentence(option.help)})."
        f"{ADVICE.get((' '.join(words), name), '')}"
    )


def _first_sentence(text: str | None) -> str:
    return (text or "").partition(". ")[0].rstrip(".")


def _options(command: click.Command) -> Iterator[click.Option]:
    for param in command.params:
        if isinstance(param, click.Option):
            yield param


def _reads_runs(command: click.Command) -> bool:
    """Whether --out is the folder of the runs that the command reads."""
    return any(
        "--out" in option.opts and (option.help or "").startswith("Where runs")
        for option in _options(command)
    )


def _writing_advice(command: click.Command) -> str:
    """How the command writes its result; its --out is another thing."""
    writing = [
        f"{option.opts[0]} {option.metavar}"
        for option in _options(command)
        if option.metavar == "FILE" and (option.help or "").startswith("Write")
    ]
    folder = "--out is the folder where runs are"
    if writing:
        return f"To write a file: {', '.join(writing)}; {folder}."
    return f"To write what is printed to a file, end the command with > FILE; {folder}."


def _find_owners(root: click.Context, name: str) -> Iterator[tuple[str, click.Option]]:
    """Find the commands with an option of this name, in the order of the help."""
    group = root.command
    if not isinstance(group, click.Group):
        return
    for command_name in group.list_commands(root):
        if command_name in FOREIGN_COMMANDS:
            continue
        command = group.get_command(root, command_name)
        if command is None:
            continue
        for option in _options(command):
            if name in option.opts:
                yield command_name, option
        if not isinstance(command, click.Group):
            continue
        for child_name in command.list_commands(root):
            child = command.get_command(root, child_name)
            for option in _options(child) if child is not None else ():
                if name in option.opts:
                    yield f"{command_name} {child_name}", option
