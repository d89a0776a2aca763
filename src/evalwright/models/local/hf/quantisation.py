"""Models with fewer bits: on demand by bitsandbytes, or a checkpoint that says of itself how it was quantised.

Nothing here needs torch but `bitsandbytes_config`, which makes what transformers is handed.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib.util import find_spec
from typing import Any

from evalwright.core.errors import ConfigurationError, MissingExtra, UnknownName, check_known
from evalwright.models.local.hf.options import DTYPES, as_flag
from evalwright.models.local.hf.source import Checkpoint

METHODS = ("bitsandbytes-8bit", "bitsandbytes-4bit")
"""What `quantization` may name: LLM.int8() (Dettmers et al. 2022) and 4 bits as in QLoRA (Dettmers et al. 2023)."""

LIBRARIES = {
    "awq": ("awq", ("gptqmodel",)),
    "bitsandbytes": ("bitsandbytes", ("bitsandbytes",)),
    "compressed-tensors": ("compressed-tensors", ("compressed_tensors",)),
    "gptq": ("gptq", ("optimum", "gptqmodel")),
}
"""By the method that a checkpoint declares: our extra, and the libraries that transformers then imports."""

_FOR_BOTH: dict[str, Any] = {"skip_modules": None, "cpu_offload": False}
_DEFAULTS: dict[str, dict[str, Any]] = {
    "bitsandbytes-8bit": {"threshold": 6.0, **_FOR_BOTH},
    "bitsandbytes-4bit": {"quant_type": "nf4", "double_quant": False, "compute_dtype": None, **_FOR_BOTH},
}


def resolve_quantisation(value: Any, dtype: str, source: Checkpoint) -> dict[str, Any] | None:
    """The whole settings of `quantization`, which is a method's name or a mapping with `method`; None for None.

    dtype: of the model, in which 4-bit weights are multiplied unless `compute_dtype` says otherwise.
    Raises ConfigurationError for what does not fit, and where the checkpoint is quantised already.
    """
    if value is None:
        return None
    given = dict(value) if isinstance(value, Mapping) else {"method": value}
    method = str(given.pop("method", None))
    if method in LIBRARIES:
        raise ConfigurationError(
            f"quantization={method!r} is not available on demand: a checkpoint that was quantised so says it in its "
            f"config.json and needs no argument. On demand use {' and '.join(METHODS)}."
        )
    if method not in METHODS:
        raise UnknownName("quantization", method, METHODS, f"It must be {' or '.join(METHODS)}.")
    declared = declared_method(source)
    if declared is not None:
        raise ConfigurationError(
            f"'{source.where}' is quantised already ({declared}): leave out quantization, or name the checkpoint that is not."
        )
    settings = {**_DEFAULTS[method]}
    for name, setting in given.items():
        check_known(f"setting of quantization '{method}'", [name], settings)
        settings[name] = _checked(name, setting)
    if settings.get("compute_dtype", dtype) is None:
        settings["compute_dtype"] = dtype
    return {"method": method, **settings}


def declared_method(source: Checkpoint) -> str | None:
    """The method that a checkpoint says it was quantised with, or None."""
    declared = source.quantisation
    return str(declared.get("quant_method", "unknown")) if isinstance(declared, Mapping) else None


def require_quantisation_libraries(name: str, source: Checkpoint, settings: Mapping[str, Any] | None) -> None:
    """Raise MissingExtra, with the command that installs it, where a library for the quantised model is missing."""
    method = "bitsandbytes" if settings is not None else declared_method(source)
    if method is None:
        return
    extra, libraries = LIBRARIES.get(method, ("hf", ()))
    for own, library in [("hf", "accelerate"), *((extra, library) for library in libraries)]:
        if find_spec(library) is None:
            raise MissingExtra(f"The model '{name}', quantised by {method},", own, library)


def bitsandbytes_config(settings: Mapping[str, Any]) -> Any:
    """The settings as a BitsAndBytesConfig of transformers."""
    import torch
    from transformers import BitsAndBytesConfig

    common = {
        "llm_int8_skip_modules": settings["skip_modules"],
        "llm_int8_enable_fp32_cpu_offload": settings["cpu_offload"],
    }
    if settings["method"] == "bitsandbytes-8bit":
        return BitsAndBytesConfig(load_in_8bit=True, llm_int8_threshold=settings["threshold"], **common)
    return BitsAndBytesConfig(
        load_in_4bit=True,
        bnb_4bit_quant_type=settings["quant_type"],
        bnb_4bit_use_double_quant=settings["double_quant"],
        bnb_4bit_compute_dtype=getattr(torch, settings["compute_dtype"]),
        **common,
    )


def _checked(name: str, value: Any) -> Any:
    """One setting, or ConfigurationError."""
    argument = f"quantization.{name}"
    if name in ("double_quant", "cpu_offload"):
        return as_flag(argument, value)
    if name == "threshold":
        if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
            raise ConfigurationError(f"{argument}={value!r} must be a number that is not negative.")
        return float(value)
    if name == "skip_modules":
        modules = value.split(",") if isinstance(value, str) else value
        if not isinstance(modules, (list, tuple)) or not all(isinstance(each, str) for each in modules):
            raise ConfigurationError(f"{argument}={value!r} must be a list of module names.")
        return [module.strip() for module in modules]
    known = {"nf4": "nf4", "fp4": "fp4"} if name == "quant_type" else DTYPES
    if value not in known:
        raise ConfigurationError(f"{argument}={value!r} must be one of {', '.join(known)}.")
    return known[value]
