"""The numbers of many small evaluations, recorded once with one state of the code and compared with
another's, exactly.

    python -m benchmarks recorded_numbers make FOLDER --source OLD/src --shared DIR
    python -m benchmarks recorded_numbers check FOLDER --source NEW/src [--out DIR]

`make` evaluates, and keeps store, runs and numbers in FOLDER. `check` does the same again from the
store, and lists every difference.

`check` copies the store and runs the commands anew: not one request may be sent. What is computed
from finished runs (comparisons, boards, gates, exports, imports) is computed twice, from the runs
that `make` kept and from the new ones. Only the command line is used and the files that it writes,
so that the code under it may change as it likes. Exit code 1 where anything differs.
"""

from __future__ import annotations

import csv
import gzip
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import option_parser
from recorded_commands import ANALYSES, EVALUATIONS, RENAMED
from recorded_differences import (
    Difference,
    differences,
    numbers_of_run,
    numbers_of_text,
    table,
)
from recorded_inputs import write_inputs
from recorded_server import Server

PORT = 18734
"""Of the loopback server; part of what its models are known by, so `check` takes the same."""


@dataclass(frozen=True)
class Workspace:
    """A working folder: `runs`, `inputs` and `files` in it, a store beside or in it, and the code
    to run.
    """

    folder: Path
    home: Path
    source: Path
    shared: Path
    url: str
    only: str = ""

    def commands(self, table: dict[str, str]) -> dict[str, str]:
        """The commands of a table that match `only`."""
        return {
            name: command
            for name, command in table.items()
            if re.search(self.only, name)
        }

    def call(self, name: str, command: str) -> dict[str, Any]:
        """Run one command here; returns its exit code, its printed JSON where it is some, and the
        end of what it said.
        """
        words = []
        for word in shlex.split(
            command.replace("{url}", self.url).replace("{shared}", str(self.shared))
        ):
            runs = sorted((self.folder / "runs").glob(word)) if "*" in word else []
            words += [f"runs/{run.name}" for run in runs] or [word]
        settings = {
            "PYTHONPATH": str(self.source),
            "EVALWRIGHT_HOME": str(self.home),
            "HF_HUB_OFFLINE": "1",
            "COLUMNS": "200",
            "OPENAI_API_KEY": "none",
            "PYTHONHASHSEED": "0",
        }
        done = subprocess.run(
            [sys.executable, "-m", "evalwright", *words],
            cwd=self.folder,
            env=os.environ | settings,
            capture_output=True,
            text=True,
        )
        try:
            printed = json.loads(done.stdout)
        except ValueError:
            printed = None
        if done.returncode > 1:
            print(
                f"{name}: exit code {done.returncode}: {done.stderr.strip()[-400:]}",
                flush=True,
            )
        return {"exit": done.returncode, "printed": printed}

    def evaluate(self, jobs: int) -> dict[str, Any]:
        """All evaluations, `jobs` at a time."""
        with ThreadPoolExecutor(jobs) as pool:
            done = {
                name: pool.submit(
                    self.call, name, f"{command} --name {name} --quiet --json"
                )
                for name, command in self.commands(EVALUATIONS).items()
            }
        return {name: {"exit": call.result()["exit"]} for name, call in done.items()}

    def analyse(self) -> dict[str, Any]:
        """All analyses in order, then the files that they wrote. The person's labels are a rule."""
        (self.folder / "files").mkdir(exist_ok=True)
        outputs: dict[str, Any] = {}
        for name, command in self.commands(ANALYSES).items():
            outputs[name] = self.call(name, command)
            if name.startswith("draw"):
                for file in (self.folder / "files").glob("*.csv"):
                    _label(file)
        files = sorted(
            path for path in (self.folder / "files").rglob("*") if path.is_file()
        )
        return outputs | {
            f"file {_plain(path.relative_to(self.folder / 'files'))}": numbers_of_text(
                path
            )
            for path in files
        }

    def runs(self) -> dict[str, Any]:
        """The numbers of every run in this workspace."""
        return {
            path.parent.name: numbers_of_run(path.parent)
            for path in sorted(self.folder.glob("runs/*/run.json"))
        }


def _plain(path: Path) -> str:
    """A file's name without the time that some programs put in it."""
    return "/".join(
        part.partition("_20")[0] + path.suffix if "_20" in part else part
        for part in path.parts
    )


