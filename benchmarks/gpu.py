"""`hf/` and `vllm-local/` beside lm_eval's `hf` and `vllm` on one GPU, in one go of eight minutes.

    python -m benchmarks gpu [--minutes 8] [--out FOLDER] [--shape llama-1b|qwen-1.5b|tiny]
        [--device cuda] [--dtype bfloat16] [--parts make,rates,hf,...] [--peer-path FOLDER]
        [--questions 600] [--shots 1000] [--texts 200] [--contexts 600] [--prompts 96]
        [--tokens 128] [--sample 16] [--peer-batch 32]

It needs no network: the model has random weights and the sizes of Llama 3.2 1B or Qwen 2.5 1.5B,
and the tokenizer is made here. Each part is a process of its own with a limit of its own; a part
that hangs loses only itself, and what is done is in FOLDER (default $OUT, else here) at once:
`gpu.json`, `gpu.md` and `gpu.log`. The parts, in order: `make` the model; measure the card's
`rates`; `hf`; `lm-eval-hf`; `numbers`, the same requests on the CPU and the device; `vllm-local`;
`lm-eval-vllm`. What is not installed is left out, and named. Beside torch and transformers, lm_eval
needs few packages here: `pip install --no-deps --target FOLDER lm_eval==0.4.13 dill chardet`, and
`--peer-path FOLDER`. Try it without a GPU: `--device cpu --dtype float32 --shape tiny --questions 4
--shots 40 --texts 2 --contexts 3 --prompts 2 --tokens 4 --sample 4`.

The sets: `letters`, four one-letter answers after shared examples and a question; `texts`, four
answers of 30 tokens likewise; `endings`, four endings of different lengths for each context;
`generation`, greedy answers. Each system answers a few requests before it is timed, and each set up
to three times, with other texts of the same sizes; the least time counts.

tokens/s: all tokens of all requests, as if nothing were shared; of `generation` those written.
share: time of the products with every different token and position read, at the rates measured for
these shapes, divided by the time taken. tree pass: the same for the model's layers alone, by the
device's own clock. peak: the most memory in use on the device, or by the process on a CPU, beyond
what was in use before.

The exit code is 1 if numbers differ: in float32 a log-likelihood by more than 0.001 between device
and CPU; in bfloat16 by more than 0.15 per token, between them or between ours and lm_eval's; or if
they could not be compared.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, fields
from pathlib import Path
from typing import Any

SOURCE = Path(__file__).resolve().parents[1] / "src"
sys.path[:0] = [str(Path(__file__).parent), str(SOURCE)]

from gpu_worker import SHAPES, Options, matrices_of  # noqa: E402, I001
from measuring import option_parser, table_lines  # noqa: E402
from evalwright.models.local.hardware import nvml  # noqa: E402

LIMIT_SECONDS = {
    "make": 60,
    "rates": 40,
    "hf": 90,
    "lm-eval-hf": 110,
    "numbers": 90,
    "vllm-local": 110,
    "lm-eval-vllm": 90,
}
"""Most seconds of each part; the last ones get what is left of all minutes."""
WATCH_SECONDS = 0.2
FLOAT32_MARGIN = 1e-3
"""Most difference of a request's log-likelihood in float32."""
BFLOAT16_MARGIN = 0.15
"""Most difference per token in bfloat16, whose numbers have eight bits."""
OFFLINE = {
    "HF_HUB_OFFLINE": "1",
    "HF_DATASETS_OFFLINE": "1",
    "TRANSFORMERS_OFFLINE": "1",
    "TOKENIZERS_PARALLELISM": "false",
    "VLLM_NO_USAGE_STATS": "1",
    "DO_NOT_TRACK": "1",
    "PYTHONUNBUFFERED": "1",
}
SCORED_SETS = ("letters", "texts", "endings")
SYSTEM_COLUMNS = (
    "system",
    "set",
    "seconds",
    "tokens/s",
    "share",
    "tree pass",
    "peak GiB",
)


@dataclass(frozen=True)
class PartOutcome:
    """How a part ended.

    Attributes:
        report: what it wrote.
        problem: why it is not complete; "" if it is.
        seconds: how long it took.
        peak_gib: memory that it used.
    """

    report: dict[str, Any]
    problem: str
    seconds: float
    peak_gib: float


