"""A group of commands that reports an unknown command with the closest names."""

from __future__ import annotations

import click

from evalwright.core.errors import UnknownName, known_names


class CommandGroup(click.Group):
    """A group like click's, but an unknown command is an error like every unknown name."""

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Return the command that the first argument names.

        Raises:
            UnknownName: there is no such command.
        """
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
