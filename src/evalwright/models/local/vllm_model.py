"""`vllm-local/<hub repository or local folder>[@revision]`: a language model in vLLM, on a GPU.

Token rules, templates and fingerprint are those of `hf/`; vLLM gets token numbers. Log-likelihoods
are vLLM's log-probabilities of prompts. For these vLLM does not use its prefix cache, so shared
few-shot examples are computed for each prompt; in generation they are shared.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import fields
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from inspect import signature
from typing import Any

from evalwright.core.errors import (
    ConfigurationError,
    Failure,
    MissingExtra,
    ModelError,
    UnknownName,
)
from evalwright.core.requests import Request, arguments_of
from evalwright.core.responses import Response, TokenLogProb, Usage
from evalwright.models.local.answering import Answering, Job, PairScore, may_call
from evalwright.models.local.hf.options import as_count, as_flag, resolve_device
from evalwright.models.local.hf.source import find_source
from evalwright.models.local.hf.transformers_model import TransformersModel
from evalwright.models.local.model_files import context_length
from evalwright.models.local.tokens import DEFAULT_MAX_TOKENS, Pair
from evalwright.models.local.writing import token_texts
from evalwright.models.model_interface import (
    TOOL_OPTIONS,
    LocalModel,
    answers_tokens,
    fingerprint_of,
)

_PROMPTS_AT_ONCE = 2048
"""Prompts passed to vLLM together, which batches them itself; answers are stored after each group.
"""
_EXTRA_TOKENS = 2
"""Tokens by which vLLM's context must exceed ours.

A pair is one token longer than the context of its last token, and vLLM always generates one more.
"""


SAMPLING_PARAMS = frozenset(
    (
        "bad_words",
        "frequency_penalty",
        "ignore_eos",
        "include_stop_str_in_output",
        "logit_bias",
        "min_tokens",
        "presence_penalty",
        "repetition_penalty",
        "skip_special_tokens",
        "spaces_between_special_tokens",
        "stop_token_ids",
    )
)
"""All names that `Generate.generation_arguments` may have for these models."""

_RESERVED_ARGUMENTS = {
    "model": "The model is named after 'vllm-local/'.",
    "max_model_len": "Use -M max_length=...",
    "data_parallel_size": "Use -M replicas=N.",
} | dict.fromkeys(
    (
        "revision",
        "tokenizer",
        "dtype",
        "trust_remote_code",
        "quantization",
        "chat_template",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "enable_prefix_caching",
    ),
    "Leave out 'engine.'.",
)
"""vLLM's arguments that have an argument of their own here."""


