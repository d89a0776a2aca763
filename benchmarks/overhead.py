"""What a sample costs the client, beside the peers, in one run.

    python -m benchmarks overhead [--samples 10000] [--big 100000] [--repeats 3]
        [--only cpu,http,start,memory] [--trees BEFORE/src AFTER/src]

Each system answers the same arithmetic questions with its own instant model (ours:
`scripted/constant`; lm_eval: `dummy`; inspect_ai: `mockllm/model`), scores them by exact match and
writes its records. CPU is user + system time of the whole process tree, as the operating system
counts it; per sample it is the slope between a small and a large run, so start-up does not count.
Repeats are interleaved and the median is shown. The HTTP part asks a chat server in another
process.

Every system runs in an environment of its own with its released version (see peers.py).

With --trees two states of evalwright's own source are measured in place of the peers, as "before"
and "after", both with the Python that runs this file and its packages; ratios are to "before".
"""

from __future__ import annotations

import json
import os
import shlex
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

from measuring import ProcessUsage, Table, measure_command, option_parser
from peers import INSPECT, LM_EVAL, OURS, Peer

SMALL = 200


def measure(
    command: Sequence[str], folder: Path, extra: dict[str, str] | None = None
) -> ProcessUsage:
    """Run a command to its end in `folder`.

    Raises RuntimeError with the end of its output if it fails.
    """
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        **(extra or {}),
    }
    environment.pop("PYTHONPATH", None)
    return measure_command(command, folder, environment)


def questions(path: Path, count: int) -> None:
    """`count` arithmetic questions; half of them have the answer that the instant models give."""
    with path.open("w") as file:
        for i in range(count):
            row = {
                "id": i,
                "input": f"What is {i} + {i % 7}?",
                "target": "4" if i % 2 else str(i),
            }
            file.write(json.dumps(row) + "\n")


# -- the three systems: a folder with everything in it, and the command that evaluates it


def ours(
    folder: Path,
    model: Sequence[str] = ("--model", "scripted/constant", "-M", "text=4"),
) -> list[str]:
    (folder / "sums.yaml").write_text(
        'task: sums\ndataset: questions.jsonl\nsample: {id: "{{ id }}", input: "{{'
        ' input }}", target: "{{ target }}"}\nprompt: {user: "{{ input }}"}\nanswer:'
        " {mode: generate, max_tokens: 8}\nscorers: [exact-match]\n"
    )
    return [str(OURS.bin / "evalwright"), "run", "sums.yaml", *model, "--quiet"]


def from_tree(
    tree: Path,
    model: Sequence[str] = ("--model", "scripted/constant", "-M", "text=4"),
) -> Callable[[Path], list[str]]:
    """A system that runs evalwright from a source folder."""

    def make(folder: Path) -> list[str]:
        _, *arguments = ours(folder, model)
        return [*command_of_tree(tree), *arguments]

    return make


def command_of_tree(tree: Path) -> list[str]:
    """The command of evalwright from a source folder, without arguments."""
    path = f"PYTHONPATH={tree.resolve()}"
    return ["env", path, sys.executable, "-m", "evalwright"]


def lm_eval(folder: Path) -> list[str]:
    (folder / "sums.yaml").write_text(
        "task: sums\ndataset_path: json\ndataset_kwargs:\n  data_files: {test:"
        ' questions.jsonl}\ntest_split: test\ndoc_to_text: "{{input}}"\ndoc_to_target:'
        ' "{{target}}"\noutput_type: generate_until\ngeneration_kwargs: {until:'
        ' ["\\n"], max_gen_toks: 8}\nmetric_list: [{metric: exact_match}]\n'
    )
    command = [
        str(LM_EVAL.bin / "lm_eval"),
        "run",
        "--model",
        "dummy",
        "--tasks",
        "sums",
        "--include_path",
        ".",
    ]
    return [*command, "--output_path", "out", "--log_samples"]


# Its token counter downloads a vocabulary; counting words instead needs no network and costs the
# peer less.
INSPECT_OFFLINE = """\
import tiktoken


class Words:
    def encode(self, text, **options):
        return text.split()


tiktoken.get_encoding = tiktoken.encoding_for_model = lambda name: Words()
"""


