"""Agents on the terminal tasks, beside inspect_ai's, in one run.

    python -m benchmarks agents [--rounds 5] [--at-once 16] [--only cost,kill]
        [--tree evalwright/src]

A chat server plays the reference solution of each task in 11 commands and a
`submit`; it is the same for both systems, and answers at once. Evalwright runs
peer_tasks/ours.yaml in jails. inspect_ai runs peer_tasks/theirs.py: its `react` agent with its
`bash` and `python` tools, in its sandbox `local`, which is a temporary folder and shuts nothing in.
The task `port-holder` is left out: it ends the process that listens on a port, which without a
sandbox is one of this machine's.

Whole processes are measured, in interleaved rounds. CPU is user and system time of everything that
was started, also of what has ended and of what runs in a jail, as a control group counts it
(this wants Linux, and the right to make one). Memory is the greatest sum of the processes' shares
(PSS), looked at five times a second. `bare` runs the same commands one after the other in one
folder for each task, without an agent or a model: what is left of the CPU is the agents'.

The kill ends the process once a share of the requests was received (a third, half and two thirds:
after half, the first 16 samples have just ended, so little is open); then the same command is run
again, respectively `inspect eval-retry`. Commands are counted where they reach the sandbox.

With --tree evalwright is run from a source folder, with the Python that runs this file.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from measuring import Table, add_numbers, option_parser, take_turns
from overhead import INSPECT_OFFLINE, command_of_tree
from peers import INSPECT, OURS

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.scripted_chat import ScriptedChat, scripted_chat  # noqa: E402

TASKS = HERE / "peer_tasks"
LIBRARY = HERE.parent / "src" / "evalwright" / "tasks" / "library" / "terminal"
LEFT_OUT = ("port-holder",)
CGROUP = Path("/sys/fs/cgroup")
KILLED_AFTER = (1 / 3, 1 / 2, 2 / 3)
LOOK_SECONDS = 0.2
MOST_SECONDS = 900
MIB = 2**20


# -- the model -------------------------------------------------------------------------


SOLUTION = "SOLUTION"
STEPS = (
    "pwd",
    "ls -la",
    "find . -type f -not -path '*/.*' | sort | head -50",
    'for name in $(ls -p | grep -v / | head -3); do echo "== $name"; head -n 20 "$name"; done',
    "wc -l $(ls -p | grep -v /) < /dev/null | tail -n 1",
    "git -C repo log --oneline 2> /dev/null | wc -l",
    SOLUTION,
    "find . -type f -not -path '*/.*' | sort | head -50",
    'for name in $(ls -p | grep -v / | head -3); do echo "== $name"; head -n 20 "$name"; done',
    "ls -p | wc -l",
    "python3 --version",
)
"""What the model does before it submits: it looks, does the job, and looks again."""
N_REQUESTS = len(STEPS) + 1
"""The requests of one task."""
Messages = Sequence[Mapping[str, Any]]


def text_of(turn: Mapping[str, Any]) -> str:
    """The text of a turn of a conversation."""
    content = turn.get("content") or ""
    if isinstance(content, str):
        return content
    return "\n".join(part.get("text", "") for part in content)


def place_of(messages: Messages, instructions: Sequence[str]) -> tuple[str, int]:
    """The task of a conversation, by its instruction, and its step: the model's turns so far."""
    prompt = "\n".join(text_of(turn) for turn in messages if turn["role"] == "user")
    instruction = next(text for text in instructions if text in prompt)
    return instruction, sum(turn["role"] == "assistant" for turn in messages)


def play(messages: Messages, solutions: Mapping[str, str]) -> dict[str, str]:
    """The next call: the first step asks for the working folder, and later ones name that folder
    where the solution says /work.
    """
    instruction, step = place_of(messages, list(solutions))
    if step >= len(STEPS):
        return {"name": "submit", "arguments": json.dumps({"answer": "Done."})}
    command = STEPS[step]
    if command == SOLUTION:
        folder = next(text_of(turn) for turn in messages if turn["role"] == "tool")
        folder = folder.strip().splitlines()[0]
        command = solutions[instruction].replace("/work", folder)
    return {"name": "bash", "arguments": json.dumps({"command": command})}


