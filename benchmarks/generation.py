"""Answers of a transformers model on a CPU, beside lm_eval's HFLM at its best batch size, in one
run.

    python -m benchmarks generation --data FOLDER [--only shared,own,ends,stops] [--hidden 256]
        [--vocab 32000] [--layers 4] [--real] [--prompts 100] [--tokens 64] [--repeats 3]
        [--threads 2] [--clock wall] [--batch-size 16]

FOLDER holds `en_test.jsonl` and `en_dev.jsonl` of Global-MMLU-Lite. The model is that of
`scoring.py`, a Llama of random weights with grouped queries, of 135 million parameters with --real;
both systems load the same folder and write greedy answers to the same prompts in processes of their
own, interleaved, and medians are shown: the call alone (tokenising and all), and the whole process
(imports, loading, generation). lm_eval's process is its model class alone, without its command's
start-up; its batch size is the fastest of 1 to 64 on --search prompts (for 32 and 64 on as many as
these), or --batch-size. --clock cpu: CPU seconds instead of wall time; with --threads 1 that is
what to measure on a machine that others use too.

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
import json
import os
import random
import statistics
import tempfile
from pathlib import Path
from typing import Any

from peers import LM_EVAL
from scoring import Outcome, Question, make_model, matmul_rate, read, run

Request = list[Any]
NEVER = "<<<never>>>"
SIZES = ("1", "2", "4", "8", "16", "32", "64")


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


def every_set(folder: Path, count: int, tokens: int) -> dict[str, list[Request]]:
    """The sets by name, each as (prompt, new tokens at the most, stop string)."""
    test, dev = (read(folder / f"en_{part}.jsonl") for part in ("test", "dev"))
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
    own_shots = []
    for place, question in enumerate(questions):
        drawn = random.Random(place + 1).sample(shots, 1 + place % 5)
        own_shots.append(
            [
                "".join(shot(shot_question, True) for shot_question in drawn)
                + shot(question, False),
                tokens,
                NEVER,
            ]
        )
    limits = [max(1, tokens * part // 8) for part in (1, 2, 3, 4, 8)]
    ends = [
        [prompt, limits[place % 5], stop]
        for place, (prompt, _, stop) in enumerate(shared)
    ]
    stops = [[prompt, tokens, "ar"] for prompt, _, _ in shared]
    return {"shared": shared, "own": own_shots, "ends": ends, "stops": stops}


def name_all_tokens(model: Path, vocab: int) -> None:
    """Give every token of the vocabulary a text, so that answers can be compared.

    A random model mostly writes tokens that the trained tokenizer lacks.
    """
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    # Private-use characters, which occur in no prompt.
    tokenizer.add_tokens(
        [f"\ue000{token}\ue001" for token in range(len(tokenizer), vocab)]
    )
    tokenizer.save_pretrained(model)


def best_batch_size(
    model: Path, requests: list[Request], folder: Path, options: argparse.Namespace
) -> tuple[str, dict[str, float]]:
    """lm_eval's fastest batch size, in seconds a prompt."""
    seconds = {}
    for size in SIZES:
        some = requests[: max(options.search, min(int(size), len(requests)))]
        seconds[size] = run(
            "theirs", model, some, size, folder, options, "generation_worker.py"
        ).score / len(some)
    return min(seconds, key=lambda size: seconds[size]), seconds


def differences(ours: Outcome, theirs: Outcome) -> str:
    """How many answers differ."""
    pairs = list(zip(ours.rows, theirs.rows, strict=True))
    # lm_eval takes the spaces off an answer's ends in some releases; that is no difference in what
    # was written.
    return f"{sum(a.strip() != b.strip() for a, b in pairs)} of {len(pairs)}"


def measure(
    name: str, requests: list[Request], model: Path, options: argparse.Namespace
) -> str:
    """Measure one set; returns its line of the table."""
    mine: list[Outcome] = []
    peers: list[Outcome] = []
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        size = options.batch_size
        searched: dict[str, float] = {}
        if size is None:
            size, searched = best_batch_size(model, requests, folder, options)
        for _ in range(options.repeats):
            mine.append(
                run(
                    "ours",
                    model,
                    requests,
                    "auto",
                    folder,
                    options,
                    "generation_worker.py",
                )
            )
            peers.append(
                run(
                    "theirs",
                    model,
                    requests,
                    size,
                    folder,
                    options,
                    "generation_worker.py",
                )
            )
    ours, theirs = (
        statistics.median(outcome.score for outcome in outcomes)
        for outcomes in (mine, peers)
    )
    total, their_whole = (
        statistics.median(outcome.total for outcome in outcomes)
        for outcomes in (mine, peers)
    )
    if searched:
        print(
            f"<!-- {name}: lm_eval's seconds a prompt by batch size:"
            f" {json.dumps({k: round(v, 4) for k, v in searched.items()})} -->"
        )
    return (
        f"| {name} | {len(requests)} | {ours:.2f} | {theirs:.2f} | {theirs / ours:.2f}"
        f" | {total:.2f} | {their_whole:.2f} | {their_whole / total:.2f} | {size} |"
        f" {mine[0].how} | {differences(mine[0], peers[0])} |"
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="shared,own,ends,stops")
    for name, default in [
        ("hidden", 256),
        ("vocab", 32000),
        ("layers", 4),
        ("prompts", 100),
        ("tokens", 64),
        ("repeats", 3),
        ("search", 16),
    ]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--batch-size", help="lm_eval's, instead of finding its best")
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    if options.real:
        parser.set_defaults(layers=30, hidden=576, vocab=49152)
        options = parser.parse_args()
    LM_EVAL.ensure()
    sets = every_set(options.data, options.prompts, options.tokens)
    unknown = [name for name in options.only.split(",") if name not in sets]
    if unknown:
        parser.error(f"no such set: {', '.join(unknown)} (there are {', '.join(sets)})")
    with tempfile.TemporaryDirectory() as where:
        model = Path(where)
        make_model(
            model,
            options.data,
            options.hidden,
            options.vocab,
            options.layers,
            options.real,
        )
        name_all_tokens(model, options.vocab)
        rate = matmul_rate(options.threads)
        print(
            f"Llama of {options.layers} layers, hidden {options.hidden}, vocabulary"
            f" {options.vocab}, float32, {options.threads} threads, {options.clock}"
            f" time, load {os.getloadavg()[0]:.1f}, matmul {rate / 1e9:.0f} GFLOP/s,"
            f" {options.tokens} new tokens\n\n| set | prompts | ours s | lm_eval s |"
            " times | ours whole s | lm_eval whole s | times | its batch | our way |"
            " answers that differ |\n|---|---|---|---|---|---|---|---|---|---|---|",
            flush=True,
        )
        for name in options.only.split(","):
            print(measure(name, sets[name], model, options), flush=True)


if __name__ == "__main__":
    main()