def inspect_ai(folder: Path, model: str = "mockllm/model") -> list[str]:
    (folder / "sums.py").write_text(
        INSPECT_OFFLINE
        + "from inspect_ai import Task, task\nfrom inspect_ai.dataset import"
        " json_dataset\nfrom inspect_ai.scorer import match\nfrom inspect_ai.solver"
        " import generate\n\n\n@task\ndef sums():\n    return"
        " Task(dataset=json_dataset('questions.jsonl'), solver=generate(),"
        " scorer=match())\n"
    )
    command = [
        str(INSPECT.bin / "inspect"),
        "eval",
        "sums.py",
        "--model",
        model,
        "--display",
        "none",
    ]
    command += ["--max-connections", "128", "--max-samples", "256", "--log-dir", "logs"]
    if model.startswith("openai/"):
        command += ["-M", "responses_api=false"]
    # It ends with 0 even where the evaluation failed, so its log is asked.
    check = (
        f"'{INSPECT.bin}/inspect' log dump logs/*.eval --header-only | grep -q"
        ' \'"status": "success"\''
    )
    return ["sh", "-c", f"{shlex.join(command)} && {check}"]


System = tuple[str, Callable[[Path], list[str]]]
SYSTEMS: tuple[System, ...] = (
    ("evalwright", ours),
    ("lm_eval", lm_eval),
    ("inspect_ai", inspect_ai),
)


