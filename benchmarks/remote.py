"""How fast the clients are against one server, side by side: a bare aiohttp loop, evalwright,
inspect_ai, lm_eval.

    python -m benchmarks remote [--at-once 64,128,512] [--seconds 20] [--repeats 3]
        [--only plain,refuses,...] [--systems bare,evalwright,inspect_ai,lm_eval]
        [--trees BEFORE/src AFTER/src]

A server process (remote_server.py) answers after a log-normal time of 200 ms in the mean and takes
so many requests at once.

    plain         it never gets more at once: every client is told how many it takes
    refuses       429 for what is more; the bare loop is told how many it takes, evalwright has
                  to find out
    retry-after   the same, with Retry-After: 1
    random        429 for 2% of the requests, however many are at once
    tokens        429 when a token limit told in headers is exceeded (OpenAI's form); what is
                  allowed is the yardstick

Each client is a process of its own, all interleaved and repeated. Requests a second are counted by
the server, from the first request to the last answer. CPU is user + system time of the whole
process tree; start-up is measured apart, with a run of a few samples, and taken off. Every system
but the bare loop scores its answers and writes its records, evalwright keeps each answer durably
before it goes on. Environments are those of peers.py.

With --trees two states of evalwright's own source are measured beside the bare loop, as "before"
and "after", all with the Python that runs this file and its packages; ratios are then to the first
of --systems. The system "pyreqwest" is the bare loop with that HTTP client, if it is installed
there.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from measuring import ProcessUsage, Table, option_parser, take_turns
from overhead import inspect_ai, measure, ours, questions
from peers import INSPECT, LM_EVAL, OURS

HERE = Path(__file__).resolve().parent
LATENCY = 0.2
FEW = 20
PEERS_RATE = {"inspect_ai": 50, "lm_eval": 900}
"""Samples a second that these are given at the most, so that a turn of theirs takes no longer than
others'.
"""

MODES: dict[str, tuple[str, ...]] = {
    "plain": (),
    "refuses": ("--refuse-above",),
    "retry-after": ("--refuse-above", "--retry-after", "1"),
    "random": ("--refuse-share", "0.02"),
}
TOKENS = ((54_000, 10), (540_000, 10), (5_400, 60))
"""Token limits per minute, and for how many seconds' worth the bucket has room. An answer takes 9.
"""

MOST = 1024
"""What evalwright is allowed where it has to find out that the server takes 512, which is its
default.
"""


@dataclass(frozen=True)
class Turn:
    """One client's run: what the server counted, and what the client took."""

    rate: float
    refused: float
    at_once: int
    cpu: float
    measured: ProcessUsage
    counts: dict[str, Any]


@dataclass(frozen=True)
class Setting:
    """Where a client sends its requests, and how many at once."""

    url: str
    at_once: int
    limit_announced: bool


def python() -> str:
    """The interpreter of evalwright's own environment if there is one, else this one."""
    return str(OURS.python if OURS.python.exists() else sys.executable)


