"""Other programs behind the proxy, killed at random moments and started again: nothing stored is
paid for twice.

    python -m benchmarks proxy_peers [--kills 10] [--seed 0]
        [--systems inspect_ai,promptfoo,lm_eval]

Each program runs unchanged, with the base URL and the key that `evalwright proxy -- COMMAND` gives
it, and asks each question three times at temperature 1. The proxy and the program are killed
together with SIGKILL, and the same command starts again. The model's server numbers its answers, so
no two are equal, and counts what it received. After each kill the store is read: a request that was
stored and sent again would be received without adding a row, so the difference between both may
only grow by what was in flight at the kill, and not at all in the last run. At the end the
program's own record must have three different answers to each question.
"""

from __future__ import annotations

import itertools
import json
import os
import random
import re
import shlex
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from measuring import Table, add_numbers, option_parser
from peers import INSPECT, LM_EVAL, PEERS, PROMPTFOO

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

QUESTIONS = 40
EPOCHS = 3
AT_ONCE = 4
LATENCY_SECONDS = 0.25
FIRST_REQUEST_SECONDS = 240.0
"""How long a program may take to start, on a busy machine."""
PROBES = {"inspect_ai": 1}
"""Requests that a program sends besides its questions, to see that the model answers."""
KEY = "sk-key-of-this-benchmark-0123"


def _write_questions(folder: Path) -> None:
    rows = [
        {"question": f"What is {number} + 1?", "answer": str(number + 1)}
        for number in range(QUESTIONS)
    ]
    (folder / "questions.jsonl").write_text(
        "".join(json.dumps(row) + "\n" for row in rows)
    )


def inspect_ai(folder: Path) -> list[str]:
    """A task in Python, with epochs."""
    (folder / "sums.py").write_text(f"""
from inspect_ai import Epochs, Task, task
from inspect_ai.dataset import FieldSpec, json_dataset
from inspect_ai.scorer import includes
from inspect_ai.solver import generate

@task
def sums():
    fields = FieldSpec(input="question", target="answer")
    return Task(dataset=json_dataset("questions.jsonl", fields), solver=generate(),
                scorer=includes(), epochs=Epochs({EPOCHS}, "mean"))
""")
    command = f"{INSPECT.bin}/inspect eval sums.py --model openai/measured"
    options = (
        f"--temperature 1 --max-connections {AT_ONCE} --display none --log-format json"
    )
    return shlex.split(f"{command} {options} --log-dir logs")


def promptfoo(folder: Path) -> list[str]:
    """A configuration, repeated; its own cache is switched off."""
    tests = [{"vars": {"number": str(number)}} for number in range(QUESTIONS)]
    config = {
        "prompts": ["What is {{number}} + 1?"],
        "providers": [{"id": "openai:chat:measured", "config": {"temperature": 1}}],
        "tests": tests,
    }
    (folder / "promptfooconfig.yaml").write_text(json.dumps(config))
    command = f"{PROMPTFOO.command} eval --no-cache --no-table"
    return shlex.split(f"{command} --repeat {EPOCHS} -j {AT_ONCE} -o logs/out.json")


def lm_eval(folder: Path) -> list[str]:
    """A task in YAML, with repeats."""
    (folder / "sums.yaml").write_text(f"""
task: sums
dataset_path: json
dataset_kwargs: {{data_files: questions.jsonl}}
test_split: train
output_type: generate_until
doc_to_text: "{{{{question}}}}"
doc_to_target: "{{{{answer}}}}"
repeats: {EPOCHS}
generation_kwargs: {{until: ["STOP"], do_sample: true, temperature: 1.0, max_gen_toks: 32}}
metric_list: [{{metric: exact_match}}]
""")
    address = "base_url=$OPENAI_BASE_URL/chat/completions"
    arguments = (
        f"model=measured,{address},num_concurrent={AT_ONCE},tokenized_requests=False"
    )
    command = f"{LM_EVAL.bin}/lm_eval --model local-chat-completions"
    options = "--include_path . --tasks sums --apply_chat_template --log_samples"
    script = f"{command} --model_args {arguments} {options} --output_path logs"
    return ["sh", "-c", f"exec {script}"]


SYSTEMS: dict[str, Callable[[Path], list[str]]] = {
    "inspect_ai": inspect_ai,
    "promptfoo": promptfoo,
    "lm_eval": lm_eval,
}


@dataclass
class Outcome:
    """How it went: requests that the server received, and rows of the store, after each run."""

    received: list[int]
    stored: list[int]
    lost: list[int]
    different: int


def stored_rows(home: Path) -> int:
    """Count the answers in a store."""
    file = home / "store.sqlite"
    if not file.exists():
        return 0
    try:
        with closing(sqlite3.connect(f"file:{file}?mode=ro", uri=True)) as store:
            return int(store.execute("SELECT count(*) FROM responses").fetchone()[0])
    except sqlite3.Error:
        return 0


