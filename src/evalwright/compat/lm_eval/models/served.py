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
from dataclasses import replace
from typing import Any

from evalwright import (
    Generate,
    LogLikelihood,
    RemoteModel,
    Response,
    RollingLogLikelihood,
    Usage,
)
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
from evalwright.core.errors import BadReply
from evalwright.extend import (
    Ability,
    ConfigurationError,
    Prompt,
    Request,
    RequestError,
    UnknownName,
)
from evalwright.models.remote.api import ApiModel
from evalwright.models.remote.exchange import Call, Reply, largest_reply
from evalwright.models.remote.openai import OpenAIModel
from evalwright.models.remote.openai_echo import NoEcho
from evalwright.models.remote.providers import Provider, find
from evalwright.models.remote.wire.format import ReplyContent, Settings, Wire
from evalwright.models.remote.wire.openai_text import reply_usage

log = logging.getLogger("evalwright.lm_eval")

LogLikelihoods = list[tuple[float, bool]]


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
        return ServedMessages(client, model, client_arguments)
    return ServedModel(client, model, client_arguments)


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


def _provider(name: str) -> Provider:
    row = find(name)
    assert row is not None
    return row


class ServedModel(OpenAIModel):
    """A client of OpenAI's completions or chat completions.

    As in lm_eval, text is sent as token ids if a tokenizer is known.
    """

    carries = CARRIED
    resolves_names = True

    def __init__(
        self, client: str, model: str, client_arguments: Mapping[str, Any]
    ) -> None:
        self._client_name = client
        self._client_arguments = dict(client_arguments)
        is_chat = client in CHAT
        ending = ENDPOINTS["chat" if is_chat else "completions"]
        if client.startswith("local-") and "base_url" not in client_arguments:
            raise ConfigurationError(
                f"'lm/{client}' needs base_url=http://HOST:PORT/v1{ending}."
            )
        self._client = self._open_client(model)
        self._concurrent = int(client_arguments.get("num_concurrent", 1)) > 1
        echo = (
            None if is_chat or client == "local-completions" else model in ECHO_MODELS
        )
        sending = _sending_arguments(client_arguments, ending)
        super().__init__(
            _provider("openai"),
            model,
            interface="chat" if is_chat else "completions",
            echo=echo,
            **sending,
        )
        self.carries = CARRIED
        self.wire = self._published_wire(self.wire)

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
            name: self._client_arguments[name]
            for name in names
            if name in self._client_arguments
        }
        if self._client_name in COMPLETIONS:
            arguments.pop("think_end_token", None)
        client = get_model(self._client_name)
        try:
            return client(model=model, **arguments)
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
            return client(model=model, **{**arguments, "tokenizer_backend": None})

    def _published_wire(self, wire: Wire) -> Wire:
        parse_reply = wire.parse
        thinking_end = self._client_arguments.get("think_end_token")

        def parse_without_reasoning(
            body: Any, request: Any, settings: Settings
        ) -> ReplyContent:
            parsed = parse_reply(body, request, settings)
            return replace(
                parsed, text=postprocess_generated_text(parsed.text, None, thinking_end)
            )

        return replace(
            wire,
            payload=self._payload,
            parse=parse_reply if thinking_end is None else parse_without_reasoning,
            options={},
        )

    def describe(self) -> dict[str, Any]:
        """Describe the model, with the chat template if messages are rendered here."""
        template = (
            getattr(self._client.tokenizer, "chat_template", None)
            if self._renders
            else None
        )
        if not isinstance(template, str):
            return super().describe()
        tokens = dict(getattr(self._client.tokenizer, "special_tokens_map", {}))
        variables = {
            str(role): text for role, text in tokens.items() if isinstance(text, str)
        }
        return {
            **super().describe(),
            "template": {"source": template, "variables": variables},
        }

    @property
    def _renders(self) -> bool:
        """Whether messages are rendered as text here."""
        client = self._client
        return (
            self._client_name in COMPLETIONS
            and client.tokenizer_backend == "huggingface"
            and client.tokenized_requests
            and bool(getattr(client.tokenizer, "chat_template", None))
        )

    def _abilities(self) -> frozenset[Ability]:
        return super()._abilities() | ({"chat"} if self._renders else set())

    def _more_identity(self) -> Mapping[str, Any]:
        names = (*TOKENIZING, "max_gen_toks", "seed", "eos_string", "think_end_token")
        changing = {
            name: self._client_arguments[name]
            for name in names
            if name in self._client_arguments
        }
        client = {
            "name": self._client_name,
            "tokenizer": self._client.tokenizer_backend,
            **changing,
        }
        return {"client": client, "concurrent": self._concurrent}

    # Texts

    def _payload(self, request: Generate, settings: Settings) -> dict[str, Any]:
        """The body of a generation request."""
        gen_kwargs = settings_for_server(request)
        seed = self._client._seed + (request.draw if request.stop else 0)
        return self._body(
            self._prompt(request.prompt, gen_kwargs),
            gen_kwargs=gen_kwargs,
            generate=True,
            seed=seed,
        )

    def _body(self, message: Any, **how: Any) -> dict[str, Any]:
        """Build a body; the end text stops generation unless requests are concurrent."""
        end_option = {} if self._concurrent else {"eos": self._client.eos_string}
        body: dict[str, Any] = self._client._create_payload(
            message, **how, **end_option
        )
        return body

    def _prompt(self, prompt: Prompt, gen_kwargs: Mapping[str, Any]) -> Any:
        client = self._client
        if self._client_name in CHAT:
            turns = (
                [{"role": "user", "content": prompt}]
                if isinstance(prompt, str)
                else _turns(prompt)
            )
            return client.create_message(
                [JsonChatStr(json.dumps(turns, ensure_ascii=False))]
            )
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

    async def _sent_all(
        self, request: LogLikelihood | RollingLogLikelihood, replies: list[Reply | None]
    ) -> Response:
        if self._client.tokenizer is None:
            return await super()._sent_all(request, replies)
        total = 0.0
        greedy = True
        scored = 0
        for context, continuation in self._encoded(request):
            log_likelihood, is_greedy = await self._score(
                context, continuation, replies
            )
            total = total + log_likelihood
            greedy = greedy and is_greedy
            scored = scored + len(continuation)
        received = [reply for reply in replies if reply is not None]
        return Response(
            finish_reason="stop",
            log_likelihood=min(total, 0.0),
            is_greedy=greedy,
            tokens_scored=scored,
            usage=sum((reply_usage(reply.data) for reply in received), Usage()),
            latency=sum(reply.seconds for reply in received),
            rate_limits=received[-1].rate_limits if received else None,
        )

    def _encoded(self, request: Request) -> Iterator[tuple[list[int], list[int]]]:
        """Yield (context tokens, continuation tokens) for each request to the server."""
        client = self._client
        if isinstance(request, LogLikelihood):
            yield client.encoded_pair(self._text(request.context), request.continuation)
        elif isinstance(request, RollingLogLikelihood):
            windows = get_rolling_token_windows(
                client.tok_encode(request.text),
                client.prefix_token_id,
                client.max_length - 1,
                1,
            )
            yield from map(make_disjoint_window, windows)

    async def _score(
        self,
        context: Sequence[int],
        continuation: Sequence[int],
        replies: list[Reply | None],
    ) -> tuple[float, bool]:
        client = self._client
        inputs, lengths, _ = client.batch_loglikelihood_requests(
            [[(None, list(context), list(continuation))]]
        )
        body = self._body(
            client.create_message(inputs), generate=False, seed=client._seed
        )
        replies.append(None)
        call = Call("/completions", body, largest=largest_reply(len(inputs[0]) + 1))
        replies[-1] = reply = await self.client.send(call)
        try:
            values = reply.data["choices"][0]["logprobs"]["token_logprobs"]
            if len(values) <= lengths[0]:
                raise NoEcho(
                    f"{self.settings.where} ignores 'echo': its reply holds only what"
                    " it generated."
                )
            parsed: LogLikelihoods = client.parse_logprobs(
                reply.data, tokens=inputs, ctxlens=lengths
            )
            log_likelihood, is_greedy = parsed[0]
            return float(log_likelihood), bool(is_greedy)
        except RequestError:
            raise
        except (
            AssertionError,
            AttributeError,
            IndexError,
            KeyError,
            TypeError,
            ValueError,
        ) as error:
            raise BadReply(
                f"{self.settings.where} sent no log-probabilities of the prompt's"
                f" tokens ({type(error).__name__}: {error})."
            ) from error