class VllmModel(LocalModel):
    """A decoder-only model: log-likelihood, rolling, generation, chat.

    Arguments that `hf/` has mean the same here.

    Args:
        name: a hub repository or folder.
        tensor_parallel_size: GPUs that share each layer.
        pipeline_parallel_size: GPUs that share the layers.
        enable_prefix_caching: prompts with the same beginning share its computation in generation.
        engine: further arguments of vllm.LLM, such as {"gpu_memory_utilization": 0.8}; these and
            `quantization` are part of the fingerprint.

    Raises:
        MissingExtra: vllm is not installed.
        ConfigurationError: an argument cannot be used.
    """

    carries: frozenset[str] = frozenset(
        ("top_k", "min_p", "top_logprobs", "generation_arguments")
    )
    refused = ("data_parallel_size",)
    """Arguments accepted only to say what to use instead; they are never suggested."""

    def __init__(
        self,
        name: str,
        *,
        revision: str | None = None,
        dtype: str = "auto",
        max_length: int | None = None,
        tokenizer: str | None = None,
        add_special_tokens: bool = True,
        add_bos: bool = False,
        prefix_token: str | int | None = None,
        chat_template: str | None = None,
        enable_thinking: bool | None = None,
        chat_template_args: Mapping[str, Any] | None = None,
        trust_remote_code: bool = False,
        max_tokens: int = DEFAULT_MAX_TOKENS,
        quantization: str | None = None,
        tensor_parallel_size: int = 1,
        pipeline_parallel_size: int = 1,
        data_parallel_size: int = 1,
        enable_prefix_caching: bool = True,
        engine: Mapping[str, Any] | None = None,
    ) -> None:
        if find_spec("vllm") is None:
            raise MissingExtra("A model in vLLM ('vllm-local/...')", "vllm", "vllm")
        if as_count("data_parallel_size", data_parallel_size) > 1:
            raise ConfigurationError(
                "vLLM does not run data parallelism within one process. Use devices=all"
                " (a process on each GPU) or replicas=N, or start 'vllm serve MODEL"
                " --data-parallel-size N' and evaluate 'vllm/MODEL'."
            )
        _check_engine(engine)
        self._engine = dict(engine or {})
        source = find_source(name, None if revision is None else str(revision))
        requested_length = (
            None if max_length is None else as_count("max_length", max_length)
        )
        model_length = (
            context_length(source.config, source.tokenizer_config)
            or (requested_length or 2048) + _EXTRA_TOKENS
        )
        if requested_length is not None and requested_length > model_length:
            raise ConfigurationError(
                f"max_length={requested_length} is more than the {model_length} tokens that"
                f" 'vllm-local/{name}' supports."
            )
        longest = max(
            1,
            model_length - _EXTRA_TOKENS
            if requested_length is None
            else min(requested_length, model_length - _EXTRA_TOKENS),
        )
        self._as_hf = TransformersModel(
            name,
            revision=revision,
            dtype=dtype,
            device="cuda",
            max_length=longest,
            tokenizer=tokenizer,
            add_special_tokens=add_special_tokens,
            add_bos=add_bos,
            prefix_token=prefix_token,
            chat_template=chat_template,
            enable_thinking=enable_thinking,
            chat_template_args=chat_template_args,
            trust_remote_code=trust_remote_code,
            max_tokens=max_tokens,
        )
        self.name = f"vllm-local/{name}" + (f"@{revision}" if revision else "")
        self.abilities = self._as_hf.abilities
        self.carries |= self._as_hf.carries & TOOL_OPTIONS
        self._llm_arguments: dict[str, Any] = {
            "model": source.where,
            "revision": source.revision,
            "tokenizer": tokenizer or source.where,
            "dtype": self._as_hf.options.dtype,
            "trust_remote_code": self._as_hf.options.trust_remote_code,
            "quantization": quantization,
            "tensor_parallel_size": as_count(
                "tensor_parallel_size", tensor_parallel_size
            ),
            "pipeline_parallel_size": as_count(
                "pipeline_parallel_size", pipeline_parallel_size
            ),
            "enable_prefix_caching": as_flag(
                "enable_prefix_caching", enable_prefix_caching
            ),
            "max_model_len": longest + _EXTRA_TOKENS,
            **self._engine,
        }
        changing = {"quantization": quantization, "engine": self._engine}
        self.fingerprint = fingerprint_of(
            {"backend": "vllm-local", "model": self._as_hf.fingerprint, **changing}
        )
        self._answering: _VllmAnswering | None = None

    def describe(self) -> dict[str, Any]:
        """Describe the model as for `hf/`, with vLLM's arguments."""
        hf_description = {
            key: value
            for key, value in self._as_hf.describe().items()
            if key not in ("device", "scoring")
        }
        return {
            **hf_description,
            **super().describe(),
            "backend": "vllm",
            "version": _version(),
            "engine": self._llm_arguments,
        }

    def check(self) -> None:
        """Raise if there is no GPU, or the files show that the model cannot be used.

        Nothing is loaded.
        """
        if resolve_device("auto") == "cpu" and "cpu" not in _version():
            raise ConfigurationError(
                f"'{self.name}' needs a GPU that vLLM can use, and there is none here"
                " (nvidia-smi shows it where there is one). On a CPU use"
                f" 'hf/{self.name.partition('/')[2]}'."
            )
        self._as_hf.check()
        if self._engine:
            from vllm import LLM, EngineArgs

            allowed = {
                *signature(LLM.__init__).parameters,
                *(field.name for field in fields(EngineArgs)),
            } - {
                "self",
                *_RESERVED_ARGUMENTS,
            }
            for name in sorted(self._engine.keys() - allowed):
                raise UnknownName("argument of vllm.LLM", name, allowed)

    def refuses(self, request: Request) -> str | None:
        """Refuse as every model does, and arguments that vLLM's SamplingParams do not have."""
        for name in arguments_of(request):
            if name not in SAMPLING_PARAMS:
                taken_names = ", ".join(sorted(SAMPLING_PARAMS))
                return (
                    f"'{self.name}' does not take {name} (it takes: {taken_names}). Leave it"
                    " out."
                )
        return super().refuses(request) or self._as_hf.refuses_tools(request)

    def weight_bytes(self) -> int | None:
        """Return how much memory the weights take at least; None if that is not known."""
        if self._llm_arguments["quantization"] is not None:
            return None
        return self._as_hf.weight_bytes()

    def reader(self) -> Any:
        """Return how the model reads prompts; only the tokenizer is loaded."""
        return self._as_hf.reader()

    def load(self) -> None:
        """Start vLLM.

        Raises:
            ConfigurationError: an argument cannot be used.
            ModelError: vLLM cannot start.
        """
        if self._answering is not None:
            return
        from vllm import LLM

        try:
            llm = LLM(**self._llm_arguments)
        except (
            Exception
        ) as error:  # a missing kernel, too little memory, or an unknown argument
            raise ModelError(
                f"vLLM cannot load '{self.name}': {type(error).__name__}: {error}"
            ) from error
        self._answering = _VllmAnswering(
            llm, self.reader(), self._own_sampling(), self._as_hf.options.max_tokens
        )

    def _own_sampling(self) -> dict[str, Any]:
        from transformers import GenerationConfig

        with suppress(OSError):
            generation_config = GenerationConfig.from_pretrained(
                self._llm_arguments["model"], revision=self._llm_arguments["revision"]
            )
            return dict(generation_config.to_dict())
        return {}

    def unload(self) -> None:
        """Stop vLLM and free the memory."""
        self._answering = None
        gc.collect()

    def answer_batch(
        self, requests: Sequence[Request]
    ) -> Iterator[tuple[int, Response | Failure]]:
        """Yield the answers: likelihoods first, then generations."""
        self.load()
        assert self._answering is not None
        try:
            yield from self._answering.answer(requests)
        except Exception as error:
            if (
                type(error).__name__ == "EngineDeadError"
            ):  # vLLM's own process is gone: the next batch starts another
                self.unload()
            raise


