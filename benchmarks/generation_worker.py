"""One process of `generation.py`: load a model, write answers to a file of prompts with one of the
two systems.

    python generation_worker.py {ours,theirs} MODEL REQUESTS RESULT {BATCH_SIZE,auto} {wall,cpu}

It is run by each system's own interpreter, so it imports nothing but that system. A request is
(prompt, new tokens, stop).
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
    model: str, requests: list[Any], batch_size: str
) -> tuple[float, float, list[str], Any]:
    """Load and generation seconds, the text of every answer, and how it was written."""
    from evalwright.core.requests import Generate
    from evalwright.models.local.hf.transformers_model import TransformersModel

    began = clock()
    opened = TransformersModel(
        model,
        device="cpu",
        batch_size=batch_size if batch_size == "auto" else int(batch_size),
    )
    opened.load()
    loaded = clock()
    batch = [
        Generate(prompt, max_tokens=most, stop=(stop,))
        for prompt, most, stop in requests
    ]
    texts = [""] * len(batch)
    for index, response in opened.answer_batch(batch):
        texts[index] = response.text  # type: ignore[union-attr]
    seconds = clock() - loaded
    assert opened._engine is not None
    decoder = opened._engine.decoder
    return loaded - began, seconds, texts, (decoder and decoder.refusal) or "own loop"


def theirs(
    model: str, requests: list[Any], batch_size: str
) -> tuple[float, float, list[str], Any]:
    """The same with lm_eval's transformers model."""
    from lm_eval.api.instance import Instance
    from lm_eval.models.huggingface import HFLM

    began = clock()
    opened = HFLM(
        pretrained=model, device="cpu", dtype="float32", batch_size=int(batch_size)
    )
    loaded = clock()
    instances = []
    for prompt, most, stop in requests:
        settings = {"until": [stop], "max_gen_toks": most, "do_sample": False}
        instances.append(
            Instance(
                request_type="generate_until",
                doc={},
                arguments=(prompt, settings),
                idx=0,
            )
        )
    texts = opened.generate_until(instances, disable_tqdm=True)
    return loaded - began, clock() - loaded, texts, None


def main() -> None:
    """See the module."""
    side, model, requests, result, batch_size = sys.argv[1:6]
    request_rows = json.loads(Path(requests).read_text())
    run = theirs if side == "theirs" else ours
    load, call, texts, how = run(model, request_rows, batch_size)
    measurement = {
        "load": load,
        "score": call,
        "rows": texts,
        "how": how,
        "cpu": time.process_time(),
    }
    Path(result).write_text(json.dumps(measurement))


if __name__ == "__main__":
    main()
