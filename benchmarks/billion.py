"""What 10^9 requests would cost: two small runs measured, and the difference between them
multiplied.

    python -m benchmarks billion [--samples 5000,20000] [--answer 400] [--shards 4]

Each run sends every sample's prompt (about 500 characters) to a server on loopback that answers at
once with --answer characters, scores it, stores the response and writes the record; then it is read
again with all responses stored, and made once more in --shards shards that are merged. By step: CPU
milliseconds a request of the client, peak memory, bytes of the store and of the record. Taking the
difference between two sizes leaves out start-up.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from measuring import Table, add_numbers, measure_command, option_parser

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent / "tests"))

from support.openai_server import serving  # noqa: E402

Cost = dict[str, float]
BILLION = 1_000_000_000


def measure_run(arguments: Sequence[str], base: Path) -> Cost:
    """CPU seconds and peak bytes of the command `evalwright` with these arguments."""
    command = [sys.executable, "-m", "evalwright", *arguments]
    environment = {**os.environ, "EVALWRIGHT_HOME": str(base / "home")}
    usage = measure_command(command, base, environment)
    return {"cpu": usage.cpu, "peak": usage.memory * 2**20}


def size(folder: Path) -> float:
    """The total size of the files in a folder, in bytes."""
    return float(
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
    )


def measure_steps(samples: int, shards: int, url: str, base: Path) -> dict[str, Cost]:
    """Measure the cost of every step."""
    rows = base / "rows.jsonl"
    task = base / "billion.yaml"
    with rows.open("w") as file:
        for number in range(samples):
            text = (
                f"Question {number}: " + "how much of this is read by the model? " * 12
            )
            file.write(json.dumps({"input": text, "target": str(number % 7)}) + "\n")
    task.write_text(
        f"task: billion\ndataset: {rows}\nanswer: {{max_tokens: 100}}\nscorers:"
        " [exact-match]\nmetrics: [accuracy]\n"
    )
    model = ["--model", f"openai/{url}#m"]
    model += ["-M", "interface=completions", "-M", "echo=false"]
    run = ["run", str(task), *model, "--quiet", "--out", str(base / "runs")]
    costs = {}
    costs["sent"] = measure_run([*run, "--name", "first"], base)
    costs["sent"] |= {"store": size(base / "home"), "record": size(base / "runs")}
    costs["read from the store"] = measure_run([*run, "--name", "again"], base)
    parts = [
        measure_run([*run, "--name", "parts", "--shard", f"{n}/{shards}"], base)
        for n in range(1, shards + 1)
    ]
    costs["a shard"] = {
        "cpu": sum(part["cpu"] for part in parts),
        "peak": max(part["peak"] for part in parts),
    }
    merge = ["runs", "merge", "parts", "--out", str(base / "runs")]
    costs["shards merged"] = measure_run(merge, base)
    return costs


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    options = option_parser(__doc__)
    options.add_argument("--samples", default="5000,20000")
    add_numbers(options, answer=400, shards=4)
    arguments = options.parse_args(words)
    few, many = map(int, arguments.samples.split(","))
    costs_by_size = []
    with serving(lambda prompt: "word " * (arguments.answer // 5), log=False) as server:
        for samples in (few, many):
            with tempfile.TemporaryDirectory() as where:
                costs_by_size.append(
                    measure_steps(samples, arguments.shards, server.url, Path(where))
                )
    table = Table(["step", "what", "a request", f"at {many:,}", "at 10^9"])
    for step, costs in costs_by_size[1].items():
        for what, value in costs.items():
            per_request = (value - costs_by_size[0][step][what]) / (many - few)
            unit = 1000 if what == "cpu" else 1
            at_billion = (
                f"{per_request * BILLION / 3600:,.0f} h"
                if what == "cpu"
                else f"{per_request * BILLION / 1e9:,.0f} GB"
            )
            at = f"{value:,.1f} s" if what == "cpu" else f"{value / 2**20:,.0f} MiB"
            each = f"{per_request * unit:,.3f} {'ms' if what == 'cpu' else 'B'}"
            table.add(step, what, each, at, at_billion)
    return 0


if __name__ == "__main__":
    sys.exit(main())
