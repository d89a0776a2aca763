"""Log-likelihoods of a transformers model on a CPU, beside lm_eval's HFLM at its best batch size,
in one run.

    python -m benchmarks scoring [--data FOLDER] [--only letters,texts:15,...] [--hidden 256]
        [--vocab 32000] [--real] [--questions 400] [--repeats 3] [--share 1.0] [--threads 2]
        [--clock wall]

FOLDER holds `en_test.jsonl` and `en_dev.jsonl` of Global-MMLU-Lite (CohereLabs), which docs have
figures of; without it, questions are made-up words of about these lengths. The model is a Llama of
random weights with grouped queries; both systems load the same folder and score the same requests
in processes of their own, interleaved, and medians are shown: the scoring call alone (tokenising
and all; "of the limit" is the time that the products of the layers with every different token, and
of the output head with every position read, take at the rate of a large matrix product), and the
whole process (imports, loading, scoring). lm_eval's process is its model class alone, without its
command's start-up. Log-likelihoods are compared request by request.

--share: lm_eval shares nothing between questions but the letters of one, so its time is in
proportion to them; with 0.2 it scores every fifth question and its scoring time is multiplied by
five. The table says so. --clock cpu: CPU seconds instead of wall time; with --threads 1 that is
what to measure on a machine that others use too. --real: a Llama of 135 million parameters (30
layers, hidden 576, 9 heads over 3 of keys and values, vocabulary 49,152, which is the output head
too).

The sets, each with as many questions as stand behind its colon, else --questions: `letters`, five
fixed shots, the answer is one of A to D; `texts`, the same with the choices' full texts; `endings`,
contexts of some 250 tokens with four endings of 20, as HellaSwag has; `rows`, full texts with five
shots drawn for each question; `book`, the rolling log-likelihood of a long text.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from local_process import (
    Outcome,
    add_local_options,
    make_llama,
    measure_pair,
    parse_local_options,
    product_rate,
    start_table,
)
from local_systems import draw_words
from measuring import Table, add_numbers, option_parser

Question = dict[str, Any]
Requests = list[list[str]]
COLUMNS = (
    "set",
    "requests",
    "ours s",
    "lm_eval s",
    "times",
    "ours whole s",
    "lm_eval whole s",
    "times whole",
    "its batch",
    "tokens given / computed",
    "of the limit",
    "largest difference per token, flags",
)
DRAWN_QUESTIONS = 400
DRAWN_EXAMPLES = 100
BATCH_SIZES = ("1", "2", "4", "8", "16")


# --- the requests


def read(path: Path) -> list[Question]:
    """Questions as {"question", "choices", "label"}."""
    questions = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        prompt = row["prompts"][0]
        choices = [prompt[f"option_{letter}"] for letter in "abcd"]
        label = "ABCD".index(row["label"])
        questions.append(
            {"question": prompt["question"], "choices": choices, "label": label}
        )
    return questions


def draw_question(dice: random.Random) -> Question:
    """Draw a question of made-up words, about as long as those of Global-MMLU-Lite."""
    choices = [draw_words(dice, dice.randint(1, 8)) for _ in range(4)]
    text = f"{draw_words(dice, dice.randint(12, 40))}?"
    return {"question": text, "choices": choices, "label": dice.randrange(4)}


def read_data(folder: Path | None) -> tuple[list[Question], list[Question]]:
    """Read the questions and the examples; draw them if there is no folder."""
    if folder is None:
        dice = random.Random(0)
        drawn = [draw_question(dice) for _ in range(DRAWN_QUESTIONS + DRAWN_EXAMPLES)]
        return drawn[:DRAWN_QUESTIONS], drawn[DRAWN_QUESTIONS:]
    return read(folder / "en_test.jsonl"), read(folder / "en_dev.jsonl")


def format_question(question: Question, answer: str | None) -> str:
    """A question with its choices, and its answer where it is a shot."""
    lines = [question["question"].strip()]
    lines += [
        f"{letter}. {text}"
        for letter, text in zip("ABCD", question["choices"], strict=True)
    ]
    return "\n".join([*lines, "Answer:" + ("" if answer is None else f" {answer}\n\n")])


def mmlu(
    test: list[Question], dev: list[Question], texts: bool, per_row: bool
) -> list[Requests]:
    """Build the requests of each question."""

    def format_shot(shot: Question) -> str:
        label = shot["label"]
        return format_question(shot, shot["choices"][label] if texts else "ABCD"[label])

    requests = []
    fixed = random.Random(0).sample(dev, 5)
    for index, question in enumerate(test):
        shots = random.Random(index + 1).sample(dev, 5) if per_row else fixed
        context = "".join(map(format_shot, shots)) + format_question(question, None)
        answers = question["choices"] if texts else "ABCD"
        requests.append([[context, f" {answer}"] for answer in answers])
    return requests


def endings(words: Sequence[str], count: int) -> list[Requests]:
    """Contexts of some 150 words with four endings of some 12."""
    rng = random.Random(0)

    def some(least: int, most: int) -> str:
        return " ".join(rng.choices(words, k=rng.randint(least, most)))

    requests = []
    for _ in range(count):
        context = some(130, 190)
        requests.append([[context, f" {some(11, 14)}"] for _ in range(4)])
    return requests


def book(words: Sequence[str], count: int) -> list[Requests]:
    """One text of some 90 words for every question that is asked for."""
    rng = random.Random(0)
    return [[[" ".join(rng.choices(words, k=90 * count))]]]


def every_set(
    folder: Path | None, questions: int
) -> dict[str, Callable[[], list[Requests]]]:
    """Functions that build each set, by name."""
    test, dev = read_data(folder)
    test = random.Random(1).sample(test, min(questions, len(test)))
    words = [word for question in test for word in question["question"].split()]
    return {
        "letters": lambda: mmlu(test, dev, texts=False, per_row=False),
        "texts": lambda: mmlu(test, dev, texts=True, per_row=False),
        "endings": lambda: endings(words, questions),
        "rows": lambda: mmlu(test, dev, texts=True, per_row=True),
        "book": lambda: book(words, questions),
    }


# --- measurements


def few_requests(questions: list[Requests]) -> Requests:
    """What is scored to find a batch size."""
    few = [request for question in questions[:12] for request in question]
    if len(few) == 1:
        text = few[0][0]
        few = [[text[: len(text) // 8]]]
    return few


def compare(ours: Outcome, peer: Outcome, questions: int, step: int) -> str:
    """Return the largest difference per token, and the number of greedy flags that differ."""
    per_question = len(ours.answers) // questions
    our_part = [
        score
        for question in range(0, questions, step)
        for score in ours.answers[question * per_question :][:per_question]
    ]
    pairs = list(zip(our_part, peer.answers, strict=True))
    difference = max(abs(our[0] - their[0]) / max(1, our[2]) for our, their in pairs)
    flags = sum(our[1] != their[1] for our, their in pairs) if per_question > 1 else 0
    return f"{difference:.1e}, {flags}"


def measure(
    name: str,
    questions: list[Requests],
    model: Path,
    options: argparse.Namespace,
    table: Table,
) -> None:
    """Measure one set and print its row."""
    share = options.share if len(questions) > 1 else 1.0
    step = max(1, round(1 / share))
    requests = [request for question in questions for request in question]
    part = [request for question in questions[::step] for request in question]
    few = few_requests(questions)
    pair = measure_pair(
        "score", model, requests, part, dict.fromkeys(BATCH_SIZES, few), options
    )
    seconds = pair.median("ours", "seconds")
    total = pair.median("ours", "total")
    peer_call = pair.median("peer", "seconds")
    peer_seconds = peer_call * len(requests) / len(part)
    peer_total = pair.median("peer", "total") - peer_call + peer_seconds
    how = pair.ours[0].how
    tokens = how.get("tokens_computed", 0)
    head = options.vocab * options.hidden * how.get("positions_read", 0)
    limit = 2 * (options.layer_parameters * tokens + head) / options.rate
    table.add(
        name,
        len(requests),
        f"{seconds:.2f}",
        f"{peer_seconds:.2f}" + ("" if step == 1 else f" ({step} x 1/{step})"),
        f"{peer_seconds / seconds:.1f}",
        f"{total:.2f}",
        f"{peer_total:.2f}",
        f"{peer_total / total:.1f}",
        pair.batch_size,
        f"{how.get('tokens_given', 0)} / {tokens}",
        f"{limit / seconds:.0%}",
        compare(pair.ours[0], pair.peer[0], len(questions), step),
    )


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    add_local_options(parser)
    parser.add_argument("--only", default="letters,texts,endings,rows,book")
    add_numbers(parser, questions=400)
    parser.add_argument("--share", type=float, default=1.0)
    options = parse_local_options(parser, words)
    test, dev = read_data(options.data)
    texts = [format_question(question, None) for question in [*test, *dev]]
    with tempfile.TemporaryDirectory() as name:
        model = Path(name)
        options.layer_parameters = make_llama(model, texts, options)
        options.rate = product_rate(options.threads)
        table = start_table(COLUMNS, options, options.rate)
        for selection in options.only.split(","):
            set_name, _, count = selection.partition(":")
            sets = every_set(options.data, int(count or options.questions))
            measure(set_name, sets[set_name](), model, options, table)
    return 0


if __name__ == "__main__":
    sys.exit(main())
