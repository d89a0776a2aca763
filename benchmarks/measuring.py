"""What benchmarks share: options, Markdown tables, CPU seconds of processes, the machine."""

from __future__ import annotations

import argparse
import os
import platform
import subprocess
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aiohttp import web

_TICKS = os.sysconf("SC_CLK_TCK")


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
        print(_line(columns))
        print(f"|{'---|' * len(columns)}", flush=True)

    def add(self, *cells: object) -> None:
        """Print a row."""
        assert len(cells) == self._n_columns, cells
        print(_line(cells), flush=True)


def _line(cells: Iterable[object]) -> str:
    texts = (str(cell).replace("|", "\\|").replace("\n", " ") for cell in cells)
    return f"| {' | '.join(texts)} |"


def cpu_of_process(pid: int) -> float:
    """Return the CPU seconds of a process so far, user and system, without its children."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


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
