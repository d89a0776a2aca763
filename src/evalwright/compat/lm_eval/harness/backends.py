"""A model of lm_eval by class and arguments as a model of ours, with what each argument became.

What has no counterpart runs through the class of the installed package (`lm_eval/CLASS`), or is refused by name.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from evalwright.compat.lm_eval.api.registry import MODEL_REGISTRY
from evalwright.compat.lm_eval.harness.renamed import MODELS, renamed_model
from evalwright.compat.lm_eval.tasks.options import installed_tasks
from evalwright.core.errors import ConfigurationError, UnknownName
from evalwright.evaluation.configuration import ModelSpec

CLASSES = (
    "anthropic-chat", "anthropic-chat-completions", "anthropic-completions", "dummy", "ggml", "gguf", "habana", "hf",
    "hf-audiolm-qwen", "hf-auto", "hf-mistral3", "hf-multimodal", "huggingface", "ipex", "litellm", "litellm-chat",
    "litellm-chat-completions", "local-chat-completions", "local-completions", "mamba_ssm", "megatron_lm", "nemo_lm", "neuronx",
    "onnxruntime", "onnxruntime-genai", "openai-chat-completions", "openai-completions", "openvino", "sglang", "sglang-generate",
    "steered", "textsynth", "trtllm", "vllm", "vllm-vlm", "watsonx_llm", "winml",
)  # fmt: skip
_TRANSFORMERS = frozenset(("hf", "hf-auto", "huggingface"))
_OPENAI = {
    "openai-completions": ("openai", "completions"),
    "openai-chat-completions": ("openai", "chat"),
    "local-completions": ("openai", "completions"),
    "local-chat-completions": ("openai", "chat"),
}
_ANTHROPIC = frozenset(("anthropic-chat", "anthropic-chat-completions"))

_SAME = {
    "dtype": "dtype", "device": "device", "revision": "revision", "subfolder": "subfolder", "tokenizer": "tokenizer",
    "trust_remote_code": "trust_remote_code", "max_length": "max_length", "peft": "peft",
    "prefix_token_id": "prefix_token", "attn_implementation": "attn_implementation", "enable_thinking": "enable_thinking",
    "chat_template_args": "chat_template_args", "use_fast_tokenizer": "use_fast_tokenizer", "max_gen_toks": "max_tokens",
    "torch_dtype": "dtype",
}  # fmt: skip
"""Arguments of its transformers class that ours has under these names."""
_SERVED = {
    "max_gen_toks": "max_tokens", "num_concurrent": "max_concurrency", "max_retries": "max_attempts", "timeout": "timeout",
    "max_length": "context_length", "temperature": "temperature",
}  # fmt: skip
"""Arguments of its classes of servers that ours have under these names."""
_NEEDLESS = {
    "logits_cache": "shared contexts are computed once in any case",
    "low_cpu_mem_usage": "weights are read in place in any case",
    "backend": "the kind of model is read from its configuration",
    "batch_size": "requests are sent one by one, as many at a time as the server takes",
    "max_batch_size": "requests are sent one by one",
    "tokenized_requests": "texts are sent",
    "tokenizer_backend": "texts are sent",
    "tokenizer": "texts are sent",
    "eos_string": "the server ends the answer",
}


SPREAD = "--model_args parallelize=True"
_SEVERAL = (
    "one process computes here. parallelize=True spreads the layers over all devices; for several copies or tensor parallelism serve "
    "the model (vllm serve NAME --tensor-parallel-size N --data-parallel-size M) and evaluate it with --model local-completions "
    "--model_args model=NAME,base_url=http://localhost:8000/v1/completions"
)
_REFUSED = dict.fromkeys(
    ("tp_plan", "tensor_parallel_size", "data_parallel_size", "pipeline_parallel_size"), _SEVERAL
)
_SERVERS = ("vllm", "vllm-vlm", "sglang", "trtllm")


@dataclass(frozen=True, slots=True)
class Backend:
    """A model of ours, and sentences on what became of the arguments."""

    spec: ModelSpec
    notes: list[str] = field(default_factory=list)


def backend_of(model: str, arguments: Mapping[str, Any]) -> Backend:
    """The model of a class and its arguments. Raises ConfigurationError with the reason where it cannot be honoured."""
    left = dict(arguments)  # what becomes an argument of ours is taken out
    if model in MODEL_REGISTRY:
        found: Backend | None = Backend(ModelSpec(f"lm/{model}", dict(arguments)))
    elif model in _TRANSFORMERS:
        found = _transformers(left)
    elif model in _OPENAI:
        found = _openai(model, left)
    elif model in _ANTHROPIC:
        found = _named("anthropic", left, "model")
    elif model == "dummy" and not _installed():
        found = Backend(ModelSpec("scripted/hash"), ["`dummy` is scripted/hash: answers by the text's hash."])
    else:
        found = None
    return found or _theirs(model, arguments, left)


def _transformers(given: dict[str, Any]) -> Backend | None:
    name = given.pop("pretrained", None)
    if not name:
        raise ConfigurationError(
            "--model hf needs --model_args pretrained=NAME: a folder, or a model of the Hugging Face Hub."
        )
    out: dict[str, Any] = {}
    notes: list[str] = []
    size, most = given.pop("batch_size", None), given.pop("max_batch_size", None)
    if size is not None:
        out["batch_size"] = (most or "auto") if str(size).startswith("auto") else int(size)
        if str(size).startswith("auto"):
            notes.append(
                "batch_size=auto goes by free memory" + (f", with at most {most} rows." if most else ".")
            )
    elif most is not None:
        notes.append("max_batch_size is for batch_size=auto alone, and has no effect here.")
    for key, instead in _REFUSED.items():
        if given.pop(key, None) not in (None, False, 0, 1):
            raise ConfigurationError(f"--model_args {key}=... of --model hf is not supported: {instead}.")
    out |= _placement(given, notes)
    bits = [n for n in (8, 4) if given.pop(f"load_in_{n}bit", False)]
    if bits:
        out["quantization"] = f"bitsandbytes-{bits[0]}bit"
    if (begins := given.pop("add_bos_token", None)) is not None:
        out["add_bos" if begins else "add_special_tokens"] = bool(begins)
    if given.get("revision") == "main":
        given.pop("revision")  # the default; a folder has none
    for key in list(given):
        if key in _SAME:
            value = given.pop(key)
            if value is not None:
                out[_SAME[key]] = value
        elif key in ("logits_cache", "low_cpu_mem_usage") or (
            key == "backend" and given[key] in ("default", "causal", "seq2seq")
        ):
            given.pop(key)
            notes.append(f"{key} is not needed: {_NEEDLESS[key]}.")
    device = str(out.get("device"))
    if device.startswith("cuda:") and device[5:].isdecimal() and int(device[5:]) >= (here := _devices()):
        notes.append(
            f"{device} is not here: the model runs on {'another GPU' if here else 'the CPU'}, as it does there."
        )
        device = "cuda"
    if device == "cuda":
        out["device"] = "auto"
    if given:
        return None
    return Backend(ModelSpec(f"hf/{name}", out), notes)


def _placement(given: dict[str, Any], notes: list[str]) -> dict[str, Any]:
    """Over which devices the layers are spread; takes what says so out of the arguments."""
    wanted = {
        key: value
        for key in ("parallelize", "device_map", "device_map_option", "max_memory_per_gpu", "max_cpu_memory", "offload_folder")
        if (value := given.pop(key, None)) is not None
    }  # fmt: skip
    spread = wanted.pop("parallelize", False)
    named = [wanted.pop(key) for key in ("device_map", "device_map_option") if key in wanted]
    if not spread and not named:
        notes += [
            f"{key} has no effect without parallelize=True: the model is on one device." for key in wanted
        ]
        return {}
    out: dict[str, Any] = {"device_map": named[0] if named else "auto"}
    if spread:
        notes.append(
            f"parallelize=True is device_map={out['device_map']}: the layers are spread over the devices."
        )
    if given.pop("device", None) is not None:
        notes.append("device has no effect: the layers are spread over the devices.")
    memory: dict[str, Any] = {}
    if "max_memory_per_gpu" in wanted:
        memory = dict.fromkeys(map(str, range(_devices())), wanted["max_memory_per_gpu"])
        if not memory:
            notes.append("max_memory_per_gpu has no effect: there is no GPU.")
    if "max_cpu_memory" in wanted:
        memory["cpu"] = wanted["max_cpu_memory"]
    if memory:
        out["max_memory"] = memory
    if "offload_folder" in wanted:
        out["offload_folder"] = wanted["offload_folder"]
    return out


def _devices() -> int:
    try:
        import torch
    except ImportError:
        return 0
    return int(torch.cuda.device_count())


def _openai(model: str, given: dict[str, Any]) -> Backend | None:
    provider, interface = _OPENAI[model]
    address = given.pop("base_url", None)
    if model.startswith("local-") and not address:
        raise ConfigurationError(
            f"--model {model} needs --model_args base_url=http://HOST:PORT/v1/{interface.replace('chat', 'chat/completions')}."
        )
    found = _named(provider, given, "model", "pretrained")
    if found is None:
        return None
    arguments = {**found.spec.arguments, "interface": interface}
    notes = list(found.notes)
    if address:
        ending = "/chat/completions" if interface == "chat" else "/completions"
        arguments["base_url"] = str(address).rstrip("/").removesuffix(ending)
    return Backend(ModelSpec(found.spec.model, arguments), notes)


def _named(provider: str, given: dict[str, Any], *keys: str) -> Backend | None:
    names = [given.pop(key) for key in keys if key in given]
    if not names:
        raise ConfigurationError(f"The model needs --model_args {keys[0]}=NAME.")
    out: dict[str, Any] = {}
    notes: list[str] = []
    for key in list(given):
        if key in _SERVED:
            out[_SERVED[key]] = given.pop(key)
        elif key in _NEEDLESS:
            given.pop(key)
            notes.append(f"{key} is not needed: {_NEEDLESS[key]}.")
    return Backend(ModelSpec(f"{provider}/{names[0]}", out), notes) if not given else None


def _theirs(model: str, arguments: Mapping[str, Any], left: Mapping[str, Any]) -> Backend:
    """The class of the installed package. left: the arguments that ours lack."""
    if model not in CLASSES:
        hint = renamed_model(model) or f"Known: {', '.join(CLASSES)}."
        raise UnknownName("model class of lm_eval", model, () if model in MODELS else CLASSES, hint)
    if not _installed():
        if model in _TRANSFORMERS:
            return Backend(
                ModelSpec(f"lm/{model}", dict(arguments)),
                [
                    "Some of its arguments are not those of hf/...: the model runs batch by batch (lm/hf), which is slower."
                ],
            )
        lacking = f" with {', '.join(sorted(left))}" if left and left != arguments else ""
        served = f" Or: {_SEVERAL.partition('; ')[2]}." if model in _SERVERS else ""
        raise ConfigurationError(
            f"--model {model}{lacking} needs the class of lm_eval itself: "
            "pip install 'lm_eval==0.4.13', and the same command runs it. Without it: hf, openai-completions, "
            f"openai-chat-completions, local-completions, local-chat-completions, anthropic-chat.{served}"
        )
    return Backend(
        ModelSpec(f"lm_eval/{model}", dict(arguments)),
        [f"'{model}' runs as the class of the installed lm_eval (lm_eval/{model})."],
    )


def _installed() -> bool:
    return bool(installed_tasks())
