"""Intervals, slices and a paired comparison of a million samples: seconds and memory.

    python -m benchmarks million [--samples 1000000] [--answer 200] [--folder DIR]

Two runs of one task are written first (not timed): right or wrong answers, three metrics (a
clustered mean, one over repeated passages, one graded), two slice keys, passages of ten questions
as clusters, answers of so many characters. Then, each in a process of its own: `numbers` puts the
scores in order and computes every metric with its interval, as a whole and by slice, as the end of
a run does; `compare` reads both records, makes their numbers again and compares them, pair by pair,
as it must where this machine has no table of their scores; `again` has the tables; `slices` has
them too and compares by both slice keys as well.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from decision_questions.records import run_record
from evalwright.api import compare as compare_runs
from evalwright.core.samples import Answer, Sample, SampleRecord, Score
from evalwright.core.tasks import MetricSpec
from evalwright.runs.aggregation import TaskTally
from evalwright.runs.reader import open_run
from evalwright.runs.writer import RunWriter
from measuring import Table, option_parser, peak_mib

SLICES = ("subject", "language")
METRICS = (
    MetricSpec("accuracy", "accuracy", "exact"),
    MetricSpec("mean", "mean", "exact"),
    MetricSpec("quality", "mean", "graded"),
)


def record(index: int, rng: random.Random, skill: float, answer: str) -> SampleRecord:
    """One answered and scored sample."""
    hard = random.Random(index).random()
    right = float(rng.random() < skill + 0.4 * (0.5 - hard))
    sample = Sample(
        id=f"q{index}",
        input=f"Question number {index}?",
        targets=("yes",),
        metadata={
            "subject": f"subject {index % 57}",
            "language": ["en", "ko", "id", "th"][index % 4],
        },
        cluster=f"passage {index // 10}",
    )
    scores = {
        "exact": Score(right),
        "graded": Score(round(0.5 * right + 0.5 * rng.random(), 3)),
    }
    return SampleRecord("million", index, 0, sample, Answer(text=answer), scores)


def write(folder: Path, seed: int, skill: float, options: argparse.Namespace) -> None:
    """One run's folder."""
    rng = random.Random(seed)
    answer = "a" * options.answer
    with RunWriter(folder) as writer:
        tally = TaskTally(["exact", "graded"], SLICES)
        for index in range(options.samples):
            sample = record(index, rng, skill, answer)
            writer.add(index, sample)
            tally.add(sample)
        result = tally.result("million", "1", METRICS).as_dict()
        entry = {
            **result,
            "definition": {},
            "content_hash": "",
            "scorers": [
                {"name": name, "kind": name, "options": {}}
                for name in ("exact", "graded")
            ],
            "slice_keys": list(SLICES),
            "metric_specs": [
                {
                    "label": metric.label,
                    "kind": metric.kind,
                    "scorer": metric.scorer,
                    "options": {},
                }
                for metric in METRICS
            ],
        }
        writer.finish(run_record(folder.name, ["million"], [entry]))


def numbers(folder: Path) -> dict[str, Any]:
    """The metrics of a run again, from its scores."""
    tally = TaskTally(["exact", "graded"], SLICES)
    for sample in open_run(folder / "a").samples():
        tally.add(sample)
    began = time.perf_counter()
    cpu = time.process_time()
    result = tally.result("million", "1", METRICS)
    seconds = time.perf_counter() - began
    cpu = time.process_time() - cpu
    estimate = result.metrics[0].estimate
    parts = sum(len(values) for values in result.slices.values())
    return {
        "seconds": seconds,
        "cpu": cpu,
        "what": (
            f"{estimate.value:.4f} ({estimate.low:.4f} to {estimate.high:.4f}), {parts} slices"
        ),
    }


def compare_run_pair(folder: Path, slices: Sequence[str] = ()) -> dict[str, Any]:
    """The comparison of both runs."""
    began = time.perf_counter()
    cpu = time.process_time()
    comparison = compare_runs(
        open_run(folder / "a"), open_run(folder / "b"), slices=slices
    )
    seconds = time.perf_counter() - began
    cpu = time.process_time() - cpu
    return {"seconds": seconds, "cpu": cpu, "what": comparison.conclusion}


def main() -> None:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--samples", type=int, default=1_000_000)
    parser.add_argument(
        "--answer", type=int, default=200, help="characters of an answer"
    )
    parser.add_argument(
        "--folder", type=Path, help="keep the runs here, and take them from here"
    )
    parser.add_argument(
        "--step", choices=["numbers", "compare", "slices"], help=argparse.SUPPRESS
    )
    options = parser.parse_args()
    if options.step:
        if options.step == "numbers":
            report = numbers(options.folder)
        else:
            report = compare_run_pair(
                options.folder, SLICES if options.step == "slices" else ()
            )
        report["mib"] = peak_mib()
        print(json.dumps(report))
        return
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.folder or Path(temporary)
        for seed, (name, skill) in enumerate([("a", 0.70), ("b", 0.69)]):
            if not (folder / name / "run.json").exists():
                write(folder / name, seed, skill, options)
        # What was kept of these runs before saves the first comparison's reading: it begins
        # without.
        home = Path(temporary) / "home"
        size = sum(file.stat().st_size for file in folder.glob("*/samples.jsonl")) / 1e6
        title = f"{options.samples} samples a run, {size:.0f} MB of records in both"
        figures = ("seconds", "CPU seconds", "peak memory, MiB", "what came out")
        table = Table(["step", *figures], title)
        for label, step in (
            ("numbers", "numbers"),
            ("compare", "compare"),
            ("again", "compare"),
            ("slices", "slices"),
        ):
            command = [
                sys.executable,
                __file__,
                "--step",
                step,
                "--folder",
                str(folder),
            ]
            environment = {**os.environ, "EVALWRIGHT_HOME": str(home)}
            done = subprocess.run(
                command, capture_output=True, text=True, check=True, env=environment
            )
            report = json.loads(done.stdout)
            seconds = (f"{report['seconds']:.1f}", f"{report['cpu']:.1f}")
            table.add(label, *seconds, f"{report['mib']:.0f}", report["what"])


if __name__ == "__main__":
    main()