def run_part(
    part: str, folder: Path, options: Options, limit: float, log: Path, peer_path: str
) -> PartOutcome:
    """Run a part in a process of its own, and end it with all that it started at its limit."""
    worker = Path(__file__).with_name("gpu_worker.py")
    command = [sys.executable, str(worker), part, "--folder", str(folder)]
    command += ["--options", json.dumps(vars(options))]
    paths = [str(SOURCE)]
    if part.startswith("lm-eval") and peer_path:
        paths.append(peer_path)
    inherited = os.environ.get("PYTHONPATH")
    environment = {
        **os.environ,
        **OFFLINE,
        "PYTHONPATH": os.pathsep.join([*paths, *([inherited] if inherited else [])]),
    }
    before = used_bytes(options.device, None)
    began = time.monotonic()
    with log.open("ab") as output:
        output.write(f"\n--- {part}\n".encode())
        output.flush()
        process = subprocess.Popen(
            command,
            stdout=output,
            stderr=output,
            stdin=subprocess.DEVNULL,
            env=environment,
            start_new_session=True,
        )
        peak, timed_out = watch(process, options.device, began + limit)
    problem = ""
    if timed_out:
        problem = f"ended after {limit:.0f} s"
    elif process.returncode:
        problem = f"exit code {process.returncode}: {last_line(log)}"
    report: dict[str, Any] = {}
    with suppress(OSError, ValueError):
        report = json.loads((folder / f"{part}.json").read_text(encoding="utf-8"))
    if "left_out" in report:
        problem = f"left out: {report['left_out']}"
    seconds = time.monotonic() - began
    return PartOutcome(report, problem, seconds, max(0, peak - before) / 2**30)


def watch(
    process: subprocess.Popen[bytes], device: str, until: float
) -> tuple[int, bool]:
    """Wait for a part; return the most memory that was in use, and whether its time was over."""
    peak = 0
    timed_out = False
    while True:
        peak = max(peak, used_bytes(device, process.pid))
        with suppress(subprocess.TimeoutExpired):
            process.wait(WATCH_SECONDS)
            break
        if time.monotonic() > until:
            timed_out = True
            break
    # Processes that it started must not keep the device's memory.
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()
    return peak, timed_out


