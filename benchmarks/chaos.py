"""Everything goes wrong, by name: server faults, kills, signals, disk states, each against a
provider that keeps its own bill.

    python -m benchmarks chaos [--only PART] [--list]

Each case asks the same questions: first with the fault and a budget, then again with a sound server
and no budget. The table says of each case how many sendings came, what they were billed, and what
the ledger says; and these must hold:

    lost      a question without an answer in the end, or an answer that was stored and is no more
    again     a request that was sent although its answer was stored
    over      dollars billed beyond the budget and what was in flight
    missing   dollars billed that the ledger has not, beyond what was in flight when the program
              was killed
    counts    whether the record counts what its samples say
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import Table, option_parser

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from support.billing_server import (  # noqa: E402
    EACH,
    PRICE,
    STATUS,
    TOLD,
    UNTOLD,
    WAITS,
    BillingServer,
    Fate,
)
from support.command import environment, write_questions  # noqa: E402
from support.openai_server import running  # noqa: E402

N = 12
AT_ONCE = 4
BUDGET = 20 * EACH
STORE = Path("home") / "store.sqlite"
RECORD = Path("runs") / "chaos" / "run.json"


@dataclass
class Case:
    """One fault to inject. fate: on the server. stopped: the program is ended from outside,
    at a sending. before: done to the folder between a sound run and the faulty one. damages: the
    stored answers that `before` may cost.
    """

    name: str
    fate: Fate = lambda prompt, sendings: "ok"
    stopped: Callable[[subprocess.Popen[bytes]], None] | None = None
    before: Callable[[Path], None] | None = None
    damages: int = 0
    limit: Callable[[], None] | None = None
    streams: bool = False
    holder: Callable[[Path], Any] | None = None

    @property
    def apart(self) -> bool:
        """Whether the faulty run is a process of its own."""
        return self.stopped is not None or self.limit is not None


@dataclass
class Outcome:
    """What a case led to."""

    sent: int = 0
    billed: float = 0.0
    ledger: float = 0.0
    lost: int = 0
    again: int = 0
    over: float = 0.0
    missing: float = 0.0
    wrong: list[str] = field(default_factory=list)

    @property
    def sound(self) -> bool:
        """Whether everything held."""
        return not (
            self.lost
            or self.again
            or self.over > 1e-9
            or self.missing > 1e-9
            or self.wrong
        )


def settings(server: BillingServer, case: Case, folder: Path) -> dict[str, Any]:
    """What each run of a case has in common, in the words of `evaluate`."""
    from evalwright import ModelSpec

    # A program of its own needs a moment before its first request has left it.
    arguments: dict[str, Any] = {
        "timeout": 3 if case.apart else 0.5,
        "max_attempts": 3,
        "max_concurrency": AT_ONCE,
    }
    arguments |= {"stream": True} if case.streams else {}
    return {
        "tasks": str(folder / "questions.yaml"),
        "models": ModelSpec(f"openai/{server.url}#m", arguments),
        "price": PRICE,
        "home": str(folder / "home"),
        "out": str(folder / "runs"),
        "name": "chaos",
        "replace": True,
    }


def run_here(**run_settings: Any) -> None:
    """Run in this process; errors that a user would read are ignored."""
    from evalwright.core.errors import EvalwrightError
    from evalwright.evaluation.evaluating import evaluate

    with suppress(EvalwrightError):
        evaluate(run_settings.pop("tasks"), run_settings.pop("models"), **run_settings)


def command(run_settings: dict[str, Any], **more: str) -> list[str]:
    """The same run as a command line."""
    options = {
        name: str(run_settings[name]) for name in ("price", "home", "out", "name")
    } | more
    words = [word for name, value in options.items() for word in (f"--{name}", value)]
    spec = run_settings["models"]
    words += [
        word
        for name, value in spec.arguments.items()
        for word in ("-M", f"{name}={value}")
    ]
    return [
        sys.executable,
        "-m",
        "evalwright",
        "run",
        run_settings["tasks"],
        "--model",
        spec.model,
        "--replace",
        *words,
    ]


@contextmanager
def start_run(
    words: list[str], folder: Path, case: Case | None = None
) -> Iterator[subprocess.Popen[bytes]]:
    """Start the command as a separate process."""
    output = (
        subprocess.PIPE
        if case is not None and case.name.startswith("closed")
        else subprocess.DEVNULL
    )
    process = subprocess.Popen(
        words,
        cwd=folder,
        env=environment(),
        stdin=subprocess.DEVNULL,
        stdout=output,
        stderr=output,
        preexec_fn=case.limit if case is not None else None,  # one thread here forks
    )
    try:
        yield process
    finally:
        with suppress(subprocess.TimeoutExpired):
            process.communicate(timeout=60)
        if process.poll() is None:
            process.kill()
            process.communicate()


def read_stored(folder: Path) -> set[str]:
    """The questions with intact answers in the store."""
    from evalwright.engine.store_rows import checksum_of, unpack

    if not (folder / STORE).is_file():
        return set()
    questions = set()
    try:
        with closing(sqlite3.connect(folder / STORE)) as file:
            for key, model, request, response, checksum in file.execute(
                "SELECT key, model, request, response, checksum FROM responses"
            ):
                if checksum is None or checksum == checksum_of(
                    key, model, request, response
                ):
                    questions.add(json.loads(unpack(request))["generate"][0][1])
    except sqlite3.Error:
        return set()
    return questions


def ledger(folder: Path) -> float:
    """Dollars in the ledger."""
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / STORE)) as file:
        return float(
            file.execute("SELECT ifnull(sum(dollars), 0) FROM ledger").fetchone()[0]
        )
    return 0.0


def play(case: Case) -> Outcome:
    """Run one case from beginning to end."""
    outcome = Outcome()
    with tempfile.TemporaryDirectory() as place, running(BillingServer()) as server:
        folder = Path(place)
        write_questions(folder, N)
        paid_before = 0.0
        run_settings = settings(server, case, folder)
        if case.before is not None:
            run_here(**run_settings | {"limit": N // 2, "name": "half"})
            case.before(folder)
            paid_before = server.dollars() - ledger(
                folder
            )  # a ledger that the disk state took
        stored_times = {
            prompt: server.received[prompt] for prompt in read_stored(folder)
        }
        billed = server.dollars()
        server.fate = case.fate
        server.most_in_flight = 0
        server.seconds = 0.05 if case.apart else 0.0
        holder = case.holder(folder) if case.holder is not None else None
        if case.apart:
            with start_run(
                command(run_settings, budget=f"{BUDGET} USD"), folder, case
            ) as process:
                while (
                    case.stopped
                    and process.poll() is None
                    and len(server.sendings) < N // 3
                ):
                    time.sleep(0.002)
                if case.stopped is not None:
                    case.stopped(process)
        else:
            run_here(**run_settings, budget=f"{BUDGET} USD")
        if holder is not None:
            holder.close()
        time.sleep(0.05)  # what was on its way comes in
        flying = server.most_in_flight * EACH
        outcome.over = max(0.0, server.dollars() - billed - BUDGET - flying)
        stored_questions = read_stored(folder)
        outcome.lost += (
            len(stored_times.keys() - stored_questions) if not case.damages else 0
        )
        stored_times |= {
            prompt: server.received[prompt]
            for prompt in stored_questions
            if prompt not in stored_times
        }
        outcome.wrong += counts(folder, case)
        server.fate = lambda prompt, sendings: "ok"
        server.seconds = 0.0
        mend(folder)
        for _ in range(2):
            run_here(**run_settings, resend_empty=True)
        outcome.again = sum(
            server.received[prompt] > times for prompt, times in stored_times.items()
        )
        outcome.lost += N - len(read_stored(folder))
        outcome.wrong += counts(folder, case, complete=True)
        outcome.sent = len(server.sendings)
        outcome.billed = server.dollars()
        outcome.ledger = ledger(folder)
        # Sent and not yet on disk: what the server has, and what waits to be written.
        ended = case.stopped is not None or case.limit is not None or case.damages
        killed = 2 * AT_ONCE * EACH if ended else 0.0
        outcome.missing = max(
            0.0, outcome.billed - outcome.ledger - paid_before - killed
        )
    return outcome


def counts(folder: Path, case: Case, complete: bool = False) -> list[str]:
    """List what is wrong in a run's record."""
    if not (folder / RECORD).is_file():
        return [f"no record after {case.name}"] if complete else []
    data = json.loads((folder / RECORD).read_text())
    rows = [
        json.loads(line) for line in (folder / RECORD).with_name("samples.jsonl").open()
    ]
    failed = [row["failure"]["kind"] for row in rows if row.get("failure")]
    (task,) = data["tasks"]
    wrong = []
    if task["n_missing"] != len(failed) or sum(task["failures"].values()) != len(
        failed
    ):
        wrong.append(f"{task['n_missing']} failed, {len(failed)} in the samples")
    if len({row["id"] for row in rows}) != len(rows):
        wrong.append("a sample twice")
    if complete and (len(rows) != N or failed):
        wrong.append(f"{len(rows)} samples, {len(failed)} failed: {failed[:1]}")
    return wrong


