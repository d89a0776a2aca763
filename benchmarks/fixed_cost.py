"""What a warm run of 40 questions costs beyond loading a model and computing.

    python -m benchmarks fixed_cost [--model FOLDER] [--source FOLDER] [--source FOLDER]
        [--repeats 3] [--threads 1]

Questions with four options are asked of a Llama of 135 million parameters with random weights (or
the model in FOLDER, which must have a tokenizer), answered by letter, in processes:

- `bare` imports torch and transformers, loads the folder with transformers, and puts the tokens of
  the same requests through the model as a prefix tree: no tokenising, checks, store or record.
- `new` is `evalwright run` of 40 questions that were never asked, after a run of 40 others.
- `stored` is the same command again: every response is in the store.

Shown are CPU seconds (user and system) and wall seconds of whole processes, the least of the
repeats. Several --source folders (of `evalwright`'s source) are measured interleaved, and must
compute the same log-likelihoods up to rounding; by default it is the one beside this file.
"""

from __future__ import annotations

import json
import math
import os
import random
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from measuring import Table, option_parser

ROOT = Path(__file__).resolve().parent.parent
QUESTIONS = 40
TOLERANCE = 1e-4
"""Most that two sources may differ in a log-likelihood; sums are rounded in another order."""
LETTERS = "ABCD"
WORDS = (
    "river",
    "mountain",
    "engine",
    "letter",
    "harvest",
    "signal",
    "window",
    "garden",
)

BARE = """
import json, sys
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer
folder, pairs = sys.argv[1:]
AutoTokenizer.from_pretrained(folder)
model = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32).eval()
from evalwright.models.local.hf.batching import BatchRunner
from evalwright.models.local.hf.reading import LogitReader, PlainScorer
from evalwright.models.local.hf.tree_forward import TreeForward
from evalwright.models.local.hf.tree_scoring import TreeScorer
reader = LogitReader(model, "cpu")
plain = PlainScorer(reader, BatchRunner(None, 2048), "cpu", ())
forward = TreeForward(model, reader, "cpu")
scorer = TreeScorer(
    forward, reader, plain, tokens=2048, rows=None, stored=1 << 30, name="bare"
)
scorer._compared = 1 << 30
scores = dict(scorer.score([tuple(pair) for pair in json.load(open(pairs))]))
print(sum(score.log_likelihood for score in scores.values()))
"""
"""The program of `bare`: the folder of the model, and a file of pairs of token ids."""

PAIRS = """
import json, sys
from evalwright.models.local.hf.loading import load_tokenizer
from evalwright.models.local.hf.source import find_source
folder, questions, pairs = sys.argv[1:]
tokenizer = load_tokenizer(find_source(folder, None))
prompts = json.load(open(questions))
rows = [
    [tokenizer.encode(prompt), tokenizer.encode(f" {letter}", add_special_tokens=False)]
    for prompt in prompts
    for letter in "ABCD"
]
json.dump(rows, open(pairs, "w"))
"""
"""Writes the pairs of token ids of some prompts."""


@dataclass(frozen=True, slots=True)
class Seconds:
    """Seconds of a process.

    Attributes:
        cpu: user and system.
        wall: from its start to its end.
    """

    cpu: float
    wall: float


def make_model(folder: Path) -> None:
    """Write a Llama of 135 million parameters with random weights, and a tokenizer.

    Args:
        folder: where to.
    """
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    core = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=1000,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([" ".join(WORDS)] * 10, trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=49152,
        hidden_size=576,
        intermediate_size=1536,
        num_hidden_layers=30,
        num_attention_heads=9,
        num_key_value_heads=3,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)


def write_questions(path: Path, seed: int) -> list[str]:
    """Write 40 questions with four options as JSONL; return their prompts.

    Args:
        path: the file.
        seed: decides the questions.
    """
    rng = random.Random(seed)
    prompts = []
    with path.open("w", encoding="utf-8") as file:
        for number in range(QUESTIONS):
            text = f"Which comes after {' '.join(rng.choices(WORDS, k=12))} {number}?"
            options = dict(zip(LETTERS, rng.sample(WORDS, 4), strict=True))
            row = {"id": f"{seed}-{number}", "question": text, **options, "answer": "A"}
            file.write(json.dumps(row) + "\n")
            listing = "\n".join(f"{key}. {word}" for key, word in options.items())
            prompts.append(
                f"{text}\n{listing}\nAnswer with the letter of the right option.\nAnswer:"
            )
    return prompts


