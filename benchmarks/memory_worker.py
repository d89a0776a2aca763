"""One process of `memory.py`: load a model, score a file of pairs, write the peak of memory above
the loaded model.

    python memory_worker.py {ours,theirs} MODEL REQUESTS RESULT {tree,plain,auto,1,8}
        [MEMORY [LIMIT]]

It is run by each system's own interpreter, so it imports nothing but that system. MEMORY is our
option of that name, in GiB ("none": not given). LIMIT is a hard one: so many GiB of address space
above what the loaded model takes, beyond which the operating system refuses. Linux only: the peak
is what the kernel counts as resident (VmHWM), reset after loading.
"""

from __future__ import annotations

import json
import resource
import sys
import time
from pathlib import Path
from typing import Any


def status(name: str) -> int:
    """A line of /proc/self/status, in bytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(
        int(line.split()[1]) * 1024 for line in lines if line.startswith(f"{name}:")
    )


def start(limit: float | None) -> int:
    """Forget the peak so far, set the limit, and return the memory in use."""
    Path("/proc/self/clear_refs").write_text("5")
    if limit is not None:
        allowed = status("VmSize") + int(limit * 2**30)
        resource.setrlimit(resource.RLIMIT_AS, (allowed, allowed))
    return status("VmRSS")


def ours(
    model: str, pairs: list[Any], way: str, memory: float | None, limit: float | None
) -> dict[str, Any]:
    """The base, how many were answered, what the others said, and how it was computed."""
    from evalwright.core.errors import Failure
    from evalwright.core.requests import LogLikelihood
    from evalwright.models.local.hf.transformers_model import TransformersModel

    more: dict[str, Any] = {} if memory is None else {"memory": memory}
    opened = TransformersModel(model, device="cpu", scoring=way, **more)
    opened.load()
    list(opened.answer_batch([LogLikelihood("Warm", " up")]))
    base = start(limit)
    values: list[float | None] = [None] * len(pairs)
    failures = []
    for index, response in opened.answer_batch(
        [LogLikelihood(*pair) for pair in pairs]
    ):
        if isinstance(response, Failure):
            failures.append(response.message)
        else:
            values[index] = response.log_likelihood
    return {
        "base": base,
        "values": values,
        "failures": failures,
        "how": opened.describe()["scoring"],
    }


def theirs(
    model: str, pairs: list[Any], batch_size: str, limit: float | None
) -> dict[str, Any]:
    """The same with lm_eval's transformers model."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    opened = HFLM(
        pretrained=model, device="cpu", dtype="float32", batch_size=int(batch_size)
    )

    def ask(some: list[Any]) -> list[float]:
        instances = [
            Instance(request_type="loglikelihood", doc={}, arguments=tuple(pair), idx=0)
            for pair in some
        ]
        return [
            float(value)
            for value, _ in opened.loglikelihood(instances, disable_tqdm=True)
        ]

    ask([("Warm", " up")])
    base = start(limit)
    try:
        return {"base": base, "values": ask(pairs), "failures": [], "how": None}
    except Exception as error:  # it stops at the first; the benchmark says so
        text = f"{type(error).__name__}: {str(error)[:200]}"
        return {
            "base": base,
            "values": [None] * len(pairs),
            "failures": [text],
            "how": None,
        }


def main() -> None:
    """See the module."""
    side, model, requests, result, way, *more = sys.argv[1:]
    memory, limit = (
        [None if value == "none" else float(value) for value in more] + [None, None]
    )[:2]
    pairs = json.loads(Path(requests).read_text(encoding="utf-8"))
    began = time.perf_counter()
    measurement = (
        theirs(model, pairs, way, limit)
        if side == "theirs"
        else ours(model, pairs, way, memory, limit)
    )
    measurement |= {"peak": status("VmHWM"), "seconds": time.perf_counter() - began}
    Path(result).write_text(json.dumps(measurement), encoding="utf-8")


if __name__ == "__main__":
    main()
