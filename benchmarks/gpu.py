"""`hf/` and `vllm-local/` beside lm_eval's `hf` and `vllm` on one GPU: tokens a second, share of
the card's rate, peak memory.

    python benchmarks/gpu.py [--systems hf,vllm-local,lm-eval-hf,lm-eval-vllm] [--layers 22]
        [--hidden 2048] [--vocab 131072] [--questions 400] [--shots 2000] [--tokens 128]
        [--dtype bfloat16] [--device cuda] [--model FOLDER] [--peer-python PATH]

The default is a Llama of random weights with 1.5 billion parameters; `--vocab 262144` is the other
end of today's vocabularies. Each system loads the same folder in a process of its own and answers
the same requests: `choices`, log-likelihoods of four short continuations after --shots shared
tokens and a question; `texts`, --tokens greedy tokens after the same prompts. Systems whose
packages are not installed are left out and named. Try it without a GPU: `--device cpu --dtype
float32 --layers 2 --hidden 128 --vocab 4096 --questions 4 --shots 100 --tokens 8`.

tokens/s: of `choices` the tokens of all requests, as if nothing were shared; of `texts` those
written. rate: the time that the products with every different token (and the head at every position
read) would take at the measured rate of a large matrix product, divided by the time taken. peak:
the most memory that the process, or on a GPU all processes together, held beyond what was held
before.
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
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

NEVER = "<<<never>>>"
Pairs = list[list[str]]


def make_model(folder: Path, arguments: argparse.Namespace) -> None:
    """Write a Llama with random weights and a tokenizer of made-up words."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    core: Any = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=min(arguments.vocab, 8000),
        special_tokens=["<s>", "</s>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    core.train_from_iterator([words(random.Random(0), 20_000)], trainer)
    PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>"
    ).save_pretrained(folder)
    config = LlamaConfig(
        vocab_size=arguments.vocab,
        hidden_size=arguments.hidden,
        intermediate_size=arguments.hidden * 11 // 4,
        num_hidden_layers=arguments.layers,
        num_attention_heads=arguments.hidden // 64,
        num_key_value_heads=max(1, arguments.hidden // 256),
        max_position_embeddings=8192,
        bos_token_id=0,
        eos_token_id=1,
    )
    torch.manual_seed(0)
    torch.set_default_dtype(getattr(torch, arguments.dtype))
    with torch.device(arguments.device):
        LlamaForCausalLM(config).save_pretrained(folder)


def words(dice: random.Random, count: int) -> str:
    """Made-up words of two to four syllables."""
    syllables = [a + b for a in "bdfgklmnprstvz" for b in "aeiou"]
    return " ".join(
        "".join(dice.choices(syllables, k=dice.randint(2, 4))) for _ in range(count)
    )


def requests(questions: int, shots: int, folder: Path) -> tuple[Pairs, list[str]]:
    """(context, continuation) of every choice, and every prompt."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    dice = random.Random(1)
    start = tokenizer.decode(tokenizer(words(dice, shots))["input_ids"][:shots])
    prompts = [
        f"{start}\n\nQuestion: {words(dice, 20)}\nAnswer:" for _ in range(questions)
    ]
    return [
        [prompt, " " + words(dice, 2)] for prompt in prompts for _ in range(4)
    ], prompts


# --- one system in a process of its own
# ------------------------------------------------------------------------------


def ours(
    name: str, options: argparse.Namespace
) -> tuple[Callable[[Pairs], Any], Callable[[list[str]], Any]]:
    """Functions that get log-likelihoods and texts from one of our backends."""
    from evalwright.core.requests import Generate, LogLikelihood
    from evalwright.models.model_interface import LocalModel
    from evalwright.models.registry import open_model

    place = {"device": options.device} if name == "hf" else {}
    model = open_model(f"{name}/{options.model}", {"dtype": options.dtype, **place})
    assert isinstance(model, LocalModel)
    model.check()
    model.load()

    def answered(batch: Any) -> None:
        responses = dict(model.answer_batch(batch))
        assert len(responses) == len(batch) and not any(
            hasattr(response, "message") for response in responses.values()
        ), responses

    return (
        lambda pairs: answered([LogLikelihood(*pair) for pair in pairs]),
        lambda prompts: answered(
            [Generate(prompt, max_tokens=options.tokens) for prompt in prompts]
        ),
    )


def theirs(
    name: str, options: argparse.Namespace
) -> tuple[Callable[[Pairs], Any], Callable[[list[str]], Any]]:
    """The same for one of lm_eval's backends."""
    from lm_eval.api.instance import Instance
    from lm_eval.api.registry import get_model

    more: dict[str, Any] = {"batch_size": "auto"}
    if name == "lm-eval-hf":
        more = {
            "device": options.device,
            "batch_size": "auto" if options.device == "cuda" else 1,
        }
    backend: Any = get_model(name.removeprefix("lm-eval-"))
    model = backend(pretrained=options.model, dtype=options.dtype, **more)

    def instances(kind: str, arguments: list[Any]) -> list[Any]:
        return [
            Instance(request_type=kind, doc={}, arguments=argument, idx=0)
            for argument in arguments
        ]

    how = {"until": [NEVER], "max_gen_toks": options.tokens, "do_sample": False}
    return (
        lambda pairs: model.loglikelihood(
            instances("loglikelihood", [tuple(pair) for pair in pairs]),
            disable_tqdm=True,
        ),
        lambda prompts: model.generate_until(
            instances("generate_until", [(prompt, how) for prompt in prompts]),
            disable_tqdm=True,
        ),
    )


def worker(name: str, options: argparse.Namespace) -> None:
    """Print one line of JSON: seconds of both sets, after a short one that compiles and warms."""
    choices, texts = (theirs if name.startswith("lm-eval") else ours)(name, options)
    pairs, prompts = requests(options.questions, options.shots, Path(options.model))
    choices(pairs[:8])
    texts([prompt[-200:] for prompt in prompts[:2]])
    seconds = {}
    sets: dict[str, Callable[[], Any]] = {
        "choices": lambda: choices(pairs),
        "texts": lambda: texts(prompts),
    }
    for what, call in sets.items():
        began = time.perf_counter()
        call()
        seconds[what] = time.perf_counter() - began
    print("RESULT " + json.dumps(seconds), flush=True)


# --- what the card can do
# --------------------------------------------------------------------------------


def measure_rate(options: argparse.Namespace) -> float:
    """Measure floating-point operations a second, on a large matrix product of this dtype."""
    import torch

    size = 8192 if options.device == "cuda" else 1024
    a, b = (
        torch.randn(size, size, device=options.device).to(getattr(torch, options.dtype))
        for _ in "ab"
    )
    times = []
    for _ in range(12):
        began = time.perf_counter()
        a @ b
        if options.device == "cuda":
            torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return 2 * size**3 / statistics.median(times[2:])


def count_operations(options: argparse.Namespace) -> dict[str, tuple[int, float]]:
    """By set: its tokens as they are counted, and the floating-point operations of every different
    one.
    """
    from transformers import AutoConfig, AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(options.model)
    config = AutoConfig.from_pretrained(options.model)
    pairs, prompts = requests(options.questions, options.shots, Path(options.model))
    width = config.hidden_size
    head = config.hidden_size // config.num_attention_heads
    layer = (
        2 * width * width
        + 2 * width * head * config.num_key_value_heads
        + 3 * width * config.intermediate_size
    )
    body = 2 * config.num_hidden_layers * layer
    top = 2 * width * config.vocab_size
    rows = [
        tokenizer(context + continuation)["input_ids"]
        for context, continuation in pairs
    ]
    ends = [len(tokenizer(continuation)["input_ids"]) for _, continuation in pairs]
    prompt_tokens = [tokenizer(prompt)["input_ids"] for prompt in prompts]
    written = options.tokens * len(prompts)
    return {
        "choices": (
            sum(map(len, rows)),
            count_different_tokens(rows) * body + sum(ends) * top,
        ),
        "texts": (
            written,
            (count_different_tokens(prompt_tokens) + written) * body + written * top,
        ),
    }


def count_different_tokens(rows: list[list[int]]) -> int:
    """Count the nodes of the rows' prefix tree."""
    nodes = 0
    before = list[int]()
    for row in sorted(rows):
        shared = next(
            (i for i, (x, y) in enumerate(zip(row, before, strict=False)) if x != y),
            min(len(row), len(before)),
        )
        nodes = nodes + len(row) - shared
        before = row
    return nodes


def used_memory_gib(device: str, process: int) -> float:
    """Memory in use, in GiB: by all processes on a GPU, by this process on a CPU."""
    if device == "cuda":
        report = subprocess.run(
            ["nvidia-smi", "--query-gpu=memory.used", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
        )
        return sum(map(float, report.stdout.split())) / 1024
    with suppress(OSError, IndexError, StopIteration):
        lines = Path(f"/proc/{process}/status").read_text().splitlines()
        return (
            int(next(line for line in lines if line.startswith("VmRSS")).split()[1])
            / 2**20
        )
    return 0.0


def measure_system(
    name: str, options: argparse.Namespace
) -> tuple[dict[str, float], float] | str:
    """Seconds by set and peak memory of one system, or why it could not be measured."""
    before = used_memory_gib(options.device, 0)
    python = options.peer_python if name.startswith("lm-eval") else sys.executable
    command = [
        python,
        __file__,
        *sys.argv[1:],
        "--model",
        options.model,
        "--worker",
        name,
    ]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        peaks = [0.0]
        over = threading.Event()

        def watch() -> None:
            while not over.wait(0.2):
                peaks.append(used_memory_gib(options.device, process.pid))

        watcher = threading.Thread(target=watch)
        watcher.start()
        output, errors = process.communicate()
        over.set()
        watcher.join()
    line = next(
        (line for line in output.splitlines() if line.startswith("RESULT ")), None
    )
    if line is None:
        return (
            errors.strip().splitlines()[-1]
            if errors.strip()
            else f"exit code {process.returncode}"
        )
    return json.loads(line.removeprefix("RESULT ")), max(peaks) - before


def main() -> None:
    """See the module."""
    options = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    options.add_argument("--systems", default="hf,vllm-local,lm-eval-hf,lm-eval-vllm")
    for name, value in {
        "layers": 22,
        "hidden": 2048,
        "vocab": 131072,
        "questions": 400,
        "shots": 2000,
        "tokens": 128,
    }.items():
        options.add_argument(f"--{name}", type=int, default=value)
    options.add_argument("--dtype", default="bfloat16")
    options.add_argument("--device", default="cuda", choices=["cuda", "cpu"])
    options.add_argument("--model", default="")
    options.add_argument(
        "--peer-python", default=sys.executable, help="the interpreter that has lm_eval"
    )
    options.add_argument("--worker", default="", help=argparse.SUPPRESS)
    arguments = options.parse_args()
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if arguments.worker == "make":
        return make_model(Path(arguments.model), arguments)
    if arguments.worker:
        return worker(arguments.worker, arguments)
    with tempfile.TemporaryDirectory() as where:
        if not arguments.model:
            arguments.model = str(Path(where) / "model")
            making = [
                sys.executable,
                __file__,
                *sys.argv[1:],
                "--model",
                arguments.model,
                "--worker",
                "make",
            ]
            # in a process of its own, so that its memory is free again
            subprocess.run(making, check=True)
        per_second = measure_rate(arguments)
        counts = count_operations(arguments)
        size = (
            sum(
                path.stat().st_size
                for path in Path(arguments.model).glob("*.safetensors")
            )
            / 2**30
        )
        print(
            f"{arguments.dtype} on {arguments.device}: {per_second / 1e12:.3g} TFLOP/s"
            f" measured; weights {size:.2f} GiB\n",
            flush=True,
        )
        print(
            f"{'system':<14}{'set':<10}{'seconds':>9}{'tokens/s':>12}{'rate':>8}{'peak GiB':>10}"
        )
        for name in arguments.systems.split(","):
            outcome = measure_system(name, arguments)
            if isinstance(outcome, str):
                print(f"{name:<14}left out: {outcome[:200]}", flush=True)
                continue
            for what, seconds in outcome[0].items():
                tokens, work = counts[what]
                share = work / per_second / seconds
                print(
                    f"{name:<14}{what:<10}{seconds:>9.2f}{tokens / seconds:>12,.0f}"
                    f"{share:>8.0%}{outcome[1]:>10.2f}",
                    flush=True,
                )
    return None


if __name__ == "__main__":
    main()
