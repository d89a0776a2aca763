"""The command as a whole: versions, help in plain words, exit codes, a pipe that closes, and
faults of our own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import click
import pytest

from evalwright import cli
from evalwright.cli.command_line import COMMANDS, MOVED, SECTIONS
from evalwright.cli.sections import HELP_ALL, SectionedCommand
from support.command import environment
from support.typed import typed


def commands() -> list[tuple[str, ...]]:
    """Every command and every command of a group."""

    def below(group: click.Group, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
        context = click.Context(group)
        for name in group.list_commands(context):
            yield (*path, name)
            command = group.get_command(context, name)
            if isinstance(command, click.Group):
                yield from below(command, (*path, name))

    return [(), *below(cli.cli, ())]


def test_the_sections_of_the_help_have_every_command_once() -> None:
    listed = [name for names in SECTIONS.values() for name in names]
    assert sorted(listed) == sorted(COMMANDS)


@pytest.mark.parametrize(
    ("command_name", "first", "later"),
    [("run", "--model", "--gpus-per-replica"), ("leaderboard", "--html", "--latex")],
)
def test_long_help_shows_ten_options_and_help_all_each_in_one_section(
    command_name: str, first: str, later: str
) -> None:
    module = import_module(f"evalwright.cli.{command_name}")
    sections = module.SECTIONS
    command = getattr(module, command_name)
    assert isinstance(command, SectionedCommand)
    listed = [name for names in sections.values() for name in names]
    declared = [
        param.opts[0]
        for param in command.params
        if isinstance(param, click.Option) and param.opts[0] != HELP_ALL
    ]
    assert sorted(listed) == sorted(declared)
    short = typed(command_name, "--help").out
    assert len(sections["Options"]) == 10
    assert first in short
    assert later not in short
    assert HELP_ALL in short
    everything = typed(command_name, "--help-all")
    assert everything.code == 0
    assert all(f"  {name}" in everything.out for name in declared)


def test_a_second_context_may_name_the_option_for_help_otherwise() -> None:
    command = SectionedCommand(
        "name", sections={"Options": ["--one"]}, params=[click.Option(["--one"])]
    )
    for names in (["--help"], ["-h", "--help"]):
        shown = command.get_help(click.Context(command, help_option_names=names))
        assert "--help" in shown.split() and HELP_ALL in shown.split()


@pytest.mark.parametrize("old", MOVED)
def test_an_earlier_name_works_and_says_the_new_one(old: str) -> None:
    done = typed(old, "--help")
    assert done.code == 0
    assert done.out.startswith(f"Usage: evalwright {old}")
    now = typed(*MOVED[old].split(), "--help")
    assert done.out.splitlines()[1:] == now.out.splitlines()[1:]
    assert f"\n  {old} " not in typed("--help").out


def test_help_of_every_command() -> None:
    for command in commands():
        done = typed(*command, "--help")
        short = typed(*command, "-h")
        assert (done.code, done.err, short.out) == (0, "", done.out)
        assert done.out.startswith(
            f"Usage: evalwright{''.join(f' {word}' for word in command)}"
        )
        assert not re.search(
            r"\b(nobody|asked|asking|lies?|surely)\b", done.out, re.IGNORECASE
        ), command
        for line in done.out.splitlines():
            if line.strip().startswith("--") and " " in line.strip():
                assert len(line.split(maxsplit=1)) == 2, (
                    f"an option without a word of help: {line}"
                )


@pytest.mark.parametrize(
    ("arguments", "reader"),
    [("tasks list", "head -1"), ("models list", "true"), ("--help", "true")],
)
def test_a_reader_that_goes_away_is_no_fault(
    folder: Path, reader: str, arguments: str
) -> None:
    line = (
        f'"$PYTHON" -m evalwright {arguments} | {reader}; echo "${{PIPESTATUS[0]}}" >&2'
    )
    done = subprocess.run(
        ["bash", "-c", line],
        cwd=folder,
        env=environment({"PYTHON": sys.executable}),
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stderr == "0\n"


def test_a_fault_of_ours_says_so_and_can_be_seen(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def broken(self: object) -> None:
        raise ZeroDivisionError("oops")

    monkeypatch.setattr("evalwright.tasks.index.TaskIndex.entries", broken)
    done = typed("tasks", "list")
    assert done.code == 2
    assert "a bug in evalwright" in done.err
    assert "ZeroDivisionError: oops" in done.err
    assert "EVALWRIGHT_DEBUG=1" in done.err
    monkeypatch.setenv("EVALWRIGHT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        typed("tasks", "list")


def test_an_interruption_ends_with_130_and_says_how_to_go_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def interrupted(self: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("evalwright.tasks.index.TaskIndex.entries", interrupted)
    done = typed("tasks", "list")
    assert done.code == 130
    assert "run the same command again" in done.err
