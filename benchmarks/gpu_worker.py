"""One part of `benchmarks/gpu.py`, in a process of its own: makes the model, measures the card, or
has one system answer all sets.

    python benchmarks/gpu_worker.py PART --folder FOLDER --options JSON

It writes `FOLDER/PART.json` again whenever something is done, so that a part that is ended late
loses only what it was at.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import local_systems
from local_systems import NEVER, System, draw_words, open_ours, open_peer

SPARE_TOKENS = 16
"""Places that are left for tokens that a tokenizer's class adds by itself."""
SHAPES: dict[str, dict[str, Any]] = {
    "llama-1b": {
        "kind": "llama",
        "hidden_size": 2048,
        "intermediate_size": 8192,
        "num_hidden_layers": 16,
        "num_attention_heads": 32,
        "num_key_value_heads": 8,
        "vocab_size": 128256,
        "tie_word_embeddings": True,
    },
    "qwen-1.5b": {
        "kind": "qwen2",
        "hidden_size": 1536,
        "intermediate_size": 8960,
        "num_hidden_layers": 28,
        "num_attention_heads": 12,
        "num_key_value_heads": 2,
        "vocab_size": 151936,
        "tie_word_embeddings": True,
    },
    "tiny": {
        "kind": "llama",
        "hidden_size": 64,
        "intermediate_size": 128,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "vocab_size": 2048,
        "tie_word_embeddings": True,
    },
}
"""Sizes of Llama 3.2 1B and of Qwen 2.5 1.5B, and one for trying this on a CPU."""
MAX_REPETITIONS = 3
ENOUGH_SECONDS = 3.0
"""A set is not repeated once its repetitions took so long."""

Pair = tuple[str, str]


@dataclass(frozen=True)
class Options:
    """What all parts share.

    Attributes:
        shape: name of the model's sizes.
        device: "cuda" or "cpu".
        dtype: the weights' number format.
        questions: questions with four letters, after shared examples.
        shots: tokens of the shared examples.
        texts: questions with four answers of about 30 tokens, after shared examples.
        contexts: contexts of 250 tokens with four endings of different lengths.
        prompts: prompts to answer.
        tokens: tokens of an answer.
        sample: requests of each kind whose numbers are compared with the CPU's.
        peer_batch: lm_eval's batch size with transformers.
    """

    shape: str = "llama-1b"
    device: str = "cuda"
    dtype: str = "bfloat16"
    questions: int = 600
    shots: int = 1000
    texts: int = 200
    contexts: int = 600
    prompts: int = 96
    tokens: int = 128
    sample: int = 16
    peer_batch: int = 32


# --- the model and its sets


def make_model(folder: Path, options: Options) -> dict[str, Any]:
    """Write a model with random weights, and a tokenizer of made-up words."""
    sizes = {**SHAPES[options.shape], "max_position_embeddings": 8192}
    model = local_systems.make_model(
        folder,
        [draw_words(random.Random(0), 20_000)],
        sizes,
        kind=sizes.pop("kind"),
        device=options.device,
        dtype=options.dtype,
        spare_tokens=SPARE_TOKENS,
    )
    return {"parameters": model.num_parameters()}


@dataclass
class Sets:
    """The requests of one repetition.

    Attributes:
        pairs: for each set of log-likelihoods its contexts with continuations.
        prompts: the prompts to answer.
    """

    pairs: dict[str, list[Pair]]
    prompts: list[str]


def make_sets(tokenizer: Any, options: Options, seed: int) -> Sets:
    """Draw the requests; every seed has the same sizes, and shares no text with another."""
    dice = random.Random(seed)

    def text(tokens: int) -> str:
        ids = tokenizer(draw_words(dice, tokens))["input_ids"]
        return str(tokenizer.decode(ids[:tokens]))

    def questions(count: int) -> list[str]:
        examples = text(options.shots)
        return [f"{examples}\n\nQuestion: {text(50)}\nAnswer:" for _ in range(count)]

    letters = questions(options.questions)
    texts = questions(options.texts)
    contexts = [text(250) for _ in range(options.contexts)]
    return Sets(
        pairs={
            "letters": [
                (prompt, f" {letter}") for prompt in letters for letter in "ABCD"
            ],
            "texts": [(prompt, f" {text(30)}") for prompt in texts for _ in range(4)],
            "endings": [
                (context, f" {text(dice.randint(4, 20))}")
                for context in contexts
                for _ in range(4)
            ],
        },
        prompts=questions(options.prompts),
    )


