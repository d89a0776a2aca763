"""Translates lm_eval's model classes and arguments to models of ours.

What has no counterpart runs through the class of the installed package (`lm_eval/CLASS`), or is
refused by name.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright import ModelSpec
from evalwright.compat.lm_eval.api.registry import MODEL_REGISTRY
from evalwright.compat.lm_eval.harness.flags import MODELS, names_a_file, renamed_model
from evalwright.compat.lm_eval.harness.plugins import (
    class_in_file,
    is_registered_with_package,
)
from evalwright.compat.lm_eval.models.clients import (
    ARGUMENTS,
    CHAT,
    CLIENTS,
    COMPLETIONS,
    ENDPOINTS,
    REASONING_MARKS,
    TOKENIZING,
)
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.compat.lm_eval.tasks.options import installed_tasks
from evalwright.extend import ConfigurationError, UnknownName

CLASSES: list[str] = TABLES["classes"]
_NEEDLESS: dict[str, str] = TABLES["needless"]
_TRANSFORMERS = frozenset(("hf", "hf-auto", "huggingface"))
PARALLELIZE_FLAG = "--model_args parallelize=True"
COPIES_FLAG = "--model_args devices=all"
_SERVE = (
    "for several copies or tensor parallelism serve the model (vllm serve NAME"
    " --tensor-parallel-size N --data-parallel-size M) and evaluate it with --model"
    " local-completions --model_args"
    " model=NAME,base_url=http://localhost:8000/v1/completions"
)
_MULTI_PROCESS_ARGUMENTS = (
    "tp_plan",
    "tensor_parallel_size",
    "data_parallel_size",
    "pipeline_parallel_size",
)
_OWN_CLASS = (
    "A class of your own: name the file that registers it with --plugin FILE, or write"
    " --model FILE.py:Class."
)
_REPLICA_ARGUMENTS = {
    name: name for name in ("replicas", "devices", "devices_per_replica")
}
"""Arguments of ours that its classes lack: for what it does with `accelerate launch`."""
_VLLM_CLASS_ONLY = frozenset(("lora_local_path", "think_end_token", "truncate_side"))
"""Arguments of lm_eval's vLLM class that vLLM itself does not have, and that ours lacks."""
_SERVERS = ("vllm-vlm", "sglang", "trtllm")
_PLACEMENT_ARGUMENTS = (
    "parallelize",
    "device_map",
    "device_map_option",
    "max_memory_per_gpu",
    "max_cpu_memory",
    "offload_folder",
)


@dataclass(frozen=True, slots=True)
class Backend:
    """A model of ours, with notes on how arguments were translated.

    plugins: the Python files that define its class.
    """

    spec: ModelSpec
    notes: list[str] = field(default_factory=list)
    plugins: tuple[str, ...] = ()


def build_backend(model: str, arguments: Mapping[str, Any]) -> Backend:
    """Translate a model class and its arguments.

    Raises ConfigurationError with the reason if it is not supported.
    """
    remaining = dict(arguments)  # what becomes an argument of ours is taken out
    backend: Backend | None = None
    if names_a_file(model):
        class_name, file = class_in_file(model)
        return Backend(ModelSpec(f"lm/{class_name}", dict(arguments)), plugins=(file,))
    if model in MODEL_REGISTRY:
        backend = Backend(ModelSpec(f"lm/{model}", dict(arguments)))
    elif model in _TRANSFORMERS:
        backend = _transformers_backend(remaining)
    elif model in CLIENTS:
        backend = _client_backend(model, remaining)
    elif model == "vllm":
        backend = _vllm_backend(remaining)
    elif model in ("gguf", "ggml"):
        backend = _llama_server_backend(model, remaining)
    elif model == "dummy" and not installed_tasks():
        backend = Backend(
            ModelSpec("scripted/hash"),
            ["`dummy` is scripted/hash: answers by the text's hash."],
        )
    return backend or _package_backend(model, arguments, remaining)