def command_of(system: str, server: str, folder: Path) -> list[str]:
    """Return the whole command: the proxy, and the program behind it."""
    model = f"openai/{server}#measured"
    ours = [sys.executable, "-m", "evalwright", "proxy", "-m", model]
    return [*ours, "--home", "home", "--", *SYSTEMS[system](folder)]


def start(command: Sequence[str], folder: Path) -> subprocess.Popen[bytes]:
    """Start the command in a group of its own."""
    environment = {
        **os.environ,
        "OPENAI_API_KEY": KEY,
        "HF_HUB_OFFLINE": "1",
        "HF_DATASETS_OFFLINE": "1",
        "HF_HOME": str(folder / ".hf"),
        "PROMPTFOO_CONFIG_DIR": str(folder / ".promptfoo"),
        "PROMPTFOO_DISABLE_TELEMETRY": "1",
        "PROMPTFOO_DISABLE_UPDATE": "1",
    }
    with (folder / "output.log").open("ab") as log:
        return subprocess.Popen(
            command,
            cwd=folder,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )


def run_killed(system: str, kills: int, chance: random.Random) -> Outcome:
    """Run a program to its end, with kills; raises AssertionError where it pays twice."""
    from support.openai_server import serving

    numbers = itertools.count(1)
    extra = ("reasoning_effort", "max_gen_toks")
    with (
        tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as place,
        serving(
            lambda prompt: f"sample {next(numbers)}.",
            latency=LATENCY_SECONDS,
            extra=extra,
        ) as server,
    ):
        folder = Path(place)
        (folder / "logs").mkdir()
        _write_questions(folder)
        command = command_of(system, server.url, folder)
        outcome = Outcome([], [], [], 0)
        log = server.log
        assert log is not None
        for _ in range(kills):
            before = len(log)
            process = start(command, folder)
            deadline = time.monotonic() + FIRST_REQUEST_SECONDS
            while len(log) == before:
                output = (folder / "output.log").read_text(errors="replace")[-2000:]
                assert process.poll() is None, output
                assert time.monotonic() < deadline, output
                time.sleep(0.01)
            time.sleep(chance.uniform(0.0, 3 * LATENCY_SECONDS))
            assert process.poll() is None, "it ended before it could be killed"
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            time.sleep(2 * LATENCY_SECONDS)  # the server sees what was still on its way
            _note(outcome, len(log), stored_rows(folder / "home"))
        process = start(command, folder)
        code = process.wait()
        output = (folder / "output.log").read_text(errors="replace")
        assert code == 0, f"{system} ended with {code}: {output[-3000:]}"
        _note(outcome, len(log), stored_rows(folder / "home"))
        answers = {answer for file in _records(folder) for answer in _samples(file)}
        outcome.different = len(answers)
        _check(system, outcome)
        return outcome


def _note(outcome: Outcome, received: int, stored: int) -> None:
    lost_before = outcome.received[-1] - outcome.stored[-1] if outcome.received else 0
    outcome.lost.append(received - stored - lost_before)
    outcome.received.append(received)
    outcome.stored.append(stored)


def _check(system: str, outcome: Outcome) -> None:
    wanted = QUESTIONS * EPOCHS
    asked = wanted + PROBES.get(system, 0)
    assert max(outcome.lost) <= AT_ONCE, (
        f"{system}: something stored was sent again: {outcome}"
    )
    assert outcome.lost[-1] == 0, f"{system}: the last run lost something: {outcome}"
    assert outcome.stored[-1] == asked, f"{system}: {outcome}"
    assert outcome.different == wanted, f"{system}: epochs are equal: {outcome}"


def _records(folder: Path) -> Iterator[Path]:
    """Yield the newest record that a program wrote, by the end of its name."""
    files = [file for file in (folder / "logs").rglob("*.json*") if file.is_file()]
    yield from files


def _samples(file: Path) -> set[str]:
    return set(re.findall(r"sample (\d+)\.", file.read_text(errors="replace")))


def main(words: Sequence[str] | None = None) -> int:
    parser = option_parser(__doc__)
    add_numbers(parser, kills=10, seed=0)
    parser.add_argument("--systems", default=",".join(SYSTEMS))
    options = parser.parse_args(words)
    chance = random.Random(options.seed)
    counts = ("kills", "received", "stored", "in flight at the kills")
    table = Table(["program", *counts, "different answers"])
    for system in options.systems.split(","):
        PEERS[system].ensure()
        outcome = run_killed(system, options.kills, chance)
        table.add(
            system,
            options.kills,
            outcome.received[-1],
            outcome.stored[-1],
            sum(outcome.lost),
            outcome.different,
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