@contextmanager
def serving(*options: str) -> Iterator[str]:
    """Run a server process; yields its address without a path."""
    server = subprocess.Popen(
        [python(), str(HERE / "remote_server.py"), "--latency", str(LATENCY), *options],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        yield f"http://127.0.0.1:{int(server.stdout.readline())}"
    finally:
        server.terminate()
        server.wait()


def fetch_books(server: str, path: str) -> dict[str, Any]:
    """Fetch the server's counts."""
    with urllib.request.urlopen(f"{server}/{path}") as reply:
        books: dict[str, Any] = json.load(reply)
    return books


# -- the clients: a folder with everything in it, and the command that evaluates it ----


def bare_command(
    folder: Path, setting: Setting, http_client: str = "aiohttp"
) -> list[str]:
    return [
        python(),
        str(HERE / "remote_bare.py"),
        setting.url,
        "questions.jsonl",
        str(setting.at_once),
        http_client,
    ]


def bare_pyreqwest(folder: Path, setting: Setting) -> list[str]:
    return bare_command(folder, setting, "pyreqwest")


def evalwright(folder: Path, setting: Setting) -> list[str]:
    if setting.limit_announced:
        return ours(folder, chat_model(setting.url, setting.at_once))
    return ours(
        folder, chat_model(setting.url, MOST if setting.at_once >= MOST / 2 else None)
    )


def from_tree(tree: Path) -> Callable[[Path, Setting], list[str]]:
    """A client that runs evalwright from a source folder."""

    def client(folder: Path, setting: Setting) -> list[str]:
        _, *arguments = evalwright(folder, setting)
        return [
            "env",
            f"PYTHONPATH={tree.resolve()}",
            sys.executable,
            "-m",
            "evalwright",
            *arguments,
        ]

    return client


def chat_model(url: str, most: int | None) -> list[str]:
    """The arguments that name the measured server as evalwright's model. most: requests at once;
    None leaves it open.
    """
    concurrency = [] if most is None else ["-M", f"max_concurrency={most}"]
    return ["--model", "openai/measured", "-M", f"base_url={url}", *concurrency]


def inspect(folder: Path, setting: Setting) -> list[str]:
    """As its documentation has it for speed: as many connections as the server takes, no display,
    few log lines.
    """
    shell, option, script = inspect_ai(folder, "openai/measured")
    script = script.replace(
        "--max-connections 128", f"--max-connections {setting.at_once}"
    )
    script = script.replace(
        "--max-samples 256", f"--max-samples {2 * setting.at_once} --log-level error"
    )
    return [shell, option, script]


def lm_eval(folder: Path, setting: Setting) -> list[str]:
    (folder / "sums.yaml").write_text(
        "task: sums\ndataset_path: json\ndataset_kwargs:\n  data_files: {test:"
        ' questions.jsonl}\ntest_split: test\ndoc_to_text: "{{input}}"\ndoc_to_target:'
        ' "{{target}}"\noutput_type: generate_until\ngeneration_kwargs: {until:'
        ' ["\\n"], max_gen_toks: 8}\nmetric_list: [{metric: exact_match}]\n'
    )
    arguments = (
        f"model=measured,base_url={setting.url}/chat/completions,"
        f"num_concurrent={setting.at_once}"
    )
    command = [
        str(LM_EVAL.bin / "lm_eval"),
        "run",
        "--model",
        "local-chat-completions",
        "--model_args",
    ]
    command += [
        f"{arguments},max_retries=3,tokenized_requests=False",
        "--tasks",
        "sums",
        "--include_path",
        ".",
    ]
    return [*command, "--apply_chat_template", "--output_path", "out", "--log_samples"]


CLIENTS: dict[str, Callable[[Path, Setting], list[str]]] = {
    "bare": bare_command,
    "pyreqwest": bare_pyreqwest,
    "evalwright": evalwright,
    "inspect_ai": inspect,
    "lm_eval": lm_eval,
}


def run_client(
    name: str, server: str, setting: Setting, count: int
) -> tuple[ProcessUsage, dict[str, Any]]:
    """One run of `count` samples in a fresh folder: what it took, and what the server counted."""
    fetch_books(server, "reset")
    extra = {"OPENAI_BASE_URL": setting.url, "OPENAI_API_KEY": "not-a-key"}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        questions(folder / "questions.jsonl", count)
        measured = measure(CLIENTS[name](folder, setting), folder, extra)
    counts = fetch_books(server, "counts")
    if counts["answered"] < count:
        raise RuntimeError(
            f"{name} was answered {counts['answered']} of {count} questions"
        )
    return measured, counts


def take_turn(name: str, server: str, setting: Setting, seconds: float) -> Turn:
    """Measure start-up with a small run, and everything else with a large one."""
    rate = min(setting.at_once / LATENCY, PEERS_RATE.get(name, float("inf")))
    count = int(rate * seconds)
    small, _ = run_client(name, server, setting, FEW)
    large, counts = run_client(name, server, setting, count)
    return Turn(
        rate=counts["answered"] / (counts["last"] - counts["first"]),
        refused=counts["refused"] / counts["received"],
        at_once=counts["most_in_flight"],
        cpu=1000 * (large.cpu - small.cpu) / (count - FEW),
        measured=large,
        counts=counts,
    )


# -- the tables ------------------------------------------------------------------------


def throughput(
    mode: str,
    at_once: Sequence[int],
    systems: Sequence[str],
    options: argparse.Namespace,
    table: Table,
) -> None:
    """Print one mode: a line per client and number of concurrent requests."""
    limits_announced = mode in ("plain", "random")
    names = [name for name in systems if mode == "plain" or name not in PEERS_RATE]
    for most in at_once:
        with serving("--capacity", str(most), *MODES[mode]) as server:
            setting = Setting(f"{server}/v1", most, limits_announced)
            turns = take_turns(
                {
                    name: partial(take_turn, name, server, setting, options.seconds)
                    for name in names
                },
                options.repeats,
            )
        for name in names:
            table.add(*cells_of(mode, most, name, turns))


def cells_of(
    mode: str, most: int, name: str, turns: dict[str, list[Turn]]
) -> list[str]:
    """Medians over the repeats, and the ratios to the yardstick with their median and range."""
    mine = turns[name]
    middle = statistics.median
    yardstick = next(iter(turns.values()))
    pairs = list(zip(mine, yardstick, strict=True))
    rates = [100 * turn.rate / reference.rate for turn, reference in pairs]
    cpus = [100 * turn.cpu / reference.cpu for turn, reference in pairs]
    return [
        mode,
        str(most),
        name,
        f"{middle(turn.rate for turn in mine):,.0f}",
        f"{middle(rates):.0f}% ({min(rates):.0f}-{max(rates):.0f})",
        f"{middle(turn.cpu for turn in mine):.2f}",
        f"{middle(cpus):.0f}% ({min(cpus):.0f}-{max(cpus):.0f})",
        f"{100 * middle(turn.refused for turn in mine):.2f}%",
        str(max(turn.at_once for turn in mine)),
    ]


def token_limits(options: argparse.Namespace) -> None:
    """Evalwright against announced token limits: what it used of what was allowed, and what was
    refused.
    """
    sizes = ("tokens a minute", "kept for, s", "requests", "seconds")
    table = Table([*sizes, "used of what was allowed", "refused"])
    for per_minute, burst in TOKENS:
        with serving(
            "--tokens-per-minute", str(per_minute), "--burst", str(burst)
        ) as server:
            tokens_per_request = 9.0
            # As many as are allowed in the given time, the full bucket included.
            count = int(
                per_minute
                / 60
                * (burst + max(options.seconds, 20.0))
                / tokens_per_request
            )
            client = "after" if options.trees else "evalwright"
            _, counts = run_client(
                client,
                server,
                Setting(f"{server}/v1", 512, limit_announced=True),
                count,
            )
        seconds = counts["last"] - counts["first"]
        allowed = per_minute / 60 * (burst + seconds) / tokens_per_request
        refused = counts["refused"] / counts["received"]
        used = min(1.0, count / allowed)
        cells = (f"{per_minute:,}", burst, f"{count:,}", f"{seconds:.1f}")
        table.add(*cells, f"{used:.0%}", f"{refused:.2%}")


def main() -> None:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--at-once", default="64,128,512")
    parser.add_argument(
        "--seconds", type=float, default=20.0, help="of requests in each turn, about"
    )
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default=",".join([*MODES, "tokens"]))
    parser.add_argument("--systems", default="")
    parser.add_argument("--trees", nargs=2, type=Path, metavar=("BEFORE", "AFTER"))
    options = parser.parse_args()
    systems = list(filter(None, options.systems.split(","))) or [
        name for name in CLIENTS if name != "pyreqwest"
    ]
    if options.trees:
        CLIENTS.update(
            zip(("before", "after"), map(from_tree, options.trees), strict=True)
        )
        systems = list(filter(None, options.systems.split(","))) or [
            "bare",
            "before",
            "after",
        ]
    yardstick = systems[0]
    for peer in (
        *([] if options.trees else [OURS]),
        *([LM_EVAL] if "lm_eval" in systems else []),
        *([INSPECT] if "inspect_ai" in systems else []),
    ):
        peer.ensure()
    parts = options.only.split(",")
    modes = [mode for mode in MODES if mode in parts]
    at_once = [int(most) for most in options.at_once.split(",")]
    if modes:
        rates = (
            "requests/s",
            f"of {yardstick}",
            "CPU ms a sample",
            f"CPU of {yardstick}",
        )
        columns = ("server", "at once", "client", *rates, "refused", "most at once")
        table = Table(columns)
        for mode in modes:
            throughput(mode, at_once, systems, options, table)
    if "tokens" in parts:
        token_limits(options)


if __name__ == "__main__":
    main()
