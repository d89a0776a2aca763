"""Log-likelihoods of a transformers model on a CPU, beside lm_eval's HFLM at its best batch size,
in one run.

    python -m benchmarks scoring --data FOLDER [--only letters,texts:15,...] [--hidden 256]
        [--vocab 32000] [--real] [--questions 400] [--repeats 3] [--share 1.0] [--threads 2]
        [--clock wall]

FOLDER holds `en_test.jsonl` and `en_dev.jsonl` of Global-MMLU-Lite. The model is a Llama of random
weights with grouped queries; both systems load the same folder and score the same requests in
processes of their own, interleaved, and medians are shown: the scoring call alone (tokenising and
all; "of the limit" is the time that the products of the layers with every different token, and of
the output head with every position read, take at the rate of a large matrix product), and the whole
process (imports, loading, scoring). lm_eval's process is its model class alone, without its
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
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from peers import LM_EVAL

HERE = Path(__file__).resolve().parent
Question = dict[str, Any]
Requests = list[list[str]]


# --- what is asked
# --------------------------------------------------------------------------------


def read(path: Path) -> list[Question]:
    """Questions as {"question", "choices", "label"}."""
    questions = []
    for line in path.read_text(encoding="utf-8").splitlines():
        row = json.loads(line)
        prompt = row["prompts"][0]
        choices = [prompt[f"option_{letter}"] for letter in "abcd"]
        questions.append(
            {
                "question": prompt["question"],
                "choices": choices,
                "label": "ABCD".index(row["label"]),
            }
        )
    return questions


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
    requests = []
    fixed = random.Random(0).sample(dev, 5)
    for place, question in enumerate(test):
        drawn = random.Random(place + 1).sample(dev, 5) if per_row else fixed
        shots = "".join(
            format_question(
                shot, shot["choices"][shot["label"]] if texts else "ABCD"[shot["label"]]
            )
            for shot in drawn
        )
        context = shots + format_question(question, None)
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


def every_set(folder: Path, questions: int) -> dict[str, Callable[[], list[Requests]]]:
    """Functions that build each set, by name."""
    test, dev = (read(folder / f"en_{part}.jsonl") for part in ("test", "dev"))
    test = random.Random(1).sample(test, min(questions, len(test)))
    words = [word for question in test for word in question["question"].split()]
    return {
        "letters": lambda: mmlu(test, dev, texts=False, per_row=False),
        "texts": lambda: mmlu(test, dev, texts=True, per_row=False),
        "endings": lambda: endings(words, questions),
        "rows": lambda: mmlu(test, dev, texts=True, per_row=True),
        "book": lambda: book(words, questions),
    }


# --- the model
# --------------------------------------------------------------------------------


def make_model(
    folder: Path, data: Path, hidden: int, vocab: int, layers: int, real: bool = False
) -> int:
    """Write a Llama with random weights, and a tokenizer made from the questions; returns the
    parameters of its layers.

    real: heads as wide, and as many of them to one of keys and values, as small models have that
    are in use; a tied output head.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=min(vocab, 16000),
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    texts = [
        format_question(q, None)
        for name in ("en_test", "en_dev")
        for q in read(data / f"{name}.jsonl")
    ]
    core.train_from_iterator(texts, trainer)
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>"
    )
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3 // 32 * 32,
        num_hidden_layers=layers,
        num_attention_heads=hidden // (64 if real else 32),
        num_key_value_heads=hidden // (192 if real else 64),
        tie_word_embeddings=real,
        max_position_embeddings=2048,
        bos_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config)
    model.save_pretrained(folder)
    return sum(p.numel() for name, p in model.named_parameters() if "layers" in name)


def matmul_rate(threads: int) -> float:
    """Floating-point operations a second of a large float32 matrix product."""
    import torch

    torch.set_num_threads(threads)
    a = torch.randn(2048, 1024)
    b = torch.randn(1024, 1024)
    times = []
    for _ in range(9):
        began = time.perf_counter()
        a @ b
        times.append(time.perf_counter() - began)
    return 2 * 2048 * 1024 * 1024 / statistics.median(times)


# --- running
# --------------------------------------------------------------------------------


@dataclass(frozen=True)
class Outcome:
    """Seconds of the whole process, of loading and of the scoring call, and what was scored."""

    total: float
    load: float
    score: float
    rows: list[Any]
    how: Any


def run(
    side: str,
    model: Path,
    requests: Sequence[Sequence[Any]],
    batch_size: str,
    folder: Path,
    options: argparse.Namespace,
    worker: str = "scoring_worker.py",
) -> Outcome:
    """Run the worker in a separate process."""
    requests_file = folder / "requests.json"
    result = folder / "result.json"
    requests_file.write_text(json.dumps(requests))
    python = LM_EVAL.python if side == "theirs" else Path(sys.executable)
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(options.threads),
    }
    if options.threads == 1:
        environment["TOKENIZERS_PARALLELISM"] = "false"
    if side == "theirs":
        environment.pop("PYTHONPATH", None)
    else:
        environment["PYTHONPATH"] = str(HERE.parent / "src")
    command = [
        str(python),
        str(HERE / worker),
        side,
        str(model),
        str(requests_file),
        str(result),
        batch_size,
        options.clock,
    ]
    began = time.perf_counter()
    done = subprocess.run(
        command,
        env=environment,
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
    )
    total = time.perf_counter() - began
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    measurement = json.loads(result.read_text())
    cpu = measurement.pop("cpu")
    return Outcome(cpu if options.clock == "cpu" else total, **measurement)


