"""The arguments of an `hf` model, checked and resolved without loading anything."""

from __future__ import annotations

import ctypes
import re
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from evalwright.core.errors import (
    ConfigurationError,
    MissingExtra,
    UnknownName,
    check_known,
    closest,
)
from evalwright.models.local.hf.source import Checkpoint

DTYPES = {
    "float32": "float32",
    "fp32": "float32",
    "float": "float32",
    "float16": "float16",
    "fp16": "float16",
    "half": "float16",
    "bfloat16": "bfloat16",
    "bf16": "bfloat16",
    "float64": "float64",
}

SCORING = ("auto", "tree", "plain")
"""Ways of scoring.

"auto" uses a prefix tree if the model allows it, "tree" a prefix tree or nothing, "plain" computes
every different input separately.
"""


TOKEN_RULES = ("corrected", "published")
"""The rules of `models/local/tokens.py`, or those behind published numbers."""

AUTOMATIC = ("auto", "balanced", "balanced_low_0", "sequential")
"""Names of accelerate's strategies to spread a model over devices."""

METHODS = ("bitsandbytes-8bit", "bitsandbytes-4bit")
"""Methods for `quantization`: 8 bits (LLM.int8(), Dettmers 2022), 4 bits (QLoRA, 2023)."""

LIBRARIES = {
    "awq": ("awq", ("gptqmodel",)),
    "bitsandbytes": ("bitsandbytes", ("bitsandbytes",)),
    "compressed-tensors": ("compressed-tensors", ("compressed_tensors",)),
    "gptq": ("gptq", ("optimum", "gptqmodel")),
}
"""By the method that a checkpoint declares: our extra, and the libraries that transformers imports.
"""

_TOKEN_SCORES = (
    "bad_words_ids",
    "begin_suppress_tokens",
    "encoder_no_repeat_ngram_size",
    "encoder_repetition_penalty",
    "exponential_decay_length_penalty",
    "forced_bos_token_id",
    "forced_eos_token_id",
    "guidance_scale",
    "min_length",
    "min_new_tokens",
    "no_repeat_ngram_size",
    "remove_invalid_values",
    "renormalize_logits",
    "repetition_penalty",
    "sequence_bias",
    "suppress_tokens",
)
"""Arguments of generate() that change token scores before a token is chosen, sampled or not."""
SAMPLING_ARGUMENTS = ("epsilon_cutoff", "eta_cutoff", "top_h", "typical_p")
"""Arguments that narrow the distribution of a sampled token, and never change a greedy answer."""
GENERATE_ARGUMENTS = frozenset((*_TOKEN_SCORES, *SAMPLING_ARGUMENTS))
"""All names that `Generate.generation_arguments` may have for these models."""

_FOR_BOTH: dict[str, Any] = {"skip_modules": None, "cpu_offload": False}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "bitsandbytes-8bit": {"threshold": 6.0, **_FOR_BOTH},
    "bitsandbytes-4bit": {
        "quant_type": "nf4",
        "double_quant": False,
        "compute_dtype": None,
        **_FOR_BOTH,
    },
}

_DEVICE = r"(cpu|disk|mps|(cuda|xpu|npu|hpu)(:\d+)?|\d+)"


@dataclass(frozen=True, slots=True)
class HfOptions:
    """The checked and resolved arguments of an `hf` model.

    Attributes:
        device: the device's name.
        dtype: the dtype's name.
        batch_size: most rows; None for "auto".
        chat_template: the template's text.
        placement: the device arguments of `from_pretrained`; None if the whole model is on
            `device`.
        quantisation: the full settings; None for none.
        prefix_token: number or text of the token that a text starts from; None for BOS, else EOS.
    """

    dtype: str
    device: str
    batch_size: int | None
    max_length: int | None
    add_special_tokens: bool
    add_bos: bool
    chat_template: str | None
    template_arguments: Mapping[str, Any]
    trust_remote_code: bool
    attn_implementation: str | None
    max_tokens: int
    scoring: str = "auto"
    placement: Mapping[str, Any] | None = None
    quantisation: Mapping[str, Any] | None = None
    prefix_token: str | int | None = None
    token_rules: str = "corrected"
    memory: int | None = None
    """Bytes that scoring and generating may use beside the model."""

    def identity(self) -> dict[str, Any]:
        """Return the options that change answers.

        Devices, the batch size and the way of scoring do not, up to rounding. Options that were
        added later are included only if they are used, so that models keep their fingerprints.
        """
        rules = None if self.token_rules == "corrected" else self.token_rules
        later = {
            "quantization": self.quantisation,
            "prefix_token": self.prefix_token,
            "token_rules": rules,
        }
        return {
            "dtype": self.dtype,
            "max_length": self.max_length,
            "add_special_tokens": self.add_special_tokens,
            "add_bos": self.add_bos,
            "chat_template": self.chat_template,
            "template_arguments": dict(self.template_arguments),
            "trust_remote_code": self.trust_remote_code,
            "attn_implementation": self.attn_implementation,
            "max_tokens": self.max_tokens,
            **{name: setting for name, setting in later.items() if setting is not None},
        }


