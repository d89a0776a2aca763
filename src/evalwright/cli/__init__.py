"""The command `evalwright`: one file per command; each parses options, calls the API and prints.

Exit codes: 0 done; 1 done, with failures or a gate not met; 2 wrong usage, or nothing could be
stored; 130 interrupted (143 by SIGTERM, 129 by SIGHUP).
"""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pkgutil import resolve_name
from typing import TYPE_CHECKING, Any

import click

from evalwright._version import __version__
from evalwright.cli.foreign_commands import FOREIGN_COMMANDS, SPELLINGS
from evalwright.core.deprecation import OldName

if TYPE_CHECKING:
    from evalwright.cli.signals import StopSignals

COMMANDS = {
    "init": (
        "init:init",
        "Write a task, a suite file and a GitHub workflow, from two questions.",
    ),
    "run": ("run:run", "Evaluate models on tasks."),
    "jobs": (
        "jobs:jobs",
        "Print job files that run an evaluation in shards on a cluster.",
    ),
    "plan": (
        "plan:plan",
        "Estimate what a run costs and what it can detect, before any request is sent.",
    ),
    "tasks": ("tasks:tasks", "List, show, preview and check tasks."),
    "models": (
        "models:models",
        "List model providers; check that a model can be used.",
    ),
    "doctor": (
        "doctor:doctor",
        "Say what works here; with --live, try real providers, the hub and devices.",
    ),
    "score": ("score:score", "Score a run's recorded answers again."),
    "aggregate": (
        "aggregate:aggregate",
        "Compute a run's metrics again from its recorded scores.",
    ),
    "compare": (
        "compare:compare",
        "Compare runs, paired by item; fail where one is worse.",
    ),
    "calibration": (
        "calibration:calibration",
        "Check whether models know when they are right.",
    ),
    "contamination": (
        "contamination:contamination",
        "Look for signs that a model has memorised questions.",
    ),
    "leaderboard": ("leaderboard:leaderboard", "Make a leaderboard of runs."),
    "plot": (
        "plot:plot",
        "Draw a figure of runs: scores, differences, cost, calibration and others.",
    ),
    "judge": ("judge:judge", "Check a judge against people, and correct its scores."),
    "batches": ("batches:batches", "List batch jobs at providers; forget one."),
    "store": (
        "store:store",
        "Show, check, prune, export, import and merge stored responses.",
    ),
    "submit": (
        "submit:submit",
        "Write, verify and add files of results for another leaderboard.",
    ),
    "runs": ("runs:runs", "List, show, check and merge runs; write their index."),
    "view": ("view:view", "Look at runs and their samples in a browser."),
    "import": ("foreign:import_", "Import results of other programs as runs."),
    "export": ("foreign:export", "Export runs as files of other programs."),
    **FOREIGN_COMMANDS,
    "completion": (
        "completion:completion",
        "Print what completes commands and names in a shell.",
    ),
}

COMPLETE = "_EVALWRIGHT_COMPLETE"
"""The environment variable that a shell sets to request completions."""


_RESUME_WORDS = ("resume", "retry", "continue", "restart")