def run_process(
    command: Sequence[str], source: Path, home: Path, threads: int
) -> tuple[Seconds, str]:
    """Run a Python program; return its seconds and its output.

    Args:
        command: arguments of the interpreter.
        source: the folder with the package `evalwright`.
        home: the home folder, also the working folder.
        threads: threads of torch.

    Raises:
        RuntimeError: it failed.
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "EVALWRIGHT_HOME": str(home),
        "HF_HUB_OFFLINE": "1",
        "OMP_NUM_THREADS": str(threads),
    }
    began = time.perf_counter()
    with (home / "output").open("wb") as output:
        process = subprocess.Popen(
            [sys.executable, *command],
            env=environment,
            stdout=output,
            stderr=output,
            cwd=home,
        )
        _, status, usage = os.wait4(process.pid, 0)
    wall = time.perf_counter() - began
    process.returncode = os.waitstatus_to_exitcode(status)
    text = (home / "output").read_text(encoding="utf-8")
    if process.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{text[-3000:]}")
    return Seconds(usage.ru_utime + usage.ru_stime, wall), text


def run_questions(
    model: Path, questions: Path, source: Path, home: Path, threads: int
) -> Seconds:
    """Evaluate the model on a file of questions; the arguments are those of `run_process`."""
    command = ["-m", "evalwright", "run", str(questions), "--model", f"hf/{model}"]
    command += [
        "-M",
        "device=cpu",
        "-T",
        "answer.mode=letter",
        "--out",
        str(home / "runs"),
    ]
    command += ["--name", questions.stem, "--replace"]
    return run_process(command, source, home, threads)[0]


def log_likelihoods(run: Path) -> list[list[float]]:
    """Return the log-likelihoods of a run's answers, by sample."""
    lines = (run / "samples.jsonl").read_text(encoding="utf-8").splitlines()
    return [json.loads(line)["log_likelihoods"] for line in lines]


def least(seconds: Sequence[Seconds]) -> Seconds:
    """The least CPU and the least wall seconds of some processes."""
    return Seconds(min(s.cpu for s in seconds), min(s.wall for s in seconds))


def are_close(
    numbers: Sequence[Sequence[float]], other_numbers: Sequence[Sequence[float]]
) -> bool:
    """Return whether two sources computed the same log-likelihoods, up to rounding."""
    return len(numbers) == len(other_numbers) and all(
        math.isclose(number, other, abs_tol=TOLERANCE)
        for row, other_row in zip(numbers, other_numbers, strict=True)
        for number, other in zip(row, other_row, strict=True)
    )


def measure(
    model: Path, sources: Sequence[Path], folder: Path, repeats: int, threads: int
) -> dict[tuple[str, str], list[Seconds]]:
    """Measure all processes, interleaved.

    Returns:
        Their seconds by (process, source); `bare` is that of the first source.

    Raises:
        RuntimeError: the sources computed different log-likelihoods.
    """
    write_questions(folder / "others.jsonl", 1)
    prompts = write_questions(folder / "questions.jsonl", 2)
    (folder / "prompts.json").write_text(json.dumps(prompts))
    pairs = folder / "pairs.json"
    arguments = [str(model), str(folder / "prompts.json"), str(pairs)]
    run_process(["-c", PAIRS, *arguments], sources[0], folder, threads)
    seconds: dict[tuple[str, str], list[Seconds]] = {}
    for _ in range(repeats):
        bare_seconds, _ = run_process(
            ["-c", BARE, str(model), str(pairs)], sources[0], folder, threads
        )
        seconds.setdefault(("bare", ""), []).append(bare_seconds)
        numbers: list[Any] = []
        for source in sources:
            with tempfile.TemporaryDirectory(dir=folder) as temporary:
                home = Path(temporary)
                run_questions(model, folder / "others.jsonl", source, home, threads)
                for name in ("new", "stored"):
                    process_seconds = run_questions(
                        model, folder / "questions.jsonl", source, home, threads
                    )
                    seconds.setdefault((name, str(source)), []).append(process_seconds)
                numbers.append(log_likelihoods(home / "runs" / "questions"))
        if not all(are_close(numbers[0], of_source) for of_source in numbers[1:]):
            raise RuntimeError("The sources computed different log-likelihoods.")
    return seconds


def main(arguments: Sequence[str] | None = None) -> None:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--model", type=Path)
    parser.add_argument("--source", type=Path, action="append")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(arguments)
    sources = [path.resolve() for path in options.source or [ROOT / "src"]]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        model = options.model
        if model is None:
            model = folder / "model"
            make_model(model)
            time.sleep(3)  # a hash of a file that was just written is not kept
        seconds = measure(model, sources, folder, options.repeats, options.threads)
    bare_seconds = least(seconds["bare", ""])
    print(f"{options.threads} threads, load {os.getloadavg()[0]:.1f}")
    table = Table(["process", "source", "CPU s", "wall s", "CPU s beyond bare"])
    for (name, source), repeated in seconds.items():
        total = least(repeated)
        beyond = "" if name != "new" else f"{total.cpu - bare_seconds.cpu:.2f}"
        table.add(name, source, f"{total.cpu:.2f}", f"{total.wall:.2f}", beyond)


if __name__ == "__main__":
    main()