def require_libraries() -> None:
    """Raise MissingExtra if torch or transformers is not installed."""
    for library in ("torch", "transformers"):
        if find_spec(library) is None:
            raise MissingExtra("A transformers model ('hf/...')", "hf", library)


def resolve_device(device: str) -> str:
    """Resolve "auto" to a usable CUDA or ROCm GPU, or else the CPU, without importing torch."""
    if device == "auto":
        return "cuda" if _has_gpu() else "cpu"
    if device == "all" or "," in device:
        raise ConfigurationError(
            f"device={device} would be several devices: use -M devices={device}, which has"
            " a copy of the model on each."
        )
    if not re.fullmatch(r"(cpu|cuda|mps|xpu|npu|hpu)(:\d+)?", device):
        raise ConfigurationError(
            f"device={device!r} is not a device: use 'auto', 'cpu', 'cuda', 'cuda:1' or"
            " 'mps'."
        )
    return device


def resolve_dtype(dtype: str, device: str, config: Mapping[str, Any]) -> str:
    """Resolve "auto" to float32 on a CPU, and to the checkpoint's own dtype elsewhere."""
    dtype = str(dtype)
    if dtype == "auto":
        if device == "cpu":
            return "float32"
        text = config.get("text_config")
        for part_config in (config, text if isinstance(text, Mapping) else {}):
            declared = part_config.get("dtype") or part_config.get("torch_dtype")
            if isinstance(declared, str) and declared in DTYPES:
                return DTYPES[declared]
        return "float32"
    if dtype not in DTYPES:
        near = closest(str(dtype), DTYPES)
        raise ConfigurationError(
            f"dtype={dtype!r} is not"
            f" known{f'; did you mean {near[0]!r}?' if near else '.'} Use 'auto',"
            " 'float32', 'bfloat16' or 'float16'."
        )
    return DTYPES[dtype]


def resolve_placement(
    device_map: Any, max_memory: Any, offload_folder: Any, device: str
) -> dict[str, Any] | None:
    """Return arguments of `from_pretrained` that spread a model by accelerate.

    It is None if the model is on one device.

    Raises:
        ConfigurationError: the arguments do not fit.
        MissingExtra: accelerate is not installed.
    """
    limits = {"max_memory": max_memory, "offload_folder": offload_folder}
    limits = {name: setting for name, setting in limits.items() if setting is not None}
    if device_map is None:
        for name in limits:
            raise ConfigurationError(
                f"{name} can only be used with device_map: add device_map=auto."
            )
        return None
    if device != "auto":
        raise ConfigurationError(
            f"device={device!r} and device_map cannot both be given: device_map already"
            " places every part."
        )
    if find_spec("accelerate") is None:
        raise MissingExtra("A model with device_map", "hf", "accelerate")
    if not isinstance(limits.get("offload_folder", ""), str):
        raise ConfigurationError(f"offload_folder={offload_folder!r} must be a folder.")
    if "max_memory" in limits:
        limits["max_memory"] = _memory(max_memory)
    return {"device_map": _device_map(device_map), **limits}


