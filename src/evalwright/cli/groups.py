"""Groups of commands, which answer an unknown command with the closest names."""

from __future__ import annotations

from collections.abc import Mapping
from pkgutil import resolve_name

import click

_RESUME_WORDS = ("resume", "retry", "continue", "restart")


class LazyGroup(click.Group):
    """Imports a command's module only when it is used, so that help and lists are fast."""

    table: Mapping[str, tuple[str, str]] = {}
    """Names in the order of use, each with where it is and what it does."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, in the order of use."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with that name."""
        if cmd_name not in self.table:
            return None
        entry_point = self.table[cmd_name][0]
        command: click.Command = resolve_name(
            entry_point if "." in entry_point else f"evalwright.cli.{entry_point}"
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Like click's, but an unknown command comes with the closest names."""
        if args and args[0] not in self.table and not args[0].startswith("-"):
            from evalwright.core.errors import UnknownName, closest

            hint = (
                "To resume a run, run the same command again. "
                if args[0] in _RESUME_WORDS
                else ""
            )
            if not closest(args[0], self.table):
                hint += f"Commands: {', '.join(self.table)}."
            raise UnknownName("command", args[0], self.table, hint)
        return super().resolve_command(ctx, args)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands without importing any."""
        with formatter.section("Commands"):
            formatter.write_dl([(name, text) for name, (_, text) in self.table.items()])


class CommandGroup(click.Group):
    """Like click's group, but an unknown command is an error like every unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names. Raises UnknownName."""
        from evalwright.core.errors import UnknownName, known_names

        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            commands = self.list_commands(ctx)
            raise UnknownName(
                f"command of `{ctx.command_path}`",
                name,
                commands,
                known_names(name, commands, "Commands: "),
            )
        return super().resolve_command(ctx, args)