def mend(folder: Path) -> None:
    """Move the damaged file away, as a user would after an error that names it."""
    for path in (folder / "home", folder / "runs"):
        if path.is_file():
            path.unlink()
    with suppress(sqlite3.Error), closing(sqlite3.connect(folder / STORE)) as file:
        if file.execute("PRAGMA integrity_check").fetchone()[0] == "ok":
            return
    shutil.rmtree(folder / "home", ignore_errors=True)


# -- what goes wrong -------------------------------------------------------------------


def once(fate: str) -> Fate:
    """Each request fails this way once."""
    return lambda prompt, sendings: fate if sendings == 0 else "ok"


def always(fate: str) -> Fate:
    """Every attempt of every request fails this way."""
    return lambda prompt, sendings: fate


def one_request(fate: str) -> Fate:
    """Only the first request fails this way."""
    return lambda prompt, sendings: (
        fate if sendings == 0 and "00003" in prompt else "ok"
    )


def kill(number: int) -> Callable[[subprocess.Popen[bytes]], None]:
    return lambda process: process.send_signal(number)


def pause(process: subprocess.Popen[bytes]) -> None:
    """Stop the process for longer than a request may take, then continue it."""
    process.send_signal(signal.SIGSTOP)
    time.sleep(0.6)
    process.send_signal(signal.SIGCONT)