# --- systems


def open_system(part: str, folder: Path, options: Options) -> System:
    """Load the backend of a part: one of ours, or one of lm_eval's after "lm-eval-"."""
    arguments: dict[str, Any] = {"dtype": options.dtype}
    if part == "hf":
        return open_ours(part, folder, {**arguments, "device": options.device})
    if part == "vllm-local":
        engine = {"gpu_memory_utilization": 0.6}
        return open_ours(
            part, folder, {**arguments, "engine": engine, "max_length": 8190}
        )
    if part == "lm-eval-hf":
        arguments |= {"device": options.device, "batch_size": options.peer_batch}
    else:
        arguments |= {
            "batch_size": "auto",
            "max_model_len": 8192,
            "gpu_memory_utilization": 0.6,
        }
    return open_peer(part.removeprefix("lm-eval-"), folder, arguments)


def write_answers(system: System, prompts: Sequence[str], tokens: int) -> list[str]:
    """Have a system write so many tokens after each prompt."""
    return system.write([(prompt, tokens, NEVER) for prompt in prompts])


def missing_package(part: str) -> str:
    """Return the package that a part lacks; "" if it has all."""
    needed = {
        "hf": ("transformers",),
        "vllm-local": ("vllm",),
        "lm-eval-hf": ("lm_eval",),
        "lm-eval-vllm": ("lm_eval", "vllm"),
    }
    return next((name for name in needed.get(part, ()) if find_spec(name) is None), "")


# --- measuring


@dataclass
class PassTimer:
    """Times the layers of every pass of a torch model, on its own device.

    Attributes:
        device: "cuda" or "cpu".
        passes: for each pass its tokens, and the clock before and after its layers.
    """

    device: str
    passes: list[list[Any]] = field(default_factory=list)

    def attach(self, model: Any) -> None:
        """Note every pass of the model from now on."""
        layers = model.base_model.layers

        def begin(_: Any, inputs: Any, named: Any) -> None:
            hidden = inputs[0] if inputs else named["hidden_states"]
            self.passes.append([hidden.shape[0] * hidden.shape[1], self._clock()])

        def end(*_: Any) -> None:
            self.passes[-1].append(self._clock())

        layers[0].register_forward_pre_hook(begin, with_kwargs=True)
        layers[-1].register_forward_hook(end)

    def _clock(self) -> Any:
        if self.device != "cuda":
            return time.perf_counter()
        import torch

        event = torch.cuda.Event(enable_timing=True)
        event.record()
        return event

    def take(self) -> list[tuple[int, float]]:
        """Return tokens and seconds of each pass since the last call."""
        synchronize(self.device)
        taken = []
        for tokens, start, end in self.passes:
            seconds = (
                start.elapsed_time(end) / 1000 if self.device == "cuda" else end - start
            )
            taken.append((tokens, seconds))
        self.passes.clear()
        return taken


def synchronize(device: str) -> None:
    """Wait until the device has done all that it was sent."""
    if device == "cuda":
        import torch

        torch.cuda.synchronize()