def used_bytes(device: str, process: int | None) -> int:
    """Return the memory in use: on all cards, or by a process."""
    if device == "cuda":
        return sum(
            card.memory - card.free
            for card in nvml.cards()
            if card.memory is not None and card.free is not None
        )
    with suppress(OSError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        line = next(line for line in lines if line.startswith("VmHWM"))
        return int(line.split()[1]) * 1024
    return 0


def last_line(log: Path) -> str:
    """Return the last line of a log."""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    return lines[-1][:200] if lines else ""


# --- from what was measured to tables


def ideal_seconds(
    options: Options, rates: Sequence[Mapping[str, Any]], tokens: int, read: int
) -> float | None:
    """Return how long the products take at the measured rates; None if these are not known.

    Args:
        options: the sizes.
        rates: products a second by matrix and tokens.
        tokens: tokens that go through the layers.
        read: positions that go through the output head.
    """
    seconds = 0.0
    for name, (inputs, outputs, count) in matrices_of(SHAPES[options.shape]).items():
        rows = read if name == "head" else tokens
        measured = [rate for rate in rates if rate["matrix"] == name]
        if not measured:
            return None
        nearest = min(measured, key=lambda rate: abs(rate["tokens"] - rows))
        seconds += 2 * rows * inputs * outputs * count / nearest["per_second"]
    return seconds


def set_rows(
    part: str, outcome: PartOutcome, options: Options, rates: Sequence[Any]
) -> Iterator[list[str]]:
    """Yield the rows of a system in the table."""
    for name, measured in outcome.report.get("sets", {}).items():
        seconds = min(measured["seconds"])
        written = measured["written"]
        ideal = ideal_seconds(options, rates, measured["different"], measured["read"])
        share = "" if ideal is None else f"{ideal / seconds:.0%}"
        tree = tree_share(measured, options, rates) if name in SCORED_SETS else None
        yield [
            part,
            name,
            f"{seconds:.2f}",
            f"{(written or measured['tokens']) / seconds:,.0f}",
            share,
            "" if tree is None else f"{tree:.0%}",
            f"{outcome.peak_gib:.1f}",
        ]


def tree_share(
    measured: Mapping[str, Any], options: Options, rates: Sequence[Any]
) -> float | None:
    """Return the share of the measured rate in the passes through the layers; None if unknown."""
    ideal = 0.0
    taken = 0.0
    for tokens, seconds in measured.get("passes") or []:
        needed = ideal_seconds(options, rates, tokens, 0)
        if needed is None:
            return None
        ideal += needed
        taken += seconds
    return ideal / taken if taken else None


@dataclass(frozen=True)
class Comparison:
    """One comparison of numbers.

    Attributes:
        text: what was compared.
        difference: the largest difference; None if it could not be compared.
        margin: the largest that may be.
        unit: what the difference is of.
    """

    text: str
    difference: float | None
    margin: float
    unit: str

    @property
    def shown(self) -> str:
        """The difference in words."""
        if self.difference is None:
            return "not compared"
        return f"{self.difference:.2g} {self.unit}"

    @property
    def holds(self) -> bool:
        """Whether the numbers are equal within the margin."""
        return self.difference is not None and self.difference <= self.margin


def compare_numbers(outcomes: Mapping[str, PartOutcome]) -> list[Comparison]:
    """Compare the device with the CPU, and ours with lm_eval's."""
    comparisons = []
    numbers = outcomes.get("numbers")
    if numbers is not None:
        report = numbers.report
        for dtype, margin in (
            ("float32", FLOAT32_MARGIN),
            ("bfloat16", BFLOAT16_MARGIN),
        ):
            cpu, device = (report.get(f"{side} {dtype}") for side in ("cpu", "device"))
            per_token = dtype == "bfloat16"
            difference = None
            if cpu is not None and device is not None:
                difference = max(
                    abs(ours[0] - theirs[0]) / (tokens if per_token else 1)
                    for name in SCORED_SETS
                    for ours, theirs, tokens in zip(
                        device["log_likelihoods"][name],
                        cpu["log_likelihoods"][name],
                        report["tokens"][name],
                        strict=True,
                    )
                )
            unit = "per token" if per_token else "per request"
            comparisons.append(
                Comparison(f"device and CPU, {dtype}", difference, margin, unit)
            )
    for ours, theirs in (("hf", "lm-eval-hf"), ("vllm-local", "lm-eval-vllm")):
        comparisons += compare_systems(ours, theirs, outcomes)
    return comparisons


def compare_systems(
    ours: str, theirs: str, outcomes: Mapping[str, PartOutcome]
) -> Iterator[Comparison]:
    """Compare the log-likelihoods of two systems, where both answered a set."""
    if ours not in outcomes or theirs not in outcomes:
        return
    our_sets = outcomes[ours].report.get("sets", {})
    their_sets = outcomes[theirs].report.get("sets", {})
    for name in SCORED_SETS:
        if name not in our_sets or name not in their_sets:
            continue
        answers = our_sets[name]["answers"]
        tokens = our_sets[name]["read"] / len(answers)
        difference = max(
            abs(our[0] - their[0]) / tokens
            for our, their in zip(answers, their_sets[name]["answers"], strict=True)
        )
        yield Comparison(
            f"{ours} and {theirs}, {name}", difference, BFLOAT16_MARGIN, "per token"
        )


def equal_texts(outcomes: Mapping[str, PartOutcome]) -> list[str]:
    """Say how many generated texts are equal: random weights decide many tokens by rounding."""
    sentences = []
    for ours, theirs in (("hf", "lm-eval-hf"), ("vllm-local", "lm-eval-vllm")):
        texts = [
            outcomes[part].report.get("sets", {}).get("generation", {}).get("answers")
            for part in (ours, theirs)
            if part in outcomes
        ]
        if len(texts) == 2 and texts[0] and texts[1]:
            same = sum(our == their for our, their in zip(*texts, strict=True))
            sentences.append(
                f"Texts of {ours} and {theirs}: {same} of {len(texts[0])} are equal."
            )
    return sentences


def render(outcomes: Mapping[str, PartOutcome], options: Options) -> str:
    """Write the tables as Markdown."""
    rates_report = outcomes["rates"].report if "rates" in outcomes else {}
    rates = rates_report.get("rates", [])
    device = rates_report.get("device", "?")
    torch = rates_report.get("torch", "?")
    system_rows = [
        row
        for part, outcome in outcomes.items()
        for row in set_rows(part, outcome, options, rates)
    ]
    comparison_rows = [
        (comparison.text, comparison.shown, f"{comparison.margin:g}")
        for comparison in compare_numbers(outcomes)
    ]
    rate_rows = [
        (rate["matrix"], f"{rate['tokens']:,}", f"{rate['per_second'] / 1e12:.3g}")
        for rate in rates
    ]
    part_rows = [
        (part, f"{outcome.seconds:.1f}", outcome.problem or "done")
        for part, outcome in outcomes.items()
    ]
    lines = [
        f"{options.shape}, {options.dtype}, on {device}, torch {torch}",
        "",
        *table_lines(SYSTEM_COLUMNS, system_rows),
        "",
        *table_lines(("compared", "largest difference", "may be"), comparison_rows),
        "",
        *equal_texts(outcomes),
        "",
        *table_lines(("matrix", "tokens", "TFLOP/s"), rate_rows),
        "",
        *table_lines(("part", "seconds", ""), part_rows),
    ]
    return "\n".join(lines) + "\n"


def write_reports(
    out: Path, outcomes: Mapping[str, PartOutcome], options: Options
) -> None:
    """Write what is known so far, without the answers, which are long."""
    parts = {
        part: {
            "seconds": outcome.seconds,
            "problem": outcome.problem,
            "peak_gib": outcome.peak_gib,
            "report": without_answers(outcome.report),
        }
        for part, outcome in outcomes.items()
    }
    comparisons = [
        {**vars(comparison), "holds": comparison.holds}
        for comparison in compare_numbers(outcomes)
    ]
    record = {"options": vars(options), "parts": parts, "comparisons": comparisons}
    (out / "gpu.json").write_text(json.dumps(record, indent=1), encoding="utf-8")
    (out / "gpu.md").write_text(render(outcomes, options), encoding="utf-8")


def without_answers(report: Any) -> Any:
    """Return a report without answers and single passes."""
    left_out = ("answers", "passes", "log_likelihoods", "texts", "tokens")
    if not isinstance(report, dict):
        return report
    return {
        name: without_answers(nested)
        for name, nested in report.items()
        if name not in left_out or not isinstance(nested, list | dict)
    }


def run_parts(
    parts: Sequence[str], options: Options, out: Path, minutes: float, peer_path: str
) -> dict[str, PartOutcome]:
    """Run the parts one after the other; what is known is written after each."""
    out.mkdir(parents=True, exist_ok=True)
    log = out / "gpu.log"
    log.write_bytes(b"")
    until = time.monotonic() + 60 * minutes
    outcomes: dict[str, PartOutcome] = {}
    with tempfile.TemporaryDirectory() as temporary:
        for part in parts:
            limit = min(LIMIT_SECONDS[part], until - time.monotonic())
            outcome = PartOutcome({}, "no time was left", 0.0, 0.0)
            if limit >= 1:
                outcome = run_part(
                    part, Path(temporary), options, limit, log, peer_path
                )
            outcomes[part] = outcome
            write_reports(out, outcomes, options)
            ending = outcome.problem or "done"
            print(f"{part}: {ending}, {outcome.seconds:.1f} s", flush=True)
            if part == "make" and outcome.problem:
                break
    return outcomes


def main(arguments: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--minutes", type=float, default=8.0)
    parser.add_argument("--out", type=Path, default=Path(os.environ.get("OUT", ".")))
    parser.add_argument("--parts", default=",".join(LIMIT_SECONDS))
    parser.add_argument("--peer-path", default="")
    for option in fields(Options):
        name = f"--{option.name.replace('_', '-')}"
        kind = int if isinstance(option.default, int) else str
        choices = {"shape": list(SHAPES), "device": ["cuda", "cpu"]}.get(option.name)
        parser.add_argument(name, type=kind, default=option.default, choices=choices)
    parsed = vars(parser.parse_args(arguments))
    options = Options(
        **{option.name: parsed[option.name] for option in fields(Options)}
    )
    parts = parsed["parts"].split(",")
    unknown = [part for part in parts if part not in LIMIT_SECONDS]
    if unknown:
        parser.error(f"{unknown[0]!r} is no part; there are {', '.join(LIMIT_SECONDS)}")

    outcomes = run_parts(
        parts, options, parsed["out"], parsed["minutes"], parsed["peer_path"]
    )
    print(render(outcomes, options))
    comparisons = [
        comparison
        for comparison in compare_numbers(outcomes)
        if comparison.difference is not None
    ]
    differing = [comparison for comparison in comparisons if not comparison.holds]
    for comparison in differing:
        print(f"Numbers differ: {comparison.text}")
    return 0 if comparisons and not differing else 1


if __name__ == "__main__":
    sys.exit(main())
