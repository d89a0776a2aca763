"""A transformers model on a CPU that two systems answer with, each in processes of its own: what
`scoring`, `generation` and `memory` share.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from local_systems import make_model
from measuring import Table, add_numbers, take_turns
from peers import LM_EVAL

HERE = Path(__file__).resolve().parent
REAL_SIZES = {"layers": 30, "hidden": 576, "vocab": 49_152}
"""Of a Llama of 135 million parameters with 9 heads over 3 of keys and values."""


@dataclass(frozen=True)
class Job:
    """What a process is to do.

    Attributes:
        side: "ours" or "lm_eval".
        model: the model's folder.
        call: "score" or "write".
        requests: what is answered, as `System` of local_systems.py takes it.
        batch_size: lm_eval's.
        clock: "wall" or "cpu".
        threads: of torch.
        arguments: further arguments of our model.
        warm: answered first, neither timed nor counted in the peak of memory.
    """

    side: str
    model: Path
    call: str
    requests: Sequence[Sequence[Any]]
    batch_size: str = "1"
    clock: str = "wall"
    threads: int = 1
    arguments: Mapping[str, Any] = field(default_factory=dict)
    warm: Sequence[Sequence[Any]] = ()


@dataclass(frozen=True)
class Outcome:
    """What a process did.

    Attributes:
        total: seconds of the whole process.
        seconds: seconds of the call that answers.
        peak_bytes: most memory beyond what was in use before that call.
        answers: scores or texts.
        how: how scores were computed; empty for lm_eval.
    """

    total: float
    seconds: float
    peak_bytes: int
    answers: list[Any]
    how: dict[str, Any]


def run_job(job: Job) -> Outcome:
    """Carry out a job in a process of its own.

    Raises:
        RuntimeError: it fails; with the end of what it printed.
    """
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(job.threads),
        "PYTHONPATH": str(HERE.parent / "src"),
    }
    if job.threads == 1:
        environment["TOKENIZERS_PARALLELISM"] = "false"
    python = Path(sys.executable)
    if job.side != "ours":
        del environment["PYTHONPATH"]
        python = LM_EVAL.python
    with tempfile.TemporaryDirectory() as name:
        job_file = Path(name, "job.json")
        output = Path(name, "output.json")
        settings = {**asdict(job), "model": str(job.model), "output": str(output)}
        job_file.write_text(json.dumps(settings), encoding="utf-8")
        began = time.perf_counter()
        done = subprocess.run(
            [str(python), str(HERE / "local_worker.py"), str(job_file)],
            env=environment,
            cwd=name,
            capture_output=True,
            text=True,
            check=False,
        )
        total = time.perf_counter() - began
        if done.returncode:
            raise RuntimeError(f"{job.side} failed:\n{done.stderr[-3000:]}")
        measurement = json.loads(output.read_text(encoding="utf-8"))
    cpu = measurement.pop("cpu")
    return Outcome(cpu if job.clock == "cpu" else total, **measurement)


@dataclass(frozen=True)
class Pair:
    """Both systems on one set.

    Attributes:
        ours: our outcomes, one a repeat.
        peer: lm_eval's.
        batch_size: lm_eval's.
    """

    ours: list[Outcome]
    peer: list[Outcome]
    batch_size: str

    def median(self, side: str, name: str) -> float:
        """Return the median of a figure of the outcomes of "ours" or "peer"."""
        outcomes: list[Outcome] = getattr(self, side)
        return float(statistics.median(getattr(outcome, name) for outcome in outcomes))


def measure_pair(
    call: str,
    model: Path,
    requests: Sequence[Any],
    peer_requests: Sequence[Any],
    samples: Mapping[str, Sequence[Any]],
    options: argparse.Namespace,
) -> Pair:
    """Have both systems answer, in turns.

    Args:
        call: "score" or "write".
        model: the model's folder.
        requests: what we answer.
        peer_requests: what lm_eval answers.
        samples: by batch size, what is answered to find lm_eval's fastest one.
        options: of `add_local_options`.
    """

    def job(side: str, batch: Sequence[Any], batch_size: str = "1") -> Job:
        return Job(side, model, call, batch, batch_size, options.clock, options.threads)

    batch_size = options.batch_size
    if batch_size is None:
        seconds = {
            size: run_job(job("lm_eval", sample, size)).seconds / len(sample)
            for size, sample in samples.items()
        }
        batch_size = min(seconds, key=lambda size: seconds[size])
    ways: dict[str, Callable[[], Outcome]] = {
        "ours": lambda: run_job(job("ours", requests)),
        "peer": lambda: run_job(job("lm_eval", peer_requests, batch_size)),
    }
    return Pair(**take_turns(ways, options.repeats), batch_size=batch_size)


def add_local_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of a model, and of how it is measured."""
    parser.add_argument("--data", type=Path)
    add_numbers(parser, hidden=256, vocab=32_000, layers=4, repeats=3)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--batch-size", help="lm_eval's, instead of finding its best")
    parser.add_argument("--real", action="store_true")


def parse_local_options(
    parser: argparse.ArgumentParser, words: Sequence[str] | None
) -> argparse.Namespace:
    """Parse the options; --real has sizes of its own."""
    options = parser.parse_args(words)
    if options.real:
        parser.set_defaults(**REAL_SIZES)
        options = parser.parse_args(words)
    LM_EVAL.ensure()
    return options


def make_llama(folder: Path, texts: Iterable[str], options: argparse.Namespace) -> int:
    """Write a Llama with grouped queries; return the number of parameters of its layers."""
    sizes = {
        "vocab_size": options.vocab,
        "hidden_size": options.hidden,
        "intermediate_size": options.hidden * 8 // 3 // 32 * 32,
        "num_hidden_layers": options.layers,
        "num_attention_heads": options.hidden // (64 if options.real else 32),
        "num_key_value_heads": options.hidden // (192 if options.real else 64),
        "tie_word_embeddings": options.real,
        "max_position_embeddings": 2048,
    }
    model = make_model(folder, texts, sizes)
    return sum(
        weights.numel()
        for name, weights in model.named_parameters()
        if "layers" in name
    )


def start_table(
    columns: Sequence[str], options: argparse.Namespace, rate: float
) -> Table:
    """Print what the model is and how fast products are, and the head of a table."""
    return Table(
        columns,
        f"Llama of {options.layers} layers, hidden {options.hidden}, vocabulary"
        f" {options.vocab}, float32, {options.threads} threads, {options.clock} time,"
        f" products {rate / 1e9:.0f} GFLOP/s",
    )


def product_rate(threads: int) -> float:
    """Measure the floating-point operations a second of a large float32 matrix product."""
    import torch

    torch.set_num_threads(threads)
    left = torch.randn(2048, 1024)
    right = torch.randn(1024, 1024)
    times = []
    for _ in range(9):
        began = time.perf_counter()
        left @ right
        times.append(time.perf_counter() - began)
    return 2 * 2048 * 1024 * 1024 / statistics.median(times)
