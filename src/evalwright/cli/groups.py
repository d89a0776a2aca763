"""Groups of commands, which answer an unknown command with the closest names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pkgutil import resolve_name
from typing import Any

import click

_RESUME_WORDS = ("resume", "retry", "continue", "restart")


class CommandGroup(click.Group):
    """A group like click's, but an unknown command is an error like every unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises:
            UnknownName: there is no such command.
        """
        from evalwright.core.errors import UnknownName, closest, known_names

        name = args[0] if args else ""
        if name and not name.startswith("-") and self.get_command(ctx, name) is None:
            commands = self.list_commands(ctx)
            if ctx.parent is not None:
                hint = known_names(name, commands, "Commands: ")
                raise UnknownName(
                    f"command of `{ctx.command_path}`", name, commands, hint
                )
            hint = (
                "To resume a run, run the same command again. "
                if name in _RESUME_WORDS
                else ""
            )
            if not closest(name, commands):
                hint += f"Commands: {', '.join(commands)}."
            raise UnknownName("command", name, commands, hint)
        return super().resolve_command(ctx, args)


class LazyGroup(CommandGroup):
    """A group that imports a command's module only when it is used, so that help is fast.

    Args:
        table: names in the order of use, each with where it is ("MODULE:NAME", within cli) and what
            it does.
        sections: headings of the help with the names below them; without it there is one list.
        moved: for an earlier name, the words that name its command now. It works for one more
            release, with a note.
    """

    def __init__(
        self,
        *args: Any,
        table: Mapping[str, tuple[str, str]],
        sections: Mapping[str, Sequence[str]] | None = None,
        moved: Mapping[str, str] | None = None,
        **settings: Any,
    ) -> None:
        super().__init__(*args, **settings)
        self.table = table
        self.sections = sections or {}
        self.moved = moved or {}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """The names of the commands, those of the group's own module first."""
        return [*self.commands, *self.table]

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """The command with that name, also where the name is an earlier one."""
        if cmd_name in self.table:
            entry_point = self.table[cmd_name][0]
            command: click.Command = resolve_name(
                entry_point if "." in entry_point else f"evalwright.cli.{entry_point}"
            )
            return command
        if cmd_name in self.moved:
            return self._moved_command(ctx, cmd_name)
        return super().get_command(ctx, cmd_name)

    def _moved_command(self, ctx: click.Context, old_name: str) -> click.Command | None:
        group: click.Group = self
        *path, name = self.moved[old_name].split()
        for step in path:
            inner = group.get_command(ctx, step)
            assert isinstance(inner, click.Group)
            group = inner
        return group.get_command(ctx, name)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """The command that the first argument names, with a note where the name is an earlier one.

        Raises UnknownName.
        """
        if args and args[0] in self.moved:
            from evalwright.core.deprecation import warn_old_name

            program = ctx.command_path
            warn_old_name(
                f"{program} {args[0]}",
                f"{program} {self.moved[args[0]]}",
                "The command",
            )
        return super().resolve_command(ctx, args)

    def format_commands(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """List the commands, without importing those of other modules."""
        texts = {
            **{
                name: command.get_short_help_str(limit=90)
                for name, command in self.commands.items()
            },
            **{name: text for name, (_, text) in self.table.items()},
        }
        width = max(map(len, texts))
        sections = self.sections or {"Commands": tuple(texts)}
        for heading, names in sections.items():
            with formatter.section(heading):
                formatter.write_dl([(name.ljust(width), texts[name]) for name in names])