@contextmanager
def playing() -> Iterator[ScriptedChat]:
    """Run a chat server that plays the reference solutions."""
    solutions = {row["instruction"].strip(): row["solution"] for row in rows()}
    with scripted_chat(lambda messages: play(messages, solutions)) as chat:
        yield chat


def count_steps(chat: ScriptedChat) -> Counter[tuple[str, int]]:
    """How often each step of each task was requested."""
    instructions = [row["instruction"].strip() for row in rows()]
    return Counter(place_of(body["messages"], instructions) for body in chat.bodies)


# -- what a command took, with everything that it started ------------------------------


@dataclass(frozen=True)
class Usage:
    """What a command took.

    Attributes:
        wall: seconds until it ended.
        cpu: seconds of processors, of all processes.
        memory: the greatest sum of the processes' shares of memory, in MiB.
    """

    wall: float
    cpu: float
    memory: float


class ControlGroup:
    """A new control group, whose processes are counted together."""

    def __init__(self) -> None:
        version_1 = CGROUP / "cpuacct"
        parent = version_1 if version_1.exists() else CGROUP
        self.folder = parent / f"evalwright-benchmark-{os.getpid()}-{time.time_ns()}"
        try:
            self.folder.mkdir()
        except OSError as error:
            raise SystemExit(
                f"No control group can be made in {parent} ({error.strerror}), and without one"
                " the CPU of sandboxes is not counted. Run this as root."
            ) from None

    def enter(self) -> None:
        """Move the process that calls this into the group."""
        (self.folder / "cgroup.procs").write_text("0")

    @property
    def cpu(self) -> float:
        """Seconds of CPU so far."""
        version_1 = self.folder / "cpuacct.usage"
        if version_1.exists():
            return int(version_1.read_text()) / 1e9
        (line, *_) = (self.folder / "cpu.stat").read_text().splitlines()
        return int(line.split()[1]) / 1e6

    @property
    def memory(self) -> float:
        """Shares of memory of all processes now, in MiB."""
        kib = 0
        for pid in (self.folder / "cgroup.procs").read_text().split():
            try:
                lines = Path("/proc", pid, "smaps_rollup").read_text().splitlines()
            except OSError:
                continue
            kib += sum(
                int(line.split()[1]) for line in lines if line.startswith("Pss:")
            )
        return kib / 1024

    def end(self) -> None:
        """End what is still in it, and remove it."""
        for _ in range(100):
            pids = (self.folder / "cgroup.procs").read_text().split()
            for pid in pids:
                with suppress(ProcessLookupError):
                    os.kill(int(pid), signal.SIGKILL)
            try:
                self.folder.rmdir()
            except OSError:
                time.sleep(0.05)
            else:
                return


