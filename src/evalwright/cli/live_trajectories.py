"""`evalwright runs live`: what the models of a run that is going on do now."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evalwright.cli.options import RUNS_FOLDER, flag, option
from evalwright.cli.output import echo
from evalwright.core.errors import RunError

if TYPE_CHECKING:
    from evalwright.runs.open_trajectories import (
        LiveEvent,
        LiveRun,
        OpenTrajectory,
        Turn,
    )

SECONDS_BETWEEN_LOOKS = 0.5
LINE_CHARS = 160
"""Characters of a turn on one line."""
MOST_LISTED = 20
"""Open trajectories on a screen."""


@click.command()
@click.argument("run")
@RUNS_FOLDER
@option("--id sample", "SAMPLE", "Only the trajectories of this sample.", default="")
@flag("--once", "Show what is going on now, and end.")
def live(run: str, runs_folder: str, sample: str, once: bool) -> None:
    """Show what the models of a RUN that is going on do now, until it ends.

    On a terminal it is one screen, which is renewed; elsewhere a line for each turn.
    """
    from evalwright.reports.terminal import is_live_terminal
    from evalwright.runs.open_trajectories import LiveRun

    folder = _folder_of(run, Path(runs_folder))
    live_run = LiveRun(folder)
    try:
        if once:
            live_run.look()
            _print_lines(_screen(live_run, sample))
        elif is_live_terminal(sys.stdout):
            _follow_on_a_screen(folder, live_run, sample)
        else:
            _follow_in_lines(folder, live_run, sample)
    finally:
        live_run.close()


def _folder_of(run: str, runs_folder: Path) -> Path:
    """Return the folder of a run, finished or not.

    Raises:
        RunError: there is none.
    """
    from evalwright.reports.explorer.following import run_folders

    for folder in (Path(run), runs_folder / run):
        if folder.is_dir() and folder in run_folders(folder.parent):
            return folder
    growing = [folder.name for folder in run_folders(runs_folder) if _is_open(folder)]
    others = f" Going on: {', '.join(growing)}." if growing else ""
    raise RunError(
        f"There is no run '{run}' in '{runs_folder}': name it as `evalwright run --name`"
        f" did, and its folder with --out.{others}"
    )


def _is_open(folder: Path) -> bool:
    from evalwright.runs.writer import growing

    open_run = growing(folder)
    return open_run is not None and open_run.running


def _follow_in_lines(folder: Path, live_run: LiveRun, sample: str) -> None:
    has_shown = False
    while True:
        # Looked at first: what is written between the two is seen in the next round.
        is_open = _is_open(folder)
        for event in live_run.look():
            if sample and event.trajectory.id != sample:
                continue
            has_shown = True
            _print_lines(_event_lines(event))
        if not is_open:
            break
        time.sleep(SECONDS_BETWEEN_LOOKS)
    echo("The run has ended." if has_shown else _nothing_sentence(folder))


def _follow_on_a_screen(folder: Path, live_run: LiveRun, sample: str) -> None:
    from rich.live import Live
    from rich.text import Text

    from evalwright.reports.text import inert

    with Live(auto_refresh=False) as display:
        while True:
            is_open = _is_open(folder)
            live_run.look()
            lines = [inert(line) for line in _screen(live_run, sample)]
            display.update(
                Text("\n".join(lines), no_wrap=True, overflow="ellipsis"), refresh=True
            )
            if not is_open:
                break
            time.sleep(SECONDS_BETWEEN_LOOKS)
    echo("The run has ended.")


def _nothing_sentence(folder: Path) -> str:
    return (
        f"Nothing is going on in '{folder.name}'. `evalwright runs samples"
        f" {folder.name}` shows what was recorded."
    )


def _screen(live_run: LiveRun, sample: str) -> Iterator[str]:
    """Write the open trajectories: a line for each, and its last turn."""
    trajectories = [
        trajectory
        for trajectory in live_run.open.values()
        if sample in ("", trajectory.id)
    ]
    plural = "y" if len(trajectories) == 1 else "ies"
    yield f"{len(trajectories):,} open trajector{plural}"
    for trajectory in trajectories[:MOST_LISTED]:
        attempt = f", attempt {trajectory.attempt}" if trajectory.attempt > 1 else ""
        yield (
            f"{_name(trajectory)}: {trajectory.n_replies:,} steps,"
            f" {trajectory.n_turns:,} turns{attempt}"
        )
        if trajectory.turns:
            yield f"  {turn_line(trajectory.turns[-1])}"
    if len(trajectories) > MOST_LISTED:
        yield f"and {len(trajectories) - MOST_LISTED:,} more"


def _event_lines(event: LiveEvent) -> Iterator[str]:
    name = _name(event.trajectory)
    if event.starts_anew:
        yield f"{name}  starts again (attempt {event.trajectory.attempt})"
    for turn in event.turns:
        yield f"{name}  {turn_line(turn)}"
    if event.ended:
        yield f"{name}  done"


def _name(trajectory: OpenTrajectory) -> str:
    from evalwright.reports.text import shorten

    repeat = f" #{trajectory.draw}" if trajectory.draw else ""
    return f"{shorten(trajectory.id, 40)}{repeat}"


def turn_line(turn: Turn) -> str:
    """Write a turn on one line: its role, and its text or calls."""
    from evalwright.reports.text import shorten
    from evalwright.runs.open_trajectories import extras_of, text_of
    from evalwright.runs.recorded_answers import written_calls

    extras = extras_of(turn)
    role = str(turn[0])
    if tool := extras.get("tool_name"):
        role = f"{tool}{' failed' if extras.get('is_error') else ''}"
    text = " ".join(text_of(turn)[: 4 * LINE_CHARS].split())
    calls = " ".join(" ".join(written_calls(_calls_of(extras))).split())
    return shorten(f"{role}: {' '.join(filter(None, (text, calls)))}", LINE_CHARS)


def _calls_of(extras: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    calls = extras.get("tool_calls")
    members = calls if isinstance(calls, list) else ()
    return [call for call in members if isinstance(call, Mapping)]


def _print_lines(lines: Iterator[str]) -> None:
    for line in lines:
        echo(line)
