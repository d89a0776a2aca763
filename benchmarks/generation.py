"""Answers of a transformers model on a CPU, beside lm_eval's HFLM at its best batch size, in one
run.

    python -m benchmarks generation [--data FOLDER] [--only shared,own,ends,stops] [--hidden 256]
        [--vocab 32000] [--layers 4] [--real] [--prompts 100] [--tokens 64] [--repeats 3]
        [--threads 2] [--clock wall] [--batch-size 16]

FOLDER holds `en_test.jsonl` and `en_dev.jsonl` of Global-MMLU-Lite, as for `scoring`. The model is
that of `scoring.py`, a Llama of random weights with grouped queries, of 135 million parameters with
--real; both systems load the same folder and write greedy answers to the same prompts in processes
of their own, interleaved, and medians are shown: the call alone (tokenising and all), and the whole
process (imports, loading, generation). lm_eval's process is its model class alone, without its
command's start-up; its batch size is the fastest of 1 to 64 on --search prompts (for 32 and 64 on
as many as these), or --batch-size. --clock cpu: CPU seconds instead of wall time; with --threads 1
that is what to measure on a machine that others use too.

The sets: `shared`, five shots that are the same for all and a question; `own`, one to five shots
drawn for each question, so that lengths vary and nothing is shared; `ends`, as `shared`, with
limits from an eighth of --tokens to all, as answers end at different times (lm_eval writes each
limit in batches of its own, as it does for settings that differ); `stops`, as `ends`, with one
limit for all and a stop string that random text reaches soon or late. In the other sets the stop
string never occurs. The last column counts answers that differ; with random weights two tokens can
be as good as equal, and rounding decides.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from local_process import (
    add_local_options,
    make_llama,
    measure_pair,
    parse_local_options,
    product_rate,
    start_table,
)
from local_systems import NEVER
from measuring import Table, add_numbers, option_parser
from scoring import Question, format_question, read_data

Request = list[Any]
BATCH_SIZES = ("1", "2", "4", "8", "16", "32", "64")
COLUMNS = (
    "set",
    "prompts",
    "ours s",
    "lm_eval s",
    "times",
    "ours whole s",
    "lm_eval whole s",
    "times whole",
    "its batch",
    "answers that differ",
)


def shot(question: Question, answered: bool) -> str:
    """A question, and the way to its answer where it is a shot."""
    lines = [f"Question: {question['question'].strip()}"]
    if not answered:
        return "\n".join([*lines, "Answer: Let's think step by step."])
    reasons = [f"It could be {text.strip()}." for text in question["choices"]]
    right = question["choices"][question["label"]].strip()
    steps = (
        f"Answer: Let's think step by step. {' '.join(reasons)} The answer is {right}."
    )
    return "\n".join([*lines, steps, "", ""])


def every_set(folder: Path | None, count: int, tokens: int) -> dict[str, list[Request]]:
    """The sets by name, each as (prompt, new tokens at the most, stop string)."""
    test, dev = read_data(folder)
    # Questions of a like length, as those of GSM8K have.
    short = [question for question in test if 80 <= len(question["question"]) <= 400]
    shots = [
        question
        for question in [*dev, *test[:200]]
        if 80 <= len(question["question"]) <= 300
    ]
    questions = random.Random(1).sample(short, min(count, len(short)))
    fixed = "".join(
        shot(question, True) for question in random.Random(0).sample(shots, 5)
    )
    shared = [[fixed + shot(question, False), tokens, NEVER] for question in questions]
    own = []
    for index, question in enumerate(questions):
        drawn = random.Random(index + 1).sample(shots, 1 + index % 5)
        examples = "".join(shot(example, True) for example in drawn)
        own.append([examples + shot(question, False), tokens, NEVER])
    limits = [max(1, tokens * part // 8) for part in (1, 2, 3, 4, 8)]
    ends = [
        [prompt, limits[index % 5], stop]
        for index, (prompt, _, stop) in enumerate(shared)
    ]
    stops = [[prompt, tokens, "ar"] for prompt, _, _ in shared]
    return {"shared": shared, "own": own, "ends": ends, "stops": stops}


def measure(
    name: str,
    requests: list[Request],
    model: Path,
    options: argparse.Namespace,
    table: Table,
) -> None:
    """Measure one set and print its row."""
    samples = {size: requests[: max(options.search, int(size))] for size in BATCH_SIZES}
    pair = measure_pair("write", model, requests, requests, samples, options)
    seconds = pair.median("ours", "seconds")
    total = pair.median("ours", "total")
    peer_seconds = pair.median("peer", "seconds")
    peer_total = pair.median("peer", "total")
    # lm_eval takes the spaces off an answer's ends in some releases; that is no difference in what
    # was written.
    differing = sum(
        our.strip() != their.strip()
        for our, their in zip(pair.ours[0].answers, pair.peer[0].answers, strict=True)
    )
    table.add(
        name,
        len(requests),
        f"{seconds:.2f}",
        f"{peer_seconds:.2f}",
        f"{peer_seconds / seconds:.2f}",
        f"{total:.2f}",
        f"{peer_total:.2f}",
        f"{peer_total / total:.2f}",
        pair.batch_size,
        f"{differing} of {len(requests)}",
    )


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    add_local_options(parser)
    parser.add_argument("--only", default="shared,own,ends,stops")
    add_numbers(parser, prompts=100, tokens=64, search=16)
    options = parse_local_options(parser, words)
    sets = every_set(options.data, options.prompts, options.tokens)
    unknown = [name for name in options.only.split(",") if name not in sets]
    if unknown:
        parser.error(f"no such set: {', '.join(unknown)} (there are {', '.join(sets)})")
    test, dev = read_data(options.data)
    texts = [format_question(question, None) for question in [*test, *dev]]
    with tempfile.TemporaryDirectory() as name:
        model = Path(name)
        make_llama(model, texts, options)
        table = start_table(COLUMNS, options, product_rate(options.threads))
        for set_name in options.only.split(","):
            measure(set_name, sets[set_name], model, options, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