class LazyGroup(click.Group):
    """Imports a command's module only when it is used, so that help and lists are fast."""

    table = COMMANDS
    """The commands in the order of use, each with its module and a description."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names of the commands, in the order of use."""
        return list(self.table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return the command with that name."""
        if cmd_name not in COMMANDS:
            return None
        entry_point = COMMANDS[cmd_name][0]
        command: click.Command = resolve_name(
            entry_point if "." in entry_point else f"evalwright.cli.{entry_point}"
        )
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Resolve like click, but report an unknown command with the closest names."""
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


@click.group(
    cls=LazyGroup,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
    epilog=(
        "First steps: evalwright run factual-choice --model demo/small --model"
        " demo/large. For your own: evalwright init"
    ),
)
@click.version_option(__version__, message="evalwright %(version)s")
def cli() -> None:
    """Evaluate language models: any benchmark, any model, every number with its uncertainty."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; bad input never shows a traceback."""
    if os.environ.get(COMPLETE):
        code: int = resolve_name("evalwright.cli.completion:complete")()
        return code
    return run_command(cli, arguments, "evalwright")


def run_command(
    command: click.Command, arguments: Sequence[str] | None, name: str, **context: Any
) -> int:
    """Run a command like `main`; `context` has settings of click, such as `obj`."""
    from evalwright.cli.output import outlets
    from evalwright.cli.signals import stop_signals

    argument_list = list(arguments) if arguments is not None else None

    def call() -> Any:
        return command.main(
            args=argument_list, prog_name=name, standalone_mode=False, **context
        )

    with outlets() as stdout, stop_signals() as stop, _old_names_as_notes():
        code = _run_reporting_errors(call, stop, argument_list)
        lost = stdout.write_error
        if lost is None or lost.errno in (errno.EPIPE, errno.EBADF):
            return code
        say(f"The result could not be printed: {lost.strerror or lost}.")
        return code or 1


@contextmanager
def _old_names_as_notes() -> Iterator[None]:
    """Print warnings about old names as notes, without the line of code that a warning shows."""
    with warnings.catch_warnings():
        show_warning = warnings.showwarning

        def show(
            message: Warning | str,
            category: type[Warning],
            *location: Any,
            **options: Any,
        ) -> None:
            if issubclass(category, OldName):
                say(f"Note: {message}")
            else:
                show_warning(message, category, *location, **options)

        warnings.simplefilter("always", OldName)
        warnings.showwarning = show
        yield


def _run_reporting_errors(
    command: Callable[[], Any], stop: StopSignals, arguments: Sequence[str] | None
) -> int:
    from evalwright.cli.signals import ServingEnded

    try:
        exit_code = command()
        return exit_code if isinstance(exit_code, int) else 0
    except click.exceptions.Exit as ended:
        return ended.exit_code
    except click.NoSuchOption as error:
        if meant := _suggest_option(
            error, sys.argv[1:] if arguments is None else arguments
        ):
            say(f"Error: {meant}")
        else:
            error.show(file=sys.stderr)
        return 2
    except click.ClickException as error:
        error.show(file=sys.stderr)
        return 2
    except ServingEnded:
        return stop.exit_code
    except (KeyboardInterrupt, click.Abort):
        say(
            "Interrupted. Answers that a run had received are kept; run the same"
            " command again to continue."
        )
        return stop.exit_code
    except SystemExit as ended:
        # Code that the command ran tried to exit, or click mistook an error for one of its own
        # pipes.
        cause = ended.__context__
        return _report_failure(
            cause
            if isinstance(cause, OSError)
            else RuntimeError(f"SystemExit({ended.code!r})")
        )
    except Exception as error:
        return _report_failure(error)


def _suggest_option(error: click.NoSuchOption, arguments: Sequence[str]) -> str | None:
    """Return what to write instead of an option of another program; None if no program has it."""
    if error.ctx is None:
        return None
    path = error.ctx.command_path.split()[1:]
    native = {
        option: not (isinstance(param, click.Option) and (param.is_flag or param.count))
        for param in error.ctx.command.params
        for option in (*param.opts, *param.secondary_opts)
        if isinstance(param, click.Option)
    }
    for spelling in SPELLINGS:
        remaining = list(arguments)[len(path) :]
        suggestion: str | None = resolve_name(spelling)(
            error.option_name, tuple(path), remaining, native
        )
        if suggestion:
            return suggestion
    return None


def _report_failure(error: Exception) -> int:
    from evalwright.core.errors import EvalwrightError

    if isinstance(error, EvalwrightError):
        say(f"Error: {error}")
        return 2
    if os.environ.get("EVALWRIGHT_DEBUG"):
        raise error
    say(
        "Error: this is a bug in evalwright, not in your command"
        f" ({type(error).__name__}: {error}). Answers received so far are kept. Set"
        " EVALWRIGHT_DEBUG=1 to see where it happened, and please report it."
    )
    return 2


def conclude(*sentences: str) -> int:
    """Print what went wrong, if anything did, and return the exit code for it."""
    for sentence in filter(None, sentences):
        say(sentence)
    return int(any(sentences))


def say(sentence: str) -> None:
    """Print a sentence for a person, on standard error."""
    from evalwright.cli.output import echo

    echo(sentence, error=True)
