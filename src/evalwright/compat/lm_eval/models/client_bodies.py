"""Models behind servers, `lm/<client>/<model>`, with the request bodies of lm_eval's clients.

    lm/local-completions/my-model   -M base_url=http://localhost:8000/v1/completions -M
    tokenizer=org/model
    lm/openai-chat-completions/gpt-4o-mini

Request bodies are lm_eval's (the length if a task names none, the seed, stop strings, token ids
with the start token, windows of long texts), and a text is not cut. Keys, pacing, retries, prices
and the store are those of `openai/...` and `anthropic/...`.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from evalwright import Generate, LogLikelihood, RemoteModel, RollingLogLikelihood
from evalwright.compat.lm_eval.api.registry import get_model
from evalwright.compat.lm_eval.models.api_models import JsonChatStr
from evalwright.compat.lm_eval.models.clients import (
    ANTHROPIC,
    ARGUMENTS,
    CHAT,
    COMPLETIONS,
    ECHO_MODELS,
    ENDPOINTS,
    TOKENIZING,
)
from evalwright.compat.lm_eval.models.request_settings import (
    CARRIED,
    settings_for_server,
)
from evalwright.compat.lm_eval.models.utils import (
    handle_stop_sequences,
    postprocess_generated_text,
)
from evalwright.compat.lm_eval.utils import (
    get_rolling_token_windows,
    make_disjoint_window,
)
from evalwright.extend import (
    ConfigurationError,
    Prompt,
    RequestBodies,
    ScoredBody,
    UnknownName,
    server_model,
)

log = logging.getLogger("evalwright.lm_eval")


def served_model(client: str, model: str, **arguments: Any) -> RemoteModel:
    """Create the model of one of lm_eval's server clients.

    Raises UnknownName for an argument that no client has.
    """
    client_arguments = {
        name: value for name, value in arguments.items() if value is not None
    }
    for name in client_arguments:
        if name not in ARGUMENTS:
            known_names = sorted(ARGUMENTS)
            raise UnknownName(
                f"argument of 'lm/{client}'",
                name,
                known_names,
                f"Known: {', '.join(known_names)}.",
            )
    if client in ANTHROPIC:
        return server_model(
            "anthropic",
            model,
            MessagesBodies(client, client_arguments),
            **_sending_arguments(client_arguments, ENDPOINTS["anthropic"]),
        )
    is_chat = client in CHAT
    ending = ENDPOINTS["chat" if is_chat else "completions"]
    if client.startswith("local-") and "base_url" not in client_arguments:
        raise ConfigurationError(
            f"'lm/{client}' needs base_url=http://HOST:PORT/v1{ending}."
        )
    bodies = ClientBodies(client, model, client_arguments)
    echo = None if is_chat or client == "local-completions" else model in ECHO_MODELS
    return server_model(
        "openai",
        model,
        bodies,
        interface="chat" if is_chat else "completions",
        echo=echo,
        **_sending_arguments(client_arguments, ending),
    )


def _sending_arguments(
    client_arguments: Mapping[str, Any], ending: str
) -> dict[str, Any]:
    """Translate client arguments that say where and how fast to send requests."""
    names = {
        "num_concurrent": "max_concurrency",
        "max_retries": "max_attempts",
        "timeout": "timeout",
    }
    sending = {
        ours: client_arguments[theirs]
        for theirs, ours in names.items()
        if theirs in client_arguments
    }
    if "header" in client_arguments:
        sending["headers"] = client_arguments["header"]
    if "base_url" in client_arguments:
        sending["base_url"] = (
            str(client_arguments["base_url"]).rstrip("/").removesuffix(ending)
        )
    return sending


def _is_concurrent(client_arguments: Mapping[str, Any]) -> bool:
    return int(client_arguments.get("num_concurrent", 1)) > 1


class ClientBodies(RequestBodies):
    """Bodies of a client of OpenAI's completions or chat completions.

    As in lm_eval, text is sent as token ids if a tokenizer is known.
    """

    carries = CARRIED

    def __init__(
        self, client_name: str, model: str, client_arguments: Mapping[str, Any]
    ) -> None:
        self._client_name = client_name
        self._arguments = dict(client_arguments)
        self._client = self._open_client(model)
        self._concurrent = _is_concurrent(client_arguments)
        self.takes_messages = self._renders_messages()

    def _open_client(self, model: str) -> Any:
        """Create the object that builds bodies; without a tokenizer it sends text and warns."""
        names = (
            *TOKENIZING,
            "base_url",
            "max_gen_toks",
            "seed",
            "eos_string",
            "think_end_token",
        )
        arguments = {
            name: self._arguments[name] for name in names if name in self._arguments
        }
        if self._client_name in COMPLETIONS:
            arguments.pop("think_end_token", None)
        client_class = get_model(self._client_name)
        try:
            return client_class(model=model, **arguments)
        except Exception as error:
            tokenizer_requested = arguments.get("tokenizer") or arguments.get(
                "tokenizer_backend"
            ) not in (None, "auto")
            if tokenizer_requested:
                raise ConfigurationError(
                    f"The tokenizer of 'lm/{self._client_name}/{model}' cannot be"
                    f" opened: {type(error).__name__}: {error}"
                ) from error
            log.warning(
                "lm/%s/%s: its tokenizer cannot be opened (%s; tokenizer=NAME names"
                " another), so texts are sent in place of token ids, and the first"
                " token of a text is not scored.",
                self._client_name,
                model,
                type(error).__name__,
            )
            return client_class(model=model, **{**arguments, "tokenizer_backend": None})

    def _renders_messages(self) -> bool:
        """Whether messages are rendered as text here."""
        client = self._client
        return (
            self._client_name in COMPLETIONS
            and client.tokenizer_backend == "huggingface"
            and client.tokenized_requests
            and bool(getattr(client.tokenizer, "chat_template", None))
        )

    def facts(self) -> Mapping[str, Any]:
        """The chat template, if messages are rendered here."""
        tokenizer = self._client.tokenizer
        template = tokenizer.chat_template if self.takes_messages else None
        if not isinstance(template, str):
            return {}
        tokens = dict(getattr(tokenizer, "special_tokens_map", {}))
        variables = {
            str(role): text for role, text in tokens.items() if isinstance(text, str)
        }
        return {"template": {"source": template, "variables": variables}}

    def identity(self) -> Mapping[str, Any]:
        """The client's name, and those of its arguments that change an answer."""
        names = (*TOKENIZING, "max_gen_toks", "seed", "eos_string", "think_end_token")
        changing = {
            name: self._arguments[name] for name in names if name in self._arguments
        }
        client = {
            "name": self._client_name,
            "tokenizer": self._client.tokenizer_backend,
            **changing,
        }
        return {"client": client, "concurrent": self._concurrent}

    # Texts

    def body(self, request: Generate, model: str) -> dict[str, Any]:
        """The body of a request to generate, as the client writes it."""
        gen_kwargs = settings_for_server(request)
        seed = self._client._seed + (request.draw if request.stop else 0)
        return self._payload(
            self._message(request.prompt, gen_kwargs),
            gen_kwargs=gen_kwargs,
            generate=True,
            seed=seed,
        )

    def text(self, text: str) -> str:
        """Remove the reasoning, where the argument `think_end_token` says how it ends."""
        thinking_end = self._arguments.get("think_end_token")
        if thinking_end is None:
            return text
        return postprocess_generated_text(text, None, thinking_end)

    def _payload(self, message: Any, **how: Any) -> dict[str, Any]:
        """Build a body; the end text stops generation unless requests are concurrent."""
        end_option = {} if self._concurrent else {"eos": self._client.eos_string}
        body: dict[str, Any] = self._client._create_payload(
            message, **how, **end_option
        )
        return body

    def _message(self, prompt: Prompt, gen_kwargs: Mapping[str, Any]) -> Any:
        """A prompt as the client sends it: messages, a text or token ids."""
        client = self._client
        if self._client_name in CHAT:
            conversation = json.dumps(_turns(prompt), ensure_ascii=False)
            return client.create_message([JsonChatStr(conversation)])
        text = self._text(prompt)
        if not client.tokenized_requests:
            return text
        room = client.max_length - int(
            gen_kwargs.get("max_gen_toks", client._max_gen_toks)
        )
        tokens = client.tok_encode(text, add_special_tokens=client.add_bos_token)
        return [tokens[-room:]]

    def _text(self, prompt: Prompt) -> str:
        if isinstance(prompt, str):
            return prompt
        opening = prompt[-1].role != "assistant"
        return str(
            self._client.apply_chat_template(
                _turns(prompt), add_generation_prompt=opening
            )
        )

    # Log-likelihoods

    def scored(
        self, request: LogLikelihood | RollingLogLikelihood, model: str
    ) -> Iterator[ScoredBody] | None:
        """The requests of a log-likelihood, in tokens; None without a tokenizer."""
        if self._client.tokenizer is None:
            return None
        return (
            self._scored_body(context, continuation)
            for context, continuation in self._encoded(request)
        )

    def _encoded(
        self, request: LogLikelihood | RollingLogLikelihood
    ) -> Iterator[tuple[list[int], list[int]]]:
        """Yield (context tokens, continuation tokens) for each request to the server."""
        client = self._client
        if isinstance(request, LogLikelihood):
            yield client.encoded_pair(self._text(request.context), request.continuation)
            return
        windows = get_rolling_token_windows(
            client.tok_encode(request.text),
            client.prefix_token_id,
            client.max_length - 1,
            1,
        )
        yield from map(make_disjoint_window, windows)

    def _scored_body(
        self, context: Sequence[int], continuation: Sequence[int]
    ) -> ScoredBody:
        client = self._client
        inputs, lengths, _ = client.batch_loglikelihood_requests(
            [[(None, list(context), list(continuation))]]
        )
        body = self._payload(
            client.create_message(inputs), generate=False, seed=client._seed
        )
        return ScoredBody(
            body,
            n_tokens=len(inputs[0]),
            n_scored=len(continuation),
            read=partial(self._read_score, inputs, lengths),
        )

    def _read_score(
        self, inputs: list[list[int]], lengths: list[int], outputs: Any
    ) -> tuple[float, bool] | None:
        values = outputs["choices"][0]["logprobs"]["token_logprobs"]
        if len(values) <= lengths[0]:
            return None
        parsed = self._client.parse_logprobs(outputs, tokens=inputs, ctxlens=lengths)
        log_likelihood, is_greedy = parsed[0]
        return float(log_likelihood), bool(is_greedy)


