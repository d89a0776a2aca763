"""What answers behind a class of lm-evaluation-harness: known for its transformers backend, unknown for every other class.

A class may load whatever it likes from wherever it likes, so its own source says nothing of what answers. `lm_eval/hf` loads what
its arguments name: these folders and repositories are named by content or commit, as for `hf/...`.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from evalwright.core.errors import ConfigurationError, UsageError
from evalwright.models.local.files import content_hash, file_hash
from evalwright.models.local.hf.source import ADAPTER_CONFIG, open_repository

TRANSFORMERS = ("lm_eval.models.huggingface.HFLM", "evalwright.compat.lm_eval.models.huggingface.HFLM")

_SOURCES = {
    "pretrained": "config.json",
    "tokenizer": "tokenizer_config.json",
    "peft": ADAPTER_CONFIG,
    "delta": "config.json",
}
"""Arguments that name a folder or a repository of the hub, and a file that each has."""

IDLE = frozenset(
    (
        "batch_size", "cache_dir", "device", "device_map", "force_download", "local_files_only", "logits_cache",
        "low_cpu_mem_usage", "max_batch_size", "max_cpu_memory", "max_memory", "max_memory_per_gpu", "offload_folder",
        "offload_state_dict", "parallelize",
    )
)  # fmt: skip
"""Its arguments that change no answer, up to rounding."""

PASSED_ON = (
    "attn_implementation", "cache_dir", "code_revision", "device_map", "dtype", "experts_implementation", "force_download",
    "ignore_mismatched_sizes", "load_in_4bit", "load_in_8bit", "local_files_only", "low_cpu_mem_usage", "max_memory",
    "offload_state_dict", "proxies", "quantization_config", "rope_scaling", "rope_theta", "token", "torch_dtype", "use_cache",
    "use_safetensors", "variant", "bnb_4bit_compute_dtype", "bnb_4bit_quant_storage", "bnb_4bit_quant_type",
    "bnb_4bit_use_double_quant", "think_start_token",
)  # fmt: skip
"""Arguments that it hands on to transformers, besides those that it names itself."""


def is_transformers(made: type) -> bool:
    """Whether a class is that backend itself, theirs or ours; one that derives from it may do anything else."""
    return f"{made.__module__}.{made.__qualname__}" in TRANSFORMERS


def content_of(arguments: Mapping[str, Any]) -> dict[str, Any] | None:
    """What the arguments of the transformers backend name, by content or commit; None where that cannot be known."""
    if arguments.get("trust_remote_code"):
        return None
    revision = arguments.get("revision") or "main"
    try:
        found: dict[str, Any] = {}
        for name, value in arguments.items():
            if name in IDLE or value is None:
                continue
            if not isinstance(value, str):
                if name in _SOURCES or not isinstance(value, bool | int | float | list | Mapping):
                    return None
            elif (path := Path(value).expanduser()).exists():
                within = (
                    [arguments.get("subfolder"), arguments.get("gguf_file")] if name == "pretrained" else []
                )
                found[name] = [
                    _hash(path / str(one))
                    for one in ("", *filter(None, within))
                    if (path / str(one)).exists()
                ]
            elif name in _SOURCES:
                found[name] = open_repository(value, str(revision), _SOURCES[name]).commit
        return found
    except (UsageError, OSError):
        # It is not found this way, or only with a login; the class may still find it.
        return None


def _hash(path: Path) -> str:
    return file_hash(path) if path.is_file() else content_hash(path)


def check_batch_size(name: str, value: Any) -> None:
    """Raise ConfigurationError for what is no size of a batch: a number, "auto" or "auto:N"."""
    head, colon, number = str(value).partition(":")
    sizes = [number] if head == "auto" and colon else [] if head == "auto" else [str(value)]
    if isinstance(value, bool) or not all(size.isdecimal() and int(size) > 0 for size in sizes):
        raise ConfigurationError(
            f"batch_size={value!r} of '{name}' must be a whole number of at least 1, 'auto', or 'auto:N'."
        )
