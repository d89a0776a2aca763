"""Memory of long prompts, many choices and a large vocabulary: the peak above the loaded model,
beside lm_eval's.

    python -m benchmarks memory [--vocab 131072,262144] [--memory none,1,0.5] [--limits 0.6,0.3]
        [--without-peer]

The model is a Llama with random weights (2 layers, hidden 512, tied head, room for 8,192 tokens) in
float32 on a CPU. Every question has a prompt of some 4,000 tokens and 40 choices of several tokens.
Each line of the table is a process of its own. lm_eval computes every choice by itself, so it is
given two choices of one question, with batch size 1: its peak is that of one batch, however many
there are.

--memory: our option of that name, in GiB; "none" leaves it out, and the budget is then a share of
the free memory. --limits: hard limits above the loaded model, in GiB, set with the operating
system: allocations beyond it fail.

The exit code is 1 where a peak is above the `memory` that was given, or where a request is neither
answered nor failed.
"""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from measuring import add_numbers, option_parser
from peers import LM_EVAL

HERE = Path(__file__).resolve().parent
WORDS = 500


def make_model(folder: Path, vocab: int, hidden: int, layers: int) -> Path:
    """A Llama whose tokenizer has a token for each of `WORDS` words and for letters; the rest of
    the vocabulary is unused.
    """
    import torch
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast
    from transformers.utils import logging

    logging.disable_progress_bar()
    names = [
        "<s>",
        "</s>",
        "<unk>",
        "Warm",
        "up",
        *(f"word{number}" for number in range(WORDS)),
    ]
    core = Tokenizer(
        models.WordLevel(
            {name: number for number, name in enumerate(names)}, unk_token="<unk>"
        )
    )
    core.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>", unk_token="<unk>"
    )
    tokenizer.save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=vocab,
        hidden_size=hidden,
        intermediate_size=hidden * 8 // 3 // 32 * 32,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
        num_key_value_heads=max(1, hidden // 128),
        max_position_embeddings=8192,
        tie_word_embeddings=True,
        bos_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    LlamaForCausalLM(config).save_pretrained(folder)
    return folder


def questions(count: int, length: int, choices: int) -> list[list[str]]:
    """Pairs of a prompt of `length` tokens and a choice of 4 to 12."""
    rng = random.Random(0)

    def some(words: int) -> str:
        return " ".join(f"word{rng.randrange(WORDS)}" for _ in range(words))

    pairs = []
    for _ in range(count):
        prompt = some(length)
        pairs += [[prompt, f" {some(rng.randint(4, 12))}"] for _ in range(choices)]
    return pairs


def run(
    side: str, way: str, model: Path, pairs: list[list[str]], memory: str, limit: str
) -> dict[str, Any]:
    """Score in a separate process."""
    environment = {
        **os.environ,
        "HF_HUB_OFFLINE": "1",
        "TOKENIZERS_PARALLELISM": "false",
    }
    environment.pop("PYTHONPATH", None)
    if side == "ours":
        environment["PYTHONPATH"] = str(HERE.parent / "src")
    python = LM_EVAL.python if side == "theirs" else Path(sys.executable)
    with tempfile.TemporaryDirectory() as where:
        requests = Path(where, "requests.json")
        result = Path(where, "result.json")
        requests.write_text(json.dumps(pairs), encoding="utf-8")
        command = [
            str(python),
            str(HERE / "memory_worker.py"),
            side,
            str(model),
            str(requests),
            str(result),
        ]
        command += [way, memory, limit]
        done = subprocess.run(
            command,
            env=environment,
            capture_output=True,
            text=True,
            cwd=where,
            check=False,
        )
        if done.returncode:
            return {"died": f"exit {done.returncode}", "stderr": done.stderr[-2000:]}
        measurement: dict[str, Any] = json.loads(result.read_text(encoding="utf-8"))
        return measurement


def line(
    vocab: int,
    system: str,
    request_count: int,
    memory: str,
    limit: str,
    measurement: dict[str, Any],
) -> tuple[str, bool]:
    """A line of the table, and whether its figures are within bounds."""
    start = (
        f"| {vocab:,} | {system} | {'-' if memory == 'none' else memory} |"
        f" {'-' if limit == 'none' else limit}"
    )
    if "died" in measurement:
        print(measurement["stderr"], file=sys.stderr)
        return f"{start} | {request_count} | - | - | {measurement['died']} |", False
    above = (measurement["peak"] - measurement["base"]) / 2**30
    answered = sum(value is not None for value in measurement["values"])
    complete = answered + len(measurement["failures"]) == request_count
    within = memory == "none" or above <= float(memory)
    say = "; ".join(sorted(set(measurement["failures"]))) or "-"
    return (
        f"{start} | {request_count} | {answered} | {above:.2f} | {say} |",
        complete and within,
    )


def main(words: Sequence[str] | None = None) -> int:
    """See the module."""
    parser = option_parser(__doc__)
    parser.add_argument("--vocab", default="131072,262144")
    parser.add_argument("--ways", default="tree,plain")
    parser.add_argument("--memory", default="none")
    parser.add_argument("--limits", default="none")
    add_numbers(parser, questions=3, choices=40, length=4000, hidden=512, layers=2)
    parser.add_argument("--without-peer", action="store_true")
    options = parser.parse_args(words)
    if not options.without_peer:
        LM_EVAL.ensure()
    pairs = questions(options.questions, options.length, options.choices)
    print(
        "| vocabulary | system | `memory`, GiB | hard limit, GiB | requests | answered"
        " | peak above the model, GiB | failures |\n|---|---|---|---|---|---|---|---|",
        flush=True,
    )
    fine = True
    for vocab in map(int, options.vocab.split(",")):
        with tempfile.TemporaryDirectory() as where:
            model = make_model(Path(where), vocab, options.hidden, options.layers)
            for way in options.ways.split(","):
                # The plain way computes the prompt again for every choice; a few of them show its
                # peak.
                some = pairs if way == "tree" else [*pairs[:6], *pairs[-2:]]
                for memory in options.memory.split(","):
                    for limit in options.limits.split(","):
                        measurement = run("ours", way, model, some, memory, limit)
                        text, good = line(
                            vocab,
                            f"evalwright, {way}",
                            len(some),
                            memory,
                            limit,
                            measurement,
                        )
                        print(text, flush=True)
                        fine = fine and good
            if not options.without_peer:
                measurement = run("theirs", "1", model, pairs[:2], "none", "none")
                print(
                    line(
                        vocab, "lm_eval, batch size 1", 2, "none", "none", measurement
                    )[0],
                    flush=True,
                )
    return 0 if fine else 1


if __name__ == "__main__":
    sys.exit(main())