def resolve_template(name: str | None, source: Checkpoint) -> str | None:
    """Return a chat template from a file, or by the name of one of the tokenizer's.

    It is None for the tokenizer's default.
    """
    if name is None:
        return None
    if name in source.templates:
        return source.templates[name]
    path = Path(name).expanduser()
    if path.is_file():
        try:
            return path.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigurationError(
                f"The chat template '{name}' cannot be read: {error}."
            ) from error
    template_names = ", ".join(source.templates) or "none"
    raise ConfigurationError(
        f"chat_template={name!r} is neither a file nor a template of this tokenizer (it"
        f" has: {template_names})."
    )


def as_count(name: str, value: Any) -> int:
    """Check for a whole number of at least 1, or its text."""
    with_text = int(value) if isinstance(value, str) and value.isdecimal() else value
    if isinstance(with_text, bool) or not isinstance(with_text, int) or with_text < 1:
        raise ConfigurationError(
            f"{name}={value!r} must be a whole number of at least 1."
        )
    return with_text


def as_prefix_token(value: Any) -> str | int | None:
    """Check for a token's number or text."""
    if value is None or (
        isinstance(value, (str, int)) and not isinstance(value, bool) and value != ""
    ):
        return int(value) if isinstance(value, str) and value.isdecimal() else value
    raise ConfigurationError(
        f"prefix_token={value!r} must be a token: its text, or its number."
    )


def as_bytes(name: str, value: Any) -> int:
    """Convert a positive number of GiB, or its text, to bytes."""
    try:
        size = 0 if isinstance(value, bool) else int(float(value) * 2**30)
    except (TypeError, ValueError, OverflowError):
        size = 0
    if size < 1:
        raise ConfigurationError(
            f"{name}={value!r} must be a positive number of GiB, for example 8 or 0.5."
        )
    return size


def as_flag(name: str, value: Any) -> bool:
    """Check for true or false, or its text."""
    by_text = {
        "true": True,
        "false": False,
        "yes": True,
        "no": False,
        "1": True,
        "0": False,
    }
    flag = value if isinstance(value, bool) else by_text.get(str(value).lower())
    if flag is None:
        raise ConfigurationError(f"{name}={value!r} must be true or false.")
    return flag


def _has_gpu() -> bool:
    """Ask the driver itself whether there is a GPU; torch may be built without GPU support."""
    try:
        build = version("torch")
    except PackageNotFoundError:
        return False
    if "+cpu" in build:
        return False
    if "+rocm" in build:
        return Path("/dev/kfd").exists()
    count = ctypes.c_int(0)
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        usable = (
            driver.cuInit(0) == 0 and driver.cuDeviceGetCount(ctypes.byref(count)) == 0
        )
    except (OSError, AttributeError):
        return False
    return usable and count.value > 0


def _device_map(value: Any) -> str | dict[str, int | str]:
    if isinstance(value, Mapping):
        return {
            str(module): _device(device, f"device_map[{module!r}]")
            for module, device in value.items()
        }
    if value in AUTOMATIC:
        return str(value)
    if isinstance(value, (str, int)) and re.fullmatch(_DEVICE, str(value)):
        return {"": _device(value, "device_map")}
    near = closest(str(value), AUTOMATIC)
    raise ConfigurationError(
        f"device_map={value!r} is not"
        f" known{f'; did you mean {near[0]!r}?' if near else '.'} Use"
        f" {', '.join(AUTOMATIC)}, a device, or a mapping from modules to devices."
    )


def _device(value: Any, where: str) -> int | str:
    if isinstance(value, bool) or not re.fullmatch(_DEVICE, str(value)):
        raise ConfigurationError(
            f"{where}={value!r} is not a device: use a GPU's number, 'cuda:0', 'cpu' or"
            " 'disk'."
        )
    return int(value) if str(value).isdecimal() else str(value)


def _memory(value: Any) -> dict[int | str, int | str]:
    if not isinstance(value, Mapping):
        raise ConfigurationError(
            f"max_memory={value!r} must be a mapping from devices to memory, for"
            " example '{0: 20GiB, cpu: 60GiB}'."
        )
    memory: dict[int | str, int | str] = {}
    for device, size in value.items():
        if isinstance(size, bool) or not re.fullmatch(
            r"\d+(\.\d+)? ?([KMGT]i?B)?", str(size), re.IGNORECASE
        ):
            raise ConfigurationError(
                f"max_memory[{device!r}]={size!r} is not an amount of memory: use bytes"
                " or '20GiB'."
            )
        memory[_device(device, "a key of max_memory")] = (
            size if isinstance(size, int) else str(size)
        )
    return memory


