"""Chooses the most exact number format and quantisation with which a checkpoint fits into memory.

A model's memory is computed, not tried: its weights, the keys and values of one text, the logits of
its tokens, and the libraries. Weights of 8 bits are LLM.int8() (Dettmers et al. 2022), those of 4
are NF4 with a 32-bit constant per 64 weights (Dettmers et al. 2023), 4.5 bits in all; embeddings
and the output layer keep the model's number format.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import ConfigurationError
from evalwright.models.local.hardware.machine import Machine
from evalwright.models.local.hf.source import Checkpoint
from evalwright.models.local.model_files import context_length, parameter_count

GIB = 2**30
DEFAULT_TEXT_TOKENS = 4096
"""The longest text, in tokens, to reserve memory for if there is no max_length."""

_MIN_TEXT_TOKENS = 256
"""Shorter texts than this many tokens are not proposed."""

WEIGHT_OVERHEAD = 1.05
"""Weights take a little more than their bytes: alignment, buffers, the loader's own copies."""

LIBRARY_BYTES = {"cpu": GIB // 2, "cuda": 6 * GIB // 10}
"""Memory of torch and transformers beside the model.

It is measured on a CPU (0.4 GiB); that of the CUDA context is not measured.
"""

_BYTES_BY_DTYPE = {"float64": 8, "float32": 4, "bfloat16": 2, "float16": 2}
_BYTES_BY_METHOD = {"bitsandbytes-8bit": 1.0, "bitsandbytes-4bit": 0.5625}
"""Bytes of a weight, by method."""

_LOGIT_TOKENS = 128
"""Number of tokens whose logits over the vocabulary are in memory at a time, in float32."""


@dataclass(frozen=True, slots=True)
class Size:
    """What decides how much memory a model needs.

    Attributes:
        parameters: number of parameters.
        embedding: number of parameters that are never quantised.
        cache: numbers stored per token of a text.
        vocabulary: number of tokens in the vocabulary.
        tokens: number of tokens in the longest text.
    """

    parameters: int
    embedding: int
    cache: int
    vocabulary: int
    tokens: int

    def weight_bytes(self, dtype: str, quantisation: str | None) -> float:
        """Return the bytes of the weights alone."""
        full_bytes = _BYTES_BY_DTYPE[dtype]
        inner = full_bytes if quantisation is None else _BYTES_BY_METHOD[quantisation]
        return (self.parameters - self.embedding) * inner + self.embedding * full_bytes

    def needs(self, dtype: str, quantisation: str | None, device: str) -> int:
        """Return the bytes for the model and one text of `tokens` tokens."""
        full_bytes = _BYTES_BY_DTYPE[dtype]
        weights = self.weight_bytes(dtype, quantisation)
        beside = self.cache * self.tokens * full_bytes + self.vocabulary * 4 * min(
            _LOGIT_TOKENS, self.tokens
        )
        return (
            round(WEIGHT_OVERHEAD * weights)
            + beside
            + LIBRARY_BYTES.get(device.partition(":")[0], LIBRARY_BYTES["cuda"])
        )


@dataclass(frozen=True, slots=True)
class Fit:
    """The chosen number format and quantisation. `need` and `free` are in bytes."""

    dtype: str
    quantisation: str | None
    need: int
    free: int
    device: str

    def describe(self) -> str:
        """Describe the choice in a sentence."""
        choice = (
            self.dtype
            if self.quantisation is None
            else f"{self.quantisation} over {self.dtype}"
        )
        return (
            f"{choice} was chosen: it needs about {_gib(self.need)}, and"
            f" {_gib(self.free)} of {self.device} memory are free"
        )


def model_size(source: Checkpoint, max_length: int | None) -> Size:
    """Compute a checkpoint's size from its files' headers, or by building it without memory."""
    config = _text_config(source.config)
    parameters = (
        parameter_count(source.folder) if source.folder else None
    ) or _count_unbuilt(source)
    hidden = _first_positive(config, "hidden_size", "n_embd", "d_model")
    layers = _first_positive(config, "num_hidden_layers", "n_layer", "num_layers")
    heads = _first_positive(config, "num_attention_heads", "n_head", "num_heads") or 1
    width = _first_positive(config, "head_dim") or hidden // heads
    vocabulary = _first_positive(config, "vocab_size")
    tied = (
        config.get(
            "tie_word_embeddings", source.config.get("tie_word_embeddings", True)
        )
        is not False
    )
    longest = context_length(source.config, {}) or DEFAULT_TEXT_TOKENS
    return Size(
        parameters=parameters,
        embedding=min(parameters, vocabulary * hidden * (1 if tied else 2)),
        cache=2
        * layers
        * (_first_positive(config, "num_key_value_heads") or heads)
        * width,
        vocabulary=vocabulary,
        tokens=min(longest, max_length or DEFAULT_TEXT_TOKENS),
    )


def weight_bytes(
    source: Checkpoint, dtype: str, quantisation: Mapping[str, Any] | None
) -> int | None:
    """Return the bytes of a checkpoint's weights in memory; None if they are not known.

    Args:
        source: the checkpoint.
        dtype: the number format in which it is loaded.
        quantisation: the settings of `quantization`; None for none.
    """
    if source.quantisation is not None:
        return None
    try:
        size = model_size(source, None)
    except ConfigurationError:
        return None
    method = None if quantisation is None else str(quantisation["method"])
    return round(size.weight_bytes(dtype, method))


def choose_fit(
    name: str,
    size: Size,
    machine: Machine,
    *,
    device: str,
    dtype: str,
    fixed_dtype: bool,
    quantisation: Any = None,
) -> Fit:
    """Choose the most exact candidate that fits into the free memory of the device.

    Args:
        name: the model, for messages.
        size: what the model needs.
        machine: the machine.
        device: where the model runs.
        dtype: the number format to begin with.
        fixed_dtype: whether the user chose it.
        quantisation: the user's choice, or None.

    Raises:
        ConfigurationError: nothing fits (the message says what would), or free memory is not known.
    """
    free = _free_bytes(machine, device)
    if free is None:
        seen = "" if machine.gpus or device == "cpu" else " No NVIDIA card was found."
        raise ConfigurationError(
            f"fit=true cannot find out how much memory is free on '{device}'.{seen}"
            " Name another device, or dtype and quantization yourself without fit."
        )
    tried = [
        Fit(
            number,
            method,
            size.needs(number, method, device),
            free,
            device.partition(":")[0],
        )
        for number, method in _candidates(dtype, fixed_dtype, quantisation)
    ]
    fitting = [fit for fit in tried if fit.need <= free]
    able = find_spec("bitsandbytes") is not None
    for fit in fitting:
        if fit.quantisation is None or able:
            return fit
    if fitting:
        raise ConfigurationError(
            f"'{name}' fits into the {_gib(free)} of memory that are free on '{device}'"
            f" only as {fitting[0].quantisation} (about {_gib(fitting[0].need)}), and"
            " bitsandbytes is not installed: pip install 'evalwright[bitsandbytes]'."
        )
    raise ConfigurationError(_nothing_fits(name, size, machine, device, tried[-1]))


def _nothing_fits(
    name: str, size: Size, machine: Machine, device: str, smallest: Fit
) -> str:
    """Say that not even the smallest candidate fits, and what would."""
    problem = (
        f"'{name}' does not fit: with {smallest.quantisation or smallest.dtype}, the"
        f" smallest of what was tried, it needs about {_gib(smallest.need)}, and"
        f" {_gib(smallest.free)} of memory are free on '{device}'."
    )
    if (
        device != "cpu"
        and machine.free is not None
        and size.needs("bfloat16", None, "cpu") <= machine.free
    ):
        return f"{problem} It would fit into main memory: device=cpu."
    token_bytes = max(1, size.cache * _BYTES_BY_DTYPE[smallest.dtype])
    missing_tokens = math.ceil((smallest.need - smallest.free) / token_bytes)
    shorter = size.tokens - missing_tokens
    if shorter >= _MIN_TEXT_TOKENS:
        return f"{problem} It would fit with shorter texts: max_length={shorter // 64 * 64}."
    return f"{problem} Use a smaller model."


def _candidates(
    dtype: str, fixed: bool, quantisation: Any
) -> list[tuple[str, str | None]]:
    if quantisation is not None:
        method = (
            quantisation.get("method")
            if isinstance(quantisation, Mapping)
            else quantisation
        )
        return [(dtype, method if method in _BYTES_BY_METHOD else None)]
    halves = [] if fixed or _BYTES_BY_DTYPE[dtype] <= 2 else ["bfloat16"]
    last = halves[-1] if halves else dtype
    return [
        (dtype, None),
        *((half, None) for half in halves),
        *((last, method) for method in _BYTES_BY_METHOD),
    ]


def _free_bytes(machine: Machine, device: str) -> int | None:
    """Free bytes on the device: main memory, or that of the card with its number."""
    device_kind, _, number = device.partition(":")
    if device_kind == "cpu":
        return machine.free
    index = int(number or 0)
    return (
        machine.gpus[index].free
        if device_kind == "cuda" and index < len(machine.gpus)
        else None
    )


def _count_unbuilt(source: Checkpoint) -> int:
    """Count the parameters of the architecture in the small files, without allocating any."""
    try:
        import torch
        from transformers import AutoConfig, AutoModelForCausalLM, AutoModelForSeq2SeqLM

        location = {"revision": source.revision, "subfolder": source.subfolder}
        arguments = {key: value for key, value in location.items() if value}
        config = AutoConfig.from_pretrained(
            source.where,
            local_files_only=source.local,
            trust_remote_code=False,  # else it would ask, and wait for an answer
            **arguments,
        )
        model_class = (
            AutoModelForSeq2SeqLM if config.is_encoder_decoder else AutoModelForCausalLM
        )
        with torch.device("meta"):
            return int(model_class.from_config(config).num_parameters())
    except Exception as error:
        raise ConfigurationError(
            f"fit=true cannot find out how large '{source.where}' is"
            f" ({type(error).__name__}): name dtype and quantization yourself."
        ) from error


def _text_config(config: Mapping[str, Any]) -> Mapping[str, Any]:
    text = config.get("text_config")
    return {**config, **text} if isinstance(text, Mapping) else config


def _first_positive(config: Mapping[str, Any], *names: str) -> int:
    candidates = (config.get(name) for name in names)
    return next(
        (value for value in candidates if isinstance(value, int) and value > 0), 0
    )


def _gib(count: int) -> str:
    return f"{count / GIB:.1f} GiB" if count >= GIB else f"{count / 2**20:.0f} MiB"