def measure_system(
    part: str, folder: Path, options: Options, save: Callable[[dict[str, Any]], None]
) -> None:
    """Have a system answer every set, after a few requests of each kind that warm it up."""
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    began = time.perf_counter()
    system = open_system(part, folder, options)
    report: dict[str, Any] = {
        "load_seconds": time.perf_counter() - began,
        "sets": {},
    }
    save(report)

    small = Options(**{**vars(options), "questions": 4, "texts": 4, "contexts": 4})
    warm = make_sets(tokenizer, small, seed=99)
    for pairs in warm.pairs.values():
        system.score(pairs)
    write_answers(system, [prompt[-200:] for prompt in warm.prompts[:4]], 4)

    timer = None
    if system.model is not None:
        timer = PassTimer(options.device)
        timer.attach(system.model)
    for name in ("letters", "texts", "endings", "generation"):
        report["sets"][name] = measure_set(name, system, tokenizer, options, timer)
        save(report)


def measure_set(
    name: str, system: System, tokenizer: Any, options: Options, timer: PassTimer | None
) -> dict[str, Any]:
    """Answer a set until that took long enough; each time with other texts of the same sizes."""
    seconds: list[float] = []
    measured: dict[str, Any] = {}
    for repetition in range(MAX_REPETITIONS):
        sets = make_sets(tokenizer, options, seed=repetition)
        synchronize(options.device)
        began = time.perf_counter()
        if name == "generation":
            answers: list[Any] = list(
                write_answers(system, sets.prompts, options.tokens)
            )
        else:
            answers = list(system.score(sets.pairs[name]))
        synchronize(options.device)
        seconds.append(time.perf_counter() - began)
        if repetition == 0:
            measured = {
                "answers": answers,
                **count_tokens(name, sets, tokenizer, options),
            }
        passes = [] if timer is None else timer.take()
        if seconds[-1] == min(seconds):
            measured["passes"] = passes
        if sum(seconds) > ENOUGH_SECONDS:
            break
    return {**measured, "seconds": seconds}


def count_tokens(
    name: str, sets: Sets, tokenizer: Any, options: Options
) -> dict[str, int]:
    """Count a set's tokens: all, each different one, and positions whose logits are read."""
    if name == "generation":
        rows = [tokenizer(prompt)["input_ids"] for prompt in sets.prompts]
        written = options.tokens * len(rows)
        return {
            "tokens": sum(map(len, rows)) + written,
            "different": count_different_tokens(rows) + written,
            "read": written,
            "written": written,
        }
    rows = []
    read = 0
    for context, continuation in sets.pairs[name]:
        context_ids = tokenizer(context)["input_ids"]
        ids = tokenizer(context + continuation)["input_ids"]
        rows.append(ids[:-1])
        read += len(ids) - len(context_ids)
    return {
        "tokens": sum(map(len, rows)),
        "different": count_different_tokens(rows),
        "read": read,
        "written": 0,
    }


def count_different_tokens(rows: Sequence[Sequence[int]]) -> int:
    """Count the nodes of the rows' prefix tree."""
    nodes = 0
    before: Sequence[int] = ()
    for row in sorted(map(list, rows)):
        shared = next(
            (
                index
                for index, (token, earlier) in enumerate(zip(row, before, strict=False))
                if token != earlier
            ),
            min(len(row), len(before)),
        )
        nodes += len(row) - shared
        before = row
    return nodes


def matrices_of(sizes: Mapping[str, Any]) -> dict[str, tuple[int, int, int]]:
    """Return a model's matrices: inputs, outputs, and how many there are."""
    hidden = sizes["hidden_size"]
    inner = sizes["intermediate_size"]
    layers = sizes["num_hidden_layers"]
    key_width = hidden // sizes["num_attention_heads"] * sizes["num_key_value_heads"]
    return {
        "query, output": (hidden, hidden, 2 * layers),
        "key, value": (hidden, key_width, 2 * layers),
        "gate, up": (hidden, inner, 2 * layers),
        "down": (inner, hidden, layers),
        "head": (hidden, sizes["vocab_size"], 1),
    }


