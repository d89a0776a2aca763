"""`HFLM`: a transformers model to derive from, with each step as a method.

For an unmodified model `hf/...` is many times faster, because it computes shared contexts once.
This class computes whole batches, so that changes in a subclass take effect.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F
from jinja2 import TemplateError

from evalwright.compat.lm_eval.api.instance import Instance
from evalwright.compat.lm_eval.models.transformers_loader import TransformersLoader
from evalwright.compat.lm_eval.models.utils import (
    Collator,
    _add_special_kwargs,
    handle_stop_sequences,
    has_bos_prefix,
    normalize_gen_kwargs,
    postprocess_generated_text,
)
from evalwright.compat.lm_eval.models.utils_hf import (
    clear_torch_cache,
    pad_and_concat,
    stop_sequences_criteria,
)
from evalwright.compat.lm_eval.utils import (
    eval_logger,
    get_rolling_token_windows,
    make_disjoint_window,
)

Tokens = tuple[Any, list[int], list[int]]
"""(context and continuation), context tokens, continuation tokens."""


class HFLM(TransformersLoader):
    """A causal or encoder-decoder model with its tokenizer.

    Subclasses may set `_model`, `tokenizer`, `_device` and `_max_length` themselves and call only
    `LM.__init__`.

    Args:
        pretrained: a repository, a folder, or a loaded model (with `tokenizer`, a name or an
            object).
        batch_size: rows per batch, "auto" or "auto:N" for as many as fit.
        max_length: the context length in tokens.
        parallelize: spread the layers over all devices, within `max_memory_per_gpu` and
            `max_cpu_memory`,
            with `offload_folder`.
        think_end_token: text or token that ends reasoning.
        kwargs: passed to `from_pretrained`.
    """

    # Texts and tokens

    def tok_encode(
        self,
        string: str,
        add_special_tokens: bool | None = None,
        left_truncate_len: int | None = None,
        **kwargs: Any,
    ) -> list[int]:
        """Tokenise a text, with special tokens unless it begins with the prefix token."""
        encoding_options = _add_special_kwargs(add_special_tokens, self.add_bos_token)
        if add_special_tokens is None and self.prefix_token_id is not None:
            prefix = self.tokenizer.decode(self.prefix_token_id)
            if has_bos_prefix(string, prefix):
                encoding_options["add_special_tokens"] = False
        tokens: list[int] = self.tokenizer.encode(string, **encoding_options)
        return tokens[-left_truncate_len:] if left_truncate_len else tokens

    def tok_batch_encode(
        self,
        strings: Sequence[str],
        padding_side: str = "left",
        left_truncate_len: int | None = None,
        truncation: bool | None = False,
    ) -> tuple[Any, Any]:
        """Tokenise texts as rows (token ids, attention mask), cut at the beginning if too long."""
        encoding_options: dict[str, bool] = {}
        if self.backend == "causal":
            encoding_options = _add_special_kwargs(None, self.add_bos_token)
            if has_bos_prefix(strings[0], getattr(self.tokenizer, "bos_token", None)):
                encoding_options = {"add_special_tokens": False}
        padding_side_before = self.tokenizer.padding_side
        self.tokenizer.padding_side = padding_side
        try:
            encoded = self.tokenizer(
                list(strings),
                truncation=truncation,
                padding="longest",
                return_tensors="pt",
                **encoding_options,
            )
        finally:
            self.tokenizer.padding_side = padding_side_before
        kept_columns = slice(-left_truncate_len if left_truncate_len else None, None)
        if encoded["input_ids"].shape[1] > (
            left_truncate_len or encoded["input_ids"].shape[1]
        ):
            eval_logger.warning(
                "Contexts are cut to their last %d tokens.", left_truncate_len
            )
        return encoded["input_ids"][:, kept_columns], encoded["attention_mask"][
            :, kept_columns
        ]

    def tok_decode(self, tokens: Any, skip_special_tokens: bool = True) -> str:
        """The text of tokens."""
        return str(
            self.tokenizer.decode(tokens, skip_special_tokens=skip_special_tokens)
        )

    def apply_chat_template(
        self, chat_history: list[dict[str, str]], add_generation_prompt: bool = True
    ) -> Any:
        """Render a conversation, without system messages if the template rejects them."""
        template_options = {
            "tokenize": False,
            "add_generation_prompt": add_generation_prompt,
            "continue_final_message": not add_generation_prompt,
            **self.chat_template_args,
        }
        try:
            return self.tokenizer.apply_chat_template(chat_history, **template_options)
        except TemplateError:
            eval_logger.warning(
                "The chat template failed; it is tried without system messages."
            )
            without_system = [turn for turn in chat_history if turn["role"] != "system"]
            return self.tokenizer.apply_chat_template(
                without_system, **template_options
            )

    # The model

    def _autocast(self) -> Any:
        dtype = self.mixed_precision_dtype
        return torch.autocast(self.device.type, dtype=dtype, enabled=dtype is not None)

    def _model_call(self, inps: Any, attn_mask: Any = None, labels: Any = None) -> Any:
        """Compute logits [rows, tokens, vocabulary], of `labels` for an encoder-decoder."""
        with torch.no_grad(), self._autocast():
            if attn_mask is None and labels is None:
                return self.model(inps).logits
            return self.model(
                input_ids=inps, attention_mask=attn_mask, labels=labels
            ).logits

    def _model_generate(
        self, context: Any, max_length: int, stop: list[str], **generation_kwargs: Any
    ) -> Any:
        """Generate token ids [rows, tokens] up to `max_length`, context included.

        Greedy by default.
        """
        settings = {"temperature": 0.0, **generation_kwargs}
        if settings["temperature"] == 0.0 and settings.get("do_sample") is None:
            settings["do_sample"] = False
        if settings.get("do_sample") is False and settings["temperature"] == 0.0:
            del settings["temperature"]
        criteria = stop_sequences_criteria(
            self.tokenizer, stop, context.shape[1], context.shape[0]
        )
        with torch.no_grad(), self._autocast():
            return self.model.generate(
                input_ids=context,
                max_length=max_length,
                stopping_criteria=criteria,
                pad_token_id=self.tokenizer.pad_token_id,
                use_cache=True,
                **settings,
            )

    def _select_cont_toks(
        self, logits: Any, contlen: int | None = None, inplen: int | None = None
    ) -> Any:
        """Select the rows of logits [tokens, vocabulary] that predict the continuation."""
        if self.backend != "causal":
            return logits[:contlen]
        assert contlen and inplen, "contlen and inplen must be given."
        return logits[inplen - contlen : inplen]

    # Batches

    def _detect_batch_size(
        self, requests: Sequence[Tokens] | None = None, pos: int = 0
    ) -> int:
        """Find the largest batch that fits into memory at a request's length.

        The size is a power of two, at most `max_batch_size`.
        """
        if self.device.type != "cuda":
            return min(self.max_batch_size, 8)
        length = self.max_length
        if requests:
            length = min(len(requests[pos][1]) + len(requests[pos][2]) - 1, length)
        size = self.max_batch_size
        while size > 1:
            try:
                ones = torch.ones(
                    (size, max(length, 1)), dtype=torch.long, device=self.device
                )
                extra_inputs = (
                    {}
                    if self.backend == "causal"
                    else {"attn_mask": ones, "labels": ones}
                )
                F.log_softmax(
                    self._model_call(ones, **extra_inputs),
                    dim=-1,
                    dtype=self.softmax_dtype,
                )
                break
            except torch.cuda.OutOfMemoryError:
                size //= 2
            finally:
                clear_torch_cache()
        return size

    def _batch_scheduler(self, pos: int, n_reordered_requests: Sequence[Tokens]) -> int:
        """The batch size at a position, detected anew for each of `batch_schedule` sections."""
        schedule_index = pos // max(
            int(len(n_reordered_requests) / self.batch_schedule), 1
        )
        if schedule_index not in self.batch_sizes:
            self.batch_sizes[schedule_index] = self._detect_batch_size(
                n_reordered_requests, pos
            )
        return self.batch_sizes[schedule_index]

    def loglikelihood(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> Any:
        """Score continuations, as TemplateLM does.

        Raises ValueError with `enable_thinking`: a continuation has no reasoning.
        """
        if self.enable_thinking:
            raise ValueError(
                "enable_thinking=True is for generation: log-likelihoods have no"
                " reasoning."
            )
        return super().loglikelihood(requests, disable_tqdm=disable_tqdm)

    def loglikelihood_rolling(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[float]:
        """Compute the log-probability of each text, in windows of the context length."""
        owners: list[int] = []
        windows: list[Tokens] = []
        for index, (text,) in enumerate(request.args for request in requests):
            text_windows = get_rolling_token_windows(
                self.tok_encode(text), self.prefix_token_id, self.max_length, 1
            )
            new = [(None, *make_disjoint_window(window)) for window in text_windows]
            windows += new
            owners += [index] * len(new)
        size = (
            self._detect_batch_size() if self.batch_size == "auto" else self.batch_size
        )
        totals = [0.0] * len(requests)
        for start in range(0, len(windows), size):
            batch = windows[start : start + size]
            values = self._loglikelihood_tokens(
                batch, disable_tqdm=True, override_bs=len(batch)
            )
            for index, (log_likelihood, _) in zip(
                owners[start : start + size], values, strict=True
            ):
                totals[index] += log_likelihood
        for request, total in zip(requests, totals, strict=True):
            self.cache_hook.add_partial("loglikelihood_rolling", request.args, total)
        return totals

    def _loglikelihood_tokens(
        self,
        requests: Sequence[Tokens],
        disable_tqdm: bool = False,
        override_bs: int | None = None,
        **kwargs: Any,
    ) -> list[tuple[float, bool]]:
        """Return (log-probability, whether greedy) of each continuation.

        Raises AssertionError if a continuation has no tokens, or more than the context length.
        """
        causal = self.backend == "causal"
        order = Collator(
            requests,
            sort_fn=lambda request: (
                -len(request[1] + request[2]),
                tuple(request[1] + request[2]),
            ),
            group_fn=lambda request: request[1] + request[2][:-1],
            group_by="contexts" if causal and self.logits_cache else None,
        )
        auto = self.batch_size == "auto"
        schedule = self._batch_scheduler if auto and not override_bs else None
        if schedule:
            self.batch_sizes = {}
        responses: list[tuple[float, bool]] = []
        for chunk in order.get_batched(
            (override_bs or 0) if auto else self.batch_size, schedule
        ):
            inputs, lengths, labels = self._build_inputs(chunk)
            longest = max(lengths)
            extra_inputs: dict[str, Any] = {}
            if not causal:
                masks = [torch.ones_like(row) for row in inputs]
                longest_label = max(len(row) for row in labels)
                extra_inputs = {
                    "attn_mask": pad_and_concat(longest, masks),
                    "labels": pad_and_concat(longest_label, labels),
                }
            logits = self._model_call(pad_and_concat(longest, inputs), **extra_inputs)
            for (strings, context, continuation), row, length in zip(
                chunk,
                F.log_softmax(logits, dim=-1, dtype=self.softmax_dtype),
                lengths,
                strict=True,
            ):
                # A model with virtual tokens (prefix tuning) gives more positions than it was given
                # tokens.
                end = length + row.shape[0] - longest if causal else None
                chosen = self._select_cont_toks(
                    row, contlen=len(continuation), inplen=end
                )
                for name, tokens, token_logits in order.get_cache(
                    strings, context, continuation, chosen[None]
                ):
                    target_tokens = torch.tensor(tokens, device=self.device)
                    token_logits = token_logits[0, -len(tokens) :]
                    log_likelihood = token_logits.gather(
                        1, target_tokens[:, None]
                    ).sum()
                    responses.append(
                        (
                            float(log_likelihood),
                            bool((token_logits.argmax(-1) == target_tokens).all()),
                        )
                    )
                    if name is not None:  # windows of a rolling text have none
                        self.cache_hook.add_partial(
                            "loglikelihood", name, responses[-1]
                        )
        return order.get_original(responses)

    def _build_inputs(
        self, chunk: Sequence[Tokens]
    ) -> tuple[list[Any], list[int], list[Any]]:
        """Build inputs, their lengths and, for an encoder-decoder, labels."""
        inputs = []
        labels = []
        for _, context, continuation in chunk:
            context = context or [self.prefix_token_id]  # of white space alone
            assert continuation, "A continuation has no tokens."
            assert len(continuation) <= self.max_length, (
                "A continuation is longer than the model takes in."
            )
            if self.backend == "causal":
                tokens = (context + continuation)[-(self.max_length + 1) : -1]
            else:
                tokens = context[-self.max_length :]
                labels.append(
                    torch.tensor(continuation, dtype=torch.long, device=self.device)
                )
            inputs.append(torch.tensor(tokens, dtype=torch.long, device=self.device))
        return inputs, [len(row) for row in inputs], labels

    def generate_until(
        self, requests: list[Instance], disable_tqdm: bool = False
    ) -> list[str]:
        """Generate a text after each prompt, up to a stop string or the end token."""
        size = (
            self._detect_batch_size() if self.batch_size == "auto" else self.batch_size
        )
        order = Collator(
            [request.args for request in requests],
            sort_fn=lambda request: (-len(self.tok_encode(request[0])), request[0]),
            group_by="gen_kwargs",
        )
        ending = self.tok_decode(self.eot_token_id, skip_special_tokens=False)
        responses: list[str] = []
        for chunk in order.get_batched(n=size):
            contexts, (gen_kwargs, *_) = zip(*chunk, strict=True)
            settings = normalize_gen_kwargs(gen_kwargs, self.max_gen_toks)
            until = handle_stop_sequences(settings.pop("until"), eos=ending)
            max_new_tokens = settings.pop("max_gen_toks")
            room = (
                self.max_length - max_new_tokens
                if self.backend == "causal"
                else self.max_length
            )
            assert room > 0, (
                f"{max_new_tokens} tokens to generate leave no room for a prompt in the"
                f" {self.max_length} that the model takes in."
            )
            context, mask = self.tok_batch_encode(
                contexts, left_truncate_len=room, truncation=self.truncation
            )
            context = context.to(self.device)
            mask = mask.to(self.device)
            length = settings.pop("max_length", context.shape[1] + max_new_tokens)
            sequences = self._model_generate(
                context=context,
                attention_mask=mask,
                stop=until,
                max_length=length,
                **settings,
            )
            for tokens, prompt in zip(sequences.tolist(), contexts, strict=True):
                answer = (
                    tokens[context.shape[1] :] if self.backend == "causal" else tokens
                )
                responses.append(self._answer(answer, until))
                self.cache_hook.add_partial(
                    "generate_until", (prompt, gen_kwargs), responses[-1]
                )
        return order.get_original(responses)

    def _answer(self, tokens: list[int], until: list[str]) -> str:
        """Decode an answer, without its reasoning and up to the first stop string."""
        ending = self.think_end_token
        if not isinstance(ending, int):
            return postprocess_generated_text(self.tok_decode(tokens), until, ending)
        if ending in tokens:
            tokens = tokens[len(tokens) - tokens[::-1].index(ending) :]
        return postprocess_generated_text(self.tok_decode(tokens).lstrip(), until, None)