def best_batch_size(
    model: Path, questions: list[Requests], folder: Path, options: argparse.Namespace
) -> str:
    """lm_eval's fastest batch size on a few questions."""
    some = [request for question in questions[:12] for request in question]
    if len(some) == 1:
        some = [[some[0][0][: len(some[0][0]) // 8]]]
    seconds = {
        size: run("theirs", model, some, size, folder, options).score
        for size in ("1", "2", "4", "8", "16")
    }
    return min(seconds, key=lambda size: seconds[size])


def measure(
    name: str, questions: list[Requests], model: Path, options: argparse.Namespace
) -> str:
    """Measure one set; returns its line of the table."""
    share = options.share if len(questions) > 1 else 1.0
    step = max(1, round(1 / share))
    everything = [request for question in questions for request in question]
    part = [request for question in questions[::step] for request in question]
    scale = len(everything) / len(part)
    mine: list[Outcome] = []
    peers: list[Outcome] = []
    with tempfile.TemporaryDirectory() as where:
        folder = Path(where)
        size = options.batch_size or best_batch_size(model, questions, folder, options)
        for _ in range(options.repeats):
            mine.append(run("ours", model, everything, "auto", folder, options))
            peers.append(run("theirs", model, part, size, folder, options))
    score = statistics.median(outcome.score for outcome in mine)
    total = statistics.median(outcome.total for outcome in mine)
    their_score = statistics.median(outcome.score for outcome in peers) * scale
    their_whole = statistics.median(o.total - o.score for o in peers) + their_score
    per = len(questions[0])
    ours_part = [
        row
        for place in range(0, len(questions), step)
        for row in mine[0].rows[place * per :][:per]
    ]
    differences = [
        abs(a[0] - b[0]) / max(1, a[2])
        for a, b in zip(ours_part, peers[0].rows, strict=True)
    ]
    flags = (
        sum(a[1] != b[1] for a, b in zip(ours_part, peers[0].rows, strict=True))
        if per > 1
        else 0
    )
    tokens = mine[0].how.get("tokens_computed", 0)
    head = options.vocab * options.hidden * mine[0].how.get("positions_read", 0)
    floor = 2 * (options.layer_parameters * tokens + head) / options.rate
    return (
        f"| {name} | {len(everything)} | {score:.2f} |"
        f" {their_score:.2f}{'' if step == 1 else f' ({step} x 1/{step})'} |"
        f" {their_score / score:.1f} | {total:.2f} | {their_whole:.2f} |"
        f" {their_whole / total:.1f} | {size} | {mine[0].how.get('tokens_given', 0)} /"
        f" {tokens} | {floor / score:.0%} | {max(differences):.1e}, {flags} |"
    )


def main() -> None:
    """See the module."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default="letters,texts,endings,rows,book")
    for name, default in [
        ("hidden", 256),
        ("vocab", 32000),
        ("layers", 4),
        ("questions", 400),
        ("repeats", 3),
    ]:
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--share", type=float, default=1.0)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    parser.add_argument("--clock", choices=["wall", "cpu"], default="wall")
    parser.add_argument("--batch-size", help="lm_eval's, instead of finding its best")
    parser.add_argument("--real", action="store_true")
    options = parser.parse_args()
    if options.real:
        parser.set_defaults(layers=30, hidden=576, vocab=49152)
        options = parser.parse_args()
    LM_EVAL.ensure()
    with tempfile.TemporaryDirectory() as where:
        model = Path(where)
        options.layer_parameters = make_model(
            model,
            options.data,
            options.hidden,
            options.vocab,
            options.layers,
            options.real,
        )
        options.rate = matmul_rate(options.threads)
        print(
            f"Llama of {options.layers} layers, hidden {options.hidden}, vocabulary"
            f" {options.vocab}, float32, {options.threads} threads, {options.clock}"
            f" time, load {os.getloadavg()[0]:.1f}, matmul {options.rate / 1e9:.0f}"
            " GFLOP/s\n\n| set | requests | ours s | lm_eval s | times | ours whole s"
            " | lm_eval whole s | times | its batch | tokens given / computed | of the"
            " limit | largest difference per token, flags"
            " |\n|---|---|---|---|---|---|---|---|---|---|---|---|",
            flush=True,
        )
        for selection in options.only.split(","):
            name, _, count = selection.partition(":")
            questions = every_set(options.data, int(count or options.questions))[name]()
            print(measure(name, questions, model, options), flush=True)


if __name__ == "__main__":
    main()