def interrupt_twice(process: subprocess.Popen[bytes]) -> None:
    """Press Ctrl-C twice."""
    process.send_signal(signal.SIGINT)
    time.sleep(0.05)
    process.send_signal(signal.SIGINT)


def hang_up(process: subprocess.Popen[bytes]) -> None:
    """Close the pipe that the process prints to."""
    for pipe in (process.stdout, process.stderr):
        if pipe is not None:
            pipe.close()
    process.stdout = process.stderr = None


def sql(*statements: str) -> Callable[[Path], None]:
    """Run SQL on the store's file."""

    def change(folder: Path) -> None:
        with closing(sqlite3.connect(folder / STORE)) as file, file:
            for statement in statements:
                file.execute(statement)

    return change


def flip_bit(column: str) -> Callable[[Path], None]:
    """Flip one bit in one column of every second row."""

    def change(folder: Path) -> None:
        with closing(sqlite3.connect(folder / STORE)) as file, file:
            for row, value in file.execute(
                f"SELECT id, {column} FROM responses WHERE id % 2"
            ).fetchall():
                raw = bytearray(value if isinstance(value, bytes) else value.encode())
                raw[len(raw) // 2] ^= 1
                file.execute(
                    f"UPDATE responses SET {column}=? WHERE id=?", (bytes(raw), row)
                )

    return change


def overwrite_with_zeros(start: float, length: int) -> Callable[[Path], None]:
    """Overwrite `length` bytes of the store with zeros, from a share `start` of the file on."""

    def change(folder: Path) -> None:
        with (folder / STORE).open("r+b") as file:
            file.seek(int((folder / STORE).stat().st_size * start))
            file.write(bytes(length))

    return change


def cut(folder: Path) -> None:
    """Cut the store's file in half."""
    os.truncate(folder / STORE, (folder / STORE).stat().st_size // 2)


def put_file_at(name: str) -> Callable[[Path], None]:
    """Put a file where a folder should be."""

    def change(folder: Path) -> None:
        shutil.rmtree(folder / name, ignore_errors=True)
        (folder / name).write_text("not a folder")

    return change


def foreign_claims(folder: Path) -> None:
    """Leave claims of a program that no longer runs."""
    sql(
        "INSERT OR REPLACE INTO claims SELECT key, '1-dead' FROM responses",
        "DELETE FROM responses WHERE id > 3",
    )(folder)


def locked(folder: Path) -> sqlite3.Connection:
    """Let another program write for a while, then kill it."""
    file = sqlite3.connect(folder / STORE, check_same_thread=False)
    file.execute("BEGIN IMMEDIATE")
    subprocess.Popen(["sleep", "0.1"]).wait()
    file.rollback()
    file.execute("BEGIN")
    file.execute("SELECT count(*) FROM responses").fetchone()
    return file


def limit_file_size(size: int) -> Callable[[], None]:
    """Limit the size of every file, as a full disk would."""
    return lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))


