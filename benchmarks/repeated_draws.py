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
from pathlib import Path

from measuring import Table, add_numbers, option_parser

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


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    add_numbers(parser, hidden=256, layers=4, prompts=4, draws=8, repeats=3, threads=1)
    arguments = parser.parse_args(words)
    import torch

    torch.set_num_threads(arguments.threads)
    with tempfile.TemporaryDirectory() as where:
        folder = make_tiny_model(
            Path(where) / "model",
            hidden=arguments.hidden,
            layers=arguments.layers,
            context=2048,
            vocab=1000,
        )
        model = TransformersModel(str(folder), device="cpu")
        columns = ("prompt", "answer", "together s", "runs s", "one by one s")
        ratios = ("runs / together", "one by one / together", "differ")
        table = Table([*columns, *ratios])
        for prompt, answer in SETTINGS:
            texts = prompts_of(model, arguments.prompts, prompt)
            batches = [
                [
                    Generate(
                        text, max_tokens=answer, temperature=0.7, seed=1, draw=draw
                    )
                    for text in texts
                ]
                for draw in range(arguments.draws)
            ]
            all_requests = [request for batch in batches for request in batch]
            ways = ([all_requests], batches, [[request] for request in all_requests])
            seconds: list[list[float]] = [[], [], []]
            differ = 0
            time_answers(model, [all_requests[:2]])  # loads it, and tries its loop
            for _ in range(arguments.repeats):
                measurements = [time_answers(model, way) for way in ways]
                for times, (took, _texts) in zip(seconds, measurements, strict=True):
                    times.append(took)
                differ = sum(
                    len(set(draws)) > 1
                    for draws in zip(
                        *(texts_of_way for _, texts_of_way in measurements), strict=True
                    )
                )
            together, runs, alone = (statistics.median(times) for times in seconds)
            table.add(
                prompt,
                answer,
                *(f"{median:.2f}" for median in (together, runs, alone)),
                f"{runs / together:.2f}",
                f"{alone / together:.2f}",
                f"{differ} of {len(all_requests)}",
            )
    return 0


if __name__ == "__main__":
    sys.exit(main())