def _transformers_backend(remaining: dict[str, Any]) -> Backend | None:
    if not (name := remaining.pop("pretrained", None)):
        raise ConfigurationError(
            "--model hf needs --model_args pretrained=NAME: a folder, or a model of the"
            " Hugging Face Hub."
        )
    native: dict[str, Any] = {}
    notes: list[str] = []
    size = remaining.pop("batch_size", None)
    max_batch_size = remaining.pop("max_batch_size", None)
    if str(size).startswith("auto"):
        native["batch_size"] = max_batch_size or "auto"
        with_most = f", with at most {max_batch_size} rows." if max_batch_size else "."
        notes.append(f"batch_size=auto goes by free memory{with_most}")
    elif size is not None:
        native["batch_size"] = int(size)
    elif max_batch_size is not None:
        notes.append(
            "max_batch_size is for batch_size=auto alone, and has no effect here."
        )
    for key in _MULTI_PROCESS_ARGUMENTS:
        if remaining.pop(key, None) not in (None, False, 0, 1):
            alternative = (
                "devices=all has a copy on each device, devices=all,devices_per_replica=N"
                " one on every N devices, and parallelize=True spreads one over all;"
                f" {_SERVE}"
            )
            raise ConfigurationError(
                f"--model_args {key}=... of --model hf is not supported: {alternative}."
            )
    _move_arguments(remaining, _REPLICA_ARGUMENTS, native)
    native |= _placement(remaining, notes)
    if bits := [n for n in (8, 4) if remaining.pop(f"load_in_{n}bit", False)]:
        native["quantization"] = f"bitsandbytes-{bits[0]}bit"
    if (add_bos := remaining.pop("add_bos_token", None)) is not None:
        native["add_bos" if add_bos else "add_special_tokens"] = bool(add_bos)
    if remaining.get("revision") == "main":
        remaining.pop("revision")  # the default; a folder has none
    _move_arguments(remaining, TABLES["same"], native)
    needless = ["logits_cache", "low_cpu_mem_usage"]
    if remaining.get("backend") in ("default", "causal", "seq2seq"):
        needless.append("backend")
    _drop_needless(remaining, needless, notes)
    device = str(native.get("device"))
    if (
        device.startswith("cuda:")
        and device[5:].isdecimal()
        and int(device[5:]) >= (n_devices := _devices())
    ):
        fallback = "another GPU" if n_devices else "the CPU"
        notes.append(
            f"{device} is not here: the model runs on {fallback}, as it does there."
        )
        device = "cuda"
    if device == "cuda":
        native["device"] = "auto"
    return None if remaining else Backend(ModelSpec(f"hf/{name}", native), notes)


def _vllm_backend(remaining: dict[str, Any]) -> Backend | None:
    """A model in vLLM in this process; None if an argument exists only in lm_eval's class."""
    if not (name := remaining.pop("pretrained", None)):
        raise ConfigurationError(
            "--model vllm needs --model_args pretrained=NAME: a folder, or a model of"
            " the hub."
        )
    native: dict[str, Any] = {}
    notes: list[str] = []
    batching = [
        key
        for key in ("batch_size", "max_batch_size", "device")
        if remaining.pop(key, None) is not None
    ]
    notes += [
        f"{key} is not needed: vLLM makes its own batches, on the GPUs that it finds."
        for key in batching
    ]
    _move_arguments(remaining, _REPLICA_ARGUMENTS, native)
    copies = remaining.pop("data_parallel_size", None)
    if copies not in (None, 1):
        native["replicas"] = int(copies)
    add_bos = remaining.pop("add_bos_token", None)
    if add_bos is not None:
        native["add_bos" if add_bos else "add_special_tokens"] = bool(add_bos)
    if remaining.get("revision") == "main":
        remaining.pop("revision")
    _move_arguments(remaining, TABLES["vllm"], native)
    if _VLLM_CLASS_ONLY & remaining.keys():
        return None
    if remaining:
        native["engine"] = {key: remaining.pop(key) for key in list(remaining)}
    return Backend(ModelSpec(f"vllm-local/{name}", native), notes)


def _llama_server_backend(model: str, remaining: dict[str, Any]) -> Backend | None:
    """A server of GGUF files: llama.cpp's own, or llama-cpp-python's."""
    address = remaining.pop("base_url", None)
    if not address:
        raise ConfigurationError(
            f"--model {model} needs --model_args base_url=http://HOST:PORT, where a"
            " server answers (llama-server -m FILE.gguf). A file is opened in this"
            " process by --model hf --model_args"
            " pretrained=FOLDER,gguf_file=FILE.gguf."
        )
    url = str(address).rstrip("/").removesuffix("/v1")
    arguments: dict[str, Any] = {"base_url": f"{url}/v1", "interface": "completions"}
    notes: list[str] = []
    _move_arguments(remaining, {"max_length": "context_length"}, arguments)
    remaining.pop("pretrained", None)
    _drop_needless(remaining, _NEEDLESS, notes)
    return None if remaining else Backend(ModelSpec("llamacpp/gguf", arguments), notes)


def _move_arguments(
    remaining: dict[str, Any], names: Mapping[str, str], native: dict[str, Any]
) -> None:
    """Move arguments to `native` under our names; None counts as not given."""
    moved = {key: remaining.pop(key) for key in list(remaining) if key in names}
    native |= {names[key]: value for key, value in moved.items() if value is not None}