class ServedMessages(ApiModel):
    """A client of Anthropic's messages."""

    carries = CARRIED
    resolves_names = True

    def __init__(
        self, client: str, model: str, client_arguments: Mapping[str, Any]
    ) -> None:
        self._client_name = client
        self._client_arguments = dict(client_arguments)
        self._limit = int(client_arguments.get("max_gen_toks", 256))
        self._concurrent = int(client_arguments.get("num_concurrent", 1)) > 1
        super().__init__(
            _provider("anthropic"),
            model,
            **_sending_arguments(client_arguments, ENDPOINTS["anthropic"]),
        )
        self.carries = CARRIED
        self.wire = replace(self.wire, payload=self._payload, options={})

    def _more_identity(self) -> Mapping[str, Any]:
        return {
            "client": self._client_name,
            "max_gen_toks": self._limit,
            "concurrent": self._concurrent,
        }

    def _payload(self, request: Generate, settings: Settings) -> dict[str, Any]:
        """Build the body of a request: the system message separate, each content as one block."""
        gen_kwargs = settings_for_server(request)
        gen_kwargs.pop("do_sample", None)
        prompt = request.prompt
        turns = (
            [{"role": "user", "content": prompt}]
            if isinstance(prompt, str)
            else _turns(prompt)
        )
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
            "model": settings.model,
            "max_tokens": gen_kwargs.pop("max_gen_toks", self._limit),
            "temperature": gen_kwargs.pop("temperature", 0),
            "stop_sequences": (
                [stop for stop in stops if stop and stop.strip()] or ["\n\nHuman:"]
            ),
            **gen_kwargs,
        }
        return {**body, "system": system} if system else body


def _turns(prompt: Prompt) -> list[dict[str, Any]]:
    assert not isinstance(prompt, str)
    return [turn.as_dict() for turn in prompt]