@dataclass
class Running:
    """A command that is running, and its control group."""

    process: subprocess.Popen[bytes]
    group: ControlGroup
    log: Path
    began: float
    memory: float = 0.0
    has_ended: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Look at the memory until the command ends."""
        while not self.has_ended.wait(LOOK_SECONDS):
            self.memory = max(self.memory, self.group.memory)

    def end(self, *, may_fail: bool = False) -> Usage:
        """Wait for the end of the command.

        Raises RuntimeError with the end of its output if it fails.
        """
        code = self.process.wait(MOST_SECONDS)
        wall = time.perf_counter() - self.began
        self.has_ended.set()
        usage = Usage(wall, self.group.cpu, self.memory)
        self.group.end()
        if code != 0 and not may_fail:
            raise RuntimeError(f"It ended with {code}:\n{self.log.read_text()[-3000:]}")
        return usage


def start(command: Sequence[str], folder: Path, variables: dict[str, str]) -> Running:
    """Start a command in a control group of its own."""
    group = ControlGroup()
    log = folder / "output.log"
    environment = {**os.environ, **variables}
    environment.pop("PYTHONPATH", None)
    began = time.perf_counter()
    with log.open("ab") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdout=output,
            stderr=subprocess.STDOUT,
            stdin=subprocess.DEVNULL,
            preexec_fn=group.enter,
        )
    running = Running(process, group, log, began)
    threading.Thread(target=running.watch, daemon=True).start()
    return running


# -- the two systems -------------------------------------------------------------------


@dataclass(frozen=True)
class System:
    """A system.

    Attributes:
        prepare: fills a folder with the tasks.
        command: runs them.
        counting: what is added to the command to count what reaches the sandbox.
        again: goes on after a kill.
        score: returns the share of tasks that are right.
    """

    prepare: Callable[[Path], None]
    command: list[str]
    counting: list[str]
    again: list[str]
    score: Callable[[Path], float]


def rows() -> list[dict[str, str]]:
    """The tasks that are run."""
    with (LIBRARY / "rows.jsonl").open(encoding="utf-8") as file:
        every = [json.loads(line) for line in file]
    return [row for row in every if row["id"] not in LEFT_OUT]


def write_rows(path: Path, tasks: Sequence[dict[str, str]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in tasks), encoding="utf-8")


def prepare_ours(folder: Path) -> None:
    """The task file, the rows and the folders of the library."""
    shutil.copytree(LIBRARY, folder, dirs_exist_ok=True)
    (folder / "terminal.yaml").unlink()
    shutil.copy(TASKS / "ours.yaml", folder)
    shutil.copy(TASKS / "ours_books.py", folder)
    write_rows(folder / "rows.jsonl", rows())


IN_ANY_FOLDER = """\
import os
SOURCE = {source!r}
for path, place in {places!r}:
    SOURCE = SOURCE.replace(path, os.getcwd() + place)
