"""20,000 requests to a server, killed three times on the way: nothing stored is lost or asked
again, and memory is flat.

    python -m benchmarks killed [--samples 20000] [--at-once 512] [--kills 3]

The server keeps books of every content that it received. After each `kill -9` the store's file is
read: what is in it must never reach the server again, and what is asked again must have been in
flight. At the end every question must have its answer in the store and its line in the record,
once. Peak memory is of whole runs with a tenth of the samples and with all.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import tempfile
import time
from collections import Counter
from pathlib import Path

from overhead import measure, ours, questions
from peers import OURS
from remote import chat_model, fetch_books, serving

READ_STORE = """\
import json, sqlite3, sys
from evalwright.engine.store_rows import unpack
store = sqlite3.connect(f"file:{sys.argv[1]}?mode=ro", uri=True)
rows = store.execute("SELECT request FROM responses")
for (request,) in rows:
    print(json.loads(unpack(request))["generate"][0][1])
"""


def read_stored(folder: Path) -> list[str]:
    """Read from the store's file which questions have answers."""
    store = folder / ".evalwright" / "store.sqlite"
    if not store.exists():
        return []
    command = [str(OURS.python), "-c", READ_STORE, str(store)]
    return subprocess.run(
        command, check=True, capture_output=True, text=True
    ).stdout.splitlines()


def count_received(server: str) -> Counter[str]:
    """Count how often each question reached the server."""
    times_by_question: Counter[str] = Counter()
    for body, times in fetch_books(server, "counts")["contents"].items():
        times_by_question[json.loads(body)["messages"][0]["content"]] += times
    return times_by_question


def run_with_kills(server: str, folder: Path, options: argparse.Namespace) -> None:
    """The run with its kills; raises AssertionError where something is lost or paid twice."""
    chance = random.Random(options.seed)
    command = ours(folder, chat_model(f"{server}/v1", options.at_once))
    seconds = options.samples * 0.2 / options.at_once
    times_when_stored: dict[str, int] = {}
    for number in range(options.kills):
        process = subprocess.Popen(
            command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        before = fetch_books(server, "counts?short")["received"]
        while fetch_books(server, "counts?short")["received"] == before:
            time.sleep(0.05)
        time.sleep(seconds / (options.kills + 1) * chance.uniform(0.5, 1.0))
        assert process.poll() is None, "it ended before it could be killed"
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        time.sleep(0.1)  # the server sees what was still on its way
        times = count_received(server)
        for text in read_stored(folder):
            times_when_stored.setdefault(text, times[text])
        print(
            f"kill {number + 1}: {sum(times.values()):,} received by the server,"
            f" {len(times_when_stored):,} stored",
            flush=True,
        )
    last = measure(command, folder)
    times = count_received(server)
    stored_counts = Counter(read_stored(folder))
    again = sum(count - 1 for count in times.values())
    paid_twice = [
        text for text, before in times_when_stored.items() if times[text] > before
    ]
    assert not paid_twice, f"asked again although stored: {paid_twice[:5]}"
    assert len(times) == len(stored_counts) == options.samples, (
        "a question was never asked or has no answer"
    )
    assert set(stored_counts.values()) == {1}
    assert again <= options.kills * options.at_once, (
        "more was asked again than was in flight"
    )
    (lines,) = (folder / "runs").glob("*/samples.jsonl")
    ids = [json.loads(line)["id"] for line in lines.open()]
    assert sorted(map(int, ids)) == list(range(options.samples))
    print(
        f"done: {len(stored_counts):,} answers stored, {len(ids):,} lines in the record; lost 0,"
        f" stored and asked again 0, in flight at a kill and asked again {again} (at"
        f" most {options.kills * options.at_once}); the last run took {last.wall:.1f} s"
    )


def memory(server: str, options: argparse.Namespace) -> None:
    """Measure the peak memory of whole runs of two sizes."""
    for count in (options.samples // 10, options.samples):
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place)
            questions(folder / "questions.jsonl", count)
            usage = measure(
                ours(folder, chat_model(f"{server}/v1", options.at_once)), folder
            )
            print(f"{count:,} samples: peak {usage.memory:.1f} MiB", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--samples", type=int, default=20_000)
    parser.add_argument("--at-once", type=int, default=512)
    parser.add_argument("--kills", type=int, default=3)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    OURS.ensure()
    with serving("--books") as server, tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        questions(folder / "questions.jsonl", options.samples)
        run_with_kills(server, folder, options)
    with serving() as server:
        memory(server, options)


if __name__ == "__main__":
    main()
