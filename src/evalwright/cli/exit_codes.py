"""Runs a command: what it raises becomes a message and an exit code.

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

from evalwright.cli.foreign_commands import SPELLINGS
from evalwright.core.deprecation import OldName

if TYPE_CHECKING:
    from evalwright.cli.signals import StopSignals


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


_ONE_TASK = (
    "`evalwright leaderboard` has no {}. To rank by one task, name its metric: --metric"
    " TASK.METRIC, for example --metric capitals.accuracy; or keep the others beside"
    " it: --rank-by TASK."
)
_MODEL_ARGUMENT = (
    "No such option '{}': it is an argument of the model, -M {}. -M devices=all has a copy"
    " of a local model on each GPU, -M replicas=N has N processes."
)
OPTION_HINTS = {
    ("leaderboard", "--task"): _ONE_TASK.format("--task"),
    **{
        (command, option): _MODEL_ARGUMENT.format(option, argument)
        for command in ("run", "plan")
        for option, argument in (
            ("--devices", "devices=all"),
            ("--devices-per-replica", "devices_per_replica=2"),
        )
    },
}
"""What to write instead of an option that a command does not have, by both."""


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
        # Code that it ran wanted to leave, or click took an error of its pipes for one of ours.
        cause = ended.__context__
        return _report_failure(
            cause
            if isinstance(cause, OSError)
            else RuntimeError(f"SystemExit({ended.code!r})")
        )
    except Exception as error:
        return _report_failure(error)


def _suggest_option(error: click.NoSuchOption, arguments: Sequence[str]) -> str | None:
    """Return what to write instead of an option that the command does not have.

    That is the whole line where the option is another program's, else our command that has it; None
    if none has.
    """
    from evalwright.cli.unknown_options import suggest_own_option

    if error.ctx is None:
        return None
    path = error.ctx.command_path.split()[1:]
    if hint := OPTION_HINTS.get((" ".join(path), error.option_name)):
        return hint
    own_suggestion = suggest_own_option(error)
    native = {
        option: not (isinstance(param, click.Option) and (param.is_flag or param.count))
        for param in error.ctx.command.params
        for option in (*param.opts, *param.secondary_opts)
        if isinstance(param, click.Option)
    }
    for spelling in SPELLINGS:
        remaining = list(arguments)[len(path) :]
        suggestion: str | None = resolve_name(spelling)(
            error.option_name, tuple(path), remaining, native, _data_files(remaining)
        )
        if suggestion and (own_suggestion is None or "Write: " in suggestion):
            return suggestion
    return own_suggestion


def _data_files(arguments: Sequence[str]) -> dict[str, bool]:
    """Find the data files among arguments, and whether the columns of each hold options."""
    from evalwright.core.errors import EvalwrightError
    from evalwright.tasks.column_names import option_columns
    from evalwright.tasks.data_files import as_data_file, columns_of

    has_options: dict[str, bool] = {}
    for argument in arguments:
        for name in argument.removeprefix("--tasks=").split(","):
            path = as_data_file(name)
            if path is None:
                continue
            try:
                has_options[name] = bool(option_columns(columns_of(path)))
            except EvalwrightError:
                has_options[name] = False
    return has_options


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
