"""What benchmarks share: options, Markdown tables, CPU seconds of processes, the machine."""

from __future__ import annotations

import argparse
import os
import platform
import re
import signal
import socket
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

if TYPE_CHECKING:
    from aiohttp import web

_TICKS = os.sysconf("SC_CLK_TCK")
Figure = TypeVar("Figure")


def option_parser(documentation: str | None) -> argparse.ArgumentParser:
    """Make a parser whose help is the documentation of a benchmark's module."""
    return argparse.ArgumentParser(
        description=documentation,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def add_numbers(parser: argparse.ArgumentParser, **defaults: int) -> None:
    """Add options that are whole numbers, by name, with their defaults."""
    for name, default in defaults.items():
        option_name = f"--{name.replace('_', '-')}"
        parser.add_argument(option_name, type=int, default=default)


class Table:
    """A Markdown table that is printed row by row.

    Args:
        columns: the heads.
        title: a line above it; "" for none.
    """

    def __init__(self, columns: Sequence[str], title: str = "") -> None:
        self._n_columns = len(columns)
        print(f"\n{title}\n" if title else "")
        print("\n".join(table_lines(columns, [])), flush=True)

    def add(self, *cells: object) -> None:
        """Print a row."""
        assert len(cells) == self._n_columns, cells
        print(_line(cells), flush=True)


def table_lines(columns: Sequence[str], rows: Iterable[Iterable[object]]) -> list[str]:
    """Return the lines of a Markdown table."""
    return [_line(columns), f"|{'---|' * len(columns)}", *map(_line, rows)]


def _line(cells: Iterable[object]) -> str:
    texts = (str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(texts)} |"


def cpu_of_process(pid: int) -> float:
    """Return the CPU seconds of a process so far, user and system, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def peak_mib() -> float:
    """Return the highest memory use of this process so far, in MiB."""
    # Not `ru_maxrss`, which a process inherits from the one that started it.
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    line = next(line for line in lines if line.startswith("VmHWM"))
    return int(line.split()[1]) / 1024


@dataclass(frozen=True)
class ProcessUsage:
    """What a finished command took.

    Attributes:
        cpu: seconds of CPU, with those of its children.
        wall: seconds until it ended.
        memory: peak of its largest process, in MiB.
    """

    cpu: float
    wall: float
    memory: float


def measure_command(
    command: Sequence[str],
    folder: Path,
    environment: Mapping[str, str] | None = None,
    codes: Sequence[int] = (0,),
) -> ProcessUsage:
    """Run a command to its end, with its output at the end of `output.log` in the folder.

    Args:
        command: the command and its arguments.
        folder: its working folder.
        environment: its environment; None for that of this process.
        codes: exit codes of success.

    Raises:
        RuntimeError: it ends with another code; with the end of its output.
    """
    log = folder / "output.log"
    began = time.perf_counter()
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
        )
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode not in codes:
        raise RuntimeError(
            f"{' '.join(command)} ended with {process.returncode}:\n"
            + log.read_text(errors="replace")[-2000:]
        )
    return ProcessUsage(usage.ru_utime + usage.ru_stime, wall, usage.ru_maxrss / 1024)


def take_turns(
    ways: Mapping[str, Callable[[], Figure]], repeats: int
) -> dict[str, list[Figure]]:
    """Measure each way once in every repeat, so that all meet the same load of the machine.

    Args:
        ways: by name, what measures once.
        repeats: how often.

    Returns:
        The figures of each way, by name.
    """
    figures: dict[str, list[Figure]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, measure in ways.items():
            figures[name].append(measure())
    return figures


@contextmanager
def started_server(command: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Start a server that prints its port, and end it with the block.

    Yields:
        Its process id and its address.
    """
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        assert process.stdout is not None
        yield process.pid, f"http://127.0.0.1:{process.stdout.readline().strip()}"
    finally:
        process.terminate()
        process.wait()


def free_port() -> int:
    """Find a port that nothing listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(
    command: Sequence[str],
    folder: Path,
    address: str,
    environment: Mapping[str, str] | None = None,
    wait_seconds: float = 60,
) -> Iterator[str]:
    """Start a server, with its output in `server.log`, and end it with the block.

    Args:
        command: the command and its arguments.
        folder: its working folder.
        address: what answers once it is ready.
        environment: its environment; None for that of this process.
        wait_seconds: how long it may take.

    Yields:
        The address, or the longer one with a key that it printed.

    Raises:
        SystemExit: it does not answer in time; with the end of its output.
    """
    log = folder / "server.log"
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=output,
            start_new_session=True,
        )
    try:
        until = time.monotonic() + wait_seconds
        while not (opened := _answering_address(address, log)):
            if process.poll() is not None or time.monotonic() > until:
                text = log.read_text(errors="replace")[-2000:]
                raise SystemExit(f"{command[0]} did not start:\n{text}")
            time.sleep(0.1)
        yield opened
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
        process.wait()


def _answering_address(address: str, log: Path) -> str:
    """Return the address, as printed if it was; "" if it does not answer."""
    printed = re.search(rf"{re.escape(address)}\S*", log.read_text(errors="replace"))
    candidate = printed[0] if printed else address
    try:
        urllib.request.urlopen(candidate, timeout=5).close()
    except OSError:
        return ""
    return candidate


async def serve_forever(app: web.Application) -> None:
    """Serve an application on a free port of this machine, which is printed, until it is ended."""
    import asyncio

    from aiohttp import web

    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.Event().wait()


def describe_machine() -> dict[str, str | int]:
    """Return what the figures were taken on: processor, cores, load, memory, Python."""
    return {
        "processor": _processor(),
        "cores": len(os.sched_getaffinity(0)),
        "load": f"{os.getloadavg()[0]:.1f}",
        "memory": f"{_memory_bytes() / 2**30:.0f} GiB",
        "system": f"{platform.system()} {platform.machine()}",
        "python": platform.python_version(),
    }


def machine_line() -> str:
    """Return the machine in one line."""
    machine = describe_machine()
    return (
        f"{machine['processor']}, {machine['cores']} cores, load {machine['load']},"
        f" {machine['memory']}, {machine['system']}, Python {machine['python']}"
    )


def _processor() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or "unknown processor"
    names = [
        line.split(":", 1)[1].strip() for line in lines if line[:10] == "model name"
    ]
    return names[0] if names else "unknown processor"


def _memory_bytes() -> int:
    return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
