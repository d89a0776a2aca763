"""Answers of transformers models, beside those of the released lm_eval 0.4.13, from the same
folders and requests.

    python -m benchmarks parity_models --data FOLDER [--only llama,gpt2,...] [--questions 60]
        [--texts 20] [--hidden 128]

FOLDER holds the `en_*`, `id_*` and `vi_*` files of Global-MMLU-Lite. Models are small, of random
weights drawn wide (`small_models.py`), in float32 on a CPU; each system answers in a process of its
own, ours by both ways of scoring, lm_eval with batch sizes 1 and 8. What is asked: five-shot
letters, and full texts of fewer questions, pairs that are out of the ordinary, rolling
log-likelihoods, generations with stop strings and limits.

The exit code is 1 where a log-likelihood differs by 1e-5 or more for each scored token, a most
probable token or the item-by-item accuracy differs, or a rolling perplexity differs by more than a
millionth.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from measuring import Table, add_numbers, option_parser

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from parity.small_models import (  # noqa: E402
    ARCHITECTURES,
    CONTEXT,
    Architecture,
    make_model,
)
from peers import LM_EVAL  # noqa: E402
from scoring import Question, format_question, mmlu, read  # noqa: E402

Pairs = list[list[str]]
COLUMNS = (
    "architecture",
    "ours: way asked for, and taken",
    "lm_eval's batch",
    "largest difference per token (its batch sizes among themselves)",
    "flags equal",
    "acc and acc_norm, item by item",
    "largest relative difference of rolling perplexity",
    "generations equal",
)
LARGEST = 1e-5
LARGEST_PERPLEXITY = 1e-6
SHORTEST_TEXT = 50
"""Tokens of a text whose own perplexity is compared; in float32 that of one word cannot be told to
a millionth.
"""


# --- what is asked
# --------------------------------------------------------------------------------


@dataclass
class Workload:
    """What every process is asked; `letters` and `texts` are the places of their pairs, four for
    each question.
    """

    pairs: Pairs
    rolling: list[str]
    generate: list[Any]
    letters: range
    texts: range
    choices: list[list[str]]

    def write(self, path: Path) -> None:
        """Write the workload as the workers read it."""
        requests_by_type = {
            "pairs": self.pairs,
            "rolling": self.rolling,
            "generate": self.generate,
        }
        path.write_text(json.dumps(requests_by_type), encoding="utf-8")


@dataclass
class Data:
    """The questions, by language."""

    test: list[Question]
    dev: list[Question]
    others: list[Question]

    def texts(self) -> list[str]:
        """All of it, to make a tokenizer from."""
        return [
            format_question(question, None)
            for question in (*self.test, *self.dev, *self.others)
        ]


def load(folder: Path) -> Data:
    """Read the data."""
    test, dev = (read(folder / f"en_{part}.jsonl") for part in ("test", "dev"))
    others = [
        question
        for language in ("id", "vi")
        for question in read(folder / f"{language}_dev.jsonl")
    ]
    return Data(test, dev, others)


def ask(
    data: Data, model: Path, architecture: Architecture, count: int, texts_of: int
) -> Workload:
    """Everything that one model has to answer."""
    # The shorter ones, so that five shots and a question fit into what these models take in.
    test = random.Random(1).sample(shorter(data.test), count)
    shots = shorter(data.dev)[:40]
    letters = [
        pair
        for question in mmlu(test, shots, texts=False, per_row=False)
        for pair in question
    ]
    some = test[:texts_of]
    texts = [
        pair
        for question in mmlu(some, shots, texts=True, per_row=False)
        for pair in question
    ]
    return Workload(
        [
            *letters,
            *texts,
            *unusual(data, architecture),
            *write_continuations(data, model),
        ],
        rolling(data),
        prompts(data, architecture),
        range(len(letters)),
        range(len(letters), len(letters) + len(texts)),
        [question["choices"] for question in some],
    )


def shorter(questions: list[Question]) -> list[Question]:
    """The shorter half."""
    return sorted(questions, key=lambda question: len(format_question(question, None)))[
        : len(questions) // 2
    ]


def unusual(data: Data, architecture: Architecture) -> Pairs:
    """Several tokens and spaces, empty contexts, white space at the end of one, other scripts,
    contexts that are cut.
    """
    rng = random.Random(2)
    some = rng.sample(data.test, 12)
    long = "\n".join(format_question(question, "C") for question in data.test[:60])
    spaces = [[q["question"], "  " + q["choices"][0]] for q in some[:4]]
    lines = [[format_question(q, None), f"\n\n {q['choices'][1]}\n"] for q in some[4:8]]
    moved = [
        [format_question(q, None) + end, q["choices"][2]]
        for q, end in zip(some, (" ", "  ", "\n", "\t "), strict=False)
    ]
    empty = [
        ["", text] for text in (" yes", "The", some[0]["question"], " été 東京", "🙂")
    ]
    # lm_eval refuses a context of white space where the tokenizer adds no BOS.
    blank = (
        [[text, " and so on"] for text in (" ", "\n\n", " \t")]
        if architecture.bos
        else []
    )
    scripts = [
        ["Câu hỏi: Thủ đô của Pháp là gì?\nTrả lời:", " Pa-ri"],
        ["質問: 日本の首都はどこですか。\n答え:", " 東京です"],
        ["Вопрос: 2 + 2?\nОтвет:", " четыре"],
        ["سؤال: ما هي عاصمة مصر؟", " القاهرة"],
        ["e\u0301 and é, 👩‍👩‍👧 and \u200b", " ﬁne ½ 𝔘𝔫𝔦"],
        *(
            [format_question(q, None), f" {q['choices'][3]}"]
            for q in rng.sample(data.others, 8)
        ),
    ]
    # The last continuations are nearly as long as what the model takes in.
    cut = [
        [long[-size:], f" {q['choices'][0]}"]
        for size, q in zip((6000, 9000, 20000), some, strict=False)
    ]
    cut += [
        [long[:9000], " " + data.test[7]["question"] * 4],
        ["Short.", " well" * (CONTEXT - 10)],
    ]
    return [*spaces, *lines, *moved, *empty, *blank, *scripts, *cut]


def write_continuations(data: Data, model: Path) -> Pairs:
    """What the model itself would write, and the same with another last token, so that greedy flags
    are of both kinds.

    Kept as far as it is read back as the tokens that were written.
    """
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(model)
    writer = AutoModelForCausalLM.from_pretrained(model).eval()
    pairs: Pairs = []
    for place, question in enumerate(random.Random(3).sample(data.test, 40)):
        context = format_question(question, None)
        before: list[int] = tokenizer.encode(context)
        with torch.inference_mode():
            tokens = writer.generate(
                torch.tensor([before]), max_new_tokens=6, do_sample=False
            )[0].tolist()
        for length in range(6, 0, -1):
            new = tokens[len(before) : len(before) + length]
            text = tokenizer.decode(new)
            if text.strip() and tokenizer.encode(context + text) == before + new:
                pairs += (
                    [[context, text]]
                    if place % 2
                    else [[context, text], [context, text + " of"]]
                )
                break
    return pairs


def rolling(data: Data) -> list[str]:
    """Long texts over several windows, short ones, one word, another script, white space."""
    rng = random.Random(4)

    def some(words: int, questions: list[Question]) -> str:
        chosen = rng.sample(questions, len(questions))
        return " ".join(" ".join(q["question"] for q in chosen).split()[:words])

    long = [
        some(1500, data.test),
        some(700, data.others),
        some(450, data.test),
        "a b " * 700,
    ]
    return [
        *long,
        some(60, data.test),
        some(60, data.others),
        "Word",
        " 東京 Москва 🙂\n\n\tx ",
    ]


def prompts(data: Data, architecture: Architecture) -> list[Any]:
    """(prompt, most new tokens, stop strings) forty times; every other one as a conversation where
    there is a template.
    """
    rng = random.Random(5)
    requests: list[Any] = []
    for place, question in enumerate(rng.sample([*data.test, *data.others], 40)):
        text = format_question(question, None)
        chat = (
            [["system", "Be brief."], ["user", text]] if place % 4 else [["user", text]]
        )
        stops = [["\n"], [".", "\n\n"], ["e"], [" the", "##"], []][place % 5]
        requests.append(
            [
                chat if architecture.chat and place % 2 else text,
                (16, 40, 5)[place % 3],
                stops,
            ]
        )
    return requests


# --- running and comparing
# --------------------------------------------------------------------------------


def run(
    side: str,
    ways: str,
    model: Path,
    workload: Workload,
    attention: str | None,
    threads: int,
) -> dict[str, dict[str, Any]]:
    """Answers of one worker process, by way of scoring or batch size."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": str(threads)}
    environment |= {"TOKENIZERS_PARALLELISM": "false"}
    environment.pop("PYTHONPATH", None)
    if side == "ours":
        environment["PYTHONPATH"] = str(HERE.parents[1] / "src")
    python = LM_EVAL.python if side == "theirs" else Path(sys.executable)
    with tempfile.TemporaryDirectory() as where:
        requests = Path(where, "requests.json")
        result = Path(where, "result.json")
        workload.write(requests)
        command = [
            str(python),
            str(HERE / "model_worker.py"),
            side,
            str(model),
            str(requests),
            str(result),
            ways,
        ]
        command += [attention] if attention else []
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            cwd=where,
            check=False,
        )
        if done.returncode:
            raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
        answers_by_way: dict[str, dict[str, Any]] = json.loads(
            result.read_text(encoding="utf-8")
        )
        return answers_by_way