def measure_rates(options: Options, save: Callable[[dict[str, Any]], None]) -> None:
    """Measure matrix products at the model's shapes, for passes of several sizes."""
    import torch

    # The defaults, said aloud: no TF32 in float32 products.
    torch.backends.cuda.matmul.allow_tf32 = False
    token_counts = [64, 1024, 8192, 32768] if options.device == "cuda" else [64, 256]
    dtype = getattr(torch, options.dtype)
    rates: list[dict[str, Any]] = []
    for name, (inputs, outputs, _) in matrices_of(SHAPES[options.shape]).items():
        weight = torch.randn(outputs, inputs, device=options.device).to(dtype)
        for tokens in token_counts:
            if name == "head" and tokens > 8192:
                continue
            hidden = torch.randn(tokens, inputs, device=options.device).to(dtype)
            seconds = time_product(hidden, weight, options.device)
            rates.append(
                {
                    "matrix": name,
                    "tokens": tokens,
                    "per_second": 2 * tokens * inputs * outputs / seconds,
                }
            )
        save({"rates": rates, "torch": torch.__version__, "device": device_name()})


def time_product(hidden: Any, weight: Any, device: str) -> float:
    """Return the seconds of one product, of several in a row."""
    import torch

    count = 10
    with torch.inference_mode():
        for _ in range(3):
            torch.nn.functional.linear(hidden, weight)
        synchronize(device)
        began = time.perf_counter()
        for _ in range(count):
            torch.nn.functional.linear(hidden, weight)
        synchronize(device)
    return (time.perf_counter() - began) / count


def device_name() -> str:
    """Return what the card is called; "CPU" without one."""
    import torch

    return torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"


def compare_devices(
    folder: Path, options: Options, save: Callable[[dict[str, Any]], None]
) -> None:
    """Answer a few requests on the device and on the CPU, in float32 and in bfloat16."""
    import torch
    from transformers import AutoTokenizer

    tokenizer = AutoTokenizer.from_pretrained(folder)
    count = -(-options.sample // 4)
    small = {"questions": count, "texts": count, "contexts": count, "prompts": 4}
    few = Options(**{**vars(options), **small, "shots": min(options.shots, 200)})
    sets = make_sets(tokenizer, few, seed=7)
    report: dict[str, Any] = {}
    for dtype, device in (
        ("float32", "cpu"),
        ("float32", options.device),
        ("bfloat16", options.device),
        ("bfloat16", "cpu"),
    ):
        # A model on the same device as before must not find its memory taken.
        system = open_ours("hf", folder, {"dtype": dtype, "device": device})
        side = "cpu" if device == "cpu" and f"cpu {dtype}" not in report else "device"
        answers = {name: system.score(pairs) for name, pairs in sets.pairs.items()}
        report[f"{side} {dtype}"] = {
            "log_likelihoods": answers,
            "texts": write_answers(system, sets.prompts, 16),
            "tf32": torch.backends.cuda.matmul.allow_tf32,
        }
        report["tokens"] = {
            name: [
                max(1, len(tokenizer(continuation)["input_ids"]))
                for _, continuation in pairs
            ]
            for name, pairs in sets.pairs.items()
        }
        save(report)
        del system
        if torch.cuda.is_available():
            torch.cuda.empty_cache()


def main(arguments: Sequence[str] | None = None) -> int:
    """Carry out one part."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("part")
    parser.add_argument("--folder", required=True, type=Path)
    parser.add_argument("--options", required=True)
    parsed = parser.parse_args(arguments)
    options = Options(**json.loads(parsed.options))
    model_folder = parsed.folder / "model"
    target = parsed.folder / f"{parsed.part}.json"

    def save(report: dict[str, Any]) -> None:
        temporary = target.with_suffix(".part")
        temporary.write_text(json.dumps(report), encoding="utf-8")
        temporary.replace(target)

    package = missing_package(parsed.part)
    if package:
        save({"left_out": f"{package} is not installed"})
    elif parsed.part == "make":
        model_folder.mkdir(exist_ok=True)
        save(make_model(model_folder, options))
    elif parsed.part == "rates":
        measure_rates(options, save)
    elif parsed.part == "numbers":
        compare_devices(model_folder, options, save)
    else:
        measure_system(parsed.part, model_folder, options, save)
    return 0


if __name__ == "__main__":
    sys.exit(main())
