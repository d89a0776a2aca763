"""One process of `scoring.py`: load a model, score a file of requests with one of the two systems,
write what came out.

    python scoring_worker.py {ours,theirs} MODEL REQUESTS RESULT {BATCH_SIZE,auto,plain} {wall,cpu}

It is run by each system's own interpreter, so it imports nothing but that system.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path
from typing import Any

clock = time.process_time if sys.argv[6:] == ["cpu"] else time.perf_counter
"""CPU seconds do not count the time that others take of a busy machine's cores."""


def ours(
    model: str, requests: list[Any], way: str
) -> tuple[float, float, list[Any], Any]:
    """Load and scoring seconds, (log-likelihood, is greedy, tokens) of every request, and how it
    was computed.
    """
    from evalwright.core.requests import LogLikelihood, RollingLogLikelihood
    from evalwright.core.responses import Response
    from evalwright.models.local.hf.transformers_model import TransformersModel

    began = clock()
    opened = TransformersModel(model, device="cpu", scoring=way)
    opened.load()
    loaded = clock()
    batch = [
        LogLikelihood(*r) if len(r) == 2 else RollingLogLikelihood(*r) for r in requests
    ]
    rows: list[Any] = [None] * len(batch)
    for index, response in opened.answer_batch(batch):
        assert isinstance(response, Response), response
        rows[index] = [
            response.log_likelihood,
            response.is_greedy,
            response.tokens_scored,
        ]
    return loaded - began, clock() - loaded, rows, opened.describe()["scoring"]


def theirs(
    model: str, requests: list[Any], batch_size: str
) -> tuple[float, float, list[Any], Any]:
    """The same with lm_eval's transformers model."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    began = clock()
    opened = HFLM(
        pretrained=model, device="cpu", dtype="float32", batch_size=int(batch_size)
    )
    loaded = clock()
    kind = "loglikelihood" if len(requests[0]) == 2 else "loglikelihood_rolling"
    instances = [
        Instance(request_type=kind, doc={}, arguments=tuple(r), idx=0) for r in requests
    ]
    answers = getattr(opened, kind)(instances, disable_tqdm=True)
    seconds = clock() - loaded
    rows = [
        [*answer, 0] if isinstance(answer, tuple) else [answer, True, 0]
        for answer in answers
    ]
    return loaded - began, seconds, rows, None


def main() -> None:
    """See the module."""
    side, model, requests, result, batch_size = sys.argv[1:6]
    request_rows = json.loads(Path(requests).read_text())
    run = theirs if side == "theirs" else ours
    load, score, rows, how = run(model, request_rows, batch_size)
    measurement = {
        "load": load,
        "score": score,
        "rows": rows,
        "how": how,
        "cpu": time.process_time(),
    }
    Path(result).write_text(json.dumps(measurement))


if __name__ == "__main__":
    main()