@dataclass
class Comparison:
    """Our answers beside theirs."""

    pairs: float = 0.0
    flags: int = 0
    accuracy: list[str] = field(default_factory=list)
    perplexity: float = 0.0
    generations: int = 0

    @property
    def holds(self) -> bool:
        """Whether every bound is kept; generations are reported apart."""
        close = self.pairs < LARGEST and self.perplexity <= LARGEST_PERPLEXITY
        return close and not self.flags and not self.accuracy


def choose_options(
    pairs: list[Any], places: range, choices: list[list[str]] | None
) -> list[int]:
    """The choice of each question with the highest log-likelihood, for each character where choices
    are given.
    """
    choice_indexes = []
    for item, start in enumerate(places[::4]):
        values = [pairs[place][0] for place in range(start, start + 4)]
        lengths = [len(text) for text in choices[item]] if choices else [1] * 4
        choice_indexes.append(max(range(4), key=lambda c: values[c] / lengths[c]))
    return choice_indexes


def perplexity_difference(rows: list[tuple[float, int, float]]) -> float:
    """Relative, of the perplexity of several texts; each row is our log-likelihood, its tokens, and
    theirs.
    """
    value, tokens, theirs = (math.fsum(column) for column in zip(*rows, strict=True))
    return abs(math.expm1((theirs - value) / tokens))


