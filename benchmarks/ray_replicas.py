"""What replicas on Ray cost, and what they gain: one and two of them beside the same model in this
process.

    python -m benchmarks ray_replicas [--hidden 256] [--layers 4] [--contexts 500] [--repeats 3]

A Llama of random weights scores four endings of each context and writes some answers, one thread
for each copy, over and over in turns: in this process, with one replica, with two. Loading and
Ray's start are not counted. Machines are shared, so besides the time there are CPU seconds of the
processes that do the work: with one replica those of the replica and of this process together, as a
share of those without Ray; with two, those without Ray by those of the replica that has more to do
and of this process, which is how much sooner two cores that do nothing else are done. What Ray's
own processes take meanwhile stands apart: it goes with the time, not with the work.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from measuring import Table, add_numbers, cpu_of_process, option_parser

os.environ.update(
    OMP_NUM_THREADS="1", TOKENIZERS_PARALLELISM="false", HF_HUB_OFFLINE="1"
)
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from evalwright.core.errors import Failure
from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.core.responses import Response
from evalwright.models.local.cluster import Cluster, Placement
from evalwright.models.model_interface import LocalModel
from evalwright.models.registry import open_model
from support.ray_cluster import descendants
from support.tiny_models import CORPUS, make_tiny_model

TICKS = os.sysconf("SC_CLK_TCK")


class BatchCost(NamedTuple):
    """Seconds. here: CPU of this process; replicas: of each; ray: of Ray's own processes."""

    wall: float
    here: float
    replicas: list[float]
    ray: float


def requests(contexts: int) -> list[Request]:
    """Four endings of each context, and for every tenth an answer to write."""
    draw = random.Random(0)
    words = CORPUS.split()
    texts = [
        " ".join(draw.choices(words, k=draw.randint(10, 30))) for _ in range(contexts)
    ]
    endings = [" " + " ".join(draw.choices(words, k=3)) for _ in range(4)]
    scored: list[Request] = [
        LogLikelihood(text, ending) for text in texts for ending in endings
    ]
    return [*scored, *(Generate(text, max_tokens=16) for text in texts[::10])]


def run_batch(
    model: LocalModel, batch: Sequence[Request]
) -> tuple[BatchCost, dict[int, Response | Failure]]:
    """Answer one batch; returns its cost and the answers."""
    names = descendants(os.getpid())
    before = {pid: cpu_of_process(pid) for pid in (os.getpid(), *names)}
    began = time.monotonic()
    answers = dict(model.answer_batch(batch))
    wall = time.monotonic() - began
    after = {
        pid: cpu_of_process(pid) - then
        for pid, then in before.items()
        if Path(f"/proc/{pid}").exists()
    }
    here = after.pop(os.getpid())
    replicas = [
        after.pop(pid)
        for pid, name in names.items()
        if name.startswith("ray::_Actor") and pid in after
    ]
    return BatchCost(wall, here, replicas, sum(after.values())), answers


def count_differences(
    first: dict[int, Response | Failure], second: dict[int, Response | Failure]
) -> int:
    """Count the answers that differ by more than float32 rounding."""

    def of(answer: Response | Failure) -> tuple[str, float]:
        assert isinstance(answer, Response), answer
        return answer.text, answer.log_likelihood or 0.0

    pairs = [(of(first[index]), of(second[index])) for index in first]
    return sum(
        a[0] != b[0] or abs(a[1] - b[1]) > 1e-5 * max(1.0, abs(a[1])) for a, b in pairs
    )


def measure_all(
    place: str, batch: Sequence[Request], repeats: int
) -> tuple[dict[str, list[BatchCost]], int]:
    """Answer the batch in each way in turns; return the costs and how many answers differ."""
    here = open_model(place)
    assert isinstance(here, LocalModel)
    here.load()
    costs: dict[str, list[BatchCost]] = {"here": [], "1 replica": [], "2 replicas": []}
    n_differing = 0
    with Cluster(Placement("", 2, 0.0)) as cluster:
        models = {"here": here, "2 replicas": cluster.open(place, {}, here)}
        cluster.on = Placement("", 1, 0.0)
        models["1 replica"] = cluster.open(place, {}, here)
        for _ in range(repeats):
            expected: dict[int, Response | Failure] = {}
            for label, of_label in costs.items():
                model = models[label]
                model.load()  # those on Ray would else hold each other's cores
                list(model.answer_batch(batch[:200]))  # warms up
                cost, answers = run_batch(model, batch)
                if label != "here":
                    model.unload()
                expected = expected or answers
                n_differing += count_differences(expected, answers)
                of_label.append(cost)
    return costs, n_differing


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    add_numbers(parser, hidden=256, layers=4, contexts=500, repeats=3)
    options = parser.parse_args(words)
    sizes = {"hidden": options.hidden, "layers": options.layers, "context": 256}
    batch = requests(options.contexts)
    with tempfile.TemporaryDirectory() as folder:
        model = make_tiny_model(Path(folder) / "model", "llama", **sizes)
        costs, n_differing = measure_all(f"hf/{model}", batch, options.repeats)
    # The least of several times is what the work takes; the rest is what other programs did to it.
    alone = min(cost.here for cost in costs["here"])
    single_cpu, double_cpu = (
        min(cost.here + max(cost.replicas) for cost in costs[label])
        for label in ("1 replica", "2 replicas")
    )
    alone_wall, single, double = (
        min(cost.wall for cost in of_label) for of_label in costs.values()
    )
    ray = sum(cost.ray for of_label in costs.values() for cost in of_label)
    print(
        f"{len(batch)} requests, {options.repeats} times; {n_differing} answers differ;"
    )
    print(f"Ray's own processes took {ray:.1f} CPU s meanwhile")
    table = Table(["beside one model here", "by CPU", "by time"])
    cost_cells = (f"{single_cpu / alone - 1:+.1%}", f"{single / alone_wall - 1:+.1%}")
    table.add("one replica costs", *cost_cells)
    gain_cells = (f"{alone / double_cpu:.2f} times", f"{alone_wall / double:.2f} times")
    table.add("two replicas are faster", *gain_cells)
    return 0


if __name__ == "__main__":
    sys.exit(main())
