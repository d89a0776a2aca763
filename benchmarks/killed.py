"""Runs that are killed on the way and started again: how many requests they take in all, beside
lm_eval, inspect_ai and promptfoo.

    python -m benchmarks killed [--systems evalwright,lm_eval,inspect_ai,promptfoo]
        [--questions 400] [--at-once 16] [--kills 1]

A server that takes 50 ms counts the requests. A run is ended by `kill -9`, with all that it
started, when its share of the questions was received (with one kill half of them); then the same
command is run again, or what the system's documentation recommends. What was in flight at a kill
has to be sent again: at most --at-once requests for each kill. Where more is sent, answers were
lost. Only evalwright is killed more than once.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import peers
from measuring import Table, add_numbers, measure_command, option_parser
from overhead import questions
from peer_commands import (
    COMMANDS,
    EXIT_CODES,
    LATENCY,
    SYSTEMS,
    ensure_systems,
    environment,
    promptfoo_bin,
    start,
)
from remote import Setting, fetch_books, serving


@dataclass(frozen=True)
class Restart:
    """How a killed run is started again.

    Attributes:
        system: its name.
        way: what the table says.
        extra: added to the command.
        resume: a script in place of the command; "" for the same command.
    """

    system: str
    way: str
    extra: tuple[str, ...] = ()
    resume: str = ""


RESTARTS = (
    Restart("evalwright", "the same command"),
    Restart("lm_eval", "the same command"),
    Restart("lm_eval", "--use_cache", ("--use_cache", "cache/answers")),
    Restart("inspect_ai", "the same command"),
    Restart(
        "inspect_ai",
        "inspect eval-retry",
        resume="BIN/inspect eval-retry logs/*.eval --display none --log-dir logs",
    ),
    Restart("promptfoo", "the same command (its cache is on)"),
    Restart("promptfoo", "--resume", resume="PROMPTFOO eval --resume --no-table"),
)
COLUMNS = (
    "system",
    "started again by",
    "kills",
    "before the last",
    "in all",
    "its end",
)


def measure_killed(
    systems: Sequence[str], n_questions: int = 400, at_once: int = 16, kills: int = 1
) -> None:
    """Print the requests in all for each way to start again."""
    table = Table(COLUMNS)
    for restart in RESTARTS:
        if restart.system not in systems:
            continue
        n_kills = kills if restart.system == "evalwright" else 1
        with serving(*LATENCY) as server, tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            questions(folder / "questions.jsonl", n_questions)
            setting = Setting(f"{server}/v1", at_once, limit_announced=True)
            command = COMMANDS[restart.system](folder, setting)
            command += restart.extra
            for number in range(1, n_kills + 1):
                share = number * n_questions // (n_kills + 1)
                kill_at(command, folder, server, share)
            before = fetch_books(server, "counts?short")["received"]
            last_lines = start_again(restart, command, folder, setting)
            received = fetch_books(server, "counts?short")["received"]
        table.add(restart.system, restart.way, n_kills, before, received, last_lines)


def kill_at(command: Sequence[str], folder: Path, server: str, received: int) -> None:
    """Start a command, and kill it when the server has received so many requests."""
    process = start(command, folder, f"{server}/v1")
    while fetch_books(server, "counts?short")["received"] < received:
        assert process.poll() is None, (folder / "output.log").read_text()[-2000:]
        time.sleep(0.01)
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    time.sleep(0.3)  # the server sees what was still on its way


def start_again(
    restart: Restart, command: Sequence[str], folder: Path, setting: Setting
) -> str:
    """Run a killed command to its end; return the end of what it prints."""
    if restart.resume:
        script = restart.resume.replace("BIN", str(peers.INSPECT.bin))
        if "PROMPTFOO" in script:
            script = script.replace("PROMPTFOO", promptfoo_bin())
        else:
            script += f" --max-connections {setting.at_once}"
        command = ["sh", "-c", script]
    log = folder / "output.log"
    log.unlink()
    try:
        measure_command(command, folder, environment(folder, setting.url), EXIT_CODES)
        lines = log.read_text(errors="replace").strip().splitlines()
    except RuntimeError as error:
        lines = str(error).splitlines()
    return " / ".join(lines[-3:])[:300]


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    add_numbers(parser, questions=400, at_once=16, kills=1)
    options = parser.parse_args(words)
    systems = options.systems.split(",")
    ensure_systems(systems)
    measure_killed(systems, options.questions, options.at_once, options.kills)
    return 0


if __name__ == "__main__":
    sys.exit(main())
