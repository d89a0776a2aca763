"""One process of `scoring`, `generation` and `memory`: loads a model with one of the two systems,
answers a file of requests, and writes what came out.

    python local_worker.py JOB

JOB is a JSON file (see `Job` in local_process.py). It is run by each system's own interpreter, so
it imports nothing but that system.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

from local_systems import System, open_ours, open_peer


def memory_status(name: str) -> int:
    """Return a line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    line = next(line for line in lines if line.startswith(f"{name}:"))
    return int(line.split()[1]) * 1024


def open_system(job: dict[str, Any]) -> System:
    """Load the model."""
    folder = Path(job["model"])
    arguments = {"device": "cpu", "dtype": "float32"}
    if job["side"] == "ours":
        return open_ours("hf", folder, {**arguments, **job["arguments"]})
    batch_size = int(job["batch_size"])
    return open_peer("hf", folder, {**arguments, "batch_size": batch_size})


def main() -> None:
    """Carry out the job."""
    job = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # CPU seconds do not count the time that others take of a busy machine's cores.
    clock = time.process_time if job["clock"] == "cpu" else time.perf_counter
    system = open_system(job)
    answer = system.write if job["call"] == "write" else system.score
    if job["warm"]:
        answer(job["warm"])
    began = clock()
    Path("/proc/self/clear_refs").write_text("5")  # forgets the peak so far
    base = memory_status("VmRSS")
    answers = answer(job["requests"])
    measurement = {
        "seconds": clock() - began,
        "cpu": time.process_time(),
        "peak_bytes": memory_status("VmHWM") - base,
        "answers": answers,
        "how": system.describe(),
    }
    Path(job["output"]).write_text(json.dumps(measurement), encoding="utf-8")


if __name__ == "__main__":
    main()
