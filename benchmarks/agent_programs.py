"""Agents of others by `agent-command`, killed at random moments and run again: what is paid twice.

    python -m benchmarks agent_programs [--packages FOLDER] [--kills 10] [--seed 0]
        [--programs urllib,openai,mini-swe-agent]

FOLDER has mini-swe-agent and openai; by default they are installed. Each program runs unchanged on
six small tasks in a jail. The command is killed with SIGKILL, with all that it started, and runs
again; the model's server counts what it receives. Whatever was stored at a kill may not come again,
and the record must equal that of an undisturbed run.
"""

from __future__ import annotations

import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path

from measuring import Table, option_parser
from peers import AGENTS

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

LATENCY_SECONDS = 0.1
COLUMNS = (
    "program",
    "seconds undisturbed",
    "requests",
    "kills",
    "received by the server",
    "stored and received again",
    "equal record",
)


def measure(
    name: str, packages: str, kills: int, chance: random.Random, table: Table
) -> None:
    """Run a program undisturbed and killed, and print its row."""
    from support.killed_programs import (
        finish,
        kill_and_resume,
        lines,
        model_of,
        programs,
        received,
        write_task,
    )
    from support.scripted_chat import scripted_chat

    program = programs(packages)[name]
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place:
        folder = Path(place)
        write_task(folder, program)
        began = time.monotonic()
        with scripted_chat(model_of(program), LATENCY_SECONDS) as calm:
            finish(folder, calm, "calm")
        seconds = time.monotonic() - began
        with scripted_chat(model_of(program), LATENCY_SECONDS) as server:
            known = kill_and_resume(folder, server, kills, chance)
            final = received(server)
        again = sum(final[request] > before for request, before in known.items())
        is_equal = lines(folder, "killed") == lines(folder, "calm")
        counts = (len(calm.bodies), kills, len(server.bodies), again)
        table.add(name, f"{seconds:.1f}", *counts, "yes" if is_equal else "NO")


def main(words: Sequence[str] | None = None) -> int:
    parser = option_parser(__doc__)
    parser.add_argument("--packages", type=Path)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--programs", default="urllib,openai,mini-swe-agent")
    options = parser.parse_args(words)
    names = options.programs.split(",")
    if options.packages is None and names != ["urllib"]:
        AGENTS.ensure()
        options.packages = AGENTS.packages
    packages = str(options.packages.resolve()) if options.packages else ""
    table = Table(COLUMNS)
    for name in names:
        measure(name, packages, options.kills, random.Random(options.seed), table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