class _VllmAnswering(Answering):
    """Answers requests with vLLM, which does its own batching; see `Answering`."""

    def __init__(
        self, llm: Any, reader: Any, own_sampling: Mapping[str, Any], max_tokens: int
    ) -> None:
        super().__init__(reader, own_sampling=own_sampling, max_tokens=max_tokens)
        self._llm = llm

    def score(self, pairs: Sequence[Pair]) -> Iterator[tuple[int, PairScore | Failure]]:
        from vllm import SamplingParams

        # 0: the prompt's own tokens with their ranks, and no others.
        sampling = SamplingParams(
            max_tokens=1, temperature=0.0, prompt_logprobs=0, detokenize=False
        )
        rows = [[*context, *targets] for context, targets in pairs]
        for index, output in self._generated(rows, [sampling] * len(rows)):
            context, targets = pairs[index]
            prompt_logprobs = output.prompt_logprobs
            if prompt_logprobs is None or len(prompt_logprobs) != len(rows[index]):
                yield (
                    index,
                    ModelError(
                        "vLLM sent no log-probabilities of the prompt."
                    ).as_failure(),
                )
                continue
            values = [
                prompt_logprobs[len(context) + k][token]
                for k, token in enumerate(targets)
            ]
            total = sum(log_prob.logprob for log_prob in values)
            yield (
                index,
                PairScore(
                    total, all(log_prob.rank == 1 for log_prob in values), len(targets)
                ),
            )

    def write(self, jobs: Sequence[Job]) -> Iterator[tuple[int, Response | Failure]]:
        for index, output in self._generated(
            [job.tokens for job in jobs], [_sampling(job) for job in jobs]
        ):
            job = jobs[index]
            completion = output.outputs[0]
            if completion.finish_reason not in ("stop", "length"):
                yield (
                    index,
                    ModelError(
                        f"vLLM broke the answer off ({completion.finish_reason})."
                    ).as_failure(),
                )
                continue
            used = Usage(
                input_tokens=len(job.tokens), output_tokens=len(completion.token_ids)
            )
            yield (
                index,
                Response(
                    completion.text,
                    finish_reason=completion.finish_reason,
                    stopped_at=_stopped_at(completion, job),
                    usage=used,
                    tokens=self._log_probs_of(completion, job),
                ),
            )

    def _log_probs_of(self, completion: Any, job: Job) -> tuple[TokenLogProb, ...]:
        """Return the answer's tokens, if the request wants them."""
        if completion.logprobs is None:
            return ()
        tokens = list(completion.token_ids)
        most = job.request.top_logprobs or 0
        values = []
        for token, row in zip(tokens, completion.logprobs, strict=True):
            ranked = sorted(
                (log_prob.rank, token_id)
                for token_id, log_prob in row.items()
                if log_prob.rank <= most
            )
            values.append(
                (
                    row[token].logprob,
                    [(token_id, row[token_id].logprob) for _, token_id in ranked],
                )
            )
        return answers_tokens(
            token_texts(self.reader.encoder, tokens, values), completion.text
        )

    def _generated(
        self, rows: Sequence[list[int]], sampling: Sequence[Any]
    ) -> Iterator[tuple[int, Any]]:
        for start in range(0, len(rows), _PROMPTS_AT_ONCE):
            prompts = [
                {"prompt_token_ids": row}
                for row in rows[start : start + _PROMPTS_AT_ONCE]
            ]
            outputs = self._llm.generate(
                prompts,
                list(sampling[start : start + _PROMPTS_AT_ONCE]),
                use_tqdm=False,
            )
            yield from enumerate(outputs, start)