exec(compile(SOURCE, __file__, "exec"))
"""
PLACES = [("/tmp", "/.checks/tmp"), ("/checks", "/.checks"), ("/work", "")]


def prepare_theirs(folder: Path) -> None:
    """The same, where the sandbox is a folder of any name: /work and /tmp are in that folder."""
    shutil.copytree(LIBRARY, folder, dirs_exist_ok=True)
    (folder / "terminal.yaml").unlink()
    for check in folder.rglob("check*.py"):
        source = check.read_text(encoding="utf-8")
        text = IN_ANY_FOLDER.format(source=source, places=PLACES)
        if check.name == "check.py":
            text = "import os\nos.makedirs('.checks/tmp', exist_ok=True)\n" + text
        check.write_text(text, encoding="utf-8")
    shutil.copy(TASKS / "theirs.py", folder / "task.py")
    text = (TASKS / "theirs_books.py").read_text() + INSPECT_OFFLINE
    (folder / "task.py").write_text(text + (folder / "task.py").read_text())
    tasks = [
        {**row, "setup": in_any_folder(row["setup"])}
        if "/work" in row["setup"]
        else row
        for row in rows()
    ]
    write_rows(folder / "rows.jsonl", tasks)


def in_any_folder(script: str) -> str:
    """A script that finds its working folder where it is started."""
    return "ROOT=$PWD\n" + script.replace("/work", '"$ROOT"').replace(
        '""$ROOT"', '"$ROOT'
    )


def score_of_ours(folder: Path) -> float:
    (path,) = (folder / "runs").glob("*/samples.jsonl")
    records = [json.loads(line) for line in path.open(encoding="utf-8")]
    assert len(records) == len(rows()), f"{len(records)} records"
    return statistics.fmean(record["scores"]["command"]["value"] for record in records)


def score_of_theirs(folder: Path) -> float:
    command = [str(INSPECT.bin / "inspect"), "log", "dump", "--header-only"]
    for path in sorted((folder / "logs").glob("*.eval"), reverse=True):
        text = subprocess.run(
            [*command, str(path)], check=True, capture_output=True
        ).stdout
        log = json.loads(text)
        if log["status"] == "success":
            assert log["results"]["completed_samples"] == len(rows())
            return float(log["results"]["scores"][0]["metrics"]["accuracy"]["value"])
    raise RuntimeError("No evaluation was successful.")


def systems(options: argparse.Namespace, url: str) -> dict[str, System]:
    """Both by name, with the endpoint."""
    ours = (
        command_of_tree(options.tree)
        if options.tree
        else [str(OURS.bin / "evalwright")]
    )
    ours += ["run", "ours.yaml", "--model", "openai/player", "-M", f"base_url={url}"]
    ours += ["-M", f"max_concurrency={options.at_once}", "--quiet", "--name", "acted"]
    counting = ["--plugin", "ours_books.py"]
    inspect = [str(INSPECT.bin / "inspect")]
    theirs = [*inspect, "eval", "task.py", "--model", "openai/player"]
    theirs += ["-M", "responses_api=false", "--display", "none", "--log-dir", "logs"]
    theirs += ["--max-samples", str(options.at_once)]
    theirs += ["--max-connections", str(options.at_once)]
    retry = f"{inspect[0]} eval-retry logs/*.eval --display none --log-dir logs"
    retry += f" --max-samples {options.at_once} --max-connections {options.at_once}"
    return {
        "evalwright": System(
            prepare_ours, ours, counting, [*ours, *counting], score_of_ours
        ),
        "inspect_ai": System(
            prepare_theirs, theirs, [], ["sh", "-c", f"exec {retry}"], score_of_theirs
        ),
    }


def variables_of(url: str, options: argparse.Namespace) -> dict[str, str]:
    """The endpoint and the key of both, and one Python first in the path of a `local` sandbox."""
    return {
        "OPENAI_BASE_URL": url,
        "OPENAI_API_KEY": "not-a-key",
        "EVALWRIGHT_SANDBOXES": str(options.at_once),
        "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin",
        "HOME": "/tmp",
    }


# -- the parts -------------------------------------------------------------------------


SYSTEMS = ("evalwright", "inspect_ai")
SOURCES = {"evalwright": TASKS / "ours.yaml", "inspect_ai": TASKS / "theirs.py"}
"""By system: task and agent, as a user writes them."""


def cost(options: argparse.Namespace) -> None:
    """Whole runs, one system after the other in each round."""
    n_steps = len(rows()) * N_REQUESTS
    usages = take_turns(
        {name: partial(run_once, name, options) for name in SYSTEMS}, options.rounds
    )
    bare = [bare_cpu() for _ in range(options.rounds)]
    bare_ms = 1000 * statistics.median(bare) / n_steps
    size = f"{len(rows())} tasks, {n_steps} steps, {options.at_once} at once"
    figures = ("wall s", "CPU ms a step", "beyond the commands", "peak MiB", "lines")
    table = Table([size, *figures])
    for name, of_system in usages.items():
        wall = statistics.median(usage.wall for usage in of_system)
        cpu_ms = 1000 * statistics.median(usage.cpu for usage in of_system) / n_steps
        memory = statistics.median(usage.memory for usage in of_system)
        beyond = f"{cpu_ms - bare_ms:.1f}"
        lines = count_lines(SOURCES[name])
        table.add(name, f"{wall:.1f}", f"{cpu_ms:.1f}", beyond, f"{memory:.0f}", lines)
    table.add("the commands alone", "", f"{bare_ms:.1f}", "", "", "")


def run_once(name: str, options: argparse.Namespace) -> Usage:
    """One whole run, undisturbed."""
    with playing() as chat, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        system = systems(options, chat.url)[name]
        system.prepare(folder)
        usage = start(system.command, folder, variables_of(chat.url, options)).end()
        share = system.score(folder)
        assert share == 1.0, f"{name}: {100 * share:.0f}% right"
        n_received = len(chat.bodies)
    assert n_received == len(rows()) * N_REQUESTS, f"{name}: {n_received} requests"
    return usage


def count_lines(path: Path) -> int:
    """Lines without blank ones, comments and the docstring of the file."""
    text = path.read_text(encoding="utf-8")
    if text.startswith('"""'):
        text = text[3:].split('"""', 1)[1]
    lines = [line.strip() for line in text.splitlines()]
    return sum(bool(line) and not line.startswith("#") for line in lines)