def compare(
    mine: dict[str, Any], theirs: dict[str, Any], requests: Workload
) -> Comparison:
    """Compare the answers of both systems."""
    comparison = Comparison()
    for a, b in zip(mine["pairs"], theirs["pairs"], strict=True):
        difference = abs(a[0] - b[0]) / a[2]
        comparison.pairs = max(
            comparison.pairs, difference if math.isfinite(difference) else math.inf
        )
        comparison.flags += a[1] != b[1]
    together = [
        (a, n, b) for (a, n), b in zip(mine["rolling"], theirs["rolling"], strict=True)
    ]
    for name, places, by_length in (
        ("acc of letters", requests.letters, None),
        ("acc of texts", requests.texts, None),
        ("acc_norm of texts", requests.texts, requests.choices),
    ):
        if choose_options(mine["pairs"], places, by_length) != choose_options(
            theirs["pairs"], places, by_length
        ):
            comparison.accuracy.append(name)
    comparison.perplexity = max(
        perplexity_difference(rows)
        for rows in (together, *([row] for row in together if row[1] >= SHORTEST_TEXT))
    )
    comparison.generations = sum(
        a == b for a, b in zip(mine["generate"], theirs["generate"], strict=True)
    )
    return comparison


def describe(how: dict[str, Any]) -> str:
    """The path that was taken."""
    if how["path"] == "plain":
        return "plain"
    share = how["tokens_given"] / how["tokens_asked"]
    return f"tree ({how['attention']}) for {share:.0%} of tokens"


def report(
    name: str, data: Data, folder: Path, options: argparse.Namespace, table: Table
) -> bool:
    """Compare one architecture and print its lines of the table; whether all bounds are kept."""
    architecture = ARCHITECTURES[name]
    model = make_model(
        folder / name, name, data.texts(), options.hidden, options.layers, options.vocab
    )
    requests = ask(data, model, architecture, options.questions, options.texts)

    def answers(side: str, ways: str) -> dict[str, dict[str, Any]]:
        return run(side, ways, model, requests, architecture.attention, options.threads)

    mine = answers("ours", "tree,plain" if architecture.tree else "auto,plain")
    theirs = answers("theirs", "1,8")
    holds = True
    noise = max(
        abs(a[0] - b[0]) / c[2]
        for a, b, c in zip(
            theirs["1"]["pairs"],
            theirs["8"]["pairs"],
            mine["plain"]["pairs"],
            strict=True,
        )
    )
    for way, our_answers in mine.items():
        for size, their_answers in theirs.items():
            result = compare(our_answers, their_answers, requests)
            holds = holds and result.holds
            greedy = sum(row[1] for row in our_answers["pairs"])
            n_pairs = len(requests.pairs)
            table.add(
                architecture.title,
                f"{way}: {describe(our_answers['how'])}",
                size,
                f"{result.pairs:.1e} ({noise:.1e})",
                f"{n_pairs - result.flags} of {n_pairs}, {greedy} greedy",
                ", ".join(f"DIFFERENT {kind}" for kind in result.accuracy) or "equal",
                f"{result.perplexity:.1e}",
                f"{result.generations} of {len(requests.generate)}",
            )
    return holds


def main(words: Sequence[str] | None = None) -> int:
    """Run the comparison."""
    parser = option_parser(__doc__)
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--only", default=",".join(ARCHITECTURES))
    add_numbers(parser, questions=60, texts=20, hidden=128, layers=2, vocab=3000)
    parser.add_argument("--threads", type=int, default=1)
    options = parser.parse_args(words)
    LM_EVAL.ensure()
    data = load(options.data)
    table = Table(COLUMNS)
    with tempfile.TemporaryDirectory() as where:
        holds = [
            report(name, data, Path(where), options, table)
            for name in options.only.split(",")
        ]
    return 0 if all(holds) else 1


if __name__ == "__main__":
    sys.exit(main())
