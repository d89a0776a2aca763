"""Checks whether the devices give the same answers as the CPU.

A small transformer with weights made here gets the same requests on each. Log-likelihoods are
compared in float32 and in bfloat16, and texts at temperature 0 in float32.
"""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.core.errors import EvalwrightError, ModelError, cause_of, reason_of
from evalwright.core.requests import Generate, LogLikelihood, Request
from evalwright.core.responses import Response
from evalwright.engine.engine import Engine
from evalwright.engine.sqlite import SqliteStore
from evalwright.evaluation.doctor.checks import Check
from evalwright.evaluation.running import run_blocking
from evalwright.models.registry import open_model

FLOAT32_MARGIN = 1e-3
"""Nats per token: kernels in float32 differ by less than 1e-4; TF32 and the like by more than this.
"""
BFLOAT16_MARGIN = 0.1
"""Nats per token: bfloat16 has 8 bits of precision, and the weights are widely spread."""
_HIDDEN = 64
_LAYERS = 2
_CONTEXT = 256
_WEIGHT_SPREAD = 0.15
"""Wide enough that greedy texts do not depend on the last bits."""
_VOCABULARY = 400
_PAIRS = (
    ("The capital of France is", " Paris"),
    ("Question: How many legs has a spider?\nAnswer:", " eight"),
    ("Iron melts at 1538 degrees, gold at 1064, lead at", " 327"),
    ("def double(number): return", " number * 2"),
    ("Élan, naïve, Zürich, 東京, Москва,", " Αθήνα"),
)
_MAX_NEW_TOKENS = 24


@dataclass(frozen=True, slots=True)
class Probe:
    """What a model answered.

    Attributes:
        log_likelihoods: the log-likelihood per token of each pair.
        texts: the generated texts.
        seconds: time taken, loading included.
    """

    log_likelihoods: tuple[float, ...]
    texts: tuple[str, ...]
    seconds: float


def known_devices() -> list[str]:
    """List the devices that torch can use here, the CPU first; [] without torch."""
    if find_spec("torch") is None:
        return []
    import torch

    gpus = (
        [f"cuda:{index}" for index in range(torch.cuda.device_count())]
        if torch.cuda.is_available()
        else []
    )
    return ["cpu", *gpus, *(["mps"] if torch.backends.mps.is_available() else [])]


def check_devices() -> Iterator[Check]:
    """Yield a check for each device and number format, against the CPU in float32."""
    if find_spec("torch") is None or find_spec("transformers") is None:
        yield Check(
            "device",
            "torch",
            "likelihood",
            "skipped",
            "torch is not installed: pip install 'evalwright[hf]'",
        )
        return
    with tempfile.TemporaryDirectory() as folder:
        try:
            model = f"hf/{_make_model(Path(folder) / 'model')}"
            expected = probe_model(model, "cpu", "float32")
        except Exception as error:
            yield Check("device", "cpu", "likelihood", "fails", _why(error))
            return
        yield Check(
            "device",
            "cpu",
            "likelihood and text",
            "works",
            f"{expected.seconds:.1f} s with loading",
            round(expected.seconds, 2),
            {"log_likelihoods": expected.log_likelihoods},
        )
        for device in known_devices():
            for dtype, margin in (
                ("float32", FLOAT32_MARGIN),
                ("bfloat16", BFLOAT16_MARGIN),
            ):
                if (device, dtype) != ("cpu", "float32"):
                    yield _compared(model, device, dtype, margin, expected)
        for name, is_here in _missing_devices():
            if not is_here:
                yield Check(
                    "device", name, "likelihood", "skipped", "torch sees none here"
                )


def probe_model(name: str, device: str, dtype: str | None = None) -> Probe:
    """Get a few log-likelihoods and texts from a local model.

    Raises EvalwrightError, or what the library raises.
    """
    began = time.monotonic()
    arguments = {"device": device, **({"dtype": dtype} if dtype else {})}
    responses: list[Response] = run_blocking(partial(_ask, name, arguments))
    scored = responses[: len(_PAIRS)]
    return Probe(
        tuple(
            (response.log_likelihood or 0.0) / (response.tokens_scored or 1)
            for response in scored
        ),
        tuple(response.text for response in responses[len(_PAIRS) :]),
        time.monotonic() - began,
    )


async def _ask(name: str, arguments: dict[str, Any]) -> list[Response]:
    model = open_model(name, arguments)
    model.check()
    requests: list[Request] = [
        LogLikelihood(context, continuation) for context, continuation in _PAIRS
    ]
    requests += [
        Generate(context, max_tokens=_MAX_NEW_TOKENS, temperature=0.0)
        for context, _ in _PAIRS
    ]
    with (
        tempfile.TemporaryDirectory() as folder,
        SqliteStore.open(Path(folder)) as store,
    ):
        async with Engine(store) as engine:
            door = engine.door({"target": model})
            return list(
                await asyncio.gather(*(door("target", request) for request in requests))
            )


def _compared(
    model: str, device: str, dtype: str, margin: float, expected: Probe
) -> Check:
    name = f"likelihood and text, {dtype}"
    try:
        probe = probe_model(model, device, dtype)
    except Exception as error:
        return Check("device", device, name, "fails", _why(error))
    pairs = zip(probe.log_likelihoods, expected.log_likelihoods, strict=True)
    largest = max(abs(ours - theirs) for ours, theirs in pairs)
    equal = sum(
        ours == theirs for ours, theirs in zip(probe.texts, expected.texts, strict=True)
    )
    why = (
        f"log-likelihoods differ from the CPU's by at most {largest:.2g} nats a token"
        f" (allowed: {margin:g}), {equal} of {len(expected.texts)} texts are equal,"
        f" {probe.seconds:.1f} s with loading"
    )
    facts = {
        "largest_difference": largest,
        "equal_texts": equal,
        "log_likelihoods": probe.log_likelihoods,
    }
    if not largest <= margin:
        return Check(
            "device", device, name, "fails", why, round(probe.seconds, 2), facts
        )
    # In bfloat16 texts diverge at the first near tie.
    same = equal == len(expected.texts) or dtype != "float32"
    return Check(
        "device",
        device,
        name,
        "works" if same else "look",
        why,
        round(probe.seconds, 2),
        facts,
    )


def _missing_devices() -> list[tuple[str, bool]]:
    devices = known_devices()
    return [
        ("cuda", any(name.startswith("cuda") for name in devices)),
        ("mps", "mps" in devices),
    ]


def _why(error: Exception) -> str:
    return (
        reason_of(error)
        if isinstance(error, EvalwrightError)
        else str(ModelError(cause_of(error)))
    )


def _make_model(folder: Path) -> Path:
    """Write a small Llama with random weights, equal everywhere, and a byte tokenizer."""
    import torch
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    from evalwright.models.local.hf.quiet import quiet

    core: Any = Tokenizer(models.BPE())
    core.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    core.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(
        vocab_size=_VOCABULARY,
        special_tokens=["<s>", "</s>"],
        initial_alphabet=alphabet,
        show_progress=False,
    )
    core.train_from_iterator(
        [context + continuation for context, continuation in _PAIRS], trainer
    )
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core, bos_token="<s>", eos_token="</s>"
    )
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=_HIDDEN,
        intermediate_size=2 * _HIDDEN,
        num_hidden_layers=_LAYERS,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=_CONTEXT,
        bos_token_id=0,
        eos_token_id=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        network = LlamaForCausalLM(config)
        for parameter in network.parameters():
            if parameter.dim() > 1:
                torch.nn.init.normal_(parameter, std=_WEIGHT_SPREAD)
    with quiet():
        network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
