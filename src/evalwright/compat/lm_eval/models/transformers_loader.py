"""Loads a transformers model: configuration, tokenizer, weights and devices."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any, Literal

import torch
import transformers
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES,
)

from evalwright.compat.lm_eval.api.model import TemplateLM
from evalwright.compat.lm_eval.models.utils import (
    DEFAULT_MAX_LENGTH,
    configure_pad_token,
    resolve_max_length,
)
from evalwright.compat.lm_eval.models.utils_hf import get_dtype
from evalwright.compat.lm_eval.tables import TABLES
from evalwright.extend import ConfigurationError, MissingExtra, check_one_process


class TransformersLoader(TemplateLM):
    """Loads a transformers model: `HFLM` without its computations."""

    AUTO_MODEL_CLASS: Any = None
    _DEFAULT_MAX_LENGTH = DEFAULT_MAX_LENGTH

    # What holds where a class does not run this one's __init__.
    _config: Any = None
    _model: Any = None
    _max_length: int | None = None
    add_bos_token: bool | None = None
    batch_size_per_gpu: Any = 1
    batch_schedule: float = 1
    max_batch_size = 64
    chat_template_args: Mapping[str, Any] = {}
    custom_prefix_token_id: int | None = None
    delta: str | None = None
    enable_thinking: bool | None = None
    logits_cache: bool | None = True
    mixed_precision_dtype: Any = None
    peft: str | None = None
    pretrained: Any = ""
    revision: str | None = "main"
    softmax_dtype: Any = None
    think_end_token: str | int | None = None
    truncation: bool | None = False

    def __init__(
        self,
        pretrained: Any,
        backend: Literal["default", "causal", "seq2seq"] = "default",
        revision: str | None = "main",
        subfolder: str = "",
        tokenizer: Any = None,
        truncation: bool | None = False,
        logits_cache: bool = True,
        max_length: int | None = None,
        device: str | None = "cuda",
        dtype: Any = "auto",
        softmax_dtype: Any = None,
        mixed_precision_dtype: Any = None,
        batch_size: int | str | None = 1,
        max_batch_size: int | None = 64,
        trust_remote_code: bool | None = False,
        use_fast_tokenizer: bool | None = True,
        add_bos_token: bool | None = None,
        prefix_token_id: int | None = None,
        parallelize: bool | None = False,
        max_memory_per_gpu: int | str | None = None,
        max_cpu_memory: int | str | None = None,
        offload_folder: str | os.PathLike[str] | None = "./offload",
        tp_plan: Any = None,
        peft: str | None = None,
        delta: str | None = None,
        autogptq: bool | str | None = False,
        gptqmodel: bool | None = False,
        gguf_file: str | None = None,
        think_end_token: str | int | None = None,
        enable_thinking: bool | None = None,
        chat_template_args: Mapping[str, Any] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        check_one_process("parallelize=True", copies="devices=all")
        refused = {
            "tp_plan": tp_plan,
            "delta": delta,
            "autogptq": autogptq,
            "gptqmodel": gptqmodel,
        }
        for name, value in refused.items():
            if value:
                raise ConfigurationError(
                    f"{name}={value!r} is not supported: {TABLES['instead'][name]}."
                )
        if enable_thinking and think_end_token is None:
            raise ConfigurationError(
                "enable_thinking=True needs think_end_token: the text that ends"
                " reasoning."
            )
        named = isinstance(pretrained, str)
        files: dict[str, Any] = {
            "revision": revision,
            "trust_remote_code": trust_remote_code,
            "gguf_file": gguf_file,
        }
        files["subfolder"] = subfolder
        if named:
            self._device = _device(device)
            self._get_config(pretrained, **files)
        else:
            self._model = pretrained
            self._device = pretrained.device
            self._config = pretrained.config
        self._get_backend(
            self.config, backend=backend, trust_remote_code=trust_remote_code
        )
        tokenizer_options: dict[str, Any] = {
            "use_fast_tokenizer": use_fast_tokenizer,
            "add_bos_token": add_bos_token,
        }
        self._create_tokenizer(pretrained, tokenizer, **files, **tokenizer_options)
        if named:
            self._create_model(
                pretrained=pretrained,
                dtype=dtype,
                parallelize=parallelize,
                gpus=torch.cuda.device_count(),
                max_memory_per_gpu=max_memory_per_gpu,
                max_cpu_memory=max_cpu_memory,
                offload_folder=None if offload_folder is None else str(offload_folder),
                peft=peft,
                **files,
                **kwargs,
            )
        if isinstance(self.model, torch.nn.Module):
            self.model.eval()
        self.tokenizer = configure_pad_token(self.tokenizer, model_config=self.config)
        self.vocab_size = self.tokenizer.vocab_size
        self.add_bos_token = add_bos_token
        self.custom_prefix_token_id = prefix_token_id
        self.chat_template_args = dict(chat_template_args or {})
        if enable_thinking is not None:
            self.chat_template_args["enable_thinking"] = enable_thinking
        self.enable_thinking = enable_thinking
        number = think_end_token is not None and str(think_end_token).isdecimal()
        self.think_end_token = int(think_end_token or 0) if number else think_end_token
        self.truncation = truncation
        self.logits_cache = logits_cache
        self._max_length = max_length
        self.pretrained = pretrained
        self.revision = revision
        self.peft = peft
        self.softmax_dtype = get_dtype(softmax_dtype)
        self.mixed_precision_dtype = get_dtype(mixed_precision_dtype)
        size, _, schedule = str(batch_size).partition(":")
        self.batch_size_per_gpu = size if size == "auto" else int(size)
        self.batch_schedule = float(schedule or 1)
        self.max_batch_size = int(max_batch_size or 64)
        self.batch_sizes: dict[int, int] = {}

    # Opening

    def _get_config(
        self,
        pretrained: str,
        *,
        revision: str | None = "main",
        gguf_file: str | None = None,
        **how: Any,
    ) -> None:
        """Load the configuration into `_config`."""
        gguf_option = {"gguf_file": gguf_file} if gguf_file else {}
        config = transformers.AutoConfig.from_pretrained(
            pretrained, revision=str(revision), **how, **gguf_option
        )
        self._config = config

    def _get_backend(self, config: Any, backend: str = "default", **how: Any) -> None:
        """Set `backend`, and `AUTO_MODEL_CLASS` if the class has none.

        Model types that are both causal and seq2seq count as seq2seq.
        """
        assert backend in (
            "default",
            "causal",
            "seq2seq",
        ), f"backend={backend!r} is not known."
        two_sided = (
            getattr(config, "model_type", None)
            in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        )
        if backend == "default":
            backend = "seq2seq" if two_sided else "causal"
        self.backend = backend
        if self.AUTO_MODEL_CLASS is None:
            head = "CausalLM" if self.backend == "causal" else "Seq2SeqLM"
            self.AUTO_MODEL_CLASS = getattr(transformers, f"AutoModelFor{head}")

    def _create_tokenizer(
        self,
        pretrained: Any,
        tokenizer: Any,
        *,
        use_fast_tokenizer: bool | None = True,
        gguf_file: str | None = None,
        add_bos_token: bool | None = None,
        subfolder: str | None = "",
        **how: Any,
    ) -> None:
        """Load `tokenizer`. how: revision and trust_remote_code."""
        if tokenizer and not isinstance(tokenizer, str):
            self.tokenizer = tokenizer
            return
        how |= (
            {"gguf_file": gguf_file}
            if gguf_file and not tokenizer
            else {"use_fast": use_fast_tokenizer}
        )
        if add_bos_token is not None:
            how["add_bos_token"] = add_bos_token
        if subfolder:
            how["subfolder"] = subfolder
        name = tokenizer or (
            pretrained if isinstance(pretrained, str) else self.model.name_or_path
        )
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(name, **how)

    def _create_model(
        self,
        pretrained: str,
        *,
        revision: str | None = "main",
        dtype: Any = "auto",
        parallelize: bool | None = False,
        gpus: int | None = None,
        max_memory_per_gpu: int | str | None = None,
        max_cpu_memory: int | str | None = None,
        offload_folder: str | None = "./offload",
        peft: str | None = None,
        **how: Any,
    ) -> None:
        """Load `_model` onto its device, with its adapter. how: passed to `from_pretrained`."""
        for name in ("gguf_file", "quantization_config"):
            if how.get(name) in (None, ""):
                how.pop(name, None)
        how |= self._get_accelerate_args(
            parallelize=parallelize,
            device_map=how.get("device_map"),
            max_memory_per_gpu=max_memory_per_gpu,
            max_cpu_memory=max_cpu_memory,
            offload_folder=offload_folder,
            gpus=gpus,
        )
        opened = self.AUTO_MODEL_CLASS.from_pretrained
        self._model = opened(
            pretrained, revision=revision, dtype=get_dtype(dtype), **how
        )
        if "device_map" not in how and not getattr(self._model, "is_quantized", False):
            self._model.to(self.device)
        if peft:
            try:
                from peft import PeftModel
            except ImportError:
                raise MissingExtra("A model with an adapter", "peft", "peft") from None
            words = len(self.tokenizer)
            if self._model.get_input_embeddings().weight.shape[0] < words:
                self._model.resize_token_embeddings(words)
            self._model = PeftModel.from_pretrained(
                self._model, peft, revision=revision
            )

    def _get_accelerate_args(
        self,
        parallelize: bool | None = None,
        device_map: Any = "auto",
        max_memory_per_gpu: int | str | None = None,
        max_cpu_memory: int | str | None = None,
        offload_folder: str | None = "./offload",
        gpus: int | None = None,
    ) -> dict[str, Any]:
        """Arguments of `from_pretrained` that place the layers; none for a single device."""
        if not parallelize:
            return {} if device_map is None else {"device_map": device_map}
        memory: dict[Any, Any] = {}
        if max_memory_per_gpu is not None:
            memory = dict.fromkeys(range(gpus or 0), max_memory_per_gpu)
        if max_cpu_memory is not None:
            memory["cpu"] = max_cpu_memory
        return {
            "device_map": device_map or "auto",
            "offload_folder": offload_folder,
            **({"max_memory": memory} if memory else {}),
        }

    # What it is

    @property
    def config(self) -> Any:
        """The model's configuration."""
        return self._config if self._config is not None else self.model.config

    @property
    def model(self) -> Any:
        """The model of transformers."""
        return self._model

    @property
    def eot_token_id(self) -> Any:
        """The token that ends a text."""
        return self.tokenizer.eos_token_id

    @property
    def prefix_token_id(self) -> Any:
        """The token from which a text's first token is predicted: as set, else BOS, else EOS."""
        if self.custom_prefix_token_id is not None:
            return self.custom_prefix_token_id
        first = self.tokenizer.bos_token_id
        return self.tokenizer.eos_token_id if first is None else first

    @property
    def max_length(self) -> int:
        """The context length in tokens."""
        return self._max_length or resolve_max_length(
            self.config, self.tokenizer, default=self._DEFAULT_MAX_LENGTH
        )

    @property
    def max_gen_toks(self) -> int:
        """Default token limit of an answer."""
        return 256

    @property
    def batch_size(self) -> Any:
        """Rows of a batch, or "auto"."""
        return self.batch_size_per_gpu

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer's name, made safe for file names."""
        return str(self.tokenizer.name_or_path).replace("/", "__")

    def get_model_info(self) -> dict[str, Any]:
        """Size, type and revision."""
        count = getattr(self._model, "num_parameters", lambda: -1)
        return {
            "model_num_parameters": count(),
            "model_dtype": getattr(self._model, "dtype", ""),
            "model_revision": self.revision,
            "model_sha": getattr(self.config, "_commit_hash", None) or "",
        }


def _device(name: str | None) -> Any:
    """Choose the named device; if it is missing or unset, the first GPU, else the CPU."""
    if (
        name
        and name != "auto"
        and (not name.startswith("cuda") or torch.cuda.is_available())
    ):
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