def run_system(
    make: Callable[[Path], list[str]], count: int, extra: dict[str, str] | None = None
) -> ProcessUsage:
    """One evaluation of `count` samples in a fresh folder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        questions(folder / "questions.jsonl", count)
        return measure(make(folder), folder, extra)


# -- the parts -------------------------------------------------------------------------


def cpu_per_sample(
    systems: Sequence[System],
    count: int,
    repeats: int,
    extra: dict[str, str] | None = None,
) -> None:
    slopes: dict[str, list[float]] = {name: [] for name, _ in systems}
    for _ in range(repeats):
        for name, make in systems:
            small = run_system(make, SMALL, extra)
            large = run_system(make, count, extra)
            slopes[name].append(1000 * (large.cpu - small.cpu) / (count - SMALL))
    yardstick = systems[0][0]
    base = statistics.median(slopes[yardstick])
    heads = ("system", f"CPU ms a sample ({count:,} samples)", f"times {yardstick}")
    table = Table(heads)
    for name, milliseconds in slopes.items():
        median = statistics.median(milliseconds)
        table.add(name, f"{median:.3f}", f"{median / base:.1f}")


def start_up(repeats: int, trees: Sequence[Path]) -> None:
    peers: dict[str, list[list[str]]] = {
        "bare python": [[str(OURS.python), "-c", "pass"]],
        "evalwright": [
            [str(OURS.bin / "evalwright"), "--help"],
            [str(OURS.bin / "evalwright"), "tasks", "list"],
        ],
        "evalwright with 1,000 task files of one's own": [
            [
                "env",
                "EVALWRIGHT_TASKS=mine",
                str(OURS.bin / "evalwright"),
                "tasks",
                "list",
            ]
        ],
        "lm_eval": [
            [str(LM_EVAL.bin / "lm_eval"), "--help"],
            [str(LM_EVAL.bin / "lm_eval"), "ls", "tasks"],
        ],
        "inspect_ai": [
            [str(INSPECT.bin / "inspect"), "--help"],
            [str(INSPECT.bin / "inspect"), "list", "tasks"],
        ],
    }
    of_trees: dict[str, list[list[str]]] = {
        "bare python": [[sys.executable, "-c", "pass"]],
        **{
            name: [
                [*command_of_tree(tree), "--help"],
                [*command_of_tree(tree), "tasks", "list"],
            ]
            for name, tree in zip(("before", "after"), trees, strict=False)
        },
    }
    rows = of_trees if trees else peers
    times: dict[str, list[list[float]]] = {
        name: [[] for _ in commands] for name, commands in rows.items()
    }
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "mine").mkdir()
        for number in range(1000):
            text = (
                f"task: t{number}\ndescription: Task {number}.\nmetadata: {{language:"
                " en, domain: art}\n"
            )
            (folder / "mine" / f"t{number}.yaml").write_text(text)
        for commands in rows.values():  # once uncounted: byte code and caches
            for command in commands:
                measure(command, folder)
        for _ in range(max(5, repeats)):
            for system, commands in rows.items():
                for place, command in enumerate(commands):
                    times[system][place].append(1000 * measure(command, folder).wall)
    base = statistics.median(times["bare python"][0])
    table = Table(["command", "wall ms", "times bare python"])
    for system, commands in rows.items():
        for place, command in enumerate(commands):
            milliseconds = statistics.median(times[system][place])
            shown = f"{system} {_arguments(command)}"
            table.add(shown, f"{milliseconds:.0f}", f"{milliseconds / base:.1f}")


def _arguments(command: Sequence[str]) -> str:
    """What is typed behind the name of a command."""
    behind = command.index("evalwright") + 1 if "evalwright" in command else 1
    return " ".join(command[behind:])


def first_request(systems: Sequence[System], repeats: int) -> None:
    """Wall time of a whole run of one sample, which is the time to the first request and the little
    after it.
    """
    walls: dict[str, list[float]] = {name: [] for name, _ in systems}
    for _ in range(repeats + 1):
        for name, make in systems:
            walls[name].append(run_system(make, 1).wall)
    table = Table(["system", "seconds for a run of one sample"])
    for name, seconds in walls.items():
        table.add(name, f"{statistics.median(seconds[1:]):.2f}")


def memory(systems: Sequence[System], count: int, big: int) -> None:
    """Peak memory at two sizes. inspect_ai would take half an hour for the larger one, so it gets
    twice the smaller.
    """
    sizes = ("samples", "peak MiB", "more samples", "their peak MiB")
    table = Table(["system", *sizes, "KiB a sample"])
    for name, make in systems:
        most = 2 * count if name == "inspect_ai" else big
        small = run_system(make, count).memory
        large = run_system(make, most).memory
        kib_per_sample = 1024 * (large - small) / (most - count)
        peaks = (f"{count:,}", f"{small:.0f}", f"{most:,}", f"{large:.0f}")
        table.add(name, *peaks, f"{kib_per_sample:.2f}")


def over_http(count: int, repeats: int, trees: Sequence[Path]) -> None:
    server = subprocess.Popen(
        [
            sys.executable if trees else str(OURS.python),
            str(Path(__file__).with_name("instant_server.py")),
        ],
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert server.stdout is not None
        url = f"http://127.0.0.1:{int(server.stdout.readline())}/v1"
        chat = (
            "--model",
            "openai/instant",
            "-M",
            f"base_url={url}",
            "-M",
            "max_concurrency=128",
        )
        systems: tuple[System, ...] = (
            ("evalwright", lambda folder: ours(folder, chat)),
            ("inspect_ai", lambda folder: inspect_ai(folder, "openai/instant")),
        )
        if trees:
            before, after = trees
            systems = (
                ("before", from_tree(before, chat)),
                ("after", from_tree(after, chat)),
            )
        print("\nOver HTTP, 128 connections:")
        cpu_per_sample(
            systems,
            count,
            repeats,
            {"OPENAI_BASE_URL": url, "OPENAI_API_KEY": "not-a-key"},
        )
    finally:
        server.terminate()
        server.wait()


def main() -> None:
    parser = option_parser(__doc__)
    parser.add_argument("--samples", type=int, default=10_000)
    parser.add_argument("--big", type=int, default=100_000)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--only", default="cpu,http,start,memory")
    parser.add_argument(
        "--trees", nargs=2, type=Path, default=(), metavar=("BEFORE", "AFTER")
    )
    options = parser.parse_args()
    trees: Sequence[Path] = options.trees
    systems = SYSTEMS
    if trees:
        systems = tuple(zip(("before", "after"), map(from_tree, trees), strict=True))
    peers: tuple[Peer, ...] = () if trees else (OURS, LM_EVAL, INSPECT)
    for peer in peers:
        peer.ensure()
    parts = set(options.only.split(","))
    if "start" in parts:
        start_up(options.repeats, trees)
        first_request(systems, options.repeats)
    if "cpu" in parts:
        cpu_per_sample(systems, options.samples, options.repeats)
    if "http" in parts:
        over_http(options.samples, options.repeats, trees)
    if "memory" in parts:
        memory(systems, options.samples, options.big)


if __name__ == "__main__":
    main()