def _drop_needless(
    remaining: dict[str, Any], names: Collection[str], notes: list[str]
) -> None:
    for key in [key for key in remaining if key in names]:
        remaining.pop(key)
        notes.append(f"{key} is not needed: {_NEEDLESS.get(key, 'messages are sent')}.")


def _placement(remaining: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Translate the arguments that spread layers over devices, and remove them from `remaining`."""
    placement = {
        key: value
        for key in _PLACEMENT_ARGUMENTS
        if (value := remaining.pop(key, None)) is not None
    }
    spread = placement.pop("parallelize", False)
    named = [
        placement.pop(key)
        for key in ("device_map", "device_map_option")
        if key in placement
    ]
    if not spread and not named:
        notes += [
            f"{key} has no effect without parallelize=True: the model is on one device."
            for key in placement
        ]
        return {}
    native: dict[str, Any] = {"device_map": named[0] if named else "auto"}
    if spread:
        notes.append(
            f"parallelize=True is device_map={native['device_map']}: the layers are spread"
            " over the devices."
        )
    if remaining.pop("device", None) is not None:
        notes.append("device has no effect: the layers are spread over the devices.")
    memory: dict[str, Any] = {}
    if "max_memory_per_gpu" in placement:
        memory = dict.fromkeys(
            map(str, range(_devices())), placement["max_memory_per_gpu"]
        )
        if not memory:
            notes.append("max_memory_per_gpu has no effect: there is no GPU.")
    if "max_cpu_memory" in placement:
        memory["cpu"] = placement["max_cpu_memory"]
    if memory:
        native["max_memory"] = memory
    if "offload_folder" in placement:
        native["offload_folder"] = placement["offload_folder"]
    return native


def _devices() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


def _client_backend(client: str, remaining: dict[str, Any]) -> Backend | None:
    """A server's model, called as lm_eval's client calls it; None if ours lacks an argument."""
    names = [remaining.pop(key) for key in ("model", "pretrained") if key in remaining]
    if not names:
        raise ConfigurationError("The model needs --model_args model=NAME.")
    if client.startswith("local-") and not remaining.get("base_url"):
        ending = ENDPOINTS["chat" if client in CHAT else "completions"]
        raise ConfigurationError(
            f"--model {client} needs --model_args base_url=http://HOST:PORT/v1{ending}."
        )
    notes: list[str] = []
    _drop_needless(remaining, _NEEDLESS, notes)
    if client not in COMPLETIONS:
        _drop_needless(remaining, TOKENIZING, notes)
    native = {key: remaining.pop(key) for key in list(remaining) if key in ARGUMENTS}
    if client == "openai-chat-completions" and any(
        mark in str(names[0]) for mark in REASONING_MARKS
    ):
        notes.append(
            f"As there, {names[0]} is sent temperature 1 and no stop strings, because"
            f" its name has one of {', '.join(REASONING_MARKS)}."
        )
    return (
        None
        if remaining
        else Backend(ModelSpec(f"lm/{client}/{names[0]}", native), notes)
    )


def _package_backend(
    model: str, arguments: Mapping[str, Any], remaining: Mapping[str, Any]
) -> Backend:
    """A model class of the installed package. remaining: the arguments that ours lack."""
    if model not in CLASSES:
        if is_registered_with_package(model):
            return Backend(ModelSpec(f"lm_eval/{model}", dict(arguments)))
        hint = renamed_model(model) or f"Known: {', '.join(CLASSES)}. {_OWN_CLASS}"
        raise UnknownName(
            "model class of lm_eval", model, () if model in MODELS else CLASSES, hint
        )
    if installed_tasks():
        note = (
            f"'{model}' runs as the class of the installed lm_eval (lm_eval/{model})."
        )
        return Backend(ModelSpec(f"lm_eval/{model}", dict(arguments)), [note])
    if model in _TRANSFORMERS:
        note = (
            "Some of its arguments are not those of hf/...: the model runs batch by"
            " batch (lm/hf), which is slower."
        )
        return Backend(ModelSpec(f"lm/{model}", dict(arguments)), [note])
    lacking = (
        f" with {', '.join(sorted(remaining))}"
        if remaining and remaining != arguments
        else ""
    )
    served = f" Or: {_SERVE}." if model in _SERVERS else ""
    raise ConfigurationError(
        f"--model {model}{lacking} needs the class of lm_eval itself: pip install"
        " 'lm_eval==0.4.13', and the same command runs it. Without it: hf,"
        " openai-completions, openai-chat-completions, local-completions,"
        f" local-chat-completions, anthropic-chat.{served}"
    )