def bare_cpu() -> float:
    """Seconds of CPU of the same commands, one after the other, without anything around them."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        prepare_theirs(folder)
        (folder / "bare.py").write_text(BARE)
        steps = [command for command in STEPS if command != SOLUTION]
        (folder / "steps.json").write_text(json.dumps(steps))
        variables = {
            "PATH": f"{Path(sys.base_prefix) / 'bin'}:/usr/bin:/bin",
            "HOME": "/tmp",
        }
        return start([sys.executable, "-S", "bare.py"], folder, variables).end().cpu


BARE = """\
import json, os, shutil, subprocess, tempfile

here = os.getcwd()
steps = json.load(open("steps.json"))
for line in open("rows.jsonl"):
    row = json.loads(line)
    with tempfile.TemporaryDirectory() as folder:
        def bash(script):
            subprocess.run(["bash", "-c", script], cwd=folder, capture_output=True)
        shutil.copytree(f"{here}/_tasks/{row['id']}/files", folder, dirs_exist_ok=True)
        if row["setup"]:
            bash(row["setup"])
        for step in steps:
            bash(step)
        bash(row["solution"].replace("/work", folder))
        shutil.copytree(f"{here}/_tasks/{row['id']}/tests", f"{folder}/.checks")
        shutil.copy(f"{here}/_checks/checks.py", f"{folder}/.checks")
        command = ["python3", "-B", ".checks/check.py"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True)
"""


def kill(options: argparse.Namespace) -> None:
    """End each system after shares of the requests, and let it go on."""
    n_steps = len(rows()) * N_REQUESTS
    columns = (
        "requests beyond the needed",
        "commands done twice",
        "seconds until done",
    )
    table = Table(["killed after", "system", *columns])
    for share in KILLED_AFTER:
        n_requests = int(n_steps * share)
        for name in SYSTEMS:
            requests, commands, seconds = kill_once(name, options, n_requests)
            cells = (requests, commands, f"{seconds:.1f}")
            table.add(f"{n_requests} requests", name, *cells)


def kill_once(
    name: str, options: argparse.Namespace, n_requests: int
) -> tuple[int, int, float]:
    """Return requests and commands beyond the needed, and the seconds of the second run."""
    with playing() as chat, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        system = systems(options, chat.url)[name]
        system.prepare(folder)
        books = folder / "books.txt"
        variables = {**variables_of(chat.url, options), "AGENT_BOOKS": str(books)}
        running = start([*system.command, *system.counting], folder, variables)
        while len(chat.bodies) < n_requests:
            assert running.process.poll() is None, running.log.read_text()[-2000:]
            time.sleep(0.01)
        running.process.kill()
        running.end(may_fail=True)
        again = start(system.again, folder, variables).end()
        share = system.score(folder)
        times = count_steps(chat)
        commands = books.read_text().splitlines()
    assert len(times) == len(rows()) * N_REQUESTS, f"{len(times)} different requests"
    assert share == 1.0, f"{name}: {100 * share:.0f}% right"
    done_twice = len(commands) - len(rows()) * len(STEPS)
    return times.total() - len(times), done_twice, again.wall


def main(words: Sequence[str] | None = None) -> int:
    parser = option_parser(__doc__)
    add_numbers(parser, rounds=5, at_once=16)
    parser.add_argument("--only", default="cost,kill")
    parser.add_argument("--tree", type=Path)
    options = parser.parse_args(words)
    INSPECT.ensure()
    if not options.tree:
        OURS.ensure()
    parts = {"cost": cost, "kill": kill}
    for part in options.only.split(","):
        parts[part](options)
    return 0


if __name__ == "__main__":
    sys.exit(main())
