"""Workers of one run (`run --worker`): killed at random moments, and what they cost.

    python -m benchmarks workers [--only kills,speed] [--seeds 3] [--samples 1500] [--workers 8]
        [--events 20]

`kills`: workers share a PostgreSQL store and a budget, and ask a server that keeps a log and a
bill. At random moments one is killed (`kill -9`), stopped (SIGTERM) or paused (SIGSTOP), and others
join. In the end the record must be that of one undisturbed process, nothing that was stored may
have been sent again, and the bill must be within the budget. Every other seed has a budget that
does not suffice.

`speed`: seconds of CPU a sample and wall time of a plain run and of 1, 2 and 4 workers.
"""

from __future__ import annotations

import argparse
import os
import random
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measuring import Table, option_parser

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.billing_server import EACH  # noqa: E402
from support.command import record  # noqa: E402
from support.postgres import Server, running  # noqa: E402
from support.worker_trials import (  # noqa: E402
    Disturber,
    Trial,
    comparable,
    worker_trial,
)

KILL_COLUMNS = (
    "seed",
    "what happened",
    "answered",
    "sent again",
    "billed, of the budget",
    "in the record",
    "exit codes",
)


def run_with_kills(
    server: Server, seed: int, options: argparse.Namespace
) -> tuple[str, ...]:
    """Run one seed, and return its row of the table.

    Raises AssertionError where something is lost, paid twice or beyond the budget.
    """
    suffices = seed % 2 == 0
    budget = options.samples * EACH * (3.0 if suffices else 0.6)
    chance = random.Random(seed)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "together"
        folder.mkdir()
        with worker_trial(
            folder,
            server.url(),
            count=options.samples,
            options=("--budget", f"{budget:.4f} USD"),
            seconds=0.1,
        ) as trial:
            disturber = Disturber(trial, options.workers, chance)
            disturber.disturb(options.events, within=1.0 if suffices else 0.5)
            disturber.end()
            row = _check(trial, disturber, budget, suffices)
            if suffices:
                _check_equal(trial, Path(temporary) / "alone")
    return (str(seed), *row)


def _check(
    trial: Trial, disturber: Disturber, budget: float, suffices: bool
) -> tuple[str, ...]:
    events = disturber.events
    bill = trial.dollars()
    usage = record(trial.run)["usage"]
    again = sum(count - 1 for count in trial.server.received.values())
    sent_again = trial.sent_again()
    assert not sent_again, f"sent again although stored: {sent_again[:5]}"
    assert bill <= budget * (1 + 1e-9), f"billed {bill} of {budget}"
    assert again <= disturber.at_risk, "more sent again than was not stored"
    unbilled = bill - usage["cost"]
    assert -1e-6 <= unbilled <= disturber.at_risk * EACH + 1e-6, (
        f"the record has {usage['cost']}, the bill is {bill}"
    )
    answered = len(trial.stored())
    if suffices:
        assert answered == trial.count, "a question has no answer"
    codes = sorted({process.wait() for process in trial.processes})
    happened = ", ".join(f"{count} {name}" for name, count in sorted(events.items()))
    return (
        happened,
        f"{answered:,} of {trial.count:,}",
        str(again),
        f"{bill:.3f} of {budget:.3f}",
        f"{usage['cost']:.3f}",
        str(codes),
    )


def _check_equal(trial: Trial, folder: Path) -> None:
    folder.mkdir()
    trial.alone(folder)
    alone = folder / "runs" / trial.run.name
    assert comparable(trial.run) == comparable(alone), "another record"


def measure_speed(server: Server, options: argparse.Namespace) -> None:
    """Print CPU and wall time of a plain run and of several numbers of workers."""
    table = Table(["processes", "CPU ms a sample", "wall s", "samples a second"])
    for repeat in range(options.seeds):
        for workers in map(int, options.processes.split(",")):
            with (
                tempfile.TemporaryDirectory() as temporary,
                worker_trial(
                    Path(temporary), server.url(), count=options.samples, seconds=0.0
                ) as trial,
            ):
                cpu, wall = _timed(trial, workers)
            name = f"{workers} workers" if workers else "plain run"
            table.add(
                f"{name} ({repeat + 1})",
                f"{1000 * cpu / options.samples:.3f}",
                f"{wall:.1f}",
                f"{options.samples / wall:.0f}",
            )


def _timed(trial: Trial, workers: int) -> tuple[float, float]:
    """Return the CPU seconds and the wall time of the run; 0 workers is a plain run."""
    began = time.perf_counter()
    before = os.times()
    if workers:
        processes = [trial.start() for _ in range(workers)]
    else:
        processes = [
            subprocess.Popen(
                [sys.executable, *trial.command()],
                cwd=trial.folder,
                env=trial.environment(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
        ]
    for process in processes:
        assert process.wait() == 0
    after = os.times()
    cpu = (after.children_user + after.children_system) - (
        before.children_user + before.children_system
    )
    return cpu, time.perf_counter() - began


def main(arguments: list[str] | None = None) -> None:
    """Run the parts that the arguments name."""
    parser = option_parser(__doc__)
    parser.add_argument("--only", default="kills,speed", help="kills, speed or both")
    parser.add_argument("--seeds", type=int, default=3, help="trials with kills")
    parser.add_argument("--first-seed", type=int, default=0)
    parser.add_argument("--samples", type=int, default=1_500, help="of each trial")
    parser.add_argument("--workers", type=int, default=8, help="of each trial")
    parser.add_argument(
        "--events", type=int, default=20, help="kills, stops and pauses"
    )
    parser.add_argument(
        "--processes", default="0,1,2,4", help="for speed; 0 is a plain run"
    )
    options = parser.parse_args(arguments)
    measurements = options.only.split(",")
    with running() as server:
        if "kills" in measurements:
            table = Table(KILL_COLUMNS)
            for seed in range(options.first_seed, options.first_seed + options.seeds):
                table.add(*run_with_kills(server, seed, options))
        if "speed" in measurements:
            measure_speed(server, options)


if __name__ == "__main__":
    main()