def _label(path: Path) -> None:
    """Fill in a table of labels: right where the answer is of even length, two of three times."""
    with path.open(encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    if not rows or "label" not in rows[0] or any(row["label"] for row in rows):
        return
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        writer.writerows(
            {**row, "label": str(int(len(row["answer"]) % 3 != 0))} for row in rows
        )


def _server(folder: Path, port: int) -> Server:
    rows = [
        json.loads(line)
        for line in (
            (folder / "inputs" / "replies.jsonl")
            .read_text(encoding="utf-8")
            .splitlines()
        )
    ]
    return Server(port, {row["input"]: row["response"] for row in rows})


def make(folder: Path, source: Path, shared: Path, jobs: int) -> int:
    """Evaluate everything with the code under `source` and keep the records."""
    folder.mkdir(parents=True)
    write_inputs(folder / "inputs", source, shared)
    server = _server(folder, PORT)
    place = Workspace(
        folder,
        folder / "home",
        source,
        shared,
        f"http://127.0.0.1:{server.server_port}/v1",
    )
    exits = place.evaluate(jobs)
    evaluated = {path.name for path in (folder / "runs").iterdir()}
    outputs = place.analyse()
    record: dict[str, Any] = {
        "port": server.server_port,
        "requests": server.n_requests,
        "exits": exits,
        "runs": place.runs(),
        "outputs": outputs,
    }
    for path in (folder / "runs").iterdir():
        if path.name not in evaluated:
            shutil.rmtree(path)
    shutil.rmtree(folder / "files")
    with gzip.open(folder / "numbers.json.gz", "wt", encoding="utf-8") as file:
        json.dump(record, file, ensure_ascii=False)
    bad = [
        name
        for name, output in {**exits, **outputs}.items()
        if isinstance(output, dict) and output.get("exit", 0) > 1
    ]
    print(
        f"{len(record['runs'])} runs, {len(outputs)} outputs, {server.n_requests}"
        f" requests to the server. Not usable: {', '.join(bad) or 'none'}."
    )
    return 0


def check(
    folder: Path, source: Path, shared: Path, jobs: int, work: Path, only: str
) -> int:
    """Repeat everything with the code under `source`, without a request, and report differences."""
    with gzip.open(folder / "numbers.json.gz", "rt", encoding="utf-8") as file:
        record = json.load(file)
    server = _server(folder, record["port"])
    shutil.copytree(folder / "home", work / "home")
    places = {
        kind: Workspace(
            work / kind,
            work / "home",
            source,
            shared,
            f"http://127.0.0.1:{record['port']}/v1",
            only,
        )
        for kind in ("new", "old")
    }
    for place in places.values():
        shutil.copytree(folder / "inputs", place.folder / "inputs")
    shutil.copytree(folder / "runs", places["old"].folder / "runs")
    exits = places["new"].evaluate(jobs)
    found_differences = differences("exit code", record["exits"], exits, RENAMED)
    with ThreadPoolExecutor(jobs) as pool:
        outputs = dict(
            zip(places, pool.map(Workspace.analyse, places.values()), strict=True)
        )
    for kind, place in places.items():
        runs = place.runs()
        found_differences += differences(f"runs, {kind}", record["runs"], runs, RENAMED)
        found_differences += differences(
            f"from {kind} runs", record["outputs"], outputs[kind], RENAMED
        )
        anew = [
            run for run in runs if kind == "new" or not (folder / "runs" / run).exists()
        ]
        found_differences += [
            Difference("requests", run, "sent", kind, 0, runs[run]["sent"])
            for run in anew
            if runs[run]["sent"]
        ]
    if server.n_requests:
        found_differences.append(
            Difference(
                "requests",
                "server",
                "received",
                "\n".join(server.first),
                0,
                server.n_requests,
            )
        )
    if only:
        found_differences = [
            difference
            for difference in found_differences
            if difference.what != "whole" or difference.old != "there"
        ]
    (work / "differences.json").write_text(
        json.dumps(
            [difference.as_row() for difference in found_differences],
            indent=1,
            ensure_ascii=False,
        ),
        encoding="utf-8",
    )
    (work / "differences.md").write_text(table(found_differences), encoding="utf-8")
    print(table(found_differences))
    n = sum(run["numbers"] for run in record["runs"].values())
    print(
        f"{len(record['runs'])} runs, {n:,} numbers in them, {len(record['outputs'])}"
        f" outputs, twice: {len(found_differences):,} differences. All of them:"
        f" {work / 'differences.json'}"
    )
    return int(bool(found_differences))


def main(words: Sequence[str] | None = None) -> int:
    """Read the command line."""
    parser = option_parser(__doc__)
    parser.add_argument("mode", choices=["make", "check"])
    parser.add_argument("folder", type=Path)
    parser.add_argument(
        "--source", type=Path, required=True, help="the folder that holds the package"
    )
    parser.add_argument(
        "--shared",
        type=Path,
        required=True,
        help="with data/hhem and parity/rows",
    )
    parser.add_argument("--out", type=Path, help="for `check`: where it works; kept")
    parser.add_argument("--jobs", type=int, default=2, help="evaluations at a time")
    parser.add_argument(
        "--only",
        default="",
        metavar="REGEX",
        help="for `check`: only entries with such names",
    )
    arguments = parser.parse_args(words)
    began = time.monotonic()
    folder = arguments.folder.resolve()
    source = arguments.source.resolve()
    shared = arguments.shared.resolve()
    if arguments.mode == "make":
        code = make(folder, source, shared, arguments.jobs)
    else:
        work = (
            arguments.out.resolve()
            if arguments.out
            else Path(tempfile.mkdtemp(prefix="recorded-"))
        )
        code = check(folder, source, shared, arguments.jobs, work, arguments.only)
    print(f"{time.monotonic() - began:.0f} s")
    return code


if __name__ == "__main__":
    sys.exit(main())
