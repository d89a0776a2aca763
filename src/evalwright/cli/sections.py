"""Help of a command with many options: those that are used first, and all of them in sections."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import click

HELP_ALL = "--help-all"


class SectionedCommand(click.Command):
    """A command whose `--help` shows the options of one section, and `--help-all` those of all.

    Args:
        sections: headings with the options below them, each by its first name; `--help` shows the
            first section.
    """

    def __init__(
        self, *args: Any, sections: Mapping[str, Sequence[str]], **settings: Any
    ) -> None:
        super().__init__(*args, **settings)
        self.sections = sections
        self.params.append(
            click.Option(
                [HELP_ALL],
                is_flag=True,
                is_eager=True,
                expose_value=False,
                help="Show all options and exit.",
                callback=_show_all,
            )
        )

    def format_options(
        self, ctx: click.Context, formatter: click.HelpFormatter
    ) -> None:
        """Write the options of the first section, or of all where they were asked for."""
        rows = {}
        for param in self.get_params(ctx):
            row = param.get_help_record(ctx)
            if row is not None:
                rows[param.opts[0]] = row
        everything = bool(ctx.meta.get(HELP_ALL))
        first, *others = self.sections.items()
        for heading, names in (first, *others) if everything else (first,):
            with formatter.section(heading):
                formatter.write_dl([rows[name] for name in names])
        # click keeps a command's help option, whose names are those of the first context.
        help_option = self.get_help_option(ctx)
        helps = [help_option.opts[0], HELP_ALL] if help_option else [HELP_ALL]
        with formatter.section("Help"):
            formatter.write_dl([rows[name] for name in helps])
        if not everything:
            formatter.write_paragraph()
            count = sum(len(names) for _, names in others)
            listed = ", ".join(heading.lower() for heading, _ in others)
            formatter.write_text(
                f"{count} more options ({listed}) are shown by {HELP_ALL}."
            )


def _show_all(ctx: click.Context, param: click.Parameter, is_set: bool) -> None:
    if is_set and not ctx.resilient_parsing:
        ctx.meta[HELP_ALL] = True
        click.echo(ctx.get_help(), color=ctx.color)
        ctx.exit()
