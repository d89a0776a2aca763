"""Memory of long prompts, many choices and a large vocabulary: the peak above the loaded model,
beside lm_eval's.

    python -m benchmarks memory [--vocab 131072,262144] [--questions 3] [--choices 40]
        [--length 4000]

The model is a Llama with random weights (2 layers, hidden 512, tied head, room for 8,192 tokens) in
float32 on a CPU. Every question has a prompt of some 4,000 tokens and 40 choices of several tokens.
Each row of the table is a process of its own. lm_eval computes every choice by itself, so it is
given two choices of one question, with batch size 1: its peak is that of one batch, however many
there are. `plain` is our way without the prefix tree; it computes the prompt again for every
choice, so a few of them show its peak.
"""

from __future__ import annotations

import random
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from local_process import Job, run_job
from local_systems import draw_words, make_model
from measuring import Table, add_numbers, option_parser
from peers import LM_EVAL

WARM = [("Warm", " up")]
HIDDEN = 512
SIZES = {
    "hidden_size": HIDDEN,
    "intermediate_size": HIDDEN * 8 // 3 // 32 * 32,
    "num_hidden_layers": 2,
    "num_attention_heads": HIDDEN // 64,
    "num_key_value_heads": HIDDEN // 128,
    "max_position_embeddings": 8192,
    "tie_word_embeddings": True,
}


def make_pairs(
    tokenizer_folder: Path, questions: int, length: int, choices: int
) -> list[tuple[str, str]]:
    """Pairs of a prompt of about `length` tokens and a choice of 4 to 12."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(tokenizer_folder)
    dice = random.Random(0)

    def text(tokens: int) -> str:
        ids = tokenizer(draw_words(dice, tokens))["input_ids"]
        return str(tokenizer.decode(ids[:tokens]))

    prompts = [text(length) for _ in range(questions)]
    return [
        (prompt, f" {text(dice.randint(4, 12))}")
        for prompt in prompts
        for _ in range(choices)
    ]


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--vocab", default="131072,262144")
    add_numbers(parser, questions=3, choices=40, length=4000)
    options = parser.parse_args(words)
    LM_EVAL.ensure()
    table = Table(["vocabulary", "system", "requests", "peak above the model, GiB"])
    for vocabulary in map(int, options.vocab.split(",")):
        with tempfile.TemporaryDirectory() as name:
            model = Path(name)
            texts = [draw_words(random.Random(0), 20_000)]
            make_model(model, texts, {**SIZES, "vocab_size": vocabulary})
            pairs = make_pairs(
                model, options.questions, options.length, options.choices
            )
            few = [*pairs[:6], *pairs[-2:]]
            jobs = {
                "evalwright, tree": Job("ours", model, "score", pairs, warm=WARM),
                "evalwright, plain": Job(
                    "ours",
                    model,
                    "score",
                    few,
                    arguments={"scoring": "plain"},
                    warm=WARM,
                ),
                "lm_eval, batch size 1": Job(
                    "lm_eval", model, "score", pairs[:2], warm=WARM
                ),
            }
            for system, job in jobs.items():
                peak_gib = run_job(job).peak_bytes / 2**30
                table.add(
                    f"{vocabulary:,}", system, len(job.requests), f"{peak_gib:.2f}"
                )
    return 0


if __name__ == "__main__":
    sys.exit(main())