class MessagesBodies(RequestBodies):
    """Bodies of a client of Anthropic's messages."""

    carries = CARRIED

    def __init__(self, client_name: str, client_arguments: Mapping[str, Any]) -> None:
        self._client_name = client_name
        self._max_tokens = int(client_arguments.get("max_gen_toks", 256))
        self._concurrent = _is_concurrent(client_arguments)

    def identity(self) -> Mapping[str, Any]:
        """The client's name, and those of its arguments that change an answer."""
        return {
            "client": self._client_name,
            "max_gen_toks": self._max_tokens,
            "concurrent": self._concurrent,
        }

    def body(self, request: Generate, model: str) -> dict[str, Any]:
        """Build the body of a request: the system message separate, each content as one block."""
        gen_kwargs = settings_for_server(request)
        gen_kwargs.pop("do_sample", None)
        turns = _turns(request.prompt)
        system = turns[0]["content"] if turns and turns[0]["role"] == "system" else ""
        talk = turns[1:] if system else turns
        ending = "\n\nHuman:" if self._concurrent else None
        stops = handle_stop_sequences(gen_kwargs.pop("until", ["\n\nHuman:"]), ending)
        body = {
            "messages": [
                {
                    "role": turn["role"],
                    "content": [{"type": "text", "text": turn["content"]}],
                }
                for turn in talk
            ],
            "model": model,
            "max_tokens": gen_kwargs.pop("max_gen_toks", self._max_tokens),
            "temperature": gen_kwargs.pop("temperature", 0),
            "stop_sequences": (
                [stop for stop in stops if stop and stop.strip()] or ["\n\nHuman:"]
            ),
            **gen_kwargs,
        }
        return {**body, "system": system} if system else body


def _turns(prompt: Prompt) -> list[dict[str, Any]]:
    """A prompt as messages; a text is one of the user."""
    if isinstance(prompt, str):
        return [{"role": "user", "content": prompt}]
    return [turn.as_dict() for turn in prompt]
