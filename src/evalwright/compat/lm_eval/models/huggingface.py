"""`HFLM`: a model of transformers, to be derived from. Each step is a method: open, tokenise, call, generate.

For a model as it is, `hf/...` is many times faster: it computes shared contexts once. This class computes whole batches, so that what a
class of it changes in between counts.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any, Literal

import torch
import torch.nn.functional as F
import transformers
from jinja2 import TemplateError
from transformers.models.auto.modeling_auto import MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES

from evalwright.compat.lm_eval.api.instance import Instance
from evalwright.compat.lm_eval.api.model import TemplateLM
from evalwright.compat.lm_eval.harness.processes import check_one_process
from evalwright.compat.lm_eval.models.utils import (
    DEFAULT_MAX_LENGTH,
    Collator,
    _add_special_kwargs,
    configure_pad_token,
    handle_stop_sequences,
    has_bos_prefix,
    normalize_gen_kwargs,
    postprocess_generated_text,
    resolve_max_length,
)
from evalwright.compat.lm_eval.models.utils_hf import (
    clear_torch_cache,
    get_dtype,
    pad_and_concat,
    stop_sequences_criteria,
)
from evalwright.compat.lm_eval.utils import eval_logger, get_rolling_token_windows, make_disjoint_window
from evalwright.core.errors import ConfigurationError, MissingExtra

Tokens = tuple[Any, list[int], list[int]]
"""(context and continuation), the context's tokens, the continuation's tokens."""

_INSTEAD = {
    "tp_plan": "tensor parallelism needs several processes: parallelize=True spreads the layers over the devices of one",
    "delta": "add the weights beforehand and give the folder as pretrained",
    "autogptq": "transformers reads such weights by itself where gptqmodel is installed: leave it out",
    "gptqmodel": "transformers reads such weights by itself where gptqmodel is installed: leave it out",
}
"""Arguments that are refused, with what to do."""


class HFLM(TemplateLM):
    """A causal or an encoder-decoder model with its tokenizer.

    pretrained: a repository, a folder, or a model that was loaded already (with `tokenizer`, a name or a tokenizer). batch_size: rows
    of a batch, "auto" or "auto:N": as many as fit. max_length: tokens that the model takes in. parallelize: spread the layers over all
    devices, with `max_memory_per_gpu`, `max_cpu_memory` and `offload_folder`. think_end_token: text or token that ends reasoning. Others
    go to `from_pretrained`.

    A class of it may set attributes by itself and call `LM.__init__` alone: `_model`, `tokenizer`, `_device`, `_max_length`.
    """

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
        check_one_process()
        refused = {"tp_plan": tp_plan, "delta": delta, "autogptq": autogptq, "gptqmodel": gptqmodel}
        for name, value in refused.items():
            if value:
                raise ConfigurationError(f"{name}={value!r} is not supported: {_INSTEAD[name]}.")
        if enable_thinking and think_end_token is None:
            raise ConfigurationError(
                "enable_thinking=True needs think_end_token: the text that ends reasoning."
            )
        named = isinstance(pretrained, str)
        gpus = torch.cuda.device_count()
        if named:
            self._device = _device(device)
            self._get_config(
                pretrained,
                revision=str(revision),
                trust_remote_code=bool(trust_remote_code),
                gguf_file=gguf_file,
                subfolder=subfolder,
            )
        else:
            self._model = pretrained
            self._device = pretrained.device
            self._config = pretrained.config
        self._get_backend(self.config, backend=backend, trust_remote_code=trust_remote_code)
        self._create_tokenizer(
            pretrained,
            tokenizer,
            revision=revision,
            trust_remote_code=trust_remote_code,
            use_fast_tokenizer=use_fast_tokenizer,
            gguf_file=gguf_file,
            add_bos_token=add_bos_token,
            subfolder=subfolder,
        )
        if named:
            self._create_model(
                pretrained=pretrained,
                revision=revision,
                dtype=dtype,
                trust_remote_code=trust_remote_code,
                parallelize=parallelize,
                gpus=gpus,
                max_memory_per_gpu=max_memory_per_gpu,
                max_cpu_memory=max_cpu_memory,
                offload_folder=None if offload_folder is None else str(offload_folder),
                peft=peft,
                gguf_file=gguf_file,
                subfolder=subfolder,
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
        ending = str(think_end_token)
        self.think_end_token = int(ending) if ending.isdecimal() else think_end_token
        self.truncation, self.logits_cache = truncation, logits_cache
        self._max_length = max_length
        self.pretrained, self.revision, self.peft = pretrained, revision, peft
        self.softmax_dtype = None if softmax_dtype is None else get_dtype(softmax_dtype)
        self.mixed_precision_dtype = (
            None if mixed_precision_dtype is None else get_dtype(mixed_precision_dtype)
        )
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
        revision: str = "main",
        trust_remote_code: bool = False,
        gguf_file: str | None = None,
        subfolder: str = "",
    ) -> None:
        """Set `_config`."""
        more = {"gguf_file": gguf_file} if gguf_file else {}
        self._config = transformers.AutoConfig.from_pretrained(
            pretrained,
            revision=revision,
            trust_remote_code=trust_remote_code,
            subfolder=subfolder,
            **more,
        )

    def _get_backend(
        self,
        config: Any,
        backend: Literal["default", "causal", "seq2seq"] = "default",
        trust_remote_code: bool | None = False,
    ) -> None:
        """Set `backend`, and `AUTO_MODEL_CLASS` where the class has none. Some kinds of model are of both sorts: these are seq2seq."""
        assert backend in ("default", "causal", "seq2seq"), f"backend={backend!r} is not known."
        two_sided = getattr(config, "model_type", None) in MODEL_FOR_SEQ_TO_SEQ_CAUSAL_LM_MAPPING_NAMES
        self.backend = backend if backend != "default" else "seq2seq" if two_sided else "causal"
        if self.AUTO_MODEL_CLASS is None:
            self.AUTO_MODEL_CLASS = (
                transformers.AutoModelForCausalLM
                if self.backend == "causal"
                else transformers.AutoModelForSeq2SeqLM
            )

    def _create_tokenizer(
        self,
        pretrained: Any,
        tokenizer: Any,
        revision: str | None = "main",
        trust_remote_code: bool | None = False,
        use_fast_tokenizer: bool | None = True,
        gguf_file: str | None = None,
        add_bos_token: bool | None = None,
        subfolder: str | None = "",
    ) -> None:
        """Set `tokenizer`."""
        if tokenizer and not isinstance(tokenizer, str):
            self.tokenizer = tokenizer
            return
        how: dict[str, Any] = {"revision": revision, "trust_remote_code": trust_remote_code}
        if gguf_file and not tokenizer:
            how["gguf_file"] = gguf_file
        else:
            how["use_fast"] = use_fast_tokenizer
        if add_bos_token is not None:
            how["add_bos_token"] = add_bos_token
        if subfolder:
            how["subfolder"] = subfolder
        name = tokenizer or (pretrained if isinstance(pretrained, str) else self.model.name_or_path)
        self.tokenizer = transformers.AutoTokenizer.from_pretrained(name, **how)

    def _create_model(
        self,
        pretrained: str,
        revision: str | None = "main",
        dtype: Any = "auto",
        trust_remote_code: bool | None = False,
        parallelize: bool | None = False,
        gpus: int | None = None,
        max_memory_per_gpu: int | str | None = None,
        max_cpu_memory: int | str | None = None,
        offload_folder: str | None = "./offload",
        peft: str | None = None,
        gguf_file: str | None = None,
        quantization_config: Any = None,
        subfolder: str = "",
        **kwargs: Any,
    ) -> None:
        """Set `_model`, on its device, with its adapter."""
        how = dict(kwargs)
        how.update(
            self._get_accelerate_args(
                parallelize=parallelize,
                device_map=kwargs.get("device_map"),
                max_memory_per_gpu=max_memory_per_gpu,
                max_cpu_memory=max_cpu_memory,
                offload_folder=offload_folder,
                gpus=gpus,
            )
        )
        how |= {"gguf_file": gguf_file} if gguf_file else {}
        how |= {"quantization_config": quantization_config} if quantization_config is not None else {}
        self._model = self.AUTO_MODEL_CLASS.from_pretrained(
            pretrained,
            revision=revision,
            dtype=get_dtype(dtype),
            trust_remote_code=trust_remote_code,
            subfolder=subfolder,
            **how,
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
            self._model = PeftModel.from_pretrained(self._model, peft, revision=revision)

    def _get_accelerate_args(
        self,
        parallelize: bool | None = None,
        device_map: Any = "auto",
        max_memory_per_gpu: int | str | None = None,
        max_cpu_memory: int | str | None = None,
        offload_folder: str | None = "./offload",
        gpus: int | None = None,
    ) -> dict[str, Any]:
        """Where `from_pretrained` puts the layers; nothing where they go to one device."""
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
        """What the first token of a text is predicted from: as wished, BOS, or EOS."""
        if self.custom_prefix_token_id is not None:
            return self.custom_prefix_token_id
        first = self.tokenizer.bos_token_id
        return self.tokenizer.eos_token_id if first is None else first

    @property
    def max_length(self) -> int:
        """Tokens that the model takes in."""
        return self._max_length or resolve_max_length(
            self.config, self.tokenizer, default=self._DEFAULT_MAX_LENGTH
        )

    @property
    def max_gen_toks(self) -> int:
        """Tokens of an answer, where a task does not say."""
        return 256

    @property
    def batch_size(self) -> Any:
        """Rows of a batch, or "auto"."""
        return self.batch_size_per_gpu

    @property
    def tokenizer_name(self) -> str:
        """The tokenizer's name, as part of a file's."""
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

    # Texts and tokens

    def tok_encode(
        self,
        string: str,
        add_special_tokens: bool | None = None,
        left_truncate_len: int | None = None,
        **kwargs: Any,
    ) -> list[int]:
        """The tokens of a text; its special ones as the tokenizer has them, unless the text begins with the prefix token itself."""
        how = _add_special_kwargs(add_special_tokens, self.add_bos_token)
        if add_special_tokens is None and self.prefix_token_id is not None:
            prefix = self.tokenizer.decode(self.prefix_token_id)
            if has_bos_prefix(string, prefix):
                how["add_special_tokens"] = False
        tokens: list[int] = self.tokenizer.encode(string, **how)
        return tokens[-left_truncate_len:] if left_truncate_len else tokens

    def tok_batch_encode(
        self,
        strings: Sequence[str],
        padding_side: str = "left",
        left_truncate_len: int | None = None,
        truncation: bool | None = False,
    ) -> tuple[Any, Any]:
        """(token ids, attention mask) of texts as rows, the longest of them cut at its beginning."""
        how: dict[str, bool] = {}
        if self.backend == "causal":
            how = _add_special_kwargs(None, self.add_bos_token)
            if has_bos_prefix(strings[0], getattr(self.tokenizer, "bos_token", None)):
                how = {"add_special_tokens": False}
        before, self.tokenizer.padding_side = self.tokenizer.padding_side, padding_side
        try:
            found = self.tokenizer(
                list(strings), truncation=truncation, padding="longest", return_tensors="pt", **how
            )
        finally:
            self.tokenizer.padding_side = before
        kept = slice(-left_truncate_len if left_truncate_len else None, None)
        if found["input_ids"].shape[1] > (left_truncate_len or found["input_ids"].shape[1]):
            eval_logger.warning("Contexts are cut to their last %d tokens.", left_truncate_len)
        return found["input_ids"][:, kept], found["attention_mask"][:, kept]

    def tok_decode(self, tokens: Any, skip_special_tokens: bool = True) -> str:
        """The text of tokens."""
        return str(self.tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens))

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> Any:
        """A conversation by the tokenizer's template, without its system messages where the template takes none."""
        how = {
            "tokenize": False,
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": not add_generation_prompt,
            **self.chat_template_args,
        }
        try:
            return self.tokenizer.apply_chat_template(chat_history, **how)
        except TemplateError:
            eval_logger.warning("The chat template failed; it is tried without system messages.")
            rest = [turn for turn in chat_history if turn["role"] != "system"]
            return self.tokenizer.apply_chat_template(rest, **how)

    # The model

    def _autocast(self) -> Any:
        wished = self.mixed_precision_dtype
        return torch.autocast(self.device.type, dtype=wished, enabled=wished is not None)

    def _model_call(self, inps: Any, attn_mask: Any = None, labels: Any = None) -> Any:
        """Logits [rows, tokens, vocabulary] of token ids [rows, tokens]; of an encoder-decoder, those of `labels`."""
        with torch.no_grad(), self._autocast():
            if attn_mask is None and labels is None:
                return self.model(inps).logits
            return self.model(input_ids=inps, attention_mask=attn_mask, labels=labels).logits

    def _model_generate(
        self, context: Any, max_length: int, stop: list[str], **generation_kwargs: Any
    ) -> Any:
        """Token ids [rows, tokens], at most `max_length` with the context's. Greedy, where nothing says otherwise."""
        settings = {"temperature": 0.0, **generation_kwargs}
        if settings["temperature"] == 0.0 and settings.get("do_sample") is None:
            settings["do_sample"] = False
        if settings.get("do_sample") is False and settings["temperature"] == 0.0:
            del settings["temperature"]
        criteria = stop_sequences_criteria(self.tokenizer, stop, context.shape[1], context.shape[0])
        with torch.no_grad(), self._autocast():
            return self.model.generate(
                input_ids=context,
                max_length=max_length,
                stopping_criteria=criteria,
                pad_token_id=self.tokenizer.pad_token_id,
                use_cache=True,
                **settings,
            )

    def _select_cont_toks(self, logits: Any, contlen: int | None = None, inplen: int | None = None) -> Any:
        """Of a row's logits [tokens, vocabulary] those that predict the continuation."""
        if self.backend != "causal":
            return logits[:contlen]
        assert contlen and inplen, "contlen and inplen must be given."
        return logits[inplen - contlen : inplen]

    # Batches

    def _detect_batch_size(self, requests: Sequence[Tokens] | None = None, pos: int = 0) -> int:
        """The most rows (a power of two below `max_batch_size`) that fit into memory at the length of a request."""
        if self.device.type != "cuda":
            return min(self.max_batch_size, 8)
        length = self.max_length
        if requests:
            length = min(len(requests[pos][1]) + len(requests[pos][2]) - 1, length)
        size = self.max_batch_size
        while size > 1:
            try:
                ones = torch.ones((size, max(length, 1)), dtype=torch.long, device=self.device)
                more = {} if self.backend == "causal" else {"attn_mask": ones, "labels": ones}
                F.log_softmax(self._model_call(ones, **more), dim=-1, dtype=self.softmax_dtype)
                break
            except torch.cuda.OutOfMemoryError:
                size //= 2
            finally:
                clear_torch_cache()
        return size

    def _batch_scheduler(self, pos: int, n_reordered_requests: Sequence[Tokens]) -> int:
        """Rows of the batch at a place: found anew for each of the `batch_schedule` parts of the requests."""
        part = pos // max(int(len(n_reordered_requests) / self.batch_schedule), 1)
        if part not in self.batch_sizes:
            self.batch_sizes[part] = self._detect_batch_size(n_reordered_requests, pos)
        return self.batch_sizes[part]

    def loglikelihood(self, requests: list[Instance], disable_tqdm: bool = False) -> Any:
        """As of TemplateLM. Raises ValueError with `enable_thinking`: reasoning is no part of a continuation."""
        if self.enable_thinking:
            raise ValueError("enable_thinking=True is for generation: log-likelihoods have no reasoning.")
        return super().loglikelihood(requests, disable_tqdm=disable_tqdm)

    def loglikelihood_rolling(self, requests: list[Instance], disable_tqdm: bool = False) -> list[float]:
        """The log-probability of each text, in windows as long as the model takes in."""
        owners: list[int] = []
        windows: list[Tokens] = []
        for place, (text,) in enumerate(request.args for request in requests):
            found = get_rolling_token_windows(self.tok_encode(text), self.prefix_token_id, self.max_length, 1)
            new = [(None, *make_disjoint_window(window)) for window in found]
            windows += new
            owners += [place] * len(new)
        size = self._detect_batch_size() if self.batch_size == "auto" else self.batch_size
        totals = [0.0] * len(requests)
        for start in range(0, len(windows), size):
            batch = windows[start : start + size]
            values = self._loglikelihood_tokens(batch, disable_tqdm=True, override_bs=len(batch))
            for place, (value, _) in zip(owners[start : start + size], values, strict=True):
                totals[place] += value
        for request, total in zip(requests, totals, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals

    def _loglikelihood_tokens(
        self, requests: Sequence[Tokens], disable_tqdm: bool = False, override_bs: int | None = None, **kwargs: Any
    ) -> list[tuple[float, bool]]:  # fmt: skip
        """(log-probability, whether greedy) of each continuation. Raises AssertionError where a continuation has no tokens, or more
        than the model takes in."""
        causal = self.backend == "causal"
        order = Collator(
            requests,
            sort_fn=lambda one: (-len(one[1] + one[2]), tuple(one[1] + one[2])),
            group_fn=lambda one: one[1] + one[2][:-1],
            group_by="contexts" if causal and self.logits_cache else None,
        )
        auto = self.batch_size == "auto"
        schedule = self._batch_scheduler if auto and not override_bs else None
        if schedule:
            self.batch_sizes = {}
        results: list[tuple[float, bool]] = []
        for chunk in order.get_batched((override_bs or 0) if auto else self.batch_size, schedule):
            inputs, lengths, labels = self._rows(chunk)
            longest = max(lengths)
            more: dict[str, Any] = {}
            if not causal:
                masks = [torch.ones_like(row) for row in inputs]
                most = max(len(row) for row in labels)
                more = {
                    "attn_mask": pad_and_concat(longest, masks),
                    "labels": pad_and_concat(most, labels),
                }
            logits = self._model_call(pad_and_concat(longest, inputs), **more)
            for (strings, context, continuation), row, length in zip(
                chunk, F.log_softmax(logits, dim=-1, dtype=self.softmax_dtype), lengths, strict=True
            ):
                # A model with virtual tokens (prefix tuning) gives more positions than it was given tokens.
                end = length + row.shape[0] - longest if causal else None
                chosen = self._select_cont_toks(row, contlen=len(continuation), inplen=end)
                for name, tokens, one in order.get_cache(strings, context, continuation, chosen[None]):
                    wanted = torch.tensor(tokens, device=self.device)
                    one = one[0, -len(tokens) :]
                    value = one.gather(1, wanted[:, None]).sum()
                    results.append((float(value), bool((one.argmax(-1) == wanted).all())))
                    if name is not None:  # windows of a rolling text have none
                        self.cache_hook.add_partial("loglikelihood", name, results[-1])
        return order.get_original(results)

    def _rows(self, chunk: Sequence[Tokens]) -> tuple[list[Any], list[int], list[Any]]:
        """What the model is given for each request, how many tokens that are, and (encoder-decoder) what it is to write."""
        inputs, labels = [], []
        for _, context, continuation in chunk:
            context = context or [self.prefix_token_id]  # of white space alone
            assert continuation, "A continuation has no tokens."
            assert len(continuation) <= self.max_length, "A continuation is longer than the model takes in."
            if self.backend == "causal":
                tokens = (context + continuation)[-(self.max_length + 1) : -1]
            else:
                tokens = context[-self.max_length :]
                labels.append(torch.tensor(continuation, dtype=torch.long, device=self.device))
            inputs.append(torch.tensor(tokens, dtype=torch.long, device=self.device))
        return inputs, [len(row) for row in inputs], labels

    def generate_until(self, requests: list[Instance], disable_tqdm: bool = False) -> list[str]:
        """What the model writes after each prompt, up to a stop string or its end."""
        size = self._detect_batch_size() if self.batch_size == "auto" else self.batch_size
        order = Collator(
            [request.args for request in requests],
            sort_fn=lambda one: (-len(self.tok_encode(one[0])), one[0]),
            group_by="gen_kwargs",
        )
        ending = self.tok_decode(self.eot_token_id, skip_special_tokens=False)
        results: list[str] = []
        for chunk in order.get_batched(n=size):
            contexts, (given, *_) = zip(*chunk, strict=True)
            settings = normalize_gen_kwargs(given, self.max_gen_toks)
            until = handle_stop_sequences(settings.pop("until"), eos=ending)
            most = settings.pop("max_gen_toks")
            room = self.max_length - most if self.backend == "causal" else self.max_length
            assert room > 0, (
                f"{most} tokens to generate leave no room for a prompt in the {self.max_length} that the model takes in."
            )
            context, mask = self.tok_batch_encode(
                contexts, left_truncate_len=room, truncation=self.truncation
            )
            context, mask = context.to(self.device), mask.to(self.device)
            length = settings.pop("max_length", context.shape[1] + most)
            written = self._model_generate(
                context=context, attention_mask=mask, stop=until, max_length=length, **settings
            )
            for tokens, prompt in zip(written.tolist(), contexts, strict=True):
                answer = tokens[context.shape[1] :] if self.backend == "causal" else tokens
                results.append(self._answer(answer, until))
                self.cache_hook.add_partial("generate_until", (prompt, given), results[-1])
        return order.get_original(results)

    def _answer(self, tokens: list[int], until: list[str]) -> str:
        """The text of what was written: after its reasoning, up to the first stop string."""
        ending = self.think_end_token
        if not isinstance(ending, int):
            return postprocess_generated_text(self.tok_decode(tokens), until, ending)
        if ending in tokens:
            tokens = tokens[len(tokens) - tokens[::-1].index(ending) :]
        return postprocess_generated_text(self.tok_decode(tokens).lstrip(), until, None)


def _device(name: str | None) -> Any:
    """The device of a name; where it is not there, or is left open, the first GPU or the processor."""
    if name and name != "auto" and (not name.startswith("cuda") or torch.cuda.is_available()):
        return torch.device(name)
    return torch.device("cuda" if torch.cuda.is_available() else "cpu")