def cases() -> list[Case]:
    """All cases."""
    faults = sorted((TOLD | UNTOLD | set(STATUS) | {"error-in-200"}) - {"ok", "429"})
    all_cases = [
        Case(
            f"every request once: {fate}", once(fate), streams=fate.startswith("stream")
        )
        for fate in faults
    ]
    all_cases += [
        Case(f"one request: {fate}", one_request(fate)) for fate in sorted(WAITS)
    ]
    all_cases += [
        Case(f"every request always: {fate}", always(fate))
        for fate in ("empty", "hang", "500", "401", "no-choices", "reset")
    ]
    signals = (
        signal.SIGKILL,
        signal.SIGINT,
        signal.SIGTERM,
        signal.SIGHUP,
        signal.SIGQUIT,
    )
    all_cases += [
        Case(f"the program gets {signal_number.name}", stopped=kill(signal_number))
        for signal_number in signals
    ]
    all_cases += [
        Case(
            "the program gets SIGKILL amid empty replies",
            once("empty"),
            stopped=kill(signal.SIGKILL),
        ),
        Case(
            "the program gets SIGINT amid timeouts",
            once("hang"),
            stopped=kill(signal.SIGINT),
        ),
        Case("the program gets SIGINT twice", stopped=interrupt_twice),
        Case("the program is paused", stopped=pause),
        Case("closed output", stopped=hang_up),
        *(
            Case(f"one bit flipped: {name}", before=flip_bit(name), damages=3)
            for name in ("request", "response", "key")
        ),
        Case("zeros amid the store", before=overwrite_with_zeros(0.6, 64), damages=6),
        Case(
            "zeros at the store's beginning",
            before=overwrite_with_zeros(0.0, 64),
            damages=6,
        ),
        Case("half of the store", before=cut, damages=6),
        Case(
            "a store of the version before",
            before=sql(
                "ALTER TABLE responses DROP COLUMN checksum",
                "DROP TABLE ledger",
                "DROP TABLE empty",
                "DROP TABLE owners",
                "DROP TABLE models",
                "PRAGMA user_version=1",
            ),
        ),
        Case("claims of a dead program", before=foreign_claims, damages=3),
        Case(
            "a store that another program reads and wrote",
            before=lambda folder: None,
            holder=locked,
        ),
        Case("a file for the home folder", before=put_file_at("home"), damages=6),
        Case("a file for the runs folder", before=put_file_at("runs")),
        Case(
            "no records any more", before=lambda folder: shutil.rmtree(folder / "runs")
        ),
        Case("a full disk at 60 kB", limit=limit_file_size(60_000)),
        Case("a full disk at 20 kB", limit=limit_file_size(20_000)),
    ]
    return all_cases


def main(words: Sequence[str] | None = None) -> int:
    parser = option_parser(__doc__)
    parser.add_argument("--only", default="", help="cases whose name has this in it")
    parser.add_argument("--list", action="store_true")
    options = parser.parse_args(words)
    chosen = [case for case in cases() if options.only in case.name]
    if options.list:
        print("\n".join(case.name for case in chosen))
        return 0
    columns = ("sent", "billed", "ledger", "lost", "again", "over", "missing", "counts")
    table = Table(["case", *columns])
    bad = 0
    for case in chosen:
        outcome = play(case)
        bad += not outcome.sound
        table.add(
            case.name,
            outcome.sent,
            f"{outcome.billed:.3f}",
            f"{outcome.ledger:.3f}",
            outcome.lost,
            outcome.again,
            f"{outcome.over:.3f}",
            f"{outcome.missing:.3f}",
            "; ".join(outcome.wrong) or "right",
        )
    print(f"{len(chosen)} cases, {bad} in which something did not hold")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main())
