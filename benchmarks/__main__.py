"""Runs a benchmark, or lists them all.

    python -m benchmarks
    python -m benchmarks NAME --help
    python -m benchmarks NAME [options] [--json FILE]

A benchmark prints Markdown tables, and last the machine on which they were taken; --json writes
them to a file, too. Programs that it is measured beside are installed in `benchmarks/.peers`.
"""

from __future__ import annotations

import difflib
import importlib
import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from io import TextIOBase
from pathlib import Path
from typing import Any, TextIO

HERE = Path(__file__).resolve().parent
# Benchmarks import each other and the support of the tests by their bare names. The package itself
# comes from where it is installed, or from this clone.
sys.path[:0] = [str(HERE), str(HERE.parent / "tests")]
sys.path.append(str(HERE.parent / "src"))

from catalogue import (  # noqa: E402
    CORE_MODULES,
    Benchmark,
    install_command,
    missing_modules,
    read_catalogue,
)
from measuring import Table, describe_machine, machine_line  # noqa: E402

USAGE_ERROR = 2


class Transcript(TextIOBase):
    """A stream that also keeps what it writes.

    Args:
        stream: where it is written.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._parts: list[str] = []

    def write(self, text: str) -> int:
        """Write and keep a text."""
        self._parts.append(text)
        return self._stream.write(text)

    def flush(self) -> None:
        """Flush the stream."""
        self._stream.flush()

    def fileno(self) -> int:
        """Return the stream's descriptor, for processes that inherit it."""
        return self._stream.fileno()

    @property
    def text(self) -> str:
        """All that was written."""
        return "".join(self._parts)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; returns the exit code."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    benchmarks = read_catalogue()
    if not words or words == ["list"]:
        list_benchmarks(benchmarks)
        return 0
    if words[0] in ("-h", "--help"):
        print(__doc__)
        return 0
    name = words[0].replace("-", "_")
    if name not in benchmarks:
        return complain(unknown_name(words[0], list(benchmarks)))
    try:
        json_file, options = take_json_option(words[1:])
    except ValueError as error:
        return complain(str(error))
    benchmark = benchmarks[name]
    is_help = asks_for_help(options)
    missing = missing_modules(CORE_MODULES if is_help else benchmark.needed_modules)
    if not missing:
        return run(benchmark, options, json_file)
    if is_help:
        print(benchmark.documentation)
    return complain(
        f"'{name}' needs {', '.join(missing)}, which Python does not find:"
        f" {install_command(missing)}"
    )


def asks_for_help(options: Sequence[str]) -> bool:
    """Tell whether the options ask for the help."""
    return "-h" in options or "--help" in options


def run(benchmark: Benchmark, options: Sequence[str], json_file: Path | None) -> int:
    """Run a benchmark and show the machine; returns the exit code."""
    began = time.monotonic()
    transcript = Transcript(sys.stdout)
    with redirect_stdout(transcript):
        code = call_main(benchmark, options)
        if code == USAGE_ERROR and benchmark.needs:
            print(f"'{benchmark.name}' needs: {benchmark.needs}.", file=sys.stderr)
        tables = markdown_tables(transcript.text)
        if tables:
            print(f"\n{machine_line()}")
    if json_file is not None and code != USAGE_ERROR:
        record = {
            "benchmark": benchmark.name,
            "options": list(options),
            "exit_code": code,
            "seconds": round(time.monotonic() - began, 1),
            "machine": describe_machine(),
            "tables": tables,
        }
        text = json.dumps(record, indent=1, ensure_ascii=False)
        json_file.write_text(f"{text}\n", encoding="utf-8")
    return code


def call_main(benchmark: Benchmark, options: Sequence[str]) -> int:
    """Import a benchmark and call its `main`; returns the exit code."""
    path = os.environ.get("PYTHONPATH", "")
    source = str(HERE.parent / "src")
    # For processes that the benchmark starts.
    os.environ["PYTHONPATH"] = f"{path}{os.pathsep}{source}" if path else source
    sys.argv = [f"python -m benchmarks {benchmark.name}", *options]
    try:
        module = importlib.import_module(benchmark.module)
        entry: Callable[[], Any] = module.main
        return int(entry() or 0)
    except SystemExit as ending:
        if isinstance(ending.code, str):
            return complain(ending.code, code=1)
        return int(ending.code or 0)
    except KeyboardInterrupt:
        return complain("Interrupted.", code=130)


def list_benchmarks(benchmarks: dict[str, Benchmark]) -> None:
    """Print what there is."""
    table = Table(["name", "measures", "minutes", "needs", "installs"])
    for benchmark in benchmarks.values():
        modules = [name for name in benchmark.modules if name != "aiohttp"]
        needs = [*modules, *([benchmark.needs] if benchmark.needs else [])]
        table.add(
            benchmark.name,
            benchmark.subject,
            benchmark.minutes,
            ", ".join(needs),
            ", ".join(benchmark.peers),
        )
    print(
        "\nMinutes are those of the defaults on two cores; `NAME --help` has the options."
    )


def unknown_name(name: str, known: list[str]) -> str:
    """Return what to say of a name that no benchmark has."""
    close = difflib.get_close_matches(name, known, n=3, cutoff=0.7)
    hint = f" Did you mean {' or '.join(close)}?" if close else ""
    return f"There is no benchmark '{name}'.{hint} `python -m benchmarks` lists all."


def take_json_option(words: Sequence[str]) -> tuple[Path | None, list[str]]:
    """Take `--json FILE` out of a benchmark's options.

    Raises:
        ValueError: no file follows, or its folder does not exist.
    """
    rest: list[str] = []
    json_file: Path | None = None
    remaining = iter(words)
    for word in remaining:
        if word != "--json" and not word.startswith("--json="):
            rest.append(word)
            continue
        name = word.partition("=")[2] or next(remaining, "")
        if not name or name.startswith("-"):
            raise ValueError("--json needs a file: --json FILE.")
        json_file = Path(name).resolve()
        if not json_file.parent.is_dir():
            raise ValueError(f"--json {name}: its folder does not exist.")
    return json_file, rest


def markdown_tables(text: str) -> list[list[dict[str, str]]]:
    """Return the Markdown tables of a text: for each, its rows by column."""
    tables: list[list[dict[str, str]]] = []
    columns: list[str] = []
    before: list[str] = []
    for line in text.splitlines():
        cells = split_row(line)
        if not cells:
            columns = []
        elif all(cell and not cell.strip("-:") for cell in cells):
            columns = before
            tables.append([])
        elif columns:
            tables[-1].append(dict(zip(columns, cells, strict=False)))
        before = cells
    return tables


def split_row(line: str) -> list[str]:
    """Return the cells of a table's row; [] for another line."""
    line = line.strip()
    if not (line.startswith("|") and line.endswith("|") and len(line) > 1):
        return []
    cells = line[1:-1].replace("\\|", "\0").split("|")
    return [cell.strip().replace("\0", "|") for cell in cells]


def complain(sentence: str, code: int = USAGE_ERROR) -> int:
    """Say what is wrong; returns the exit code."""
    print(sentence, file=sys.stderr)
    return code


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # the reader has seen enough: `| head`
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)
