"""Servers with OpenAI's completions or chat completions, as classes to derive from."""

from __future__ import annotations

import os
from functools import cached_property
from typing import Any

from evalwright.compat.lm_eval.models.api_models import TemplateAPI
from evalwright.compat.lm_eval.models.clients import REASONING_MARKS
from evalwright.compat.lm_eval.models.utils import (
    handle_stop_sequences,
    postprocess_generated_text,
)
from evalwright.compat.lm_eval.utils import check_remote_tokenizer_support, eval_logger


def _settings(
    gen_kwargs: dict[str, Any] | None, limit: int, eos: str | None
) -> tuple[int, dict[str, Any]]:
    """The token limit of an answer, and the other settings under OpenAI's names."""
    settings = dict(gen_kwargs or {})
    settings.pop("do_sample", None)
    task_limit = settings.pop("max_gen_toks", limit)
    max_tokens = settings.pop("max_tokens", task_limit)
    temperature = settings.pop("temperature", 0)
    stop = handle_stop_sequences(settings.pop("until", None), eos)
    return max_tokens, {"temperature": temperature, "stop": stop, **settings}


def _as_list(outputs: Any) -> list[Any]:
    return outputs if isinstance(outputs, list) else [outputs]


class LocalCompletionsAPI(TemplateAPI):
    """Completions of a local server.

    tokenizer_backend: "auto" uses the server's tokenizer if it has one.
    """

    def __init__(
        self,
        base_url: str | None = None,
        tokenizer_backend: Any = "auto",
        **kwargs: Any,
    ) -> None:
        if tokenizer_backend == "auto":
            names = ("verify_certificate", "ca_cert_path", "auth_token")
            tokenizer_options = {name: kwargs[name] for name in names if name in kwargs}
            has_tokenizer = bool(base_url) and check_remote_tokenizer_support(
                str(base_url), **tokenizer_options
            )
            tokenizer_backend = "remote" if has_tokenizer else "huggingface"
        super().__init__(
            base_url=base_url, tokenizer_backend=tokenizer_backend, **kwargs
        )

    def _create_payload(
        self,
        messages: Any,
        generate: bool = False,
        gen_kwargs: dict[str, Any] | None = None,
        seed: int = 1234,
        eos: str | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        payload = {"model": self.model, "prompt": messages, "seed": seed}
        if not generate:
            return {
                **payload,
                "temperature": 0,
                "max_tokens": 1,
                "logprobs": 1,
                "echo": True,
            }
        max_tokens, settings = _settings(gen_kwargs, self._max_gen_toks, eos)
        return {**payload, "max_tokens": max_tokens, **settings}

    @staticmethod
    def parse_logprobs(
        outputs: Any,
        tokens: list[list[int]] | None = None,
        ctxlens: list[int] | None = None,
        **kwargs: Any,
    ) -> list[tuple[float, bool]]:
        """Extract the continuation's part from the log-probabilities of an echoed prompt."""
        log_likelihoods = []
        for output in _as_list(outputs):
            choices = sorted(output["choices"], key=lambda choice: choice["index"])
            for choice, length in zip(choices, ctxlens or (), strict=False):
                assert length > 0, "The context must have at least one token."
                values = choice["logprobs"]["token_logprobs"][length:-1]
                best = choice["logprobs"]["top_logprobs"][length:-1]
                greedy = all(
                    log_likelihood == max(top.values())
                    for log_likelihood, top in zip(values, best, strict=False)
                )
                log_likelihoods.append((sum(values), greedy))
        return log_likelihoods

    @staticmethod
    def parse_generations(outputs: Any, **kwargs: Any) -> list[str]:
        """The texts, in the order of the prompts."""
        texts: list[str] = []
        for output in _as_list(outputs):
            texts += [
                choice["text"]
                for choice in sorted(
                    output["choices"], key=lambda choice: choice["index"]
                )
            ]
        return texts

    @cached_property
    def api_key(self) -> str:
        """The key in $OPENAI_API_KEY, if set."""
        return os.environ.get("OPENAI_API_KEY", "")


class LocalChatCompletion(LocalCompletionsAPI):
    """Chat completions of a local server: one conversation per request, no log-likelihoods."""

    def __init__(
        self,
        base_url: str | None = None,
        tokenizer_backend: Any = None,
        tokenized_requests: bool | None = None,
        think_end_token: str | None = None,
        **kwargs: Any,
    ) -> None:
        tokenizer_options = {
            "tokenizer_backend": tokenizer_backend,
            "tokenized_requests": bool(tokenized_requests),
        }
        super().__init__(base_url=base_url, **tokenizer_options, **kwargs)
        self.think_end_token = think_end_token
        self._batch_size = 1

    def _create_payload(
        self,
        messages: Any,
        generate: bool = False,
        gen_kwargs: dict[str, Any] | None = None,
        seed: int = 1234,
        eos: str | None = None,
        **kwargs: Any,
    ) -> dict[str, Any]:
        if not isinstance(messages, list) or not all(
            isinstance(message, dict) for message in messages
        ):
            raise ValueError(
                "Chat completions take messages: apply the chat template"
                " (--apply_chat_template)."
            )
        max_tokens, settings = _settings(gen_kwargs, self._max_gen_toks, eos)
        settings["stop"] = settings["stop"][:4]
        return {
            "messages": messages,
            "model": self.model,
            "max_tokens": max_tokens,
            "seed": seed,
            **settings,
        }

    def parse_generations(self, outputs: Any, **kwargs: Any) -> list[Any]:  # type: ignore[override]
        """The texts; "" for a reply without choices, None for one without content."""
        answers: list[Any] = []
        for output in _as_list(outputs):
            try:
                texts = {
                    choice["index"]: choice["message"]["content"]
                    for choice in output["choices"]
                }
            except (KeyError, TypeError) as error:
                eval_logger.warning("A reply has no answer: %r", error)
                texts = {0: ""}
            answers += [
                (
                    None
                    if text is None
                    else postprocess_generated_text(text, None, self.think_end_token)
                )
                for _, text in sorted(texts.items())
            ]
        return answers

    def tok_encode(self, string: Any, *arguments: Any, **kwargs: Any) -> Any:
        """Messages stay messages."""
        return string

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
        """Not offered by chat completions."""
        raise NotImplementedError(
            "Chat completions give no log-likelihoods of prompts: use completions."
        )

    loglikelihood_rolling = loglikelihood


def _key() -> str:
    if not (key := os.environ.get("OPENAI_API_KEY")):
        raise ValueError(
            "No key for OpenAI: set the environment variable OPENAI_API_KEY."
        )
    return key


class OpenAICompletionsAPI(LocalCompletionsAPI):
    """OpenAI's completions; log-likelihoods only for its two base models."""

    def __init__(
        self,
        base_url: str | None = "https://api.openai.com/v1/completions",
        tokenizer_backend: Any = "tiktoken",
        **kwargs: Any,
    ) -> None:
        super().__init__(
            base_url=base_url, tokenizer_backend=tokenizer_backend, **kwargs
        )

    @cached_property
    def api_key(self) -> str:
        """The key in $OPENAI_API_KEY. Raises ValueError if it is not set."""
        return _key()

    def loglikelihood(self, requests: Any, disable_tqdm: bool = False) -> Any:
        """Score continuations with babbage-002 or davinci-002."""
        assert self.model in ("babbage-002", "davinci-002"), (
            "OpenAI gives log-likelihoods of prompts only for babbage-002 and"
            " davinci-002."
        )
        return super().loglikelihood(requests, disable_tqdm)

    def chat_template(self, chat_template: bool | str = False) -> str | None:
        """None: the server has it."""
        return ""


class OpenAIChatCompletion(LocalChatCompletion):
    """OpenAI's chat completions.

    As in lm_eval, models whose name contains "o1", "o3", "o4" or "5" get no stop strings, and
    temperature 1.
    """

    def __init__(
        self,
        base_url: str | None = "https://api.openai.com/v1/chat/completions",
        **kwargs: Any,
    ) -> None:
        super().__init__(base_url=base_url, **kwargs)

    @cached_property
    def api_key(self) -> str:
        """That of $OPENAI_API_KEY. Raises ValueError without one."""
        return _key()

    def _create_payload(
        self,
        messages: Any,
        generate: bool = False,
        gen_kwargs: dict[str, Any] | None = None,
        seed: int = 1234,
        eos: str | None = "<|endoftext|>",
        **kwargs: Any,
    ) -> dict[str, Any]:
        payload = super()._create_payload(
            messages, generate, gen_kwargs, seed, eos, **kwargs
        )
        payload["max_completion_tokens"] = payload.pop("max_tokens")
        if any(mark in str(self.model) for mark in REASONING_MARKS):
            del payload["stop"]
            payload["temperature"] = 1
        return payload