def _check_engine(engine: Any) -> None:
    """Raise ConfigurationError for arguments that would make a record wrong."""
    if engine is not None and not isinstance(engine, Mapping):
        raise ConfigurationError(
            "engine must be a mapping, for example -M"
            " engine.gpu_memory_utilization=0.8."
        )
    for name, value in dict(engine or {}).items():
        if name in _RESERVED_ARGUMENTS:
            raise ConfigurationError(
                f"engine.{name} cannot be set, because evalwright sets it and records"
                f" it. {_RESERVED_ARGUMENTS[name]}"
            )
        if name == "logprobs_mode" and value not in (
            "raw_logprobs",
            "processed_logprobs",
        ):
            raise ConfigurationError(
                f"engine.logprobs_mode={value} gives no log-probabilities; leave it"
                " out, or use raw_logprobs."
            )


def _sampling(job: Job) -> Any:
    from vllm import SamplingParams

    request = job.request
    named = {"top_p": request.top_p, "top_k": request.top_k, "min_p": request.min_p}
    return SamplingParams(
        temperature=request.temperature,
        max_tokens=job.room,
        stop=[stop for stop in request.stop if stop] or None,
        seed=None if request.temperature == 0 else (request.seed or 0) + request.draw,
        logprobs=request.top_logprobs,
        skip_special_tokens=not may_call(request),
        **{name: value for name, value in named.items() if value is not None},
        **arguments_of(request),
    )


def _version() -> str:
    try:
        return version("vllm")
    except PackageNotFoundError:
        return ""


def _stopped_at(completion: Any, job: Job) -> str | None:
    """Return the stop string at which vLLM ended the answer; None if it had no stop strings.

    vLLM names a token if one ended the answer, and nothing at the model's own end.
    """
    if not job.request.stop:
        return None
    reason = getattr(completion, "stop_reason", None)
    return reason if isinstance(reason, str) else ""