def resolve_quantisation(
    value: Any, dtype: str, source: Checkpoint
) -> dict[str, Any] | None:
    """Return the full settings of `quantization`; None for None.

    Args:
        value: a method's name or a mapping with `method`.
        dtype: the model's dtype, in which 4-bit weights are multiplied unless `compute_dtype` is
            set.
        source: the checkpoint.

    Raises:
        ConfigurationError: the settings do not fit, or the checkpoint is already quantised.
    """
    if value is None:
        return None
    settings_given = dict(value) if isinstance(value, Mapping) else {"method": value}
    method = str(settings_given.pop("method", None))
    if method in LIBRARIES:
        raise ConfigurationError(
            f"quantization={method!r} is not available on demand: a checkpoint that was"
            " quantised so says it in its config.json and needs no argument. On demand"
            f" use {' and '.join(METHODS)}."
        )
    if method not in METHODS:
        raise UnknownName(
            "quantization", method, METHODS, f"It must be {' or '.join(METHODS)}."
        )
    declared = declared_method(source)
    if declared is not None:
        raise ConfigurationError(
            f"'{source.where}' is quantised already ({declared}): leave out"
            " quantization, or name the checkpoint that is not."
        )
    settings = {**_DEFAULTS[method]}
    for name, setting in settings_given.items():
        check_known(f"setting of quantization '{method}'", [name], settings)
        settings[name] = _checked(name, setting)
    if settings.get("compute_dtype", dtype) is None:
        settings["compute_dtype"] = dtype
    return {"method": method, **settings}


def declared_method(source: Checkpoint) -> str | None:
    """Return the method with which a checkpoint says it was quantised, or None."""
    declared = source.quantisation
    return (
        str(declared.get("quant_method", "unknown"))
        if isinstance(declared, Mapping)
        else None
    )


def require_quantisation_libraries(
    name: str, source: Checkpoint, settings: Mapping[str, Any] | None
) -> None:
    """Raise MissingExtra if a library for the quantised model is missing."""
    method = "bitsandbytes" if settings is not None else declared_method(source)
    if method is None:
        return
    extra, libraries = LIBRARIES.get(method, ("hf", ()))
    for library_extra, library in [
        ("hf", "accelerate"),
        *((extra, library) for library in libraries),
    ]:
        if find_spec(library) is None:
            raise MissingExtra(
                f"The model '{name}', quantised by {method},", library_extra, library
            )


def bitsandbytes_config(settings: Mapping[str, Any]) -> Any:
    """Convert the settings to a BitsAndBytesConfig of transformers."""
    import torch
    from transformers import BitsAndBytesConfig

    common = {
        "llm_int8_skip_modules": settings["skip_modules"],
        "llm_int8_enable_fp32_cpu_offload": settings["cpu_offload"],
    }
    if settings["method"] == "bitsandbytes-8bit":
        return BitsAndBytesConfig(
            load_in_8bit=True, llm_int8_threshold=settings["threshold"], **common
        )
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=settings["quant_type"],
        bnb_4bit_use_double_quant=settings["double_quant"],
        bnb_4bit_compute_dtype=getattr(torch, settings["compute_dtype"]),
        **common,
    )


def _checked(name: str, value: Any) -> Any:
    """Check one setting of quantization.

    Raises:
        ConfigurationError: its value is wrong.
    """
    argument = f"quantization.{name}"
    if name in ("double_quant", "cpu_offload"):
        return as_flag(argument, value)
    if name == "threshold":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise ConfigurationError(
                f"{argument}={value!r} must be a number that is not negative."
            )
        return float(value)
    if name == "skip_modules":
        modules = value.split(",") if isinstance(value, str) else value
        if not isinstance(modules, (list, tuple)) or not all(
            isinstance(module, str) for module in modules
        ):
            raise ConfigurationError(
                f"{argument}={value!r} must be a list of module names."
            )
        return [module.strip() for module in modules]
    allowed = {"nf4": "nf4", "fp4": "fp4"} if name == "quant_type" else DTYPES
    if value not in allowed:
        raise ConfigurationError(
            f"{argument}={value!r} must be one of {', '.join(allowed)}."
        )
    return allowed[value]
