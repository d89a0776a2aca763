"""The command as a whole: versions, help in plain words, exit codes, a pipe that closes, and
faults of our own.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import click
import pytest

from evalwright import cli
from evalwright.cli import COMMANDS
from support.command import environment
from support.typed import typed


def commands() -> list[tuple[str, ...]]:
    """Every command and every command of a group."""
    found: list[tuple[str, ...]] = [()]
    context = click.Context(cli.cli)
    for name in COMMANDS:
        found.append((name,))
        command = cli.cli.get_command(context, name)
        if isinstance(command, click.Group):
            found += [(name, command) for command in command.commands]
    return found


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
