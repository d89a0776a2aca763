"""Eight draws of each prompt from a transformers model on a CPU: asked together, in eight runs, and
one by one, in one process.

    python -m benchmarks repeated_draws [--hidden 256] [--layers 4] [--prompts 4] [--draws 8]
        [--repeats 3] [--threads 1]

The model is a Llama of random weights. `together` is what a vote or a best of n sends: all draws of
all prompts at once, where draws of one prompt stand side by side and its tokens go through the
model once. `runs` asks one draw of all prompts at a time, as eight runs with eight seeds would, and
`one by one` one request at a time. Medians of interleaved CPU seconds; the last column counts draws
that differ between the ways, where rounding decides.
"""

from __future__ import annotations

import random
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from functools import partial
from pathlib import Path

from measuring import Table, add_numbers, option_parser, take_turns

ROOT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(ROOT / "src"), str(ROOT / "tests")]

from evalwright.core.requests import Generate  # noqa: E402
from evalwright.models.local.hf.transformers_model import TransformersModel  # noqa: E402
from support.tiny_models import CORPUS, make_tiny_model  # noqa: E402

SETTINGS = ((64, 32), (512, 32), (1800, 8))
"""Tokens of a prompt and of an answer."""


def prompts_of(model: TransformersModel, count: int, tokens: int) -> list[str]:
    """Texts of about `tokens` tokens, no two of which share a beginning."""
    chance = random.Random(tokens)
    words = CORPUS.split()
    reader = model.reader()
    prompts = []
    for place in range(count):
        text = f"{place}: "
        while len(reader.encoder.encode(text, True)) < tokens:
            text += " ".join(chance.choices(words, k=max(1, tokens // 64))) + " "
        prompts.append(text)
    return prompts


def time_answers(
    model: TransformersModel, batches: Sequence[Sequence[Generate]]
) -> tuple[float, list[str]]:
    """Answer the batches; returns CPU seconds and the texts."""
    texts: list[str] = []
    began = time.process_time()
    for batch in batches:
        answers = dict(model.answer_batch(batch))
        texts += [
            str(getattr(answers[place], "text", answers[place]))
            for place in range(len(batch))
        ]
    return time.process_time() - began, texts


def draw_requests(texts: Sequence[str], tokens: int, draw: int) -> list[Generate]:
    """One draw of each prompt."""
    return [
        Generate(text, max_tokens=tokens, temperature=0.7, seed=1, draw=draw)
        for text in texts
    ]


def measure_ways(
    model: TransformersModel, batches: Sequence[Sequence[Generate]], repeats: int
) -> tuple[list[float], int]:
    """Answer in all ways in turns; return the median of each, and how many draws differ."""
    all_requests = [request for batch in batches for request in batch]
    ways = {
        "together": [all_requests],
        "runs": batches,
        "one by one": [[request] for request in all_requests],
    }
    time_answers(model, [all_requests[:2]])  # loads it, and tries its loop
    measured = take_turns(
        {name: partial(time_answers, model, way) for name, way in ways.items()}, repeats
    )
    medians = [
        statistics.median(took for took, _ in runs) for runs in measured.values()
    ]
    texts_by_way = [runs[-1][1] for runs in measured.values()]
    n_differing = sum(len(set(draws)) > 1 for draws in zip(*texts_by_way, strict=True))
    return medians, n_differing


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    add_numbers(parser, hidden=256, layers=4, prompts=4, draws=8, repeats=3, threads=1)
    options = parser.parse_args(words)
    import torch

    torch.set_num_threads(options.threads)
    columns = ("prompt", "answer", "together s", "runs s", "one by one s")
    table = Table([*columns, "runs / together", "one by one / together", "differ"])
    sizes = {"hidden": options.hidden, "layers": options.layers}
    with tempfile.TemporaryDirectory() as name:
        folder = make_tiny_model(
            Path(name) / "model", context=2048, vocab=1000, **sizes
        )
        model = TransformersModel(str(folder), device="cpu")
        for prompt, answer in SETTINGS:
            texts = prompts_of(model, options.prompts, prompt)
            batches = [draw_requests(texts, answer, n) for n in range(options.draws)]
            medians, n_differing = measure_ways(model, batches, options.repeats)
            together, runs, alone = medians
            table.add(
                prompt,
                answer,
                *(f"{median:.2f}" for median in medians),
                f"{runs / together:.2f}",
                f"{alone / together:.2f}",
                f"{n_differing} of {options.prompts * options.draws}",
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
